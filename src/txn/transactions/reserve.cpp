// What threads and transactions do with reserved blocks (X3: each is listed in every snapshot).
#include "reservations.hpp"

namespace taiyen {
namespace {

ty_status not_reserved(const char *call, const void *block) {
    return failure(TY_E_ARGUMENT, "%s %p: it is not a reserved block", call, block)
        .remedy("hand in what ty_reserve returned, until it is published or cancelled");
}

reservation *find_reserved(txn_runtime &rt, const void *block) {
    if (heap_of(block) != rt.heap || reinterpret_cast<uintptr_t>(block) % 8 != 0)
        return nullptr;
    reservation *entry = find_reservation(*rt.reserved, word_at(rt, block));
    return entry != nullptr && entry->state == reserved_state::reserved ? entry : nullptr;
}

ty_status check_writable(txn_runtime *rt, const char *call) {
    if (rt == nullptr)
        return failure(TY_E_ARGUMENT, "%s: the heap is not transactional", call)
            .remedy("open it with the kind TY_TRANSACTIONAL");
    if (rt->log == nullptr && rt->sharing == nullptr)
        return failure(TY_E_PERMISSION, "%s: the heap is open for reading only", call).remedy("open it for writing");
    if (ty_status status = refuse_shared(*rt, call))
        return status;
    if (rt->txn_forked())
        return failure(TY_E_FORKED, "%s: the heap belongs to the parent process", call)
            .remedy("open the heap in the process that changes it");
    if (rt->receives.load(std::memory_order_relaxed)) // LK7: nobody else writes to a heap that receives
        return refuse_received(*rt, call);
    return TY_OK;
}

// NULL with the error detail set. Under the lock.
void *reserve(txn_runtime &rt, size_t size, reserved_state state) {
    library_stores own;
    size_t bytes;
    void *block = heap_alloc_whole(rt.heap, size, 0, &bytes);
    if (block == nullptr)
        return nullptr;
    if (enter_listed(rt, word_at(rt, block), bytes / 8, state) != TY_OK) {
        static_cast<void>(heap_free(block)); // it was just allocated
        return nullptr;
    }
    rt.reserved->count++;
    if (state == reserved_state::rolled_back)
        rt.reserved->kept_bytes += bytes;
    return block;
}

} // namespace

void *txn_reserve(ty_heap *heap, size_t size) {
    txn_runtime *rt = runtime_of(heap);
    if (check_writable(rt, "reserve a block") != TY_OK)
        return nullptr;
    os::lock_guard guard(rt->reserved->lock);
    return reserve(*rt, size, reserved_state::reserved);
}

ty_status txn_cancel(void *block) {
    constexpr const char *call = "cancel the reservation of";
    ty_heap *heap = heap_of(block);
    txn_runtime *rt = heap != nullptr ? runtime_of(heap) : nullptr;
    if (rt == nullptr)
        return not_reserved(call, block);
    if (ty_status status = check_writable(rt, "cancel a reservation"))
        return status;
    reservations &r = *rt->reserved;
    os::lock_guard guard(r.lock);
    reservation *entry = find_reserved(*rt, block);
    if (entry == nullptr)
        return not_reserved(call, block);
    leave_reservation(*rt, entry);
    r.count--;
    return heap_free(block);
}

namespace {

// Under lock.
ty_status refuse_reserved(const txn_runtime &rt, const char *call, const void *block) {
    reservations &r = *rt.reserved;
    if (r.numbers.count() == 0 || find_reservation(r, word_at(rt, block)) == nullptr)
        return TY_OK;
    if (find_reservation(r, word_at(rt, block))->state == reserved_state::freeing)
        return failure(TY_E_ARGUMENT, "%s %p: a transaction has freed it already", call, block)
            .remedy("free a block once");
    return failure(TY_E_ARGUMENT, "%s %p: it is reserved, and no part of the heap yet", call, block)
        .remedy("publish it first, or use ty_cancel");
}

} // namespace

ty_status check_not_reserved(txn_runtime &rt, const char *call, const void *block) {
    os::lock_guard guard(rt.reserved->lock);
    return refuse_reserved(rt, call, block);
}

ty_status find_unreserved(txn_runtime &rt, const char *call, const void *block, size_t *bytes, bool *is_extent) {
    os::lock_guard guard(rt.reserved->lock);
    if (ty_status status = heap_block_at(rt.heap, call, block, bytes, is_extent))
        return status;
    return refuse_reserved(rt, call, block);
}

ty_status reserved_take(txn_runtime &rt, void *const *blocks, size_t count) {
    reservations &r = *rt.reserved;
    os::lock_guard guard(r.lock);
    for (size_t i = 0; i < count; i++) {
        reservation *entry = find_reserved(rt, blocks[i]);
        if (entry == nullptr) {
            while (i > 0)
                find_reservation(r, word_at(rt, blocks[--i]))->state = reserved_state::reserved;
            return not_reserved("publish", blocks[i]);
        }
        entry->state = reserved_state::published;
    }
    return TY_OK;
}

ty_status reserved_put_back(txn_runtime &rt, uint64_t word, uint64_t words) {
    os::lock_guard guard(rt.reserved->lock);
    reservation *entry = find_reservation(*rt.reserved, word);
    entry->state = reserved_state::reserved;
    return words > entry->words ? heap_resize_in_place(address_of(rt, word), entry->words * 8) : TY_OK;
}

void reserved_forget(txn_runtime &rt, uint64_t word) {
    reservations &r = *rt.reserved;
    os::lock_guard guard(r.lock);
    reservation *entry = find_reservation(r, word);
    if (entry->state == reserved_state::published)
        r.count--;
    leave_reservation(rt, entry);
}

ty_status reserved_list(txn_runtime &rt, uint64_t word) {
    os::lock_guard guard(rt.reserved->lock);
    if (fault("cut_end_of_a_block_not_listed") && word % 512 == 0)
        return enter_reservation(rt, word, 0, nullptr, reserved_state::freeing);
    return enter_listed(rt, word, 0, reserved_state::freeing);
}

void reserved_unlist(txn_runtime &rt, uint64_t word) {
    os::lock_guard guard(rt.reserved->lock);
    if (reservation *entry = find_reservation(*rt.reserved, word))
        leave_reservation(rt, entry);
}

void reserved_hide(txn_runtime &rt, uint64_t word) {
    os::lock_guard guard(rt.reserved->lock);
    *find_reservation(*rt.reserved, word)->place = 0;
}

void reserved_show(txn_runtime &rt, uint64_t word) {
    os::lock_guard guard(rt.reserved->lock);
    *find_reservation(*rt.reserved, word)->place = word;
}

ty_status reserved_leave(txn_runtime &rt, uint64_t word) {
    os::lock_guard guard(rt.reserved->lock);
    return enter_reservation(rt, word, 0, nullptr, reserved_state::freeing);
}

ty_status reserved_free(txn_runtime &rt, void *block) {
    os::lock_guard guard(rt.reserved->lock);
    leave_reservation(rt, find_reservation(*rt.reserved, word_at(rt, block)));
    return heap_free(block);
}

ty_status reserved_keep(txn_runtime &rt, uint64_t word, uint64_t words) {
    os::lock_guard guard(rt.reserved->lock);
    library_stores own;
    if (ty_status status = enter_listed(rt, word, words, reserved_state::rolled_back))
        return status;
    rt.reserved->count++;
    rt.reserved->kept_bytes += words * 8;
    return TY_OK;
}

bool reserved_kept(txn_runtime &rt, uint64_t word) {
    if (reserved_kept_bytes(rt) == 0)
        return false;
    os::lock_guard guard(rt.reserved->lock);
    const reservation *entry = find_reservation(*rt.reserved, word);
    return entry != nullptr && entry->state == reserved_state::rolled_back;
}

namespace {

// Under the lock.
ty_status free_kept(txn_runtime &rt, uint64_t word) {
    reservations &r = *rt.reserved;
    reservation *entry = find_reservation(r, word);
    if (entry == nullptr || entry->state != reserved_state::rolled_back)
        return not_reserved("free", address_of(rt, word));
    r.count--;
    r.kept_bytes -= entry->words * 8;
    leave_reservation(rt, entry);
    return heap_free(address_of(rt, word));
}

} // namespace

ty_status reserved_free_kept(txn_runtime &rt, uint64_t word) {
    os::lock_guard guard(rt.reserved->lock);
    return free_kept(rt, word);
}

bool txn_is_kept(const void *block) {
    txn_runtime *rt = runtime_of(heap_of(block));
    return rt != nullptr && reinterpret_cast<uintptr_t>(block) % 8 == 0 && reserved_kept(*rt, word_at(*rt, block));
}

ty_status txn_free_kept(void *block) {
    txn_runtime *rt = runtime_of(heap_of(block));
    if (ty_status status = check_writable(rt, "free a block"))
        return status;
    return reserved_free_kept(*rt, word_at(*rt, block));
}

void *txn_resize_kept(void *block, size_t size) {
    txn_runtime *rt = runtime_of(heap_of(block));
    if (check_writable(rt, "resize a block") != TY_OK)
        return nullptr;
    const size_t bytes = heap_usable_size(block);
    if (size <= bytes && size >= bytes / 2)
        return block;
    os::lock_guard guard(rt->reserved->lock);
    void *moved = reserve(*rt, size, reserved_state::rolled_back);
    if (moved == nullptr)
        return nullptr;
    library_stores own;
    memcpy(moved, block, size < bytes ? size : bytes);
    return free_kept(*rt, word_at(*rt, block)) == TY_OK ? moved : nullptr;
}

uint64_t reserved_kept_bytes(const txn_runtime &rt) {
    return rt.reserved->kept_bytes.load(std::memory_order_relaxed);
}

ty_status reserved_list_kept(txn_runtime &rt, ty_status (*visit)(void *context, uint64_t word, uint64_t words),
                             void *context) {
    os::lock_guard guard(rt.reserved->lock);
    for (reservation &entry : rt.reserved->entries)
        if (entry.word != 0 && entry.state == reserved_state::rolled_back) {
            entry.listed = true;
            if (ty_status status = visit(context, entry.word, entry.words))
                return status;
        }
    return TY_OK;
}

// Another thread may have freed it meanwhile, and a resize may have put another block there.
void reserved_let_go(txn_runtime &rt, uint64_t word) {
    os::lock_guard guard(rt.reserved->lock);
    const reservation *entry = find_reservation(*rt.reserved, word);
    if (entry != nullptr && entry->listed)
        static_cast<void>(free_kept(rt, word));
}

uint64_t reserved_count(const txn_runtime &rt) {
    return rt.reserved->count.load(std::memory_order_relaxed);
}

} // namespace taiyen
