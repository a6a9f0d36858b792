// Goal: whatever operation of the storage fails, once or for ever, the call says so, the heap stays usable, the last
// acknowledged snapshot stays restorable, and once the fault is gone everything works again. Method: the n-th operation
// of each kind fails during a workload, for every n.
#include "../support.hpp"

#include <algorithm>

using namespace taiyen;
using namespace taiyen::test;

namespace {

struct outcome {
    uint64_t failures = 0;
    content acknowledged;
    std::vector<content> tried; // since then, in vain: one that fails may be there all the same
};

// Changes, snapshots, early write-backs and checkpoints; failures are allowed, and counted.
outcome run_workload(ty_heap *heap, scribbler &s) {
    outcome result;
    result.acknowledged = content_of(heap);
    for (int round = 0; round < 6; ++round) {
        s.change(heap, 60);
        if (round % 3 == 1 && ty_write_back_early(heap, 0))
            ++result.failures;
        s.change(heap, 20);
        result.tried.push_back(content_of(heap));
        if (ty_snapshot(heap)) {
            ++result.failures;
        } else {
            result.acknowledged = result.tried.back();
            result.tried.clear();
        }
        if (round % 2 == 1 && ty_run_background_work(heap))
            ++result.failures;
    }
    return result;
}

void check_fault(uint32_t operations, uint64_t after, bool forever, ty_status status, uint64_t *failures) {
    SCOPED_TRACE(testing::Message() << "operations " << operations << " after " << after << " forever " << forever);
    disk files;
    ty_open_options options = files.options();
    ty_heap *heap = nullptr;
    ASSERT_OK(ty_open(heap_path, &options, &heap, nullptr));
    scribbler s(after * 31 + operations);
    s.change(heap, 100);
    ASSERT_OK(ty_snapshot(heap));
    os::sim_set_fault(files.get(), {operations, after, forever, status});
    outcome result = run_workload(heap, s);
    *failures += result.failures;
    disk cut(files.cut(os::sim_cut::drop_all)); // what a power cut at this moment leaves
    os::sim_set_fault(files.get(), {});
    expect_sound(heap);
    s.change(heap, 20);
    EXPECT_OK(ty_snapshot(heap)); // tried again, it works
    EXPECT_OK(ty_run_background_work(heap));
    content last = content_of(heap);
    EXPECT_OK(ty_close(heap));
    ASSERT_OK(ty_open(heap_path, &options, &heap, nullptr));
    EXPECT_EQ(last, content_of(heap));
    ASSERT_OK(ty_close(heap));

    options = cut.options();
    ASSERT_OK(ty_open(heap_path, &options, &heap, nullptr));
    content found = content_of(heap);
    result.tried.push_back(result.acknowledged);
    EXPECT_TRUE(std::find(result.tried.begin(), result.tried.end(), found) != result.tried.end());
    ASSERT_OK(ty_close(heap));
}

TEST(faults_test, every_operation_once_and_for_ever) {
    uint64_t failures = 0;
    for (uint32_t kind : {os::sim_op_read, os::sim_op_write, os::sim_op_flush, os::sim_op_allocate})
        for (bool forever : {false, true})
            for (uint64_t after = 0; after < 12; ++after) {
                check_fault(kind, after, forever, kind == os::sim_op_allocate ? TY_E_SPACE : TY_E_IO, &failures);
                if (HasFatalFailure())
                    return;
            }
    EXPECT_GT(failures, 60u); // the faults were felt
}

TEST(faults_test, a_full_disk_is_an_error_and_nothing_is_lost) {
    disk files;
    ty_open_options options = files.options();
    ty_heap *heap = nullptr;
    ASSERT_OK(ty_open(heap_path, &options, &heap, nullptr));
    scribbler s(77);
    s.change(heap, 100);
    ASSERT_OK(ty_snapshot(heap));
    content last = content_of(heap);
    os::sim_set_capacity(files.get(), 4 << 20);
    auto *block = static_cast<char *>(ty_alloc(heap, 16 << 20));
    memset(block, 5, 16 << 20);
    EXPECT_EQ(TY_E_SPACE, ty_snapshot(heap));
    EXPECT_EQ(TY_E_SPACE, ty_close(heap)); // and it stays open
    disk cut(files.cut(os::sim_cut::drop_all));
    EXPECT_EQ(5, block[16 << 19]);
    os::sim_set_capacity(files.get(), UINT64_MAX);
    EXPECT_OK(ty_snapshot(heap));
    content now = content_of(heap);
    EXPECT_OK(ty_close(heap));
    ASSERT_OK(ty_open(heap_path, &options, &heap, nullptr));
    EXPECT_EQ(now, content_of(heap));
    ASSERT_OK(ty_close(heap));
    options = cut.options();
    ASSERT_OK(ty_open(heap_path, &options, &heap, nullptr));
    EXPECT_EQ(last, content_of(heap));
    ASSERT_OK(ty_close(heap));
}

// Opening, creating and closing under faults: a status, and afterwards the same files open.
TEST(faults_test, open_and_close) {
    uint64_t opening_failures = 0, closing_failures = 0;
    for (uint64_t after = 0; after < 60; ++after) {
        SCOPED_TRACE(after);
        disk files;
        ty_open_options options = files.options();
        ty_heap *heap = nullptr;
        os::sim_set_fault(files.get(), {os::sim_op_any, after, false, TY_E_IO});
        ty_status created = ty_open(heap_path, &options, &heap, nullptr);
        os::sim_set_fault(files.get(), {});
        if (created) {
            ASSERT_OK(ty_open(heap_path, &options, &heap, nullptr));
        }
        scribbler s(after);
        s.change(heap, 50);
        ASSERT_OK(ty_snapshot(heap));
        content last = content_of(heap);
        ASSERT_OK(ty_discard(heap));
        os::sim_set_fault(files.get(), {os::sim_op_any, after, false, TY_E_IO});
        ty_status opened = ty_open(heap_path, &options, &heap, nullptr);
        opening_failures += opened != TY_OK;
        if (!opened && ty_close(heap)) {
            closing_failures += 1;
            os::sim_set_fault(files.get(), {});
            EXPECT_EQ(last, content_of(heap)); // it stays open
            if (after % 2) {
                ASSERT_OK(ty_close(heap));
            } else {
                ASSERT_OK(ty_discard(heap));
            }
        }
        os::sim_set_fault(files.get(), {});
        ASSERT_OK(ty_open(heap_path, &options, &heap, nullptr));
        EXPECT_EQ(last, content_of(heap));
        ASSERT_OK(ty_close(heap));
    }
    EXPECT_GT(opening_failures, 5u);
    EXPECT_GT(closing_failures, 5u);
}

// The kernel takes what a failed flush covered for clean: the next flush succeeds, and covers nothing of it.
TEST(faults_test, an_archive_takes_no_snapshot_after_a_flush_that_failed) {
    uint64_t failures = 0;
    for (uint64_t after = 0; after < 6; ++after) {
        SCOPED_TRACE(after);
        disk files;
        ty_open_options options = files.options();
        options.kind = TY_ARCHIVE;
        ty_heap *heap = nullptr;
        ASSERT_OK(ty_open(heap_path, &options, &heap, nullptr));
        scribbler s(after);
        s.change(heap, 50);
        ASSERT_OK(ty_snapshot(heap));
        s.change(heap, 50);
        os::sim_set_fault(files.get(), {os::sim_op_flush | os::sim_op_map, after, false, TY_E_IO});
        const ty_status failed = ty_snapshot(heap);
        os::sim_set_fault(files.get(), {});
        if (failed) {
            failures += 1;
            EXPECT_EQ(TY_E_IO, ty_snapshot(heap)) << "a flush is believed after one that failed";
            EXPECT_EQ(TY_E_IO, ty_close(heap));
        }
        expect_sound(heap); // and can be copied
        ASSERT_OK(ty_discard(heap));
    }
    EXPECT_GE(failures, 3u); // pages, and header
}

// I15: where the storage allocates no blocks beforehand, what the heap is about to store into is written; so a full
// disk is an error of the allocation, and no SIGBUS at a store.
TEST(faults_test, an_archive_on_a_full_disk_that_allocates_nothing_beforehand) {
    disk files;
    ty_open_options options = files.options();
    options.kind = TY_ARCHIVE;
    os::sim_set_fault(files.get(), {os::sim_op_allocate, 0, true, TY_E_UNSUPPORTED});
    os::sim_set_capacity(files.get(), 0);
    ty_heap *heap = nullptr;
    EXPECT_EQ(TY_E_SPACE, ty_open(heap_path, &options, &heap, nullptr));
    os::sim_set_capacity(files.get(), UINT64_MAX);
    ASSERT_OK(ty_open(heap_path, &options, &heap, nullptr));
    const uint64_t used = os::sim_used_bytes(files.get());
    os::sim_set_capacity(files.get(), used + 300000);
    uint64_t blocks = 0;
    while (char *block = static_cast<char *>(ty_alloc(heap, 10000))) {
        memset(block, 1, 10000);
        ASSERT_LT(++blocks, 1000u);
    }
    ty_error error;
    ty_error_detail(&error);
    EXPECT_EQ(TY_E_SPACE, error.status) << ty_error_text();
    EXPECT_GT(blocks, 10u);
    EXPECT_LE(os::sim_used_bytes(files.get()), used + 300000);
    os::sim_set_capacity(files.get(), UINT64_MAX);
    ASSERT_OK(ty_snapshot(heap));
    expect_sound(heap);
    ASSERT_OK(ty_close(heap));
}

} // namespace
