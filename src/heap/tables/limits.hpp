// Limits of what a heap's blocks take, in pages. They are counted and enforced in page_extents.cpp.
#pragma once

#include "heap_runtime.hpp"

namespace taiyen {

void report_soft_limit(ty_heap *heap);

// Called after a call that may have taken pages, by a thread that has left the heap and holds no lock.
inline void after_growth(ty_heap *heap) {
    if (heap->soft_due.load(std::memory_order_relaxed)) [[unlikely]]
        report_soft_limit(heap);
}

} // namespace taiyen
