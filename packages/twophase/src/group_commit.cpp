// Group commit: concurrent distributed transactions of one group share their durable writes.
//
// A distributed transaction that finds others waiting ends in memory, and its records are kept; the next one begins at
// once, within the same hold of the reader-writer locks. One of the threads that wait writes what is kept, of several
// distributed transactions: those before the last are pending, the last one is prepared, and its number, which all
// heaps have then, decides on all of them (JO2: a heap that has the number has the distributed transaction).
//
// JO5: a distributed transaction in a group commit waits for the disk alone, and not for the program of another
//     distributed transaction; and it is acknowledged when all heaps have it and those before it, and no sooner.
#include "group.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <thread>
#include <utility>

namespace taiyen::twophase {
namespace {

// Readers and other threads wait for the reader-writer locks: after this many they are opened, however many distributed
// transactions wait.
constexpr size_t held_max = TY_PLUGIN_GROUPED_MAX;

void notify(waiting_thread &one, turn what) {
    one.notification.store(uint32_t(what), std::memory_order_release);
    one.notification.notify_one(); // it may be gone: then the wake-up reaches no thread, or one that checks again
}

void notify_all(waiting_threads all, turn what) {
    while (waiting_thread *one = all.pop())
        notify(*one, what);
}

ty_status of_no_use(const char *call, ty_status status) {
    return failure(status, "%s: a write has failed, and it is not known which distributed transactions are committed",
                   call)
        .remedy("discard the heaps (ty_discard), and open them again: that resolves it");
}

size_t bytes_kept(const group_commit &g, size_t n) {
    return g.batches[0].heaps[n].bytes.size() + g.batches[1].heaps[n].bytes.size();
}

// What the distributed transaction has changed in each heap.
struct encoded_dtxn {
    ty_plugin_record heaps[TY_GROUP_HEAPS_MAX];
};

// Whether the logs have room for this many more bytes, with their heads, and an end.
bool fits(const ty_group &group, const encoded_dtxn *more) {
    const group_commit &g = group.grouped;
    for (size_t n = 0; n < group.count; ++n) {
        constexpr size_t heads = TY_PLUGIN_GROUPED_MAX * 16 + 2 * TY_PLUGIN_DESCRIPTION_BYTES_MAX;
        if (!ty_plugin_fits(group.heaps[n], bytes_kept(g, n) + (more ? more->heaps[n].size_bytes : 0) + heads))
            return false;
    }
    return true;
}

// No thread is within the locks. If a write has failed, or a log that failed cannot be repaired, the heaps can no
// longer be used.
void open_rwlocks(ty_group &group) {
    group_commit &g = group.grouped;
    for (size_t n = 0; n < group.count && !g.broken; ++n)
        g.broken = ty_plugin_repair_grouped(group.heaps[n]) != TY_OK;
    for (size_t n = 0; n < group.count; ++n)
        ty_plugin_release_grouped(group.heaps[n], g.broken);
    g.held = false;
    g.held_count = 0;
}

// Lets the next distributed transaction begin, or opens the reader-writer locks if no thread is within them. g.lock is
// held, as in all functions from here on that take the group_commit alone.
void go_on(ty_group &group) {
    group_commit &g = group.grouped;
    const bool idle = !g.flushing && g.batches[g.filled].count == 0;
    if (g.running)
        return;
    if (g.held && !g.broken && g.held_count < held_max && g.queue.end && fits(group, nullptr)) {
        g.running = true;
        ++g.held_count;
        notify(*g.queue.pop(), turn::continues);
        return;
    }
    if (g.held && (idle || (g.broken && !g.flushing)))
        open_rwlocks(group);
    if (g.broken) {
        notify_all(g.queue.take(), turn::refused);
    } else if (!g.held && g.queue.end) {
        g.running = true;
        notify(*g.queue.pop(), turn::begins);
    }
}

// ---- Writing

ty_status append(const ty_group &group, const grouped_batch &batch, uint64_t *lsns) {
    uint8_t description[TY_PLUGIN_DESCRIPTION_BYTES_MAX];
    const size_t bytes = dtxn_describe(batch.last, description);
    for (size_t n = 0; n < group.count; ++n) {
        const grouped_records &records = batch.heaps[n];
        ty_plugin_record pieces[TY_PLUGIN_GROUPED_MAX];
        for (size_t i = 0, begin = 0; i < batch.count; begin = records.ends[i++])
            pieces[i] = {records.bytes.data() + begin, records.ends[i] - begin};
        if (ty_status status =
                ty_plugin_append_grouped(group.heaps[n], pieces, batch.count, description, bytes, &lsns[n]))
            return status;
    }
    return TY_OK;
}

// JO3: nothing is committed before all have their part durably. A heap that cannot take the outcome is repaired before
// the reader-writer locks open: the distributed transactions count nevertheless.
ty_status write(const ty_group &group, const grouped_batch &batch) {
    uint64_t lsns[TY_GROUP_HEAPS_MAX];
    if (ty_status status = append(group, batch, lsns))
        return status;
    for (size_t n = 0; n + 1 < group.count; ++n)
        ty_plugin_prepare_ask(group.heaps[n], lsns[n]);
    for (size_t n = fault("grouped_dtxn_decided_before_all_have_it") ? 1 : group.count; n-- > 0;)
        if (ty_status status = ty_plugin_prepare_wait(group.heaps[n], lsns[n]))
            return status;
    for (size_t n = 0; n < group.count; ++n)
        ty_plugin_commit_grouped(group.heaps[n]);
    return TY_OK;
}

void empty(grouped_batch &batch) {
    for (grouped_records &records : batch.heaps)
        records.bytes.clear();
    batch.count = 0;
}

// Writes one batch, with this thread's distributed transaction in it; if more have come meanwhile, one of that batch's
// threads continues.
ty_status flush(ty_group &group, const waiting_thread &own) {
    group_commit &g = group.grouped;
    g.lock.lock();
    grouped_batch &batch = g.batches[g.filled];
    g.filled = 1 - g.filled;
    g.lock.unlock();
    for (bool runs = fault("next_dtxn_of_the_group_waited_for"); runs; std::this_thread::yield()) {
        const std::lock_guard with(g.lock);
        runs = g.running;
    }
    const ty_status status = write(group, batch);
    g.lock.lock();
    waiting_threads members = batch.members.take(), lost{};
    grouped_batch &next = g.batches[g.filled];
    empty(batch);
    g.broken = g.broken || status;
    g.flushing = next.count != 0 && !status;
    if (g.flushing)
        notify(*next.members.first, turn::flushes);
    else
        lost = next.members.take(); // empty, except after a failure
    if (waiting_thread *drainer = g.flushing ? nullptr : std::exchange(g.drainer, nullptr))
        notify(*drainer, turn::drained);
    go_on(group);
    g.lock.unlock();
    while (waiting_thread *one = members.pop())
        if (one != &own)
            notify(*one, status && !fault("lost_batch_of_dtxns_acknowledged") ? turn::in_doubt : turn::committed);
    notify_all(lost, turn::in_doubt);
    return status;
}

// ---- Distributed transactions

ty_status encode(ty_dtxn *dtxn, encoded_dtxn *one) {
    for (size_t n = 0; n < dtxn->group->count; ++n) {
        if (ty_status status = set_number(dtxn, n))
            return status;
        if (ty_status status = ty_plugin_encode(dtxn->txns[n], &one->heaps[n]))
            return status;
    }
    return TY_OK;
}

ty_status keep(ty_dtxn *dtxn, const encoded_dtxn &one, waiting_thread &own) {
    ty_group &group = *dtxn->group;
    group_commit &g = group.grouped;
    grouped_batch &batch = g.batches[g.filled];
    try {
        for (size_t n = 0; n < group.count; ++n) {
            process_bytes &bytes = batch.heaps[n].bytes;
            const size_t needed = bytes.size() + one.heaps[n].size_bytes;
            if (needed > bytes.capacity())
                bytes.reserve(std::max(needed, 2 * bytes.capacity()));
        }
    } catch (const std::bad_alloc &) {
        return no_memory("commit a distributed transaction");
    }
    for (size_t n = 0; n < group.count; ++n) {
        grouped_records &records = batch.heaps[n];
        const auto *bytes = static_cast<const uint8_t *>(one.heaps[n].bytes);
        records.bytes.insert(records.bytes.end(), bytes, bytes + one.heaps[n].size_bytes); // there is room
        records.ends[batch.count] = records.bytes.size();
    }
    if (batch.count == 0 || !fault("batch_decided_by_its_first_dtxn"))
        batch.last = dtxn->what;
    ++batch.count;
    batch.members.push(own);
    g.held = true;
    own.flushes = !g.flushing; // no other thread will write this batch
    g.flushing = true;
    return TY_OK;
}

// Waits until nothing is kept, and nothing is being written. The thread's own distributed transaction is running, so
// nothing is added.
void drain(group_commit &g) {
    waiting_thread own;
    if (!g.flushing)
        return;
    g.drainer = &own;
    g.lock.unlock();
    static_cast<void>(own.wait());
    g.lock.lock();
}

// Its records have been kept: it ends in memory, and its turn is over.
void end_grouped(ty_dtxn *dtxn) {
    ty_group &group = *dtxn->group;
    group_commit &g = group.grouped;
    for (size_t n = 0; n < group.count; ++n) {
        const ty_status status = ty_plugin_end_grouped(dtxn->txns[n]);
        dtxn->damage = dtxn->damage ? dtxn->damage : status;
        dtxn->txns[n] = nullptr;
    }
    group.thread.store(0, std::memory_order_relaxed);
    dtxn->in_group = false;
    dtxn->state = dtxn_state::asking;
    const std::lock_guard guard(g.lock);
    g.running = false;
    go_on(group);
}

} // namespace

turn waiting_thread::wait() const {
    while (notification.load(std::memory_order_acquire) == uint32_t(turn::none))
        notification.wait(uint32_t(turn::none), std::memory_order_acquire);
    return turn(notification.load(std::memory_order_relaxed));
}

void waiting_threads::push(waiting_thread &one) {
    *(end ? end : &first) = &one;
    end = &one.next;
}

waiting_thread *waiting_threads::pop() {
    if (!end)
        return nullptr;
    waiting_thread *one = first;
    first = one->next;
    if (end == &one->next)
        end = nullptr;
    return one;
}

waiting_threads waiting_threads::take() {
    return std::exchange(*this, {});
}

ty_status take_turn(ty_group &group, bool no_wait, turn *given) {
    constexpr const char *call = "begin a distributed transaction";
    group_commit &g = group.grouped;
    waiting_thread own;
    g.lock.lock();
    const bool waits = g.running || g.held;
    if (!g.broken && waits && !no_wait) {
        g.queue.push(own);
        go_on(group);
    } else if (!g.broken && !waits) {
        g.running = true;
    }
    const bool broken = g.broken;
    g.lock.unlock();
    if (broken)
        return of_no_use(call, TY_E_IN_DOUBT);
    if (waits && no_wait)
        return failure(TY_E_BUSY, "%s: another one of the group is under way", call)
            .remedy("try again, or leave no_wait out");
    *given = waits ? own.wait() : turn::begins;
    return *given == turn::refused ? of_no_use(call, TY_E_IN_DOUBT) : TY_OK;
}

void give_turn(ty_group &group) {
    const std::lock_guard guard(group.grouped.lock);
    group.grouped.running = false;
    go_on(group);
}

bool is_grouped(ty_group &group, bool several) {
    const std::lock_guard guard(group.grouped.lock);
    return group.grouped.held || (several && group.grouped.queue.end);
}

ty_status grouped_in_doubt() {
    return of_no_use("commit a distributed transaction", TY_E_IN_DOUBT);
}

ty_status commit_grouped(ty_dtxn *dtxn, bool *done) {
    ty_group &group = *dtxn->group;
    group_commit &g = group.grouped;
    waiting_thread own;
    encoded_dtxn one;
    *done = true;
    if (ty_status status = encode(dtxn, &one))
        return give_up(dtxn, status);
    g.lock.lock();
    if (!g.broken && (g.batches[g.filled].count == TY_PLUGIN_GROUPED_MAX || !fits(group, &one))) {
        drain(g);
        *done = g.broken;
    }
    ty_status status = g.broken ? of_no_use("commit a distributed transaction", TY_E_IO) : TY_OK;
    if (!status && *done)
        status = keep(dtxn, one, own);
    g.lock.unlock();
    if (!*done)
        return TY_OK;
    if (status)
        return give_up(dtxn, status);
    end_grouped(dtxn);
    if (fault("batch_of_dtxns_written_twice")) {
        const std::lock_guard guard(g.lock);
        own.flushes = own.flushes || (!g.flushing && !g.broken);
    }
    turn next = own.flushes ? turn::flushes : own.wait();
    if (next == turn::flushes)
        next = flush(group, own) ? turn::in_doubt : turn::committed;
    if (next == turn::in_doubt) {
        const std::lock_guard guard(g.lock);
        dtxn->next = std::exchange(g.doubtful, dtxn);
        return grouped_in_doubt();
    }
    status = dtxn->damage;
    free_dtxn(dtxn);
    return status;
}

void forget_grouped(ty_group &group) {
    while (ty_dtxn *dtxn = group.grouped.doubtful) {
        group.grouped.doubtful = dtxn->next;
        free(dtxn);
    }
}

} // namespace taiyen::twophase
