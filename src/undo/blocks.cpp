// Allocating, freeing and resizing with a record of how to reverse it. No bytes are copied for that, except the end of
// what shrinks within a page or a small block.
#include "undo_runtime.hpp"

#include <algorithm>

namespace taiyen {
namespace {

// Smaller blocks keep their memory until ty_heap_purge: system calls for them would cost more than they gain.
constexpr uint64_t give_back_bytes = uint64_t{1} << 20;

struct own_block {
    uint64_t offset;
    size_t bytes;
    bool run;
};

// A live block of the heap that undo does not keep.
ty_status find_own(undo &u, const char *call, const void *block, own_block *own) {
    if (ty_status status = heap_block_at(u.heap, call, block, &own->bytes, &own->run))
        return status;
    own->offset = u.offset_of(block);
    if (u.kept.contains(own->offset))
        return failure(TY_E_ARGUMENT, "%s %p: it is freed already, and held for an undo", call, block)
            .remedy("hand in the address that the allocation returned, and only until it is freed");
    if (block == u.control)
        return failure(TY_E_ARGUMENT, "%s %p: it holds the buffers of undo", call, block)
            .remedy("ty_undo_detach frees them");
    return TY_OK;
}

// Where a call on a heap records. nowhere is refused here.
ty_status route_of_blocks(undo *u, const char *call, undo_route *route) {
    if (ty_status status = find_route(u, call, route))
        return status;
    if (*route == undo_route::nowhere)
        return failure(TY_E_UNSUPPORTED, "%s in a procedure that a redo runs", call)
            .remedy("record it in the procedure that the undo runs; a redo then does it by itself");
    if (*route == undo_route::plain)
        u->unrecorded |= u->running == undo_run::undoing;
    return TY_OK;
}

// While the heap is full, the oldest transactions that keep blocks are forgotten.
void *alloc_block(undo &u, size_t size, size_t alignment) {
    for (;;) {
        void *block = heap_alloc(u.heap, size, alignment, false);
        if (block != nullptr)
            return block;
        const ty_error error = keep_error();
        if (error.status != TY_E_MEMORY || !evict_for_memory(u))
            return nullptr;
    }
}

void push_block(undo &u, undo_kind kind, uint64_t offset, uint64_t bytes, uint64_t before = 0) {
    undo_entry entry{offset, bytes, what_of(kind, before)};
    u.target->push(entry.address, entry.bytes, entry.what);
    if (holds(entry))
        u.kept.insert(block_offset(entry), bytes);
}

// A kept block is not read before an undo: its memory may be evicted where the image holds it. For pages only.
void give_back(undo &u, uint64_t offset, uint64_t bytes) {
    size_t released;
    if (bytes >= give_back_bytes) // on failure the memory is merely kept
        static_cast<void>(image_evict(u.heap, u.base + offset, bytes, &released));
}

// Records the bytes of a block from an offset on.
bool record_from(undo &u, const own_block &own, uint64_t first) {
    if (first >= own.bytes)
        return true;
    uint64_t bytes = own.bytes - first;
    undo_room room = make_room(u, *u.target, 1, padded(bytes), false, 0);
    u.unrecorded |= room == undo_room::none;
    if (room == undo_room::there)
        u.target->push_data(own.offset + first, u.base + own.offset + first, bytes);
    return room != undo_room::refused;
}

// U8: what can be redone stays until a transaction ends. The bytes that a block grows by are written without a record,
//     and redo may hold their content. They begin at the size that was requested before, which is unknown: anywhere in
//     a small block, else in the last page.
uint64_t first_of_redo(const undo &u, const own_block &own) {
    if (!u.is(undo_cycle) || !u.is(undo_open))
        return UINT64_MAX;
    return own.run ? own.bytes - os::page_bytes : 0;
}

// What lies after the new size may be written without a record when the block grows again: so it is recorded now.
bool record_end(undo &u, const own_block &own, size_t size) {
    return record_from(u, own, std::min<uint64_t>(size, first_of_redo(u, own)));
}

// The block moves: the old one is kept, unchanged.
void *resize_by_moving(undo &u, const own_block &own, size_t size) {
    char *old = u.base + own.offset;
    undo_room room = make_room(u, *u.target, 2, 0, false, own.bytes);
    if (room == undo_room::refused)
        return nullptr;
    u.unrecorded |= room == undo_room::none;
    void *block = alloc_block(u, size, 0);
    if (block == nullptr)
        return nullptr;
    memcpy(block, old, size < own.bytes ? size : own.bytes);
    if (room == undo_room::none)
        return heap_free(old) == TY_OK ? block : nullptr;
    push_block(u, undo_kind::alloc, u.offset_of(block), heap_usable_size(block));
    push_block(u, undo_kind::free, own.offset, own.bytes);
    if (own.run)
        give_back(u, own.offset, own.bytes);
    return block;
}

// The pages after stay unchanged, as a kept block of their own.
void *shrink_extent(undo &u, const own_block &own, size_t size, uint64_t kept) {
    char *block = u.base + own.offset;
    uint64_t end = kept - size;
    undo_room room = make_room(u, *u.target, 2, padded(end), false, own.bytes - kept);
    if (room == undo_room::refused)
        return nullptr;
    u.unrecorded |= room == undo_room::none;
    if (room == undo_room::none)
        return heap_resize(block, size);
    if (heap_split_extent(u.heap, block, kept) != TY_OK)
        return nullptr;
    if (end != 0)
        u.target->push_data(own.offset + size, block + size, end);
    push_block(u, undo_kind::shrink, own.offset, own.bytes - kept, kept);
    give_back(u, own.offset + kept, own.bytes - kept);
    return block;
}

void *grow_run(undo &u, const own_block &own, size_t size, uint64_t bytes) {
    char *block = u.base + own.offset;
    if (!record_from(u, own, first_of_redo(u, own)))
        return nullptr;
    undo_room room = make_room(u, *u.target, 1, 0, false, 0);
    if (room == undo_room::refused)
        return nullptr;
    u.unrecorded |= room == undo_room::none;
    ty_status status = heap_resize_in_place(block, size);
    if (status == TY_E_MEMORY && room == undo_room::there)
        return resize_by_moving(u, own, size);
    if (status == TY_E_MEMORY)
        return heap_resize(block, size);
    if (status)
        return nullptr;
    if (room == undo_room::there)
        push_block(u, undo_kind::grow, own.offset, bytes - own.bytes, own.bytes);
    return block;
}

void *resize_recorded(undo &u, const own_block &own, size_t size) {
    char *block = u.base + own.offset;
    if (!own.run || size > heap_limit(u.heap)) {
        if (size > own.bytes)
            return resize_by_moving(u, own, size);
        return record_end(u, own, size) ? block : nullptr;
    }
    uint64_t bytes = (size + os::page_bytes - 1) / os::page_bytes * os::page_bytes;
    if (bytes == 0)
        bytes = os::page_bytes;
    if (bytes < own.bytes)
        return shrink_extent(u, own, size, bytes);
    if (bytes > own.bytes)
        return grow_run(u, own, size, bytes);
    return record_end(u, own, size) ? block : nullptr;
}

} // namespace

void *undo_alloc(ty_heap *heap, size_t size, size_t alignment) {
    undo *u = undo_of(heap);
    undo_route route;
    if (route_of_blocks(u, "allocate", &route) != TY_OK)
        return nullptr;
    undo_room room = undo_room::none;
    if (route == undo_route::ring)
        room = make_room(*u, *u->target, 1, 0, false, 0);
    if (room == undo_room::refused)
        return nullptr;
    void *block = alloc_block(*u, size, alignment);
    if (block == nullptr || room == undo_room::none) {
        u->unrecorded |= u->running == undo_run::undoing;
        return block;
    }
    push_block(*u, undo_kind::alloc, u->offset_of(block), heap_usable_size(block));
    return block;
}

ty_status undo_free(ty_heap *heap, void *block) {
    constexpr const char *call = "free";
    undo *u = undo_of(heap);
    undo_route route;
    own_block own;
    if (ty_status status = route_of_blocks(u, call, &route))
        return status;
    if (block == nullptr)
        return TY_OK;
    if (ty_status status = find_own(*u, call, block, &own))
        return status;
    undo_room room = undo_room::none;
    if (route == undo_route::ring)
        room = make_room(*u, *u->target, 1, 0, false, own.bytes);
    if (room == undo_room::refused)
        return TY_E_SPACE;
    if (room == undo_room::none) {
        u->unrecorded |= u->running == undo_run::undoing;
        return heap_free(block);
    }
    push_block(*u, undo_kind::free, own.offset, own.bytes);
    if (own.run)
        give_back(*u, own.offset, own.bytes);
    return TY_OK;
}

void *undo_resize(ty_heap *heap, void *block, size_t size) {
    constexpr const char *call = "resize";
    undo *u = undo_of(heap);
    undo_route route;
    own_block own;
    if (route_of_blocks(u, call, &route) != TY_OK || find_own(*u, call, block, &own) != TY_OK)
        return nullptr;
    return route == undo_route::ring ? resize_recorded(*u, own, size) : heap_resize(block, size);
}

} // namespace taiyen
