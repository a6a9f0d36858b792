// A heap that receives: applies the records of another heap's transactions, one after the other, while its readers
// continue. docs/design/feed.md, "A replica".
#include "replayer.hpp"

#include <cstdlib>
#include <new>

namespace taiyen {

struct receiving {
    txn_runtime *rt;
    bool logged;
    step_batches batches; // one
    // Records of less than 8 bytes, each after 8 readable bytes.
    static constexpr size_t small_max = 2048;
    size_t small_count;
    uint8_t small[small_max][16];
};

namespace {

constexpr size_t piece_bytes = size_t{256} << 10; // of records, applied while readers wait

record_scope scope_of(const txn_runtime &rt) {
    return {rt.user_first_word, rt.user_end_word};
}

// ---- Begin and end

ty_status refuse_source(const txn_runtime &rt, const char *why, const char *remedy) {
    return failure(TY_E_MISMATCH, "receive the transactions of another heap: %s", why)
        .at(image_path(rt.heap))
        .remedy("%s", remedy);
}

// Whether the program could have left anything in the heap that records do not know.
ty_status check_can_receive(txn_runtime *rt) {
    constexpr const char *call = "receive the transactions of another heap";
    if (!rt || !rt->log)
        return failure(TY_E_ARGUMENT, "%s: this one is not transactional, or open for reading only", call)
            .remedy("open it for writing with the kind TY_TRANSACTIONAL");
    if (ty_status status = refuse_shared(*rt, call))
        return status;
    if (rt->txn_forked())
        return failure(TY_E_FORKED, "%s: this one belongs to the parent process", call);
    if (txn_current(rt->heap) || in_section(*rt))
        return failure(TY_E_ARGUMENT, "%s: this thread has a transaction or a read section under way", call)
            .remedy("end it first");
    if (ty_status status = refuse_within(*rt, call))
        return status;
    if (rt->write_faults || rt->check_stores)
        return failure(TY_E_UNSUPPORTED, "%s: its stores are looked for in this one", call)
            .remedy("open it without the options track_stores and check_stores");
    return TY_OK;
}

// Checks a copy that has not received yet.
ty_status check_copy(const txn_runtime &rt, const receive_start &start, const log_identity &own) {
    const bool same_heap = !memcmp(own.heap, start.source.heap, sizeof own.heap);
    const uint64_t last = txn_last(rt);
    if (!same_heap && !start.base)
        return failure(TY_E_ARGUMENT, "receive the transactions of another heap: it is not said where that one lies")
            .remedy("set the option base to the address of the heap that the records are of");
    if (start.base && start.base != rt.base)
        return failure(TY_E_ADDRESS, "receive the transactions of a heap at %p: this one lies at %p", start.base,
                       static_cast<void *>(rt.base))
            .at(image_path(rt.heap))
            .remedy("unpack the copy where the heap lies that it was made of (TY_PLACE_SAME)");
    if (start.lsn > start.copied)
        return refuse_source(rt, "there are transactions between the copy and the position",
                             "begin at an older position");
    const bool numbered = last || (same_heap && own.log == start.source.log); // else it has a log of its own
    if ((last < start.copied || (last != start.copied && !fault("standby_overwrites_its_own_history"))) && numbered)
        return refuse_source(rt, "the heap was written to since it was copied, or is another copy",
                             "begin with a base that nobody has opened for writing");
    return TY_OK;
}

// LK7: nobody else writes to a heap that receives.
ty_status check_source(const txn_runtime &rt, const receive_start &start, heap_source *source) {
    log_identity own{};
    const heap_source now = *source = image_source(rt.heap, own.heap, &own.log);
    if (now.state == uint64_t(source_state::promoted) && !fault("promoted_standby_receives_again"))
        return refuse_source(rt, "this one was promoted, and has a history of its own", "begin with a base");
    if (now.state == uint64_t(source_state::receives)) {
        if (memcmp(now.heap_identity, start.source.heap, sizeof now.heap_identity) ||
            now.log_identity != start.source.log)
            return refuse_source(rt, "this one receives those of a third one", "begin with a base of that heap");
        if (start.lsn > txn_last(rt))
            return refuse_source(rt, "there are transactions between its last one and the position",
                                 "begin at an older position");
        return TY_OK;
    }
    return check_copy(rt, start, own);
}

// Removes the library's own blocks, since the source heap may use their place. X3: reserved blocks are listed in every
// snapshot, so nothing is appended until a snapshot holds this state.
ty_status become_replica(txn_runtime &rt, const receive_start &start, heap_source source) {
    bool removed = false;
    if (reserved_count(rt))
        return failure(TY_E_BUSY, "receive the transactions of another heap: blocks are reserved in this one")
            .remedy("cancel them first (ty_cancel)");
    if (ty_status status = reservations_remove_list(rt, &removed))
        return status;
    uint64_t lsn = txn_last(rt);
    if (source.state == uint64_t(source_state::none) && lsn < start.copied)
        rt.unlogged.store(start.copied - log_last(rt.log), std::memory_order_relaxed);
    else if (!removed && source.state == uint64_t(source_state::receives))
        return TY_OK;
    if (removed || rt.unlogged.load(std::memory_order_relaxed))
        if (ty_status status = snapshot_instead(rt, false, &lsn))
            return status;
    memcpy(source.heap_identity, start.source.heap, sizeof source.heap_identity);
    source.log_identity = start.source.log;
    source.state = uint64_t(source_state::receives);
    return image_set_source(rt.heap, source);
}

class [[nodiscard]] exclusive_use {
public:
    explicit exclusive_use(txn_runtime &rt) : rt_(rt) {
        rt.rwlock.lock();
        stop_others(rt);
    }
    ~exclusive_use() {
        others_go_on(rt_);
        rt_.rwlock.unlock();
    }
    exclusive_use(const exclusive_use &) = delete;
    exclusive_use &operator=(const exclusive_use &) = delete;

private:
    txn_runtime &rt_;
};

// ---- Records

// LK5: nothing is applied of a record that no source can have written.
struct received_check {
    ty_status operation(const record_operation &operation) const {
        if (operation.kind != operation_kind::procedure || procedure_known(operation.procedure))
            return TY_OK;
        return failure(TY_E_NOT_FOUND, "take a transaction: nothing is registered as procedure %llu",
                       (unsigned long long)operation.procedure)
            .remedy("register it with ty_register_procedure first");
    }
    ty_status word(uint64_t, uint64_t, uint64_t) const { return TY_OK; }
    ty_status words(uint64_t, uint64_t, const uint8_t *) const { return TY_OK; }
    ty_status zeros(uint64_t, uint64_t) const { return TY_OK; }
};

const uint8_t *readable(receiving &r, const ty_feed_record &record) {
    const auto *bytes = static_cast<const uint8_t *>(record.bytes);
    if (record.size_bytes >= sizeof(uint64_t))
        return bytes;
    uint8_t *copy = r.small[r.small_count++] + sizeof(uint64_t);
    if (record.size_bytes)
        memcpy(copy, bytes, record.size_bytes);
    return copy;
}

// The number of records that one outcome decides on, including it: one, if the first counts by itself.
size_t decided_together(const ty_feed_record *records, size_t count) {
    record_order order;
    record_view view;
    for (size_t n = 0; n < count; ++n)
        if (record_inspect(static_cast<const uint8_t *>(records[n].bytes), records[n].size_bytes, &view) ||
            order.step(view) || order.none())
            return n + 1;
    return count;
}

// Changes memory alone.
ty_status do_records(receiving &r, const ty_feed_record *records, size_t count) {
    txn_runtime &rt = *r.rt;
    replayer replay(rt, image_path(rt.heap), replayer::use::others_look);
    step_runner doer{replay};
    step_writer writer{{&doer, step_runner::take}, &r.batches[0]};
    ty_status status = TY_OK;
    r.small_count = 0;
    replay.begin();
    for (size_t i = 0, some; i < count && !status; i += some) {
        some = decided_together(records + i, count - i);
        record_view last;
        status = record_inspect(readable(r, records[i + some - 1]), records[i + some - 1].size_bytes, &last);
        const bool rolled_back = last.role == record_role::outcome && last.outcome == record_outcome::rolled_back &&
                                 !fault("rolled_back_received");
        const size_t from = some > 2 && fault("pending_record_left_out") ? some - 2 : 0;
        for (size_t n = from; n < some && !status && !rolled_back; ++n) {
            record_view view;
            status = record_inspect(readable(r, records[i + n]), records[i + n].size_bytes, &view);
            writer.begin_record(records[i + n].lsn, UINT64_MAX);
            status = status ? status : record_decode_in_place(view.parts, view.size, scope_of(rt), writer);
        }
    }
    if (!status)
        status = writer.hand_over(true);
    replay.end();
    return doer.status ? doer.status : status;
}

// Appends the records in one frame: so nothing is ever in doubt in a heap that receives. X1: with the reader-writer
// lock held; so the log's LSNs are the records'.
ty_status append(txn_runtime &rt, const ty_feed_record *records, size_t count) {
    log_piece pieces[record_pending_max + 2];
    for (size_t n = 0; n < count; ++n)
        pieces[n] = {records[n].bytes, records[n].size_bytes};
    for (size_t i = 0; i < count && fault("prepared_received_without_its_outcome"); ++i) {
        if (ty_status status = log_append_together(rt.log, pieces + i, 1); status || i + 1 == count)
            return status;
        (void)log_wait(rt.log, log_last(rt.log));
    }
    return log_append_together(rt.log, pieces, count);
}

// LK6: only whole transactions, in order. Applied in memory first: what does not fit the heap never gets into its log.
// A snapshot holds what the log does not take; until that is durable nothing is appended (X7).
void log_records(receiving &r, const ty_feed_record *records, size_t count) {
    txn_runtime &rt = *r.rt;
    uint64_t unlogged = rt.unlogged.load(std::memory_order_relaxed), bytes = 0;
    for (size_t i = 0, some; i < count; i += some) {
        some = decided_together(records + i, count - i);
        for (size_t n = 0; n < some; ++n)
            bytes += records[i + n].size_bytes;
        if (!r.logged || unlogged || append(rt, records + i, some))
            unlogged += some;
    }
    rt.unlogged.store(unlogged, std::memory_order_relaxed);
    rt.metrics.transactions.add(count);
    rt.metrics.record_bytes.add(bytes);
}

// A heap in which half a transaction was applied is useless: none of that gets into its files.
ty_status poison(txn_runtime &rt, ty_status status, const ty_feed_record &first) {
    const ty_error why = keep_error();
    rt.poisoned.store(!fault("half_received_heap_goes_on"), std::memory_order_release);
    if (status != TY_E_DAMAGED)
        return report_again(why, status);
    return failure(TY_E_DAMAGED, "take transaction %llu or one soon after it: it does not fit the heap",
                   (unsigned long long)first.lsn)
        .at(image_path(rt.heap))
        .remedy("discard the heap (ty_discard): its files hold what was before; begin with a base");
}

ty_status take_chunk(receiving &r, const ty_feed_record *records, size_t count) {
    txn_runtime &rt = *r.rt;
    exclusive_use with(rt);
    if (ty_status status = do_records(r, records, count))
        return poison(rt, status, records[0]);
    log_records(r, records, count);
    if (r.logged && rt.unlogged.load(std::memory_order_relaxed)) {
        uint64_t lsn = 0;
        return snapshot_instead(rt, false, &lsn);
    }
    snapshots_after_commit(rt);
    return TY_OK;
}

} // namespace

ty_status refuse_poisoned(const txn_runtime &rt, const char *call) {
    constexpr const char *remedy = "discard the heap (ty_discard): its files hold what was before";
    if (rt.sharing != nullptr)
        return failure(TY_E_DAMAGED, "%s: what other processes committed did not fit its memory", call)
            .at(image_path(rt.heap))
            .remedy("discard the heap (ty_discard), in all processes, and open it again");
    if (!rt.receives.load(std::memory_order_relaxed))
        return failure(TY_E_IN_DOUBT,
                       "%s: a write of distributed transactions has failed, which are in its memory all the same", call)
            .at(image_path(rt.heap))
            .remedy("%s", remedy);
    return failure(TY_E_DAMAGED, "%s: a transaction that it received did not fit the heap", call)
        .at(image_path(rt.heap))
        .remedy("%s", remedy);
}

ty_status refuse_received(const txn_runtime &rt, const char *call) {
    return failure(TY_E_PERMISSION, "%s: the heap receives the transactions of another one", call)
        .at(image_path(rt.heap))
        .remedy("write to that one; ty_promote makes this one a heap of its own");
}

ty_status txn_replica_begin(ty_heap *heap, const receive_start &start, receiving **made) {
    txn_runtime *rt = runtime_of(heap);
    if (ty_status status = check_can_receive(rt))
        return status;
    exclusive_use with(*rt);
    if (rt->poisoned.load(std::memory_order_relaxed))
        return refuse_poisoned(*rt, "receive the transactions of another heap");
    if (rt->replica)
        return failure(TY_E_BUSY, "receive the transactions of another heap: this one has a replica already")
            .at(image_path(heap))
            .remedy("end that one first (ty_replica_end)");
    heap_source source{};
    if (ty_status status = check_source(*rt, start, &source))
        return status;
    void *memory = nullptr;
    if (ty_status status = os::map_memory(sizeof(receiving), os::memory_hint::none, &memory))
        return status;
    auto *r = ::new (memory) receiving{};
    r->rt = rt;
    r->logged = start.logged;
    ty_status status = r->batches.create(1);
    if (!status)
        status = become_replica(*rt, start, source);
    if (status) {
        r->~receiving();
        os::unmap_memory(memory, sizeof *r);
        return status;
    }
    rt->receives.store(true, std::memory_order_relaxed);
    rt->replica = r;
    *made = r;
    return TY_OK;
}

void txn_replica_end(receiving *r) {
    {
        exclusive_use with(*r->rt);
        r->rt->replica = nullptr;
    }
    r->~receiving();
    os::unmap_memory(r, sizeof *r);
}

uint64_t txn_received(const receiving &r) {
    return txn_last(*r.rt);
}

ty_status txn_replica_check(const receiving &r, const ty_feed_record &record, record_order *order) {
    received_check sink;
    record_view view{};
    ty_status status = record.size_bytes == 0
                           ? TY_E_DAMAGED
                           : record_inspect(static_cast<const uint8_t *>(record.bytes), record.size_bytes, &view);
    if (!status)
        status = order->step(view); // X27: pending records, a prepared one and its outcome are neighbours
    if (!status)
        status = record_decode(view.parts, view.size, scope_of(*r.rt), sink);
    if (status != TY_E_DAMAGED)
        return status;
    return failure(TY_E_DAMAGED, "take transaction %llu: it is none of a heap like this one",
                   (unsigned long long)record.lsn)
        .at(image_path(r.rt->heap))
        .remedy("begin with a newer base: the limit of the heap that it is of may have been raised");
}

ty_status txn_replica_apply(receiving &r, const ty_feed_record *records, size_t count) {
    ty_status first = TY_OK;
    if (r.rt->txn_forked())
        return failure(TY_E_FORKED, "take a transaction: the heap belongs to the parent process");
    if (r.rt->poisoned.load(std::memory_order_relaxed))
        return refuse_poisoned(*r.rt, "take a transaction");
    for (size_t done = 0; done < count;) {
        size_t some = 0;
        for (size_t bytes = 0; done + some < count && bytes < piece_bytes;) {
            const size_t more = decided_together(records + done + some, count - done - some);
            if (2 * (some + more) > receiving::small_max)
                break;
            for (size_t n = 0; n < more; ++n)
                bytes += records[done + some + n].size_bytes;
            some += more;
        }
        const ty_status status = take_chunk(r, records + done, some);
        first = first ? first : status;
        if (r.rt->poisoned.load(std::memory_order_relaxed))
            return status;
        done += some;
    }
    return first;
}

ty_status txn_replica_make_durable(receiving &r) {
    if (r.rt->poisoned.load(std::memory_order_relaxed))
        return refuse_poisoned(*r.rt, "make what was received durable");
    bool durable = false;
    return txn_durable(r.rt->heap, 0, true, &durable);
}

namespace {

// From now on it has a history of its own.
ty_status end_as_source(ty_heap *heap, const char *call, source_state as) {
    txn_runtime *rt = runtime_of(heap);
    if (ty_status status = check_can_receive(rt))
        return status;
    exclusive_use with(*rt);
    uint64_t lsn = 0;
    if (rt->poisoned.load(std::memory_order_relaxed))
        return refuse_poisoned(*rt, call);
    if (rt->replica)
        return failure(TY_E_BUSY, "%s that is receiving", call)
            .at(image_path(heap))
            .remedy("end the replica first (ty_replica_end)");
    log_identity own{};
    heap_source source = image_source(heap, own.heap, &own.log);
    if (source.state != uint64_t(source_state::receives))
        return failure(TY_E_ARGUMENT, "%s that receives nothing", call).at(image_path(heap));
    if (rt->unlogged.load(std::memory_order_relaxed))
        if (ty_status status = snapshot_instead(*rt, false, &lsn))
            return status;
    if (as == source_state::none)
        source = {};
    source.state = uint64_t(as);
    if (ty_status status = image_set_source(heap, source))
        return status;
    rt->receives.store(false, std::memory_order_relaxed);
    return TY_OK;
}

} // namespace

ty_status txn_promote(ty_heap *heap) {
    return end_as_source(heap, "promote a heap", source_state::promoted);
}

ty_status txn_replica_forget(ty_heap *heap) {
    return end_as_source(heap, "make a heap its own", source_state::none);
}

} // namespace taiyen
