// Transactions from their begin to their end. docs/design/txn.md, "What a transaction does when".
#include "bodies.hpp"
#include "write_faults.hpp"

#include <new>

namespace taiyen {
namespace {

constexpr size_t kept_bytes = size_t{4} << 20; // per array, kept from one transaction to the next

template <class T>
void clear(txn_array<T> &array) {
    if (array.count * sizeof(T) > kept_bytes) [[unlikely]]
        array.memory.trim(kept_bytes);
    array.count = 0;
}

void clear_blocks(ty_txn *txn) {
    for (const touched_block &block : txn->blocks)
        txn->block_numbers.erase(block.word);
    clear(txn->blocks);
}

} // namespace

ty_status refuse_forked(const txn_runtime &rt, const char *call) {
    if (rt.txn_forked())
        return failure(TY_E_FORKED, "%s: the heap belongs to the parent process", call)
            .remedy("use it there, or open it in the child after the parent has closed it");
    return TY_OK;
}

void transaction_finish(ty_txn *txn) {
    if (txn->blocks.count != 0)
        clear_blocks(txn);
    // X29: locks are held until what waits for one outcome has it.
    if (txn->objects.count != 0 &&
        (!txn->rt->grouped.load(std::memory_order_relaxed) || fault("object_unlocked_before_the_dtxn_is_durable")))
        objects_unlock(txn);
    txn->ranges.reset();
    clear(txn->roots);
    clear(txn->rollbacks);
    clear(txn->payloads);
    clear(txn->parts);
    txn->has_procedure = false;
    txn->prepared = 0;
    txn->preparer.store(0, std::memory_order_relaxed);
    if (txn->takes_before_images)
        write_faults_end(*txn->rt);
    txn->in_dtxn = txn->scoped = false;
    txn->owner.store(0, std::memory_order_relaxed);
    if (txn->rt->grouped.load(std::memory_order_relaxed) &&
        !fault("rwlock_released_before_the_dtxn_is_durable")) // X29, as above
        return;
    others_go_on(*txn->rt);
    if (txn->rt->sharing != nullptr)
        sharing_unlock(*txn->rt);
    txn->rt->rwlock.unlock();
}

namespace {

// Sets the bounds of what can be written to, up to what the heap has used. If memory is armed, each declaration must
// make it writable, so no range is within the bounds.
void set_bounds(ty_txn *txn) {
    if (txn->rt->write_faults != nullptr) {
        txn->ranges.set_bounds(0, 0);
        return;
    }
    uint64_t used = heap_used_bytes(txn->rt->heap) / 8;
    uint64_t end = used < txn->rt->user_end_word ? used : txn->rt->user_end_word;
    txn->ranges.set_bounds(txn->rt->user_first_word, end);
}

ty_status refuse_begin(const txn_runtime &rt) {
    constexpr const char *call = "begin a transaction";
    if (rt.log == nullptr && rt.sharing == nullptr)
        return failure(TY_E_PERMISSION, "%s: the heap is open for reading only", call).remedy("open it for writing");
    if (ty_status status = refuse_forked(rt, call))
        return status;
    if (rt.receives.load(std::memory_order_relaxed) && !fault("program_writes_to_a_standby")) // LK7: nobody else writes
        return refuse_received(rt, call);
    if (rt.poisoned.load(std::memory_order_relaxed))
        return refuse_poisoned(rt, call);
    if (rt.txn->owner.load(std::memory_order_relaxed) == this_thread())
        return failure(TY_E_ARGUMENT, "%s: this thread has one under way on the heap", call)
            .remedy("commit it or roll it back first; ty_current_txn returns it");
    if (ty_status status = refuse_own_prepared(rt, call))
        return status;
    if (in_section(rt))
        return failure(TY_E_ARGUMENT, "%s: this thread has a read section open on the heap", call)
            .remedy("end it first: the transaction would wait for it for ever");
    return refuse_within(rt, call);
}

ty_status busy() {
    return failure(TY_E_BUSY, "begin a transaction: another one is under way, or readers are in the heap")
        .remedy("try again, or leave no_wait out");
}

record_beginning beginning_of(const ty_txn *txn) {
    return {txn->description, txn->description_bytes, txn->parts.begin(), txn->parts.count};
}

// A snapshot holds the transaction in place of a record. X6: a commit that fails leaves everything as it was.
ty_status commit_by_snapshot(ty_txn *txn, uint64_t *lsn) {
    if (ty_status status = blocks_list(txn))
        return status;
    if (ty_status status = snapshot_instead(*txn->rt, true, lsn)) {
        blocks_unlist(txn);
        return status;
    }
    return TY_OK;
}

bool nothing_done(const ty_txn *txn) {
    return txn->ranges.empty() && txn->blocks.count == 0 && txn->roots.count == 0 && !txn->has_procedure &&
           !(txn->tracked && write_faults_has_before_images(*txn->rt));
}

// What the record's last part has. Most transactions declared a few words and did nothing else.
ty_status collect(ty_txn *txn, record_part *part, size_t *entries) {
    if (txn->blocks.count == 0 && txn->roots.count == 0 && !txn->has_procedure && txn->parts.count == 0 &&
        !txn->tracked && txn->ranges.changed_words(&txn->changed, entries)) {
        *part = {nullptr, 0, nullptr, 0, &txn->changed};
        return TY_OK;
    }
    ty_status status = part_collect(txn, true, part);
    *entries = status ? 0 : part->range_count + part->operation_count;
    return status;
}

// Where a record goes: the log, or the log buffer that processes share.
ty_status append_begin(txn_runtime &rt, size_t bytes, uint8_t **place) {
    if (rt.sharing == nullptr)
        return log_append_begin(rt.log, bytes, place);
    if (bytes > sharing_record_max(rt))
        return failure(TY_E_SPACE, "commit changes of %zu bytes to a shared heap", bytes)
            .at(image_path(rt.heap))
            .remedy("make several transactions of it, of %zu bytes each at most; or open the heap without the option "
                    "shared for it",
                    sharing_record_max(rt));
    *place = sharing_append_begin(rt, bytes);
    return TY_OK;
}

uint64_t append_end(txn_runtime &rt, size_t bytes) {
    return rt.sharing != nullptr ? sharing_append_end(rt, bytes) : log_append_end(rt.log, bytes);
}

ty_status append_copy(txn_runtime &rt, const uint8_t *record, size_t bytes, uint64_t *lsn) {
    uint8_t *place;
    if (ty_status status = append_begin(rt, bytes, &place))
        return status;
    memcpy(place, record, bytes);
    *lsn = append_end(rt, bytes);
    return TY_OK;
}

} // namespace

ty_status transaction_append(ty_txn *txn, uint64_t *lsn) {
    txn_runtime &rt = *txn->rt;
    record_part part{};
    size_t entries;
    *lsn = 0;
    if (ty_status status = collect(txn, &part, &entries))
        return status;
    const record_beginning before = beginning_of(txn);
    if (part.words && part.words->count == 0 && before.bound() == 0)
        return TY_OK;
    // Most of what is declared may not have changed: a record that could be too long is first encoded in memory of its
    // own.
    const size_t bound = before.bound() + record_bound(part);
    const bool may_be_too_long = bound > (rt.sharing != nullptr ? sharing_record_max(rt) : log_record_max(rt.log));
    uint8_t *place;
    if (ty_status status = may_be_too_long ? txn->encoded.provide(bound) : append_begin(rt, bound, &place))
        return status;
    if (may_be_too_long)
        place = txn->encoded.as<uint8_t>();
    const size_t bytes = record_encode_whole(before, part, place);
    ty_status status = TY_OK;
    if (!may_be_too_long) {
        const uint64_t appended = append_end(rt, bytes);
        *lsn = bytes != 0 ? appended : 0;
    } else {
        status = bytes != 0 ? append_copy(rt, place, bytes, lsn) : TY_OK;
        if (bound > kept_bytes)
            txn->encoded.trim(kept_bytes);
    }
    if (*lsn != 0) {
        txn->rt->metrics.record_bytes.add(bytes);
        txn->rt->metrics.entries.add(entries);
    }
    return status;
}

ty_status transaction_encode(ty_txn *txn, const uint8_t **bytes, size_t *size) {
    record_part part{};
    size_t entries;
    if (ty_status status = collect(txn, &part, &entries))
        return status;
    const record_beginning before = beginning_of(txn);
    if (ty_status status = txn->encoded.provide(before.bound() + record_bound(part)))
        return status;
    auto *record = txn->encoded.as<uint8_t>();
    *bytes = record;
    *size = record_encode_whole(before, part, record);
    txn->rt->metrics.entries.add(entries);
    return TY_OK;
}

namespace {

// Everything up to the point of no return. X6: a failure leaves everything as it was.
ty_status publish_changes(ty_txn *txn, committed *done) {
    *done = {0, false};
    if (txn->prepared == 0 && nothing_done(txn))
        return TY_OK;
    if (txn->rt->sharing != nullptr)
        if (ty_status status = sharing_check_commit(*txn->rt))
            return status;
    ty_status status = txn->prepared != 0 ? append_outcome(*txn->rt, record_outcome::committed, &done->lsn)
                                          : transaction_append(txn, &done->lsn);
    if (txn->rt->sharing == nullptr && (status == TY_E_SPACE || (status != TY_OK && log_broken(txn->rt->log)))) {
        done->by_snapshot = true;
        status = commit_by_snapshot(txn, &done->lsn);
    }
    if (status == TY_OK && done->lsn != 0)
        txn->rt->metrics.transactions.add(1);
    return status;
}

// X1: a record is appended only with the reader-writer lock held.
ty_status commit_in_memory(ty_txn *txn, committed *done) {
    if (ty_status status = refuse_forked(*txn->rt, "commit")) // the log's file is the parent's, too
        return status;
    if (ty_status status = take_prepared(txn, "commit"))
        return status;
    if (ty_status status = publish_changes(txn, done))
        return leave_prepared(txn, status);
    if (txn->takes_before_images && !txn->tracked)
        undeclared_stores_in(txn);
    bool sound = txn->blocks.count == 0 || blocks_finish_commit(txn, done->by_snapshot) == TY_OK;
    if (done->lsn == 0)
        done->lsn = txn_last(*txn->rt);
    else if (txn->rt->log != nullptr)
        snapshots_after_commit(*txn->rt);
    transaction_finish(txn);
    // The detail is that of the heap's refusal.
    return sound ? TY_OK : TY_E_DAMAGED;
}

} // namespace

ty_status refuse_within(const txn_runtime &rt, const char *call) {
    if (rt.concurrent == nullptr)
        return TY_OK;
    if (rt.concurrent->in_one(*rt.concurrent))
        return failure(TY_E_ARGUMENT, "%s: this thread is in a body of ty_atomically on the heap", call)
            .remedy("return from the body first");
    return must_not_wait() ? refuse_in_body(call) : TY_OK; // X31: that lets bodies of other threads end
}

ty_status not_in_transaction(const ty_txn *txn, const char *call) {
    if (txn->owner.load(std::memory_order_relaxed) == prepared_owner)
        return failure(TY_E_ARGUMENT, "%s: the transaction is prepared", call)
            .remedy("commit it or roll it back: nothing else can be done with it");
    if (txn->owner.load(std::memory_order_relaxed) == 0)
        return failure(TY_E_ARGUMENT, "%s: the transaction has ended", call).remedy("begin another one");
    return failure(TY_E_ARGUMENT, "%s: the transaction is another thread's", call)
        .remedy("use a transaction only in the thread that began it");
}

namespace {

struct arenas {
    arena *all[14];
};
arenas arenas_of(ty_txn &txn) {
    return {{&txn.blocks.memory, &txn.roots.memory, &txn.rollbacks.memory, &txn.payloads.memory, &txn.objects.memory,
             &txn.parts.memory, &txn.words.memory, &txn.operations.memory, &txn.overlays.memory, &txn.found.memory,
             &txn.encoded, &txn.to_read.memory, &txn.rolled_back.memory, &txn.reported_variables.memory}};
}

} // namespace

ty_status transaction_create(txn_runtime &rt) {
    void *memory;
    if (ty_status status = os::map_memory(sizeof(ty_txn), os::memory_hint::none, &memory))
        return status;
    ty_txn *txn = rt.txn = ::new (memory) ty_txn{};
    txn->rt = &rt;
    uint64_t words = heap_limit(rt.heap) / 8;
    ty_status status = txn->ranges.create(rt.base, words);
    if (status == TY_OK)
        status = txn->block_numbers.create(words);
    for (arena *each : arenas_of(*txn).all)
        if (status == TY_OK)
            status = each->create(size_t{16} << 30);
    if (status == TY_OK)
        status = objects_create(rt);
    if (status != TY_OK)
        transaction_destroy(rt);
    return status;
}

void transaction_destroy(txn_runtime &rt) {
    ty_txn *txn = rt.txn;
    if (txn == nullptr)
        return;
    write_faults_destroy(rt);
    objects_destroy(rt);
    for (arena *each : arenas_of(*txn).all)
        each->destroy();
    txn->block_numbers.destroy();
    txn->ranges.destroy();
    os::retire_memory(txn, sizeof(ty_txn));
    rt.txn = nullptr;
}

ty_status txn_begin_check(ty_heap *heap) {
    return refuse_begin(*runtime_of(heap));
}

ty_status txn_refuse_in_body(const char *call) {
    return must_not_wait() ? refuse_in_body(call) : TY_OK;
}

// With the reader-writer lock held.
static ty_status start(txn_runtime &rt, const ty_txn_options &options, ty_txn **begun) {
    ty_txn *txn = rt.txn;
    txn->by_default = options.stores == TY_STORES_DEFAULT;
    ty_store_mode stores = txn->by_default ? rt.stores.load(std::memory_order_relaxed) : options.stores;
    txn->free_later = options.free_later;
    txn->tracked = stores == TY_STORES_TRACKED;
    txn->takes_before_images = txn->tracked || rt.check_stores;
    if (txn->takes_before_images)
        if (ty_status status = write_faults_begin(rt))
            return status;
    set_bounds(txn);
    txn->owner.store(this_thread(), std::memory_order_relaxed);
    *begun = txn;
    return TY_OK;
}

ty_status txn_begin(ty_heap *heap, const ty_txn_options &options, ty_txn **begun) {
    txn_runtime *rt = runtime_of(heap);
    if (rt == nullptr)
        return failure(TY_E_ARGUMENT, "begin a transaction: the heap is not transactional")
            .remedy("open it with the kind TY_TRANSACTIONAL");
    if (ty_status status = refuse_begin(*rt))
        return status;
    if (ty_status status = thread_ends_watch())
        return status;
    // X31: a thread in a body waits for nobody on another heap.
    const bool no_wait = options.no_wait || must_not_wait();
    const uint64_t lock_timeout_ns = uint64_t{1'000'000} * options.lock_timeout_ms;
    if (ty_status status = rt->sharing != nullptr ? sharing_lock(*rt, no_wait, lock_timeout_ns) : TY_OK)
        return status;
    if (!no_wait) {
        rt->rwlock.lock();
    } else if (!rt->rwlock.try_lock()) {
        if (rt->sharing != nullptr)
            sharing_unlock(*rt);
        return options.no_wait ? busy() : bodies_abort_for({blocker::kind::rwlock, nullptr, &rt->rwlock, nullptr});
    }
    stop_others(*rt);
    // X22: what concurrent transactions have freed is free for this one, too.
    if (rt->concurrent != nullptr && !fault("begin_finds_freed_blocks_live"))
        static_cast<void>(rt->concurrent->give_back(*rt->concurrent));
    ty_status status = TY_OK;
    if (rt->poisoned.load(std::memory_order_relaxed) &&
        !fault("transaction_enters_a_poisoned_heap")) // while this waited
        status = refuse_poisoned(*rt, "begin a transaction");
    else if (rt->sharing == nullptr ||
             (!(status = sharing_enter(*rt)) &&
              !(status = sharing_check_reads_before(*rt, "begin a transaction on what was read before"))))
        status = start(*rt, options, begun);
    if (status) {
        others_go_on(*rt);
        if (rt->sharing != nullptr)
            sharing_unlock(*rt);
        rt->rwlock.unlock();
    }
    return status;
}

ty_status txn_begin_next(ty_heap *heap, const ty_txn_options &options, ty_txn **begun) {
    if (ty_status status = thread_ends_watch())
        return status;
    return start(*runtime_of(heap), options, begun);
}

// From now on the transaction's stores are tracked. That is equivalent to tracking from its begin if no stores are
// known so far except in its own blocks.
static ty_status become_tracked(ty_txn *txn) {
    bool published = false;
    for (const touched_block &block : txn->blocks)
        published |= block.published;
    if (!txn->ranges.empty() || published || txn->rollbacks.count != 0 || txn->has_procedure || txn->parts.count != 0)
        return failure(TY_E_BUSY, "let a transaction find its stores by itself: it has declared some already")
            .remedy("begin it with stores = TY_STORES_TRACKED, or open the heap with track_stores = true");
    if (!txn->takes_before_images)
        if (ty_status status = write_faults_begin(*txn->rt))
            return status;
    txn->tracked = txn->takes_before_images = true;
    set_bounds(txn);
    return TY_OK;
}

ty_status txn_set_stores(ty_heap *heap, ty_store_mode stores) {
    txn_runtime *rt = runtime_of(heap);
    if (rt == nullptr || (rt->log == nullptr && rt->sharing == nullptr))
        return failure(TY_E_ARGUMENT, "set how stores become known: the heap is not transactional, or open for reading "
                                      "only")
            .remedy("open it for writing with the kind TY_TRANSACTIONAL");
    if (ty_status status = refuse_forked(*rt, "set how stores become known"))
        return status;
    rt->stores.store(stores, std::memory_order_relaxed);
    ty_txn *txn = txn_current(heap);
    bool declared_by_default = txn != nullptr && txn->by_default && !txn->tracked;
    return declared_by_default && stores == TY_STORES_TRACKED ? become_tracked(txn) : TY_OK;
}

ty_store_mode txn_stores(const ty_txn *txn) {
    if (txn->tracked)
        return TY_STORES_TRACKED;
    return txn->by_default ? TY_STORES_DEFAULT : TY_STORES_DECLARED;
}

ty_txn *txn_current(ty_heap *heap) {
    txn_runtime *rt = runtime_of(heap);
    if (rt == nullptr || rt->txn == nullptr)
        return nullptr;
    return rt->txn->owner.load(std::memory_order_relaxed) == this_thread() ? rt->txn : nullptr;
}

ty_heap *txn_heap(const ty_txn *txn) {
    return txn->rt != nullptr ? txn->rt->heap : nullptr; // NULL: its heap is closed
}

ty_status words_of(ty_txn *txn, const char *call, const void *address, size_t bytes, word_span *words) {
    *words = {0, 0};
    if (bytes == 0)
        return TY_OK;
    set_bounds(txn); // allocations of this transaction, and reservations, may have raised them
    const txn_runtime &rt = *txn->rt;
    uint64_t offset = reinterpret_cast<uintptr_t>(address) - reinterpret_cast<uintptr_t>(rt.base);
    uint64_t low = rt.user_first_word * 8;
    uint64_t high = heap_used_bytes(rt.heap) < rt.user_end_word * 8 ? heap_used_bytes(rt.heap) : rt.user_end_word * 8;
    if (offset < low || offset >= high || bytes > high - offset)
        return failure(TY_E_ARGUMENT, "%s: %zu byte%s at %p: not in the heap's blocks", call, bytes, plural(bytes),
                       address)
            .remedy("hand in the address of a part of a block of the transaction's heap");
    words->first = offset / 8;
    words->count = (offset + bytes + 7) / 8 - words->first;
    return TY_OK;
}

ty_status declare_words(ty_txn *txn, uint64_t first, uint64_t count) {
    if (txn->rt->write_faults != nullptr)
        if (ty_status status = write_faults_make_writable(*txn->rt, address_of(*txn->rt, first), count * 8))
            return status;
    return txn->tracked ? TY_OK : txn->ranges.add(first, count); // the before-image is as old, or older
}

[[gnu::noinline]] static ty_status declare_otherwise(ty_txn *txn, const void *address, size_t bytes) {
    constexpr const char *call = "declare a range";
    word_span words;
    if (ty_status status = check_owner(txn, call))
        return status;
    if (ty_status status = words_of(txn, call, address, bytes, &words))
        return status;
    return words.count != 0 ? declare_words(txn, words.first, words.count) : TY_OK;
}

ty_status txn_declare(ty_txn *txn, const void *address, size_t bytes) {
    if (txn->owner.load(std::memory_order_relaxed) == this_thread() && txn->ranges.add_word(address, bytes)) [[likely]]
        return TY_OK;
    return declare_otherwise(txn, address, bytes);
}

bool txn_is_empty(const ty_txn *txn) {
    return nothing_done(txn);
}

ty_status txn_commit_async(ty_txn *txn, uint64_t *lsn) {
    committed done;
    commit_watch watch(&txn->rt->times, commit_timed::asynchronous, txn->rt->metrics.transactions.get());
    if (ty_status status = commit_in_memory(txn, &done))
        return status;
    watch.end();
    if (lsn != nullptr)
        *lsn = done.lsn;
    return TY_OK;
}

ty_status txn_commit(ty_txn *txn) {
    committed done;
    txn_runtime &rt = *txn->rt;
    commit_watch watch(&rt.times, commit_timed::durable, 0);
    if (ty_status status = commit_in_memory(txn, &done))
        return status;
    if (!done.by_snapshot)
        if (ty_status status = make_durable(rt, done.lsn))
            return status;
    watch.end();
    return TY_OK;
}

ty_status txn_rollback(ty_txn *txn) {
    if (ty_status status = take_prepared(txn, "roll back"))
        return status;
    if (txn->prepared != 0)
        append_rollback(txn);
    if (txn->takes_before_images && !txn->tracked)
        undeclared_stores_in(txn);
    ty_heap *heap = txn->rt->heap;
    dangling_words dangling;
    if (txn->scoped)
        blocks_keep(txn, &dangling);
    ty_status memory = memory_rollback(txn);
    if (txn->tracked)
        write_faults_rollback(*txn->rt);
    ty_status blocks = blocks_rollback(txn);
    txn->rt->metrics.rollbacks.add(1);
    transaction_finish(txn);
    if (dangling.count != 0)
        heap_report_dangling(&dangling, TY_DANGLING_ROLLBACK, image_path(heap));
    return memory != TY_OK ? memory : blocks;
}

ty_status txn_durable(ty_heap *heap, uint64_t lsn, bool wait, bool *durable) {
    txn_runtime *rt = runtime_of(heap);
    constexpr const char *call = "check whether a transaction is durable";
    if (rt == nullptr || (rt->log == nullptr && rt->sharing == nullptr))
        return failure(TY_E_ARGUMENT, "%s: the heap is not transactional, or open for reading only", call)
            .remedy("open it for writing with the kind TY_TRANSACTIONAL");
    if (ty_status status = refuse_forked(*rt, call)) // a wait would write to the parent's log
        return status;
    uint64_t last = txn_last(*rt);
    if (lsn > last && rt->concurrent != nullptr && !rt->concurrent->in_one(*rt->concurrent))
        last = rt->concurrent->newest_commit(*rt->concurrent);
    if (lsn > last)
        return failure(TY_E_ARGUMENT, "%s: none has the number %llu yet", call, static_cast<unsigned long long>(lsn))
            .remedy("hand in what ty_commit_async gave; the last one is %llu", static_cast<unsigned long long>(last));
    uint64_t wanted = lsn != 0 ? lsn : last;
    if (wait)
        if (ty_status status = make_durable(*rt, wanted))
            return status;
    *durable = rt->sharing != nullptr ? sharing_is_durable(*rt, wanted) : log_durable(rt->log) >= wanted;
    return TY_OK;
}

ty_status txn_get_stats(ty_heap *heap, ty_txn_stats *stats) {
    txn_runtime *rt = runtime_of(heap);
    if (rt == nullptr || (rt->log == nullptr && rt->sharing == nullptr))
        return failure(TY_E_ARGUMENT, "get transaction statistics: the heap is not transactional, or open for reading "
                                      "only")
            .remedy("open it for writing with the kind TY_TRANSACTIONAL");
    if (ty_status status = refuse_forked(*rt, "get transaction statistics")) // others may have held the locks
        return status;
    *stats = {};
    stats->struct_size = sizeof *stats;
    stats->transactions = rt->metrics.transactions.get();
    stats->rollbacks = rt->metrics.rollbacks.get();
    stats->entries = rt->metrics.entries.get();
    stats->record_bytes = rt->metrics.record_bytes.get();
    stats->replayed_transactions = rt->metrics.replayed_transactions.get();
    stats->replayed_bytes = rt->metrics.replayed_bytes.get();
    stats->replay_ns = rt->metrics.replay_ns.get();
    stats->lsn = txn_last(*rt);
    if (rt->sharing != nullptr) {
        stats->durable_lsn = sharing_durable(*rt);
        stats->process = sharing_number(*rt);
    }
    if (rt->log == nullptr) // another process writes it
        return TY_OK;
    log_metrics metrics = log_get_metrics(rt->log);
    stats->log_bytes = metrics.bytes;
    stats->log_frames = metrics.frames;
    stats->used_log_bytes = metrics.used_bytes;
    stats->size_log_bytes = metrics.ring_bytes;
    if (rt->sharing == nullptr)
        stats->durable_lsn = log_durable(rt->log);
    stats->reserved_blocks = reserved_count(*rt);
    snapshots_add_stats(*rt, stats);
    if (rt->concurrent != nullptr)
        rt->concurrent->add_stats(*rt->concurrent, stats);
    return TY_OK;
}

} // namespace taiyen
