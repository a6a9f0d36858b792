// Going over a heap's areas from the first user page to top. Paused heaps only.
#pragma once

#include "gate.hpp"
#include "runs.hpp"

namespace taiyen {

class area_walk {
public:
    explicit area_walk(const ty_heap *heap) : heap_(heap), next_(first_user_page) {}
    // False: the end, or damaged().
    bool next(page_run *area);
    bool damaged() const { return next_ != top_of(heap_); }
    uint64_t page() const { return next_; }

private:
    const ty_heap *heap_;
    uint64_t next_;
};

inline page_kind kind_at(const ty_heap *heap, uint64_t page) {
    return static_cast<page_kind>(kind_of(heap->descriptors[page]));
}
// Bits set in the bitmap of a span.
uint32_t count_allocated(const ty_heap *heap, const class_info &info, uint64_t head);

} // namespace taiyen
