// Goal: on a file system in memory that is full, such as a container's /dev/shm, a call fails with TY_E_SPACE or does
// its work; nothing faults, and once there is room the same call works (I15).
// Method: a tmpfs of 24 MB in a mount namespace of a child's own; a short life of a heap of each kind, with the rest of
// the tmpfs taken before each of its steps in turn; likewise after a death, for opens of both ways.
#include "fixture.hpp"
#include "tests/units.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace taiyen::test;

namespace {

constexpr size_t small_bytes = 300'000, large_bytes = 3 * mb;
constexpr int refused = 77, steps = 9;

bool write_text(const char *path, const std::string &text) {
    std::ofstream file(path);
    file << text;
    return static_cast<bool>(file.flush());
}

// This process gets a mount namespace, with a small tmpfs at the folder.
bool mount_small(const char *folder) {
    const uid_t user = geteuid();
    const gid_t group = getegid();
    if (unshare(CLONE_NEWNS) != 0) {
        if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0 || !write_text("/proc/self/setgroups", "deny") ||
            !write_text("/proc/self/uid_map", "0 " + std::to_string(user) + " 1") ||
            !write_text("/proc/self/gid_map", "0 " + std::to_string(group) + " 1"))
            return false;
    }
    return mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
           mount("tmpfs", folder, "tmpfs", 0, "size=24m") == 0;
}

struct life {
    ty_kind kind;
    std::string folder, path = folder + "/heap.ty", filler = folder + "/filler";
    ty_heap *heap = nullptr;

    void fill() const {
        int file = open(filler.c_str(), O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
        const std::vector<char> page(4096);
        while (write(file, page.data(), page.size()) > 0)
            ;
        if (errno != ENOSPC)
            _exit(3);
        close(file);
    }
    void empty() const { unlink(filler.c_str()); }

    ty_status open_heap(bool read_only = false) {
        ty_open_options options = TY_OPEN_OPTIONS_INIT, reading = TY_OPEN_OPTIONS_INIT;
        reading.mode = TY_OPEN_READ_ONLY;
        options.kind = kind;
        options.limit_bytes = 64 * mb;
        options.log_bytes = kind == TY_TRANSACTIONAL ? mb : 0;
        if (read_only)
            return ty_open(path.c_str(), &reading, &heap, nullptr);
        return ty_open(path.c_str(), &options, &heap, nullptr);
    }
    // A block with a text at its start, and nothing written after the first so many bytes.
    ty_status add(const char *name, size_t bytes, size_t written) const {
        ty_txn *txn = nullptr;
        if (kind == TY_TRANSACTIONAL)
            if (ty_status status = ty_begin(heap, nullptr, &txn))
                return status;
        char *block = static_cast<char *>(txn != nullptr ? ty_txn_alloc(txn, bytes) : ty_alloc(heap, bytes));
        if (block == nullptr) {
            ty_error error;
            ty_error_detail(&error);
            ty_status status = error.status;
            if (txn != nullptr)
                ty_rollback(txn);
            return status;
        }
        memset(block, 5, written);
        ty_status status = txn != nullptr ? ty_txn_root_set(txn, name, block) : ty_root_set(heap, name, block);
        if (txn == nullptr)
            return status;
        if (status == TY_OK)
            status = ty_commit(txn);
        if (status != TY_OK)
            ty_rollback(txn);
        return status;
    }
    bool has(const char *name, size_t bytes, size_t written) const {
        const char *block = static_cast<const char *>(ty_root(heap, name));
        const volatile char *all = block; // the rest is read, too: that is where holes are
        for (size_t i = 0; block != nullptr && i < bytes; i++) {
            char read = all[i];
            if (i < written && read != 5)
                return false;
        }
        return block != nullptr;
    }
    bool has_all() const { return has("small", small_bytes, small_bytes) && has("large", large_bytes, 100); }

    ty_status step(int number) {
        switch (number) {
        case 0:
        case 6:
            return open_heap();
        case 1:
            return add("small", small_bytes, small_bytes);
        case 2:
        case 4:
        case 8:
            return ty_snapshot(heap);
        case 3:
            return add("large", large_bytes, 100);
        case 5:
            return ty_close(heap);
        default:
            return has_all() ? add("later", mb, mb) : TY_E_DAMAGED;
        }
    }
};

int report(const life &one, int full_at, int step, ty_status status) {
    fprintf(stderr, "kind %d, full at step %d, step %d: %s: %s\n", static_cast<int>(one.kind), full_at, step,
            ty_status_name(status), ty_error_text());
    return 1;
}

// A step that the full disk refuses works once there is room.
int live(life one, int full_at) {
    bool full = false;
    for (int step = 0; step < steps; step++) {
        if (step == full_at) {
            one.fill();
            full = true;
        }
        ty_status status = one.step(step);
        if (status == TY_E_SPACE && full) {
            if (strstr(ty_error_text(), "-creating")) // no such file is there
                return report(one, full_at, step, status);
            one.empty();
            full = false;
            status = one.step(step);
        }
        if (status != TY_OK)
            return report(one, full_at, step, status);
    }
    ty_status status = ty_close(one.heap);
    return status == TY_OK || (status == TY_E_SPACE && full) ? 0 : report(one, full_at, steps, status);
}

// A process dies after its second snapshot; then the disk is full.
int live_again(life one, bool read_only) {
    pid_t child = fork();
    if (child == 0) {
        for (int step = 0; step < 5; step++)
            if (one.step(step) != TY_OK)
                _exit(1);
        _exit(0);
    }
    int result = 0;
    if (waitpid(child, &result, 0) != child || result != 0)
        return 4;
    one.fill();
    ty_status status = one.open_heap(read_only);
    if (status == TY_E_SPACE) {
        one.empty();
        status = one.open_heap(read_only);
    }
    if (status != TY_OK || !one.has_all())
        return report(one, -1, read_only ? 1 : 0, status);
    return 0;
}

template <class Function>
void in_small_tmpfs(Function function) {
    api_test::folder folder;
    pid_t child = fork();
    if (child == 0)
        _exit(mount_small(folder.path("").c_str()) ? function(folder.path("")) : refused);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == refused)
        GTEST_SKIP() << "no mounts here";
    EXPECT_EQ(status, 0) << "a signal, or what the child has reported";
}

} // namespace

TEST(full_memory_disk, each_step_fails_or_works) {
    for (ty_kind kind : {TY_ARCHIVE, TY_SNAPSHOT, TY_TRANSACTIONAL})
        for (int full_at = 0; full_at < steps; full_at++)
            in_small_tmpfs([=](const std::string &folder) { return live({kind, folder}, full_at); });
}

TEST(full_memory_disk, opens_after_a_death_fail_or_work) {
    for (ty_kind kind : {TY_ARCHIVE, TY_SNAPSHOT, TY_TRANSACTIONAL})
        for (bool read_only : {false, true})
            in_small_tmpfs([=](const std::string &folder) { return live_again({kind, folder}, read_only); });
}
