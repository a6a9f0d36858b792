// Resolves the end of a log: a transaction in doubt, and records that no prepared one follows (X27).
#include "opening.hpp"

#include <cstring>

namespace taiyen {
namespace {

constinit std::atomic<const ty_plugin_resolver *> process_resolver{nullptr};

// NULL: no package that resolves transactions is linked.
const ty_plugin_resolver *resolver() {
    return process_resolver.load(std::memory_order_acquire);
}

bool resolver_takes(const record_view &view) {
    return resolver() && resolver()->takes(view.description, view.description_bytes);
}

bool is_of_a_package(const record_view &view) {
    constexpr size_t bytes = sizeof TY_PLUGIN_DESCRIPTION_PREFIX - 1;
    return view.description_bytes >= bytes && !memcmp(view.description, TY_PLUGIN_DESCRIPTION_PREFIX, bytes);
}

record_view last_held(const heap_opening &state) {
    record_view view{};
    const held_records &held = state.plan.held;
    if (held.count()) // it was checked when it was held
        static_cast<void>(record_inspect(held.at(held.count() - 1).bytes, held.at(held.count() - 1).size, &view));
    return view;
}

// Whether there is a callback or resolver that may know the outcome.
bool can_ask(const heap_opening &state) {
    return state.options.outcome || resolver_takes(last_held(state));
}

failure in_doubt_failure(const heap_opening &state, const char *call) {
    return failure(TY_E_IN_DOUBT, "%s: its transaction %llu is prepared, and in doubt", call,
                   (unsigned long long)state.plan.in_doubt)
        .at(state.location.path);
}

ty_status refuse_in_doubt(const heap_opening &state) {
    if (state.detaches)
        return in_doubt_failure(state, "take the log from a heap").remedy("open it as a transactional heap first");
    return in_doubt_failure(state, "open a heap")
        .remedy(
            "open it with the option outcome, which says whether it was committed; or link the library that prepared "
            "it, or use taiyen resolve, if it is part of a distributed transaction");
}

ty_in_doubt_txn in_doubt_txn_of(const heap_opening &state, bool durable) {
    const record_view view = last_held(state);
    ty_in_doubt_txn in_doubt{sizeof in_doubt,  state.heap_path,        {},     state.plan.in_doubt,
                             view.description, view.description_bytes, durable};
    memcpy(in_doubt.heap_identity, state.identity.heap, sizeof in_doubt.heap_identity);
    return in_doubt;
}

// Asks for the outcome. durable: what is in doubt is durable.
ty_status ask(heap_opening &state, ty_heap *heap, bool durable) {
    char why[256] = "open it again when its outcome is known, or resolve it by hand (taiyen resolve); now the program "
                    "does not know";
    const ty_in_doubt_txn in_doubt = in_doubt_txn_of(state, durable);
    ty_open_options options = state.options;
    if (state.beside)
        options.storage = state.beside->storage;
    state.outcome = options.outcome && !state.beside ? options.outcome(&in_doubt, options.outcome_context)
                                                     : resolver()->resolve(&in_doubt, heap, &options, why, sizeof why);
    if (state.outcome == TY_OUTCOME_COMMIT || state.outcome == TY_OUTCOME_ROLLBACK)
        return TY_OK;
    return in_doubt_failure(state, "open a heap").remedy("%s", why);
}

// X33: a heap opened for reading holds what was acknowledged. What a copy of files in use has in doubt, and an earlier
// copy had not, was prepared since; so was what a partner does not have. A transaction of the program's own is
// committed by an outcome, which would be in the log; one of a package without its resolver is unknown.
bool is_to_be_left_out(const heap_opening &state) {
    const reading_beside &beside = *state.beside;
    if (beside.only_looks || (beside.earlier && beside.earlier != state.plan.in_doubt))
        return true;
    const record_view view = last_held(state);
    return !resolver_takes(view) && (!is_of_a_package(view) || fault("acknowledged_by_a_package_left_out"));
}

void note(const heap_opening &state) {
    reading_beside &beside = *state.beside;
    beside.in_doubt = state.plan.in_doubt;
    if (!beside.only_looks)
        return;
    beside.txn = in_doubt_txn_of(state, false);
    memcpy(beside.description, beside.txn.description, beside.txn.description_bytes);
    beside.txn.description = beside.description;
}

// For a ring that has no room for what was believed, and for an outcome: flushes the file, and takes a snapshot that
// stands for the outcome. Its snapshot LSN lies after the record.
ty_status resolve_by_snapshot(heap_opening &state, txn_runtime &rt) {
    uint64_t lsn = 0;
    if (ty_status status = sink_flush(state.location.own))
        return status;
    if (ty_status status = ask(state, rt.heap, true))
        return status;
    if (state.outcome == TY_OUTCOME_COMMIT)
        if (ty_status status = replay_held(rt, state.location, state.plan))
            return status;
    return snapshot_instead(rt, false, &lsn);
}

// Appends the outcome, durably. If a snapshot stands for it, its snapshot LSN lies after the records, too.
ty_status put_outcome(txn_runtime &rt, record_outcome outcome) {
    uint64_t lsn = 0;
    ty_status status = append_outcome(rt, outcome, &lsn);
    if (status == TY_E_SPACE)
        return snapshot_instead(rt, false, &lsn);
    return status || fault("outcome_in_doubt_after_an_open") ? status : log_wait(rt.log, lsn);
}

// X28: what is in doubt is durable here before a resolver is asked for the answer that counts, and its outcome before
// the open ends. The snapshots' thread sleeps: so no snapshot can lie between the two.
ty_status resolve_in_doubt(heap_opening &state, txn_runtime &rt) {
    if (!fault("asked_before_the_prepared_record_is_durable"))
        if (ty_status status = log_wait(rt.log, state.plan.in_doubt))
            return status == TY_E_SPACE ? resolve_by_snapshot(state, rt) : status;
    if (ty_status status = ask(state, rt.heap, true))
        return status;
    const bool committed = state.outcome == TY_OUTCOME_COMMIT;
    if (committed)
        if (ty_status status = replay_held(rt, state.location, state.plan))
            return status;
    return put_outcome(rt, committed ? record_outcome::committed : record_outcome::rolled_back);
}

} // namespace

ty_status check_can_resolve(const heap_opening &state) {
    return state.plan.in_doubt && (state.detaches || !can_ask(state)) ? refuse_in_doubt(state) : TY_OK;
}

// Writes nothing if no outcome is known: such opens may be tried for long.
ty_status ask_for_outcome(heap_opening &state, ty_heap *heap) {
    return state.plan.in_doubt && !state.read_only() ? ask(state, heap, false) : TY_OK;
}

// X33: holds what was acknowledged. What is in doubt is durable before a resolver is asked for the answer that counts,
// as in an open for writing.
ty_status resolve_for_reading(heap_opening &state, txn_runtime &rt) {
    if (!state.plan.in_doubt || (fault("reading_open_leaves_out_what_is_in_doubt") && !state.beside))
        return TY_OK;
    if (state.beside) {
        note(state);
        if (is_to_be_left_out(state))
            return TY_OK;
        if (!resolver_takes(last_held(state)))
            return refuse_in_doubt(state);
    } else {
        if (!can_ask(state))
            return refuse_in_doubt(state);
        if (ty_status status = ask(state, rt.heap, false))
            return status;
        if (ty_status status = sink_flush(state.location.own))
            return status;
    }
    if (ty_status status = ask(state, rt.heap, true))
        return status;
    if (state.outcome == TY_OUTCOME_COMMIT)
        return replay_held(rt, state.location, state.plan);
    if (state.beside)
        state.outcome = TY_OUTCOME_UNKNOWN;
    return TY_OK;
}

ty_status resolve_held(heap_opening &state, txn_runtime &rt) {
    if (state.plan.in_doubt)
        return resolve_in_doubt(state, rt);
    const bool pending = state.plan.held.count() && !state.detaches && !fault("pending_records_without_an_outcome");
    return pending ? put_outcome(rt, record_outcome::rolled_back) : TY_OK;
}

void txn_set_resolver(const ty_plugin_resolver *resolver) {
    process_resolver.store(resolver, std::memory_order_release);
}

} // namespace taiyen
