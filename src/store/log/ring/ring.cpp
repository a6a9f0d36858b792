// Creating and ending a ring, and freeing its space. ring_runtime.hpp describes how it works.
#include "ring_runtime.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace taiyen {

void drop_repeated(log_ring *r) {
    r->repeated.bytes.release();
    r->repeated.done = r->repeated.last = 0;
}

namespace {

// A durable snapshot holds everything up to the LSN.
void forget_repeated(log_ring *r, uint64_t lsn) {
    drop_repeated(r);
    r->durable_lsn = lsn;
}

ty_status keep_record(void *context, const log_record &record) {
    log_ring *r = static_cast<log_ring *>(context);
    repeated_records &kept = r->repeated;
    if (record.lsn <= r->durable_lsn)
        return TY_OK;
    uint8_t *at = nullptr;
    if (ty_status status = kept.bytes.extend(length_bytes_max + step_bytes_max + record.size, &at))
        return status;
    put_length(at, record.size);
    at += length_bytes(record.size);
    if (r->one_of_many)
        at += put_step(at, record.lsn - kept.last - 1, record.independent);
    memcpy(at, record.bytes, record.size);
    kept.bytes.cut(size_t(at + record.size - kept.bytes.begin()));
    kept.last = record.lsn;
    return TY_OK;
}

// L4: what was read and may not be durable is read again, to be appended before anything else.
ty_status read_repeated(log_ring *r, uint32_t stream, const log_options &options) {
    const stream_position &tail = options.tail.at[stream], &end = options.end.at[stream];
    r->durable_lsn = r->repeated.last = std::max(tail.lsn, r->released_lsn);
    if (fault("believed_tail_not_repeated"))
        r->durable_lsn = end.lsn;
    if (tail.lsn == end.lsn || tail.offset == end.offset || fault("believed_tail_not_repeated"))
        return TY_OK;
    ty_status status = log_scan_stream(*options.sink, options.name, options.identity, stream, tail, r->durable_lsn, end,
                                       r, keep_record);
    if (status || r->repeated.last == end.lsn)
        return status;
    return failure(TY_E_DAMAGED, "read the log a second time: it has changed").at(options.name);
}

} // namespace

ty_status ring_set_up(log_ring *r, uint32_t stream, const log_options &options, const log_header &header) {
    const stream_position &end = options.end.at[stream];
    r->one_of_many = r->all->count > 1;
    r->identity = ring_identity(options.identity.log, stream);
    r->geometry = geometry_of(header, stream);
    r->released_position = options.start.at[stream].offset;
    r->released_lsn = options.start.lsn;
    r->position = end.offset;
    r->generation = end.generation;
    r->generation_pending = true;
    if (ty_status status = read_repeated(r, stream, options))
        return status;
    r->last = std::max(options.end.lsn, options.highest);
    r->durable = r->counted = r->durable_lsn;
    if (r->one_of_many)
        renew_durable(r);
    void *memory = nullptr;
    if (ty_status status =
            os::map_memory(slot_count * size_t{r->geometry.frame_bytes_max}, os::memory_hint::none, &memory))
        return status;
    r->memory = static_cast<uint8_t *>(memory);
    for (unsigned i = 0; i < slot_count; ++i)
        r->slots[i].memory = r->memory + i * size_t{r->geometry.frame_bytes_max};
    if (!options.thread)
        return TY_OK;
    ty_status status = r->thread.start(write_after, r);
    r->has_thread = !status;
    return status;
}

// X11: the log's thread ends before the image that it reads. When this returns, the thread uses no file.
void ring_rest(log_ring *r) {
    if (!r->has_thread)
        return;
    r->lock.lock();
    r->stopping = true;
    r->thread_word.fetch_add(1, std::memory_order_relaxed);
    r->lock.unlock();
    os::wake_all(r->thread_word);
    r->thread.join();
    r->has_thread = r->stopping = false;
}

void ring_resume(log_ring *r) {
    if (!r->has_thread)
        r->has_thread = r->thread.start(write_after, r) == TY_OK;
}

void ring_destroy(log_ring *r) {
    ring_rest(r);
    if (r->memory)
        os::unmap_memory(r->memory, slot_count * size_t{r->geometry.frame_bytes_max});
    r->repeated.bytes.release();
}

stream_position ring_position_now(log_ring *r) {
    os::lock_guard guard(r->lock);
    if (r->gathering && is_filled(r, *r->gathering))
        seal_full(r);
    // A reader counts on from this LSN: with several rings it may differ from the LSN of the last append.
    const uint64_t lsn = r->one_of_many ? r->counted : r->last.load(std::memory_order_relaxed);
    return {r->position, r->generation, lsn};
}

void ring_release(log_ring *r, const stream_position &redo_point, uint64_t lsn) {
    wakes w;
    r->lock.lock();
    if (redo_point.offset > r->released_position) { // L1: free only after a durable snapshot
        r->released_position = fault("snapshot_releases_what_it_does_not_hold") ? r->position : redo_point.offset;
        if (r->gathering)
            set_room(r, *r->gathering);
    }
    if (r->generation_pending && lsn >= r->last.load(std::memory_order_relaxed))
        forget_repeated(r, lsn);
    if (r->one_of_many) {
        r->released_lsn = std::max(r->released_lsn, lsn);
        renew_durable(r);
        note_everybody(r, w);
    } else if (lsn > r->durable.load(std::memory_order_relaxed)) { // L2: the snapshot makes its records durable
        r->durable.store(lsn, std::memory_order_release);
        note_everybody(r, w);
    }
    r->lock.unlock();
    w.wake();
}

void ring_continue(log_ring *r, const stream_position &redo_point, uint64_t lsn) {
    os::lock_guard guard(r->lock);
    r->draining = true;
    while (r->in_flight > 0) {
        uint32_t seen = r->drained_word.load(std::memory_order_relaxed);
        r->lock.unlock();
        os::wait_on(r->drained_word, seen);
        r->lock.lock();
    }
    r->draining = false;
    r->wrap_pending = false;
    r->gathering = nullptr;
    r->oldest = r->next_write = r->end;
    r->position = r->released_position = redo_point.offset;
    r->released_lsn = lsn;
    forget_repeated(r, lsn); // L5: the snapshot holds them, so the count stays without gaps
    r->generation_pending = !fault("old_generation_goes_on_after_a_snapshot");
    r->counted = lsn;
    r->last.store(lsn, std::memory_order_release);
    if (!fault("snapshot_in_place_of_a_write_not_reported"))
        r->durable.store(r->one_of_many ? nothing_pending : lsn, std::memory_order_release);
}

log_metrics ring_metrics(log_ring *r) {
    os::lock_guard guard(r->lock);
    log_metrics metrics = r->metrics;
    metrics.ring_bytes = r->geometry.bytes;
    metrics.used_bytes = r->position - r->released_position;
    if (r->gathering)
        metrics.used_bytes += r->gathering->payload;
    metrics.fullest_bytes = metrics.used_bytes;
    return metrics;
}

} // namespace taiyen
