// Where each block of a packed heap goes: shifted by an offset, or in a new layout.
#pragma once

#include "layout.hpp"
#include <taiyen/pack.h>

#include <memory>

namespace taiyen::pack {

// The blocks of one class of the new heap, adjacent: in spans, or each in an extent of its own (run).
struct row {
    uint64_t block_bytes;
    uint64_t span_pages;
    uint32_t per_span;
    bool run;
    uint64_t count;
    uint64_t first_page;
};

// Where an extent's blocks go: the number of the first one in a row, or (row no_row) the page of a one-block extent.
struct extent_place {
    uint64_t first;
    uint32_t row;
};
inline constexpr uint32_t no_row = UINT32_MAX;

} // namespace taiyen::pack

struct ty_moves {
    // For a heap that keeps its layout, at a new base.
    ty_moves(taiyen::pack::layout &&old, char *base);
    // For a heap with a new layout (PK5: the blocks of a size in their order, without gaps), with these size classes.
    ty_moves(taiyen::pack::layout &&old, char *base, const ty_size_class *classes, size_t class_count);

    const taiyen::pack::layout &old() const { return old_; }
    bool is_offset() const { return rows_.empty() && places_.empty(); }
    ptrdiff_t offset() const { return base_ - reinterpret_cast<char *>(old_.base); }
    bool moves_anything() const { return !is_offset() || offset() != 0; }
    uint64_t moved_blocks() const; // those whose distance from the base changed
    uint64_t used_bytes() const;   // of the new heap, from its base

    void *moved(const void *old_address) const;
    // The new address of a live block of an extent.
    char *block(const taiyen::pack::extent &a, uint64_t index) const;
    // The room that a block of the extent has in its new place.
    uint64_t new_block_bytes(const taiyen::pack::extent &a) const;
    // The room that a block had before, by its new place, which has room for place_bytes.
    uint64_t old_block_bytes(const void *place, uint64_t place_bytes) const;
    // The new heap's extents. Their bitmaps live in bits, and extents point into it.
    std::vector<ty_extent> new_extents(std::vector<uint64_t> *bits) const;

private:
    const taiyen::pack::extent *find(uint64_t offset) const;
    void index_pages();
    void count_ranks();
    void plan(const ty_size_class *classes, size_t class_count);
    void add_to_row(uint64_t block_bytes, const taiyen::pack::sequence &of, const ty_size_class *classes,
                    size_t class_count);
    uint32_t row_for(uint64_t block_bytes, bool run, const ty_size_class *classes, size_t class_count);
    void place_rows();
    void note_old_sizes();
    uint64_t rank(const taiyen::pack::extent &a, uint64_t index) const; // among the live blocks of the extent

    taiyen::pack::layout old_;
    char *base_;
    std::vector<uint32_t> pages_; // by page: the number of its extent + 1; empty where extents are too sparse for it
    std::vector<uint16_t> ranks_; // by word of the bits: live blocks of the extent before that word
    std::vector<taiyen::pack::row> rows_;
    std::vector<taiyen::pack::extent_place> places_; // by extent
    // From each new offset on, blocks had so many bytes before the move. Empty: as many as their places.
    std::vector<std::pair<uint64_t, uint64_t>> old_sizes_;
    uint64_t end_page_ = 0;
};
