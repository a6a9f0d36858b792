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

void outers_back(body_call &call) {
    for (unsigned i = call.outer_count; call.saved && i-- > 0;) {
        const outer_savepoint &outer = call.outers[i];
        if (outer.txn->aborted() != TY_OK) // it is rolled back as a whole
            continue;
        outer.txn->back_to(outer.words);
        blocks_back_to(*outer.txn, outer.blocks);
    }
    call.saved = false;
}

void save_outers(body_call &call) {
    outers_back(call);
    for (unsigned i = 0; i < call.outer_count; i++) {
        ty_atomic_txn &txn = *call.outers[i].txn;
        call.outers[i] = {&txn, txn.savepoint(), blocks_savepoint(txn)};
    }
    call.saved = true;
}

// Before each run but the first: what the last one left.
[[gnu::cold, gnu::noinline]] void clean_up(ty_atomic_txn &txn, body_call &call) {
    txn.parts = 0;
    // Callbacks after the end of the last run may have run transactions of their own.
    txn.mode = call.mode;
    call.thrown.forget();
}

[[gnu::always_inline]] inline stm::verdict call_body(ty_atomic_txn &txn, body_call &call) {
    if (call.runs++ != 0) [[unlikely]]
        clean_up(txn, call);
    txn.waits = txn.independent = txn.too_long = txn.log_failed = false;
    if (call.within()) [[unlikely]] {
        if (bodies_aborted(txn.own) != TY_OK) { // since the last run
            txn.abort_for_other_domain();
            return stm::verdict::roll_back;
        }
        save_outers(call);
    }
    if (const txn_runtime *rt = txn.all->rt; rt && rt->poisoned.load(std::memory_order_acquire)) { // while this waited
        call.status = refuse_poisoned(*rt, "run a transaction");
        return stm::verdict::roll_back;
    }
    auto run = [&call] { call.status = call.body(call.txn, call.context); };
    if (!call.thrown.run(run) && txn.aborted() != TY_E_BUSY && !txn.waits)
        return stm::verdict::roll_back;        // the exception is rethrown
    if (txn.all->fork.forked()) [[unlikely]] { // in the body: heap and log are the parent's
        call.status = refuse_forked();
        return stm::verdict::roll_back;
    }
    if (!txn.waits && !call.only_waits) [[likely]]
        return call.status == TY_OK ? stm::verdict::commit : stm::verdict::roll_back;
    call.waits = txn.waits && !call.may_wait && txn.aborted() == TY_OK;
    return txn.waits && !call.waits ? stm::verdict::retry : stm::verdict::roll_back;
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

[[gnu::noinline]] ty_status run_part(ty_atomic_txn &txn, const ty_atomic_options &options, ty_atomic_body *body,
                                     void *context, bool *committed) {
    if (options.irrevocable && !txn.is_serial())
        return refuse_irrevocable_within();
    const stm::transaction::part_savepoint words = txn.savepoint();
    const block_savepoint blocks = blocks_savepoint(txn);
    ty_status status = TY_E_BUSY;
    os::caught thrown;
    auto run = [&] { status = body(&txn, context); };
    txn.parts++;
    const bool returned = thrown.run(run);
    txn.parts--;
    if (!returned) {
        if (txn.aborted() == TY_OK && !txn.waits) {
            txn.back_to(words);
            blocks_back_to(txn, blocks);
        }
        thrown.rethrow();
    }
    if (txn.aborted() != TY_OK)
        return txn.aborted();
    if (txn.waits) // the whole transaction waits: its body returns the status, or not
        return TY_E_BUSY;
    if (status != TY_OK) {
        txn.back_to(words);
        blocks_back_to(txn, blocks);
    }
    *committed = status == TY_OK;
    return status;
}

// ---- Until it commits

void note_end(ty_atomic_txn &txn, body_call &call) {
    call.timestamp = txn.last_timestamp();
    if (txn.all->rt == nullptr)
        return;
    // X34. Snapshots read it: the reader-writer lock excludes them now.
    if (txn.way != commit_way::record && !fault("later_commits_by_snapshots_too")) [[unlikely]]
        txn.way = commit_way::record;
    call.too_long = txn.too_long;
    call.log_failed = txn.log_failed;
    call.independent = txn.independent;
    call.ring = txn.ring;
}

[[gnu::always_inline]] inline ty_status run_once(ty_atomic_txn &txn, const ty_atomic_options &options, body_call &call,
                                                 bool serial, bool *committed) {
    const stm::kind what = options.reads_only ? stm::kind::reads : stm::kind::writes;
    call.tried.serial = serial;
    auto body = [&call](stm::transaction & own) __attribute__((always_inline)) {
        return call_body(static_cast<ty_atomic_txn &>(own), call);
    };
    ty_status status = stm::run(txn, what, body, committed, call.tried);
    note_end(txn, call);
    return status;
}

// Lets it commit whatever room the log has: with the reader-writer lock held, a snapshot can hold it in place of a
// record. It does not sleep with the lock held: call.waits reports that it asked to.
[[gnu::noinline]] ty_status run_with_rwlock(ty_atomic_txn &txn, const ty_atomic_options &options, body_call &call,
                                            bool *committed) {
    txn_runtime *rt = txn.all->rt;
    const bool takes = rt != nullptr && !txn.has_rwlock; // else it is held already (X31)
    if (takes && !call.within())
        rt->rwlock.lock();
    else if (takes && !rt->rwlock.try_lock())
        return bodies_abort_for({blocker::kind::heap_with_rwlock, &txn, nullptr, nullptr});
    txn.has_rwlock = rt != nullptr;
    ty_status status = run_once(txn, options, call, true, committed);
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
    txn.call_due();
    return status == TY_OK ? TY_OK : report_again(error, status);
}

// Sleeps as long as the body retries. It commits nothing.
[[gnu::cold, gnu::noinline]] ty_status wait_in_serial_mode(ty_atomic_txn &txn, const ty_atomic_options &options,
                                                           body_call &call) {
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
        call.may_wait = !serial && !txn.is_exclusive();
        ty_status status =
            serial ? run_with_rwlock(txn, options, call, committed) : run_once(txn, options, call, false, committed);
        call.may_wait = true;
        if (txn.hold_count != 0 && !call.within()) [[unlikely]]
            holds_drop(txn, *committed);
        if (*committed) [[likely]] {
            txn.call_due();
            return TY_OK;
        }
        outers_back(call);
        const bool again = status == TY_E_BUSY && txn.last_conflict() == stm::conflict::restart;
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
    ty_atomic_txn *txn = nullptr;
    if (ty_status status = member_of(heap, &txn))
        return status;
    const concurrent_heap &all = *txn->all;
    if (ty_status status = refuse(all, options))
        return status;
    if (txn->runs()) [[unlikely]]
        return run_part(*txn, options, body, context, &result->committed);
    const bool waits = options.commit != TY_COMMIT_ASYNC;
    commit_watch watch(all.rt != nullptr && !options.reads_only ? &all.rt->times : nullptr,
                       waits ? commit_timed::durable : commit_timed::asynchronous, txn->commits);
    body_call call; // the savepoints need no zeros
    call.txn = txn;
    call.body = body;
    call.context = context;
    call.mode = txn->mode = options.commit;
    if (in_body()) [[unlikely]]
        if (ty_status status = enter_outers(options, call))
            return status;
    const body_entry before = bodies_enter(*txn, options.irrevocable);
    ty_status status = run_until_done(*txn, options, call, &result->committed);
    bodies_leave(*txn, before);
    result->runs = call.runs;
    if (call.within()) [[unlikely]]
        leave_outers(call);
    if (!result->committed) [[unlikely]] {
        if (!call.within())
            blockers_forget(*txn);
        if (status == TY_OK)
            call.thrown.rethrow();
        return status != TY_OK ? status : call.status;
    }
    result->lsn = call.timestamp;
    after_commit(*txn);
    status = wait_as_asked(all.rt, options, call);
    if (!status)
        watch.end();
    return status;
}

ty_status atomic_retry(ty_atomic_txn *txn) {
    if (txn->aborted() == TY_OK)
        txn->waits = true;
    return TY_E_BUSY;
}

ty_status atomic_restart(ty_atomic_txn *txn) {
    if (txn->aborted() != TY_OK)
        return aborted(*txn);
    if (txn->waits)
        return TY_E_BUSY;
    if (txn->irrevocable)
        return failure(TY_E_ARGUMENT, "run again: the transaction is irrevocable")
            .remedy("return a status of your own, which rolls it back");
    txn->restart();
    return TY_E_BUSY;
}

ty_status atomic_or_else(ty_atomic_txn *txn, ty_atomic_body *first, ty_atomic_body *second, void *context) {
    const stm::transaction::part_savepoint words = txn->savepoint();
    const block_savepoint blocks = blocks_savepoint(*txn);
    ty_status status = TY_E_BUSY;
    os::caught thrown;
    auto run = [&] { status = first(txn, context); };
    txn->parts++;
    const bool returned = thrown.run(run);
    txn->parts--;
    if (txn->aborted() != TY_OK || (returned && !txn->waits)) {
        thrown.rethrow();
        return status;
    }
    const bool waits = txn->waits;
    txn->waits = false;
    txn->back_to(words);
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
    return txn != nullptr && txn->runs() ? txn : nullptr;
}

ty_heap *atomic_heap(const ty_atomic_txn *txn) {
    return txn->all->heap;
}

ty_status atomic_status(const ty_atomic_txn *txn) {
    return txn->aborted();
}

namespace {

// Pages that were never used may have no memory, and read as zeros (H7: pages from the top on read as zeros).
bool is_in_use(const concurrent_heap &all, const void *address, size_t bytes) {
    const uint64_t offset = reinterpret_cast<uintptr_t>(address) - reinterpret_cast<uintptr_t>(all.base);
    const uint64_t used = all.used_pages->load(std::memory_order_acquire) * os::page_bytes;
    const uint64_t end = used < all.end_byte ? used : all.end_byte;
    return offset >= all.first_byte && offset < end && bytes <= end - offset;
}

// The range of the fast paths grows with the heap: the address is in it.
void extend_range(ty_atomic_txn &txn, const void *address) {
    if (txn.is_in_range(address)) [[likely]]
        return;
    const concurrent_heap &all = *txn.all;
    const uint64_t used = all.used_pages->load(std::memory_order_acquire) * os::page_bytes;
    const uint64_t end = used < all.end_byte ? used : all.end_byte;
    txn.set_range(all.base + all.first_byte, end > all.first_byte ? end - all.first_byte : 0);
}

} // namespace

namespace {

[[gnu::noinline]] ty_status load_slowly(ty_atomic_txn *txn, const void *address, void *value, size_t bytes) {
    const bool one_word = stm::lies_in_word(address, bytes);
    if (!(one_word && txn->is_in_range(address)) && !is_in_use(*txn->all, address, bytes)) [[unlikely]] {
        if (bytes <= txn->all->end_byte) // no value can be that large
            memset(value, 0, bytes);
        return bytes != 0 ? not_in_blocks("load", address, bytes) : TY_OK;
    }
    if (one_word) {
        const unsigned bit = stm::bit_in_word(address);
        const uint64_t mask = UINT64_MAX >> (64 - 8 * bytes) << bit;
        uint64_t word = 0;
        if (txn->load_in_word(reinterpret_cast<uint64_t *>(stm::word_around(address)), mask, &word)) [[likely]] {
            word >>= bit;
            memcpy(value, &word, bytes);
            extend_range(*txn, address);
            return TY_OK;
        }
    } else if (txn->load(address, value, bytes)) {
        return TY_OK;
    }
    memset(value, 0, bytes);
    return aborted(*txn);
}

// X32: what it stores to a block of its own is in the block at once.
[[gnu::noinline]] ty_status store_slowly(ty_atomic_txn *txn, void *address, const void *value, size_t bytes) {
    const bool one_word = stm::lies_in_word(address, bytes);
    if (!(one_word && txn->is_in_range(address)) && !is_in_use(*txn->all, address, bytes)) [[unlikely]]
        return bytes != 0 ? not_in_blocks("store", address, bytes) : TY_OK;
    if (txn->allocs.count() != 0 && is_own(*txn, address, bytes) && !fault("store_to_an_own_allocation_at_the_commit"))
        return store_own(*txn, address, value, bytes);
    if (one_word) {
        const unsigned bit = stm::bit_in_word(address);
        uint64_t word = 0;
        memcpy(&word, value, bytes);
        if (txn->store_in_word(reinterpret_cast<uint64_t *>(stm::word_around(address)), word << bit,
                               UINT64_MAX >> (64 - 8 * bytes) << bit)) [[likely]] {
            extend_range(*txn, address);
            return TY_OK;
        }
    } else if (txn->allocs.count() != 0) { // some words may lie in a block of its own, others not
        const size_t first = 8 - reinterpret_cast<uintptr_t>(address) % 8;
        ty_status status = store_slowly(txn, address, value, first);
        for (size_t at = first; at < bytes && status == TY_OK; at += 8)
            status = store_slowly(txn, static_cast<char *>(address) + at, static_cast<const char *>(value) + at,
                                  bytes - at < 8 ? bytes - at : 8);
        return status;
    } else if (txn->store(address, value, bytes)) {
        return TY_OK;
    }
    return aborted(*txn);
}

} // namespace

// Words are common, and these two functions wait for memory: for a word they must make few stores, also to the stack,
// or the processor has no room to request the next word meanwhile (decision 28).
ty_status atomic_load(ty_atomic_txn *txn, const void *address, void *value, size_t bytes) {
    uint64_t word;
    if (bytes == sizeof word) [[likely]] {
        if (!txn->load_at_once(reinterpret_cast<uintptr_t>(address), &word)) [[unlikely]]
            return load_slowly(txn, address, value, bytes);
        memcpy(value, &word, sizeof word);
        return TY_OK;
    }
    if (!stm::is_half(address, bytes) || !txn->load_at_once(stm::word_around(address), &word)) [[unlikely]]
        return load_slowly(txn, address, value, bytes);
    const auto half = static_cast<uint32_t>(word >> stm::bit_in_word(address));
    memcpy(value, &half, sizeof half);
    return TY_OK;
}

// X32: a store to an own block is in the block at once. Most such stores are to the block that was allocated last.
[[gnu::noinline]] static ty_status store_otherwise(ty_atomic_txn *txn, void *address, const void *value, size_t bytes) {
    if (txn->own_allocations.last_holds(address, bytes) && txn->parts == 0 && txn->aborted() == TY_OK) {
        if (bytes == sizeof(uint64_t)) [[likely]]
            memcpy(address, value, sizeof(uint64_t));
        else
            memcpy(address, value, bytes);
        return TY_OK;
    }
    if (stm::is_half(address, bytes)) {
        uint32_t half;
        memcpy(&half, value, sizeof half);
        const unsigned bit = stm::bit_in_word(address);
        if (txn->store_at_once(stm::word_around(address), uint64_t{half} << bit, uint64_t{UINT32_MAX} << bit))
            return TY_OK;
    }
    return store_slowly(txn, address, value, bytes);
}

ty_status atomic_store(ty_atomic_txn *txn, void *address, const void *value, size_t bytes) {
    uint64_t word;
    if (bytes == sizeof word) [[likely]] {
        memcpy(&word, value, sizeof word);
        if (txn->store_at_once(reinterpret_cast<uintptr_t>(address), word, UINT64_MAX)) [[likely]]
            return TY_OK;
    }
    return store_otherwise(txn, address, value, bytes);
}

void atomic_prefetch(ty_atomic_txn *txn, const void *const *addresses, size_t count) {
    txn->prefetch(addresses, count);
}

ty_status atomic_on_commit(ty_atomic_txn *txn, void (*function)(void *context), void *context) {
    return txn->call_after_commit(function, context);
}

ty_status atomic_on_rollback(ty_atomic_txn *txn, void (*function)(void *context), void *context) {
    return txn->call_after_roll_back(function, context);
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
    const ty_status status = txn.aborted();
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
