// X31 (a thread in a body waits for nobody on another heap): what a thread does between two runs of its outermost body,
// after one that met another thread on another heap.
//
// It waits for the one that it met, with nothing held. Then it takes the others that it has met in earlier runs, and
// its own heap, as far as it can have them without waiting; if it cannot, it releases all, and starts again with the
// one that it could not have. So nobody waits for it meanwhile, and each waiting thread gets what it waits for: in the
// end it has all, and meets nobody. (std::lock() takes its locks in this way.)
#include "members.hpp"

namespace taiyen {
namespace {

using hold = ty_atomic_txn::hold;

bool take(const hold &wanted, stm::wait_policy waits) {
    ty_atomic_txn &txn = *wanted.txn;
    txn_runtime *rt = wanted.with_rwlock ? txn.all->rt : nullptr;
    if (rt != nullptr && waits == stm::wait_policy::any)
        rt->rwlock.lock();
    else if (rt != nullptr && !rt->rwlock.try_lock())
        return false;
    txn.has_rwlock = rt != nullptr;
    if (txn.acquire_domain(waits))
        return true;
    if (rt != nullptr)
        rt->rwlock.unlock();
    txn.has_rwlock = false;
    return false;
}

void drop(const hold &taken) {
    if (!taken.txn->is_exclusive())
        return;
    taken.txn->release_domain();
    if (taken.txn->has_rwlock)
        taken.txn->all->rt->rwlock.unlock();
    taken.txn->has_rwlock = false;
}

// Without room for the note, it is met again.
void note(ty_atomic_txn &outermost, ty_atomic_txn &wanted, bool with_rwlock) {
    for (unsigned i = 0; i < outermost.hold_count; i++)
        if (outermost.holds[i].txn == &wanted) {
            outermost.holds[i].with_rwlock |= with_rwlock;
            return;
        }
    if (outermost.hold_count < ty_atomic_txn::holds_max)
        outermost.holds[outermost.hold_count++] = {&wanted, with_rwlock};
}

void take_all(const ty_atomic_txn &outermost, unsigned first) {
    for (;;) {
        take(outermost.holds[first], stm::wait_policy::any);
        unsigned missed = outermost.hold_count;
        for (unsigned i = 0; i < outermost.hold_count && missed == outermost.hold_count; i++)
            if (i != first && !take(outermost.holds[i], stm::wait_policy::never))
                missed = i;
        if (missed == outermost.hold_count)
            return;
        for (unsigned i = 0; i < outermost.hold_count; i++)
            drop(outermost.holds[i]);
        first = missed;
    }
}

ty_status await_blocker(const blocker &met) {
    switch (met.what) {
    case blocker::kind::rwlock: // the next run may find it taken again
        met.rwlock->lock();
        met.rwlock->unlock();
        return TY_OK;
    case blocker::kind::broken_log:
        return log_broken(met.rt->log) ? snapshots_repair(*met.rt) : TY_OK;
    case blocker::kind::full_log:
        return snapshots_make_room(*met.rt);
    case blocker::kind::none:
    case blocker::kind::heap:
    case blocker::kind::heap_with_rwlock:
        break;
    }
    return TY_OK;
}

} // namespace

ty_status acquire_blockers(ty_atomic_txn &txn, bool needs_rwlock) {
    const blocker met = txn.met;
    txn.met = {};
    if (ty_status status = await_blocker(met))
        return status;
    if (met.body != nullptr) {
        note(txn, static_cast<ty_atomic_txn &>(*met.body), met.what == blocker::kind::heap_with_rwlock);
        note(txn, txn, needs_rwlock);
    }
    if (txn.hold_count == 0) [[likely]]
        return TY_OK;
    unsigned first = 0;
    for (unsigned i = 0; i < txn.hold_count; i++) {
        txn.holds[i].with_rwlock |= needs_rwlock && txn.holds[i].txn == &txn;
        if (txn.holds[i].txn == met.body)
            first = i;
    }
    take_all(txn, first);
    return TY_OK;
}

void holds_drop(ty_atomic_txn &txn, bool forget) {
    for (unsigned i = 0; i < txn.hold_count; i++)
        drop(txn.holds[i]);
    if (forget)
        txn.hold_count = 0;
}

} // namespace taiyen
