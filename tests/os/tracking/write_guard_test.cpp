// Goal: nothing changes in guarded memory before its owner was called (G1), once (G2), until it is protected again,
// from when on no write is missed (G3); mappings stay few and grow together (G4); dirty pages are found all the same,
// by both methods (G5). Method: an owner that keeps a twin of each piece, against a shadow of the memory that is
// brought up to date from the called pieces alone; random and racing writes; with no tracker, and with each of them
// beneath.
#include "src/os/calls/syscalls.hpp"
#include "src/os/os.hpp"
#include "src/os/tracking/fault_handler.hpp"
#include "tests/effort.hpp"
#include "tests/os/given_time.hpp"
#include "tests/os/tracked_memory.hpp"

#include <algorithm>
#include <cstring>
#include <ctime>
#include <memory>
#include <random>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <thread>

using namespace taiyen::os;

namespace {

// Keeps twins of the pieces that are written, and looks that it is called as promised.
class owner {
public:
    owner(const region &memory, uint64_t piece_pages)
        : memory_(memory), piece_bytes(piece_pages * page_bytes),
          piece_count((memory.page_count + piece_pages - 1) / piece_pages), called(piece_count), twins(memory.bytes()) {
    }

    static write_answer on_first_write(void *context, const first_write &write) {
        owner &self = *static_cast<owner *>(context);
        self.overlapping += self.inside.exchange(true) ? 1 : 0;
        if (self.refusing) {
            self.inside = false;
            return write_answer::refuse;
        }
        self.calls++;
        self.last = write;
        self.doubled += self.called[write.piece].exchange(true) ? 1 : 0;
        self.keep_twin(write.piece * self.piece_bytes, self.bytes_of(write.piece));
        self.inside = false;
        return write_answer::allow;
    }
    size_t bytes_of(uint64_t piece) const { return std::min(piece_bytes, memory_.bytes() - piece * piece_bytes); }

    // Takes the called pieces; they count as not called from now on.
    std::vector<uint64_t> take() {
        std::vector<uint64_t> pieces;
        for (uint64_t piece = 0; piece < piece_count; piece++)
            if (called[piece].exchange(false))
                pieces.push_back(piece);
        return pieces;
    }

private:
    // Word by word: ThreadSanitizer knows nothing of the protection that keeps other threads' writes out meanwhile.
    void keep_twin(size_t offset, size_t bytes) {
        for (size_t at = offset; at < offset + bytes; at += sizeof(uint64_t)) {
            uint64_t word = memory_.word(0, at / sizeof(uint64_t)).load(std::memory_order_relaxed);
            memcpy(twins.data() + at, &word, sizeof word);
        }
    }

    const region &memory_;

public:
    const size_t piece_bytes;
    const uint64_t piece_count;
    std::vector<std::atomic<bool>> called;
    std::vector<char> twins;
    std::atomic<bool> inside{false};
    bool refusing = false;
    int calls = 0, doubled = 0, overlapping = 0;
    first_write last{};
};

enum class beneath { nothing, kernel, signals };

struct guard_setup {
    beneath tracker;
    backing kind;
    uint64_t piece_pages;
};

thread_local bool writing = false; // this thread is one of those that race

class guarding : public testing::TestWithParam<guard_setup> {
protected:
    void begin(uint64_t pages) {
        memory = std::make_unique<region>(GetParam().kind, pages);
        keeper = std::make_unique<owner>(*memory, GetParam().piece_pages);
        ASSERT_EQ(found.create(pages), TY_OK);
    }
    // False: this kernel has not got the tracker.
    bool start() {
        if (tracked()) {
            auto method = by_kernel() ? tracker_method::kernel : tracker_method::signal;
            ty_status status = dirty.start(memory->base, memory->page_count, method);
            if (status == TY_E_UNSUPPORTED)
                return false;
            EXPECT_EQ(status, TY_OK) << ty_error_text();
        }
        EXPECT_EQ(
            guard.start(memory->base, memory->page_count, GetParam().piece_pages, owner::on_first_write, keeper.get()),
            TY_OK)
            << ty_error_text();
        if (tracked())
            collect();
        return true;
    }
    std::set<uint64_t> collect() {
        found.clear();
        EXPECT_EQ(dirty.collect(found), TY_OK) << ty_error_text();
        return members(found);
    }
    // What is collected is what was written: to the page, or (signals) to the piece.
    void expect_collected(const std::set<uint64_t> &model) {
        std::set<uint64_t> got = collect();
        for (uint64_t page : model)
            ASSERT_TRUE(got.contains(page)) << page;
        if (by_kernel()) {
            ASSERT_EQ(got, model);
        }
        std::set<uint64_t> pieces;
        for (uint64_t page : model)
            pieces.insert(page / GetParam().piece_pages);
        for (uint64_t page : got)
            ASSERT_TRUE(pieces.contains(page / GetParam().piece_pages)) << page;
    }
    void protect(const std::vector<uint64_t> &pieces) {
        ASSERT_EQ(guard.protect(pieces.data(), pieces.size()), TY_OK) << ty_error_text();
    }
    void TearDown() override {
        guard.stop();
        dirty.stop();
        found.destroy();
        if (keeper != nullptr) {
            EXPECT_EQ(keeper->doubled, 0);
            EXPECT_EQ(keeper->overlapping, 0);
        }
        keeper.reset();
        memory.reset();
    }
    bool by_kernel() const { return GetParam().tracker == beneath::kernel; }
    bool tracked() const { return GetParam().tracker != beneath::nothing; }

    std::unique_ptr<region> memory;
    std::unique_ptr<owner> keeper;
    tracker dirty;
    page_set found;
    write_guard guard;
};

#define START_OR_SKIP()                                                                                                \
    if (!start())                                                                                                      \
    GTEST_SKIP() << ty_error_text()

} // namespace

// Transactions of random writes, with collections of the tracker at any moment in between. After each, the called
// pieces are exactly the written ones, and their twins hold what was there before.
TEST_P(guarding, the_owner_is_called_for_exactly_the_written_pieces_with_what_was_there) {
    constexpr uint64_t pages = 1003;
    begin(pages);
    START_OR_SKIP();
    ASSERT_EQ(guard.arm(), TY_OK);
    std::mt19937_64 random(5);
    std::vector<char> shadow(memory->bytes(), 0);
    std::set<uint64_t> written, dirtied;
    for (int round = 0; round < 60; round++) {
        for (int step = 0; step < 30; step++) {
            uint64_t page = random() % pages;
            if (random() % 3 == 0) {
                memory->read(page, random() % page_bytes);
                continue;
            }
            memory->at(page, random() % page_bytes) = static_cast<char>(random());
            written.insert(page / GetParam().piece_pages);
            dirtied.insert(page);
            if (tracked() && random() % 40 == 0) {
                expect_collected(dirtied);
                dirtied.clear();
            }
        }
        std::vector<uint64_t> pieces = keeper->take();
        protect(pieces);
        ASSERT_EQ(std::set<uint64_t>(pieces.begin(), pieces.end()), written);
        for (uint64_t piece : pieces) {
            size_t offset = piece * keeper->piece_bytes, bytes = keeper->bytes_of(piece);
            ASSERT_EQ(memcmp(keeper->twins.data() + offset, shadow.data() + offset, bytes), 0) << piece;
            memcpy(shadow.data() + offset, memory->base + offset, bytes);
        }
        written.clear();
    }
    EXPECT_EQ(memcmp(shadow.data(), memory->base, memory->bytes()), 0);
    if (tracked())
        expect_collected(dirtied);
}

// The shadow is brought up to date from the called pieces alone, while three threads write and the tracker collects.
// A handler gives the others time to come in before it makes memory writable.
TEST_P(guarding, a_shadow_made_from_called_pieces_misses_no_racing_write) {
    constexpr uint64_t pages = 300;
    constexpr size_t words = page_bytes / sizeof(uint64_t);
    begin(pages);
    START_OR_SKIP();
    ASSERT_EQ(guard.arm(), TY_OK);
    std::vector<uint64_t> shadow(pages * words, 0), copy(pages * words, 0);
    auto copy_page = [&](std::vector<uint64_t> &to, uint64_t page) {
        for (size_t i = 0; i < words; i++)
            to[page * words + i] = memory->word(page, i).load(std::memory_order_relaxed);
    };
    auto update = [&] {
        std::vector<uint64_t> pieces = keeper->take();
        protect(pieces);
        for (uint64_t piece : pieces)
            for (uint64_t page = piece * GetParam().piece_pages;
                 page < std::min(pages, (piece + 1) * GetParam().piece_pages); page++)
                copy_page(shadow, page);
        if (tracked())
            for (uint64_t page : collect())
                copy_page(copy, page);
    };
    std::atomic<int> running{3};
    std::vector<std::thread> writers;
    for (uint64_t seed = 0; seed < 3; seed++)
        writers.emplace_back([&, seed] {
            writing = true;
            std::mt19937_64 random(seed);
            for (uint64_t i = 1; i <= uint64_t(taiyen::test::effort(500)); i++) {
                uint64_t page = random() % pages, index = random() % words;
                if (i % 16 == 0) {
                    EXPECT_EQ(guard.touch(&memory->word(page, index), 8), TY_OK) << ty_error_text();
                }
                memory->word(page, index).store(i << 2 | seed, std::memory_order_relaxed);
            }
            running--;
        });
    sys::hook = [](sys::call which) {
        if (which == sys::call::mprotect && writing)
            sched_yield();
        return 0;
    };
    int rounds = 0;
    for (; running.load() != 0; rounds++)
        update();
    for (std::thread &writer : writers)
        writer.join();
    sys::hook = nullptr;
    update();
    size_t missed = 0, not_collected = 0;
    for (size_t i = 0; i < shadow.size(); i++) {
        uint64_t now = memory->word(0, i).load(std::memory_order_relaxed);
        missed += shadow[i] != now;
        not_collected += copy[i] != now;
    }
    EXPECT_EQ(missed, 0u) << "after " << rounds << " rounds";
    if (tracked()) {
        EXPECT_EQ(not_collected, 0u) << "after " << rounds << " rounds";
    }
}

TEST_P(guarding, disarmed_memory_is_written_without_a_call_and_still_tracked) {
    begin(200);
    START_OR_SKIP();
    size_t mappings = mappings_within(*memory);
    memory->touch(2);
    if (tracked()) {
        EXPECT_EQ(collect(), std::set<uint64_t>{2}); // to the page: the guard is out of it
    }
    memory->touch(3);
    ASSERT_EQ(guard.arm(), TY_OK);
    memory->touch(70);
    ASSERT_EQ(guard.disarm(), TY_OK);
    EXPECT_EQ(keeper->take(), std::vector<uint64_t>{70 / GetParam().piece_pages});
    if (!tracked()) {
        EXPECT_EQ(mappings_within(*memory), mappings);
    }
    memory->touch(70);
    memory->touch(150);
    EXPECT_EQ(keeper->calls, 1);
    if (tracked())
        expect_collected({3, 70, 150});
    EXPECT_EQ(mappings_within(*memory), mappings);
    memory->touch(7);
    ASSERT_EQ(guard.arm(), TY_OK);
    memory->touch(7);
    memory->touch(150);
    EXPECT_EQ(keeper->calls, 3);
    keeper->take();
    ASSERT_EQ(guard.arm(), TY_OK); // once more: all is protected again
    memory->touch(150);
    EXPECT_EQ(keeper->calls, 4);
    guard.stop();
    memory->touch(100);
    EXPECT_EQ(keeper->calls, 4);
    if (tracked())
        expect_collected({7, 100, 150});
    ASSERT_EQ(guard.start(memory->base, 200, 1, owner::on_first_write, keeper.get()), TY_OK);
}

TEST_P(guarding, a_system_call_writes_what_was_touched) {
    begin(200);
    START_OR_SKIP();
    const uint64_t piece_pages = GetParam().piece_pages;
    EXPECT_EQ(guard.touch(memory->base, memory->bytes()), TY_OK); // not armed
    EXPECT_EQ(keeper->calls, 0);
    ASSERT_EQ(guard.arm(), TY_OK);
    char *start = memory->base + 20 * page_bytes - 10;
    auto read_zeros = [&] {
        int zeros = open("/dev/zero", O_RDONLY);
        ssize_t got = read(zeros, start, 20 + page_bytes);
        close(zeros);
        return got;
    };
    EXPECT_EQ(read_zeros(), -1);
    EXPECT_EQ(errno, EFAULT);
    EXPECT_EQ(keeper->calls, 0);
    memory->touch(20);
    ASSERT_EQ(guard.touch(start, 20 + page_bytes), TY_OK) << ty_error_text();
    EXPECT_EQ(read_zeros(), static_cast<ssize_t>(20 + page_bytes));
    std::vector<uint64_t> wanted;
    for (uint64_t piece = 19 / piece_pages; piece <= 21 / piece_pages; piece++)
        wanted.push_back(piece);
    EXPECT_EQ(keeper->take(), wanted);
    EXPECT_EQ(guard.touch(memory->base - 100, 100), TY_OK);
    EXPECT_EQ(guard.touch(memory->base + memory->bytes(), 100), TY_OK);
    EXPECT_TRUE(keeper->take().empty());
    EXPECT_EQ(guard.touch(memory->base - 100, 101), TY_OK);
    EXPECT_EQ(guard.touch(memory->base + memory->bytes() - 1, 100), TY_OK);
    EXPECT_EQ(keeper->last.instruction, nullptr);
    EXPECT_EQ(keeper->take(), (std::vector<uint64_t>{0, keeper->piece_count - 1}));
    keeper->refusing = true;
    EXPECT_EQ(guard.touch(memory->base + 100 * page_bytes, 1), TY_E_BUSY);
    if (by_kernel()) // the pages that guard.start has rewritten were collected
        expect_collected({19, 20, 21});
}

TEST_P(guarding, protected_pieces_grow_together_again) {
    begin(2000);
    START_OR_SKIP();
    ASSERT_EQ(guard.arm(), TY_OK);
    size_t mappings = mappings_within(*memory);
    std::mt19937_64 random(1);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 200; i++)
            memory->touch(random() % 2000);
        EXPECT_GT(mappings_within(*memory), mappings);
        protect(keeper->take());
        EXPECT_EQ(mappings_within(*memory), mappings);
    }
}

TEST_P(guarding, a_forked_child_works_on_its_own_copy) {
    begin(200);
    START_OR_SKIP();
    ASSERT_EQ(guard.arm(), TY_OK);
    memory->touch(1);
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); // a child that hangs does so with signals blocked
        keeper->take();
        memory->touch(1);
        memory->touch(100);
        bool right = keeper->take() == std::vector<uint64_t>{100 / GetParam().piece_pages};
        guard.stop();
        memory->touch(150);
        _exit(right && keeper->take().empty() ? 0 : 1);
    }
    int status = 1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    memory->touch(100);
    EXPECT_EQ(keeper->take(), (std::vector<uint64_t>{1 / GetParam().piece_pages, 100 / GetParam().piece_pages}));
    if (by_kernel())
        expect_collected({1, 100});
}

TEST_P(guarding, a_terabyte_costs_what_is_written) {
    constexpr uint64_t pages = uint64_t{1} << 28;
    if (persistent_zone().high - persistent_zone().low < pages * page_bytes)
        GTEST_SKIP() << "this build has no terabyte of address space";
    memory = std::make_unique<region>(GetParam().kind, pages);
    ASSERT_EQ(found.create(pages), TY_OK);
    if (tracked())
        if (dirty.start(memory->base, pages, by_kernel() ? tracker_method::kernel : tracker_method::signal) != TY_OK)
            GTEST_SKIP() << ty_error_text();
    struct notes {
        size_t count = 0;
        std::vector<uint64_t> pieces = std::vector<uint64_t>(2000);
    } called;
    auto note = [](void *context, const first_write &write) {
        notes &to = *static_cast<notes *>(context);
        to.pieces[to.count++] = write.piece;
        return write_answer::allow;
    };
    size_t before = page_table_kb();
    ASSERT_EQ(guard.start(memory->base, pages, GetParam().piece_pages, note, &called), TY_OK);
    ASSERT_EQ(guard.arm(), TY_OK);
    std::set<uint64_t> model;
    for (uint64_t i = 0; i < 1000; i++) {
        uint64_t page = i * (pages / 1000) + i % 512;
        memory->touch(page);
        model.insert(page / GetParam().piece_pages);
    }
    called.pieces.resize(called.count);
    EXPECT_EQ(called.pieces, std::vector<uint64_t>(model.begin(), model.end()));
    protect(called.pieces);
    called.count = 0;
    memory->touch(1000);
    EXPECT_EQ(called.count, 1u);
    EXPECT_EQ(called.pieces[0], 1000 / GetParam().piece_pages);
    ASSERT_EQ(guard.disarm(), TY_OK);
    guard.stop();                                   // while its notes are there
    EXPECT_LT(page_table_kb() - before, 20u << 10); // three tables a page
}

INSTANTIATE_TEST_SUITE_P(
    setups, guarding,
    testing::Values(guard_setup{beneath::nothing, backing::file, 16}, guard_setup{beneath::nothing, backing::mixed, 1},
                    guard_setup{beneath::kernel, backing::file, 16}, guard_setup{beneath::kernel, backing::mixed, 4},
                    guard_setup{beneath::kernel, backing::anonymous, 1},
                    guard_setup{beneath::signals, backing::file, 16}, guard_setup{beneath::signals, backing::mixed, 4},
                    guard_setup{beneath::signals, backing::anonymous, 1}),
    [](const testing::TestParamInfo<guard_setup> &tested) {
        const guard_setup &s = tested.param;
        return std::string(s.tracker == beneath::nothing  ? "alone"
                           : s.tracker == beneath::kernel ? "kernel"
                                                          : "signals") +
               "_" + std::to_string(s.piece_pages);
    });

TEST(write_guard, reports_where_and_by_what) {
    region memory(backing::anonymous, 64);
    owner keeper(memory, 16);
    write_guard guard;
    ASSERT_EQ(guard.start(memory.base, 64, 16, owner::on_first_write, &keeper), TY_OK);
    ASSERT_EQ(guard.arm(), TY_OK);
    memory.at(33, 5) = 1;
    EXPECT_EQ(keeper.last.piece, 2u);
    EXPECT_EQ(keeper.last.address, memory.base + 33 * page_bytes + 5);
#if defined(__x86_64__)
    uintptr_t instruction;
    asm volatile("lea 0f(%%rip), %0\n0: movb $1, (%1)" : "=&r"(instruction) : "r"(memory.base) : "memory");
    EXPECT_EQ(reinterpret_cast<uintptr_t>(keeper.last.instruction), instruction);
#endif
    guard.stop();
}

TEST(write_guard, several_do_not_mix_and_what_cannot_be_is_refused) {
    region one(backing::file, 64), two(backing::file, 64);
    owner keeper_one(one, 4), keeper_two(two, 4);
    write_guard guard_one, guard_two, guard_three;
    ASSERT_EQ(guard_one.start(one.base, 64, 4, owner::on_first_write, &keeper_one), TY_OK);
    ASSERT_EQ(guard_two.start(two.base + 16 * page_bytes, 32, 4, owner::on_first_write, &keeper_two), TY_OK);
    EXPECT_EQ(guard_three.start(one.base + 63 * page_bytes, 1, 4, owner::on_first_write, &keeper_one), TY_E_BUSY);
    tracker dirty;
    EXPECT_EQ(dirty.start(one.base, 64, tracker_method::signal), TY_E_BUSY) << ty_error_text();
    ASSERT_EQ(dirty.start(two.base, 16, tracker_method::signal), TY_OK) << ty_error_text();
    EXPECT_EQ(guard_three.start(two.base, 2, 1, owner::on_first_write, &keeper_two), TY_OK);
    guard_three.stop();
    guard_two.stop();
    EXPECT_EQ(guard_three.start(two.base + 15 * page_bytes, 2, 1, owner::on_first_write, &keeper_two), TY_E_ARGUMENT);
    dirty.stop();
    ASSERT_EQ(guard_two.start(two.base + 16 * page_bytes, 32, 4, owner::on_first_write, &keeper_two), TY_OK);
    ASSERT_EQ(guard_one.arm(), TY_OK);
    ASSERT_EQ(guard_two.arm(), TY_OK);
    one.touch(9);
    two.touch(9);
    two.touch(48);
    two.touch(16);
    EXPECT_EQ(keeper_one.take(), std::vector<uint64_t>{2});
    EXPECT_EQ(keeper_two.take(), std::vector<uint64_t>{0});
    guard_one.stop();
    two.touch(47);
    EXPECT_EQ(keeper_two.take(), std::vector<uint64_t>{7});
    guard_two.stop();
}

// Beyond the budget, a piece becomes writable together with the gap to its neighbour; pieces side by side cost nothing.
TEST(write_guard, mappings_stay_within_the_budget) {
    constexpr uint64_t pages = 4000, budget = 20;
    faults::set_run_budget(budget);
    region memory(backing::anonymous, pages);
    owner keeper(memory, 1);
    write_guard guard;
    ASSERT_EQ(guard.start(memory.base, pages, 1, owner::on_first_write, &keeper), TY_OK);
    ASSERT_EQ(guard.arm(), TY_OK);
    for (int round = 0; round < 2; round++) {
        for (uint64_t page = 0; page < 1000; page++)
            memory.touch(page); // one run
        for (uint64_t i = 1; i < budget; i++)
            memory.touch(1000 + i * 100);
        EXPECT_EQ(keeper.calls, static_cast<int>(1000 + budget - 1)); // exact so far
        memory.touch(1195);                                           // 1200 is nearer than 1100
        memory.touch(1108);
        EXPECT_EQ(keeper.calls, static_cast<int>(1000 + budget - 1 + 5 + 8));
        EXPECT_TRUE(keeper.called[1101] && keeper.called[1199] && !keeper.called[1109] && !keeper.called[1194]);
        EXPECT_EQ(guard.touch(memory.base + 3000 * page_bytes, 4 * page_bytes), TY_OK);
        EXPECT_TRUE(keeper.called[2999] && keeper.called[3003]);
        std::mt19937_64 random(static_cast<uint64_t>(round));
        size_t most = 0;
        for (int i = 0; i < 500; i++) {
            memory.touch(random() % pages);
            most = std::max(most, mappings_within(memory));
        }
        EXPECT_LE(most, 2 * budget + 1);
        std::vector<uint64_t> pieces = keeper.take();
        ASSERT_EQ(guard.protect(pieces.data(), pieces.size()), TY_OK);
        EXPECT_EQ(mappings_within(memory), 1u);
        keeper.calls = 0;
    }
    EXPECT_EQ(keeper.doubled, 0);
    guard.stop();
    faults::set_run_budget(0);
}

// The kernel has no mapping left, although the budget has: the gap is filled then.
TEST(write_guard, a_refusing_kernel_gets_by_without_a_mapping) {
    region memory(backing::anonymous, 100);
    owner keeper(memory, 1);
    write_guard guard;
    ASSERT_EQ(guard.start(memory.base, 100, 1, owner::on_first_write, &keeper), TY_OK);
    ASSERT_EQ(guard.arm(), TY_OK);
    memory.touch(50);
    static std::atomic<int> left;
    left = 1;
    sys::hook = [](sys::call which) { return which == sys::call::mprotect && left.fetch_sub(1) > 0 ? ENOMEM : 0; };
    memory.touch(53);
    EXPECT_EQ(keeper.take(), (std::vector<uint64_t>{50, 51, 52, 53}));
    left = 2;
    EXPECT_EQ(guard.touch(memory.base + 90 * page_bytes, 1), TY_E_MEMORY) << ty_error_text();
    left = 0;
    memory.touch(90); // asked for before, and agreed
    sys::hook = nullptr;
    EXPECT_EQ(keeper.doubled, 0);
    guard.stop();
}

TEST(write_guard, two_threads_that_write_one_piece_at_once_are_one_call) {
    constexpr uint64_t pages = 400;
    region memory(backing::anonymous, pages);
    owner keeper(memory, 4);
    write_guard guard;
    ASSERT_EQ(guard.start(memory.base, pages, 4, owner::on_first_write, &keeper), TY_OK);
    ASSERT_EQ(guard.arm(), TY_OK);
    std::atomic<uint64_t> turn[2] = {};
    auto write_all = [&](size_t self) {
        for (uint64_t page = 0; page < pages; page++) {
            turn[self] = page + 1;
            while (turn[1 - self] < page + 1)
                std::this_thread::yield();
            memory.word(page, self).store(page + 1, std::memory_order_relaxed);
        }
    };
    std::thread second(write_all, 1);
    write_all(0);
    second.join();
    EXPECT_EQ(keeper.calls, 100);
    EXPECT_EQ(keeper.doubled, 0);
    EXPECT_EQ(keeper.overlapping, 0);
    for (uint64_t page = 0; page < pages; page++)
        ASSERT_EQ(memory.word(page, 0) + memory.word(page, 1), 2 * (page + 1));
    guard.stop();
}

// While the owner is called for a piece, the kernel cannot write there either: it is not writable yet (G1).
TEST(write_guard, a_piece_is_not_writable_before_its_owner_has_agreed) {
    struct trial {
        int zeros = open("/dev/zero", O_RDONLY | O_CLOEXEC);
        ssize_t written = 0;
        int error = 0;
        ~trial() { close(zeros); }
    } tried;
    auto try_to_write = [](void *context, const first_write &write) {
        trial &its = *static_cast<trial *>(context);
        its.written = read(its.zeros, const_cast<void *>(write.address), 1);
        its.error = errno;
        return write_answer::allow;
    };
    region memory(backing::anonymous, 64);
    write_guard guard;
    ASSERT_EQ(guard.start(memory.base, 64, 4, try_to_write, &tried), TY_OK);
    ASSERT_EQ(guard.arm(), TY_OK);
    memory.touch(9);
    EXPECT_EQ(tried.written, -1);
    EXPECT_EQ(tried.error, EFAULT);
    EXPECT_EQ(memory.at(9), 1);
    guard.stop();
}

// A thread is inside the owner. Another one, which writes elsewhere (G2), or protects what it has written there (G3),
// waits for it.
TEST(write_guard, who_serves_or_protects_waits_for_who_is_inside) {
    struct waiting {
        pthread_t other = pthread_self();
        std::atomic<bool> entered{false}, second_called{false}, protected_again{false};
        bool overlapped = false;
    } seen;
    auto wait_inside = [](void *context, const first_write &write) {
        waiting &its = *static_cast<waiting *>(context);
        if (write.piece != 3) {
            its.second_called = write.piece == 5;
            return write_answer::allow;
        }
        its.entered = true;
        give_time_to(its.other, [&] { return its.second_called || its.protected_again; });
        its.overlapped = its.second_called || its.protected_again;
        return write_answer::allow;
    };
    region memory(backing::anonymous, 64);
    write_guard guard;
    ASSERT_EQ(guard.start(memory.base, 64, 4, wait_inside, &seen), TY_OK);
    for (bool protects : {false, true}) {
        seen.entered = seen.second_called = seen.protected_again = false;
        ASSERT_EQ(guard.arm(), TY_OK);
        memory.touch(28);
        std::thread first([&] { memory.touch(12); });
        while (!seen.entered)
            std::this_thread::yield();
        if (protects) {
            uint64_t piece = 7;
            EXPECT_EQ(guard.protect(&piece, 1), TY_OK);
            seen.protected_again = true;
        } else {
            memory.touch(20);
            EXPECT_TRUE(seen.second_called);
        }
        first.join();
        EXPECT_FALSE(seen.overlapped) << protects;
        ASSERT_EQ(guard.disarm(), TY_OK);
    }
    guard.stop();
}

// A signal handler of the very thread that is inside touch writes to guarded memory: it must wait, not turn for ever.
TEST(write_guard, a_signal_that_comes_while_the_owner_is_called_waits) {
#if defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "ThreadSanitizer runs handlers later, with page faults blocked: writing to guarded memory kills";
#endif
    static region *memory;
    region place(backing::anonymous, 64);
    memory = &place;
    write_guard guard;
    auto raise_once = [](void *, const first_write &write) {
        if (write.piece == 1)
            raise(SIGUSR1);
        return write_answer::allow;
    };
    ASSERT_EQ(guard.start(place.base, 64, 4, raise_once, nullptr), TY_OK);
    ASSERT_EQ(guard.arm(), TY_OK);
    auto before = signal(SIGUSR1, [](int) { memory->touch(40); });
    alarm(60);
    EXPECT_EQ(guard.touch(place.base + 4 * page_bytes, 1), TY_OK);
    EXPECT_EQ(place.at(40), 1);
    alarm(0);
    signal(SIGUSR1, before);
    guard.stop();
}

// Another thread is inside the owner when the process forks: in the child it is not, and nobody waits for it.
TEST(write_guard, a_fork_while_a_thread_is_inside_leaves_a_usable_child) {
    static std::atomic<bool> entered, may_leave;
    entered = may_leave = false;
    region memory(backing::anonymous, 64);
    write_guard guard;
    auto wait_inside = [](void *, const first_write &write) {
        if (write.piece == 3) {
            entered = true;
            while (!may_leave)
                sched_yield();
        }
        return write_answer::allow;
    };
    ASSERT_EQ(guard.start(memory.base, 64, 4, wait_inside, nullptr), TY_OK);
    ASSERT_EQ(guard.arm(), TY_OK);
    std::thread writer([&] { memory.touch(12); });
    while (!entered)
        std::this_thread::yield();
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); // a child that hangs does so with signals blocked
        memory.touch(20);
        uint64_t piece = 5;
        bool right = guard.protect(&piece, 1) == TY_OK;
        guard.stop();
        memory.touch(40);
        _exit(right ? 0 : 1);
    }
    int status = 1;
    waitpid(child, &status, 0);
    may_leave = true;
    writer.join();
    EXPECT_EQ(status, 0);
    EXPECT_EQ(memory.at(12), 1);
    guard.stop();
}

// The handler that was there before gets what the owner refuses. In a process of its own, where it is installed anew.
TEST(write_guard, a_refused_write_goes_to_the_handler_before) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    for (bool with_tracker : {false, true})
        EXPECT_EXIT(
            {
                signal(SIGSEGV, [](int) { _exit(42); });
                region memory(backing::anonymous, 64);
                tracker dirty;
                if (with_tracker && dirty.start(memory.base, 64, tracker_method::signal) != TY_OK)
                    _exit(9);
                write_guard guard;
                auto refuse = [](void *, const first_write &) { return write_answer::refuse; };
                if (guard.start(memory.base, 64, 4, refuse, nullptr) != TY_OK || guard.arm() != TY_OK)
                    _exit(9);
                memory.touch(3);
                _exit(1);
            },
            testing::ExitedWithCode(42), "");
    GTEST_FLAG_SET(death_test_style, "fast");
}
