// Goal: the locks of a heap's files end with the process that took them, also while a child of it lives (N5).
// Method: an owner that forks a worker, and is killed; the worker waits, with its parent's memory, on a pipe's end. A
// child that gives up its copy is a process like any other.
#include "src/os/os.hpp"
#include "tests/os/temporary_folder.hpp"
#include "tests/store/image/support.hpp"

#include <csignal>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace taiyen;
using namespace taiyen::test;

namespace {

ty_heap *open_heap(const std::string &path, ty_kind kind, ty_status *status) {
    ty_open_options options = options_of(kind);
    ty_heap *heap = nullptr;
    *status = ty_open(path.c_str(), &options, &heap, nullptr);
    return heap;
}

// Puts a block at a root, durably.
ty_status put_block(ty_heap *heap) {
    if (ty_heap_kind(heap) != TY_TRANSACTIONAL) {
        const ty_status status = ty_root_set(heap, "block", ty_alloc_zeroed(heap, 64));
        return status != TY_OK ? status : ty_snapshot(heap);
    }
    ty_txn *txn;
    ty_status status = ty_begin(heap, nullptr, &txn);
    if (status == TY_OK && (status = ty_txn_root_set(txn, "block", ty_txn_alloc(txn, 64))) == TY_OK)
        status = ty_commit(txn);
    return status;
}

// A worker that lives until the other end of its pipe is closed.
struct worker {
    int wait_end = -1, keep_end = -1;

    worker() {
        int ends[2];
        if (pipe2(ends, O_CLOEXEC) == 0)
            wait_end = ends[0], keep_end = ends[1];
    }
    void wait_in_child(int runs) const { // of whichever process forked it; its number goes to runs
        char byte;
        const pid_t process = getpid();
        close(keep_end);
        static_cast<void>(!write(runs, &process, sizeof process));
        static_cast<void>(!read(wait_end, &byte, 1));
        _exit(0);
    }
    ~worker() {
        close(wait_end);
        close(keep_end);
    }
};

class fork_locks : public testing::TestWithParam<ty_kind> {};

std::string name_of(const testing::TestParamInfo<ty_kind> &kind) {
    return kind.param == TY_ARCHIVE ? "archive" : kind.param == TY_SNAPSHOT ? "snapshot" : "transactional";
}

TEST_P(fork_locks, end_with_the_owner_while_its_worker_lives) {
    temporary_folder folder;
    const std::string path = folder.file("heap.ty");
    worker waits;
    int ready[2];
    ASSERT_EQ(0, pipe(ready));
    const pid_t owner = fork();
    if (owner == 0) {
        ty_status status;
        ty_heap *heap = open_heap(path, GetParam(), &status);
        if (status == TY_OK)
            status = put_block(heap);
        const pid_t child = status == TY_OK ? fork() : -1;
        if (child == 0)
            waits.wait_in_child(ready[1]);
        close(waits.keep_end);
        if (child < 0)
            _exit(1);
        for (;;)
            pause();
    }
    close(ready[1]);
    pid_t child = -1;
    ASSERT_EQ(ssize_t{sizeof child}, read(ready[0], &child, sizeof child));
    ASSERT_GT(child, 0);
    ASSERT_EQ(0, kill(owner, SIGKILL));
    ASSERT_EQ(owner, waitpid(owner, nullptr, 0));
    EXPECT_EQ(0, kill(child, 0)) << "the worker lives";
    ty_status status;
    ty_heap *heap = open_heap(path, GetParam(), &status);
    ASSERT_OK(status);
    EXPECT_NE(nullptr, ty_root(heap, "block"));
    ASSERT_OK(ty_close(heap));
    close(ready[0]);
}

// The child's end, or its close, is not its parent's: nobody else gets in.
TEST_P(fork_locks, are_the_parents_after_a_child_has_discarded_its_copy) {
    temporary_folder folder;
    const std::string path = folder.file("heap.ty");
    ty_status status;
    ty_heap *heap = open_heap(path, GetParam(), &status);
    ASSERT_OK(status);
    const pid_t child = fork();
    if (child == 0) {
        int wrong = ty_discard(heap) == TY_OK ? 0 : 1;
        ty_status refused;
        open_heap(path, GetParam(), &refused);
        _exit(wrong | (refused == TY_E_BUSY ? 0 : 2));
    }
    int code = -1;
    ASSERT_EQ(child, waitpid(child, &code, 0));
    EXPECT_EQ(0, code);
    const pid_t other = fork();
    if (other == 0) {
        open_heap(path, GetParam(), &status);
        _exit(status == TY_E_ADDRESS || status == TY_E_BUSY ? 0 : 1); // its copy is in the way
    }
    ASSERT_EQ(other, waitpid(other, &code, 0));
    EXPECT_EQ(0, code);
    ASSERT_OK(put_block(heap));
    ASSERT_OK(ty_close(heap));
}

TEST_P(fork_locks, a_child_opens_what_its_parent_has_closed) {
    temporary_folder folder;
    const std::string path = folder.file("heap.ty");
    worker parent_closes;
    ty_status status;
    ty_heap *heap = open_heap(path, GetParam(), &status);
    ASSERT_OK(status);
    ASSERT_OK(put_block(heap));
    const pid_t child = fork();
    if (child == 0) {
        char byte;
        close(parent_closes.keep_end);
        static_cast<void>(!read(parent_closes.wait_end, &byte, 1));
        int wrong = ty_discard(heap) == TY_OK ? 0 : 1;
        heap = open_heap(path, GetParam(), &status);
        wrong |= status == TY_OK && ty_root(heap, "block") != nullptr ? 0 : 2;
        // It is the owner now, with locks of its own.
        const pid_t grandchild = status == TY_OK ? fork() : -1;
        if (grandchild == 0)
            _exit(ty_discard(heap) == TY_OK ? 0 : 1);
        int code = -1;
        wrong |= grandchild > 0 && waitpid(grandchild, &code, 0) == grandchild && code == 0 ? 0 : 4;
        wrong |= status == TY_OK && put_block(heap) == TY_OK && ty_close(heap) == TY_OK ? 0 : 8;
        _exit(wrong);
    }
    ASSERT_OK(ty_close(heap));
    close(parent_closes.keep_end);
    parent_closes.keep_end = -1;
    int code = -1;
    ASSERT_EQ(child, waitpid(child, &code, 0));
    EXPECT_EQ(0, code);
}

INSTANTIATE_TEST_SUITE_P(kinds, fork_locks, testing::Values(TY_ARCHIVE, TY_SNAPSHOT, TY_TRANSACTIONAL), name_of);

} // namespace
