// Opening heaps of every kind that has files: those with a log are replayed to its end. docs/design/txn.md, "Open,
// attach, detach, close".
#include "follow.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

namespace taiyen {

namespace {

bool is_transactional(ty_heap *heap) {
    return runtime_of(heap) != nullptr;
}

bool is_concurrent(ty_heap *heap) {
    return runtime_of(heap)->concurrent != nullptr;
}

constexpr plain_calls calls_of_transactions = {
    is_transactional,  is_concurrent, txn_current,         txn_alloc,      txn_alloc_at,
    txn_free,          txn_resize,    txn_resize_in_place, txn_root_set,   txn_note_scoped,
    txn_resize_scoped, txn_is_kept,   txn_free_kept,       txn_resize_kept};

// streams: the number until now, used if the options give none.
void want_log(heap_opening &state, uint32_t streams, image_log_choice *choice) {
    os::random_bytes(&state.identity.log, sizeof state.identity.log);
    state.identity.log |= 1; // not 0
    state.makes = true;
    state.shape.streams = state.options.log_streams ? state.options.log_streams : streams;
    *choice = {state.identity.log, state.shape.streams};
}

// Starts an empty log: nothing is read.
void begin_log(heap_opening &state, uint64_t lsn, uint32_t streams) {
    state.from = positions_at_begin(lsn, streams);
    state.plan.contents.end = state.plan.contents.tail = state.from;
    state.plan.contents.highest = lsn;
}

// The heap was closed cleanly, and its log is missing, or is one that an open had created when it crashed before the
// header named it.
void replace_log(heap_opening &state, const image_log &recorded, bool missing, uint64_t other,
                 image_log_choice *choice) {
    const uint32_t streams = static_cast<uint32_t>(recorded.redo_point.count), wanted = state.options.log_streams;
    begin_log(state, recorded.redo_point.lsn, wanted ? wanted : streams);
    if (state.read_only()) {
        log_location_destroy(state.location); // nothing to read
        return;
    }
    if (state.options.kind == TY_SNAPSHOT) { // it need not be created only to be removed
        log_location_destroy(state.location);
        state.dropped = true;
        *choice = {};
        return;
    }
    const uint32_t there = missing ? 0 : state.found.streams;
    state.recreated = !state.relaid_out;
    if (missing || (wanted && wanted != there)) {
        want_log(state, streams, choice);
        return;
    }
    begin_log(state, recorded.redo_point.lsn, there);
    state.identity.log = other;
    *choice = {other, there};
}

// Whether the log is to get another number of log streams.
bool is_to_be_reshaped(const heap_opening &state) {
    return !state.read_only() && state.options.kind != TY_SNAPSHOT && state.options.log_streams &&
           state.options.log_streams != state.found.streams;
}

ty_status reshape_log(heap_opening &state, const image_log &recorded, image_log_choice *choice) {
    const uint32_t streams = state.found.streams;
    if (!recorded.closed)
        return failure(TY_E_UNSUPPORTED, "open a log of %u log stream%s as one of %u: the heap was not closed in order",
                       streams, plural(streams), state.options.log_streams)
            .at(state.location.path)
            .remedy("open it without the option log_streams and close it first");
    const uint64_t bytes = state.location.sink->size_bytes;
    const uint64_t least = log_bytes_min(state.location.sink->block_bytes, state.options.log_streams);
    if (bytes < least)
        return failure(TY_E_ARGUMENT, "open a log of %llu bytes as one of %u log streams", (unsigned long long)bytes,
                       state.options.log_streams)
            .at(state.location.path)
            .remedy("that takes %llu bytes; open the heap as TY_SNAPSHOT, then as TY_TRANSACTIONAL with log_bytes",
                    (unsigned long long)least);
    state.relaid_out = true;
    state.shape.bytes = bytes;
    replace_log(state, recorded, true, 0, choice);
    return TY_OK;
}

// The image does the same with its counters.
ty_status check_counters(const heap_opening &state) {
    const log_header &header = state.found;
    const log_contents &contents = state.plan.contents;
    uint64_t highest = std::max({header.number, header.open.number, contents.highest});
    for (uint32_t p = 0; p < contents.end.count; ++p)
        highest = std::max(highest, contents.end.at[p].offset);
    if (highest <= counter_begin_max)
        return TY_OK;
    return failure(TY_E_DAMAGED, "write to a heap with a number that no heap comes to, in its log")
        .at(state.location.path)
        .remedy("open it read-only, check what it holds, and copy that to another heap");
}

// Finds the log of a heap that has one: its content is known afterwards, or the open is refused.
ty_status find_log(heap_opening &state, const image_log &recorded, image_log_choice *choice) {
    log_fit fit = log_fit::fits;
    uint64_t other = 0;
    ty_status status =
        log_location_find(state.location, state.identity, recorded, !state.read_only(), &state.found, &fit, &other);
    if (status)
        return status;
    if (fit != log_fit::fits) {
        replace_log(state, recorded, fit != log_fit::unused, other, choice);
        return TY_OK;
    }
    if (is_to_be_reshaped(state))
        return reshape_log(state, recorded, choice);
    state.detaches = state.options.kind == TY_SNAPSHOT && !state.read_only();
    if ((status = replay_scan(state.location, state.identity, state.from, recorded, {state.threads()}, &state.plan)))
        return status;
    if (ty_status resolves = state.read_only() ? TY_OK : check_can_resolve(state))
        return resolves;
    return state.read_only() ? replay_check_fits(state.location, state.plan) : check_counters(state);
}

// LK7: nobody else writes to a heap that receives; without a log anybody could.
ty_status check_may_detach(const heap_opening &state) {
    if (state.read_only() || state.options.kind != TY_SNAPSHOT || !state.receives)
        return TY_OK;
    return failure(TY_E_PERMISSION, "take the log from a heap that receives the transactions of another one")
        .at(state.heap_path)
        .remedy("open it as a transactional heap, and call ty_promote first");
}

ty_status check_log(void *context, const image_log &recorded, bool created, image_log_choice *choice) {
    auto &state = *static_cast<heap_opening *>(context);
    if (state.options.mark != nullptr) // it has what was committed before it
        return TY_OK;
    memcpy(state.identity.heap, recorded.heap_identity, sizeof state.identity.heap);
    state.identity.log = recorded.log_identity;
    state.location.image = recorded.image;
    if (!state.read_only())
        if (ty_status status = state.buffer.create(log_name_bytes))
            return status;
    state.receives = recorded.source.state == uint64_t(source_state::receives);
    state.named = recorded.open;
    state.from = recorded.redo_point;
    if (ty_status status = check_may_detach(state))
        return status;
    if (state.follows()) // its log is read beside the writer
        return TY_OK;
    const bool alone = !state.options.shared, raises = state.options.limit_bytes > recorded.limit_bytes;
    if (!state.read_only() && !created && (alone || raises))
        if (ty_status status =
                check_not_shared(*state.options.storage, state.heap_path, alone ? TY_E_BUSY : TY_E_UNSUPPORTED,
                                 alone ? "open a heap for this process alone" : "raise a heap's limit"))
            return status;
    if (recorded.log_identity)
        return find_log(state, recorded, choice);
    if (!created && !fault("image_from_before_its_log_accepted"))
        if (ty_status status = log_location_check_not_newer(state.location, recorded))
            return status;
    if (state.options.kind != TY_TRANSACTIONAL || state.read_only())
        return TY_OK;
    if (recorded.service_word && recorded.service_word != reservations_magic)
        return failure(TY_E_UNSUPPORTED, "open a heap with undo buffers as a transactional one")
            .at(state.heap_path)
            .remedy("open it as a snapshot heap and call ty_undo_detach with keep_history false");
    if (ty_status status = log_location_check(state.location, state.identity))
        return status;
    state.attached = !created;
    want_log(state, 1, choice);
    begin_log(state, recorded.redo_point.lsn, state.shape.streams);
    return TY_OK;
}

ty_status make_log(void *context) {
    auto &state = *static_cast<heap_opening *>(context);
    if (!state.makes)
        return state.location.sink ? log_location_make_durable(state.location, state.found) : TY_OK;
    if (ty_status status = log_location_make(state.location, state.identity, state.named, state.shape))
        return status;
    state.made = !state.options.log;
    return TY_OK;
}

ty_status name_open(void *context, const open_identity &previous, const open_identity &open) {
    auto &state = *static_cast<heap_opening *>(context);
    return log_location_name_open(state.location, state.identity, previous, open, state.buffer);
}

txn_runtime *runtime_create(const heap_opening &state, ty_heap *heap) {
    void *memory = nullptr;
    if (os::map_memory(sizeof(txn_runtime), os::memory_hint::none, &memory))
        return nullptr;
    auto *rt = new (memory) txn_runtime{};
    const ty_open_options &options = state.options;
    heap_words words = heap_block_words(heap);
    rt->heap = heap;
    rt->base = static_cast<char *>(heap_base(heap));
    rt->user_first_word = words.first;
    rt->user_end_word = words.end;
    rt->stores.store(options.track_stores ? TY_STORES_TRACKED : TY_STORES_DECLARED, std::memory_order_relaxed);
    rt->check_stores = options.check_stores;
    rt->threads = state.threads();
    rt->has_work = runtime_has_work;
    rt->end = runtime_end;
    rt->undeclared_write = options.undeclared_write;
    rt->undeclared_store_context = options.undeclared_store_context;
    rt->snapshot_dirty_bytes = options.snapshot_dirty_bytes;
    rt->memory_bytes = options.memory_bytes;
    rt->snapshot_interval_ms = options.snapshot_interval_ms;
    image_set_client(heap, rt);
    transactional_calls.store(&calls_of_transactions, std::memory_order_relaxed);
    transactional_heaps.fetch_add(1, std::memory_order_relaxed);
    return rt;
}

// Creates what replay uses, and everything after it.
ty_status make_parts(txn_runtime &rt) {
    if (ty_status status = rt.fork.start())
        return status;
    if (ty_status status = thread_ends_add(rt))
        return status;
    if (ty_status status = reservations_create(rt))
        return status;
    if (ty_status status = transaction_create(rt))
        return status;
    image_set_pages_being_written(rt.heap, reservations_add_pages, &rt);
    return TY_OK;
}

// Brings the heap's memory to the log's end.
ty_status replay(heap_opening &state, txn_runtime &rt) {
    state.replayed = true;
    uint64_t started_ns = os::now_ns();
    if (ty_status status = replay_run(rt, state.location, state.identity, state.from, !state.read_only(), state.plan))
        return status;
    state.replay_ns = os::now_ns() - started_ns;
    rt.metrics.replay_ns.add(state.replay_ns);
    rt.metrics.replayed_transactions.add(state.plan.contents.records);
    rt.metrics.replayed_bytes.add(state.plan.contents.record_bytes);
    return TY_OK;
}

ty_status start_log(heap_opening &state, txn_runtime &rt) {
    log_options options{};
    options.sink = state.location.sink;
    options.name = state.location.path;
    options.identity = state.identity;
    options.start = state.from;
    options.end = state.plan.contents.end;
    options.tail = state.plan.contents.tail;
    options.highest = state.plan.contents.highest;
    options.thread = rt.threads;
    options.check = [](void *heap) { return image_check_files(static_cast<ty_heap *>(heap)); };
    options.context = rt.heap;
    taiyen::log *log = nullptr;
    if (ty_status status = log_start(options, &log))
        return status;
    rt.log = log;
    if (ty_status status = snapshots_create(rt))
        return status;
    if (!state.options.concurrent)
        return TY_OK;
    concurrent_heap *made = nullptr;
    if (ty_status status = concurrent_create(rt.heap, &rt, &made))
        return status;
    rt.concurrent = made;
    return TY_OK;
}

// From here on the open cannot fail any more, except in make_streams_durable.
void hand_over(heap_opening &state, txn_runtime &rt) {
    if (state.plan.has_snapshot)
        log_release(rt.log, state.plan.snapshot);
    rt.sink = state.location.sink;
    rt.internal_sink = state.location.own;
    rt.log_path = state.location.path;
    rt.log_elsewhere = state.options.log_path && !state.options.log;
    state.location = {};
    rt.receives.store(state.receives, std::memory_order_relaxed);
    snapshots_begin(rt);
}

// X21: nothing that the open read is in doubt when it returns. What was left out of the log lies before the checkpoint
// LSN of a durable snapshot before anything is appended; so do independent records that were taken without those before
// them. And what was believed is durable in all log streams, since a commit may wait for its own alone.
ty_status make_streams_durable(const heap_opening &state, txn_runtime &rt) {
    const log_contents &contents = state.plan.contents;
    uint64_t epoch = 0;
    if (contents.end.count == 1)
        return TY_OK;
    if (contents.left_out == 0 && (contents.after_gap == 0 || fault("no_snapshot_after_independent_records")))
        return fault("believed_records_not_made_durable") ? TY_OK : make_durable(rt, log_last(rt.log));
    ty_status status = txn_snapshot_start(rt.heap, &epoch);
    return status ? status : txn_snapshot_wait(rt.heap, epoch);
}

// Everything is in a snapshot before the header says that there is no log; only then is the log removed.
ty_status detach(heap_opening &state, txn_runtime &rt) {
    uint64_t epoch = 0;
    if (ty_status status = image_snapshot_start(rt.heap, &state.plan.contents.end, nullptr, &epoch))
        return status;
    if (ty_status status = image_snapshot_wait(rt.heap, epoch))
        return status;
    if (ty_status status = image_detach_log(rt.heap))
        return status;
    const ty_storage &storage = *state.options.storage;
    if (!state.options.log)
        (void)os::call_whole(storage.remove, storage.context, state.location.path); // one that stays does not matter
    runtime_destroy(rt);
    return TY_OK;
}

// Does everything that may fail for want of memory or threads, if possible before the files are changed (I7: an open
// that is refused has changed nothing). A replay that takes snapshots on its way must wait.
ty_status start(void *context, ty_heap *heap) {
    auto &state = *static_cast<heap_opening *>(context);
    state.heap = heap;
    txn_runtime *rt = state.again ? state.again : runtime_create(state, heap);
    if (!rt)
        return TY_E_MEMORY;
    if (ty_status status = state.again ? TY_OK : make_parts(*rt))
        return status;
    if (state.follows())
        return TY_OK;
    if (ty_status status = reservations_recover(*rt))
        return status;
    if (state.read_only() || !replay_takes_snapshots(*rt, state.plan))
        if (ty_status status = replay(state, *rt))
            return status;
    return state.read_only() || state.detaches ? TY_OK : start_log(state, *rt);
}

// The compatibility check; for a heap with a log, once its records are replayed.
ty_status validate_heap(void *context, ty_heap *heap) {
    auto &state = *static_cast<heap_opening *>(context);
    if (state.identity.log && !state.replayed)
        return TY_OK;
    if (ty_status status = ask_for_outcome(state, heap))
        return status;
    if (!state.validator || state.receives)
        return TY_OK;
    return state.validator->validate(state.validator->context, heap);
}

ty_status finish_follower(heap_opening &state, ty_heap **heap) {
    if (state.options.shared && image_kind(*heap) != TY_TRANSACTIONAL)
        return failure(TY_E_BUSY, "share a heap that another process has open as a snapshot heap")
            .at(state.heap_path)
            .remedy("close it there");
    if (image_kind(*heap) == TY_TRANSACTIONAL && !state.options.shared)
        if (ty_status status = image_freeze(heap))
            return status;
    txn_runtime *rt = runtime_of(*heap);
    if (!rt) { // of a snapshot heap, for its read sections
        if (!(rt = runtime_create(state, *heap)))
            return TY_E_MEMORY;
        if (ty_status status = make_parts(*rt))
            return status;
    }
    rt->heap = *heap;
    if (ty_status status = follow_begin(state, *heap, *rt))
        return status;
    state.replayed = true;
    if (ty_status status = state.options.shared ? sharing_join(state, *rt) : TY_OK)
        return status;
    return validate_heap(&state, *heap);
}

// From the result of the image's open to a heap that can be used.
ty_status finish_open(heap_opening &state, ty_heap **heap) {
    txn_runtime &rt = *runtime_of(*heap);
    if (state.follows())
        return finish_follower(state, heap);
    if (!state.replayed) {
        if (ty_status status = replay(state, rt))
            return status;
        if (ty_status status = validate_heap(&state, *heap))
            return status;
    }
    if (!state.read_only())
        if (ty_status status = resolve_held(state, rt))
            return status;
    if (state.detaches)
        return detach(state, rt);
    if (!state.read_only()) {
        hand_over(state, rt);
        return make_streams_durable(state, rt);
    }
    if (ty_status status = resolve_for_reading(state, rt))
        return status;
    if (ty_status status = image_freeze(heap))
        return status;
    rt.heap = *heap;
    const log_contents &contents = state.plan.contents;
    rt.holds = {state.identity, state.named, contents.end,
                contents.left_out == 0 && contents.after_gap == 0 && state.plan.held.count() == 0,
                state.beside && state.beside->storage};
    return TY_OK;
}

void add_to_report(const heap_opening &state, ty_heap *heap, ty_report &report) {
    const log_contents &contents = state.plan.contents;
    report.kind = image_kind(heap);
    report.log_attached = state.attached;
    report.log_detached = state.detaches;
    report.log_recreated = state.recreated;
    report.replayed_transactions = contents.records;
    report.replayed_bytes = contents.record_bytes;
    const bool resolved = state.plan.held.count() && !state.read_only() && !state.detaches;
    report.lsn = resolved ? log_last(runtime_of(heap)->log) : contents.highest; // an outcome has an LSN
    report.in_doubt = state.plan.in_doubt;
    report.outcome = state.outcome;
    report.duration_ns = os::now_ns() - state.started_ns;
    char replayed[64] = "", left_out[80] = "", in_doubt[96] = "";
    static constexpr const char *outcomes[] = {"was left out", "was committed", "was rolled back"};
    if (state.plan.in_doubt)
        snprintf(in_doubt, sizeof in_doubt, "; a transaction in doubt %s", outcomes[state.outcome]);
    else if (state.plan.held.count())
        snprintf(in_doubt, sizeof in_doubt, "; %u of distributed transactions not acknowledged left out",
                 state.plan.held.count());
    if (contents.records)
        snprintf(replayed, sizeof replayed, "; %llu transaction%s replayed from the log",
                 (unsigned long long)contents.records, plural(contents.records));
    if (contents.left_out)
        snprintf(left_out, sizeof left_out, "; %llu not acknowledged left out, after one that is missing",
                 (unsigned long long)contents.left_out);
    size_t length = strlen(report.text);
    snprintf(report.text + length, sizeof report.text - length, "%s%s%s%s%s%s%s", replayed, left_out, in_doubt,
             state.attached ? "; a log was attached" : "", state.detaches ? "; the log was detached" : "",
             state.recreated ? "; the log was missing or old, and not needed" : "",
             state.relaid_out ? "; the log was made anew with other log streams" : "");
}

void add_dropped_log(const heap_opening &state, ty_report &report) {
    report.log_detached = true;
    report.lsn = state.plan.contents.highest;
    const size_t length = strlen(report.text);
    snprintf(report.text + length, sizeof report.text - length,
             "; the log was missing or old, and not needed: it was detached");
}

// Whether certainly no heap names the log that was created.
bool no_header_names(const heap_opening &state) {
    ty_info info{};
    ty_status status =
        image_read_info(state.heap_path, *state.options.storage, &info, nullptr, state.options.journal_path);
    return status == TY_E_NOT_FOUND || (!status && info.log_identity != state.identity.log);
}

void give_up_runtime(ty_heap *heap) {
    if (txn_runtime *rt = runtime_of(heap))
        runtime_destroy(*rt);
}

// After a failure: removes what the open had created, and nothing names.
void give_up(heap_opening &state, ty_heap *heap, bool created) {
    const ty_error error = keep_error();
    if (heap) {
        give_up_runtime(heap);
        if (created)
            image_unmake(heap);
        else
            (void)image_discard(heap);
    }
    if (state.made && (created || !heap) && no_header_names(state)) {
        sink_destroy(state.location.own);
        state.location.own = nullptr;
        const ty_storage &storage = *state.options.storage;
        (void)os::call_whole(storage.remove, storage.context, state.location.path);
    }
    (void)report_again(error);
}

ty_status lock_log(void *context) {
    const ty_status status = log_location_open(static_cast<heap_opening *>(context)->location, true);
    return status == TY_E_NOT_FOUND ? TY_OK : status; // the open refuses it, or makes one
}

// What a follower had before it was opened again for writing.
void end_log(txn_runtime &rt) {
    snapshots_stop(rt);
    if (rt.log)
        log_stop(rt.log);
    rt.log = nullptr;
    snapshots_destroy(rt);
}

void give_up_start(void *context) {
    auto &state = *static_cast<heap_opening *>(context);
    if (state.again)
        end_log(*state.again);
    else
        give_up_runtime(state.heap);
}

} // namespace

txn_runtime *runtime_of(ty_heap *heap) {
    return static_cast<txn_runtime *>(image_client(heap));
}

void runtime_destroy(txn_runtime &rt) {
    runtime_shut(rt);
    bool forked = rt.txn_forked(); // threads and locks are the parent's
    sharing_stop_thread(rt);
    follow_end(rt);
    thread_ends_remove(rt);
    if (!forked) {
        snapshots_stop(rt);
        if (rt.log)
            log_stop(rt.log);
        if (!rt.internal_sink && rt.sink && rt.sink->close)
            os::call_whole(rt.sink->close, rt.sink->context);
    }
    if (rt.concurrent)
        concurrent_destroy(static_cast<concurrent_heap *>(rt.concurrent));
    snapshots_destroy(rt);
    sharing_end(rt);
    sink_destroy(rt.internal_sink);
    free(rt.log_path);
    transaction_destroy(rt);
    reservations_destroy(rt);
    rt.fork.stop();
    if (rt.heap) {
        image_set_client(rt.heap, nullptr);
        image_set_pages_being_written(rt.heap, nullptr, nullptr);
    }
    transactional_heaps.fetch_sub(1, std::memory_order_relaxed);
    rt.~txn_runtime();
    os::unmap_memory(&rt, sizeof rt);
}

namespace {

ty_status open_resolved(heap_opening &state, ty_heap **heap, ty_report *report) {
    if (ty_status status = log_location_create(state.location, state.heap_path, state.options))
        return status;
    image_open_hook hook{&state, check_log, make_log, start, give_up_start, name_open, validate_heap};
    ty_report filled{};
    ty_heap *opened = nullptr;
    ty_status status = image_open(state.heap_path, state.options, &hook, &opened, &filled);
    if (!status && state.follows() && image_kind(opened) == TY_SNAPSHOT) {
        status = finish_follower(state, &opened);
    } else if (!status && image_kind(opened) == TY_TRANSACTIONAL) {
        status = finish_open(state, &opened);
        if (!status)
            add_to_report(state, opened, filled);
    }
    if (!status && state.dropped)
        add_dropped_log(state, filled);
    if (!status && state.options.shared && !state.follows())
        status = sharing_begin_as_log_writer(state, *runtime_of(opened));
    if (status) {
        give_up(state, opened, filled.created);
        return status;
    }
    if (txn_runtime *rt = runtime_of(opened); rt && (rt->log || state.read_only()))
        rt->opened.store(true, std::memory_order_release);
    if (report)
        *report = filled;
    *heap = opened;
    return TY_OK;
}

ty_status open_heap_files(const char *path, const ty_open_options &options, ty_heap **heap, ty_report *report,
                          const open_validator *validator, reading_beside *beside = nullptr) {
    heap_opening state{};
    state.options = options;
    state.validator = validator;
    state.beside = beside;
    char *resolved = nullptr;
    if (ty_status status = resolve_path(*state.options.storage, path, &resolved))
        return status;
    state.heap_path = resolved;
    ty_status status = open_resolved(state, heap, report);
    free(resolved);
    return status;
}

// Opens a copy of files that a process writes to.
ty_status open_copied(const char *path, const ty_open_options &given, ty_heap **heap, ty_report *report,
                      const open_validator *validator, reading_beside *beside) {
    ty_open_options options = given;
    copied_files *copies = nullptr;
    if (ty_status status = copied_files::create(*given.storage, &copies))
        return status;
    ty_status status = copy_files(path, given, *copies);
    if (!status) {
        options.mode = TY_OPEN_COPY;
        options.storage = copies->storage();
        beside->storage = given.storage;
        status = open_heap_files(path, options, heap, report, validator, beside);
    }
    copies->release(); // the heap has its files open
    return status;
}

// Opens the files as they are or, if a process writes to them, copies. X33: the heap holds what was acknowledged. If
// partners cannot resolve a copy's transaction, as they have moved on, the next copy resolves it: there the transaction
// has its outcome, and what is in doubt then came later.
ty_status open_copy(const char *path, const ty_open_options &given, ty_heap **heap, ty_report *report,
                    const open_validator *validator, reading_beside *looks = nullptr) {
    constexpr int tries = 3;
    ty_open_options options = given;
    options.mode = TY_OPEN_READ_ONLY;
    ty_status status = open_heap_files(path, options, heap, report, validator, looks);
    reading_beside own, &beside = looks ? *looks : own;
    for (int i = 0; i < tries && (status == TY_E_BUSY || (i > 0 && status == TY_E_IN_DOUBT)); ++i) {
        beside.earlier = beside.in_doubt;
        status = open_copied(path, given, heap, report, validator, &beside);
        if (status != TY_E_IN_DOUBT)
            break;
    }
    return status;
}

bool is_same(const ty_error &a, const ty_error &b) {
    return a.status == b.status && a.offset == b.offset && strcmp(a.operation, b.operation) == 0;
}

// What is read while it is written may look damaged, cut short or missing: a refusal counts if it stays the same.
ty_status open_followed(const char *path, const ty_open_options &options, ty_heap **heap, ty_report *report,
                        const open_validator *validator) {
    constexpr unsigned tries_max = 24, refusals_max = 12;
    const std::atomic<uint32_t> nobody_wakes{0};
    ty_error before{};
    if (options.log || options.mark)
        return failure(TY_E_ARGUMENT, "follow a heap with the option %s", options.log ? "log" : "mark")
            .at(path)
            .remedy("%s", options.log ? "a log that the program keeps cannot be followed: open a copy of closed files"
                                      : "leave it out, or open the mark with TY_OPEN_READ_ONLY or TY_OPEN_COPY");
    for (unsigned tries = 0, refusals = 0; tries < tries_max; ++tries) {
        const ty_status status = open_heap_files(path, options, heap, report, validator);
        const bool passes = (status == TY_E_BUSY && !options.shared) || (may_pass(status) && status != TY_E_NOT_FOUND);
        if (!passes)
            return status;
        const ty_error why = keep_error();
        refusals = is_same(why, before) ? refusals + 1 : 0;
        if (refusals == refusals_max)
            return report_again(why, status);
        before = why;
        os::wait_on(nobody_wakes, 0, uint64_t{250'000} << std::min(refusals, refusals_max - 1));
    }
    return failure(TY_E_BUSY, "follow a heap: its files change faster than they can be read")
        .at(path)
        .remedy("try again");
}

// The first process that opens it writes its log; others join it, when its open is done.
ty_status open_shared(const char *path, const ty_open_options &options, ty_heap **heap, ty_report *report,
                      const open_validator *validator) {
    constexpr uint64_t patience_ns = 8'000'000'000, first_pause_ns = 2'000'000, longest_pause_ns = 50'000'000;
    const std::atomic<uint32_t> nobody_wakes{0};
    const uint64_t begun = os::now_ns();
    ty_open_options joins = options;
    joins.mode = TY_OPEN_FOLLOW;
    for (uint64_t pause_ns = first_pause_ns;; pause_ns = std::min(2 * pause_ns, longest_pause_ns)) {
        ty_status status = open_heap_files(path, options, heap, report, validator);
        // Another process has just made it, or is about to.
        const bool in_use = status == TY_E_BUSY || (status == TY_E_EXISTS && options.mode == TY_OPEN_OR_CREATE);
        if (in_use)
            status = open_followed(path, joins, heap, report, validator);
        const bool is_being_made = in_use && status == TY_E_NOT_FOUND;
        if ((status != TY_E_BUSY && !is_being_made) || os::now_ns() - begun >= patience_ns)
            return status;
        os::wait_on(nobody_wakes, 0, pause_ns);
    }
}

} // namespace

ty_status open_again_for_writing(txn_runtime &rt, const char *path, const ty_open_options &options) {
    heap_opening state{};
    state.options = options;
    state.heap_path = path;
    state.again = &rt;
    if (ty_status status = log_location_create(state.location, path, options))
        return status;
    image_open_hook hook{&state, check_log, make_log, start, give_up_start, name_open, nullptr, rt.heap, lock_log};
    ty_heap *opened = nullptr;
    if (ty_status status = image_open(path, options, &hook, &opened, nullptr))
        return status;
    if (ty_status status = finish_open(state, &opened)) {
        const ty_error why = keep_error();
        rt.poisoned.store(true, std::memory_order_release);
        return report_again(why, status);
    }
    follow_end(rt);
    return TY_OK;
}

ty_status txn_look_at_files(const char *path, const ty_open_options &options,
                            ty_status (*look)(ty_heap *heap, const ty_in_doubt_txn *in_doubt, void *context),
                            void *context) {
    reading_beside beside;
    beside.only_looks = true;
    ty_heap *heap = nullptr;
    if (ty_status status = open_copy(path, options, &heap, nullptr, nullptr, &beside))
        return status;
    beside.txn.heap_path = path;
    const ty_status status = look(heap, beside.txn.struct_size ? &beside.txn : nullptr, context);
    static_cast<void>(txn_discard(heap));
    return status;
}

ty_status txn_open(const char *path, const ty_open_options &given, ty_heap **heap, ty_report *report,
                   const open_validator *validator) {
    ty_open_options options = given;
    if (!options.storage)
        options.storage = ty_storage_default();
    if (options.shared)
        return open_shared(path, options, heap, report, validator);
    if (options.mode == TY_OPEN_COPY)
        return open_copy(path, options, heap, report, validator);
    return options.mode == TY_OPEN_FOLLOW ? open_followed(path, options, heap, report, validator)
                                          : open_heap_files(path, options, heap, report, validator);
}

} // namespace taiyen
