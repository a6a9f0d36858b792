#include "relocate.hpp"

#include "alloc.hpp"

#include <cstring>

namespace taiyen {
namespace {

// A shrinking run moves only if it is short: it is copied.
constexpr uint64_t tidy_bytes_max = uint64_t{256} << 10;

void *no_block(ty_status) {
    return nullptr; // the detail is set
}

// Where in a huge page the new place should start, in pages: where the old one does, so that pages can be moved whole.
// A short run is rather copied, once, to the start of one.
uint64_t offset_for(const ty_heap *heap, const live_block &block) {
    uint64_t page = reinterpret_cast<uintptr_t>(heap->base + block.offset) / page_bytes;
    return !block.small && block.run.count >= aligned_run_pages ? page % huge_page_pages : 0;
}

// A run of so many pages for a block that has grown and is likely to grow again: where there is memory enough, in front
// of as many free pages.
ty_status take_growing_run(ty_heap *heap, const live_block &block, uint64_t pages, uint32_t *first) {
    wanted_place wanted{pages, 1, 0, 0, false};
    os::lock_guard guard(heap->pages_lock);
    ty_status status = TY_E_MEMORY;
    if (heap->owner.movable && pages >= huge_page_pages) {
        wanted = {pages, huge_page_pages, offset_for(heap, block), pages, false};
        status = take_pages_in(heap, wanted, first);
        wanted.room = 0;
        if (status == TY_E_MEMORY)
            status = take_pages_in(heap, wanted, first);
        wanted = {pages, 1, 0, 0, false};
    }
    if (status == TY_E_MEMORY)
        status = take_pages_in(heap, wanted, first);
    if (status == TY_OK)
        heap->descriptors[*first] = {page_run_head, 0, 0, static_cast<uint32_t>(pages), 0, 0};
    return status;
}

// A block about to move takes what is free of its last huge page, so that this is moved, too, and not copied.
void fill_last_huge_page(ty_heap *heap, uint64_t pages_wanted, page_run *run) {
    uint64_t base_page = reinterpret_cast<uintptr_t>(heap->base) / page_bytes;
    uint64_t missing = -(base_page + run->first + run->count) & (huge_page_pages - 1);
    uint64_t filled = run->count + missing;
    uint64_t fresh_from;
    if (missing == 0 || run->count < huge_page_pages || filled > pages_wanted)
        return;
    os::lock_guard guard(heap->pages_lock);
    if (grow_run(heap, *run, static_cast<uint32_t>(filled), &fresh_from) == TY_OK)
        run->count = static_cast<uint32_t>(filled);
}

} // namespace

void *grow_elsewhere(ty_heap *heap, thread_cache *cache, live_block block, size_t size) {
    char *from = heap->base + block.offset;
    if (block.small && size <= heap->small_max) {
        void *moved = alloc_entered(heap, cache, size, 0, false);
        if (moved == nullptr)
            return nullptr;
        memcpy(moved, from, block.bytes);
        return free_entered(heap, cache, from) == TY_OK ? moved : nullptr;
    }
    if (size > heap->limit_bytes)
        return no_block(failure(TY_E_MEMORY, "resize a block to %zu bytes: more than the heap's limit", size)
                            .remedy("use a heap with a larger limit_bytes"));
    uint64_t pages = (size + page_bytes - 1) / page_bytes;
    uint32_t first;
    if (take_growing_run(heap, block, pages, &first) != TY_OK)
        return nullptr;
    char *to = page_address(heap, first);
    if (!block.small && heap->owner.movable) {
        fill_last_huge_page(heap, pages, &block.run);
        heap->mover.move(from, to, block.run.count * page_bytes);
    } else {
        memcpy(to, from, block.bytes);
    }
    return free_entered(heap, cache, from) == TY_OK ? to : nullptr;
}

void *tidy_shrunk(ty_heap *heap, thread_cache *cache, const live_block &block, size_t size, uint64_t freed_bytes) {
    void *from = heap->base + block.offset;
    if (!heap->owner.movable || block.small || size > freed_bytes || size > tidy_bytes_max)
        return from;
    void *to = nullptr;
    if (size <= heap->small_max) {
        to = alloc_entered(heap, cache, size, 0, false);
    } else {
        uint32_t first;
        os::lock_guard guard(heap->pages_lock);
        if (take_better_place(heap, block.run, &first) == TY_OK && first != 0)
            to = page_address(heap, first);
    }
    if (to == nullptr)
        return from;
    memcpy(to, from, size);
    return free_entered(heap, cache, from) == TY_OK ? to : nullptr;
}

} // namespace taiyen
