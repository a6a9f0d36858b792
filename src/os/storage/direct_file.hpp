// An open file of the built-in storage.
#pragma once

#include "../calls/calls.hpp"
#include "file_name.hpp"
#include "write_queue.hpp"

#include <atomic>
#include <sys/types.h>
#include <taiyen/storage.h>

namespace taiyen::os {
struct locked_opening;
}

struct ty_file {
    explicit ty_file(const char *path) : name(path) {}

    taiyen::os::file_name name; // its text, the path as opened, lies after this struct
    int fd = -1;
    off_t mark = 0; // N2: proves that the number still leads to this file
    bool writable = false;
    taiyen::os::locked_opening *lock = nullptr; // N5: a lock ends with its process; nullptr: not locked
    bool links_counted = false;                 // the file system counts links: some always say 0
    std::atomic<bool> direct = false;
    std::atomic<bool> writes_durably = true; // until the kernel refuses
    taiyen::os::write_queue queue;
    taiyen::os::mutex moving{taiyen::os::lock_rank::storage}; // while fd's position is not at the mark
    taiyen::os::current_name path() const { return {name, fd}; }
};

namespace taiyen::os {

// N2: checked before anything is done through the descriptor.
bool is_ours(ty_file *file);
ty_status check_ours(const char *operation, ty_file *file, uint64_t offset = UINT64_MAX);

// ---- direct_open.cpp: functions of the storage table
ty_status direct_open(void *, const char *path, uint32_t flags, ty_file **opened);
void direct_close(void *, ty_file *file);

// ---- file_locks.cpp: functions of the storage table, and what others do for a lock
ty_status direct_lock(void *, ty_file *file, bool exclusive);
ty_status direct_check_lock(void *, ty_file *file);
ty_status direct_hold(void *, ty_file *file, uint32_t mode, uint64_t first, uint64_t last, uint64_t *other);
ty_status direct_turn(void *, ty_file *file, bool begin);
void give_up_lock(ty_file &file, bool is_open); // of a locked file; is_open: its descriptor is still its own

// The open file description through which a file is mapped: for a locked file a separate one, which is closed with this
// object (N5: a mapping through the locked one would keep the lock). The file's own where that cannot be opened (no
// /proc, no permission any more).
struct mapped_opening {
    explicit mapped_opening(const ty_file &file);
    ~mapped_opening();
    mapped_opening(const mapped_opening &) = delete;
    mapped_opening &operator=(const mapped_opening &) = delete;

    int fd;

private:
    bool own_ = false;
};

} // namespace taiyen::os
