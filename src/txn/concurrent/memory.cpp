// Blocks and roots in transactions of many threads. X26: noted before anybody can look. X22: retired, and freed later.
#include "members.hpp"

#include <bit>
#include <cstring>

namespace taiyen {
namespace {

// To learn what can still be read costs some microseconds: so not for each block.
constexpr size_t retired_at_once = 64;              // blocks,
constexpr size_t retired_words_at_once = 128 << 10; // words,
constexpr uint32_t ends_at_once = 64;               // or transactions since the last look

// Whether a commit that the transaction may see has freed the block. One that is under way notes the block while it has
// its stripe locked, and may fail yet: that is a conflict, as is one that came later. Who is alone waits for its end.
bool was_freed(ty_atomic_txn &txn, const void *block) {
    concurrent_heap &all = *txn.all;
    for (;; os::give_way()) {
        os::lock_guard guard(all.leaving_lock); // nobody notes it between the two questions
        if (all.leaving.count() == 0 || all.leaving.find(word_at(all, block)) == word_table::none ||
            !txn.own->unchanged(block))
            return false;
        if (!txn.own->is_committed_to(block))
            return true;
    }
}

// TY_E_BUSY: another has freed it. Its commit came first, as both have locked the block's stripe.
ty_status enter_leaving(concurrent_heap &all, uint64_t word) {
    os::lock_guard guard(all.leaving_lock);
    return all.leaving.find(word) != word_table::none ? TY_E_BUSY : all.leaving.insert(word, 0);
}

void forget_leaving(concurrent_heap &all, uint64_t word) {
    os::lock_guard guard(all.leaving_lock);
    all.leaving.erase(word);
}

size_t home_of(uint64_t word, size_t capacity) {
    return (word * 0x9e3779b97f4a7c15 >> 32) & (capacity - 1);
}

// A block of the transaction's own, or a live one of the heap.
ty_status find_block(ty_atomic_txn &txn, const char *call, void *block, block_note *found) {
    concurrent_heap &all = *txn.all;
    size_t bytes = 0;
    bool run = false;
    const uint64_t word = word_at(all, block);
    ty_status status = heap_block_at(all.heap, call, block, &bytes, &run);
    *found = {word, bytes / 8};
    if (status == TY_OK && all.rt != nullptr && reserved_now(*all.rt, word))
        return failure(TY_E_ARGUMENT, "%s %p: it is reserved, and no part of the heap yet", call, block)
            .remedy("publish it first, or use ty_cancel");
    return status;
}

ty_status freed_already(const char *call, const void *block) {
    return failure(TY_E_ARGUMENT, "%s %p: it is freed already", call, block).remedy("free a block once");
}

// A block that was live when the transaction saw it. Where another thread has freed it since, that is a conflict; the
// stripe of the block's first word tells of it.
ty_status check_live(ty_atomic_txn &txn, const char *call, void *block, block_note *found) {
    concurrent_heap &all = *txn.all;
    const uint64_t offset = reinterpret_cast<uintptr_t>(block) - reinterpret_cast<uintptr_t>(all.base);
    if (offset % 8 == 0 && offset >= all.first_byte && offset < all.end_byte && offset < heap_used_bytes(all.heap)) {
        uint64_t word = 0;
        if (!txn.own->load(block, &word, sizeof word))
            return txn.own->lost();
        if (was_freed(txn, block))
            return freed_already(call, block);
        if (txn.own->lost() != TY_OK)
            return txn.own->lost();
    }
    return find_block(txn, call, block, found);
}

size_t retired_count(const ty_atomic_txn &txn) {
    return txn.retired.count() - txn.retired_done;
}

void free_what_can_be(ty_atomic_txn &txn);

// Within the books, for what others may look at.
ty_status note_alloc(ty_atomic_txn &txn, size_t size, size_t alignment, void **block) {
    concurrent_heap &all = *txn.all;
    size_t bytes = 0;
    *block = heap_alloc_whole(all.heap, size, alignment, &bytes);
    if (*block == nullptr && (retired_count(txn) != 0 || all.left.load(std::memory_order_relaxed) != 0)) {
        free_what_can_be(txn);
        *block = heap_alloc_whole(all.heap, size, alignment, &bytes);
    }
    if (*block == nullptr)
        return TY_E_MEMORY;
    ty_status status = txn.allocs.push({word_at(all, *block), bytes / 8});
    if (status != TY_OK)
        static_cast<void>(heap_free(*block)); // it was just made
    return status;
}

void free_noted(ty_atomic_txn &txn, size_t from) {
    for (size_t i = txn.allocs.count(); i-- > from;)
        static_cast<void>(heap_free(address_of(*txn.all, txn.allocs[i].word))); // it is the transaction's
    txn.allocs.cut(from);
}

ty_status set_root(ty_atomic_txn &txn, const root_note &root, void *address) {
    return heap_root_set(txn.all->heap, root.name, address);
}

void take_roots_back(ty_atomic_txn &txn) {
    while (txn.roots_set != 0) {
        const root_note &root = txn.roots[--txn.roots_set];
        static_cast<void>(set_root(txn, root, root.before)); // it was so a moment ago
    }
}

// The last one of each name counts.
void forget_overruled(pile<root_note> &roots) {
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
bool freed_index::cover(const pile<block_note> &notes) {
    if (covered_ > notes.count() || 2 * notes.count() > capacity_) {
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

bool freed_index::finds(const pile<block_note> &notes, uint64_t word) {
    constexpr size_t few = 32;
    if (notes.count() < few)
        capacity_ = 0; // these may be another transaction's
    if (notes.count() < few || !cover(notes)) {
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

bool blocks_touched(const ty_atomic_txn &txn) {
    return txn.allocs.count() != 0 || txn.frees.count() != 0 || txn.roots.count() != 0;
}

void blocks_forget(ty_atomic_txn &txn) {
    blocks_back_to(txn, {0, 0, 0});
}

void blocks_back_to(ty_atomic_txn &txn, const block_mark &mark) {
    txn.frees.cut(mark.frees);
    txn.roots.cut(mark.roots);
    if (txn.allocs.count() == mark.allocs)
        return;
    books_enter(txn);
    free_noted(txn, mark.allocs);
    books_leave(txn);
}

ty_status blocks_prepare(ty_atomic_txn &txn) {
    concurrent_heap &all = *txn.all;
    txn.roots_set = 0;
    if (ty_status status = txn.retired.reserve(txn.frees.count()))
        return status;
    for (size_t i = 0; i < txn.frees.count(); i++) {
        ty_status status = enter_leaving(all, txn.frees[i].word);
        if (status == TY_OK)
            continue;
        while (i-- > 0)
            forget_leaving(all, txn.frees[i].word);
        return status;
    }
    ty_status status = set_roots(txn);
    if (status != TY_OK)
        for (const block_note &freed : txn.frees)
            forget_leaving(all, freed.word);
    return status;
}

void blocks_settle(ty_atomic_txn &txn, uint64_t stamp, bool valid) {
    if (!valid) {
        take_roots_back(txn);
        for (const block_note &freed : txn.frees)
            forget_leaving(*txn.all, freed.word);
        return;
    }
    for (const block_note &freed : txn.frees)
        static_cast<void>(txn.retired.push({stamp, freed.word, freed.words})); // blocks_prepare made room
    for (const block_note &freed : txn.frees)
        txn.retired_words += freed.words;
    txn.allocs.clear();
    txn.frees.clear();
    txn.roots.clear();
}

namespace {

// Within the books.
void free_retired(ty_atomic_txn &txn, uint64_t oldest) {
    while (txn.retired_done < txn.retired.count() && txn.retired[txn.retired_done].stamp <= oldest) {
        const auto [stamp, word, words] = txn.retired[txn.retired_done++];
        txn.retired_words -= words;
        forget_leaving(*txn.all, word);
        static_cast<void>(heap_free(address_of(*txn.all, word))); // it is live: it was leaving
    }
    if (txn.retired_done != txn.retired.count())
        return;
    txn.retired.clear();
    txn.retired_done = 0;
}

// By threads that have ended. Who closes the books has the lock, and waits for this thread.
void free_left(concurrent_heap &all, uint64_t oldest) {
    if (!all.lock.try_lock())
        return;
    size_t left = 0;
    for (ty_atomic_txn *txn = all.first; txn != nullptr; txn = txn->next) {
        if (txn->thread != 0)
            continue;
        free_retired(*txn, oldest);
        left += retired_count(*txn);
    }
    all.left.store(left, std::memory_order_relaxed);
    all.lock.unlock();
}

// Within the books.
void free_what_can_be(ty_atomic_txn &txn) {
    if (txn.all->frees_wait.load(std::memory_order_relaxed))
        return;
    const uint64_t oldest = txn.all->domain->oldest();
    free_retired(txn, oldest);
    if (txn.all->left.load(std::memory_order_relaxed) != 0)
        free_left(*txn.all, oldest);
}

} // namespace

void retired_free_some(ty_atomic_txn &txn) {
    if (++txn.ends < ends_at_once && retired_count(txn) < retired_at_once && txn.retired_words < retired_words_at_once)
        return;
    txn.ends = 0;
    if (retired_count(txn) == 0 && txn.all->left.load(std::memory_order_relaxed) == 0)
        return;
    books_enter(txn);
    free_what_can_be(txn);
    books_leave(txn);
}

void retired_free_all(concurrent_heap &all) {
    os::lock_guard guard(all.lock);
    for (ty_atomic_txn *txn = all.first; txn != nullptr; txn = txn->next)
        free_retired(*txn, UINT64_MAX);
}

// ---- What a body calls

void *atomic_alloc(ty_atomic_txn *txn, size_t size, size_t alignment) {
    if (txn->own->lost() != TY_OK)
        return lost_pointer(*txn);
    void *block = nullptr;
    books_enter(*txn);
    ty_status status = note_alloc(*txn, size, alignment, &block);
    books_leave(*txn);
    if (status != TY_OK)
        return nullptr;
    if (!txn->own->touch(block)) // the block alone makes it a transaction that has something to commit
        return lost_pointer(*txn);
    return block;
}

ty_status atomic_free(ty_atomic_txn *txn, void *block) {
    constexpr const char *call = "free";
    block_note found;
    if (txn->own->lost() != TY_OK)
        return lost(*txn);
    const uint64_t word = word_at(*txn->all, block);
    if (txn->freed.finds(txn->frees, word))
        return freed_already(call, block);
    if (ty_status status = check_live(*txn, call, block, &found))
        return status == TY_E_BUSY ? lost(*txn) : status;
    if (!txn->own->touch(block))
        return lost(*txn);
    return txn->frees.push(found);
}

// The new block is the transaction's own: what the program stores into it later by plain stores comes after this.
static bool copy_and_free(ty_atomic_txn *txn, void *block, void *made, size_t bytes) {
    return txn->own->load(block, made, bytes) && atomic_free(txn, block) == TY_OK;
}

void *atomic_resize(ty_atomic_txn *txn, void *block, size_t size) {
    if (block == nullptr)
        return atomic_alloc(txn, size, 0);
    constexpr const char *call = "resize";
    block_note found;
    if (txn->own->lost() != TY_OK)
        return lost_pointer(*txn);
    if (txn->freed.finds(txn->frees, word_at(*txn->all, block)))
        return static_cast<void>(freed_already(call, block)), nullptr;
    if (ty_status status = check_live(*txn, call, block, &found))
        return status == TY_E_BUSY ? lost_pointer(*txn) : nullptr;
    const size_t bytes = found.words * 8;
    if (size <= bytes && size >= bytes / 2)
        return block;
    const stm::transaction::part_mark before = txn->own->mark();
    const block_mark blocks = blocks_mark(*txn);
    void *made = atomic_alloc(txn, size, 0);
    if (made == nullptr)
        return nullptr;
    if (copy_and_free(txn, block, made, size < bytes ? size : bytes))
        return made;
    txn->own->back_to(before);
    blocks_back_to(*txn, blocks);
    return txn->own->lost() != TY_OK ? lost_pointer(*txn) : nullptr;
}

ty_status atomic_root(ty_atomic_txn *txn, const char *name, void **address) {
    concurrent_heap &all = *txn->all;
    *address = nullptr;
    uint64_t version = 0;
    if (!txn->own->load(&all.roots_version, &version, sizeof version))
        return lost(*txn);
    for (size_t i = txn->roots.count(); i-- > 0;) {
        if (strcmp(txn->roots[i].name, name) == 0) {
            *address = txn->roots[i].address;
            return TY_OK;
        }
    }
    void *found = heap_root(all.heap, name);
    // A commit that sets roots does so with its stripe locked. If it did meanwhile, this sees it.
    if (!txn->own->unchanged(&all.roots_version))
        return lost(*txn);
    *address = found;
    return TY_OK;
}

ty_status atomic_root_set(ty_atomic_txn *txn, const char *name, void *address) {
    concurrent_heap &all = *txn->all;
    uint64_t version = 0;
    if (!txn->own->load(&all.roots_version, &version, sizeof version))
        return lost(*txn);
    version++;
    if (!txn->own->store(&all.roots_version, &version, sizeof version))
        return lost(*txn);
    root_note root{};
    memcpy(root.name, name, strlen(name)); // check_root has looked
    root.address = address;
    return txn->roots.push(root);
}

} // namespace taiyen
