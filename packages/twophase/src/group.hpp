// Groups and distributed transactions, as shared by their files. docs/design/distributed.md describes how they work.
#pragma once

#include "dtxn.hpp"

#include <atomic>
#include <mutex>
#include <vector>

namespace taiyen::twophase {

inline constexpr size_t past_max = 64;

// An agent's identifier that can be forgotten once the heaps cannot ask for it any more.
struct past_dtxn {
    char id[TY_DTXN_ID_BYTES];
    uint64_t outcomes[TY_GROUP_HEAPS_MAX]; // LSNs; 0: the heap had no part in it
};

enum class dtxn_state : uint8_t {
    open,    // can be changed, committed, rolled back
    asking,  // the agent or the first heap may have committed, and must be asked; or grouped distributed transactions
             // whose write failed
    decided, // it is committed, and not every heap knows
};

// ---- moments.cpp

// What the tables of a group's heaps have in common, by group key.
struct group_moment {
    static constexpr size_t keys_max = 64;
    group_key differing[keys_max]; // groups of which two heaps have different last distributed transactions
    size_t differing_count;
    uint64_t dtxns;             // the highest count of distributed transactions of the groups that differ
    group_key copied[keys_max]; // groups of which these heaps are copies, each of another member, and together of all
    size_t copied_count;
    size_t older, newer;             // of the first two heaps that differ
    uint64_t older_dtxn, newer_dtxn; // counts of the group's distributed transactions then
    bool is_another;                 // the older one lies at the place of a member that it is not
};
ty_status moments_compare(const ty_group &group, group_moment *found);
// JO6: TY_E_MISMATCH if the heaps are of different moments.
ty_status moments_refuse(const ty_group &group, const group_moment &found);

// ---- group_commit.cpp

// What a waiting thread is notified of.
enum class turn : uint32_t {
    none,
    begins,    // its distributed transaction begins, and must take the reader-writer locks
    continues, // its distributed transaction begins, within the hold of those before it
    refused,   // it does not begin: the group can no longer be used
    flushes,   // it must write the batch, its own distributed transaction included
    committed, // its distributed transaction is committed
    in_doubt,
    drained, // nothing is grouped
};
struct waiting_thread {
    waiting_thread *next = nullptr;
    std::atomic<uint32_t> notification{uint32_t(turn::none)};
    bool flushes = false; // it writes the batch of its distributed transaction without being notified

    turn wait() const;
};
// First in, first out.
struct waiting_threads {
    waiting_thread *first;
    waiting_thread **end; // NULL: empty

    void push(waiting_thread &one);
    waiting_thread *pop();
    waiting_threads take();
};

using process_bytes = std::vector<uint8_t, process_memory<uint8_t>>;

// For each heap, the records of distributed transactions that have ended in memory, one after another.
struct grouped_records {
    process_bytes bytes;
    size_t ends[TY_PLUGIN_GROUPED_MAX];
};
struct grouped_batch {
    size_t count; // of distributed transactions
    grouped_records heaps[TY_GROUP_HEAPS_MAX];
    dtxn_description last;
    waiting_threads members; // threads that wait for the write
};

// Concurrent distributed transactions of a group whose heaps decide.
struct group_commit {
    taiyen::twophase::mutex lock{TY_PLUGIN_RANK_GROUPS}; // guards all of it
    waiting_threads queue;                               // threads that want to begin
    bool running;      // a distributed transaction is between its begin and its end in memory
    bool held;         // distributed transactions have ended since the reader-writer locks were taken
    bool flushing;     // a batch is being written
    bool broken;       // a write failed: what is in memory is in no log
    size_t held_count; // distributed transactions that have begun within the hold
    grouped_batch batches[2];
    size_t filled;           // the batch that the next distributed transaction goes to
    ty_dtxn *doubtful;       // distributed transactions whose write failed: freed with the group
    waiting_thread *drainer; // the thread of the running distributed transaction, while it waits for all writes
};

} // namespace taiyen::twophase

struct ty_group : ty_plugin_watcher {
    size_t count;
    ty_heap *heaps[TY_GROUP_HEAPS_MAX]; // as the program passed them
    uint8_t order[TY_GROUP_HEAPS_MAX];  // the order in which their reader-writer locks are taken
    taiyen::twophase::group_key key;
    const ty_last_agent *agent;
    ty_resource_manager resource_managers[TY_GROUP_RESOURCE_MANAGERS_MAX];
    size_t resource_manager_count;
    ty_group *next; // in the list of groups with resource managers
    // Held while resource managers are notified; guards which notifications are due. Taken after the reader-writer
    // locks.
    taiyen::twophase::mutex lock{TY_PLUGIN_RANK_GROUPS};
    taiyen::twophase::group_commit grouped;
    // The number of the thread that has the distributed transaction under way; 0: none.
    std::atomic<uint64_t> thread;
    ty_dtxn *dtxn;
    // Guarded by the reader-writer locks of all heaps:
    taiyen::twophase::past_dtxn past[taiyen::twophase::past_max];
    size_t past_count;
    char owed[TY_DTXN_ID_BYTES]; // a commit that resource managers must still be notified of; empty: none
    uint32_t owed_to;            // a bit for each of them
};

struct ty_dtxn {
    ty_group *group;
    uint64_t thread;                   // that began it
    ty_txn *txns[TY_GROUP_HEAPS_MAX];  // NULL: it has ended
    uint64_t lsns[TY_GROUP_HEAPS_MAX]; // of its prepared records; 0: none
    size_t prepared_resource_managers;
    taiyen::twophase::dtxn_state state;
    bool in_group;    // it has its turn in the group, and passes it on when it ends
    ty_status damage; // of a heap, found at its end
    ty_dtxn *next;    // of those in doubt
    taiyen::twophase::dtxn_description what;
    char id[TY_DTXN_ID_BYTES];
};

namespace taiyen::twophase {

inline decided_by decider_of(const ty_group &group) {
    if (group.agent)
        return decided_by::agent;
    return group.resource_manager_count ? decided_by::first_heap : decided_by::heaps;
}

// ---- resource_managers.cpp

ty_status list_group(ty_group *group);
void unlist_group(ty_group *group);
// Notifies all, and returns the first failure. notified: a bit for each that need not be notified again.
ty_status notify_resource_managers(const ty_group &group, const char *id, uint32_t whom, bool commits,
                                   uint32_t *notified);
// JO4: for a distributed transaction that the first heap has durably. That heap's reader-writer lock opens before its
// commit is durable; then the next distributed transaction may begin, and owe a notification of its own before this one
// is delivered. So either all reader-writer locks are held, or the one owed must be `only`.
ty_status pay(ty_group &group, const char *only);
void owe(ty_group &group, const char *id);
void owe_nothing(ty_group &group);
// Resolves what resource managers have prepared and no process has ended: the first heap knows the outcome. No other
// thread is in a distributed transaction of the group: the group is not open yet, or its heap is held.
ty_status recover_resource_managers(const ty_group &group);

// ---- dtxn.cpp

// Rolls all of it back, in memory and, where it is prepared, in the logs; frees the distributed transaction. The
// failure's detail stays that of the thread.
ty_status give_up(ty_dtxn *dtxn, ty_status status);
// Sets the distributed transaction's number in each heap, as its part there. Expected: TY_E_DAMAGED, and the errors of
// a declaration.
ty_status set_number(ty_dtxn *dtxn, size_t n);
// JO7: a distributed transaction that changes only numbers; also those of groups of which the heaps are copies.
ty_status dtxn_begin_moment(ty_group *group, const group_moment &moment);
void free_dtxn(ty_dtxn *dtxn); // after its end: the next one of the group begins

// ---- group_commit.cpp

// Whether distributed transactions of the group take turns.
inline bool gathers(const ty_group &group) {
    return group.count > 1 && decider_of(group) == decided_by::heaps;
}
// Waits for a distributed transaction's turn: turn::begins or turn::continues. Expected: TY_E_BUSY, TY_E_IN_DOUBT.
ty_status take_turn(ty_group &group, bool no_wait, turn *given);
// The distributed transaction has ended, and nothing of it is grouped.
void give_turn(ty_group &group);
// Whether the distributed transaction, which has its turn, is grouped with others. several: it has changed several
// heaps.
bool is_grouped(ty_group &group, bool several);
// *done false: it does not fit with the others. Those are written, and the caller commits it by itself.
ty_status commit_grouped(ty_dtxn *dtxn, bool *done);
ty_status grouped_in_doubt();
void forget_grouped(ty_group &group); // at the group's end

} // namespace taiyen::twophase
