// The live block that an address lies in, in constant time, for a heap that does not change meanwhile.
//
// A table of 4 bytes per page leads to the extent; an extent has its block size with a reciprocal for the division, and
// the position of its bits; one bit per block says whether it is live, and a count per 64 bits how many live blocks
// precede them. Blocks are numbered in order of address: their *ordinal*.
//
// SH4: find() finds exactly the blocks that ty_each_block lists, each with its ordinal there.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <taiyen/heap.h>
#include <vector>

namespace taiyen::pack {

struct found_block {
    char *address;
    size_t bytes;
    size_t ordinal;
    char *end() const { return address + bytes; }
};

class block_index {
public:
    // Errors as of ty_each_extent. Throws std::bad_alloc.
    ty_status build(ty_heap *heap);

    size_t size() const { return live_; }
    // All live blocks lie in [base, end).
    char *base() const { return base_; }
    char *end() const { return base_ + pages_.size() * page_bytes; }

    bool find(const void *address, found_block &found) const {
        size_t offset = static_cast<size_t>(reinterpret_cast<uintptr_t>(address) - reinterpret_cast<uintptr_t>(base_));
        size_t page = offset / page_bytes;
        if (page >= pages_.size() || pages_[page] == 0)
            return false;
        const extent &in = extents_[pages_[page] - 1];
        return find_in(in, offset - in.offset, found);
    }

    // Calls back for each live block in order of address.
    template <class function>
    void each(const function &callback) const {
        size_t ordinal = 0;
        for (const extent &in : extents_)
            for (size_t n = 0; n < in.blocks; ++n)
                if (is_live(in, n))
                    callback(found_block{base_ + in.offset + n * in.block_bytes, in.block_bytes, ordinal++});
    }

private:
    static constexpr size_t page_bytes = 4096;
    static constexpr unsigned shift = 40; // of reciprocals

    struct extent {
        size_t offset; // from base_
        size_t block_bytes;
        size_t blocks;
        size_t first_word;   // in bits_
        uint64_t reciprocal; // 0: a division is used
    };

    static bool collect_extent(const ty_extent *extent, void *context);
    void add(const ty_extent &extent);
    void count_ranks();

    static size_t number_of(const extent &in, size_t offset) {
        return in.reciprocal ? (offset * in.reciprocal) >> shift : offset / in.block_bytes;
    }
    bool is_live(const extent &in, size_t number) const {
        return (bits_[in.first_word + number / 64] >> (number % 64) & 1) != 0;
    }
    bool find_in(const extent &in, size_t offset, found_block &found) const {
        size_t number = number_of(in, offset);
        if (number >= in.blocks || !is_live(in, number))
            return false;
        size_t word = in.first_word + number / 64;
        uint64_t before = bits_[word] & ((uint64_t{1} << (number % 64)) - 1);
        found = {base_ + in.offset + number * in.block_bytes, in.block_bytes,
                 ranks_[word] + static_cast<size_t>(std::popcount(before))};
        return true;
    }

    char *base_ = nullptr;
    std::vector<uint32_t> pages_; // 0: no blocks in the page; else the number of the extent + 1
    std::vector<extent> extents_;
    std::vector<uint64_t> bits_;
    std::vector<uint32_t> ranks_; // live blocks before each word of bits_
    size_t live_ = 0;
};

} // namespace taiyen::pack
