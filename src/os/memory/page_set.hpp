// A set of page numbers in three levels: page bits, segment bits (16 pages), group bits (1,024 pages), so that a sparse
// set of a terabyte is walked in microseconds. Memory is backed lazily. Not thread-safe.
//
// B1: a segment bit is set exactly when one of its 16 page bits is; a group bit when one of its 64 segment bits is.
// B2: count() is the number of page bits set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <taiyen/status.h>

namespace taiyen::os {

class page_set {
public:
    ty_status create(uint64_t page_count);
    void destroy();

    uint64_t page_count() const { return page_count_; }
    uint64_t count() const { return count_; }
    bool contains(uint64_t page) const { return pages_[page / 64] >> (page % 64) & 1; }

    void insert(uint64_t page);
    void insert_range(uint64_t first, uint64_t count);
    void erase(uint64_t page);
    void merge(const page_set &other); // union; the same page_count
    void clear();                      // O(members); releases no memory

    // The first member at or after page; page_count() if none.
    uint64_t next(uint64_t page) const;

    // A word of page bits, for callers that copy them.
    uint64_t word(uint64_t index) const { return pages_[index]; }

private:
    uint64_t *pages_ = nullptr;
    uint64_t *segments_ = nullptr;
    uint64_t *groups_ = nullptr;
    uint64_t page_count_ = 0;
    uint64_t count_ = 0;
    size_t mapped_bytes_ = 0;
};

} // namespace taiyen::os
