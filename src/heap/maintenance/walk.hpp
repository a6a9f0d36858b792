// Iterates over a heap's extents from the first user page to top. Paused heaps only.
#pragma once

#include "../pages/pages.hpp"
#include "../threads/threads.hpp"

namespace taiyen {

class extent_walk {
public:
    explicit extent_walk(const ty_heap *heap, uint64_t from = first_user_page) : heap_(heap), next_(from) {}
    // False: the end, or damaged().
    bool next(page_extent *extent);
    bool damaged() const { return next_ != top_of(heap_); }
    uint64_t page() const { return next_; }

private:
    const ty_heap *heap_;
    uint64_t next_;
};

// The number of bits set in a span's bitmap.
uint32_t count_allocated(const ty_heap *heap, const class_info &info, uint64_t head);

} // namespace taiyen
