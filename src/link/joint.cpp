// Joints from their begin to their end.
//
// JO2: a joint of several heaps writes its number to the table of each of them, as a part of itself, and every heap of
//      the group takes part. So who has the number has the joint; and a heap in doubt of it finds each of the others
//      with this number, or with that of the joint before: or that one is of another moment.
// JO3: nothing is committed before all heaps have their prepared records durably, and nobody who was told to commit is
//      ever told to roll back.
#include "group.hpp"

#include <cstdlib>
#include <cstring>

namespace taiyen {
namespace {

// Numbers of threads, none of which is used again.
constinit std::atomic<uint64_t> threads{0};
thread_local uint64_t own_thread = 0;

} // namespace

uint64_t thread_number() {
    if (!own_thread)
        own_thread = threads.fetch_add(1, std::memory_order_relaxed) + 1;
    return own_thread;
}

void free_joint(ty_joint *joint) {
    ty_group &group = *joint->group;
    uint64_t thread = joint->thread; // another one may have the next joint already
    group.thread.compare_exchange_strong(thread, 0, std::memory_order_relaxed);
    if (joint->in_group)
        give_turn(group);
    free(joint);
}

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
    if (joint->what.by == decided_by::agent)
        group.agent->rollback(group.agent->context);
    free_joint(joint);
    return error.status == status
               ? ty_error_set(status, error.system_error, error.operation, error.path, error.offset, error.remedy)
               : status;
}

namespace {

ty_status set_number_of(const ty_joint *joint, size_t n, const group_key &key) {
    joint_entry_3 *entry;
    if (ty_status status = joint_find(joint->group->heaps[n], key, &entry))
        return status;
    if (!entry)
        return failure(TY_E_DAMAGED, "commit a joint: the heap does not know its group any more")
            .at(image_path(joint->group->heaps[n]))
            .remedy("leave the root %s as it is", TY_JOINT_ROOT);
    static_assert(offsetof(joint_entry_3, count) == offsetof(joint_entry_3, number) + sizeof entry->number);
    if (ty_status status = txn_declare(joint->txns[n], &entry->number, sizeof entry->number + sizeof entry->count))
        return status;
    if (ty_status status = entry->apart ? txn_declare(joint->txns[n], &entry->apart, sizeof entry->apart) : TY_OK)
        return status;
    entry->number = joint->what.number;
    entry->apart = 0;
    ++entry->count;
    return TY_OK;
}

// JO7. A heap that is none of these copies has nothing of their group.
ty_status set_number_of_copied(const ty_joint *joint, size_t n, const group_moment &moment) {
    for (size_t i = 0; i < moment.copied_count; ++i) {
        joint_entry_3 *entry;
        ty_status status = joint_find(joint->group->heaps[n], moment.copied[i], &entry);
        if (!status && entry)
            status = set_number_of(joint, n, moment.copied[i]);
        if (status)
            return status;
    }
    return TY_OK;
}

} // namespace

ty_status set_number(ty_joint *joint, size_t n) {
    return set_number_of(joint, n, joint->group->key);
}

namespace {

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
        if (joint->what.by == decided_by::agent)
            note_past(joint);
        if (group.participant_count)
            static_cast<void>(pay(group, joint->id)); // else the next begin does, or a recovery
    }
    bool all = true;
    for (size_t n = 0; n < group.count; ++n) {
        if (!joint->txns[n])
            continue;
        if (txn_commit_async(joint->txns[n], nullptr) == TY_E_IN_DOUBT)
            all = false;
        else
            joint->txns[n] = nullptr;
    }
    if (!all)
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

// One heap alone, or none: an ordinary commit. Nobody waits for its write but this thread.
ty_status commit_one(ty_joint *joint, size_t which) {
    ty_heap *heap = joint->group->heaps[which];
    uint64_t sequence = 0;
    bool stable = false;
    const ty_status status = txn_commit_async(joint->txns[which], &sequence);
    if (status && txn_current(heap) == joint->txns[which])
        return give_up(joint, status);
    joint->txns[which] = nullptr;
    if (ty_status failed = give_up(joint, status)) // the others have done nothing
        return failed;
    return txn_stable(heap, sequence, true, &stable);
}

// Which heaps take part with a prepared record: all of the group where they decide together.
bool is_prepared(const ty_joint *joint, size_t n) {
    switch (joint->what.by) {
    case decided_by::heaps:
        return n == 0 || !fault("one_heap_of_a_group_prepared_alone");
    case decided_by::first_heap:
        return n != 0;
    case decided_by::agent:
        return !txn_is_empty(joint->txns[n]);
    }
    return true;
}

// JO2, JO6: all heaps have the number of each joint, whoever decides. One that has no partner needs it for participants
// alone; where an agent's transaction is all there is, the heaps have no part in it.
bool is_numbered(const ty_joint *joint) {
    size_t which = 0;
    if (joint->what.by == decided_by::agent)
        return joint->group->count > 1 && changed_heaps(joint, &which) != 0;
    return true;
}

ty_status prepare_heaps(ty_joint *joint) {
    const ty_group &group = *joint->group;
    uint8_t description[description_max];
    const size_t bytes = joint_describe(joint->what, description);
    const bool numbered = is_numbered(joint);
    for (size_t n = 0; n < group.count && numbered; ++n)
        if (ty_status status = set_number(joint, n))
            return status;
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
    owe(*joint->group, joint->id); // once its gate is open another joint may begin
    const ty_status status = txn_commit(txn);
    if (status && txn_current(joint->group->heaps[0]) == txn) {
        owe_nothing(*joint->group);
        return give_up(joint, status);
    }
    joint->txns[0] = nullptr;
    return status ? ask_first_heap(joint) : finish(joint);
}

ty_status ask(ty_joint *joint) {
    switch (joint->what.by) {
    case decided_by::heaps:
        return gathered_in_doubt();
    case decided_by::first_heap:
        return ask_first_heap(joint);
    case decided_by::agent:
        return ask_agent(joint);
    }
    return TY_OK;
}

// In an order that all groups have in common.
ty_status take_gates(ty_joint *joint, const ty_txn_options &options) {
    const ty_group &group = *joint->group;
    for (size_t n = 0; n < group.count; ++n)
        if (ty_status status = txn_prepare_room(group.heaps[group.order[n]], options.no_wait))
            return status;
    for (size_t n = 0; n < group.count; ++n)
        if (ty_status status = txn_begin(group.heaps[group.order[n]], options, &joint->txns[group.order[n]]))
            return status;
    return TY_OK;
}

ty_status enter(ty_joint *joint, const ty_txn_options &options) {
    ty_group &group = *joint->group;
    turn given = turn::begins;
    if (gathers(group)) {
        if (ty_status status = take_turn(group, options.no_wait, &given))
            return status;
        joint->in_group = true;
    }
    if (given == turn::begins)
        return take_gates(joint, options);
    for (size_t n = 0; n < group.count; ++n)
        if (ty_status status = txn_begin_next(group.heaps[n], options, &joint->txns[n]))
            return status;
    return TY_OK;
}

// Another thread, or process, has other transactions on the heaps.
ty_status check_thread(const ty_joint *joint, const char *call) {
    if (ty_status status = txn_prepare_check(joint->group->heaps[0], call))
        return status;
    if (joint->thread == thread_number())
        return TY_OK;
    return failure(TY_E_ARGUMENT, "%s: it is another thread's", call).remedy("end it in the thread that began it");
}

} // namespace

ty_status joint_begin(ty_group *group, const ty_txn_options &options, ty_joint **begun) {
    if (ty_status status = txn_refuse_in_body("begin a joint"))
        return status;
    for (size_t n = 0; n < group->count; ++n)
        if (ty_status status = txn_begin_check(group->heaps[n]))
            return status;
    auto *joint = static_cast<ty_joint *>(os::own_calloc(1, sizeof(ty_joint)));
    if (!joint)
        return failure(TY_E_MEMORY, "begin a joint").remedy("free memory, or raise the process's limits");
    joint->group = group;
    joint->thread = thread_number();
    joint->what.by = who_decides(*group);
    joint->what.key = group->key;
    if (group->agent)
        strcpy(joint->what.agent, group->agent->name);
    while (!joint->what.number)
        os::random_bytes(&joint->what.number, sizeof joint->what.number);
    joint_id_of(joint->what, joint->id);
    ty_status status = enter(joint, options);
    if (!status && !fault("joint_begins_before_participants_know_the_last"))
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
    for (size_t n = 0; n < group->count; ++n)
        txn_set_joint(joint->txns[n]);
    group->joint = joint;
    group->thread.store(joint->thread, std::memory_order_relaxed);
    *begun = joint;
    return TY_OK;
}

// JO7. It is decided by the heaps, also where an agent or participants decide on others: these have no part in it.
ty_status joint_begin_moment(ty_group *group, const group_moment &moment) {
    ty_joint *joint = nullptr;
    const ty_txn_options options = TY_TXN_OPTIONS_INIT;
    ty_status status = joint_begin(group, options, &joint);
    if (status)
        return status;
    joint->what.by = decided_by::heaps;
    for (size_t n = 0; n < group->count && !status; ++n)
        status = set_number_of_copied(joint, n, moment);
    if (!status)
        status = prepare_heaps(joint);
    if (!status)
        status = await_heaps(joint);
    if (status)
        return give_up(joint, status);
    if ((status = finish(joint))) { // it stays prepared until the heaps are discarded
        free_joint(joint);
        return status;
    }
    bool stable = false;
    for (size_t n = 0; n < group->count && !status; ++n)
        status = txn_stable(group->heaps[n], 0, true, &stable);
    return status;
}

ty_txn *joint_txn(const ty_joint *joint, size_t n) {
    return n < joint->group->count ? joint->txns[n] : nullptr;
}

const char *joint_id(const ty_joint *joint) {
    return joint->id;
}

ty_status joint_commit(ty_joint *joint) {
    const ty_group &group = *joint->group;
    if (ty_status status = check_thread(joint, "commit a joint"))
        return status;
    if (joint->state == joint_state::decided)
        return finish(joint);
    if (joint->state == joint_state::asking)
        return ask(joint);
    if (joint->what.by == decided_by::heaps) {
        size_t which = 0;
        const size_t changed = changed_heaps(joint, &which);
        bool done = false;
        if (gathers(group) && is_gathered(*joint->group, changed > 1)) {
            ty_status status = commit_gathered(joint, &done);
            if (done)
                return status;
        } else if (changed <= 1) {
            return commit_one(joint, which);
        }
    }
    ty_status status = prepare_heaps(joint);
    if (!status)
        status = prepare_participants(joint);
    if (!status && !fault("joint_decided_before_all_have_it"))
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
