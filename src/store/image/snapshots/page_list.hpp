// Which of the dirty pages go into a batch.
#pragma once

#include "image_runtime.hpp"

#include <cstdlib>

namespace taiyen {

using page_list = os::array<uint64_t>;

struct page_choice {
    uint64_t limit = UINT64_MAX; // of the list
    uint64_t first = 0;
    uint64_t end = UINT64_MAX;
    const os::page_set *but = nullptr; // without these
    page_extent_use (*extent_at)(ty_heap *heap,
                                 uint64_t page) = heap_extent_at; // heap_extent_now: the heap is not paused
};

// The dirty pages that are worth writing: not those of free extents, whose content does not matter.
ty_status select_pages(ty_heap *heap, const os::page_set &dirty, const page_choice &choice, page_list *list);

// Removes them from the dirty set: they are in a batch that is being written. (I4)
void move_to_flight(image &im, const page_list &list);

} // namespace taiyen
