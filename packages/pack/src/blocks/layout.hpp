// Where a heap's blocks are: its extents with the bits of their live blocks, and the order in which their content is
// packed.
#pragma once

#include "../format/format.hpp"
#include <taiyen/heap.h>

#include <vector>

namespace taiyen::pack {

inline constexpr size_t size_classes_max = 128; // of a heap

struct extent {
    uint64_t first_page;
    uint64_t pages;
    uint64_t block_bytes; // run: the bytes of all its pages
    size_t bits;          // the first word of its bitmap in the layout's bits; not used for a run
    uint32_t blocks;      // that fit into it
    uint32_t live;
    bool run;

    uint64_t bytes() const { return pages * stream_page_bytes; }
    uint32_t words() const { return run ? 0 : (blocks + 63) / 64; }
};

// The extents of blocks of one size, or (block_bytes 0) all one-block extents (run).
struct sequence {
    uint64_t block_bytes;
    std::vector<uint32_t> extents; // in order of address
    uint64_t live_blocks;
};

class layout {
public:
    uint64_t base = 0;
    uint64_t limit_bytes = 0;
    ty_class_table classes = TY_CLASSES_CACHE_LINE;
    std::vector<extent> extents; // in order of address; none without a live block
    std::vector<uint64_t> bits;

    char *address(const extent &a) const { return reinterpret_cast<char *>(base + a.first_page * stream_page_bytes); }
    bool is_live(const extent &a, uint64_t block) const {
        return a.run || (bits[a.bits + block / 64] >> (block % 64) & 1) != 0;
    }
    uint64_t live_blocks() const;
    uint64_t live_bytes() const;
    uint64_t end_page() const {
        return extents.empty() ? first_block_page : extents.back().first_page + extents.back().pages;
    }

    void add(const ty_extent &a); // spans and one-block extents; others are skipped
    // Removes the block that starts at this address.
    void leave_out(const void *block);
    void drop_empty();

    // PK1: increasing block sizes, one-block extents last.
    std::vector<sequence> content_order() const;
};

// Iterates over the live blocks of a sequence. Steps and places are whole blocks, or bytes of a one-block extent.
class content_cursor {
public:
    content_cursor(const layout &places, const sequence &of) : places_(&places), sequence_(&of) { find(); }

    bool at_end() const { return at_ == sequence_->extents.size(); }
    // The next adjacent live blocks, at most so many bytes, or one block if that is longer.
    struct stretch {
        char *address;
        uint64_t bytes;
    };
    stretch next(uint64_t most_bytes);
    // Skips so many bytes of blocks, or to the end; returns the bytes skipped.
    uint64_t skip(uint64_t bytes);

private:
    void find(); // moves to the next live block, from here on
    uint64_t live_run(const extent &a, uint64_t most) const;

    const layout *places_;
    const sequence *sequence_;
    size_t at_ = 0;
    uint64_t index_ = 0; // of the block in the extent, or of the byte in a one-block extent
};

} // namespace taiyen::pack
