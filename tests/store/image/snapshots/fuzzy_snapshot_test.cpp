// Goal: a snapshot that is taken while others store holds what was stored before it, leaves what is stored later dirty,
// has the tables as they were in its short pause, and counts only once the layer above says that its log is durable.
// Method: all stores are made within the snapshot's own callbacks, so each is at a known point of it; then the power
// fails on a simulated disk, and what an open finds is compared.
#include "fuzzy_calls.hpp"
#include "src/os/calls/syscalls.hpp"
#include "tests/stats.hpp"

using namespace taiyen;
using namespace taiyen::test;

namespace {

constexpr size_t large_array_pages = 600; // more than two chunks
constexpr size_t large_array_words = large_array_pages * page_bytes / sizeof(uint64_t);
constexpr size_t stride = page_bytes / sizeof(uint64_t); // a word a page

class fuzzy_snapshot_test : public testing::TestWithParam<ty_tracking> {
protected:
    void SetUp() override {
        options = files.options();
        options.tracking = GetParam();
        ty_status status = ty_open(heap_path, &options, &heap, nullptr);
        if (status == TY_E_UNSUPPORTED)
            GTEST_SKIP() << ty_error_text();
        ASSERT_OK(status);
        words = static_cast<uint64_t *>(ty_alloc_zeroed(heap, large_array_words * sizeof(uint64_t)));
        note = static_cast<uint64_t *>(ty_alloc_zeroed(heap, 2 * page_bytes));
        ASSERT_NE(nullptr, words);
        ASSERT_NE(nullptr, note);
        ASSERT_OK(ty_root_set(heap, "words", words));
        ASSERT_OK(ty_root_set(heap, "note", note));
        store(1);
        ASSERT_OK(ty_snapshot(heap));
    }
    void TearDown() override {
        if (heap) {
            EXPECT_OK(ty_discard(heap));
        }
    }

    // Some words of each page: the first, and one of another store.
    void store(uint64_t value, size_t offset = 0) {
        for (size_t i = offset; i < large_array_words; i += stride)
            word_at(words, i).store(value, std::memory_order_relaxed);
    }
    void expect_words(uint64_t value, size_t offset = 0) {
        for (size_t i = offset; i < large_array_words; i += stride)
            ASSERT_EQ(value, words[i]) << "page " << i / stride;
    }
    uint64_t dirty() const {
        uint64_t pages = 0;
        EXPECT_OK(ty_dirty_count(heap, &pages));
        return pages;
    }
    uint64_t pages_written() const { return snapshot_stats_of(heap).pages; }
    // The power fails now: the heap is what an open finds. keep_all: all that was written until now reached the disk.
    void cut(os::sim_cut how) {
        os::sim_disk *left = files.cut(how);
        ASSERT_OK(ty_discard(heap));
        heap = nullptr;
        after = std::make_unique<disk>(left);
        ty_open_options again = after->options();
        again.tracking = GetParam();
        again.limit_bytes = 0;
        ASSERT_OK(ty_open(heap_path, &again, &heap, nullptr));
        expect_sound(heap);
        words = static_cast<uint64_t *>(ty_root(heap, "words"));
        note = static_cast<uint64_t *>(ty_root(heap, "note"));
        ASSERT_NE(nullptr, words);
        ASSERT_NE(nullptr, note);
    }

    disk files;
    std::unique_ptr<disk> after; // outlives the heap on it
    ty_open_options options;
    ty_heap *heap = nullptr;
    uint64_t *words = nullptr;
    uint64_t *note = nullptr;
    fuzzy_calls calls;
};

INSTANTIATE_TEST_SUITE_P(trackers, fuzzy_snapshot_test, testing::Values(TY_TRACK_KERNEL, TY_TRACK_SIGNAL),
                         [](const auto &what) { return what.param == TY_TRACK_KERNEL ? "kernel" : "signal"; });

// I17. Blocks are copied after the pause: what is stored right after it is there.
TEST_P(fuzzy_snapshot_test, blocks_are_copied_after_the_pause) {
    store(2);
    calls.resumed = [&] { store(3, 1); };
    ASSERT_OK(fuzzy_snapshot(heap, calls));
    EXPECT_EQ(1, calls.tables_calls);
    EXPECT_EQ(1, calls.resumed_calls);
    EXPECT_EQ(1, calls.make_log_durable_calls);
    cut(os::sim_cut::drop_all);
    expect_words(2);
    expect_words(3, 1);
}

// I17. What is stored once everything was copied is not in this batch, and it is in the next one.
TEST_P(fuzzy_snapshot_test, what_is_stored_later_is_in_the_next_one) {
    store(2);
    calls.make_log_durable = [&] {
        store(3, 1);
        EXPECT_OK(ty_root_set(heap, "later", words));
        return TY_OK;
    };
    ASSERT_OK(fuzzy_snapshot(heap, calls));
    disk first(files.cut(os::sim_cut::drop_all));
    calls.make_log_durable = [] { return TY_OK; };
    ASSERT_OK(fuzzy_snapshot(heap, calls));
    cut(os::sim_cut::drop_all);
    expect_words(2);
    expect_words(3, 1);
    EXPECT_EQ(words, ty_root(heap, "later"));
    ASSERT_OK(ty_discard(heap));

    ty_open_options again = first.options();
    ASSERT_OK(ty_open(heap_path, &again, &heap, nullptr));
    expect_words(2);
    expect_words(0, 1);
    EXPECT_EQ(nullptr, ty_root(heap, "later"));
    after = nullptr;
    ASSERT_OK(ty_discard(heap));
    heap = nullptr;
}

// I18. Tables, and what tables() stored, are those of the pause, whatever becomes of them before all is written.
TEST_P(fuzzy_snapshot_test, tables_are_those_of_the_pause) {
    std::vector<void *> blocks;
    content before = content_of(heap);
    store(2);
    calls.tables = [&](os::page_set &stored) {
        *note = 7;
        stored.insert(page_of(heap, note));
        return TY_OK;
    };
    auto change = [&] {
        *note = 8;
        for (size_t i = 0; i < 300; ++i)
            blocks.push_back(ty_alloc(heap, i % 2 ? 3 * page_bytes : 100));
        EXPECT_OK(ty_root_set(heap, "later", blocks[0]));
    };
    calls.resumed = change;
    ASSERT_OK(fuzzy_snapshot(heap, calls));
    disk first(files.cut(os::sim_cut::drop_all));
    calls.resumed = [] {};
    calls.tables = [](os::page_set &) { return TY_OK; };
    ASSERT_OK(fuzzy_snapshot(heap, calls));
    size_t live = content_of(heap).size();
    cut(os::sim_cut::drop_all);
    EXPECT_EQ(8u, *note);
    EXPECT_EQ(blocks[0], ty_root(heap, "later"));
    EXPECT_EQ(live, content_of(heap).size());
    ASSERT_OK(ty_discard(heap));

    ty_open_options again = first.options();
    ASSERT_OK(ty_open(heap_path, &again, &heap, nullptr));
    expect_sound(heap);
    EXPECT_EQ(7u, *note);
    EXPECT_EQ(nullptr, ty_root(heap, "later"));
    EXPECT_EQ(before.size(), content_of(heap).size());
    ASSERT_OK(ty_discard(heap));
    heap = nullptr;
}

// I18. What was copied ahead of the pause is copied again where it was stored to since.
TEST_P(fuzzy_snapshot_test, tables_that_change_before_the_pause) {
    std::vector<void *> blocks;
    auto allocate = [&] {
        for (size_t i = 0; i < 300; ++i)
            blocks.push_back(ty_alloc(heap, i % 2 ? 3 * page_bytes : 100));
    };
    allocate();
    calls.approach = [&] {
        EXPECT_OK(ty_root_set(heap, "earlier", blocks[1]));
        for (size_t i = 0; i < 300; i += 3)
            EXPECT_OK(ty_free(blocks[i]));
        allocate();
    };
    ASSERT_OK(fuzzy_snapshot(heap, calls));
    const auto live = content_of(heap);
    const uint64_t epoch = ty_heap_epoch(heap);
    calls = {};
    ASSERT_OK(fuzzy_snapshot(heap, calls)); // nothing is left for another one
    EXPECT_EQ(epoch, ty_heap_epoch(heap));
    cut(os::sim_cut::drop_all);
    expect_sound(heap);
    EXPECT_EQ(blocks[1], ty_root(heap, "earlier"));
    EXPECT_EQ(live, content_of(heap));
}

// I17. A page that tables() stored into is copied in the pause and no more; what other threads store into it meanwhile
// is in the next batch.
TEST_P(fuzzy_snapshot_test, stored_pages_stay_dirty_for_others) {
    calls.tables = [&](os::page_set &stored) {
        *note = 7;
        stored.insert(page_of(heap, note));
        return TY_OK;
    };
    calls.resumed = [&] { word_at(note, 9).store(5, std::memory_order_relaxed); };
    ASSERT_OK(fuzzy_snapshot(heap, calls));
    calls = {};
    ASSERT_OK(fuzzy_snapshot(heap, calls));
    cut(os::sim_cut::drop_all);
    EXPECT_EQ(7u, note[0]);
    EXPECT_EQ(5u, note[9]);
}

// I19.
TEST_P(fuzzy_snapshot_test, the_batch_is_not_complete_before_the_log_is_durable) {
    store(2);
    std::unique_ptr<disk> before_durable;
    uint64_t epoch = ty_heap_epoch(heap);
    calls.make_log_durable = [&] {
        write_all_there_is(heap);
        before_durable = std::make_unique<disk>(files.cut(os::sim_cut::keep_all));
        EXPECT_EQ(epoch, ty_heap_epoch(heap));
        return TY_OK;
    };
    ASSERT_OK(fuzzy_snapshot(heap, calls));
    ASSERT_NE(nullptr, before_durable);
    ASSERT_OK(ty_discard(heap));
    ty_open_options again = before_durable->options();
    ASSERT_OK(ty_open(heap_path, &again, &heap, nullptr));
    EXPECT_EQ(epoch, ty_heap_epoch(heap));
    expect_words(1);
    ASSERT_OK(ty_discard(heap));
    heap = nullptr;
}

// I4, I19. A log that fails, in the pause or at the end: nothing counts, and all stays dirty.
TEST_P(fuzzy_snapshot_test, a_failure_of_the_layer_fails_the_snapshot) {
    store(2);
    EXPECT_OK(ty_root_set(heap, "later", words));
    uint64_t before = dirty(), epoch = ty_heap_epoch(heap);
    calls.tables = [](os::page_set &) { return refuse("tables for a test"); };
    EXPECT_EQ(TY_E_IO, fuzzy_snapshot(heap, calls));
    EXPECT_NE(nullptr, strstr(ty_error_text(), "tables for a test"));
    EXPECT_EQ(1, calls.resumed_calls);
    EXPECT_EQ(0, calls.make_log_durable_calls);
    EXPECT_EQ(before, dirty());
    calls.tables = [](os::page_set &) { return TY_OK; };
    calls.make_log_durable = [&] {
        write_all_there_is(heap);
        return refuse("make a log durable for a test");
    };
    EXPECT_EQ(TY_E_IO, fuzzy_snapshot(heap, calls));
    EXPECT_NE(nullptr, strstr(ty_error_text(), "make a log durable for a test"));
    EXPECT_EQ(before, dirty());
    EXPECT_EQ(epoch, ty_heap_epoch(heap));
    EXPECT_EQ(TY_E_IO, image_snapshot_wait(heap, epoch + 1));
    disk failed(files.cut(os::sim_cut::keep_all));
    calls.make_log_durable = [] { return TY_OK; };
    EXPECT_OK(fuzzy_snapshot(heap, calls));
    cut(os::sim_cut::drop_all);
    expect_words(2);
    EXPECT_EQ(words, ty_root(heap, "later"));
    ASSERT_OK(ty_discard(heap));

    ty_open_options again = failed.options();
    ASSERT_OK(ty_open(heap_path, &again, &heap, nullptr));
    EXPECT_EQ(epoch, ty_heap_epoch(heap));
    expect_words(1);
    ASSERT_OK(ty_discard(heap));
    heap = nullptr;
}

// What was written back early and stored since is there as it is when the snapshot copies; tables as they are in the
// pause.
TEST_P(fuzzy_snapshot_test, after_an_early_write_back) {
    store(2);
    EXPECT_OK(ty_root_set(heap, "early", words));
    ASSERT_OK(ty_write_back_early(heap, 0));
    store(3, 1);
    EXPECT_OK(ty_root_set(heap, "middle", words));
    calls.resumed = [&] { EXPECT_OK(ty_root_set(heap, "later", words)); };
    ASSERT_OK(fuzzy_snapshot(heap, calls));
    cut(os::sim_cut::drop_all);
    expect_words(2);
    expect_words(3, 1);
    EXPECT_NE(nullptr, ty_root(heap, "early"));
    EXPECT_NE(nullptr, ty_root(heap, "middle"));
    EXPECT_EQ(nullptr, ty_root(heap, "later"));
}

// Pages of free runs are not written, and are dirty once they are in use again.
TEST_P(fuzzy_snapshot_test, free_runs_are_left_out) {
    constexpr size_t bytes = 500 * page_bytes;
    ASSERT_OK(fuzzy_snapshot(heap, calls));
    auto *block = static_cast<char *>(ty_alloc(heap, bytes));
    ASSERT_NE(nullptr, block);
    memset(block, 0x55, bytes);
    void *after = ty_alloc(heap, 100 * page_bytes); // else the run would be above what was ever used
    ASSERT_NE(nullptr, after);
    ASSERT_OK(ty_free(block));
    uint64_t before = pages_written();
    ASSERT_OK(fuzzy_snapshot(heap, calls));
    EXPECT_LT(pages_written() - before, 500u);
    ASSERT_OK(ty_alloc_at(heap, block, bytes));
    ASSERT_OK(ty_root_set(heap, "block", block));
    ASSERT_OK(fuzzy_snapshot(heap, calls));
    std::string there(block, bytes);
    cut(os::sim_cut::drop_all);
    ASSERT_EQ(block, ty_root(heap, "block"));
    EXPECT_EQ(there, std::string(block, bytes));
}

// The redo point is read once tables() is over; another redo point alone is written, too, and nothing at all is not.
TEST_P(fuzzy_snapshot_test, tables_may_set_the_redo_point) {
    log_positions redo_point{};
    calls.tables = [&](os::page_set &) {
        redo_point = {5, 1, {{4096, 3, 5}}};
        return TY_OK;
    };
    ASSERT_OK(fuzzy_snapshot(heap, calls, &redo_point));
    EXPECT_EQ(1, calls.make_log_durable_calls);
    EXPECT_EQ(5u, image_of(heap)->durable_redo_point.lsn);
    uint64_t epoch = ty_heap_epoch(heap);
    ASSERT_OK(fuzzy_snapshot(heap, calls, &redo_point));
    EXPECT_EQ(epoch, ty_heap_epoch(heap));
    EXPECT_EQ(1, calls.make_log_durable_calls);
}

// Where writes that race with a collect are not seen, nothing is called.
TEST(running, is_refused_where_racing_writes_are_not_seen) {
    for (ty_kind kind : {TY_SNAPSHOT, TY_ARCHIVE}) {
        disk files;
        ty_open_options options = files.options();
        options.kind = kind;
        if (kind == TY_SNAPSHOT)
            options.tracking = TY_TRACK_CONTENT;
        ty_heap *heap = nullptr;
        ASSERT_OK(ty_open(heap_path, &options, &heap, nullptr));
        fuzzy_calls calls;
        EXPECT_FALSE(image_allows_fuzzy(heap));
        EXPECT_EQ(TY_E_UNSUPPORTED, fuzzy_snapshot(heap, calls));
        EXPECT_EQ(0, calls.tables_calls + calls.resumed_calls + calls.make_log_durable_calls);
        ASSERT_OK(ty_close(heap));
    }
}

TEST_P(fuzzy_snapshot_test, can_run_is_reported) {
    EXPECT_TRUE(image_allows_fuzzy(heap));
    ty_heap *of_nobody = nullptr;
    ASSERT_OK(ty_heap_create(nullptr, &of_nobody));
    EXPECT_FALSE(image_allows_fuzzy(of_nobody));
    ASSERT_OK(ty_heap_destroy(of_nobody));
}

// Whatever operation of the disk fails: the call says so, and what it did not write is written by the next one.
TEST_P(fuzzy_snapshot_test, a_disk_that_fails) {
    uint64_t failures = 0;
    for (uint64_t number = 0; number < 8; ++number)
        for (uint32_t operation : {os::sim_op_write, os::sim_op_flush, os::sim_op_allocate}) {
            uint64_t value = 10 + number;
            store(value, operation);
            EXPECT_OK(ty_root_set(heap, number % 2 ? "odd" : "even", words + number));
            os::sim_set_fault(files.get(), {operation, number});
            calls.resumed = [&] { store(value, 100); };
            ty_status status = fuzzy_snapshot(heap, calls);
            failures += status != TY_OK;
            os::sim_set_fault(files.get(), {});
            if (status) {
                EXPECT_OK(fuzzy_snapshot(heap, calls));
            }
        }
    EXPECT_GT(failures, 4u);
    cut(os::sim_cut::drop_all);
    for (uint32_t operation : {os::sim_op_write, os::sim_op_flush, os::sim_op_allocate})
        expect_words(17, operation);
    EXPECT_EQ(words + 7, ty_root(heap, "odd"));
    EXPECT_EQ(words + 6, ty_root(heap, "even"));
}

// Whatever call of the system fails, in the pause or after it: the snapshot says so, and the next one has everything.
TEST_P(fuzzy_snapshot_test, a_system_that_refuses) {
    static os::sys::call refused;
    static int until;
    int failures = 0;
    uint64_t value = 1;
    for (os::sys::call which : {os::sys::call::ioctl, os::sys::call::mprotect, os::sys::call::mmap})
        for (int number = 0; number < 6; ++number) {
            store(++value);
            EXPECT_OK(ty_root_set(heap, "turn", words + value));
            calls.tables = [&](os::page_set &stored) {
                *note = value;
                stored.insert(page_of(heap, note));
                refused = which;
                until = number;
                os::sys::hook = [](os::sys::call made) { return made == refused && until-- == 0 ? ENOMEM : 0; };
                return TY_OK;
            };
            calls.make_log_durable = [] {
                os::sys::hook = nullptr;
                return TY_OK;
            };
            ty_status status = fuzzy_snapshot(heap, calls);
            os::sys::hook = nullptr;
            if (status) {
                ++failures;
                EXPECT_EQ(TY_E_MEMORY, status) << ty_error_text();
                calls = {};
                EXPECT_OK(fuzzy_snapshot(heap, calls));
            }
            disk left(files.cut(os::sim_cut::drop_all));
            uint64_t epoch = ty_heap_epoch(heap);
            uint64_t *there = note;
            ASSERT_OK(ty_discard(heap));
            ty_open_options again = left.options();
            ASSERT_OK(ty_open(heap_path, &again, &heap, nullptr));
            EXPECT_EQ(epoch, ty_heap_epoch(heap));
            EXPECT_EQ(value, *there);
            EXPECT_EQ(words + value, ty_root(heap, "turn"));
            expect_words(value);
            ASSERT_OK(ty_discard(heap));
            ASSERT_OK(ty_open(heap_path, &options, &heap, nullptr));
        }
    EXPECT_GT(failures, 1);
}

// Who looks for dirty pages, but for a snapshot of a heap that stands still, does not hold up who allocates meanwhile.
TEST_P(fuzzy_snapshot_test, nobody_waits_while_dirty_pages_are_looked_for) {
    static ty_heap *looked_at;
    static int looks, paused_looks;
    looked_at = heap;
    looks = paused_looks = 0;
    store(2);
    os::sys::hook = [](os::sys::call which) {
        if (which == os::sys::call::ioctl || which == os::sys::call::mprotect) {
            ++looks;
            paused_looks += is_paused(looked_at);
        }
        return 0;
    };
    uint64_t pages = dirty();
    ty_status written_early = ty_write_back_early(heap, 0);
    os::sys::hook = nullptr;
    EXPECT_OK(written_early);
    EXPECT_GE(pages, large_array_pages);
    EXPECT_GT(looks, 0);
    EXPECT_EQ(0, paused_looks);
}

// A snapshot that is durable, and whose batch is not checkpointed, while all before it are.
class running_journal : public fuzzy_snapshot_test {
protected:
    void store_pages(size_t count) {
        for (size_t i = 0; i < count; ++i)
            word_at(words, i * stride).fetch_add(1, std::memory_order_relaxed);
    }
    void expect_batches_apart() {
        image &im = *image_of(heap);
        os::lock_guard guard(im.work);
        for (const batch *one = im.waiting.first; one; one = one->next)
            for (const batch *other = one->next; other; other = other->next)
                EXPECT_TRUE(one->end <= other->start || other->end <= one->start)
                    << one->start << " to " << one->end << ", " << other->start << " to " << other->end;
    }
    void only_the_last_is_not_checkpointed(size_t pages) {
        store_pages(pages);
        image_fuzzy_callbacks running = calls.running();
        uint64_t epoch = 0;
        ASSERT_OK(image_snapshot_start(heap, nullptr, &running, &epoch));
        ASSERT_OK(checkpoint_batches(*image_of(heap)));
        ASSERT_OK(image_snapshot_wait(heap, epoch));
    }
};

INSTANTIATE_TEST_SUITE_P(trackers, running_journal, testing::Values(TY_TRACK_KERNEL),
                         [](const auto &) { return "kernel"; });

// I1. A batch whose pages and chunks fit before one that is not checkpointed is written there, and one that is a
// chunk's header longer is not.
TEST_P(running_journal, a_batch_goes_where_it_fits) {
    constexpr size_t front_pages = 250;
    bool fitted = false, did_not_fit = false;
    for (size_t pages = front_pages - 6; pages < front_pages + 3; ++pages) {
        ASSERT_OK(ty_run_background_work(heap));
        store_pages(front_pages);
        ASSERT_OK(ty_snapshot(heap));
        only_the_last_is_not_checkpointed(10);
        store_pages(pages);
        ASSERT_OK(ty_root_set(heap, "words", words)); // a page of the tables
        ASSERT_OK(fuzzy_snapshot(heap, calls));
        expect_batches_apart();
        (image_of(heap)->waiting.last->start == journal_front ? fitted : did_not_fit) = true;
    }
    EXPECT_TRUE(fitted);
    EXPECT_TRUE(did_not_fit);
    uint64_t value = words[0];
    cut(os::sim_cut::drop_all);
    EXPECT_EQ(value, words[0]);
}

// One batch is always left to be checkpointed when the next one starts: the journal's space is used again all the same.
TEST_P(running_journal, does_not_grow_with_snapshots_that_follow_one_another) {
    uint64_t furthest = 0;
    for (int round = 0; round < 40; ++round) {
        only_the_last_is_not_checkpointed(100);
        expect_batches_apart();
        furthest = std::max(furthest, image_of(heap)->journal_end);
    }
    EXPECT_LT(furthest, journal_front + (large_array_pages + 5 * 110) * page_bytes);
}

} // namespace
