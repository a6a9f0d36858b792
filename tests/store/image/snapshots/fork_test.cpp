// Goal: a forked child waits for no lock that a thread of the parent may have held: calls are refused, or need none.
// Method: the process forks while another thread holds all locks of the heap's files. A child that takes one waits for
// ever; an alarm ends it.
#include "../support.hpp"
#include "src/store/image/snapshots/image_runtime.hpp"
#include "tests/os/temporary_folder.hpp"

#include <latch>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace taiyen;
using namespace taiyen::test;

namespace {

int refused(ty_status status) {
    return status == TY_E_FORKED ? 0 : 1;
}

// What differs from what must be, in the child: a bit each.
int child_calls(ty_heap *heap) {
    uint64_t number = 0;
    ty_snapshot_stats stats{};
    stats.struct_size = sizeof stats;
    int wrong = refused(ty_snapshot(heap));
    wrong |= refused(ty_snapshot_wait(heap, 1)) << 1;
    wrong |= refused(ty_write_back_early(heap, 0)) << 2;
    wrong |= refused(ty_run_background_work(heap)) << 3;
    wrong |= refused(ty_background_work_status(heap)) << 4;
    wrong |= refused(ty_get_snapshot_stats(heap, &stats)) << 5;
    wrong |= refused(ty_dirty_count(heap, &number)) << 6;
    wrong |= refused(ty_dirty_bitmap(heap, 0, 64, &number)) << 7;
    wrong |= refused(ty_heap_purge(heap, nullptr)) << 8;
    wrong |= refused(ty_close(heap)) << 9;
    wrong |= (ty_heap_epoch(heap) == 1 && ty_heap_kind(heap) == TY_SNAPSHOT ? 0 : 1) << 10;
    return wrong | (ty_discard(heap) == TY_OK ? 0 : 1) << 11;
}

TEST(fork_test, a_child_takes_no_lock_of_the_parents) {
    temporary_folder folder;
    ty_open_options options = TY_OPEN_OPTIONS_INIT;
    options.limit_bytes = small_limit;
    ty_heap *heap = nullptr;
    ASSERT_OK(ty_open(folder.file("heap.ty").c_str(), &options, &heap, nullptr));
    ASSERT_NE(nullptr, ty_alloc(heap, 64));
    ASSERT_OK(ty_snapshot(heap));
    ASSERT_EQ(1u, ty_heap_epoch(heap));
    int ends[2];
    ASSERT_EQ(0, pipe(ends));
    image &im = *image_of(heap);
    std::latch held(1), forked(1);
    std::thread holder([&] {
        os::lock_guard control(im.control);
        os::lock_guard work(im.work);
        held.count_down();
        forked.wait();
    });
    held.wait();
    pid_t child = fork();
    if (child == 0) {
        alarm(60);
        int wrong = child_calls(heap);
        _exit(write(ends[1], &wrong, sizeof wrong) == sizeof wrong ? 0 : 1);
    }
    forked.count_down();
    holder.join();
    close(ends[1]);
    int wrong = -1, status = -1;
    EXPECT_EQ(ssize_t{sizeof wrong}, read(ends[0], &wrong, sizeof wrong)) << "it waits for a lock";
    close(ends[0]);
    ASSERT_EQ(child, waitpid(child, &status, 0));
    EXPECT_EQ(0, status);
    EXPECT_EQ(0, wrong);
    ASSERT_OK(ty_close(heap));
}

// Its memory is the file: what the child did there would be done to the parent's heap.
TEST(fork_test, a_child_reads_its_parents_archive_and_changes_nothing) {
    temporary_folder folder;
    ty_open_options options = TY_OPEN_OPTIONS_INIT;
    options.limit_bytes = small_limit;
    options.kind = TY_ARCHIVE;
    ty_heap *heap = nullptr;
    ASSERT_OK(ty_open(folder.file("heap.ty").c_str(), &options, &heap, nullptr));
    auto *block = static_cast<char *>(ty_alloc(heap, 64));
    ASSERT_NE(nullptr, block);
    block[0] = 'x';
    ASSERT_OK(ty_root_set(heap, "block", block));
    const content before = content_of(heap);
    pid_t child = fork();
    if (child == 0) {
        ty_error error;
        int wrong = ty_alloc(heap, 64) == nullptr && (ty_error_detail(&error), error.status == TY_E_FORKED) ? 0 : 1;
        wrong |= refused(ty_free(block)) << 1;
        wrong |= refused(ty_root_set(heap, "block", nullptr)) << 2;
        wrong |= (ty_resize(block, 100'000) == nullptr ? 0 : 1) << 3;
        wrong |= (ty_root(heap, "block") == block && block[0] == 'x' ? 0 : 1) << 4;
        wrong |= refused(ty_snapshot(heap)) << 5;
        wrong |= (ty_discard(heap) == TY_OK ? 0 : 1) << 6;
        _exit(wrong);
    }
    int status = -1;
    ASSERT_EQ(child, waitpid(child, &status, 0));
    EXPECT_EQ(0, status);
    expect_sound(heap);
    EXPECT_EQ(before, content_of(heap));
    EXPECT_NE(nullptr, ty_alloc(heap, 64));
    ASSERT_OK(ty_close(heap));
}

} // namespace
