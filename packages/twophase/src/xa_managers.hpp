// The resource managers that xa.cpp knows, and their branches: tables of the process.
#pragma once

#include "support.hpp"
#include <mutex>
#include <taiyen/taiyen.h>
#include <taiyen/xa.h>

namespace taiyen::twophase::xa {

inline constexpr size_t managers_max = 16;
inline constexpr size_t description_head = 14; // a magic of 4 bytes, the format's 8, the two lengths

enum class branch_state : uint8_t {
    starting, // or ending: a call is under way
    active,   // a thread works for it
    suspended,
    idle,   // that thread has ended its work
    failed, // likewise, and it can only be rolled back
    prepared,
    doubtful, // prepared by a process that has crashed; the heap is not open
};

struct branch {
    branch_state state;
    XID xid;
    uint64_t thread;
    ty_txn *txn;
    branch *next;
};

// A resource manager. A call that has set `busy` owns what it works on; all else is guarded by the lock.
struct manager {
    bool used;
    pid_t busy; // the process in which a thread opens or closes it; 0: none
    int rmid;
    uint32_t opened;     // by how many threads
    uint32_t generation; // a new one each time that it is registered
    uint32_t scanned;    // number of branches that xa_recover has returned
    bool scans;
    char path[MAXINFOSIZE];
    ty_heap *heap; // NULL: a branch is in doubt
    branch *branches;
};

extern mutex lock;
// `busy` of a manager has changed.
void note_changed();

// ---- XIDs

bool is_xid(const XID *xid);
size_t describe(const XID &xid, uint8_t *out); // returns the number of bytes
// False: it does not describe a branch.
bool read_description(const void *bytes, size_t size, XID *xid);

// ---- With the lock held

// Waits until no thread opens or closes it; NULL: there is none.
manager *await_manager(int rmid);
manager *new_manager(int rmid, const char *path); // NULL: there are too many
bool is_opened_here(const manager &one);          // by this thread
void note_opened_here(const manager &one, bool opened);

branch *find_branch(const manager &of, const XID &xid);
// The one that this thread works for.
branch *own_branch(const manager &of);
branch *add_branch(manager &to, const XID &xid, branch_state state); // NULL: there is no memory
void remove_branch(manager &from, const branch *one);

} // namespace taiyen::twophase::xa
