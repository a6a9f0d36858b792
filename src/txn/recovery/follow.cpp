// Following a heap: its memory shows one committed state until it is refreshed.
//
// X37: a refreshed follower shows a state that was committed, and is durable: all transactions up to one LSN, each
//      whole, no older than the state before; of a snapshot heap a snapshot. Records are read and made durable before
//      one is applied. A follower whose memory may have become a mixture says so (I28).
#include "follow.hpp"

#include "../transactions/transactions.hpp"

#include <algorithm>
#include <new>

namespace taiyen {

struct follower {
    follower(const ty_open_options &given, ty_heap *followed, txn_runtime &runtime)
        : options(given), heap(followed), rt(runtime) {}

    ty_open_options options;
    ty_heap *heap;
    txn_runtime &rt;

    // Held for each use of the image's side. Taken after the reader-writer lock, so that while this one waits for read
    // sections its thread still makes copies.
    os::mutex lock{os::lock_rank::snapshots};
    os::mutex refreshing{os::lock_rank::refreshes};
    os::thread thread;
    bool has_thread = false;
    std::atomic<uint32_t> stops{0};

    log_location location{}; // sink NULL: there is no log, or it has nothing yet
    log_identity identity{};
    log_positions next{}; // in the log, after what the memory has
    uint64_t copies = 0;  // pages that records changed since a load, each as often as it was
};

namespace {

constexpr uint64_t keep_up_ns = 20'000'000;
constexpr uint64_t poll_ns = 2'000'000;
constexpr int loads_max = 20;
// Private copies that a load would drop, before one is worth it.
constexpr uint64_t copies_min = (uint64_t{16} << 20) / os::page_bytes;

constexpr const char *call = "refresh a heap";

ty_status expired(const follower &f) {
    return failure(TY_E_EXPIRED, "go on reading a heap: its writer has overwritten what this one showed")
        .at(image_path(f.heap))
        .remedy(
            "read again, from the heap's roots on: refresh the heap more often, or let the library have its thread");
}

// Makes copies of what the writer is about to overwrite.
void *keep_up(void *context) {
    auto &f = *static_cast<follower *>(context);
    while (f.stops.load(std::memory_order_acquire) == 0) {
        {
            os::lock_guard guard(f.lock);
            (void)image_follow_keep_up(f.heap); // a failure shows as an expired heap
        }
        os::wait_on(f.stops, 0, keep_up_ns);
    }
    return nullptr;
}

// ---- The log

struct log_reading {
    replay_plan plan{};
    uint64_t lsn = 0; // the last one that may be applied
    bool more = false;
    ~log_reading() { plan.records.destroy(); }
};

// Finds the log that goes with a snapshot.
ty_status find_log(follower &f, const image_log &recorded) {
    log_header found{};
    log_fit fit = log_fit::fits;
    uint64_t other = 0;
    sink_destroy(f.location.own);
    f.location.sink = f.location.own = nullptr;
    f.identity = {};
    f.next = recorded.redo_point;
    if (recorded.log_identity == 0)
        return TY_OK;
    f.identity = identity_of(recorded);
    ty_status status = log_location_find(f.location, f.identity, recorded, false, &found, &fit, &other);
    if (!status && fit == log_fit::fits)
        return TY_OK;
    sink_destroy(f.location.own);
    f.location.sink = f.location.own = nullptr;
    return status;
}

ty_status scan(follower &f, uint64_t up_to, bool brief, replay_plan *plan) {
    image_log recorded{};
    recorded.heap = f.heap;
    recorded.limit_bytes = heap_limit(f.heap);
    return replay_scan(f.location, f.identity, f.next, recorded, {false, true, brief, up_to}, plan);
}

// Reads what is in the log after `next`: whole transactions, without those that are not decided, up to the first that
// is missing. They are durable when it returns.
ty_status read_log(follower &f, bool brief, log_reading *read) {
    log_contents contents{};
    log_reader ends{};
    ends.in_use = true;
    ends.brief = brief;
    if (f.location.sink == nullptr)
        return TY_OK;
    if (ty_status status = log_scan(*f.location.sink, f.location.path, f.identity, f.next, ends, &contents))
        return status;
    read->lsn = contents.end.lsn;
    if (read->lsn == f.next.lsn)
        return TY_OK;
    if (ty_status status = fault("followed_before_the_log_is_flushed") ? TY_OK : sink_flush(f.location.own))
        return status;
    if (ty_status status = scan(f, read->lsn, brief, &read->plan))
        return status;
    if (read->plan.held.count() != 0 && !fault("undecided_transaction_followed")) {
        read->lsn = read->plan.held.at(0).lsn - 1;
        read->plan.records.destroy();
        read->plan.~replay_plan();
        new (&read->plan) replay_plan{};
        if (read->lsn == f.next.lsn)
            return TY_OK;
        if (ty_status status = scan(f, read->lsn, brief, &read->plan))
            return status;
    }
    read->more = read->plan.contents.end.lsn > f.next.lsn;
    return TY_OK;
}

ty_status apply(follower &f, bool loaded, log_reading &read) {
    ty_heap *writable = nullptr;
    if (f.identity.log == 0 || (!loaded && !read.more))
        return TY_OK;
    const bool words_only = !loaded && read.plan.operations == 0;
    if (ty_status status =
            image_follow_begin_change(f.heap, words_only ? &read.plan.pages.noted() : nullptr, &writable))
        return status;
    f.rt.heap = writable;
    ty_status status = TY_OK;
    if (loaded)
        status = f.options.shared ? reservations_recover(f.rt) : reservations_read_again(f.rt);
    if (!status && read.more)
        status = replay_run(f.rt, f.location, f.identity, f.next, false, read.plan);
    f.rt.heap = f.heap;
    const ty_error why = status ? keep_error() : ty_error{};
    image_follow_end_change(f.heap, writable, !status);
    if (status)
        return report_again(why, status);
    f.copies = (loaded ? 0 : f.copies) + (read.more ? read.plan.pages.noted().count() : 0);
    if (read.more)
        f.next = read.plan.contents.next;
    return TY_OK;
}

void note_what_it_holds(follower &f) {
    f.rt.holds.identity = f.identity;
    f.rt.holds.redo_points = f.next;
    f.rt.holds.exact = false;
}

// ---- States

// The files are being changed: the writer has gone past a snapshot, or has become another one.
bool may_be_tried_again(ty_status status) {
    return status == TY_E_BUSY || may_pass(status);
}

// From the newest snapshot on, whatever the memory has.
ty_status load(follower &f, bool from_the_files) {
    for (int tries = 0;; ++tries) {
        image_log recorded{};
        if (!from_the_files && tries == 0)
            image_follow_loaded(f.heap, &recorded);
        else if (ty_status status = image_follow_load(f.heap, &recorded))
            return status;
        log_reading read;
        ty_status status = find_log(f, recorded);
        if (!status)
            status = read_log(f, false, &read);
        if (!status)
            status = apply(f, true, read);
        if (!status) {
            note_what_it_holds(f);
            return TY_OK;
        }
        image_follow_lose(f.heap);
        if (!may_be_tried_again(status) || tries == loads_max)
            return status;
        const std::atomic<uint32_t> nobody_wakes{0};
        os::wait_on(nobody_wakes, 0, poll_ns);
    }
}

// What a look at the files has found.
struct news {
    follow_look look{};
    log_reading read;
    bool must_load = false;
    bool by_snapshots = false;
    bool changes() const { return must_load || read.more || (look.newer && by_snapshots); }
    bool any() const { return changes() || (look.superfluous && by_snapshots); }
};

// Changes nothing that is shown.
ty_status look_for_news(follower &f, news *found) {
    if (ty_status status = image_follow_look(f.heap, &found->look))
        return status;
    found->by_snapshots = image_kind(f.heap) == TY_SNAPSHOT;
    found->must_load = found->look.reopened;
    if (found->must_load || found->by_snapshots)
        return TY_OK;
    const ty_status status = read_log(f, true, &found->read);
    if (status && status != TY_E_BUSY && status != TY_E_DAMAGED)
        return status;
    // Where the log has nothing more, a snapshot may have it: then it was overwritten, or never was in the log. What
    // looks damaged may be what is being overwritten; if it is not, the next snapshot passes it.
    found->read.more = found->read.more && !status;
    const uint64_t reached = found->read.more ? found->read.lsn : f.next.lsn;
    found->must_load = found->look.newer && found->look.lsn > reached && !fault("follower_passes_over_a_snapshot");
    if (found->read.more || found->must_load)
        return TY_OK;
    const uint64_t superfluous = image_follow_superfluous(f.heap);
    found->must_load = superfluous != 0 && superfluous + f.copies > copies_min;
    return TY_OK;
}

// No thread reads the heap.
ty_status take(follower &f, news &found) {
    if (found.must_load) {
        if (ty_status status = load(f, true))
            return status;
        return found.look.expired ? expired(f) : TY_OK;
    }
    if (found.by_snapshots) {
        const ty_status status = image_follow_refresh(f.heap);
        return may_be_tried_again(status) ? load(f, true) : status;
    }
    if (ty_status status = apply(f, false, found.read))
        return status;
    note_what_it_holds(f);
    return TY_OK;
}

ty_status refresh_once(follower &f, bool *changed) {
    news found;
    os::lock_guard alone(f.refreshing);
    {
        os::lock_guard guard(f.lock);
        if (ty_status status = look_for_news(f, &found); status || !found.any())
            return status;
    }
    f.rt.rwlock.lock();
    objects_lock_all(f.rt, false);
    f.lock.lock();
    const ty_status status = take(f, found);
    f.lock.unlock();
    objects_unlock_all(f.rt);
    f.rt.rwlock.unlock();
    *changed = !status && found.changes();
    return status;
}

} // namespace

ty_status follow_begin(const heap_opening &state, ty_heap *heap, txn_runtime &rt) {
    void *memory = nullptr;
    if (ty_status status = os::map_memory(sizeof(follower), os::memory_hint::none, &memory))
        return status;
    follower &f = *(rt.follower = ::new (memory) follower(state.options, heap, rt));
    if (ty_status status = log_location_create(f.location, state.heap_path, f.options))
        return status;
    if (ty_status status = load(f, false))
        return status;
    if (!rt.threads || f.options.shared) // that has a thread of its own
        return TY_OK;
    ty_status status = f.thread.start(keep_up, &f);
    f.has_thread = !status;
    return status;
}

ty_status follow_load(txn_runtime &rt, uint64_t *lsn) {
    follower &f = *rt.follower;
    os::lock_guard guard(f.lock);
    const ty_status status = load(f, true);
    *lsn = f.next.lsn;
    return status;
}

void follow_stop_thread(txn_runtime &rt) {
    follower *f = rt.follower;
    if (f == nullptr || rt.txn_forked() || !f->has_thread)
        return;
    f->stops.store(1, std::memory_order_release);
    os::wake_all(f->stops);
    f->thread.join();
    f->has_thread = false;
}

void follow_end(txn_runtime &rt) {
    follow_stop_thread(rt);
    if (follower *f = rt.follower) {
        log_location_destroy(f->location);
        rt.follower = nullptr;
        f->~follower();
        os::unmap_memory(f, sizeof *f);
    }
}

ty_status txn_refresh(ty_heap *heap, uint64_t wait_ns, bool *changed) {
    txn_runtime *rt = runtime_of(heap);
    *changed = false;
    if (rt == nullptr || (rt->follower == nullptr && rt->sharing == nullptr))
        return failure(TY_E_ARGUMENT, "%s that does not follow a writer", call).remedy("open it with TY_OPEN_FOLLOW");
    if (ty_status status = refuse_forked(*rt, call))
        return status;
    if (in_section(*rt) || txn_current(heap) != nullptr)
        return failure(TY_E_ARGUMENT, "%s: this thread has a read section or transaction of it open", call)
            .remedy("end it first");
    const std::atomic<uint32_t> nobody_wakes{0};
    const uint64_t shown = rt->sharing != nullptr ? sharing_last(*rt) : 0;
    for (const uint64_t begun = os::now_ns();;) {
        const ty_status refreshed =
            rt->sharing != nullptr ? sharing_see_newest(*rt) : refresh_once(*rt->follower, changed);
        const bool is_shared = rt->sharing != nullptr;
        const ty_status lost = is_shared && !refreshed ? sharing_check_reads_before(*rt, call) : TY_OK;
        *changed = *changed || lost || (is_shared && sharing_last(*rt) != shown);
        if (refreshed || *changed)
            return refreshed ? refreshed : lost;
        const uint64_t waited = os::now_ns() - begun;
        if (waited >= wait_ns)
            return TY_OK;
        os::wait_on(nobody_wakes, 0, std::min(poll_ns, wait_ns - waited));
    }
}

bool txn_shows_newest(ty_heap *heap) {
    const txn_runtime *rt = runtime_of(heap);
    return rt != nullptr && rt->sharing != nullptr && sharing_shows_newest(*rt);
}

ty_status follower_check(const txn_runtime &rt) {
    bool is = false;
    if (rt.txn_forked())
        return refuse_forked(rt, "go on reading a heap");
    if (ty_status status = image_follow_is_expired(rt.follower->heap, &is))
        return status;
    return is ? expired(*rt.follower) : TY_OK;
}

ty_status follower_keep_up(const txn_runtime &rt) {
    if (ty_status status = refuse_forked(rt, "keep up with a heap's writer"))
        return status;
    os::lock_guard guard(rt.follower->lock);
    return image_follow_keep_up(rt.follower->heap);
}

} // namespace taiyen
