// Groups, and joints from their begin to their end.
//
// JO2: a joint of several heaps without agent and participants writes its number to the table of each of them, as a
// part
//     of itself, and every heap of the group takes part. So who has the number has the joint, and a heap in doubt of it
//      finds it in all others or in none that counts.
// JO3: nothing is committed before all heaps have their prepared records durably, and nobody who was told to commit is
//      ever told to roll back.
// JO4: a participant commits what the first heap has, and nothing else. That keeps the last number alone: so the next
//      joint waits until all participants know of this one.
#include "joint.hpp"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>

namespace taiyen {
namespace {

constexpr size_t past_max = 64;

// An agent's identifier that can go once the heaps cannot ask for it any more.
struct past_joint {
    char id[TY_JOINT_ID_BYTES];
    uint64_t outcomes[TY_GROUP_HEAPS_MAX]; // sequences; 0: the heap had no part in it
};

enum class joint_state : uint8_t {
    open,    // to be changed, committed, rolled back
    asking,  // the agent may have committed, or the first heap: to be asked
    decided, // it is committed, and not every heap knows
};

} // namespace
} // namespace taiyen

struct ty_group {
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
    taiyen::joint_description what;
    char id[TY_JOINT_ID_BYTES];
};

namespace taiyen {
namespace {

decided_by who_decides(const ty_group &group) {
    if (group.agent)
        return decided_by::agent;
    return group.participant_count ? decided_by::first_heap : decided_by::heaps;
}

// Numbers of threads, none of which is used again.
constinit std::atomic<uint64_t> threads{0};
thread_local uint64_t own_thread = 0;
uint64_t thread_number() {
    if (!own_thread)
        own_thread = threads.fetch_add(1, std::memory_order_relaxed) + 1;
    return own_thread;
}

// Groups with participants. Two of the same key would not know what the other one still has to tell.
constinit os::mutex groups_lock{os::lock_rank::procedures};
constinit ty_group *first_group = nullptr; // guarded by groups_lock

ty_status list_group(ty_group *group) {
    os::lock_guard guard(groups_lock);
    for (const ty_group *each = first_group; each; each = each->next)
        if (memcmp(each->key.bytes, group->key.bytes, sizeof group->key.bytes) == 0)
            return failure(TY_E_EXISTS, "make a group: there is one of these heaps with participants already")
                .remedy("use that one, in all threads, or close it first");
    group->next = first_group;
    first_group = group;
    return TY_OK;
}

void unlist_group(ty_group *group) {
    os::lock_guard guard(groups_lock);
    for (ty_group **link = &first_group; *link; link = &(*link)->next)
        if (*link == group) {
            *link = group->next;
            return;
        }
}

// ---- Groups

ty_status check_heaps(const ty_group_options &options) {
    constexpr const char *call = "make a group";
    for (size_t n = 0; n < options.heap_count; ++n) {
        if (ty_status status = txn_prepare_check(options.heaps[n], call))
            return status;
        if (strlen(image_path(options.heaps[n])) > 4096)
            return failure(TY_E_ARGUMENT, "%s: a heap's path has more than 4096 bytes", call);
        for (size_t other = 0; other < n; ++other)
            if (options.heaps[other] == options.heaps[n])
                return failure(TY_E_ARGUMENT, "%s: the heap %s is in it twice", call, image_path(options.heaps[n]))
                    .remedy("give each heap once");
    }
    return TY_OK;
}

void set_members(ty_group &group, member *members) {
    for (size_t n = 0; n < group.count; ++n) {
        members[n] = {{}, image_path(group.heaps[n]), strlen(image_path(group.heaps[n]))};
        memcpy(members[n].identity, image_identity(group.heaps[n]), sizeof members[n].identity);
        group.order[n] = static_cast<uint8_t>(n);
    }
    group.key = key_of(members, group.count, who_decides(group));
    std::sort(group.order, group.order + group.count,
              [&](uint8_t a, uint8_t b) { return group.heaps[a] < group.heaps[b]; });
}

// Durable before the group's first joint: an open that finds one in doubt must find the others.
ty_status note_group(const ty_group &group, ty_heap *heap, const member *members) {
    ty_txn *txn = nullptr;
    ty_txn_options options = TY_TXN_OPTIONS_INIT;
    bool changed = false;
    if (ty_status status = txn_begin(heap, options, &txn))
        return status;
    ty_status status = joint_provide(txn, group.key, members, static_cast<uint32_t>(group.count), &changed);
    if (!status)
        status = txn_commit(txn);
    if (!status || txn_current(heap) != txn)
        return status;
    ty_error error;
    ty_error_detail(&error);
    static_cast<void>(txn_rollback(txn));
    return ty_error_set(status, error.system_error, error.operation, error.path, error.offset, error.remedy);
}

// ---- Participants

// The first failure; the others are told all the same. told: a bit for each that need not be told any more.
ty_status tell_participants(const ty_group &group, const char *id, uint32_t whom, bool commits, uint32_t *told) {
    ty_status first = TY_OK;
    *told = 0;
    for (uint32_t n = 0; n < group.participant_count; ++n) {
        const ty_participant &one = group.participants[n];
        if (!(whom >> n & 1))
            continue;
        const ty_status status = commits ? one.commit(one.context, id) : one.rollback(one.context, id);
        if (!status)
            *told |= 1u << n;
        else if (!first)
            first = status;
    }
    return first;
}

// JO4: of a joint that the first heap has durably. That one's gate opens before its commit is stable, and then the next
// joint may begin, and owe something of its own before this one is told. So either all gates are held, or it is `only`.
ty_status pay(ty_group &group, const char *only) {
    os::lock_guard guard(group.lock);
    uint32_t told = 0;
    bool stable = false;
    if (!group.owed_to || (only && strcmp(group.owed, only) != 0))
        return TY_OK;
    if (ty_status status = txn_stable(group.heaps[0], 0, true, &stable))
        return failure(TY_E_IN_DOUBT, "tell a participant that %s is committed: that is not durable", group.owed)
            .at(image_path(group.heaps[0]))
            .remedy("mend the disk (%s), and begin again", ty_status_name(status));
    ty_status status = tell_participants(group, group.owed, group.owed_to, true, &told);
    group.owed_to &= ~told;
    return status ? failure(TY_E_IN_DOUBT, "tell a participant that %s is committed", group.owed)
                        .remedy("see that it can be reached (it says %s), and begin again", ty_status_name(status))
                  : TY_OK;
}

struct recovering {
    const ty_group *group;
    const ty_participant *participant;
    uint64_t committed; // the number of the last joint of the group
    ty_status status;

    static void settle(const char *id, void *context) {
        auto &self = *static_cast<recovering *>(context);
        uint64_t number;
        if (self.status || !joint_number_of(id, &number)) // not one of ours
            return;
        const bool commits = number == self.committed && number != 0;
        self.status = commits ? self.participant->commit(self.participant->context, id)
                              : self.participant->rollback(self.participant->context, id);
    }
};

// What participants have prepared and no process has told the end of: the first heap knows. Nobody else is in a joint
// of the group: it is not open yet, or its heap is held.
ty_status recover_participants(const ty_group &group) {
    joint_entry_1 *entry;
    ty_heap *heap = group.heaps[0];
    if (ty_status status = txn_read_begin(heap))
        return status;
    ty_status status = joint_find(heap, group.key, &entry);
    const uint64_t committed = !status && entry ? entry->number : 0;
    char prefix[TY_JOINT_ID_BYTES];
    joint_id_of({decided_by::first_heap, group.key, 0, {}}, prefix);
    prefix[joint_prefix_bytes] = 0;
    for (size_t n = 0; n < group.participant_count && !status; ++n) {
        recovering one{&group, &group.participants[n], committed, TY_OK};
        status = one.participant->recover(one.participant->context, prefix, recovering::settle, &one);
        status = status ? status : one.status;
        if (status)
            status = failure(status, "settle what a participant has prepared")
                         .remedy("see that it can be reached, and open the group again");
    }
    txn_read_end(heap);
    return status;
}

// ---- Ends of joints

void free_joint(ty_joint *joint) {
    free(joint);
}

// All of it, in memory and, where they are prepared, in the logs. What made it fail stays the thread's error.
ty_status give_up(ty_joint *joint, ty_status status) {
    ty_error error;
    ty_error_detail(&error);
    ty_group &group = *joint->group;
    for (size_t n = 0; n < group.count; ++n)
        if (joint->txns[n])
            static_cast<void>(txn_rollback(joint->txns[n]));
    uint32_t told = 0;
    const uint32_t prepared = (1u << joint->prepared_participants) - 1;
    static_cast<void>(tell_participants(group, joint->id, prepared, false, &told)); // else a recovery does
    if (group.agent)
        group.agent->rollback(group.agent->context);
    free_joint(joint);
    return error.status == status
               ? ty_error_set(status, error.system_error, error.operation, error.path, error.offset, error.remedy)
               : status;
}

// What the agent keeps for the heaps: an identifier that none of them can ask for.
const char *past_id(ty_group &group) {
    if (!group.past_count)
        return nullptr;
    for (size_t n = 0; n < group.count; ++n) {
        bool stable = true;
        const uint64_t outcome = group.past[0].outcomes[n];
        if (outcome && (txn_stable(group.heaps[n], outcome, group.past_count == past_max, &stable) || !stable))
            return nullptr;
    }
    return group.past[0].id;
}

void forget_past(ty_group &group) {
    --group.past_count;
    memmove(group.past, group.past + 1, group.past_count * sizeof group.past[0]);
}

void note_past(ty_joint *joint) {
    ty_group &group = *joint->group;
    if (group.past_count == past_max) // it could not be made stable: the agent keeps it
        forget_past(group);
    past_joint &one = group.past[group.past_count++];
    memcpy(one.id, joint->id, sizeof one.id);
    for (size_t n = 0; n < group.count; ++n)
        one.outcomes[n] = joint->sequences[n] ? joint->sequences[n] + 1 : 0; // X27: the next record
}

// It counts. A heap that cannot take the outcome keeps its transaction prepared, and is told again.
ty_status finish(ty_joint *joint) {
    ty_group &group = *joint->group;
    if (joint->state != joint_state::decided) {
        joint->state = joint_state::decided;
        if (group.agent)
            note_past(joint);
        if (group.participant_count)
            static_cast<void>(pay(group, joint->id)); // else the next begin does, or a recovery
    }
    ty_status first = TY_OK;
    for (size_t n = 0; n < group.count; ++n) {
        if (!joint->txns[n])
            continue;
        const ty_status status = txn_commit_async(joint->txns[n], nullptr);
        if (status == TY_E_IN_DOUBT) {
            first = status;
            continue;
        }
        joint->txns[n] = nullptr;
    }
    if (first)
        return failure(TY_E_IN_DOUBT, "commit a joint in all its heaps: it is decided, and one cannot be written to")
            .remedy("mend the disk and commit it again, or discard the heaps: their next opens settle it");
    free_joint(joint);
    return TY_OK;
}

// ---- The steps of a commit

size_t changed_heaps(const ty_joint *joint, size_t *which) {
    size_t count = 0;
    for (size_t n = 0; n < joint->group->count; ++n)
        if (!txn_is_empty(joint->txns[n])) {
            *which = n;
            ++count;
        }
    return count;
}

// One heap alone, or none: an ordinary commit.
ty_status commit_one(ty_joint *joint, size_t which) {
    ty_txn *&txn = joint->txns[which];
    ty_status status = txn_commit(txn);
    if (status && txn_current(joint->group->heaps[which]) == txn)
        return give_up(joint, status);
    txn = nullptr;
    return give_up(joint, status); // the others have done nothing
}

ty_status set_number(ty_joint *joint, size_t n) {
    joint_entry_1 *entry;
    if (ty_status status = joint_find(joint->group->heaps[n], joint->group->key, &entry))
        return status;
    if (!entry)
        return failure(TY_E_DAMAGED, "commit a joint: the heap does not know its group any more")
            .at(image_path(joint->group->heaps[n]))
            .remedy("leave the root %s as it is", TY_JOINT_ROOT);
    if (ty_status status = txn_declare(joint->txns[n], &entry->number, sizeof entry->number))
        return status;
    entry->number = joint->what.number;
    return TY_OK;
}

// Which heaps take part with a prepared record: all of the group where they decide together.
bool is_prepared(const ty_joint *joint, size_t n) {
    switch (joint->what.by) {
    case decided_by::heaps:
        return true;
    case decided_by::first_heap:
        return n != 0;
    case decided_by::agent:
        return !txn_is_empty(joint->txns[n]);
    }
    return true;
}

ty_status prepare_heaps(ty_joint *joint) {
    const ty_group &group = *joint->group;
    uint8_t description[description_max];
    const size_t bytes = joint_describe(joint->what, description);
    for (size_t n = 0; n < group.count; ++n) {
        const bool numbered =
            joint->what.by == decided_by::heaps || (joint->what.by == decided_by::first_heap && n == 0);
        if (ty_status status = numbered ? set_number(joint, n) : TY_OK)
            return status;
    }
    for (size_t n = 0; n < group.count; ++n)
        if (is_prepared(joint, n))
            if (ty_status status = txn_prepare_begin(joint->txns[n], description, bytes, &joint->sequences[n]))
                return status;
    return TY_OK;
}

// All at the same time: the logs' threads write all but the last, which this one writes.
ty_status await_heaps(const ty_joint *joint) {
    const ty_group &group = *joint->group;
    size_t last = group.count;
    for (size_t n = 0; n < group.count; ++n)
        last = joint->sequences[n] ? n : last;
    for (size_t n = 0; n < last && last != group.count; ++n)
        if (joint->sequences[n])
            txn_prepare_ask(group.heaps[n], joint->sequences[n]);
    for (size_t n = group.count; n-- > 0;)
        if (joint->sequences[n])
            if (ty_status status = txn_prepare_wait(group.heaps[n], joint->sequences[n]))
                return status;
    return TY_OK;
}

ty_status prepare_participants(ty_joint *joint) {
    const ty_group &group = *joint->group;
    for (size_t n = 0; n < group.participant_count; ++n) {
        const ty_participant &one = group.participants[n];
        const ty_status status = one.prepare(one.context, joint->id);
        if (!status || status == TY_E_IN_DOUBT) // it may be prepared
            joint->prepared_participants = n + 1;
        if (status)
            return failure(status == TY_E_IN_DOUBT ? TY_E_IO : status, "commit a joint: a participant cannot prepare")
                .remedy("look at what it says itself");
    }
    return TY_OK;
}

ty_status in_doubt(const ty_joint *joint, const char *whom, ty_status status) {
    return failure(TY_E_IN_DOUBT, "commit the joint %s: %s may have committed it, and does not answer (%s)", joint->id,
                   whom, ty_status_name(status))
        .remedy("commit it again when it answers, or discard the heaps: their next opens ask");
}

ty_status ask_agent(ty_joint *joint) {
    const ty_agent &agent = *joint->group->agent;
    bool committed = false;
    joint->state = joint_state::asking;
    if (ty_status status = agent.settle(agent.context, joint->id, &committed))
        return in_doubt(joint, agent.name, status);
    if (committed)
        return finish(joint);
    return give_up(joint,
                   failure(TY_E_IO, "commit a joint: %s has not committed its part", agent.name).remedy("do it again"));
}

ty_status decide_by_agent(ty_joint *joint) {
    ty_group &group = *joint->group;
    const char *done = past_id(group);
    joint->state = joint_state::asking; // from here on it may be committed
    const ty_status status = group.agent->commit(group.agent->context, joint->id, done);
    if (status == TY_E_IN_DOUBT)
        return ask_agent(joint);
    if (status)
        return give_up(joint, failure(status, "commit a joint: %s does not commit its part", group.agent->name)
                                  .remedy("look at what it says itself"));
    if (done)
        forget_past(group);
    return finish(joint);
}

void owe(ty_joint *joint) {
    ty_group &group = *joint->group;
    os::lock_guard guard(group.lock);
    memcpy(group.owed, joint->id, sizeof group.owed);
    group.owed_to = (1u << group.participant_count) - 1;
}

void owe_nothing(ty_group &group) {
    os::lock_guard guard(group.lock);
    group.owed_to = 0;
}

// Its commit is in its log, or not yet: where the write failed, that stays open until a later one succeeds.
ty_status ask_first_heap(ty_joint *joint) {
    bool stable = false;
    joint->state = joint_state::asking;
    if (ty_status status = txn_stable(joint->group->heaps[0], 0, true, &stable))
        return in_doubt(joint, image_path(joint->group->heaps[0]), status);
    return finish(joint);
}

ty_status decide_by_first_heap(ty_joint *joint) {
    ty_txn *txn = joint->txns[0];
    owe(joint); // once its gate is open another joint may begin
    const ty_status status = txn_commit(txn);
    if (status && txn_current(joint->group->heaps[0]) == txn) {
        owe_nothing(*joint->group);
        return give_up(joint, status);
    }
    joint->txns[0] = nullptr;
    return status ? ask_first_heap(joint) : finish(joint);
}

} // namespace

ty_status group_open(const ty_group_options &options, ty_group **opened) {
    if (ty_status status = check_heaps(options))
        return status;
    void *memory = calloc(1, sizeof(ty_group));
    if (!memory)
        return failure(TY_E_MEMORY, "make a group");
    auto *group = new (memory) ty_group{};
    group->count = options.heap_count;
    group->agent = options.agent ? agent_named(options.agent->name) : nullptr;
    group->participant_count = options.participant_count;
    memcpy(group->heaps, options.heaps, options.heap_count * sizeof *options.heaps);
    if (options.participant_count)
        memcpy(group->participants, options.participants, options.participant_count * sizeof *options.participants);
    member members[TY_GROUP_HEAPS_MAX];
    set_members(*group, members);
    ty_status status = group->participant_count ? list_group(group) : TY_OK;
    if (status) {
        free(group);
        return status;
    }
    if (!group->agent && (group->count > 1 || group->participant_count))
        for (size_t n = 0; n < group->count && !status; ++n)
            status = note_group(*group, group->heaps[n], members);
    if (!status && group->participant_count)
        status = recover_participants(*group);
    if (status) {
        group_close(group);
        return status;
    }
    *opened = group;
    return TY_OK;
}

void group_close(ty_group *group) {
    unlist_group(group);
    free(group);
}

ty_status joint_begin(ty_group *group, const ty_txn_options &options, ty_joint **begun) {
    auto *joint = static_cast<ty_joint *>(calloc(1, sizeof(ty_joint)));
    if (!joint)
        return failure(TY_E_MEMORY, "begin a joint");
    joint->group = group;
    joint->thread = thread_number();
    joint->what.by = who_decides(*group);
    joint->what.key = group->key;
    if (group->agent)
        strcpy(joint->what.agent, group->agent->name);
    while (!joint->what.number)
        os::random_bytes(&joint->what.number, sizeof joint->what.number);
    joint_id_of(joint->what, joint->id);
    ty_status status = TY_OK;
    for (size_t n = 0; n < group->count && !status; ++n)
        status = txn_prepare_room(group->heaps[group->order[n]], options.no_wait);
    for (size_t n = 0; n < group->count && !status; ++n)
        status = txn_begin(group->heaps[group->order[n]], options, &joint->txns[group->order[n]]);
    if (!status)
        status = pay(*group, nullptr);
    if (status) {
        ty_error error;
        ty_error_detail(&error);
        for (ty_txn *txn : joint->txns)
            if (txn)
                static_cast<void>(txn_rollback(txn));
        free_joint(joint);
        return ty_error_set(status, error.system_error, error.operation, error.path, error.offset, error.remedy);
    }
    *begun = joint;
    return TY_OK;
}

ty_txn *joint_txn(const ty_joint *joint, size_t n) {
    return n < joint->group->count ? joint->txns[n] : nullptr;
}

const char *joint_id(const ty_joint *joint) {
    return joint->id;
}

namespace {

// Another thread, or process, has other transactions on the heaps.
ty_status check_thread(const ty_joint *joint, const char *call) {
    if (ty_status status = txn_prepare_check(joint->group->heaps[0], call))
        return status;
    if (joint->thread == thread_number())
        return TY_OK;
    return failure(TY_E_ARGUMENT, "%s: it is another thread's", call).remedy("end it in the thread that began it");
}

} // namespace

ty_status joint_commit(ty_joint *joint) {
    const ty_group &group = *joint->group;
    if (ty_status status = check_thread(joint, "commit a joint"))
        return status;
    if (joint->state == joint_state::decided)
        return finish(joint);
    if (joint->state == joint_state::asking)
        return group.agent ? ask_agent(joint) : ask_first_heap(joint);
    if (joint->what.by == decided_by::heaps) {
        size_t which = 0;
        if (changed_heaps(joint, &which) <= 1)
            return commit_one(joint, which);
    }
    ty_status status = prepare_heaps(joint);
    if (!status)
        status = prepare_participants(joint);
    if (!status)
        status = await_heaps(joint);
    if (status)
        return give_up(joint, status);
    switch (joint->what.by) {
    case decided_by::heaps:
        return finish(joint);
    case decided_by::first_heap:
        return decide_by_first_heap(joint);
    case decided_by::agent:
        return decide_by_agent(joint);
    }
    return TY_OK;
}

ty_status joint_rollback(ty_joint *joint) {
    if (ty_status status = check_thread(joint, "roll back a joint"))
        return status;
    if (joint->state == joint_state::open)
        return give_up(joint, TY_OK);
    return failure(TY_E_IN_DOUBT, "roll back the joint %s: it may be committed", joint->id)
        .remedy("commit it again, or discard the heaps");
}

} // namespace taiyen
