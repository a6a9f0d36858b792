// Concurrent heaps from creation to end, and the state of each thread on one.
#include "members.hpp"

#include <algorithm>
#include <new>

namespace taiyen {

constinit thread_local known_members known_here{};
constinit std::atomic<uint64_t> concurrent_ends{1};
uint32_t retired_at_once = 512;

namespace {

// After this the entries are of heaps that have not ended.
known_members &known_now() {
    known_members &known = known_here;
    const uint64_t ends = concurrent_ends.load(std::memory_order_acquire);
    if (known.ends != ends)
        known = {ends, {}, {}};
    return known;
}

ty_atomic_txn *find_known(const known_members &known, const ty_heap *heap) {
    for (unsigned i = 0; i < known_members::most; i++)
        if (known.heaps[i] == heap)
            return known.txns[i];
    return nullptr;
}

// The newest is the first.
void make_known(known_members &known, ty_heap *heap, ty_atomic_txn *txn) {
    unsigned at = 0;
    while (at < known_members::most - 1 && known.heaps[at] != heap)
        at++;
    for (; at > 0; at--) {
        known.heaps[at] = known.heaps[at - 1];
        known.txns[at] = known.txns[at - 1];
    }
    known.heaps[0] = heap;
    known.txns[0] = txn;
}

ty_atomic_txn *find_member(const concurrent_heap &all, uintptr_t thread) {
    ty_atomic_txn *each = all.first;
    while (each != nullptr && each->thread != thread)
        each = each->next_member;
    return each;
}

bool thread_is_member(thread_end_watcher *watcher) {
    auto &all = *static_cast<concurrent_heap *>(watcher);
    return !all.fork.forked() && member_known(all) != nullptr;
}

// X9: what a thread had under way ends with it.
void end_member(thread_end_watcher *watcher) {
    auto &all = *static_cast<concurrent_heap *>(watcher);
    ty_atomic_txn &txn = *member_known(all);
    if (txn.runs() && !fault("body_outlives_its_thread"))
        txn.roll_back();
    bodies_forget();
    blockers_forget(txn); // each of the heaps that it holds is called for itself
    txn.release_domain();
    if (txn.has_rwlock)
        all.rt->rwlock.unlock();
    txn.has_rwlock = false;
    txn.call_due();
    retired_free_some(txn);
    known_here = {};
    os::lock_guard guard(all.lock);
    txn.thread = 0;
    all.left.fetch_add(txn.retired.count(), std::memory_order_relaxed);
}

// Q8: without the heap's lock, as this may wait for commits, and a commit may be a snapshot, which needs that lock.
ty_status add_member(concurrent_heap &all, ty_atomic_txn **added) {
    void *memory = nullptr;
    if (ty_status status = os::map_memory(sizeof(ty_atomic_txn), os::memory_hint::none, &memory))
        return status;
    auto *txn = ::new (memory) ty_atomic_txn{};
    if (fault("thread_joins_with_the_lock_of_members")) {
        os::lock_guard guard(all.lock);
        all.domain->join(*txn);
    } else {
        all.domain->join(*txn);
    }
    txn->all = &all;
    txn->own = txn;
    os::lock_guard guard(all.lock);
    txn->thread = this_thread();
    txn->stream = all.members++;
    txn->next_member = all.first;
    all.first = txn;
    *added = txn;
    return TY_OK;
}

// The calling thread's, or one whose thread has ended; NULL: there is none.
ty_atomic_txn *take_member(concurrent_heap &all) {
    os::lock_guard guard(all.lock);
    ty_atomic_txn *taken = find_member(all, this_thread());
    if (taken == nullptr && (taken = find_member(all, 0)) != nullptr)
        taken->thread = this_thread();
    return taken;
}

ty_status prepare_end(heap_service *service, bool) {
    auto &all = *static_cast<concurrent_heap *>(service);
    const ty_atomic_txn *txn = member_known(all);
    if (txn == nullptr || !txn->runs())
        return TY_OK;
    return failure(TY_E_ARGUMENT, "end a heap: this thread is in a body of ty_atomically on it")
        .remedy("return from the body first");
}

void release(heap_service *service) {
    concurrent_destroy(static_cast<concurrent_heap *>(service));
}

ty_status make_parts(concurrent_heap &all) {
    if (ty_status status = all.fork.start())
        return status;
    if (ty_status status = all.deferred.create())
        return status;
    const stm::recorder keeper = recorder_of(all);
    stm::options options{};
    options.clock = all.rt != nullptr ? log_last(all.rt->log) : 0;
    options.keeper = &keeper;
    if (ty_status status = stm::domain::create(options, &all.domain))
        return status;
    return thread_ends_add(all);
}

constinit os::mutex making_lock{os::lock_rank::members};

// A volatile heap that was created as concurrent becomes so on first use: a program that does not use it is linked
// without this layer.
ty_status make_volatile(ty_heap *heap, concurrent_heap **made) {
    concurrent_heap *own = nullptr;
    if (ty_status status = concurrent_create(heap, nullptr, &own))
        return status;
    {
        os::lock_guard guard(making_lock);
        if (heap_service_of(heap) == nullptr)
            heap_set_service(heap, own);
        *made = static_cast<concurrent_heap *>(heap_service_of(heap));
    }
    if (*made != own) // another thread was first
        concurrent_destroy(own);
    return TY_OK;
}

ty_status not_concurrent(ty_heap *heap) {
    const bool in_files = heap_image_of(heap) != nullptr;
    if (const txn_runtime *rt = runtime_of(heap); rt != nullptr && rt->log == nullptr)
        return failure(TY_E_PERMISSION, "run a transaction: the heap is open for reading only")
            .remedy("open it for writing");
    return failure(TY_E_ARGUMENT, "run a transaction: the heap is not concurrent")
        .remedy(in_files ? "open it for writing with the kind TY_TRANSACTIONAL and the option concurrent"
                         : "create it with the option concurrent");
}

} // namespace

ty_status concurrent_of(ty_heap *heap, concurrent_heap **found) {
    if (const txn_runtime *rt = runtime_of(heap)) {
        *found = static_cast<concurrent_heap *>(rt->concurrent);
        return *found != nullptr ? TY_OK : not_concurrent(heap);
    }
    if (!heap_may_be_concurrent(heap))
        return not_concurrent(heap);
    *found = static_cast<concurrent_heap *>(heap_service_of(heap));
    return *found != nullptr ? TY_OK : make_volatile(heap, found);
}

void count_members(concurrent_heap &all, ty_atomic_stats *stats) {
    os::lock_guard guard(all.lock);
    for (const ty_atomic_txn *txn = all.first; txn != nullptr; txn = txn->next_member) {
        stats->records += txn->records.load(std::memory_order_relaxed);
        stats->record_bytes += txn->logged_bytes.load(std::memory_order_relaxed);
        stats->snapshot_waits += txn->snapshot_waits.load(std::memory_order_relaxed);
        stats->longest_snapshot_wait_ns =
            std::max(stats->longest_snapshot_wait_ns, txn->longest_snapshot_wait_ns.load(std::memory_order_relaxed));
    }
}

ty_atomic_txn *member_known(concurrent_heap &all) {
    if (ty_atomic_txn *known = find_known(known_now(), all.heap))
        return known;
    os::lock_guard guard(all.lock);
    return find_member(all, this_thread());
}

ty_status find_member(ty_heap *heap, ty_atomic_txn **found) {
    known_members &known = known_now();
    *found = find_known(known, heap);
    if (*found == nullptr) {
        concurrent_heap *all = nullptr;
        if (ty_status status = concurrent_of(heap, &all))
            return status;
        if (ty_status status = thread_ends_watch())
            return status;
        if ((*found = take_member(*all)) == nullptr)
            if (ty_status status = add_member(*all, found))
                return status;
    }
    make_known(known, heap, *found);
    return TY_OK;
}

ty_status concurrent_create(ty_heap *heap, txn_runtime *rt, concurrent_heap **made) {
    void *memory = nullptr;
    if (ty_status status = os::map_memory(sizeof(concurrent_heap), os::memory_hint::none, &memory))
        return status;
    auto *all = ::new (memory) concurrent_heap{};
    const heap_words words = heap_block_words(heap);
    static_cast<heap_service &>(*all) = {prepare_end, release};
    all->has_work = thread_is_member;
    all->end = end_member;
    static_cast<atomic_transactions &>(*all) = atomic_transactions_of;
    all->heap = heap;
    all->rt = rt;
    all->base = static_cast<char *>(heap_base(heap));
    all->first_byte = words.first * 8;
    all->end_byte = words.end * 8;
    all->used_pages = &heap_used_pages(heap);
    if (ty_status status = make_parts(*all)) {
        concurrent_destroy(all);
        return status;
    }
    *made = all;
    return TY_OK;
}

void concurrent_destroy(concurrent_heap *all) {
    if (!fault("thread_keeps_its_transaction_of_an_ended_heap"))
        concurrent_ends.fetch_add(1, std::memory_order_release); // X35
    thread_ends_remove(*all);
    while (ty_atomic_txn *txn = all->first) {
        all->first = txn->next_member;
        txn->~ty_atomic_txn();
        os::unmap_memory(txn, sizeof *txn);
    }
    if (all->domain != nullptr)
        all->domain->destroy();
    all->deferred.destroy();
    all->fork.stop();
    all->~concurrent_heap();
    os::unmap_memory(all, sizeof *all);
}

} // namespace taiyen
