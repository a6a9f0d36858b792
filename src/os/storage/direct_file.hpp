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

    taiyen::os::file_name name; // the text as it was opened lies behind this struct
    int fd = -1;
    off_t mark = 0; // N2
    bool writable = false;
    taiyen::os::locked_opening *lock = nullptr; // N5; nullptr: it has taken none
    bool links_counted = false;                 // by the file system: some always say 0
    std::atomic<bool> direct = false;
    std::atomic<bool> writes_durably = true; // until the kernel refuses it
    taiyen::os::write_queue queue;
    taiyen::os::mutex moving{taiyen::os::lock_rank::storage}; // while fd stands elsewhere than at the mark
    taiyen::os::current_name path() const { return {name, fd}; }
};

namespace taiyen::os {

// N2, before anything is done through the descriptor.
bool is_ours(ty_file *file);
ty_status check_ours(const char *operation, ty_file *file, uint64_t offset = UINT64_MAX);

// ---- direct_open.cpp: functions of the table
ty_status direct_open(void *, const char *path, uint32_t flags, ty_file **opened);
void direct_close(void *, ty_file *file);

// ---- file_locks.cpp: functions of the table, and what the others do for a lock
ty_status direct_lock(void *, ty_file *file, bool exclusive);
ty_status direct_hold(void *, ty_file *file, bool ask);
ty_status direct_turn(void *, ty_file *file, bool begin);
void give_up_lock(ty_file &file, bool is_open); // of a file that has one; is_open: its descriptor is still its own

// What a file is mapped through: of a file with a lock another opening, which ends with this object (N5). It is the
// file's own where there can be none (no /proc, no right any more).
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
