// Resizing: in place if there is room, otherwise by relocation.
#include "../tables/tables.hpp"
#include "alloc.hpp"
#include "recycle.hpp"
#include "relocate.hpp"

namespace taiyen {
namespace {

// Finds the live block that starts at an address, for a call named by verb.
ty_status find_start(const char *verb, ty_heap *heap, const void *address, live_block *block) {
    ty_status status = find_block(heap, address, block);
    if (status == TY_E_NOT_FOUND || (status == TY_OK && block->offset != offset_in(heap, address)))
        return not_a_block(verb, heap, address);
    return status;
}

ty_status no_room(const live_block &block, size_t size) {
    return failure(TY_E_MEMORY, "resize a block of %llu bytes in place to %zu: no room after it",
                   static_cast<unsigned long long>(block.bytes), size)
        .remedy("resize without asking for the same place");
}

// In place. Expected: TY_E_MEMORY, without a detail.
ty_status resize_run(ty_heap *heap, live_block *block, size_t size) {
    if (size > heap->limit_bytes)
        return TY_E_MEMORY;
    uint32_t pages = static_cast<uint32_t>(size == 0 ? 1 : (size + page_bytes - 1) / page_bytes);
    if (pages == block->extent.count)
        return TY_OK;
    page_extent more{block->extent.first + block->extent.count, pages - block->extent.count};
    uint64_t fresh_from = 0;
    memory_donors donors;
    donors.count = 0;
    {
        os::lock_guard guard(heap->pages_lock);
        ty_status status = pages < block->extent.count ? shrink_extent(heap, block->extent, pages)
                                                       : grow_extent(heap, block->extent, pages, &fresh_from);
        if (status != TY_OK)
            return status;
        if (pages > block->extent.count)
            withdraw_donors(heap, more, fresh_from, &donors);
    }
    recycle(heap, more, fresh_from, donors);
    block->extent.count = pages;
    block->bytes = uint64_t{pages} * page_bytes;
    return TY_OK;
}

// In place or not at all. *block is updated.
ty_status resize_entered(ty_heap *heap, live_block *block, size_t size) {
    ty_status status = size <= block->bytes ? TY_OK : TY_E_MEMORY;
    if (!block->small)
        status = resize_run(heap, block, size);
    return status == TY_E_MEMORY ? no_room(*block, size) : status;
}

ty_status start_resize(const void *address, ty_heap **heap) {
    *heap = heap_at(address);
    if (*heap == nullptr)
        return not_a_block("resize", nullptr, address);
    return (*heap)->writable ? TY_OK : not_writable("resize", *heap);
}

} // namespace

ty_status resize_paused(ty_heap *heap, void *address, size_t size, size_t *bytes_before, size_t *bytes) {
    live_block block;
    if (ty_status status = find_start("resize", heap, address, &block); status != TY_OK)
        return status;
    *bytes_before = block.bytes;
    ty_status status = resize_entered(heap, &block, size);
    *bytes = block.bytes;
    return status;
}

ty_status heap_resize_in_place(void *address, size_t size) {
    ty_heap *heap;
    live_block block;
    if (ty_status status = start_resize(address, &heap); status != TY_OK)
        return status;
    if (is_checked(heap, address)) [[unlikely]]
        return heap->checks->calls->resize_in_place(heap, address, size);
    ty_status status;
    {
        operation work(heap);
        status = find_start("resize", heap, address, &block);
        if (status == TY_OK)
            status = resize_entered(heap, &block, size);
    }
    after_growth(heap);
    return status;
}

static void *resize_or_move(ty_heap *heap, void *address, size_t size) {
    live_block block;
    operation work(heap); // one operation, so that a snapshot sees the block in one place
    if (find_start("resize", heap, address, &block) != TY_OK)
        return nullptr;
    uint64_t bytes_before = block.bytes;
    ty_status status = size <= bytes_before ? TY_OK : TY_E_MEMORY;
    if (!block.small)
        status = resize_run(heap, &block, size);
    if (status == TY_OK && (block.bytes >= bytes_before || work.cache() == nullptr))
        return address;
    if (status == TY_OK)
        return tidy_shrunk(heap, work.cache(), block, size, bytes_before - block.bytes);
    if (status != TY_E_MEMORY || work.cache() == nullptr)
        return nullptr;
    return grow_elsewhere(heap, work.cache(), block, size);
}

void *heap_resize(void *address, size_t size) {
    ty_heap *heap;
    if (start_resize(address, &heap) != TY_OK)
        return nullptr;
    if (is_checked(heap, address)) [[unlikely]]
        return heap->checks->calls->resize(heap, address, size, __builtin_return_address(0));
    void *resized = resize_or_move(heap, address, size);
    after_growth(heap);
    return resized;
}

size_t heap_usable_size(const void *address) {
    ty_heap *heap = heap_at(address);
    live_block block;
    if (heap == nullptr) {
        static_cast<void>(not_a_block("look at", nullptr, address));
        return 0;
    }
    if (is_checked(heap, address)) [[unlikely]]
        return heap->checks->calls->usable_size(heap, address);
    operation work(heap, pause_to::look);
    return find_start("look at", heap, address, &block) == TY_OK ? block.bytes : 0;
}

ty_status heap_block_at(ty_heap *heap, const char *verb, const void *address, size_t *bytes, bool *extent) {
    if (heap_at(address) != heap)
        return not_a_block(verb, nullptr, address);
    if (checks_all(heap))
        return unsupported_by_checks(verb, heap);
    live_block block;
    operation work(heap, pause_to::look);
    if (ty_status status = find_start(verb, heap, address, &block); status != TY_OK)
        return status;
    *bytes = block.bytes;
    *extent = !block.small;
    return TY_OK;
}

size_t heap_least_bytes(const ty_heap *heap, size_t bytes, bool extent) {
    bool exact = extent && bytes > kept_pages_max * page_bytes && bytes > heap->small_max + page_bytes;
    return exact ? bytes - page_bytes + 1 : 0;
}

ty_status heap_split_extent(ty_heap *heap, void *address, size_t kept_bytes) {
    live_block block;
    operation work(heap);
    if (ty_status status = find_start("split", heap, address, &block); status != TY_OK)
        return status;
    if (block.small || kept_bytes == 0 || kept_bytes % page_bytes != 0 || kept_bytes >= block.bytes)
        return failure(TY_E_ARGUMENT, "split the block at %p of %llu bytes after %zu", address,
                       static_cast<unsigned long long>(block.bytes), kept_bytes)
            .remedy("only extents are split, between pages");
    os::lock_guard guard(heap->pages_lock);
    return split_extent(heap, block.extent, static_cast<uint32_t>(kept_bytes / page_bytes));
}

ty_status heap_join_extents(ty_heap *heap, void *address) {
    live_block block;
    operation work(heap);
    if (ty_status status = find_start("join", heap, address, &block); status != TY_OK)
        return status;
    if (block.small)
        return failure(TY_E_ARGUMENT, "join the block at %p: it is a small one", address)
            .remedy("only extents are joined");
    os::lock_guard guard(heap->pages_lock);
    return join_extents(heap, block.extent);
}

ty_heap *heap_of(const void *address) {
    return heap_at(address);
}

bool heap_find_block(ty_heap *heap, const void *address, ty_block *place) {
    live_block block{};
    operation work(heap, pause_to::look);
    ty_status status = find_block(heap, address, &block);
    uint64_t offset = offset_in(heap, address);
    if (offset - block.offset >= block.bytes) // damaged tables, or after the last block of a span
        block = {offset / page_bytes * page_bytes, page_bytes, false, {}, {}};
    *place = {heap->base + block.offset, block.bytes};
    return status == TY_OK;
}

ty_status heap_block_of(const void *address, ty_block *found) {
    ty_heap *heap = heap_at(address);
    ty_status status = TY_E_NOT_FOUND;
    live_block block;
    if (heap != nullptr && is_checked(heap, address)) {
        if (heap->checks->calls->block_at(heap, address, found))
            return TY_OK;
    } else if (heap != nullptr) {
        operation work(heap, pause_to::look);
        status = find_block(heap, address, &block);
    }
    if (status == TY_E_NOT_FOUND)
        return failure(TY_E_NOT_FOUND, "find a live block at %p", address);
    if (status == TY_OK)
        *found = {heap->base + block.offset, block.bytes};
    return status;
}

} // namespace taiyen
