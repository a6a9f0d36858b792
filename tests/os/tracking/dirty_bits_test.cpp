// Goal: what is set is found, and found once, at every size and density, also where others set bits of one word at the
// same moment (B3). Method: random ranges against std::set; a signal handler that sets the odd pages of a word while
// the program sets the even ones, as a thread could.
#include "src/os/tracking/dirty_bits.hpp"
#include "tests/os/tracked_memory.hpp"

#include <csignal>
#include <random>
#include <sys/time.h>

using namespace taiyen::os;

namespace {

struct both {
    explicit both(uint64_t pages) {
        EXPECT_EQ(bits.create(pages), TY_OK);
        EXPECT_EQ(found.create(pages), TY_OK);
    }
    ~both() {
        bits.destroy();
        found.destroy();
    }
    both(const both &) = delete;
    both &operator=(const both &) = delete;

    std::set<uint64_t> look() {
        found.clear();
        bits.add_to(found);
        return members(found);
    }
    std::set<uint64_t> take() {
        found.clear();
        bits.move_to(found);
        return members(found);
    }

    dirty_bits bits;
    page_set found;
};

} // namespace

TEST(dirty_bits, what_is_set_is_found_once) {
    std::mt19937_64 random(1);
    for (uint64_t pages : {1u, 63u, 64u, 65u, 4096u, 4097u, 70'001u, 600'000u}) {
        both tested(pages);
        std::set<uint64_t> model;
        for (int step = 0; step < 60; step++) {
            uint64_t first = random() % pages;
            uint64_t count = random() % (std::min<uint64_t>(pages - first, random() % 8 == 0 ? 9000 : 70) + 1);
            tested.bits.set(first, count);
            for (uint64_t page = first; page < first + count; page++)
                model.insert(page);
            if (step % 10 != 0)
                continue;
            ASSERT_EQ(tested.look(), model) << pages;
            ASSERT_EQ(tested.take(), model) << pages;
            ASSERT_TRUE(tested.look().empty()) << pages;
            model.clear();
        }
    }
}

TEST(dirty_bits, a_handler_that_sets_bits_of_the_word_at_hand_loses_none) {
    constexpr uint64_t words = 1024;
    static dirty_bits *bits;
    static std::atomic<uint64_t> word, handled;
    static std::atomic<bool> interrupted[words];
    both tested(words * 64);
    bits = &tested.bits;
    handled = 0;
    struct sigaction action {
    }, before;
    action.sa_handler = [](int) {
        for (uint64_t bit = 1; bit < 64; bit += 2)
            bits->set(word * 64 + bit, 1);
        interrupted[word] = true;
        handled++;
    };
    sigaction(SIGALRM, &action, &before);
    itimerval often{{0, 20}, {0, 20}}, never{};
    for (int round = 0; round < 20; round++) {
        for (std::atomic<bool> &one : interrupted)
            one = false;
        setitimer(ITIMER_REAL, &often, nullptr);
        for (uint64_t until = handled + 100; handled < until;)
            for (word = 0; word < words - 1; word++)
                for (uint64_t bit = 0; bit < 64; bit += 2)
                    tested.bits.set(word * 64 + bit, 1);
        setitimer(ITIMER_REAL, &never, nullptr);
        std::set<uint64_t> found = tested.take();
        for (uint64_t page = 0; page < (words - 1) * 64; page++)
            ASSERT_EQ(found.contains(page), page % 2 == 0 || interrupted[page / 64]) << page;
    }
    sigaction(SIGALRM, &before, nullptr);
}
