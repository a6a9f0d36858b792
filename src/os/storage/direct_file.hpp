// An open file of the built-in storage.
#pragma once

#include "../calls/calls.hpp"
#include "file_name.hpp"
#include "write_queue.hpp"

#include <atomic>
#include <sys/types.h>
#include <taiyen/storage.h>

struct ty_file {
    explicit ty_file(const char *path) : name(path) {}

    taiyen::os::file_name name; // the text as it was opened lies behind this struct
    int fd = -1;
    off_t mark = 0; // N2
    bool writable = false;
    bool locked = false;
    pid_t process = 0;          // that locked it
    bool links_counted = false; // by the file system: some always say 0
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

} // namespace taiyen::os
