// Snapshots that a transactional heap takes by itself, and what comes with them: the log's space is released, a broken
// log is mended, blocks are freed that a commit left for later.
//
// `lock` is taken behind the gate, before everything else. Who starts a snapshot holds both: so marks are in the order
// of epochs. Who mends the log, or takes a snapshot in place of a log write, holds `lock` until the log goes on: nobody
// else can let it go on meanwhile with an older mark.
#include "memory_need.hpp"
#include "transaction.hpp"

#include <cstdlib>
#include <new>

namespace taiyen {

// What went wrong in work that nobody waited for. A lock of its own, so that it is told without waiting for the disk.
class work_error {
public:
    // The calling thread's detail. It is over when a snapshot of that epoch, or a later one, is durable; 0: never.
    void keep(uint64_t epoch = 0) {
        os::lock_guard guard(lock_);
        ty_error_detail(&error_);
        over_at_ = epoch;
    }
    void clear() {
        os::lock_guard guard(lock_);
        error_ = {};
    }
    ty_status tell(uint64_t durable = 0) {
        os::lock_guard guard(lock_);
        if (over_at_ != 0 && durable >= over_at_)
            error_ = {};
        return tell_locked();
    }
    ty_status tell_once() {
        os::lock_guard guard(lock_);
        ty_status status = tell_locked();
        error_ = {};
        return status;
    }

private:
    ty_status tell_locked() const {
        const ty_error &e = error_;
        return e.status ? ty_error_set(e.status, e.system_error, e.operation, e.path, e.offset, e.remedy) : TY_OK;
    }

    os::mutex lock_{os::lock_rank::work_errors};
    ty_error error_{}; // guarded by lock_, as is over_at_; status TY_OK: none
    uint64_t over_at_ = 0;
};

struct snapshot_service {
    os::mutex lock{os::lock_rank::snapshots};
    bool pending; // from here: guarded by lock. A snapshot was started whose outcome the log was not told
    uint64_t pending_epoch;
    log_mark pending_mark;
    uint64_t started_ns;       // the last one
    uint64_t started_sequence; // what it holds
    void **frees;              // blocks to be freed before the next one
    size_t free_count;
    size_t free_capacity;
    uint64_t retry_ns; // when the last one, that failed, is tried again; 0: it did not
    uint64_t forced;
    uint64_t timed;
    uint64_t pages;

    uint32_t commits; // from here: by gate. Since the log's filling was looked at
    uint64_t record_bytes;
    memory_need memory;

    std::atomic<uint64_t> due_log_bytes; // when so much of the ring is in use

    std::atomic<uint64_t> dirty_due_ns; // when the dirty pages are counted again,
    std::atomic<bool> memory_short;     // seen after a commit
    std::atomic<bool> uncounted;        // if there are commits since the last time; only with snapshot_dirty_bytes
    work_error snapshot_error;          // of one that nobody asked for, until it or a later one is durable
    work_error free_error;              // of blocks that were left for later, until it is told
    std::atomic<uint32_t> signal;
    std::atomic<bool> stopping;
    std::atomic<bool> asleep; // the heap is not open yet
    std::atomic<bool> wanted; // the thread is to look
    os::thread thread;
    bool running;
};

namespace {

constexpr uint32_t look_after_commits = 32;
constexpr uint64_t look_after_bytes = uint64_t{64} << 10;
constexpr uint64_t retry_after_ns = 1'000'000'000;
constexpr uint64_t dirty_look_ns = 10'000'000; // counting dirty pages: not more often,
constexpr uint64_t dirty_look_share = 50;      // and not more than this part of the time
constexpr size_t frees_at_once = 256;          // so that no commit waits for long

// Whether the calling thread has the gate by a read section of its own.
class [[nodiscard]] gate_as_reader {
public:
    explicit gate_as_reader(txn_runtime &rt) : rt_(rt), taken_(!in_section(rt)) {
        if (taken_)
            rt_.gate.lock_shared();
    }
    ~gate_as_reader() { open(); }
    gate_as_reader(const gate_as_reader &) = delete;
    gate_as_reader &operator=(const gate_as_reader &) = delete;
    void open() {
        if (taken_)
            rt_.gate.unlock_shared();
        taken_ = false;
    }

private:
    txn_runtime &rt_;
    bool taken_;
};

// ---- Under lock

void free_some(txn_runtime &rt, snapshot_service &s, size_t most) {
    for (; most && s.free_count; --most)
        if (reserved_free(rt, s.frees[--s.free_count]))
            s.free_error.keep();
}

// A snapshot is durable.
void forget_failure(snapshot_service &s) {
    s.retry_ns = 0;
    s.snapshot_error.clear();
}

uint64_t pages_written(const txn_runtime &rt) {
    ty_snapshot_stats stats{};
    (void)image_get_snapshot_stats(rt.heap, &stats);
    return stats.pages;
}

// What is left of the ring when a snapshot is due is to do for twice what was logged while the last one was under way.
// But it is between a quarter and a half of the ring, since the next one may take longer, or be under way at once.
void set_due_log_bytes(txn_runtime &rt, uint64_t logged_meanwhile) {
    uint64_t ring = log_get_figures(rt.log).ring_bytes;
    uint64_t left = logged_meanwhile < ring / 4 ? 2 * logged_meanwhile : ring / 2;
    rt.snapshots->due_log_bytes.store(ring - (left > ring / 4 ? left : ring / 4), std::memory_order_relaxed);
}

// The pending snapshot is durable: the log is told.
void settle(txn_runtime &rt, snapshot_service &s) {
    if (!s.pending || image_epoch(rt.heap) < s.pending_epoch)
        return;
    s.pending = false;
    forget_failure(s);
    // Nothing was appended to a broken log since it broke; if nothing was since the mark, the snapshot holds all of it.
    if (log_broken(rt.log) && log_last(rt.log) == s.pending_mark.sequence)
        log_continue(rt.log, s.pending_mark);
    else
        log_release(rt.log, s.pending_mark);
    set_due_log_bytes(rt, log_get_figures(rt.log).used_bytes); // what is in use now came after the mark
}

// X1, X3: with the gate held.
ty_status start(txn_runtime &rt, snapshot_service &s, uint64_t beyond_log, uint64_t *epoch) {
    if (ty_status status = sink_check(rt.own_sink)) // without its log the heap would not open again
        return status;
    settle(rt, s);
    free_some(rt, s, SIZE_MAX);
    reservations_lock(rt);
    log_mark mark = log_mark_now(rt.log);
    mark.sequence += beyond_log;
    image_mark image{mark.position, mark.session, mark.sequence};
    ty_status status = image_snapshot_start(rt.heap, &image, epoch);
    reservations_unlock(rt);
    if (status)
        return status;
    s.memory.collected();
    s.pending = true;
    s.pending_epoch = *epoch;
    s.pending_mark = mark;
    s.started_ns = os::now_ns();
    s.started_sequence = mark.sequence;
    return TY_OK;
}

// A snapshot after which the log goes on in a session of its own.
ty_status start_and_continue(txn_runtime &rt, snapshot_service &s, uint64_t beyond_log, gate_as_reader *gate) {
    uint64_t epoch = 0, pages = pages_written(rt);
    ty_status status = start(rt, s, beyond_log, &epoch);
    if (gate)
        gate->open();
    if (!status) {
        status = image_snapshot_wait(rt.heap, epoch);
        if (status && beyond_log)
            log_break(rt.log, status); // X7
    }
    s.pending = false;
    if (status)
        return status;
    log_continue(rt.log, s.pending_mark);
    forget_failure(s);
    s.forced += 1;
    s.pages += pages_written(rt) - pages;
    return TY_OK;
}

// ---- Without lock

// Mends a broken log. What could not be written is in the snapshot then.
ty_status mend(txn_runtime &rt) {
    snapshot_service &s = *rt.snapshots;
    gate_as_reader gate(rt);
    os::lock_guard guard(s.lock);
    return log_broken(rt.log) ? start_and_continue(rt, s, 0, &gate) : TY_OK;
}

ty_status wait_for(txn_runtime &rt, uint64_t epoch) {
    if (ty_status status = image_snapshot_wait(rt.heap, epoch))
        return status;
    os::lock_guard guard(rt.snapshots->lock);
    settle(rt, *rt.snapshots);
    return TY_OK;
}

// With the gate held: once a snapshot is durable, memory that it needed can go. A failure leaves it in use.
void ease(txn_runtime &rt) {
    reservations_lock(rt);
    (void)image_ease(rt.heap);
    reservations_unlock(rt);
}

// One that nobody asked for. gate_held: by a commit.
ty_status take_timed(txn_runtime &rt, bool gate_held) {
    snapshot_service &s = *rt.snapshots;
    uint64_t epoch = 0, before = 0;
    {
        os::lock_guard guard(s.lock); // the one before is not waited for with the gate held
        epoch = s.pending ? s.pending_epoch : 0;
    }
    if (epoch && !gate_held)
        (void)wait_for(rt, epoch); // its failure is told to whoever waits for it
    if (!gate_held)
        rt.gate.lock_shared();
    ty_status status = TY_OK;
    epoch = 0;
    if (!s.stopping.load(std::memory_order_relaxed)) { // else the gate may have been left open by a transaction
        os::lock_guard guard(s.lock);
        before = pages_written(rt);
        status = start(rt, s, 0, &epoch);
    }
    if (!gate_held)
        rt.gate.unlock_shared();
    if (!status && epoch)
        status = wait_for(rt, epoch);
    if (!status && epoch && !s.stopping.load(std::memory_order_relaxed)) {
        if (!gate_held)
            rt.gate.lock_shared();
        if (!s.stopping.load(std::memory_order_relaxed))
            ease(rt);
        if (!gate_held)
            rt.gate.unlock_shared();
    }
    os::lock_guard guard(s.lock);
    if (status) {
        s.snapshot_error.keep(epoch ? epoch : image_epoch(rt.heap) + 1);
        s.retry_ns = os::now_ns() + retry_after_ns;
    } else if (epoch) {
        s.timed += 1;
        s.pages += pages_written(rt) - before;
    }
    return status;
}

// ---- When a snapshot is due

bool much_is_logged(const txn_runtime &rt) {
    return log_get_figures(rt.log).used_bytes >= rt.snapshots->due_log_bytes.load(std::memory_order_relaxed);
}

bool old_enough(const txn_runtime &rt, snapshot_service &s) {
    if (!rt.snapshot_interval_ms)
        return false;
    os::lock_guard guard(s.lock);
    return log_last(rt.log) != s.started_sequence &&
           os::now_ns() - s.started_ns >= uint64_t{rt.snapshot_interval_ms} * 1'000'000;
}

bool retry_due(snapshot_service &s) {
    os::lock_guard guard(s.lock);
    return s.retry_ns && os::now_ns() >= s.retry_ns;
}

// Counting takes time that grows with the heap, so it is done seldom.
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

bool is_due(txn_runtime &rt) {
    snapshot_service &s = *rt.snapshots;
    return s.memory_short.exchange(false, std::memory_order_relaxed) || much_is_logged(rt) || old_enough(rt, s) ||
           dirty_enough(rt, s) || retry_due(s);
}

// How long it is until then, and not longer than `most`.
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
        s.wanted.exchange(false, std::memory_order_acq_rel); // pairs with wake: what it tells of is seen
        bool more;
        {
            os::lock_guard guard(s.lock);
            settle(rt, s);
            free_some(rt, s, frees_at_once);
            more = s.free_count != 0;
        }
        if (is_due(rt))
            (void)take_timed(rt, false); // kept, for ty_work and ty_work_status
        if (!more)
            os::wait_on(s.signal, seen, sleep_ns(rt, s));
    }
}

void wake(snapshot_service &s) {
    if (s.wanted.exchange(true, std::memory_order_acq_rel))
        return; // it was told, and has not looked yet
    s.signal.fetch_add(1, std::memory_order_release);
    os::wake_all(s.signal);
}

// A snapshot would be taken amid the transaction.
ty_status refuse_in_transaction(const char *call) {
    return failure(TY_E_ARGUMENT, "%s: this thread has a transaction under way on the heap", call)
        .remedy("commit it or roll it back first");
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
        s->started_sequence = log_last(rt.log);
        set_due_log_bytes(rt, 0);
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
    // One that is under way is given up with the heap; the thread may wait for it.
    if (rt.txn && rt.txn->owner.exchange(0, std::memory_order_relaxed) != 0)
        rt.gate.unlock();
    if (s->running)
        s->thread.join();
    s->running = false;
}

void snapshots_destroy(txn_runtime &rt) {
    snapshot_service *s = rt.snapshots;
    if (!s)
        return;
    free(s->frees);
    s->~snapshot_service();
    os::unmap_memory(s, sizeof *s);
    rt.snapshots = nullptr;
}

void snapshots_after_commit(txn_runtime &rt) {
    snapshot_service &s = *rt.snapshots;
    // One commit may have written to any number of pages. But the thread need not be told twice before it counts them.
    bool tell = rt.snapshot_dirty_bytes != 0 && !s.uncounted.load(std::memory_order_relaxed);
    if (tell)
        s.uncounted.store(true, std::memory_order_release);
    bool look = ++s.commits >= look_after_commits || rt.figures.record_bytes.get() - s.record_bytes >= look_after_bytes;
    if (look) {
        s.commits = 0;
        s.record_bytes = rt.figures.record_bytes.get();
    }
    memory_answer memory = look ? s.memory.look() : memory_answer::enough;
    if (memory != memory_answer::enough) {
        s.memory_short.store(true, std::memory_order_release);
        tell = true;
    }
    if (rt.threads && memory != memory_answer::now) {
        if (tell || (look && much_is_logged(rt)))
            wake(s);
    } else if (look ? is_due(rt) : dirty_enough(rt, s)) {
        (void)take_timed(rt, true); // kept, for ty_work and ty_work_status
    }
}

void snapshots_free_later(txn_runtime &rt, void *block) {
    snapshot_service &s = *rt.snapshots;
    bool queued = false;
    if (rt.threads) {
        os::lock_guard guard(s.lock);
        if (s.free_count == s.free_capacity) {
            size_t wanted = s.free_capacity ? s.free_capacity * 2 : 1024;
            if (void *grown = realloc(s.frees, wanted * sizeof *s.frees)) {
                s.frees = static_cast<void **>(grown);
                s.free_capacity = wanted;
            }
        }
        queued = s.free_count < s.free_capacity;
        if (queued)
            s.frees[s.free_count++] = block;
    }
    if (queued)
        wake(s);
    else if (reserved_free(rt, block)) {
        s.free_error.keep();
    }
}

ty_status snapshot_instead(txn_runtime &rt, bool holds_transaction, uint64_t *sequence) {
    snapshot_service &s = *rt.snapshots;
    os::lock_guard guard(s.lock);
    set_due_log_bytes(rt, UINT64_MAX); // the one before it began too late, perhaps
    if (ty_status status = start_and_continue(rt, s, holds_transaction, nullptr))
        return status;
    *sequence = s.pending_mark.sequence;
    return TY_OK;
}

namespace {

// An open that found the ring full cannot append again what it believed: a snapshot holds it as well.
ty_status stable_by_snapshot(txn_runtime &rt) {
    if (txn_current(rt.heap))
        return failure(TY_E_SPACE, "make transactions of the session before stable: the log is full")
            .remedy("end the transaction under way first: then a snapshot does it");
    uint64_t epoch = 0;
    if (ty_status status = txn_snapshot_start(rt.heap, &epoch))
        return status;
    return txn_snapshot_wait(rt.heap, epoch);
}

} // namespace

// X4: acknowledged is what is in the log behind a durable snapshot, or in one.
ty_status make_stable(txn_runtime &rt, uint64_t sequence) {
    for (;;) {
        ty_status status = log_wait(rt.log, sequence);
        if (!status || log_stable(rt.log) >= sequence)
            return TY_OK;
        if (!log_broken(rt.log))
            status = status == TY_E_SPACE ? stable_by_snapshot(rt) : status;
        else if (!txn_current(rt.heap)) // amid a transaction there can be no snapshot
            status = mend(rt);
        if (status)
            return status;
    }
}

ty_status snapshots_free_all(txn_runtime &rt) {
    snapshot_service &s = *rt.snapshots;
    os::lock_guard guard(s.lock);
    s.free_error.clear();
    free_some(rt, s, SIZE_MAX);
    return s.free_error.tell();
}

void snapshots_add_stats(txn_runtime &rt, ty_txn_stats *stats) {
    snapshot_service &s = *rt.snapshots;
    os::lock_guard guard(s.lock);
    stats->forced_snapshots = s.forced;
    stats->timed_snapshots = s.timed;
    stats->snapshot_pages = s.pages;
}

ty_status txn_snapshot_start(ty_heap *heap, uint64_t *epoch) {
    txn_runtime *rt = runtime_of(heap);
    if (!rt || !rt->log || rt->txn_forked())
        return image_snapshot_start(heap, nullptr, epoch);
    if (txn_current(heap))
        return refuse_in_transaction("start a snapshot");
    gate_as_reader gate(*rt);
    os::lock_guard guard(rt->snapshots->lock);
    return start(*rt, *rt->snapshots, 0, epoch);
}

ty_status txn_snapshot_wait(ty_heap *heap, uint64_t epoch) {
    txn_runtime *rt = runtime_of(heap);
    if (!rt || !rt->log || rt->txn_forked())
        return image_snapshot_wait(heap, epoch);
    return wait_for(*rt, epoch);
}

void txn_ease(ty_heap *heap) {
    txn_runtime *rt = runtime_of(heap);
    if (!rt || !rt->log || rt->txn_forked()) {
        (void)image_ease(heap);
    } else if (!txn_current(heap)) {
        gate_as_reader gate(*rt);
        ease(*rt);
    }
}

ty_status txn_work(ty_heap *heap) {
    txn_runtime *rt = runtime_of(heap);
    if (!rt || !rt->log || rt->txn_forked())
        return image_work(heap);
    snapshot_service &s = *rt->snapshots;
    bool may_wait = !txn_current(heap) && !in_section(*rt);
    if (may_wait && (s.snapshot_error.tell(image_epoch(heap)) || (!rt->threads && is_due(*rt))))
        (void)take_timed(*rt, false); // kept
    {
        os::lock_guard guard(s.lock);
        free_some(*rt, s, SIZE_MAX);
        settle(*rt, s);
    }
    if (ty_status status = image_work(heap))
        return status;
    if (ty_status status = s.snapshot_error.tell(image_epoch(heap)))
        return status;
    return s.free_error.tell_once();
}

ty_status txn_work_status(ty_heap *heap) {
    txn_runtime *rt = runtime_of(heap);
    if (rt && rt->log && !rt->txn_forked()) {
        if (ty_status status = rt->snapshots->snapshot_error.tell(image_epoch(heap)))
            return status;
        if (ty_status status = rt->snapshots->free_error.tell())
            return status;
    }
    return image_work_status(heap);
}

} // namespace taiyen
