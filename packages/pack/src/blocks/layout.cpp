#include "layout.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <taiyen/detail/fault.hpp>

namespace taiyen::pack {

uint64_t layout::live_blocks() const {
    uint64_t count = 0;
    for (const extent &a : extents)
        count += a.live;
    return count;
}

uint64_t layout::live_bytes() const {
    uint64_t bytes = 0;
    for (const extent &a : extents)
        bytes += a.live * a.block_bytes;
    return bytes;
}

void layout::add(const ty_extent &a) {
    bool run = a.kind == TY_EXTENT_BLOCK;
    if ((!run && a.kind != TY_EXTENT_SPAN) || a.live_count == 0)
        return;
    uint64_t offset = reinterpret_cast<uint64_t>(a.address) - base;
    extent made{offset / stream_page_bytes,
                a.size_bytes / stream_page_bytes,
                a.block_size_bytes,
                bits.size(),
                static_cast<uint32_t>(a.block_count),
                static_cast<uint32_t>(a.live_count),
                run};
    extents.push_back(made);
    if (!run)
        bits.insert(bits.end(), a.live, a.live + made.words());
}

void layout::leave_out(const void *block) {
    uint64_t offset = reinterpret_cast<uint64_t>(block) - base;
    auto above = std::upper_bound(extents.begin(), extents.end(), offset / stream_page_bytes,
                                  [](uint64_t page, const extent &a) { return page < a.first_page; });
    if (above == extents.begin())
        return;
    extent &a = above[-1];
    uint64_t index = (offset - a.first_page * stream_page_bytes) / a.block_bytes;
    if (index >= a.blocks || !is_live(a, index) || a.live == 0)
        return;
    a.live--;
    if (!a.run)
        bits[a.bits + index / 64] &= ~(uint64_t{1} << (index % 64));
}

void layout::drop_empty() {
    std::erase_if(extents, [](const extent &a) { return a.live == 0; });
}

// PK1: the content's order follows from the extents.
std::vector<sequence> layout::content_order() const {
    std::map<uint64_t, sequence> by_size;
    sequence runs{0, {}, 0};
    for (uint32_t i = 0; i < extents.size(); i++) {
        sequence &to = extents[i].run ? runs : by_size[extents[i].block_bytes];
        to.block_bytes = extents[i].run ? 0 : extents[i].block_bytes;
        to.extents.push_back(i);
        to.live_blocks += extents[i].live;
    }
    std::vector<sequence> order;
    for (auto &[bytes, one] : by_size)
        order.push_back(std::move(one));
    if (runs.live_blocks != 0)
        order.push_back(std::move(runs));
    return order;
}

void content_cursor::find() {
    for (; at_ < sequence_->extents.size(); at_++, index_ = 0) {
        const extent &a = places_->extents[sequence_->extents[at_]];
        if (a.run) {
            if (index_ < a.bytes())
                return;
            continue;
        }
        for (uint64_t word = index_ / 64; word < a.words(); word++) {
            uint64_t live = places_->bits[a.bits + word];
            if (word == index_ / 64)
                live &= ~uint64_t{0} << (index_ % 64);
            if (live != 0) {
                index_ = word * 64 + static_cast<unsigned>(std::countr_zero(live));
                return;
            }
        }
    }
}

// How many blocks from here on are live, at most `most`.
uint64_t content_cursor::live_run(const extent &a, uint64_t most) const {
    uint64_t end = std::min<uint64_t>(a.blocks, index_ + most);
    for (uint64_t i = index_; i < end;) {
        uint64_t rest = 64 - i % 64;
        uint64_t ones = static_cast<unsigned>(std::countr_one(places_->bits[a.bits + i / 64] >> (i % 64)));
        if (ones < rest && !detail::fault("dead_blocks_packed"))
            return std::min(i + ones, end) - index_;
        i += rest;
    }
    return end - index_;
}

content_cursor::stretch content_cursor::next(uint64_t most_bytes) {
    const extent &a = places_->extents[sequence_->extents[at_]];
    stretch found{places_->address(a), 0};
    if (a.run) {
        found.address += index_;
        found.bytes = std::min(most_bytes, a.bytes() - index_);
        index_ += found.bytes;
    } else {
        found.address += index_ * a.block_bytes;
        uint64_t blocks = live_run(a, std::max(most_bytes / a.block_bytes, uint64_t{1}));
        found.bytes = blocks * a.block_bytes;
        index_ += blocks;
    }
    find();
    return found;
}

uint64_t content_cursor::skip(uint64_t bytes) {
    uint64_t skipped = 0;
    while (skipped < bytes && !at_end())
        skipped += next(bytes - skipped).bytes;
    return skipped;
}

} // namespace taiyen::pack
