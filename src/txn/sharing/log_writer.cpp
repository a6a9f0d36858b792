// The process that writes the log of a shared heap, and how another one takes its place.
//
// PR6: the log gets the buffer's records in the order of their LSNs, each once. A process that takes over opens the
//      heap as after any crash, and goes on after the log's last record.
#include "sharing.hpp"

#include <algorithm>

namespace taiyen {
namespace {

constexpr uint64_t gather_ns = 4'000'000;          // records that nobody waits for
constexpr uint64_t after_failure_ns = 100'000'000; // before it is tried again

void note_failure(sharing &s, ty_status status) {
    log_buffer_header &h = s.buffer.header();
    h.failure.store(uint32_t(status), std::memory_order_relaxed);
    h.failures.fetch_add(1, std::memory_order_release);
    h.durable_changes.fetch_add(1, std::memory_order_seq_cst);
    os::wake_all_shared(h.durable_changes);
}

// Its memory follows, so that the buffer's space can be used again.
void apply_if_far_behind(sharing &s) {
    const log_buffer_header &h = s.buffer.header();
    if (h.end.load(std::memory_order_acquire) - s.position.load(std::memory_order_relaxed) < log_buffer_bytes / 4 ||
        !s.rt.rwlock.try_lock())
        return;
    (void)sharing_enter(s.rt); // a failure poisons the heap
    s.rt.rwlock.unlock();
}

ty_status log_all(sharing &s) {
    ty_status status;
    {
        os::lock_guard guard(s.logging);
        status = log_buffered(s, s.buffer.header().end.load(std::memory_order_acquire));
        publish_durable(s);
    }
    if (status == TY_E_SPACE)
        status = snapshots_make_room(s.rt);
    return status;
}

// One round of the log's writer; then it sleeps until it is wanted.
void write_log(sharing &s) {
    txn_runtime &rt = s.rt;
    log_buffer_header &h = s.buffer.header();
    const uint32_t seen = h.bell.load(std::memory_order_acquire);
    uint64_t wanted = h.wanted.load(std::memory_order_seq_cst);
    const bool is_wanted = wanted > h.durable.load(std::memory_order_relaxed);
    ty_status status = log_all(s);
    if (!status && is_wanted) {
        const uint64_t last = log_last(rt.log);
        status = write_until_durable(s, last);
        if (!status && wanted == UINT64_MAX) // room was wanted
            h.wanted.compare_exchange_strong(wanted, last, std::memory_order_relaxed);
    }
    if (status && is_wanted)
        note_failure(s, status);
    apply_if_far_behind(s);
    snapshots_after_others(rt);
    if (s.queue.try_lock()) {
        s.lock.release_unwanted();
        s.queue.unlock();
    }
    bool rest;
    uint64_t logged;
    {
        os::lock_guard guard(s.logging);
        publish_durable(s);
        logged = s.logged;
        rest = logged == h.end.load(std::memory_order_relaxed) && log_durable(rt.log) >= log_last(rt.log);
    }
    h.sleeps.store(uint32_t(rest ? sleep_depth::rests : sleep_depth::gathers), std::memory_order_seq_cst);
    const bool is_wanted_now = h.wanted.load(std::memory_order_seq_cst) > h.durable.load(std::memory_order_relaxed);
    const bool has_more = rest && logged != h.end.load(std::memory_order_seq_cst);
    if (status)
        os::wait_on_shared(h.bell, seen, after_failure_ns);
    else if (!is_wanted_now && !has_more)
        os::wait_on_shared(h.bell, seen, rest ? poll_others_ns : gather_ns);
    h.sleeps.store(uint32_t(sleep_depth::awake), std::memory_order_seq_cst);
}

// From here on this process writes the log, with its memory at the log's end.
ty_status take_over(sharing &s) {
    log_buffer_header &h = s.buffer.header();
    if (log_last(s.rt.log) < h.durable.load(std::memory_order_acquire))
        return failure(TY_E_MISMATCH, "share a heap whose log ends before what was acknowledged")
            .at(s.texts[0])
            .remedy("put the newest log back, or close the heap in all processes and open it again");
    if (ty_status status = s.buffer.become_log_writer())
        return status;
    h.record_max.store(log_record_max(s.rt.log), std::memory_order_relaxed);
    os::lock_guard guard(s.logging);
    s.logged = h.released.load(std::memory_order_acquire);
    s.applied.store(log_last(s.rt.log), std::memory_order_relaxed);
    s.position.store(s.logged, std::memory_order_relaxed);
    s.writes_log.store(true, std::memory_order_release);
    publish_durable(s);
    return TY_OK;
}

// The process that wrote the log is gone. If several try, one has the image's lock.
void try_to_take_over(sharing &s) {
    txn_runtime &rt = s.rt;
    rt.rwlock.lock();
    ty_status status = TY_E_BUSY;
    if (!s.buffer.has_log_writer()) {
        const memory_change change(s);
        const bool was_lost = image_follow_is_lost(rt.heap);
        status = open_again_for_writing(rt, s.texts[0], s.options);
        if (!status && was_lost)
            s.reads_lost.store(s.reader_lock.lock != nullptr, std::memory_order_relaxed);
        if (!status && (status = take_over(s)))
            rt.poisoned.store(true, std::memory_order_release);
        const bool whole = status != TY_E_BUSY && !rt.poisoned.load(std::memory_order_relaxed);
        if (ty_status entered = whole ? sharing_enter(rt) : TY_OK) // nobody sees less than before
            status = entered;
    }
    rt.rwlock.unlock();
    if (status && status != TY_E_BUSY)
        note_failure(s, status);
}

void *run(void *context) {
    auto &s = *static_cast<sharing *>(context);
    while (s.stops.load(std::memory_order_acquire) == 0) {
        if (s.writes_log.load(std::memory_order_relaxed)) {
            write_log(s);
            continue;
        }
        if (s.queue.try_lock()) {
            s.lock.release_unwanted();
            s.queue.unlock();
        }
        (void)follower_keep_up(s.rt); // a failure shows as an expired heap
        if (!s.buffer.has_log_writer())
            try_to_take_over(s);
        if (!s.writes_log.load(std::memory_order_relaxed))
            os::wait_on(s.stops, 0, poll_others_ns);
    }
    return nullptr;
}

} // namespace

ty_status log_buffered(sharing &s, uint64_t end) {
    taiyen::log *log = s.rt.log;
    buffered_record record;
    for (uint64_t at = s.logged; at < end;) {
        if (ty_status status = s.buffer.look(&at, &record))
            return status == TY_E_NOT_FOUND ? TY_OK : status;
        if (record.lsn > log_last(log)) {
            uint8_t *room = nullptr;
            if (record.lsn != log_last(log) + 1)
                return s.buffer.damaged();
            if (ty_status status = log_append_begin(log, record.bytes, &room))
                return status;
            memcpy(room, s.buffer.bytes_at(at) + buffered_head_bytes, record.bytes);
            (void)log_append_end(log, record.bytes);
        }
        s.logged = at = after(at, record);
    }
    return TY_OK;
}

void publish_durable(sharing &s) {
    log_buffer_header &h = s.buffer.header();
    const uint64_t durable = log_durable(s.rt.log);
    // PR1: and a snapshot of this process needs in memory what the log has.
    const uint64_t unneeded = fault("buffer_released_before_it_is_durable")
                                  ? UINT64_MAX
                                  : std::min(durable, s.applied.load(std::memory_order_relaxed));
    const uint64_t before = h.released.load(std::memory_order_relaxed);
    uint64_t released = before;
    buffered_record record;
    for (uint64_t at = before; at < s.logged && !s.buffer.look(&at, &record) && record.lsn <= unneeded;)
        released = at = after(at, record);
    h.released.store(released, std::memory_order_release);
    const bool more = durable > h.durable.load(std::memory_order_relaxed);
    if (more)
        h.durable.store(durable, std::memory_order_release);
    if (!more && released == before)
        return;
    h.durable_changes.fetch_add(1, std::memory_order_seq_cst);
    if (h.durable_waiters.load(std::memory_order_seq_cst) != 0)
        os::wake_all_shared(h.durable_changes);
}

ty_status write_until_durable(sharing &s, uint64_t lsn) {
    if (ty_status status = log_all(s))
        return status;
    if (ty_status status = make_durable_in_log(s.rt, lsn))
        return status;
    os::lock_guard guard(s.logging);
    publish_durable(s);
    return TY_OK;
}

ty_status sharing_start_thread(sharing &s) {
    s.stops.store(0, std::memory_order_relaxed);
    const ty_status status = s.thread.start(run, &s);
    s.has_thread = !status;
    return status;
}

void sharing_stop_thread(txn_runtime &rt) {
    sharing *s = rt.sharing;
    if (s == nullptr || !s->has_thread || rt.txn_forked())
        return;
    s->stops.store(1, std::memory_order_release);
    os::wake_all(s->stops);
    s->buffer.header().bell.fetch_add(1, std::memory_order_release);
    os::wake_all_shared(s->buffer.header().bell);
    s->thread.join();
    s->has_thread = false;
}

ty_status sharing_begin_as_log_writer(const heap_opening &state, txn_runtime &rt) {
    bool others = false;
    if (log_streams(rt.log) > 1)
        return failure(TY_E_UNSUPPORTED, "share a heap whose log has several log streams")
            .at(state.heap_path)
            .remedy("open it with log_streams = 1 first, alone");
    if (reserved_count(rt) != 0)
        return failure(TY_E_UNSUPPORTED, "share a heap in which blocks are reserved").at(state.heap_path);
    if (ty_status status = sharing_create(state, rt, image_file(rt.heap)))
        return status;
    sharing &s = *rt.sharing;
    ty_status status = s.buffer.others(&others);
    if (!status && others && s.buffer.header().magic != 0) // else they wait until it is made
        status = s.buffer.check(image_identity(rt.heap));
    else if (!status)
        s.buffer.format(image_identity(rt.heap), log_last(rt.log));
    if (status)
        return status;
    s.lock.release_unwanted();
    if ((status = take_over(s)))
        return status;
    return sharing_start_thread(s);
}

// ---- A close, and snapshots

void sharing_begin_close(txn_runtime &rt) {
    sharing *s = rt.sharing;
    if (s == nullptr)
        return;
    sharing_stop_thread(rt);
    s->queue.lock();
    s->lock.lock(); // nobody commits until another process writes the log
}

void sharing_go_on(txn_runtime &rt) {
    if (sharing *s = rt.sharing) {
        sharing_unlock(rt);
        if (ty_status status = sharing_start_thread(*s))
            note_failure(*s, status);
    }
}

// The files have all that was committed.
void sharing_finish_close(txn_runtime &rt) {
    sharing *s = rt.sharing;
    if (s == nullptr)
        return;
    log_buffer_header &h = s->buffer.header();
    h.released.store(h.end.load(std::memory_order_relaxed), std::memory_order_release);
    h.durable.store(s->applied.load(std::memory_order_relaxed), std::memory_order_release);
    h.durable_changes.fetch_add(1, std::memory_order_seq_cst);
    os::wake_all_shared(h.durable_changes);
    s->buffer.resign();
    sharing_unlock(rt);
}

sharing_quiesced::sharing_quiesced(txn_runtime &rt) : rt_(rt) {
    sharing *s = rt.sharing;
    if (s == nullptr)
        return;
    const bool reads = in_section(rt) && txn_current(rt.heap) == nullptr;
    if (reads && s->position.load(std::memory_order_relaxed) != s->buffer.header().end.load(std::memory_order_acquire))
        status = failure(TY_E_BUSY, "take a snapshot: this thread reads an older state").remedy("end its read section");
    s->logging.lock(); // first, so that the log gets nothing that memory will not have
    if (status == TY_OK && !reads && !fault("snapshot_of_less_than_the_log_has"))
        status = sharing_enter(rt);
    const uint64_t position = s->position.load(std::memory_order_relaxed);
    if (status == TY_OK && s->logged < position)
        (void)log_buffered(*s, position); // a snapshot holds what the log does not take
    const uint64_t last = log_last(rt.log), applied = s->applied.load(std::memory_order_relaxed);
    rt.unlogged.store(applied > last ? applied - last : 0, std::memory_order_relaxed);
}

sharing_quiesced::~sharing_quiesced() {
    if (rt_.sharing == nullptr)
        return;
    const uint64_t last = log_last(rt_.log), applied = rt_.sharing->applied.load(std::memory_order_relaxed);
    rt_.unlogged.store(applied > last ? rt_.unlogged.load(std::memory_order_relaxed) : 0, std::memory_order_relaxed);
    publish_durable(*rt_.sharing);
    rt_.sharing->logging.unlock();
}

} // namespace taiyen
