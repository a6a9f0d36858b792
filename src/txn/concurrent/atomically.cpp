// Runs the program's bodies as transactions until they commit or give up.
#include "members.hpp"

#include <cstring>

namespace taiyen {
namespace {

constexpr unsigned outers_max = 16;

// A body on another heap around this one, with its state from before this one's run: what that run has done there, in
// parts, is rolled back with it.
struct outer_savepoint {
    ty_atomic_txn *txn;
    stm::transaction::part_savepoint words;
    block_savepoint blocks;
};

// What a body is called with, and its result.
struct body_call {
    ty_atomic_txn *txn;
    ty_atomic_body *body;
    void *context;
    ty_commit_mode mode;
    ty_status status = TY_OK;
    uint32_t runs = 0;
    stm::attempts tried;
    os::caught thrown;       // by the last run
    bool may_wait = true;    // otherwise it is rolled back,
    bool waits = false;      // and this reports it
    bool only_waits = false; // it is rolled back once it no longer waits
    // Results of the last run, kept from the callbacks after its end, which may run transactions of their own.
    bool too_long = false;
    bool log_failed = false;
    bool independent = false;
    uint32_t ring = 0;
    uint64_t timestamp = 0;
    // The bodies of this thread on other heaps around it (X31).
    unsigned outer_count = 0;
    bool saved = false; // by a run that has not committed
    outer_savepoint outers[outers_max];

    bool within() const { return outer_count != 0; }
};

stm::verdict verdict_of(ty_atomic_txn &txn, ty_status status) {
    if (txn.waits)
        return stm::verdict::retry;
    return status == TY_OK ? stm::verdict::commit : stm::verdict::roll_back;
}

void outers_back(body_call &call) {
    for (unsigned i = call.outer_count; call.saved && i-- > 0;) {
        const outer_savepoint &outer = call.outers[i];
        if (outer.txn->own->aborted() != TY_OK) // it is rolled back as a whole
            continue;
        outer.txn->own->back_to(outer.words);
        blocks_back_to(*outer.txn, outer.blocks);
    }
    call.saved = false;
}

void save_outers(body_call &call) {
    outers_back(call);
    for (unsigned i = 0; i < call.outer_count; i++) {
        ty_atomic_txn &txn = *call.outers[i].txn;
        call.outers[i] = {&txn, txn.own->savepoint(), blocks_savepoint(txn)};
    }
    call.saved = true;
}

stm::verdict call_body(stm::transaction &own, void *context) {
    auto &call = *static_cast<body_call *>(context);
    ty_atomic_txn &txn = *call.txn;
    blocks_forget(txn); // of a run that was aborted
    txn.parts = 0;
    // Callbacks after the end of the last run may have run transactions of their own.
    txn.mode = call.mode;
    txn.waits = txn.independent = txn.too_long = txn.log_failed = false;
    call.thrown.forget();
    if (call.within()) [[unlikely]] {
        if (bodies_aborted(txn.own) != TY_OK) { // since the last run
            own.abort_for_other_domain();
            return stm::verdict::roll_back;
        }
        save_outers(call);
    }
    call.runs++;
    if (const txn_runtime *rt = txn.all->rt; rt && rt->poisoned.load(std::memory_order_acquire)) { // while this waited
        call.status = refuse_poisoned(*rt, "run a transaction");
        return stm::verdict::roll_back;
    }
    auto run = [&call] { call.status = call.body(call.txn, call.context); };
    if (!call.thrown.run(run) && own.aborted() != TY_E_BUSY && !txn.waits)
        return stm::verdict::roll_back; // the exception is rethrown
    call.waits = txn.waits && !call.may_wait && own.aborted() == TY_OK;
    return call.waits || (call.only_waits && !txn.waits) ? stm::verdict::roll_back : verdict_of(txn, call.status);
}

ty_status refuse(const concurrent_heap &all, const ty_atomic_options &options) {
    constexpr const char *call = "run a transaction";
    if (all.fork.forked())
        return refuse_forked();
    if (all.rt == nullptr)
        return TY_OK;
    if (all.rt->receives.load(std::memory_order_relaxed) && !options.reads_only) // LK7: nobody else writes
        return refuse_received(*all.rt, call);
    if (all.rt->poisoned.load(std::memory_order_relaxed))
        return refuse_poisoned(*all.rt, call);
    if (txn_current(all.heap) != nullptr)
        return failure(TY_E_ARGUMENT, "%s: this thread has one of ty_begin under way on the heap", call)
            .remedy("commit it or roll it back first; or store directly, as nobody else stores meanwhile");
    if (ty_status status = refuse_own_prepared(*all.rt, call))
        return status;
    if (in_section(*all.rt))
        return failure(TY_E_ARGUMENT, "%s: this thread has a read section open on the heap", call)
            .remedy("end it first: no transaction runs meanwhile");
    return TY_OK;
}

// ---- A body within a body

ty_status refuse_irrevocable_within() {
    return failure(TY_E_ARGUMENT, "run an irrevocable transaction within another one")
        .remedy("make the outer one irrevocable");
}

ty_status run_part(ty_atomic_txn &txn, const ty_atomic_options &options, ty_atomic_body *body, void *context,
                   bool *committed) {
    if (options.irrevocable && !txn.own->is_serial())
        return refuse_irrevocable_within();
    const stm::transaction::part_savepoint words = txn.own->savepoint();
    const block_savepoint blocks = blocks_savepoint(txn);
    ty_status status = TY_E_BUSY;
    os::caught thrown;
    auto run = [&] { status = body(&txn, context); };
    txn.parts++;
    const bool returned = thrown.run(run);
    txn.parts--;
    if (!returned) {
        if (txn.own->aborted() == TY_OK && !txn.waits) {
            txn.own->back_to(words);
            blocks_back_to(txn, blocks);
        }
        thrown.rethrow();
    }
    if (txn.own->aborted() != TY_OK)
        return txn.own->aborted();
    if (txn.waits) // the whole transaction waits: its body returns the status, or not
        return TY_E_BUSY;
    if (status != TY_OK) {
        txn.own->back_to(words);
        blocks_back_to(txn, blocks);
    }
    *committed = status == TY_OK;
    return status;
}

// ---- Until it commits

void note_end(const ty_atomic_txn &txn, body_call &call) {
    call.too_long = txn.too_long;
    call.log_failed = txn.log_failed;
    call.independent = txn.independent;
    call.ring = txn.ring;
    call.timestamp = txn.own->last_timestamp();
}

ty_status run_once(ty_atomic_txn &txn, const ty_atomic_options &options, body_call &call, bool serial,
                   bool *committed) {
    const stm::kind what = options.reads_only ? stm::kind::reads : stm::kind::writes;
    call.tried.serial = serial;
    ty_status status = stm::run(*txn.own, what, call_body, &call, committed, call.tried);
    note_end(txn, call);
    if (!*committed)
        blocks_forget(txn);
    return status;
}

// Lets it commit whatever room the log has: with the reader-writer lock held, a snapshot can hold it in place of a
// record. It does not sleep with the lock held: call.waits reports that it asked to.
ty_status run_with_rwlock(ty_atomic_txn &txn, const ty_atomic_options &options, body_call &call, bool *committed) {
    txn_runtime *rt = txn.all->rt;
    const bool takes = rt != nullptr && !txn.has_rwlock; // else it is held already (X31)
    if (takes && !call.within())
        rt->rwlock.lock();
    else if (takes && !rt->rwlock.try_lock())
        return bodies_abort_for({blocker::kind::heap_with_rwlock, &txn, nullptr, nullptr});
    txn.has_rwlock = rt != nullptr;
    ty_status status = run_once(txn, options, call, true, committed);
    txn.way = commit_way::record;
    if (takes) {
        txn.has_rwlock = false;
        rt->rwlock.unlock();
    }
    return status;
}

// Runs the callbacks that are due, with nothing held. They do not change the detail of a failure.
ty_status call_due(ty_atomic_txn &txn, ty_status status) {
    ty_error error;
    if (status != TY_OK)
        ty_error_detail(&error);
    txn.own->call_due();
    return status == TY_OK ? TY_OK : report_again(error, status);
}

// Sleeps as long as the body retries. It commits nothing.
ty_status wait_in_serial_mode(ty_atomic_txn &txn, const ty_atomic_options &options, body_call &call) {
    bool committed = false;
    call.only_waits = true;
    ty_status status = run_once(txn, options, call, false, &committed);
    call.only_waits = false;
    return call_due(txn, status);
}

// Makes another run worthwhile after a failure: the log has room, or continues, perhaps thanks to another thread.
// Otherwise returns the failure.
ty_status repair_log(ty_atomic_txn &txn, const body_call &call, ty_status status) {
    if (!call.log_failed)
        return status;
    txn_runtime &rt = *txn.all->rt;
    if (log_broken(rt.log))
        return snapshots_repair(rt);
    return status == TY_E_SPACE ? snapshots_make_room(rt) : TY_OK;
}

ty_status run_until_done(ty_atomic_txn &txn, const ty_atomic_options &options, body_call &call, bool *committed) {
    bool serial = options.irrevocable;
    ty_status ready = TY_OK;
    do {
        call.waits = false;
        call.may_wait = !serial && !txn.own->is_exclusive();
        ty_status status =
            serial ? run_with_rwlock(txn, options, call, committed) : run_once(txn, options, call, false, committed);
        call.may_wait = true;
        if (txn.hold_count != 0 && !call.within()) [[unlikely]]
            holds_drop(txn, *committed);
        if (*committed) [[likely]] {
            txn.own->call_due();
            return TY_OK;
        }
        outers_back(call);
        const bool again = status == TY_E_BUSY && txn.own->last_conflict() == stm::conflict::restart;
        if (call.within() && status == TY_E_BUSY && !again && bodies_aborted(txn.own) == TY_OK)
            status = bodies_abort_for({blocker::kind::heap, &txn, nullptr, nullptr});
        status = call_due(txn, status);
        if (again || (status == TY_E_BUSY && !call.within()))
            continue;
        if (status == TY_E_BUSY)
            return status;
        if (call.waits)
            status = wait_in_serial_mode(txn, options, call);
        else if (serial || status == TY_OK)
            return status;
        else if (call.too_long)
            serial = true;
        else
            status = repair_log(txn, call, status);
        if (status != TY_OK && !call.too_long)
            return status;
    } while ((ready = call.within() ? TY_OK : acquire_blockers(txn, serial && txn.all->rt != nullptr)) == TY_OK);
    return ready;
}

// Occasional work, within no transaction of the heap.
void after_commit(ty_atomic_txn &txn) {
    txn.record.trim();
    txn.sorting.trim();
    txn.freed.trim();
    txn.own_allocations.trim();
    retired_free_some(txn);
    txn_runtime *rt = txn.all->rt;
    if (rt == nullptr || !snapshots_look_is_due(++txn.commits, txn.bytes_since))
        return;
    txn.commits = 0;
    txn.bytes_since = 0;
    snapshots_after_others(*rt);
}

// In a body on another heap.
ty_status refuse_within_another(const ty_atomic_options &options) {
    if (options.irrevocable)
        return refuse_irrevocable_within();
    if (in_irrevocable_body()) // it cannot be rolled back, so this one would have to wait
        return failure(TY_E_ARGUMENT, "run a transaction within an irrevocable one on another heap")
            .remedy("run it before, or by ty_atomic_on_commit; or let the outer one be no irrevocable one");
    const ty_status status = bodies_aborted(nullptr);
    return status == TY_E_BUSY ? conflict_met()
           : status != TY_OK   ? failure(status, "run a transaction: the one around it does not commit any more")
                               : TY_OK;
}

[[gnu::cold, gnu::noinline]] ty_status enter_outers(const ty_atomic_options &options, body_call &call) {
    if (ty_status status = refuse_within_another(options))
        return status;
    running_body *outers[outers_max];
    const unsigned count = bodies_running(call.txn->own, outers, outers_max);
    if (count > outers_max)
        return failure(TY_E_MEMORY, "run a transaction: this thread is in bodies on %u heaps", count)
            .remedy("end some of them first");
    for (unsigned i = 0; i < count; i++) {
        call.outers[i].txn = static_cast<ty_atomic_txn *>(outers[i]);
        call.outers[i].txn->parts++;
    }
    call.outer_count = count;
    call.tried.waits = stm::wait_policy::never;
    return TY_OK;
}

[[gnu::cold, gnu::noinline]] void leave_outers(const body_call &call) {
    for (unsigned i = 0; i < call.outer_count; i++)
        call.outers[i].txn->parts--;
}

ty_status wait_as_asked(txn_runtime *rt, const ty_atomic_options &options, const body_call &call) {
    if (rt == nullptr || options.reads_only || options.commit == TY_COMMIT_ASYNC)
        return TY_OK;
    if (options.commit == TY_COMMIT_STREAM && call.independent)
        if (log_wait_stream(rt->log, call.ring, call.timestamp) == TY_OK)
            return TY_OK;
    return make_durable(*rt, call.timestamp);
}

} // namespace

ty_status atomically(ty_heap *heap, const ty_atomic_options &options, ty_atomic_body *body, void *context,
                     ty_atomic_result *result) {
    concurrent_heap *all = nullptr;
    ty_atomic_txn *txn = nullptr;
    if (ty_status status = concurrent_of(heap, &all))
        return status;
    if (ty_status status = refuse(*all, options))
        return status;
    if (ty_status status = member_of(*all, &txn))
        return status;
    if (txn->own->runs())
        return run_part(*txn, options, body, context, &result->committed);
    const bool waits = options.commit != TY_COMMIT_ASYNC;
    commit_watch watch(all->rt != nullptr && !options.reads_only ? &all->rt->times : nullptr,
                       waits ? commit_timed::durable : commit_timed::asynchronous, txn->commits);
    body_call call; // the savepoints need no zeros
    call.txn = txn;
    call.body = body;
    call.context = context;
    call.mode = options.commit;
    if (in_body()) [[unlikely]]
        if (ty_status status = enter_outers(options, call))
            return status;
    const body_entry before = bodies_enter(*txn, options.irrevocable);
    ty_status status = run_until_done(*txn, options, call, &result->committed);
    bodies_leave(*txn, before);
    if (call.within()) [[unlikely]]
        leave_outers(call);
    else if (!result->committed) [[unlikely]]
        blockers_forget(*txn);
    result->runs = call.runs;
    if (call.thrown.any() && !result->committed && status == TY_OK)
        call.thrown.rethrow();
    if (!result->committed)
        return status != TY_OK ? status : call.status;
    result->lsn = call.timestamp;
    after_commit(*txn);
    status = wait_as_asked(all->rt, options, call);
    if (!status)
        watch.end();
    return status;
}

ty_status atomic_retry(ty_atomic_txn *txn) {
    if (txn->own->aborted() == TY_OK)
        txn->waits = true;
    return TY_E_BUSY;
}

ty_status atomic_restart(ty_atomic_txn *txn) {
    if (txn->own->aborted() != TY_OK)
        return aborted(*txn);
    if (txn->waits)
        return TY_E_BUSY;
    if (txn->irrevocable)
        return failure(TY_E_ARGUMENT, "run again: the transaction is irrevocable")
            .remedy("return a status of your own, which rolls it back");
    txn->own->restart();
    return TY_E_BUSY;
}

ty_status atomic_or_else(ty_atomic_txn *txn, ty_atomic_body *first, ty_atomic_body *second, void *context) {
    const stm::transaction::part_savepoint words = txn->own->savepoint();
    const block_savepoint blocks = blocks_savepoint(*txn);
    ty_status status = TY_E_BUSY;
    os::caught thrown;
    auto run = [&] { status = first(txn, context); };
    txn->parts++;
    const bool returned = thrown.run(run);
    txn->parts--;
    if (txn->own->aborted() != TY_OK || (returned && !txn->waits)) {
        thrown.rethrow();
        return status;
    }
    const bool waits = txn->waits;
    txn->waits = false;
    txn->own->back_to(words);
    blocks_back_to(*txn, blocks);
    if (!waits)
        thrown.rethrow();
    thrown.forget();
    return second(txn, context);
}

ty_atomic_txn *atomic_current(ty_heap *heap) {
    concurrent_heap *all = nullptr;
    if (const txn_runtime *rt = runtime_of(heap)) {
        all = static_cast<concurrent_heap *>(rt->concurrent);
    } else if (heap_may_be_concurrent(heap)) {
        all = static_cast<concurrent_heap *>(heap_service_of(heap));
    }
    ty_atomic_txn *txn = all != nullptr ? member_known(*all) : nullptr;
    return txn != nullptr && txn->own->runs() ? txn : nullptr;
}

ty_heap *atomic_heap(const ty_atomic_txn *txn) {
    return txn->all->heap;
}

ty_status atomic_status(const ty_atomic_txn *txn) {
    return txn->own->aborted();
}

namespace {

// Pages that were never used may have no memory, and read as zeros (H7: pages from the top on read as zeros).
[[gnu::always_inline]] inline bool is_in_use(const concurrent_heap &all, const void *address, size_t bytes) {
    const uint64_t offset = reinterpret_cast<uintptr_t>(address) - reinterpret_cast<uintptr_t>(all.base);
    const uint64_t used = all.used_pages->load(std::memory_order_acquire) * os::page_bytes;
    const uint64_t end = used < all.end_byte ? used : all.end_byte;
    return offset >= all.first_byte && offset < end && bytes <= end - offset;
}

[[gnu::noinline]] ty_status load_slowly(ty_atomic_txn *txn, const void *address, void *value, size_t bytes) {
    if (!is_in_use(*txn->all, address, bytes)) [[unlikely]] {
        if (bytes <= txn->all->end_byte) // no value can be that large
            memset(value, 0, bytes);
        return bytes != 0 ? not_in_blocks("load", address, bytes) : TY_OK;
    }
    uint64_t word = 0;
    if (stm::is_half(address, bytes) && txn->own->load_at_once(stm::word_around(address), &word)) {
        const auto half = static_cast<uint32_t>(word >> stm::bit_in_word(address));
        memcpy(value, &half, sizeof half);
        return TY_OK;
    }
    if (txn->own->load(address, value, bytes)) [[likely]]
        return TY_OK;
    memset(value, 0, bytes);
    return aborted(*txn);
}

[[gnu::noinline]] ty_status store_slowly(ty_atomic_txn *txn, void *address, const void *value, size_t bytes) {
    if (!is_in_use(*txn->all, address, bytes)) [[unlikely]]
        return bytes != 0 ? not_in_blocks("store", address, bytes) : TY_OK;
    if (is_own(*txn, address, bytes) &&
        !fault("store_to_an_own_allocation_at_the_commit")) // X32: it is in the block at once
        return store_own(*txn, address, value, bytes);
    uint32_t half;
    if (stm::is_half(address, bytes)) {
        memcpy(&half, value, sizeof half);
        const unsigned bit = stm::bit_in_word(address);
        if (txn->own->store_at_once(stm::word_around(address), uint64_t{half} << bit, uint64_t{UINT32_MAX} << bit))
            return TY_OK;
    }
    if (txn->own->store(address, value, bytes)) [[likely]]
        return TY_OK;
    return aborted(*txn);
}

// Stores a word, where the transaction has blocks of its own. Most such words are in the one that it allocated last.
[[gnu::noinline]] ty_status store_perhaps_own(ty_atomic_txn *txn, void *address, const void *value, size_t bytes) {
    uint64_t word;
    memcpy(&word, value, sizeof word);
    if (txn->own_allocations.last_holds(address, bytes) && txn->parts == 0 && txn->own->aborted() == TY_OK) {
        memcpy(address, &word, sizeof word); // X32: a store to an own block is in the block at once
        return TY_OK;
    }
    if (!is_own(*txn, address, bytes) && txn->own->store_at_once(static_cast<uint64_t *>(address), word, UINT64_MAX))
        return TY_OK;
    return store_slowly(txn, address, value, bytes);
}

} // namespace

// Words are common, and these two functions wait for memory: for a word they must make few stores, also to the stack,
// or the processor has no room to request the next word meanwhile (decision 28).
ty_status atomic_load(ty_atomic_txn *txn, const void *address, void *value, size_t bytes) {
    uint64_t word;
    if (!stm::is_word(address, bytes) || !is_in_use(*txn->all, address, bytes) ||
        !txn->own->load_at_once(static_cast<const uint64_t *>(address), &word)) [[unlikely]]
        return load_slowly(txn, address, value, bytes);
    memcpy(value, &word, sizeof word);
    return TY_OK;
}

ty_status atomic_store(ty_atomic_txn *txn, void *address, const void *value, size_t bytes) {
    uint64_t word;
    if (!stm::is_word(address, bytes) || !is_in_use(*txn->all, address, bytes)) [[unlikely]]
        return store_slowly(txn, address, value, bytes);
    if (txn->allocs.count() != 0) [[unlikely]]
        return store_perhaps_own(txn, address, value, bytes);
    memcpy(&word, value, sizeof word);
    if (!txn->own->store_at_once(static_cast<uint64_t *>(address), word, UINT64_MAX)) [[unlikely]]
        return store_slowly(txn, address, value, bytes);
    return TY_OK;
}

void atomic_prefetch(ty_atomic_txn *txn, const void *const *addresses, size_t count) {
    txn->own->prefetch(addresses, count);
}

ty_status atomic_on_commit(ty_atomic_txn *txn, void (*function)(void *context), void *context) {
    return txn->own->call_after_commit(function, context);
}

ty_status atomic_on_rollback(ty_atomic_txn *txn, void (*function)(void *context), void *context) {
    return txn->own->call_after_roll_back(function, context);
}

ty_status atomic_get_stats(ty_heap *heap, ty_atomic_stats *stats) {
    concurrent_heap *all = nullptr;
    if (ty_status status = concurrent_of(heap, &all))
        return status;
    const stm::metrics metrics = all->domain->count();
    auto conflicts = [&metrics](stm::conflict kind) { return metrics.conflicts[static_cast<size_t>(kind)]; };
    stats->commits = metrics.commits;
    stats->conflicts_locked = conflicts(stm::conflict::locked);
    stats->conflicts_changed = conflicts(stm::conflict::changed);
    stats->conflicts_serial = conflicts(stm::conflict::serial);
    stats->conflicts_evicted = conflicts(stm::conflict::evicted);
    stats->conflicts_other_heap = conflicts(stm::conflict::other_domain);
    stats->restarts = conflicts(stm::conflict::restart);
    stats->serial = metrics.serial;
    stats->old_readers = metrics.old_readers;
    count_members(*all, stats);
    return TY_OK;
}

ty_status atomic_quiesce(ty_heap *heap) {
    constexpr const char *call = "wait for the transactions under way";
    concurrent_heap *all = nullptr;
    if (ty_status status = concurrent_of(heap, &all))
        return status;
    if (all->fork.forked())
        return refuse_forked();
    if (in_body())
        return failure(TY_E_ARGUMENT, "%s: this thread is in a body of ty_atomically", call)
            .remedy("return from the body first, or use ty_atomic_on_commit");
    all->domain->quiesce();
    return TY_OK;
}

ty_status aborted(const ty_atomic_txn &txn) {
    const ty_status status = txn.own->aborted();
    return status == TY_E_BUSY ? conflict_met() : status;
}

ty_status refuse_forked() {
    return failure(TY_E_FORKED, "run a transaction: the heap belongs to the parent process")
        .remedy("use it there, or open it in the child after the parent has closed it");
}

ty_status conflict_met() {
    return failure(TY_E_BUSY, "go on with a transaction: it has met a conflict").remedy("return from the body");
}

ty_status not_in_blocks(const char *call, const void *address, size_t bytes) {
    return failure(TY_E_ARGUMENT, "%s %zu byte%s at %p in a transaction: not in the heap's blocks", call, bytes,
                   plural(bytes), address)
        .remedy("hand in the address of a part of a block of the transaction's heap");
}

} // namespace taiyen
