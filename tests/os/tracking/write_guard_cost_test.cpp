// Goal: what guarding costs a transaction, by the size of the pieces: the figures of decision 20 (docs/decisions).
// Method: transactions of 6 random words in 3 segments of a resident private file mapping whose dirty pages the kernel
// tracks; the owner keeps twins; a commit protects the pieces and compares them with their twins. Sizes take turns, and
// medians are printed. Nothing is asserted of time; run it with --gtest_also_run_disabled_tests.
#include "src/os/os.hpp"
#include "tests/os/tracked_memory.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <random>

using namespace taiyen::os;

namespace {

constexpr uint64_t pages = uint64_t{1} << 18;
constexpr size_t most_pieces = 64;

struct twins {
    char *base;
    size_t piece_bytes;
    size_t count = 0;
    uint64_t pieces[most_pieces];
    char *copies;
};

write_answer keep_twin(void *context, const first_write &write) {
    twins &kept = *static_cast<twins *>(context);
    memcpy(kept.copies + kept.count * kept.piece_bytes, kept.base + write.piece * kept.piece_bytes, kept.piece_bytes);
    kept.pieces[kept.count++] = write.piece;
    return write_answer::allow;
}

size_t changed_words(const char *now, const char *before, size_t bytes) {
    size_t changed = 0;
    for (size_t i = 0; i < bytes; i += sizeof(uint64_t)) {
        uint64_t a, b;
        memcpy(&a, now + i, sizeof a);
        memcpy(&b, before + i, sizeof b);
        changed += a != b;
    }
    return changed;
}

struct costs {
    std::vector<double> write, protect, compare, all;
};

double median(std::vector<double> &values) {
    std::nth_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(values.size() / 2), values.end());
    return values[values.size() / 2];
}

double share(std::vector<double> &values, double part) {
    std::sort(values.begin(), values.end());
    return values[static_cast<size_t>(part * static_cast<double>(values.size() - 1))];
}

// One transaction: two words each in three segments.
void write_words(const region &memory, std::mt19937_64 &random) {
    for (int i = 0; i < 3; i++) {
        uint64_t segment = random() % (pages / 16);
        memory.word(segment * 16 + 3, random() % 512).fetch_add(1, std::memory_order_relaxed);
        memory.word(segment * 16 + 3, random() % 512).fetch_add(1, std::memory_order_relaxed);
    }
}

void run_guarded(const region &memory, write_guard &guard, twins &kept, std::mt19937_64 &random, costs &into) {
    for (int i = 0; i < 500; i++) {
        uint64_t start = now_ns();
        write_words(memory, random);
        uint64_t written = now_ns();
        std::sort(kept.pieces, kept.pieces + kept.count);
        ASSERT_EQ(guard.protect(kept.pieces, kept.count), TY_OK);
        uint64_t shut = now_ns();
        size_t changed = 0;
        for (size_t piece = 0; piece < kept.count; piece++)
            changed += changed_words(kept.base + kept.pieces[piece] * kept.piece_bytes,
                                     kept.copies + piece * kept.piece_bytes, kept.piece_bytes);
        uint64_t end = now_ns();
        ASSERT_GT(changed, 0u);
        kept.count = 0;
        into.write.push_back(static_cast<double>(written - start) / 1e3);
        into.protect.push_back(static_cast<double>(shut - written) / 1e3);
        into.compare.push_back(static_cast<double>(end - shut) / 1e3);
        into.all.push_back(static_cast<double>(end - start) / 1e3);
    }
}

} // namespace

TEST(write_guard_cost, DISABLED_of_a_transaction_by_piece_size) {
    region memory(backing::file, pages);
    for (uint64_t page = 0; page < pages; page++)
        memory.touch(page);
    tracker dirty;
    ASSERT_EQ(dirty.start(memory.base, pages, tracker_method::automatic), TY_OK) << ty_error_text();
    std::vector<char> copies(most_pieces * segment_bytes, 1);
    constexpr uint64_t sizes[] = {1, 2, 4, 8, 16};
    costs of[std::size(sizes)];
    std::vector<double> plain, arming, disarming;
    std::mt19937_64 random(1);
    for (int round = 0; round < 20; round++)
        for (size_t i = 0; i < std::size(sizes); i++) {
            for (int transaction = 0; transaction < 500; transaction++) {
                uint64_t start = now_ns();
                write_words(memory, random);
                plain.push_back(static_cast<double>(now_ns() - start) / 1e3);
            }
            twins kept{memory.base, sizes[i] * page_bytes, 0, {}, copies.data()};
            write_guard guard;
            ASSERT_EQ(guard.start(memory.base, pages, sizes[i], keep_twin, &kept), TY_OK);
            uint64_t start = now_ns();
            ASSERT_EQ(guard.arm(), TY_OK);
            arming.push_back(static_cast<double>(now_ns() - start) / 1e3);
            run_guarded(memory, guard, kept, random, of[i]);
            start = now_ns();
            ASSERT_EQ(guard.disarm(), TY_OK);
            disarming.push_back(static_cast<double>(now_ns() - start) / 1e3);
            guard.stop();
        }
    dirty.stop();
    printf("3 pieces, microseconds, medians of 10,000 transactions; without a guard %.2f\n", median(plain));
    printf("arm 1 GB resident %.0f, disarm %.0f\n", median(arming), median(disarming));
    printf("pages  writes  protect  compare     all     p10     p99\n");
    for (size_t i = 0; i < std::size(sizes); i++)
        printf("%5llu %7.2f %8.2f %8.2f %7.2f %7.2f %7.2f\n", static_cast<unsigned long long>(sizes[i]),
               median(of[i].write), median(of[i].protect), median(of[i].compare), median(of[i].all),
               share(of[i].all, 0.1), share(of[i].all, 0.99));
}
