// The blocks that undo keeps: a volatile set that is rebuilt from the entries at each attach, of a fixed capacity, so
// that recording allocates nothing.
#pragma once

#include "undo.hpp"

namespace taiyen {

class kept_blocks {
public:
    // Room for so many blocks, of a heap with so many pages.
    ty_status create(uint64_t blocks_max, uint64_t pages);
    void destroy();
    void clear(); // covered pages, too

    bool contains(uint64_t offset) const;
    void insert(uint64_t offset, uint64_t bytes); // there is room, and it is not in the set
    void erase(uint64_t offset, uint64_t bytes);  // it is in the set
    // The next one at or after a slot, which starts at 0; false: no more. For a caller that erases them all.
    bool next(uint64_t *slot, uint64_t *offset) const;

    // Counts pages for blocks that are not kept, but must not be recorded either.
    void cover(uint64_t offset, uint64_t bytes) { count_pages(offset, bytes, 1); }

    // Whether pages that the bytes lie in have kept (or covered) blocks: a cheap check, which needs a second one.
    bool may_touch(uint64_t offset, uint64_t bytes) const {
        uint64_t last = (offset + bytes - 1) / os::page_bytes;
        for (uint64_t page = offset / os::page_bytes; page <= last; page++)
            if (pages_[page] != 0)
                return true;
        return false;
    }

    uint64_t count() const { return count_; }
    uint64_t bytes() const { return bytes_; }

private:
    uint64_t slot_of(uint64_t offset) const { return (offset * 0x9e3779b97f4a7c15) >> shift_; }
    void count_pages(uint64_t offset, uint64_t bytes, int by);

    uint64_t *slots_ = nullptr; // offsets; 0: empty
    uint64_t slot_count_ = 0;   // a power of two, at least twice the blocks
    unsigned shift_ = 0;
    uint16_t *pages_ = nullptr; // how many of them touch the page
    uint64_t page_count_ = 0;
    uint64_t count_ = 0;
    uint64_t bytes_ = 0;
};

} // namespace taiyen
