// Goal: private copies of what the image holds go when there are more of them than the bound allows, and nothing else
// goes: content stays right whatever was written when. Method: heaps on a simulated disk with a bound far below what
// they hold; the kernel says which pages are private.
#include "fuzzy_calls.hpp"
#include "tests/stats.hpp"
#include "tests/store/image/private_pages.hpp"

using namespace taiyen;
using namespace taiyen::test;

namespace {

constexpr size_t bound_bytes = size_t{1} << 20;
constexpr size_t evicted_bytes = size_t{64} << 10;

struct evict_case {
    const char *name;
    ty_tracking tracking;
    bool reopened; // the memory is the file's, and not anonymous
};

void PrintTo(const evict_case &what, std::ostream *stream) {
    *stream << what.name;
}

class evict_test : public testing::TestWithParam<evict_case> {
protected:
    evict_test() {
        private_copies::least_a_pause = 512;
        private_copies::piece_pages_min = 16;
        options = files.options();
        options.memory_bytes = bound_bytes;
        options.tracking = GetParam().tracking;
    }
    ~evict_test() override {
        EXPECT_OK(ty_discard(heap));
        private_copies::least_a_pause = least;
        private_copies::piece_pages_min = piece;
    }
    void open() { ASSERT_OK(ty_open(heap_path, &options, &heap, &report)); }

    // A heap of so many blocks, whose memory is what the case says.
    void fill(size_t count) {
        open();
        for (size_t i = 0; i < count; ++i) {
            auto *block = static_cast<char *>(ty_alloc(heap, evicted_bytes));
            ASSERT_NE(nullptr, block) << ty_error_text();
            memset(block, int(i), evicted_bytes);
            blocks.push_back(block);
        }
        if (GetParam().reopened) {
            ASSERT_OK(ty_close(heap));
            open();
            rewrite(0);
        }
    }
    void rewrite(int value) {
        for (size_t i = 0; i < blocks.size(); ++i)
            memset(blocks[i], int(i) + value, evicted_bytes);
    }
    void expect_value(int value) {
        for (size_t i = 0; i < blocks.size(); ++i)
            ASSERT_EQ(std::string(evicted_bytes, char(int(i) + value)), std::string(blocks[i], evicted_bytes)) << i;
    }
    size_t private_in_blocks() const {
        size_t count = 0;
        for (char *block : blocks)
            count += private_pages(block, evicted_bytes);
        return count;
    }
    uint64_t given_back() const { return snapshot_stats_of(heap).pages_evicted; }
    uint64_t dirty() const {
        uint64_t pages = 0;
        EXPECT_OK(ty_dirty_count(heap, &pages));
        return pages;
    }

    const uint64_t least = private_copies::least_a_pause;
    const uint64_t piece = private_copies::piece_pages_min;
    disk files;
    ty_open_options options;
    ty_heap *heap = nullptr;
    ty_report report{};
    std::vector<char *> blocks;
};

TEST_P(evict_test, copies_stay_below_the_bound) {
    fill(256); // 16 MB
    for (int round = 0; round < 20; ++round)
        ASSERT_OK(ty_snapshot(heap));
    EXPECT_LE(private_in_blocks() * 4096, bound_bytes);
    EXPECT_GT(given_back(), 3000u);
    expect_value(0);
    for (int round = 1; round < 4; ++round) {
        rewrite(round);
        ASSERT_OK(ty_snapshot(heap));
        expect_value(round);
    }
    ASSERT_OK(ty_discard(heap));
    open();
    expect_value(3);
    expect_sound(heap);
}

TEST_P(evict_test, reading_what_was_given_back_makes_nothing_dirty) {
    if (options.tracking == TY_TRACK_SIGNAL)
        GTEST_SKIP() << "the pages are protected, whatever is in them";
    fill(64);
    for (int round = 0; round < 10; ++round)
        ASSERT_OK(ty_snapshot(heap));
    EXPECT_GT(given_back(), 0u);
    ASSERT_OK(ty_snapshot(heap)); // what was moved is reported once more
    expect_value(0);
    EXPECT_EQ(0u, dirty());
}

TEST_P(evict_test, what_is_written_meanwhile_stays) {
    fill(64);
    std::mt19937_64 random(7);
    content last = content_of(heap);
    for (int round = 0; round < 60; ++round) {
        for (int i = 0; i < 20; ++i) {
            char *block = blocks[random() % blocks.size()];
            memset(block + random() % (evicted_bytes - 64), int(random()), 64);
        }
        if (round % 4 == 1) {
            ASSERT_OK(ty_write_back_early(heap, random() % 2 ? 0 : 8));
        }
        if (round % 4 == 3) {
            ASSERT_OK(ty_run_background_work(heap));
        }
        content before = content_of(heap);
        uint64_t epoch = 0;
        ASSERT_OK(ty_snapshot_start(heap, &epoch));
        memset(blocks[random() % blocks.size()] + 100, int(random()), 64); // after the pause
        content after = content_of(heap);
        ASSERT_OK(ty_snapshot_wait(heap, epoch));
        ASSERT_EQ(after, content_of(heap)) << "round " << round;
        last = before;
        if (round % 10 == 9) {
            ASSERT_OK(ty_discard(heap));
            open();
            ASSERT_EQ(last, content_of(heap)) << "round " << round;
        }
    }
}

// The pages of an open batch are clean, and the image does not hold them.
TEST_P(evict_test, what_is_written_back_early_stays) {
    fill(64);
    for (int round = 0; round < 10; ++round)
        ASSERT_OK(ty_snapshot(heap));
    rewrite(5);
    ASSERT_OK(ty_write_back_early(heap, 0));
    if (options.tracking != TY_TRACK_CONTENT) {
        EXPECT_EQ(0u, dirty());
    }
    uint64_t epoch = 0;
    ASSERT_OK(ty_snapshot_start(heap, &epoch));
    expect_value(5);
    ASSERT_OK(ty_snapshot_wait(heap, epoch));
    expect_value(5);
}

// A snapshot among threads that store gives nothing back, whatever memory is left; once they stand still it goes.
TEST_P(evict_test, nothing_goes_while_others_store) {
    fill(128);
    if (!image_allows_fuzzy(heap))
        GTEST_SKIP() << "racing writes are not seen";
    fuzzy_calls calls;
    for (int round = 1; round < 6; ++round) {
        rewrite(round);
        ASSERT_OK(fuzzy_snapshot(heap, calls));
        ASSERT_OK(ty_run_background_work(heap));
        EXPECT_EQ(0u, given_back());
    }
    ASSERT_OK(image_evict_copies(heap));
    EXPECT_GT(given_back(), 0u);
    expect_value(5);
    ASSERT_OK(fuzzy_snapshot(heap, calls));
    ASSERT_OK(ty_discard(heap));
    open();
    expect_value(5);
}

// While the image cannot take them, pages of a durable snapshot keep their copies.
TEST_P(evict_test, what_waits_to_be_checkpointed_stays) {
    options.journal_limit_bytes = size_t{64} << 20;
    fill(64);
    ASSERT_OK(ty_snapshot(heap));
    rewrite(6);
    uint64_t epoch = 0;
    ASSERT_OK(ty_snapshot_start(heap, &epoch));
    ASSERT_OK(ty_snapshot_wait(heap, epoch));
    uint64_t before = given_back();
    os::sim_set_fault(files.get(), {os::sim_op_read, 0, true, TY_E_IO}); // of the journal
    for (int round = 0; round < 3; ++round) {
        memset(blocks[0], round, evicted_bytes);
        ASSERT_OK(ty_snapshot(heap));
    }
    os::sim_set_fault(files.get(), {});
    EXPECT_EQ(before, given_back());
    memset(blocks[0], 6, evicted_bytes);
    expect_value(6);
}

// What goes in a pause is not used up by pages that were never written since the open.
TEST_P(evict_test, only_pages_with_copies_are_looked_for) {
    if (!GetParam().reopened)
        GTEST_SKIP() << "all pages were written";
    fill(512);
    ASSERT_OK(ty_close(heap));
    open();
    for (int round = 1; round < 4; ++round) {
        for (size_t i = blocks.size() - 32; i < blocks.size(); ++i)
            memset(blocks[i], round, evicted_bytes);
        ASSERT_OK(ty_snapshot(heap));
        EXPECT_LE(private_in_blocks() * 4096, bound_bytes + 32 * evicted_bytes);
    }
    ASSERT_OK(ty_snapshot(heap));
    EXPECT_LE(private_in_blocks() * 4096, bound_bytes);
}

TEST_P(evict_test, an_open_checkpoints_what_would_not_fit) {
    fill(64);                 // 4 MB, four times the bound
    options.memory_bytes = 0; // so that the snapshots wait
    ASSERT_OK(ty_close(heap));
    open();
    rewrite(1);
    ASSERT_OK(ty_snapshot(heap));
    rewrite(2);
    ASSERT_OK(ty_snapshot(heap));
    rewrite(3); // in no snapshot
    ASSERT_OK(ty_discard(heap));
    options.memory_bytes = bound_bytes;
    open();
    EXPECT_EQ(2u, report.batches_restored);
    EXPECT_GE(report.pages_restored, 2 * blocks.size() * evicted_bytes / 4096);
    EXPECT_EQ(0u, private_in_blocks());
    expect_value(2);
    expect_sound(heap);
    ASSERT_OK(ty_close(heap));
    open();
    expect_value(2);
}

INSTANTIATE_TEST_SUITE_P(kinds, evict_test,
                         testing::Values(evict_case{"kernel_new", TY_TRACK_AUTOMATIC, false},
                                         evict_case{"kernel_file", TY_TRACK_AUTOMATIC, true},
                                         evict_case{"signal_new", TY_TRACK_SIGNAL, false},
                                         evict_case{"signal_file", TY_TRACK_SIGNAL, true},
                                         evict_case{"content_new", TY_TRACK_CONTENT, false},
                                         evict_case{"content_file", TY_TRACK_CONTENT, true}),
                         [](const auto &of) { return of.param.name; });

// A heap that fits is left alone.
TEST(give_back, heap_that_fits_keeps_its_copies) {
    disk files;
    ty_open_options options = files.options();
    ty_heap *heap = nullptr;
    ASSERT_OK(ty_open(heap_path, &options, &heap, nullptr));
    scribbler(1).change(heap, 500);
    for (int round = 0; round < 5; ++round)
        ASSERT_OK(ty_snapshot(heap));
    const ty_snapshot_stats stats = snapshot_stats_of(heap);
    EXPECT_EQ(0u, stats.pages_evicted);
    ASSERT_OK(ty_close(heap));
}

// A quarter of what the machine or the control group has (memory_room_test), or of the bound.
TEST(give_back, staging_and_journal_follow_the_memory_that_there_is) {
    constexpr size_t memory_bytes = size_t{256} << 20;
    for (size_t bound : {size_t{0}, memory_bytes / 4, 2 * memory_bytes}) {
        disk files;
        ty_open_options options = files.options();
        options.staging_bytes = 0;
        options.memory_bytes = bound;
        ty_heap *heap = nullptr;
        private_copies::memory_bytes = memory_bytes;
        const ty_status status = ty_open(heap_path, &options, &heap, nullptr);
        private_copies::memory_bytes = 0;
        ASSERT_OK(status);
        const size_t quarter = (bound ? std::min(bound, memory_bytes) : memory_bytes) / 4;
        EXPECT_EQ(quarter / staging_slot_bytes, image_of(heap)->writer.ring.slot_count);
        EXPECT_EQ(quarter, image_of(heap)->journal_limit_bytes);
        ASSERT_OK(ty_discard(heap));
    }
}

} // namespace
