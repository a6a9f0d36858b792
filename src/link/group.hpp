// Groups and joints as their files share them. docs/design/joint.md tells how they work.
#pragma once

#include "joint.hpp"

#include <atomic>

namespace taiyen {

inline constexpr size_t past_max = 64;

// An agent's identifier that can go once the heaps cannot ask for it any more.
struct past_joint {
    char id[TY_JOINT_ID_BYTES];
    uint64_t outcomes[TY_GROUP_HEAPS_MAX]; // sequences; 0: the heap had no part in it
};

enum class joint_state : uint8_t {
    open,    // to be changed, committed, rolled back
    asking,  // the agent may have committed, or the first heap: to be asked; or gathered joints whose write failed
    decided, // it is committed, and not every heap knows
};

// ---- moments.cpp

// What the tables of a group's heaps have in common, by the keys of groups.
struct group_moment {
    static constexpr size_t keys_max = 64;
    group_key differing[keys_max]; // of which two heaps have different joints
    size_t differing_count;
    uint64_t joints;            // how many the groups that differ have had, at the most
    group_key copied[keys_max]; // of which these heaps are copies, each of another member, and all together
    size_t copied_count;
    size_t older, newer;               // of the first two heaps that differ
    uint64_t older_joint, newer_joint; // how many the group had then
    bool is_another;                   // the older one lies where a member lay that it is not
};
ty_status moments_compare(const ty_group &group, group_moment *found);
// JO6: TY_E_MISMATCH where they differ.
ty_status moments_refuse(const ty_group &group, const group_moment &found);

// ---- gathering.cpp

// What a thread that waits is told.
enum class turn : uint32_t {
    none,
    begins,    // a joint, with the gates to be taken
    continues, // a joint, within the hold of those before it
    refused,   // none: the group is of no use any more
    flushes,   // it writes what is gathered, its own joint with it
    committed, // its joint
    in_doubt,
    drained, // nothing is gathered
};
struct waiting_thread {
    waiting_thread *next = nullptr;
    std::atomic<uint32_t> told{uint32_t(turn::none)};
    bool flushes = false; // it writes the batch that its joint is in, without being told

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

// Records of joints that have ended in memory, one behind the other, for each heap.
struct gathered_records {
    uint8_t *bytes;
    size_t size;
    size_t capacity;
    size_t ends[record_pending_max];
};
struct gathered_batch {
    size_t count; // of joints
    gathered_records heaps[TY_GROUP_HEAPS_MAX];
    joint_description last;
    waiting_threads members; // threads that wait for the write
};

// Joints of a group whose heaps decide, that come at the same time.
struct gathering {
    os::mutex lock{os::lock_rank::groups}; // guards all of it
    waiting_threads queue;                 // threads that want to begin
    bool running;                          // a joint is between its begin and its end in memory
    bool held;                             // joints have ended since the gates were taken
    bool flushing;                         // a batch is being written
    bool broken;                           // a write failed: what is in memory is in no log
    size_t held_count;                     // joints that have begun within the hold
    gathered_batch batches[2];
    size_t filled;           // which of them the next joint goes to
    ty_joint *doubtful;      // joints whose write failed: freed with the group
    waiting_thread *drainer; // the thread of the joint that is running, which waits for all writes
};

} // namespace taiyen

struct ty_group : taiyen::thread_end_watcher {
    size_t count;
    ty_heap *heaps[TY_GROUP_HEAPS_MAX]; // as the program gave them
    uint8_t order[TY_GROUP_HEAPS_MAX];  // in which their gates are taken
    taiyen::group_key key;
    const ty_agent *agent;
    ty_participant participants[TY_GROUP_PARTICIPANTS_MAX];
    size_t participant_count;
    ty_group *next; // with participants: in the list of these
    // Whom participants are to be told of, and while they are. Behind the gates.
    taiyen::os::mutex lock{taiyen::os::lock_rank::groups};
    taiyen::gathering gathered;
    // The joint under way, and the number of the thread that has it; 0: none.
    std::atomic<uint64_t> thread;
    ty_joint *joint;
    // By the gates of all heaps:
    taiyen::past_joint past[taiyen::past_max];
    size_t past_count;
    char owed[TY_JOINT_ID_BYTES]; // a commit that participants are still to be told of; empty: none
    uint32_t owed_to;             // a bit for each of them
};

struct ty_joint {
    ty_group *group;
    uint64_t thread;                        // that began it
    ty_txn *txns[TY_GROUP_HEAPS_MAX];       // NULL: it is over
    uint64_t sequences[TY_GROUP_HEAPS_MAX]; // of its prepared records; 0: it has none
    size_t prepared_participants;
    taiyen::joint_state state;
    bool in_group;    // it has its turn in the group, which its end gives on
    ty_status damage; // of a heap, that its end has found
    ty_joint *next;   // of those in doubt
    taiyen::joint_description what;
    char id[TY_JOINT_ID_BYTES];
};

namespace taiyen {

inline decided_by who_decides(const ty_group &group) {
    if (group.agent)
        return decided_by::agent;
    return group.participant_count ? decided_by::first_heap : decided_by::heaps;
}

// ---- participants.cpp

ty_status list_group(ty_group *group);
void unlist_group(ty_group *group);
// The first failure; the others are told all the same. told: a bit for each that need not be told any more.
ty_status tell_participants(const ty_group &group, const char *id, uint32_t whom, bool commits, uint32_t *told);
// JO4: of a joint that the first heap has durably. That one's gate opens before its commit is stable, and then the next
// joint may begin, and owe something of its own before this one is told. So either all gates are held, or it is `only`.
ty_status pay(ty_group &group, const char *only);
void owe(ty_group &group, const char *id);
void owe_nothing(ty_group &group);
// What participants have prepared and no process has told the end of: the first heap knows. Nobody else is in a joint
// of the group: it is not open yet, or its heap is held.
ty_status recover_participants(const ty_group &group);

// ---- joint.cpp

uint64_t thread_number(); // of the calling one, and of no other
// All of it, in memory and, where they are prepared, in the logs. What made it fail stays the thread's error. The joint
// is freed.
ty_status give_up(ty_joint *joint, ty_status status);
// The joint's number is its part in each heap. Expected: TY_E_DAMAGED, and what a declaration fails with.
ty_status set_number(ty_joint *joint, size_t n);
// JO7: a joint that changes nothing but numbers; those of groups of which the heaps are copies, too.
ty_status joint_begin_moment(ty_group *group, const group_moment &moment);
void free_joint(ty_joint *joint); // which has ended: the next one of the group begins

// ---- gathering.cpp

// Whether joints of the group take turns.
inline bool gathers(const ty_group &group) {
    return group.count > 1 && who_decides(group) == decided_by::heaps;
}
// Waits for a joint's turn: turn::begins or turn::continues. Expected: TY_E_BUSY, TY_E_IN_DOUBT.
ty_status take_turn(ty_group &group, bool no_wait, turn *given);
// The joint has ended, with nothing gathered of it.
void give_turn(ty_group &group);
// Whether the joint, which has its turn, is to be gathered with others. several: it has changed several heaps.
bool is_gathered(ty_group &group, bool several);
// *done false: it does not fit with the others. These are written, and it is to be committed by itself.
ty_status commit_gathered(ty_joint *joint, bool *done);
ty_status gathered_in_doubt();
void forget_gathered(ty_group &group); // which ends

} // namespace taiyen
