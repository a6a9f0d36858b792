// Blocks and roots in transactions of many threads. X26: an allocation is noted before another thread can see it. X22:
// a freed block is retired, and freed later.
#include "members.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace taiyen {
namespace {

constexpr size_t few_blocks = 32; // are searched linearly

// Whether a commit that the transaction may see has freed the block. A commit under way notes the block while it has
// its orec locked, and may still fail: that is a conflict, as is one that came later. A serial transaction
// waits for its end.
bool was_freed(ty_atomic_txn &txn, const void *block) {
    concurrent_heap &all = *txn.all;
    const uint64_t word = word_at(all, block);
    if (!all.deferred.may_hold(word)) [[likely]]
        return false;
    for (;; os::give_way()) {
        os::lock_guard guard(all.deferred.lock); // no thread enters it between the two checks
        if (!all.deferred.holds(word) || !txn.unchanged(block))
            return false;
        if (!txn.is_locked_now(block))
            return true;
    }
}

size_t home_of(uint64_t word, size_t capacity) {
    return (word * 0x9e3779b97f4a7c15 >> 32) & (capacity - 1);
}

// Finds a block of the transaction's own, or a live one of the heap.
ty_status find_block(ty_atomic_txn &txn, const char *call, void *block, block_note *found) {
    concurrent_heap &all = *txn.all;
    size_t bytes = 0;
    bool is_extent = false;
    const uint64_t word = word_at(all, block);
    ty_status status = heap_block_at(all.heap, call, block, &bytes, &is_extent);
    *found = {word, bytes / 8};
    if (status == TY_OK && all.rt != nullptr && reserved_now(*all.rt, word))
        return failure(TY_E_ARGUMENT, "%s %p: it is reserved, and no part of the heap yet", call, block)
            .remedy("publish it first, or use ty_cancel");
    return status;
}

ty_status freed_already(const char *call, const void *block) {
    return failure(TY_E_ARGUMENT, "%s %p: it is freed already", call, block).remedy("free a block once");
}

// Checks a block that was live when the transaction saw it. If another thread has freed it since, that is a conflict,
// which the orec of the block's first word detects.
// One that was freed before is refused now: at the commit it may be given back, and be another one.
ty_status check_live(ty_atomic_txn &txn, const char *call, void *block, block_note *found) {
    concurrent_heap &all = *txn.all;
    const uint64_t offset = reinterpret_cast<uintptr_t>(block) - reinterpret_cast<uintptr_t>(all.base);
    if (offset % 8 == 0 && offset >= all.first_byte && offset < all.end_byte && offset < heap_used_bytes(all.heap)) {
        uint64_t word = 0;
        if (!txn.load_at_once(reinterpret_cast<uintptr_t>(block), &word) && !txn.load(block, &word, sizeof word))
            return txn.aborted();
        if (was_freed(txn, block) && !fault("freed_block_accepted_by_a_free"))
            return freed_already(call, block);
        if (txn.aborted() != TY_OK)
            return txn.aborted();
    }
    return find_block(txn, call, block, found);
}

bool give_all_back(ty_atomic_txn &txn);

// The error of a failed allocation, where freed blocks are kept for transactions that may read them: the user need not
// search for a leak.
ty_status short_of_memory(concurrent_heap &all, size_t size) {
    size_t words = 0;
    {
        os::lock_guard guard(all.lock);
        for (const ty_atomic_txn *txn = all.first; txn != nullptr; txn = txn->next_member) {
            words += txn->retired.words();
        }
    }
    const ty_error error = keep_error();
    if (words == 0 || error.status != TY_E_MEMORY)
        return TY_E_MEMORY; // as the heap says
    return failure(TY_E_MEMORY, "allocate %zu bytes: of %zu freed bytes some transaction may still read", size,
                   words * 8)
        .remedy("they are given back once no transaction runs that began before they were freed: end long ones "
                "sooner, or raise the heap's limit");
}

// With the registration latch held, for blocks that others may see. The latch is left where this has to wait.
ty_status note_alloc(ty_atomic_txn &txn, size_t size, size_t alignment, void **block) {
    concurrent_heap &all = *txn.all;
    size_t bytes = 0;
    *block = heap_alloc_whole(all.heap, size, alignment, &bytes);
    if (*block == nullptr && all.deferred.any()) {
        if (!give_all_back(txn))
            return txn.aborted();
        *block = heap_alloc_whole(all.heap, size, alignment, &bytes);
    }
    if (*block == nullptr)
        return TY_E_MEMORY;
    if (fault("fuzzy_snapshot_beside_block_changes")) // the snapshot's turn
        os::yield();
    const block_note made{word_at(all, *block), bytes / 8};
    ty_status status = txn.allocs.push(made);
    if (status == TY_OK)
        txn.own_allocations.add(all.base, made);
    else
        static_cast<void>(heap_free(*block)); // it was just allocated
    return status;
}

void free_noted(ty_atomic_txn &txn, size_t from) {
    for (size_t i = txn.allocs.count(); i-- > from;)
        if (!fault("rollback_keeps_allocated_blocks"))
            static_cast<void>(heap_free(address_of(*txn.all, txn.allocs[i].word))); // it is the transaction's own
    txn.allocs.cut(from);
    txn.own_allocations.forget();
    for (const block_note &left : txn.allocs)
        txn.own_allocations.add(txn.all->base, left);
}

ty_status set_root(ty_atomic_txn &txn, const root_note &root, void *address) {
    return heap_root_set(txn.all->heap, root.name, address);
}

void take_roots_back(ty_atomic_txn &txn) {
    while (txn.roots_set != 0) {
        const root_note &root = txn.roots[--txn.roots_set];
        static_cast<void>(set_root(txn, root, root.before)); // it had that value a moment ago
    }
}

// The last one of each name counts.
void forget_overruled(os::array<root_note> &roots) {
    size_t kept = roots.count();
    for (size_t i = roots.count(); i-- > 0;) {
        bool overruled = false;
        for (size_t later = kept; later < roots.count(); later++)
            overruled |= strcmp(roots[later].name, roots[i].name) == 0;
        if (!overruled)
            roots[--kept] = roots[i];
    }
    for (size_t i = kept; i < roots.count(); i++)
        roots[i - kept] = roots[i];
    roots.cut(roots.count() - kept);
}

// Removals first, so that there is room for the others.
ty_status set_roots(ty_atomic_txn &txn) {
    size_t first = 0;
    forget_overruled(txn.roots);
    for (size_t i = 0; i < txn.roots.count(); i++)
        if (txn.roots[i].address == nullptr)
            std::swap(txn.roots[first++], txn.roots[i]);
    for (root_note &root : txn.roots) {
        root.before = heap_root(txn.all->heap, root.name);
        if (ty_status status = set_root(txn, root, root.address)) {
            take_roots_back(txn);
            return status;
        }
        txn.roots_set++;
    }
    return TY_OK;
}

} // namespace

// False: there is no memory for it.
bool block_index::cover(const os::array<block_note> &notes) {
    if (2 * notes.count() > capacity_) {
        const size_t capacity = std::bit_ceil(4 * notes.count());
        capacity_ = covered_ = 0;
        if (slots_.provide(capacity * sizeof(uint32_t)) != TY_OK)
            return false;
        memset(slots_.begin(), 0, capacity * sizeof(uint32_t));
        capacity_ = capacity;
    }
    uint32_t *slots = slots_.as<uint32_t>();
    for (; covered_ < notes.count(); covered_++) {
        size_t at = home_of(notes[covered_].word, capacity_);
        while (slots[at] != 0)
            at = (at + 1) & (capacity_ - 1);
        slots[at] = static_cast<uint32_t>(covered_ + 1);
    }
    return true;
}

bool block_index::finds(const os::array<block_note> &notes, uint64_t word) {
    if (notes.count() < few_blocks || !cover(notes)) {
        for (const block_note &note : notes)
            if (note.word == word)
                return true;
        return false;
    }
    const uint32_t *slots = slots_.as<uint32_t>();
    for (size_t at = home_of(word, capacity_); slots[at] != 0; at = (at + 1) & (capacity_ - 1))
        if (notes[slots[at] - 1].word == word)
            return true;
    return false;
}

// Other threads only take blocks: what was reserved stays.
ty_status retired_blocks::reserve(size_t more) {
    if (more <= room_) [[likely]]
        return TY_OK;
    os::lock_guard guard(lock_);
    if (blocks_.count() == 0)
        blocks_.clear();
    if (ty_status status = blocks_.reserve(more + spare))
        return status;
    room_ = more + spare;
    return TY_OK;
}

void retired_blocks::push(uint64_t timestamp, const os::array<block_note> &freed) {
    size_t words = 0;
    room_ -= freed.count();
    os::lock_guard guard(lock_);
    for (const block_note &each : freed) {
        static_cast<void>(blocks_.push({timestamp, each.word, each.words}));
        words += each.words;
    }
    count_.store(count() + freed.count(), std::memory_order_relaxed);
    words_.store(words_.load(std::memory_order_relaxed) + words, std::memory_order_relaxed);
}

size_t retired_blocks::take(uint64_t oldest, block_note *to, size_t most) {
    if (count() == 0)
        return 0;
    size_t taken = 0, words = 0;
    os::lock_guard guard(lock_);
    const uint64_t before = fault("freed_while_a_transaction_may_read_it") ? UINT64_MAX : oldest;
    while (taken < most && done_ < blocks_.count() && blocks_[done_].timestamp <= before) {
        to[taken] = {blocks_[done_].word, blocks_[done_].words};
        words += to[taken++].words;
        done_++;
    }
    count_.store(count() - taken, std::memory_order_relaxed);
    words_.store(words_.load(std::memory_order_relaxed) - words, std::memory_order_relaxed);
    if (done_ == blocks_.count()) {
        blocks_.cut(0);
        done_ = 0;
    }
    return taken;
}

void allocations_of_txn::add(const char *base, const block_note &made) {
    low_ = std::min(low_, made.word);
    high_ = std::max(high_, made.word + made.words);
    last_at_ = reinterpret_cast<uintptr_t>(base) + made.word * 8;
    last_bytes_ = made.words * 8;
}

bool allocations_of_txn::holds(ty_heap *heap, const char *base, const os::array<block_note> &allocs,
                               const void *address, size_t bytes) {
    const uint64_t offset = reinterpret_cast<uintptr_t>(address) - reinterpret_cast<uintptr_t>(base);
    if (last_holds(address, bytes))
        return true;
    auto lies_in = [&](const block_note &block) {
        const uint64_t within = offset - block.word * 8;
        if (within >= block.words * 8 || bytes > block.words * 8 - within)
            return false;
        last_at_ = reinterpret_cast<uintptr_t>(base) + block.word * 8;
        last_bytes_ = block.words * 8;
        return true;
    };
    if (allocs.count() < few_blocks) {
        for (const block_note &each : allocs)
            if (lies_in(each))
                return true;
        return false;
    }
    ty_block around;
    if (!heap_find_block(heap, address, &around))
        return false;
    const uint64_t start = static_cast<uint64_t>(static_cast<const char *>(around.address) - base) / 8;
    return index_.finds(allocs, start) && lies_in({start, around.size_bytes / 8});
}

// X32: a store to an own block is in the block at once; a part that is rolled back keeps what the bytes held.
ty_status store_own(ty_atomic_txn &txn, void *address, const void *value, size_t bytes) {
    if (txn.aborted() != TY_OK)
        return aborted(txn);
    auto at = reinterpret_cast<uintptr_t>(address);
    const uintptr_t end = at + bytes;
    while (txn.parts != 0 && at < end) {
        const auto first = static_cast<unsigned>(at % 8);
        const auto count = static_cast<unsigned>(std::min<uintptr_t>(8 - first, end - at));
        const uint64_t mask = count == 8 ? UINT64_MAX : ((uint64_t{1} << count * 8) - 1) << first * 8;
        auto *word = reinterpret_cast<uint64_t *>(at - first);
        if (ty_status status = txn.old_values.push({word, *word, mask}))
            return status;
        at += count;
    }
    memcpy(address, value, bytes);
    return TY_OK;
}

void blocks_back_to(ty_atomic_txn &txn, const block_savepoint &to) {
    if (txn.frees.count() != to.frees)
        txn.freed.forget();
    txn.frees.cut(to.frees);
    txn.roots.cut(to.roots);
    for (size_t i = txn.old_values.count(); to.allocs != 0 && i-- > to.old_values;) {
        const stm::written_word &before = txn.old_values[i];
        *before.word = (*before.word & ~before.mask) | (before.value & before.mask);
    }
    txn.old_values.cut(to.old_values);
    if (txn.allocs.count() == to.allocs)
        return;
    latch_enter_in_txn(txn);
    free_noted(txn, to.allocs);
    latch_leave(txn);
}

ty_status blocks_prepare(ty_atomic_txn &txn) {
    concurrent_heap &all = *txn.all;
    txn.roots_set = 0;
    if ((txn.frees.count() | txn.roots.count()) == 0) [[likely]]
        return TY_OK;
    if (ty_status status = txn.retired.reserve(txn.frees.count()))
        return status;
    // TY_E_BUSY: another thread has freed one of them. Its commit came first, as both have locked the block's orec.
    if (ty_status status = txn.frees.count() != 0 ? all.deferred.enter(txn.frees) : TY_OK)
        return status;
    ty_status status = set_roots(txn);
    if (status != TY_OK)
        all.deferred.leave(txn.frees.begin(), txn.frees.count());
    return status;
}

void blocks_finish_commit(ty_atomic_txn &txn, uint64_t timestamp, bool valid) {
    if (!valid) {
        take_roots_back(txn);
        txn.all->deferred.leave(txn.frees.begin(), txn.frees.count());
        return;
    }
    if (txn.frees.count() != 0)
        txn.retired.push(timestamp, txn.frees); // blocks_prepare made room
    txn.own_allocations.forget();
    txn.old_values.clear();
    txn.freed.forget();
    txn.allocs.clear();
    txn.frees.clear();
    txn.roots.clear();
}

namespace {

// With the registration latch held.
void free_retired(concurrent_heap &all, retired_blocks &retired, uint64_t oldest) {
    block_note taken[32];
    while (const size_t count = retired.take(oldest, taken, std::size(taken))) {
        all.deferred.leave(taken, count);
        if (fault("mark_beside_frees_after_commits")) // the mark's turn
            os::yield();
        for (size_t i = 0; i < count; i++)
            static_cast<void>(heap_free(address_of(all, taken[i].word))); // it is live: its free was deferred
    }
}

// Under the heap's lock, with the registration latch held: frees those of threads that have ended; or of all.
void free_of_others(concurrent_heap &all, uint64_t oldest, bool of_all) {
    size_t left = 0;
    for (ty_atomic_txn *txn = all.first; txn != nullptr; txn = txn->next_member) {
        if (txn->thread != 0 && !of_all)
            continue;
        free_retired(all, txn->retired, oldest);
        left += txn->thread == 0 ? txn->retired.count() : 0;
    }
    all.left.store(left, std::memory_order_relaxed);
}

// With the registration latch held. A thread that closes the latch has the lock, and waits for this one.
void free_what_can_be(ty_atomic_txn &txn) {
    concurrent_heap &all = *txn.all;
    if (all.frees_wait.load(std::memory_order_relaxed) != 0)
        return;
    const uint64_t oldest = all.domain->oldest();
    free_retired(all, txn.retired, oldest);
    if (all.left.load(std::memory_order_relaxed) == 0 || !all.lock.try_lock())
        return;
    free_of_others(all, oldest, false);
    all.lock.unlock();
}

// X22: a freed block stays while a transaction runs that may read it. With the registration latch held: as room has run
// out, frees all that no transaction can read, whichever thread freed it; also what this transaction itself could have
// read and has not. False: this transaction is aborted.
bool give_all_back(ty_atomic_txn &txn) {
    concurrent_heap &all = *txn.all;
    if (!txn.renew())
        return false;
    for (;;) {
        if (all.frees_wait.load(std::memory_order_seq_cst) == 0 && all.lock.try_lock())
            break;
        latch_leave(txn); // a snapshot closes it, and waits for no thread that has left it
        if (all.frees_wait.load(std::memory_order_seq_cst) != 0)
            os::wait_on(all.frees_wait, 1);
        else
            os::give_way();
        latch_enter_in_txn(txn);
    }
    free_of_others(all, all.domain->oldest(), true);
    all.lock.unlock();
    return true;
}

} // namespace

void retired_free_now(ty_atomic_txn &txn) {
    txn.ends = 0;
    txn.record.trim();
    txn.sorting.trim();
    txn.freed.trim();
    txn.own_allocations.trim();
    if (txn.retired.count() == 0 && txn.all->left.load(std::memory_order_relaxed) == 0)
        return;
    latch_enter(txn);
    free_what_can_be(txn);
    latch_leave(txn);
}

bool retired_free_all(concurrent_heap &all) {
    if (!all.deferred.any())
        return false;
    os::lock_guard guard(all.lock);
    free_of_others(all, UINT64_MAX, true);
    return true;
}

// ---- Called by bodies

void *atomic_alloc(ty_atomic_txn *txn, size_t size, size_t alignment) {
    if (txn->aborted() != TY_OK)
        return aborted_pointer(*txn);
    if (!txn->may_change("allocate"))
        return aborted_pointer(*txn);
    void *block = nullptr;
    latch_enter_in_txn(*txn);
    ty_status status = note_alloc(*txn, size, alignment, &block);
    latch_leave(*txn);
    if (txn->aborted() != TY_OK)
        return aborted_pointer(*txn);
    if (status != TY_OK) {
        static_cast<void>(short_of_memory(*txn->all, size));
        return nullptr;
    }
    txn->changed(); // the block alone makes it a transaction that has something to commit
    txn->store_slowly(block, txn->allocs.end()[-1].words * 8);
    return block;
}

ty_status atomic_free(ty_atomic_txn *txn, void *block) {
    constexpr const char *call = "free";
    block_note found;
    if (txn->aborted() != TY_OK)
        return aborted(*txn);
    const uint64_t word = word_at(*txn->all, block);
    if (txn->freed.finds(txn->frees, word))
        return freed_already(call, block);
    if (ty_status status = check_live(*txn, call, block, &found))
        return status == TY_E_BUSY ? aborted(*txn) : status;
    if (!txn->touch(block))
        return aborted(*txn);
    txn->changed();
    return txn->frees.push(found);
}

// The new block is the transaction's own: plain stores of the program into it come after this.
static bool copy_and_free(ty_atomic_txn *txn, void *block, void *made, size_t bytes) {
    return txn->load(block, made, bytes) && atomic_free(txn, block) == TY_OK;
}

void *atomic_resize(ty_atomic_txn *txn, void *block, size_t size) {
    if (block == nullptr)
        return atomic_alloc(txn, size, 0);
    constexpr const char *call = "resize";
    block_note found;
    if (txn->aborted() != TY_OK)
        return aborted_pointer(*txn);
    if (txn->freed.finds(txn->frees, word_at(*txn->all, block)))
        return static_cast<void>(freed_already(call, block)), nullptr;
    if (ty_status status = check_live(*txn, call, block, &found))
        return status == TY_E_BUSY ? aborted_pointer(*txn) : nullptr;
    const size_t bytes = found.words * 8;
    if (size <= bytes && size >= bytes / 2)
        return block;
    const stm::transaction::part_savepoint before = txn->savepoint();
    const block_savepoint blocks = blocks_savepoint(*txn);
    void *made = atomic_alloc(txn, size, 0);
    if (made == nullptr)
        return nullptr;
    if (copy_and_free(txn, block, made, size < bytes ? size : bytes))
        return made;
    txn->back_to(before);
    blocks_back_to(*txn, blocks);
    return txn->aborted() != TY_OK ? aborted_pointer(*txn) : nullptr;
}

ty_status atomic_root(ty_atomic_txn *txn, const char *name, void **address) {
    concurrent_heap &all = *txn->all;
    *address = nullptr;
    uint64_t version = 0;
    if (!txn->load(&all.roots_version, &version, sizeof version))
        return aborted(*txn);
    for (size_t i = txn->roots.count(); i-- > 0;) {
        if (strcmp(txn->roots[i].name, name) == 0) {
            *address = txn->roots[i].address;
            return TY_OK;
        }
    }
    void *found = heap_root(all.heap, name);
    // A commit that sets roots does so with this word's orec locked. If it did meanwhile, this detects it.
    if (!txn->unchanged(&all.roots_version))
        return aborted(*txn);
    *address = found;
    return TY_OK;
}

ty_status atomic_root_set(ty_atomic_txn *txn, const char *name, void *address) {
    concurrent_heap &all = *txn->all;
    uint64_t version = 0;
    if (!txn->load(&all.roots_version, &version, sizeof version))
        return aborted(*txn);
    version++;
    if (!txn->store(&all.roots_version, &version, sizeof version))
        return aborted(*txn);
    root_note root{};
    txn->changed();
    memcpy(root.name, name, strlen(name)); // check_root has checked the length
    root.address = address;
    return txn->roots.push(root);
}

} // namespace taiyen
