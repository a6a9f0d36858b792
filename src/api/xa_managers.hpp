// What xa.cpp knows of resource managers and their branches: tables of the process.
#pragma once

#include "../txn/txn.hpp"
#include <taiyen/taiyen.h>
#include <taiyen/xa.h>

namespace taiyen::xa {

inline constexpr size_t managers_max = 16;
inline constexpr size_t description_head = 14; // a magic of 4 bytes, the format's 8, the two lengths

enum class branch_state : uint8_t {
    starting, // or ending: a call is under way
    active,   // a thread works for it
    suspended,
    idle,   // that thread has ended its work
    failed, // likewise, and it can only be rolled back
    prepared,
    doubtful, // prepared by a process that is dead; the heap is not open
};

struct branch {
    branch_state state;
    XID xid;
    uint64_t thread;
    ty_txn *txn;
    branch *next;
};

// A resource manager. What of it is under way with `busy` set is its caller's; all else is by the lock.
struct manager {
    bool used;
    bool busy; // it is being opened, or closed
    int rmid;
    uint32_t opened;     // by how many threads
    uint32_t generation; // another one each time that it is made known
    uint32_t scanned;    // of the branches that xa_recover tells
    bool scans;
    char path[MAXINFOSIZE];
    ty_heap *heap; // NULL: a branch is in doubt
    branch *branches;
};

extern os::mutex lock;
extern os::condition changed; // `busy` was

// ---- XIDs

bool is_xid(const XID *xid);
size_t describe(const XID &xid, uint8_t *out); // how many bytes
// False: it is none of a branch.
bool read_description(const void *bytes, size_t size, XID *xid);

// ---- With the lock held

// The calling thread's, which no other one ever has.
uint64_t thread_number();
// Once nobody opens or closes it; NULL: there is none.
manager *await_manager(int rmid);
manager *new_manager(int rmid, const char *path); // NULL: there are too many
bool is_opened_here(const manager &one);          // by this thread
void note_opened_here(const manager &one, bool opened);

branch *find_branch(const manager &of, const XID &xid);
// The one that this thread works for.
branch *own_branch(const manager &of);
branch *add_branch(manager &to, const XID &xid, branch_state state); // NULL: there is no memory
void remove_branch(manager &from, const branch *one);

} // namespace taiyen::xa
