// An inspection of a heap, kept after the heap is closed: how its pages and blocks are used, in levels from the whole
// heap down to the blocks of a page. The numbers passed in come from a browser: any value is harmless.
#pragma once

#include "look/metrics.hpp"

#include <map>
#include <unordered_set>
#include <vector>

namespace cli {

// Adjacent pages of one use, by offset from the heap's base.
struct shown_extent {
    uint64_t offset;
    uint64_t size_bytes;
    uint64_t block_bytes;
    uint64_t block_count;
    uint64_t live_count;
    ty_extent_kind kind;
    size_t live_word; // span: where its bits begin

    uint64_t end() const { return offset + size_bytes; }
};

class heap_look {
public:
    // Opens the heap for reading (follows it, if it is in use), and closes it. *found: its metrics, without those of
    // its program.
    ty_status take(const heap_files &files, metrics *found);

    uint64_t epoch() const { return epoch_; }
    // The cells of a part of the touched range: as many as cells_max allows, each of a power of two of pages. bytes 0:
    // to the end.
    json::document map(uint64_t from, uint64_t bytes) const;
    // A limited number of extents from an offset on, and whether there are more.
    json::document extents(uint64_t from) const;
    // The blocks of the page at an offset, live or free, and the roots that lead to them.
    json::document blocks(uint64_t from) const;

    static constexpr uint64_t cells_max = 1024;
    static constexpr size_t extents_max = 200;

private:
    using extent_place = std::vector<shown_extent>::const_iterator;
    extent_place extent_at(uint64_t offset) const; // the first that ends after it
    bool is_live(const shown_extent &span, uint64_t block) const;
    bool is_dirty(uint64_t page) const { return page / 64 < dirty_.size() && dirty_[page / 64] >> page % 64 & 1; }
    uint64_t live_bytes_in(const shown_extent &span, uint64_t from, uint64_t end) const;
    json::document cell(extent_place &extent, uint64_t from, uint64_t end) const;
    json::document block(uint64_t offset, uint64_t bytes, bool live) const;
    ty_status read_dirty(ty_heap *heap);
    ty_status read_own(ty_heap *heap, const char *base);
    static bool keep_extent(const ty_extent *extent, void *self);

    uint64_t base_ = 0;
    uint64_t epoch_ = 0;
    uint64_t touched_bytes_ = 0;
    std::vector<shown_extent> extents_;
    std::vector<uint64_t> live_;                 // bits of spans' blocks
    std::vector<uint64_t> dirty_;                // bits of pages that the journal has and the image does not yet
    std::unordered_set<uint64_t> internal_;      // blocks of the library
    std::multimap<uint64_t, std::string> roots_; // by target
};

const char *name_of(ty_extent_kind kind);

} // namespace cli
