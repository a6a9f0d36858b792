// What ty_begin's transactions, read sections and snapshots need from a concurrent heap.
#include "members.hpp"

namespace taiyen {
namespace {

concurrent_heap &concurrent_of(atomic_transactions &transactions) {
    return static_cast<concurrent_heap &>(transactions);
}

void stop(atomic_transactions &transactions) {
    concurrent_heap &all = concurrent_of(transactions);
    os::lock_guard guard(all.stop_lock);
    if (all.stops++ == 0)
        all.domain->stop();
}

// X23: what was committed meanwhile has LSNs of its own.
void go_on(atomic_transactions &transactions) {
    concurrent_heap &all = concurrent_of(transactions);
    os::lock_guard guard(all.stop_lock);
    if (--all.stops != 0)
        return;
    if (all.rt != nullptr && !fault("timestamps_miss_plain_transactions"))
        all.domain->advance(txn_last(*all.rt));
    all.domain->go_on();
}

bool in_one(atomic_transactions &transactions) {
    const ty_atomic_txn *txn = member_known(concurrent_of(transactions));
    return txn != nullptr && txn->runs();
}

uint64_t newest_commit(atomic_transactions &transactions) {
    concurrent_heap &all = concurrent_of(transactions);
    const uint64_t timestamp = all.domain->now();
    const ty_atomic_txn *own = member_known(all); // one that a snapshot is to hold
    all.domain->await(timestamp, own != nullptr ? own->own : nullptr);
    return timestamp;
}

// Blocks that must be free after a recovery from the snapshot: those of transactions without a commit, and those that
// commits have freed. Calls put with each word.
template <class Put>
void each_unwanted(const concurrent_heap &all, Put put) {
    for (const ty_atomic_txn *txn = all.first; txn != nullptr; txn = txn->next_member) {
        if (txn->way == commit_way::snapshot) { // it is in the snapshot that is about to be taken
            for (const block_note &freed : txn->frees)
                put(freed.word);
        } else {
            for (const block_note &made : txn->allocs)
                if (!fault("allocated_blocks_not_listed_in_a_snapshot"))
                    put(made.word);
        }
        if (!fault("freed_blocks_not_listed_in_a_snapshot"))
            txn->retired.each(put);
    }
}

void frees_go_on(concurrent_heap &all) {
    all.frees_wait.store(0, std::memory_order_seq_cst);
    os::wake_all(all.frees_wait);
}

// X22, X24, X26: blocks that are freed, changed or allocated beside the snapshot are on one side of it.
ty_status begin_snapshot(atomic_transactions &transactions) {
    concurrent_heap &all = concurrent_of(transactions);
    all.frees_wait.store(1, std::memory_order_relaxed);
    if (!fault("fuzzy_snapshot_beside_block_changes"))
        latch_close(all);
    size_t count = 0;
    ty_status status;
    {
        os::lock_guard guard(all.lock);
        each_unwanted(all, [&](uint64_t) { count++; });
        status = reservations_provide(*all.rt, count);
        if (status == TY_OK) {
            count = 0;
            each_unwanted(all, [&](uint64_t word) { reservations_put(*all.rt, count++, word); });
            all.listed = count;
        }
    }
    if (status != TY_OK) {
        latch_open(all);
        frees_go_on(all);
    }
    return status;
}

void have_tables(atomic_transactions &transactions) {
    concurrent_heap &all = concurrent_of(transactions);
    for (size_t i = 0; i < all.listed; i++)
        reservations_put(*all.rt, i, 0);
    all.listed = 0;
    latch_open(all);
}

void end_snapshot(atomic_transactions &transactions) {
    frees_go_on(concurrent_of(transactions));
}

ty_status finish(atomic_transactions &transactions) {
    concurrent_heap &all = concurrent_of(transactions);
    if (all.domain->any_runs())
        return failure(TY_E_BUSY, "end a heap: a transaction is under way on it")
            .remedy("let ty_atomically return first, in the thread that called it");
    static_cast<void>(retired_free_all(all));
    return TY_OK;
}

bool give_back(atomic_transactions &transactions) {
    return retired_free_all(concurrent_of(transactions));
}

void add_stats(atomic_transactions &transactions, ty_txn_stats *stats) {
    ty_atomic_stats known{};
    count_members(concurrent_of(transactions), &known);
    stats->transactions += known.records;
    stats->record_bytes += known.record_bytes;
}

} // namespace

constexpr atomic_transactions atomic_transactions_of{stop,        go_on,        in_one, newest_commit, begin_snapshot,
                                                     have_tables, end_snapshot, finish, give_back,     add_stats};

namespace {

bool try_to_enter(ty_atomic_txn &txn) {
    if (txn.all->domain->announces_without_fence()) {
        txn.at_latch.store(1, std::memory_order_relaxed);
        std::atomic_signal_fence(std::memory_order_seq_cst);
    } else {
        txn.at_latch.store(1, std::memory_order_seq_cst);
    }
    if (txn.all->latch_closed.load(std::memory_order_seq_cst) == 0) [[likely]]
        return true;
    txn.at_latch.store(0, std::memory_order_release);
    return false;
}

} // namespace

void latch_enter(ty_atomic_txn &txn) {
    if (try_to_enter(txn)) [[likely]]
        return;
    const uint64_t began_ns = os::now_ns();
    do
        os::wait_on(txn.all->latch_closed, 1);
    while (!try_to_enter(txn));
    const uint64_t took_ns = os::now_ns() - began_ns;
    txn.snapshot_waits.store(txn.snapshot_waits.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    if (took_ns > txn.longest_snapshot_wait_ns.load(std::memory_order_relaxed))
        txn.longest_snapshot_wait_ns.store(took_ns, std::memory_order_relaxed);
}

// No thread is missed: one that enters announces itself before it checks whether it may.
void latch_close(concurrent_heap &all) {
    all.latch_closed.store(1, std::memory_order_seq_cst);
    all.domain->await_announcements();
    os::lock_guard guard(all.lock);
    for (const ty_atomic_txn *txn = all.first; txn != nullptr; txn = txn->next_member)
        while (txn->at_latch.load(std::memory_order_seq_cst) != 0)
            os::give_way();
}

void latch_open(concurrent_heap &all) {
    all.latch_closed.store(0, std::memory_order_seq_cst);
    os::wake_all(all.latch_closed);
}

} // namespace taiyen
