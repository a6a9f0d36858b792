// Distributed transactions from their begin to their end.
//
// JO2: a distributed transaction of several heaps writes its number to the table of each of them, as a part of itself,
//     and every heap of the group takes part. So a heap that has the number has the distributed transaction; and a heap
//     in doubt of it finds each of the others with this number, or with that of the distributed transaction before;
//     otherwise the other is of another moment.
// JO3: nothing is committed before all heaps have their prepared records durably, and no heap or resource manager that
//     was notified to commit is ever notified to roll back.
#include "group.hpp"

#include <cstdlib>
#include <cstring>

namespace taiyen::twophase {
namespace {

// Numbers of threads, never reused.
constinit std::atomic<uint64_t> threads{0};
thread_local uint64_t this_thread = 0;

} // namespace

uint64_t thread_number() {
    if (!this_thread)
        this_thread = threads.fetch_add(1, std::memory_order_relaxed) + 1;
    return this_thread;
}

void free_dtxn(ty_dtxn *dtxn) {
    ty_group &group = *dtxn->group;
    uint64_t thread = dtxn->thread; // another thread may have the next distributed transaction already
    group.thread.compare_exchange_strong(thread, 0, std::memory_order_relaxed);
    if (dtxn->in_group)
        give_turn(group);
    free(dtxn);
}

ty_status give_up(ty_dtxn *dtxn, ty_status status) {
    const ty_error error = keep_error();
    ty_group &group = *dtxn->group;
    for (size_t n = 0; n < group.count; ++n)
        if (dtxn->txns[n])
            static_cast<void>(ty_plugin_rollback(dtxn->txns[n]));
    uint32_t notified = 0;
    const uint32_t prepared = (1u << dtxn->prepared_resource_managers) - 1;
    static_cast<void>(notify_resource_managers(group, dtxn->id, prepared, false, &notified)); // else a recovery does
    if (dtxn->what.by == decided_by::agent)
        group.agent->rollback(group.agent->context);
    free_dtxn(dtxn);
    return error.status == status ? report_again(error, status) : status;
}

namespace {

ty_status set_number_of(const ty_dtxn *dtxn, size_t n, const group_key &key) {
    dtxn_entry *entry;
    if (ty_status status = dtxn_find(dtxn->group->heaps[n], key, &entry))
        return status;
    if (!entry)
        return failure(TY_E_DAMAGED, "commit a distributed transaction: the heap does not know its group any more")
            .at(path_of(dtxn->group->heaps[n]))
            .remedy("leave the root %s as it is", TY_DTXN_ROOT);
    static_assert(offsetof(dtxn_entry, count) == offsetof(dtxn_entry, number) + sizeof entry->number);
    if (ty_status status = ty_declare(dtxn->txns[n], &entry->number, sizeof entry->number + sizeof entry->count))
        return status;
    if (ty_status status = entry->apart ? ty_declare(dtxn->txns[n], &entry->apart, sizeof entry->apart) : TY_OK)
        return status;
    entry->number = dtxn->what.number;
    entry->apart = 0;
    ++entry->count;
    return TY_OK;
}

// JO7: an open gives the heaps a number that no older copy has. A heap that is none of these copies has no entry of
// their group.
ty_status set_number_of_copied(const ty_dtxn *dtxn, size_t n, const group_moment &moment) {
    for (size_t i = 0; i < moment.copied_count; ++i) {
        dtxn_entry *entry;
        ty_status status = dtxn_find(dtxn->group->heaps[n], moment.copied[i], &entry);
        if (!status && entry)
            status = set_number_of(dtxn, n, moment.copied[i]);
        if (status)
            return status;
    }
    return TY_OK;
}

} // namespace

ty_status set_number(ty_dtxn *dtxn, size_t n) {
    return set_number_of(dtxn, n, dtxn->group->key);
}

namespace {

// What the agent keeps for the heaps: returns an identifier that none of them can ask for.
const char *past_id(ty_group &group) {
    if (!group.past_count)
        return nullptr;
    for (size_t n = 0; n < group.count; ++n) {
        bool durable = true;
        const uint64_t outcome = group.past[0].outcomes[n];
        if (outcome && (ty_durable(group.heaps[n], outcome, group.past_count == past_max, &durable) || !durable))
            return nullptr;
    }
    return group.past[0].id;
}

void forget_past(ty_group &group) {
    --group.past_count;
    memmove(group.past, group.past + 1, group.past_count * sizeof group.past[0]);
}

void note_past(ty_dtxn *dtxn) {
    ty_group &group = *dtxn->group;
    if (group.past_count == past_max) // it could not be made durable: the agent keeps it
        forget_past(group);
    past_dtxn &one = group.past[group.past_count++];
    memcpy(one.id, dtxn->id, sizeof one.id);
    for (size_t n = 0; n < group.count; ++n)
        one.outcomes[n] = dtxn->lsns[n] ? dtxn->lsns[n] + 1 : 0; // X27: the outcome is the next record
}

// The distributed transaction is decided. A heap that cannot take the outcome keeps its transaction prepared, and gets
// the outcome again later.
ty_status finish(ty_dtxn *dtxn) {
    ty_group &group = *dtxn->group;
    if (dtxn->state != dtxn_state::decided) {
        dtxn->state = dtxn_state::decided;
        if (dtxn->what.by == decided_by::agent)
            note_past(dtxn);
        if (group.resource_manager_count)
            static_cast<void>(pay(group, dtxn->id)); // if it fails, the next begin does it, or a recovery
    }
    bool all = true;
    for (size_t n = 0; n < group.count; ++n) {
        if (!dtxn->txns[n])
            continue;
        if (ty_plugin_commit_async(dtxn->txns[n], nullptr) == TY_E_IN_DOUBT)
            all = false;
        else
            dtxn->txns[n] = nullptr;
    }
    if (!all)
        return failure(TY_E_IN_DOUBT,
                       "commit a distributed transaction in all its heaps: it is decided, and one cannot be written to")
            .remedy("repair the disk and commit it again, or discard the heaps: their next opens resolve it");
    free_dtxn(dtxn);
    return TY_OK;
}

// ---- The steps of a commit

size_t changed_heaps(const ty_dtxn *dtxn, size_t *which) {
    size_t count = 0;
    for (size_t n = 0; n < dtxn->group->count; ++n)
        if (!ty_plugin_is_empty(dtxn->txns[n])) {
            *which = n;
            ++count;
        }
    return count;
}

// One heap alone, or none: an ordinary commit. Only this thread waits for its write.
ty_status commit_one(ty_dtxn *dtxn, size_t which) {
    ty_heap *heap = dtxn->group->heaps[which];
    uint64_t lsn = 0;
    bool durable = false;
    const ty_status status = ty_plugin_commit_async(dtxn->txns[which], &lsn);
    if (status && ty_current_txn(heap) == dtxn->txns[which])
        return give_up(dtxn, status);
    dtxn->txns[which] = nullptr;
    if (ty_status failed = give_up(dtxn, status)) // the others have done nothing
        return failed;
    return ty_durable(heap, lsn, true, &durable);
}

// Which heaps take part with a prepared record: all of the group if they decide together.
bool is_prepared(const ty_dtxn *dtxn, size_t n) {
    switch (dtxn->what.by) {
    case decided_by::heaps:
        return n == 0 || !fault("one_heap_of_a_group_prepared_alone");
    case decided_by::first_heap:
        return n != 0;
    case decided_by::agent:
        return !ty_plugin_is_empty(dtxn->txns[n]);
    }
    return true;
}

// JO2, JO6: all heaps have the number of each distributed transaction, whoever decides. A heap without partners needs
// it for resource managers alone; if only the agent's transaction has changed something, the heaps have no part in it.
bool is_numbered(const ty_dtxn *dtxn) {
    size_t which = 0;
    if (dtxn->what.by == decided_by::agent)
        return dtxn->group->count > 1 && changed_heaps(dtxn, &which) != 0;
    return true;
}

ty_status prepare_heaps(ty_dtxn *dtxn) {
    const ty_group &group = *dtxn->group;
    uint8_t description[TY_PLUGIN_DESCRIPTION_BYTES_MAX];
    const size_t bytes = dtxn_describe(dtxn->what, description);
    const bool numbered = is_numbered(dtxn);
    for (size_t n = 0; n < group.count && numbered; ++n)
        if (ty_status status = set_number(dtxn, n))
            return status;
    for (size_t n = 0; n < group.count; ++n)
        if (is_prepared(dtxn, n))
            if (ty_status status = ty_plugin_prepare(dtxn->txns[n], description, bytes, &dtxn->lsns[n]))
                return status;
    return TY_OK;
}

// All at the same time: the logs' threads write all but the last, which this thread writes.
ty_status await_heaps(const ty_dtxn *dtxn) {
    const ty_group &group = *dtxn->group;
    size_t last = group.count;
    for (size_t n = 0; n < group.count; ++n)
        last = dtxn->lsns[n] ? n : last;
    for (size_t n = 0; n < last && last != group.count; ++n)
        if (dtxn->lsns[n])
            ty_plugin_prepare_ask(group.heaps[n], dtxn->lsns[n]);
    for (size_t n = group.count; n-- > 0;)
        if (dtxn->lsns[n])
            if (ty_status status = ty_plugin_prepare_wait(group.heaps[n], dtxn->lsns[n]))
                return status;
    return TY_OK;
}

ty_status prepare_resource_managers(ty_dtxn *dtxn) {
    const ty_group &group = *dtxn->group;
    for (size_t n = 0; n < group.resource_manager_count; ++n) {
        const ty_resource_manager &one = group.resource_managers[n];
        const ty_status status = one.prepare(one.context, dtxn->id);
        if (!status || status == TY_E_IN_DOUBT) // it may be prepared
            dtxn->prepared_resource_managers = n + 1;
        if (status)
            return failure(status == TY_E_IN_DOUBT ? TY_E_IO : status,
                           "commit a distributed transaction: a resource manager cannot prepare")
                .remedy("look at what it says itself");
    }
    return TY_OK;
}

ty_status in_doubt(const ty_dtxn *dtxn, const char *whom, ty_status status) {
    return failure(TY_E_IN_DOUBT,
                   "commit the distributed transaction %s: %s may have committed it, and does not answer (%s)",
                   dtxn->id, whom, ty_status_name(status))
        .remedy("commit it again when it answers, or discard the heaps: their next opens ask");
}

ty_status ask_agent(ty_dtxn *dtxn) {
    const ty_last_agent &agent = *dtxn->group->agent;
    bool committed = false;
    dtxn->state = dtxn_state::asking;
    if (ty_status status = agent.resolve(agent.context, dtxn->id, &committed))
        return in_doubt(dtxn, agent.name, status);
    if (committed)
        return finish(dtxn);
    return give_up(dtxn, failure(TY_E_IO, "commit a distributed transaction: %s has not committed its part", agent.name)
                             .remedy("do it again"));
}

ty_status decide_by_agent(ty_dtxn *dtxn) {
    ty_group &group = *dtxn->group;
    const char *done = past_id(group);
    dtxn->state = dtxn_state::asking; // from here on it may be committed
    const ty_status status = group.agent->commit(group.agent->context, dtxn->id, done);
    if (status == TY_E_IN_DOUBT)
        return ask_agent(dtxn);
    if (status)
        return give_up(
            dtxn, failure(status, "commit a distributed transaction: %s does not commit its part", group.agent->name)
                      .remedy("look at what it says itself"));
    if (done)
        forget_past(group);
    return finish(dtxn);
}

// Its commit is in its log, or not yet: if the write failed, that stays open until a later one succeeds.
ty_status ask_first_heap(ty_dtxn *dtxn) {
    bool durable = false;
    dtxn->state = dtxn_state::asking;
    if (ty_status status = ty_durable(dtxn->group->heaps[0], 0, true, &durable))
        return in_doubt(dtxn, path_of(dtxn->group->heaps[0]), status);
    return finish(dtxn);
}

ty_status decide_by_first_heap(ty_dtxn *dtxn) {
    ty_txn *txn = dtxn->txns[0];
    owe(*dtxn->group, dtxn->id); // once its reader-writer lock is open another distributed transaction may begin
    const ty_status status = ty_plugin_commit(txn);
    if (status && ty_current_txn(dtxn->group->heaps[0]) == txn) {
        owe_nothing(*dtxn->group);
        return give_up(dtxn, status);
    }
    dtxn->txns[0] = nullptr;
    return status ? ask_first_heap(dtxn) : finish(dtxn);
}

ty_status ask(ty_dtxn *dtxn) {
    switch (dtxn->what.by) {
    case decided_by::heaps:
        return grouped_in_doubt();
    case decided_by::first_heap:
        return ask_first_heap(dtxn);
    case decided_by::agent:
        return ask_agent(dtxn);
    }
    return TY_OK;
}

// In an order that all groups share.
ty_status take_rwlocks(ty_dtxn *dtxn, const ty_txn_options &options) {
    const ty_group &group = *dtxn->group;
    for (size_t n = 0; n < group.count; ++n)
        if (ty_status status = ty_plugin_make_prepare_room(group.heaps[group.order[n]], options.no_wait))
            return status;
    for (size_t n = 0; n < group.count; ++n)
        if (ty_status status = ty_begin(group.heaps[group.order[n]], &options, &dtxn->txns[group.order[n]]))
            return status;
    return TY_OK;
}

ty_status enter(ty_dtxn *dtxn, const ty_txn_options &options) {
    ty_group &group = *dtxn->group;
    turn given = turn::begins;
    if (gathers(group)) {
        if (ty_status status = take_turn(group, options.no_wait, &given))
            return status;
        dtxn->in_group = true;
    }
    if (given == turn::begins)
        return take_rwlocks(dtxn, options);
    for (size_t n = 0; n < group.count; ++n)
        if (ty_status status = ty_plugin_begin_next(group.heaps[n], &options, &dtxn->txns[n]))
            return status;
    return TY_OK;
}

// Another thread, or process, has other transactions on the heaps.
ty_status check_thread(const ty_dtxn *dtxn, const char *call) {
    if (ty_status status = ty_plugin_check_prepare(dtxn->group->heaps[0], call))
        return status;
    if (dtxn->thread == thread_number())
        return TY_OK;
    return failure(TY_E_ARGUMENT, "%s: it is another thread's", call).remedy("end it in the thread that began it");
}

} // namespace

ty_status dtxn_begin(ty_group *group, const ty_txn_options &options, ty_dtxn **begun) {
    if (ty_status status = ty_plugin_refuse_in_body("begin a distributed transaction"))
        return status;
    for (size_t n = 0; n < group->count; ++n)
        if (ty_status status = ty_plugin_check_begin(group->heaps[n], &options))
            return status;
    auto *dtxn = static_cast<ty_dtxn *>(ty_plugin_malloc(sizeof(ty_dtxn)));
    if (!dtxn)
        return no_memory("begin a distributed transaction");
    memset(static_cast<void *>(dtxn), 0, sizeof *dtxn);
    dtxn->group = group;
    dtxn->thread = thread_number();
    dtxn->what.by = decider_of(*group);
    dtxn->what.key = group->key;
    if (group->agent)
        strcpy(dtxn->what.agent, group->agent->name);
    while (!dtxn->what.number)
        random_bytes(&dtxn->what.number, sizeof dtxn->what.number);
    dtxn_id_of(dtxn->what, dtxn->id);
    ty_status status = enter(dtxn, options);
    if (!status && !fault("dtxn_begins_before_resource_managers_know_the_last"))
        status = pay(*group, nullptr);
    if (status) {
        const ty_error error = keep_error();
        for (ty_txn *txn : dtxn->txns)
            if (txn)
                static_cast<void>(ty_plugin_rollback(txn));
        free_dtxn(dtxn);
        return report_again(error, status);
    }
    for (size_t n = 0; n < group->count; ++n)
        ty_plugin_take_txn(dtxn->txns[n]);
    group->dtxn = dtxn;
    group->thread.store(dtxn->thread, std::memory_order_relaxed);
    *begun = dtxn;
    return TY_OK;
}

// JO7: an open gives the heaps a number that no older copy has. The heaps decide, also where an agent or resource
// managers decide on other distributed transactions: those have no part in it.
ty_status dtxn_begin_moment(ty_group *group, const group_moment &moment) {
    ty_dtxn *dtxn = nullptr;
    const ty_txn_options options = TY_TXN_OPTIONS_INIT;
    ty_status status = dtxn_begin(group, options, &dtxn);
    if (status)
        return status;
    dtxn->what.by = decided_by::heaps;
    for (size_t n = 0; n < group->count && !status; ++n)
        status = set_number_of_copied(dtxn, n, moment);
    if (!status)
        status = prepare_heaps(dtxn);
    if (!status)
        status = await_heaps(dtxn);
    if (status)
        return give_up(dtxn, status);
    if ((status = finish(dtxn))) { // it stays prepared until the heaps are discarded
        free_dtxn(dtxn);
        return status;
    }
    bool durable = false;
    for (size_t n = 0; n < group->count && !status; ++n)
        status = ty_durable(group->heaps[n], 0, true, &durable);
    return status;
}

ty_txn *dtxn_txn(const ty_dtxn *dtxn, size_t n) {
    return n < dtxn->group->count ? dtxn->txns[n] : nullptr;
}

const char *dtxn_id(const ty_dtxn *dtxn) {
    return dtxn->id;
}

ty_status dtxn_commit(ty_dtxn *dtxn) {
    const ty_group &group = *dtxn->group;
    if (ty_status status = check_thread(dtxn, "commit a distributed transaction"))
        return status;
    if (dtxn->state == dtxn_state::decided)
        return finish(dtxn);
    if (dtxn->state == dtxn_state::asking)
        return ask(dtxn);
    if (dtxn->what.by == decided_by::heaps) {
        size_t which = 0;
        const size_t changed = changed_heaps(dtxn, &which);
        bool done = false;
        if (gathers(group) && is_grouped(*dtxn->group, changed > 1)) {
            ty_status status = commit_grouped(dtxn, &done);
            if (done)
                return status;
        } else if (changed <= 1) {
            return commit_one(dtxn, which);
        }
    }
    ty_status status = prepare_heaps(dtxn);
    if (!status)
        status = prepare_resource_managers(dtxn);
    if (!status && !fault("dtxn_decided_before_all_have_it"))
        status = await_heaps(dtxn);
    if (status)
        return give_up(dtxn, status);
    switch (dtxn->what.by) {
    case decided_by::heaps:
        return finish(dtxn);
    case decided_by::first_heap:
        return decide_by_first_heap(dtxn);
    case decided_by::agent:
        return decide_by_agent(dtxn);
    }
    return TY_OK;
}

ty_status dtxn_rollback(ty_dtxn *dtxn) {
    if (ty_status status = check_thread(dtxn, "roll back a distributed transaction"))
        return status;
    if (dtxn->state == dtxn_state::open)
        return give_up(dtxn, TY_OK);
    return failure(TY_E_IN_DOUBT, "roll back the distributed transaction %s: it may be committed", dtxn->id)
        .remedy("commit it again, or discard the heaps");
}

} // namespace taiyen::twophase
