// Which copy a page has: a table by page number in two levels, which takes memory where pages have one.
#pragma once

#include "page_copies.hpp"

namespace taiyen {

class page_slots {
public:
    ty_status create(uint64_t page_count);
    void destroy();

    uint32_t get(uint64_t page) const { // page_copies::none at first
        const uint32_t *leaf = leaves_[page / leaf_pages];
        return leaf != nullptr ? leaf[page % leaf_pages] : page_copies::none;
    }
    // Expected: TY_E_MEMORY. Before the first set() of a page.
    ty_status provide(uint64_t page);
    void set(uint64_t page, uint32_t slot) { leaves_[page / leaf_pages][page % leaf_pages] = slot; }

private:
    static constexpr uint64_t leaf_pages = 1024;

    uint32_t **leaves_ = nullptr;
    uint64_t leaf_count_ = 0;
};

} // namespace taiyen
