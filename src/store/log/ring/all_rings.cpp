// A log: operations on all of its rings. ring_runtime.hpp describes how a ring works.
#include "ring_runtime.hpp"

#include <algorithm>
#include <cstdlib>
#include <new>

namespace taiyen {
namespace {

ty_status set_up(log *l, const log_options &options) {
    log_header header;
    if (ty_status status = log_check(*options.sink, options.name, &options.identity, &header))
        return status;
    l->sink = options.sink;
    l->check = options.check;
    l->context = options.context;
    l->name = options.name;
    const uint32_t count = header.streams;
    l->rings = static_cast<log_ring *>(os::internal_aligned_alloc(alignof(log_ring), count * sizeof(log_ring)));
    if (!l->rings)
        return failure(TY_E_MEMORY, "open the log")
            .at(options.name)
            .remedy("free memory, or raise the process's limits");
    l->count = count;
    l->recovered = options.end.lsn;
    for (uint32_t p = 0; p < count; ++p)
        (new (l->rings + p) log_ring{})->all = l;
    for (uint32_t p = 0; p < count; ++p)
        if (ty_status status = ring_set_up(l->rings + p, p, options, header))
            return status;
    if (!options.thread)
        return TY_OK;
    ty_status status = l->idle_poller.start();
    l->has_idle_poller = !status;
    return status;
}

void wake_everybody(log_ring *r) {
    wakes w;
    r->lock.lock();
    note_everybody(r, w);
    r->lock.unlock();
    w.wake();
}

bool is_durable(const log_ring &r, uint64_t lsn) {
    return r.durable.load(std::memory_order_acquire) >= lsn;
}

// L10: an LSN up to which everything is durable, over several rings. What is appended from now on is above the highest
//      LSN that was appended before any ring is read; each ring knows its first LSN that may not be durable.
uint64_t durable_of_all(log *l) {
    uint64_t durable = log_last(l);
    for (uint32_t p = 0; p < l->count; ++p)
        durable = std::min(durable, l->rings[p].durable.load(std::memory_order_acquire));
    if (fault("idle_log_stream_holds_all_up"))
        for (uint32_t p = 0; p < l->count; ++p)
            durable = std::min(durable, l->rings[p].last.load(std::memory_order_acquire));
    uint64_t seen = l->durable_seen.load(std::memory_order_relaxed);
    while (seen < durable && !l->durable_seen.compare_exchange_weak(seen, durable, std::memory_order_acq_rel))
        ;
    return std::max(seen, durable);
}

} // namespace

ty_status log_start(const log_options &options, log **made) {
    void *memory = os::internal_calloc(1, sizeof(log));
    if (!memory)
        return failure(TY_E_MEMORY, "open the log")
            .at(options.name)
            .remedy("free memory, or raise the process's limits");
    log *l = new (memory) log{};
    if (ty_status status = set_up(l, options)) {
        log_stop(l);
        return status;
    }
    *made = l;
    return TY_OK;
}

// X11: the log's threads end before the image does.
void log_stop_threads(log *l) {
    for (uint32_t p = 0; p < l->count; ++p)
        ring_rest(l->rings + p);
}

void log_resume(log *l) {
    for (uint32_t p = 0; p < l->count; ++p)
        ring_resume(l->rings + p);
}

void log_stop(log *l) {
    for (uint32_t p = 0; p < l->count; ++p) {
        ring_destroy(l->rings + p);
        l->rings[p].~log_ring();
    }
    if (l->has_idle_poller)
        l->idle_poller.stop();
    free(l->rings);
    l->~log();
    free(l);
}

uint32_t log_streams(const log *l) {
    return l->count;
}

size_t log_record_max(const log *l) {
    return record_max(l->rings);
}

// ---- Waiting

ty_status log_wait(log *l, uint64_t lsn, uint32_t stream) {
    if (l->count == 1)
        return ring_wait(l->rings, lsn, true);
    // This thread writes one ring itself: its own, or the first that it must wait for. The others are written
    // meanwhile.
    uint32_t own = stream;
    for (uint32_t p = 0; p < l->count && is_durable(l->rings[own], lsn); ++p)
        own = p;
    for (uint32_t p = 0; p < l->count; ++p)
        if (p != own)
            ring_ask(l->rings + p, lsn);
    ty_status status = ring_wait(l->rings + own, lsn, own == stream);
    for (uint32_t p = 0; p < l->count && !status; ++p)
        if (p != own && !fault("commit_waits_for_its_own_stream_alone"))
            status = ring_wait(l->rings + p, lsn, false);
    return status;
}

void log_ask(log *l, uint64_t lsn) {
    for (uint32_t p = 0; p < l->count; ++p)
        ring_ask(l->rings + p, lsn);
}

ty_status log_wait_stream(log *l, uint32_t stream, uint64_t lsn) {
    return ring_wait(l->rings + stream, lsn, true);
}

uint64_t log_durable(log *l) {
    return l->count == 1 ? l->rings->durable.load(std::memory_order_acquire) : durable_of_all(l);
}

void notify_feeds(log *l) {
    l->durable_changes.fetch_add(1, std::memory_order_seq_cst);
    if (l->feeds.load(std::memory_order_seq_cst))
        os::wake_all(l->durable_changes);
}

uint64_t log_wait_beyond(log *l, uint64_t lsn, uint64_t timeout_ns) {
    const uint64_t begun = os::now_ns();
    l->feeds.fetch_add(1, std::memory_order_seq_cst);
    uint64_t durable;
    for (;;) {
        const uint32_t seen = l->durable_changes.load(std::memory_order_seq_cst);
        durable = log_durable(l);
        const uint64_t waited = os::now_ns() - begun;
        if (durable > lsn || waited >= timeout_ns)
            break;
        os::wait_on(l->durable_changes, seen, timeout_ns - waited);
    }
    l->feeds.fetch_sub(1, std::memory_order_relaxed);
    return durable;
}

uint64_t log_last(log *l) {
    uint64_t last = l->rings->last.load(std::memory_order_acquire);
    for (uint32_t p = 1; p < l->count; ++p)
        last = std::max(last, l->rings[p].last.load(std::memory_order_acquire));
    return last;
}

uint64_t log_recovered(const log *l) {
    return l->recovered;
}

// ---- A broken log

ty_status broken_failure(log *l) {
    os::lock_guard guard(l->error_lock);
    return failure(l->error.status, "write the log")
        .at(l->name, l->error.offset)
        .cause(l->error.system_error)
        .remedy("a snapshot holds what the log could not take: free space or repair the disk, then commit again");
}

void break_log(log *l, ty_status status, uint64_t offset) {
    os::lock_guard guard(l->error_lock);
    if (l->broken.load(std::memory_order_relaxed))
        return;
    ty_error_detail(&l->error);
    if (l->error.status != status) { // a program's sink that sets no detail
        l->error = {};
        l->error.status = status;
    }
    l->error.offset = offset;
    l->broken.store(true, std::memory_order_release);
}

void wake_everybody(log *l) {
    for (uint32_t p = 0; p < l->count; ++p)
        wake_everybody(l->rings + p);
}

bool log_broken(log *l) {
    return l->broken.load(std::memory_order_acquire);
}

void log_break(log *l, ty_status status) {
    break_log(l, status, UINT64_MAX);
    wake_everybody(l);
}

// ---- Snapshots

log_positions log_positions_now(log *l) {
    log_positions redo_points;
    redo_points.count = l->count;
    for (uint32_t p = 0; p < l->count; ++p)
        redo_points.at[p] = ring_position_now(l->rings + p);
    // L5: others append meanwhile, and a single ring's reader counts from its redo point.
    redo_points.lsn = l->count == 1 ? redo_points.at[0].lsn : log_last(l);
    return redo_points;
}

void log_release(log *l, const log_positions &redo_points) {
    for (uint32_t p = 0; p < l->count; ++p)
        ring_release(l->rings + p, redo_points.at[p], redo_points.lsn);
    notify_feeds(l);
}

void log_continue(log *l, const log_positions &redo_points) {
    for (uint32_t p = 0; p < l->count; ++p)
        ring_continue(l->rings + p, redo_points.at[p], redo_points.lsn);
    {
        os::lock_guard guard(l->error_lock);
        l->broken.store(false, std::memory_order_release);
    }
    wake_everybody(l);
    notify_feeds(l);
}

log_metrics log_stream_metrics(log *l, uint32_t stream) {
    return ring_metrics(l->rings + stream);
}

log_metrics log_get_metrics(log *l) {
    log_metrics all{};
    for (uint32_t p = 0; p < l->count; ++p) {
        const log_metrics one = ring_metrics(l->rings + p);
        all.frames += one.frames;
        all.bytes += one.bytes;
        all.used_bytes += one.used_bytes;
        all.ring_bytes += one.ring_bytes;
        all.fullest_bytes = std::max(all.fullest_bytes, l->count * one.used_bytes);
    }
    return all;
}

} // namespace taiyen
