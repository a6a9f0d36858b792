// Which blocks a heap has, where: its extents with the bits of their live blocks, and the order in which their content
// is packed.
#pragma once

#include "../format/format.hpp"
#include <taiyen/heap.h>

#include <vector>

namespace taiyen::pack {

inline constexpr size_t size_classes_max = 128; // of a heap

struct extent {
    uint64_t first_page;
    uint64_t pages;
    uint64_t block_bytes; // of a run: of all its pages
    size_t bits;          // its bitmap's first word in the layout's bits; of a run not in use
    uint32_t blocks;      // that fit
    uint32_t live;
    bool run;

    uint64_t bytes() const { return pages * stream_page_bytes; }
    uint32_t words() const { return run ? 0 : (blocks + 63) / 64; }
};

// The extents of blocks of one size, or (block_bytes 0) the runs.
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

    void add(const ty_extent &a); // spans, runs; others are left out
    // The block that starts at this address is no part of it any more.
    void leave_out(const void *block);
    void drop_empty();

    // PK1: rising block sizes, and the runs last.
    std::vector<sequence> content_order() const;
};

// Goes over the live blocks of a sequence. Steps and places are of blocks, or of a run's bytes.
class content_cursor {
public:
    content_cursor(const layout &places, const sequence &of) : places_(&places), sequence_(&of) { find(); }

    bool at_end() const { return at_ == sequence_->extents.size(); }
    // The next stretch of neighbours, of most bytes at the most, or of one block if that is longer.
    struct stretch {
        char *address;
        uint64_t bytes;
    };
    stretch next(uint64_t most_bytes);
    // Over so many bytes of blocks, or to the end: the bytes that it really was.
    uint64_t skip(uint64_t bytes);

private:
    void find(); // the next live block from here on
    uint64_t live_run(const extent &a, uint64_t most) const;

    const layout *places_;
    const sequence *sequence_;
    size_t at_ = 0;
    uint64_t index_ = 0; // in the extent, or the byte in the run
};

} // namespace taiyen::pack
