// Groups and distributed transactions as their files share them. docs/design/distributed.md tells how they work.
#pragma once

#include "dtxn.hpp"

#include <atomic>

namespace taiyen {

inline constexpr size_t past_max = 64;

// An agent's identifier that can go once the heaps cannot ask for it any more.
struct past_dtxn {
    char id[TY_DTXN_ID_BYTES];
    uint64_t outcomes[TY_GROUP_HEAPS_MAX]; // LSNs; 0: the heap had no part in it
};

enum class dtxn_state : uint8_t {
    open,    // to be changed, committed, rolled back
    asking,  // the agent may have committed, or the first heap: to be asked; or grouped distributed transactions whose
             // write failed
    decided, // it is committed, and not every heap knows
};

// ---- moments.cpp

// What the tables of a group's heaps have in common, by the keys of groups.
struct group_moment {
    static constexpr size_t keys_max = 64;
    group_key differing[keys_max]; // of which two heaps have different distributed transactions
    size_t differing_count;
    uint64_t dtxns;             // how many the groups that differ have had, at the most
    group_key copied[keys_max]; // of which these heaps are copies, each of another member, and all together
    size_t copied_count;
    size_t older, newer;             // of the first two heaps that differ
    uint64_t older_dtxn, newer_dtxn; // how many the group had then
    bool is_another;                 // the older one lies where a member lay that it is not
};
ty_status moments_compare(const ty_group &group, group_moment *found);
// JO6: TY_E_MISMATCH where they differ.
ty_status moments_refuse(const ty_group &group, const group_moment &found);

// ---- group_commit.cpp

// What a thread that waits is told.
enum class turn : uint32_t {
    none,
    begins,    // a distributed transaction, with the reader-writer locks to be taken
    continues, // a distributed transaction, within the hold of those before it
    refused,   // none: the group is of no use any more
    flushes,   // it writes what is grouped, its own distributed transaction with it
    committed, // its distributed transaction
    in_doubt,
    drained, // nothing is grouped
};
struct waiting_thread {
    waiting_thread *next = nullptr;
    std::atomic<uint32_t> told{uint32_t(turn::none)};
    bool flushes = false; // it writes the batch that its distributed transaction is in, without being told

    turn wait() const;
};
// Who came first goes first.
struct waiting_threads {
    waiting_thread *first;
    waiting_thread **end; // NULL: there are none

    void push(waiting_thread &one);
    waiting_thread *pop();
    waiting_threads take();
};

// Records of distributed transactions that have ended in memory, one behind the other, for each heap.
struct grouped_records {
    uint8_t *bytes;
    size_t size;
    size_t capacity;
    size_t ends[record_pending_max];
};
struct grouped_batch {
    size_t count; // of distributed transactions
    grouped_records heaps[TY_GROUP_HEAPS_MAX];
    dtxn_description last;
    waiting_threads members; // threads that wait for the write
};

// Distributed transactions of a group whose heaps decide, that come at the same time.
struct group_commit {
    os::mutex lock{os::lock_rank::groups}; // guards all of it
    waiting_threads queue;                 // threads that want to begin
    bool running;                          // a distributed transaction is between its begin and its end in memory
    bool held;         // distributed transactions have ended since the reader-writer locks were taken
    bool flushing;     // a batch is being written
    bool broken;       // a write failed: what is in memory is in no log
    size_t held_count; // distributed transactions that have begun within the hold
    grouped_batch batches[2];
    size_t filled;           // which of them the next distributed transaction goes to
    ty_dtxn *doubtful;       // distributed transactions whose write failed: freed with the group
    waiting_thread *drainer; // the thread of the distributed transaction that is running, which waits for all writes
};

} // namespace taiyen

struct ty_group : taiyen::thread_end_watcher {
    size_t count;
    ty_heap *heaps[TY_GROUP_HEAPS_MAX]; // as the program gave them
    uint8_t order[TY_GROUP_HEAPS_MAX];  // in which their reader-writer locks are taken
    taiyen::group_key key;
    const ty_last_agent *agent;
    ty_resource_manager resource_managers[TY_GROUP_RESOURCE_MANAGERS_MAX];
    size_t resource_manager_count;
    ty_group *next; // with resource managers: in the list of these
    // Whom resource managers are to be told of, and while they are. Behind the reader-writer locks.
    taiyen::os::mutex lock{taiyen::os::lock_rank::groups};
    taiyen::group_commit grouped;
    // The distributed transaction under way, and the number of the thread that has it; 0: none.
    std::atomic<uint64_t> thread;
    ty_dtxn *dtxn;
    // By the reader-writer locks of all heaps:
    taiyen::past_dtxn past[taiyen::past_max];
    size_t past_count;
    char owed[TY_DTXN_ID_BYTES]; // a commit that resource managers are still to be told of; empty: none
    uint32_t owed_to;            // a bit for each of them
};

struct ty_dtxn {
    ty_group *group;
    uint64_t thread;                   // that began it
    ty_txn *txns[TY_GROUP_HEAPS_MAX];  // NULL: it is over
    uint64_t lsns[TY_GROUP_HEAPS_MAX]; // of its prepared records; 0: it has none
    size_t prepared_resource_managers;
    taiyen::dtxn_state state;
    bool in_group;    // it has its turn in the group, which its end gives on
    ty_status damage; // of a heap, that its end has found
    ty_dtxn *next;    // of those in doubt
    taiyen::dtxn_description what;
    char id[TY_DTXN_ID_BYTES];
};

namespace taiyen {

inline decided_by who_decides(const ty_group &group) {
    if (group.agent)
        return decided_by::agent;
    return group.resource_manager_count ? decided_by::first_heap : decided_by::heaps;
}

// ---- resource_managers.cpp

ty_status list_group(ty_group *group);
void unlist_group(ty_group *group);
// The first failure; the others are told all the same. told: a bit for each that need not be told any more.
ty_status tell_resource_managers(const ty_group &group, const char *id, uint32_t whom, bool commits, uint32_t *told);
// JO4: of a distributed transaction that the first heap has durably. That one's reader-writer lock opens before its
// commit is durable, and then the next distributed transaction may begin, and owe something of its own before this one
// is told. So either all reader-writer locks are held, or it is `only`.
ty_status pay(ty_group &group, const char *only);
void owe(ty_group &group, const char *id);
void owe_nothing(ty_group &group);
// What resource managers have prepared and no process has told the end of: the first heap knows. Nobody else is in a
// distributed transaction of the group: it is not open yet, or its heap is held.
ty_status recover_resource_managers(const ty_group &group);

// ---- dtxn.cpp

uint64_t thread_number(); // of the calling one, and of no other
// All of it, in memory and, where they are prepared, in the logs. What made it fail stays the thread's error. The
// distributed transaction is freed.
ty_status give_up(ty_dtxn *dtxn, ty_status status);
// The distributed transaction's number is its part in each heap. Expected: TY_E_DAMAGED, and what a declaration fails
// with.
ty_status set_number(ty_dtxn *dtxn, size_t n);
// JO7: a distributed transaction that changes nothing but numbers; those of groups of which the heaps are copies, too.
ty_status dtxn_begin_moment(ty_group *group, const group_moment &moment);
void free_dtxn(ty_dtxn *dtxn); // which has ended: the next one of the group begins

// ---- group_commit.cpp

// Whether distributed transactions of the group take turns.
inline bool gathers(const ty_group &group) {
    return group.count > 1 && who_decides(group) == decided_by::heaps;
}
// Waits for a distributed transaction's turn: turn::begins or turn::continues. Expected: TY_E_BUSY, TY_E_IN_DOUBT.
ty_status take_turn(ty_group &group, bool no_wait, turn *given);
// The distributed transaction has ended, with nothing grouped of it.
void give_turn(ty_group &group);
// Whether the distributed transaction, which has its turn, is to be grouped with others. several: it has changed
// several heaps.
bool is_grouped(ty_group &group, bool several);
// *done false: it does not fit with the others. These are written, and it is to be committed by itself.
ty_status commit_grouped(ty_dtxn *dtxn, bool *done);
ty_status grouped_in_doubt();
void forget_grouped(ty_group &group); // which ends

} // namespace taiyen
