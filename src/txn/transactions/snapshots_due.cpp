// When a snapshot is due, and the thread that takes it then.
#include "bodies.hpp"
#include "snapshot_service.hpp"

#include <cstdlib>
#include <new>

namespace taiyen {
namespace {

constexpr uint32_t look_after_commits = 32;
constexpr uint64_t look_after_bytes = uint64_t{64} << 10;
constexpr uint64_t dirty_look_ns = 10'000'000; // dirty pages are not counted more often,
constexpr uint64_t dirty_look_share = 50;      // and counting takes at most one part in this many of the time
constexpr size_t frees_at_once = 256;          // so that no commit waits for long

bool much_is_logged(const txn_runtime &rt) {
    return log_get_metrics(rt.log).fullest_bytes >= rt.snapshots->due_log_bytes.load(std::memory_order_relaxed);
}

bool old_enough(const txn_runtime &rt, snapshot_service &s) {
    if (!rt.snapshot_interval_ms)
        return false;
    os::lock_guard guard(s.lock);
    return txn_last(rt) != s.started_lsn &&
           os::now_ns() - s.started_ns >= uint64_t{rt.snapshot_interval_ms} * 1'000'000;
}

bool retry_due(snapshot_service &s) {
    os::lock_guard guard(s.lock);
    return s.retry_ns && os::now_ns() >= s.retry_ns;
}

// Counting takes time that grows with the heap, so it is done rarely.
bool dirty_enough(txn_runtime &rt, snapshot_service &s) {
    if (!s.uncounted.load(std::memory_order_relaxed))
        return false;
    uint64_t now = os::now_ns(), pages = 0;
    if (now < s.dirty_due_ns.load(std::memory_order_relaxed))
        return false;
    if (!s.uncounted.exchange(false, std::memory_order_acq_rel)) // before the count: a later commit asks for another
        return false;
    ty_status status = image_dirty_count(rt.heap, &pages);
    uint64_t took = os::now_ns() - now;
    uint64_t rest = took * dirty_look_share > dirty_look_ns ? took * dirty_look_share : dirty_look_ns;
    s.dirty_due_ns.store(now + took + rest, std::memory_order_relaxed);
    if (status) // there is no memory to count them
        s.uncounted.store(true, std::memory_order_relaxed);
    return !status && pages * os::page_bytes >= rt.snapshot_dirty_bytes;
}

} // namespace

bool snapshots_due(txn_runtime &rt) {
    snapshot_service &s = *rt.snapshots;
    return s.memory_short.exchange(false, std::memory_order_relaxed) || much_is_logged(rt) || old_enough(rt, s) ||
           dirty_enough(rt, s) || retry_due(s);
}

// When a snapshot is due, the rest of the ring must hold twice what was logged while the last one was under way. The
// rest is kept between a quarter and a half of the ring, since the next one may take longer, or be under way at once.
void snapshots_set_due_log_bytes(txn_runtime &rt, uint64_t logged_meanwhile) {
    uint64_t ring = log_get_metrics(rt.log).ring_bytes;
    uint64_t left = logged_meanwhile < ring / 4 ? 2 * logged_meanwhile : ring / 2;
    rt.snapshots->due_log_bytes.store(ring - (left > ring / 4 ? left : ring / 4), std::memory_order_relaxed);
}

void snapshots_wake(snapshot_service &s) {
    if (s.wanted.exchange(true, std::memory_order_acq_rel))
        return; // it was notified, and has not checked yet
    s.signal.fetch_add(1, std::memory_order_release);
    os::wake_all(s.signal);
}

namespace {

// The time until then, at most `most`.
uint64_t time_until(uint64_t then_ns, uint64_t most) {
    uint64_t now = os::now_ns(), left = then_ns > now ? then_ns - now : 0;
    return left < most ? left : most;
}

// How long the thread may sleep without being woken.
uint64_t sleep_ns(const txn_runtime &rt, snapshot_service &s) {
    uint64_t ns = os::wait_for_ever;
    {
        os::lock_guard guard(s.lock);
        if (s.retry_ns)
            ns = time_until(s.retry_ns, ns);
    }
    if (s.uncounted.load(std::memory_order_relaxed))
        ns = time_until(s.dirty_due_ns.load(std::memory_order_relaxed), ns);
    if (rt.snapshot_interval_ms && uint64_t{rt.snapshot_interval_ms} * 1'000'000 < ns)
        ns = uint64_t{rt.snapshot_interval_ms} * 1'000'000;
    return ns;
}

void *thread_main(void *argument) {
    txn_runtime &rt = *static_cast<txn_runtime *>(argument);
    snapshot_service &s = *rt.snapshots;
    for (;;) {
        uint32_t seen = s.signal.load(std::memory_order_acquire);
        if (s.stopping.load(std::memory_order_acquire))
            return nullptr;
        if (s.asleep.load(std::memory_order_acquire)) {
            os::wait_on(s.signal, seen);
            continue;
        }
        s.wanted.exchange(false, std::memory_order_acq_rel); // pairs with wake: what it announces is seen
        bool more;
        {
            os::lock_guard guard(s.lock);
            snapshots_acknowledge(rt, s);
            snapshots_free_some(rt, s, frees_at_once);
            more = s.frees.count() != 0;
        }
        if (snapshots_due(rt))
            (void)snapshots_take(rt, false); // it keeps an error
        if (!more)
            os::wait_on(s.signal, seen, sleep_ns(rt, s));
    }
}

} // namespace

ty_status snapshots_create(txn_runtime &rt) {
    snapshot_service *s = rt.snapshots;
    if (!s) {
        void *memory = nullptr;
        if (ty_status status = os::map_memory(sizeof(snapshot_service), os::memory_hint::none, &memory))
            return status;
        s = rt.snapshots = ::new (memory) snapshot_service{};
        s->started_ns = os::now_ns();
        s->started_lsn = log_last(rt.log);
        snapshots_set_due_log_bytes(rt, 0);
        s->memory.start(rt.heap, rt.memory_bytes);
    }
    s->stopping.store(false, std::memory_order_relaxed);
    s->asleep.store(true, std::memory_order_relaxed);
    if (!rt.threads)
        return TY_OK;
    if (ty_status status = s->thread.start(thread_main, &rt))
        return status;
    s->running = true;
    return TY_OK;
}

void snapshots_begin(txn_runtime &rt) {
    snapshot_service &s = *rt.snapshots;
    s.asleep.store(false, std::memory_order_release);
    s.signal.fetch_add(1, std::memory_order_release);
    os::wake_all(s.signal);
}

void snapshots_stop(txn_runtime &rt) {
    snapshot_service *s = rt.snapshots;
    if (!s)
        return;
    s->stopping.store(true, std::memory_order_release);
    s->signal.fetch_add(1, std::memory_order_release);
    os::wake_all(s->signal);
    // A transaction that is under way is lost with the heap; the thread may wait for it.
    if (rt.txn && rt.txn->owner.exchange(0, std::memory_order_relaxed) != 0)
        rt.rwlock.unlock();
    if (s->running)
        s->thread.join();
    s->running = false;
}

void snapshots_destroy(txn_runtime &rt) {
    snapshot_service *s = rt.snapshots;
    if (!s)
        return;
    s->~snapshot_service();
    os::unmap_memory(s, sizeof *s);
    rt.snapshots = nullptr;
}

namespace {

void snapshot_if_due(txn_runtime &rt, bool rwlock_held, bool notify, bool look, snapshot_urgency memory) {
    snapshot_service &s = *rt.snapshots;
    if (memory != snapshot_urgency::enough) {
        s.memory_short.store(true, std::memory_order_release);
        notify = true;
    }
    if (rt.threads && memory != snapshot_urgency::now) {
        if (notify || (look && much_is_logged(rt)))
            snapshots_wake(s);
    } else if ((rwlock_held || !must_not_wait()) && (look ? snapshots_due(rt) : dirty_enough(rt, s))) {
        // X31: a thread in a body waits for nobody on another heap.
        (void)snapshots_take(rt, rwlock_held); // it keeps an error
    }
}

// One commit may have written to any number of pages. But one notification suffices until the thread counts them.
bool must_notify(txn_runtime &rt) {
    snapshot_service &s = *rt.snapshots;
    bool notify = rt.snapshot_dirty_bytes != 0 && !s.uncounted.load(std::memory_order_relaxed);
    if (notify)
        s.uncounted.store(true, std::memory_order_release);
    return notify;
}

} // namespace

bool snapshots_look_is_due(uint32_t commits, uint64_t record_bytes) {
    return commits >= look_after_commits || record_bytes >= look_after_bytes;
}

void snapshots_after_others(txn_runtime &rt) {
    const bool notify = must_notify(rt);
    snapshot_if_due(rt, false, notify, true, rt.snapshots->memory.look());
}

void snapshots_after_commit(txn_runtime &rt) {
    const bool notify = must_notify(rt);
    const uint64_t bytes = rt.metrics.record_bytes.get() - rt.metrics.seen_record_bytes;
    const bool look = snapshots_look_is_due(++rt.metrics.unlooked_commits, bytes);
    if (look) {
        rt.metrics.unlooked_commits = 0;
        rt.metrics.seen_record_bytes = rt.metrics.record_bytes.get();
    }
    snapshot_if_due(rt, true, notify, look, look ? rt.snapshots->memory.look() : snapshot_urgency::enough);
}

} // namespace taiyen
