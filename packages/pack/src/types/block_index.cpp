#include "block_index.hpp"
#include <taiyen/detail/fault.hpp>

namespace taiyen::pack {

// SH4: exactly the live blocks.
ty_status block_index::build(ty_heap *heap) {
    *this = block_index();
    base_ = static_cast<char *>(ty_heap_base(heap));
    if (ty_status status = ty_each_extent(heap, collect_extent, this))
        return status;
    count_ranks();
    return TY_OK;
}

bool block_index::collect_extent(const ty_extent *extent, void *context) {
    if (extent->block_count != 0 && extent->live_count != 0)
        static_cast<block_index *>(context)->add(*extent);
    return true;
}

void block_index::add(const ty_extent &from) {
    auto offset = static_cast<size_t>(static_cast<char *>(from.address) - base_);
    extent to{offset, from.block_size_bytes, from.block_count, bits_.size(), 0};
    // Exact while offset * (the error of the reciprocal) stays below one.
    if (from.size_bytes < size_t{1} << 20 && from.block_size_bytes < size_t{1} << 20)
        to.reciprocal = ((uint64_t{1} << shift) + to.block_bytes - 1) / to.block_bytes;
    extents_.push_back(to);
    bits_.resize(bits_.size() + (to.blocks + 63) / 64);
    size_t last = (offset + from.size_bytes + page_bytes - 1) / page_bytes;
    if (pages_.size() < last)
        pages_.resize(last);
    for (size_t page = offset / page_bytes; page < last; ++page)
        pages_[page] = static_cast<uint32_t>(extents_.size());
    for (size_t n = 0; n < to.blocks; n += 64)
        bits_[to.first_word + n / 64] = from.live ? from.live[n / 64] : 1; // a run is one block
}

void block_index::count_ranks() {
    ranks_.resize(bits_.size());
    size_t live = 0;
    for (size_t n = 0; n < bits_.size(); ++n) {
        ranks_[n] = static_cast<uint32_t>(live);
        live += static_cast<size_t>(
            std::popcount(taiyen::detail::fault("blocks_miscounted_in_the_index") ? bits_[n] >> 1 : bits_[n]));
    }
    live_ = live;
}

} // namespace taiyen::pack
