#include "live/live_look.hpp"

#include "common/numbers.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <nlohmann/json.hpp>

namespace cli {

namespace {

uint64_t pages_of(uint64_t bytes) {
    return (bytes + page_bytes - 1) / page_bytes;
}

} // namespace

const char *name_of(ty_extent_kind kind) {
    switch (kind) {
    case TY_EXTENT_SPAN:
        return "span";
    case TY_EXTENT_BLOCK:
        return "run";
    case TY_EXTENT_FREE:
        return "free";
    case TY_EXTENT_CONTROL:
        return "control";
    }
    return "unknown";
}

// ---- Reading

bool heap_look::keep_extent(const ty_extent *extent, void *self) {
    auto &look = *static_cast<heap_look *>(self);
    const uint64_t offset = reinterpret_cast<uintptr_t>(extent->address) - look.base_;
    if (offset >= look.touched_bytes_) // what was never used is not shown
        return true;
    look.extents_.push_back({offset, extent->size_bytes, extent->block_size_bytes, extent->block_count,
                             extent->live_count, extent->kind, look.live_.size()});
    if (extent->live != nullptr)
        look.live_.insert(look.live_.end(), extent->live, extent->live + (extent->block_count + 63) / 64);
    return true;
}

ty_status heap_look::read_dirty(ty_heap *heap) {
    const ty_kind kind = ty_heap_kind(heap);
    if (kind != TY_SNAPSHOT && kind != TY_TRANSACTIONAL)
        return TY_OK;
    const uint64_t pages = touched_bytes_ / page_bytes;
    dirty_.resize((pages + 63) / 64);
    return ty_dirty_bitmap(heap, 0, pages, dirty_.data());
}

ty_status heap_look::read_own(ty_heap *heap, const char *base) {
    struct reader {
        std::unordered_set<uint64_t> &own;
        const char *base;
    } into{internal_, base};
    auto add = [](const ty_block *block, void *context) {
        auto &all = *static_cast<reader *>(context);
        all.own.insert(static_cast<uint64_t>(static_cast<const char *>(block->address) - all.base));
        return true;
    };
    return ty_each_internal_block(heap, add, &into);
}

ty_status heap_look::take(const heap_files &files, metrics *found) {
    read_heap heap;
    if (ty_status status = found->look_at_files(files))
        return status;
    if (ty_status status = heap.open(files))
        return status;
    if (ty_status status = found->look_into(heap))
        return status;
    base_ = reinterpret_cast<uintptr_t>(found->heap.stats.base);
    touched_bytes_ = found->heap.stats.touched_bytes;
    epoch_ = ty_heap_epoch(heap);
    if (ty_status status = ty_each_extent(heap, keep_extent, this))
        return status;
    if (ty_status status = read_dirty(heap))
        return status;
    if (found->damage.empty()) // else undo's buffers are inconsistent, which the metrics report
        if (ty_status status = read_own(heap, static_cast<const char *>(found->heap.stats.base)))
            return status;
    for (const named_root &root : found->roots)
        roots_.emplace(reinterpret_cast<uintptr_t>(root.address) - base_, root.name);
    return heap.close();
}

// ---- Documents

heap_look::extent_place heap_look::extent_at(uint64_t offset) const {
    return std::partition_point(extents_.begin(), extents_.end(),
                                [&](const shown_extent &extent) { return extent.end() <= offset; });
}

bool heap_look::is_live(const shown_extent &span, uint64_t block) const {
    return live_[span.live_word + block / 64] >> block % 64 & 1;
}

// The bytes of live blocks of the span that lie in the range, including parts of blocks.
uint64_t heap_look::live_bytes_in(const shown_extent &span, uint64_t from, uint64_t end) const {
    uint64_t bytes = 0;
    for (uint64_t block = (from - span.offset) / span.block_bytes; block < span.block_count; ++block) {
        const uint64_t first = span.offset + block * span.block_bytes;
        if (first >= end)
            break;
        if (is_live(span, block))
            bytes += std::min(first + span.block_bytes, end) - std::max(first, from);
    }
    return bytes;
}

// Pages, in fractions: live bytes of small blocks, room in their spans, whole pages, free, control data; then the
// number of dirty pages. extent: in: where the cell begins; out: where the next one begins.
json::document heap_look::cell(extent_place &extent, uint64_t from, uint64_t end) const {
    double small = 0, room = 0, large = 0, free = 0, control = 0;
    for (; extent != extents_.end() && extent->offset < end; ++extent) {
        const uint64_t first = std::max(extent->offset, from), last = std::min(extent->end(), end);
        const double pages = static_cast<double>(last - first) / page_bytes;
        if (extent->kind == TY_EXTENT_SPAN) {
            const bool is_whole = first == extent->offset && last == extent->end();
            const uint64_t live =
                is_whole ? extent->live_count * extent->block_bytes : live_bytes_in(*extent, first, last);
            small += static_cast<double>(live) / page_bytes;
            room += pages - static_cast<double>(live) / page_bytes;
        } else {
            (extent->kind == TY_EXTENT_BLOCK ? large : extent->kind == TY_EXTENT_FREE ? free : control) += pages;
        }
        if (extent->end() > end)
            break;
    }
    uint64_t dirty = 0;
    for (uint64_t page = from / page_bytes; page < end / page_bytes; ++page)
        if (page % 64 == 0 && page + 64 <= end / page_bytes && page / 64 < dirty_.size()) {
            dirty += static_cast<uint64_t>(std::popcount(dirty_[page / 64]));
            page += 63;
        } else {
            dirty += is_dirty(page);
        }
    auto shown = [](double pages) { return std::round(pages * 100) / 100; };
    return {shown(small), shown(room), shown(large), shown(free), shown(control), dirty};
}

json::document heap_look::map(uint64_t from, uint64_t bytes) const {
    from = std::min(from, touched_bytes_) / page_bytes * page_bytes;
    const uint64_t end = bytes != 0 && bytes < touched_bytes_ - from ? from + bytes : touched_bytes_;
    uint64_t cell_bytes = page_bytes;
    while (pages_of(end - from) > cells_max * (cell_bytes / page_bytes))
        cell_bytes *= 2;
    json::document one{{"from", json::wide(from)},
                       {"bytes", json::wide(end - from)},
                       {"cell_bytes", json::wide(cell_bytes)},
                       {"epoch", json::wide(epoch_)},
                       {"cells", json::document::array()}};
    extent_place extent = extent_at(from);
    for (uint64_t at = from; at < end; at += cell_bytes)
        one["cells"].push_back(cell(extent, at, std::min(at + cell_bytes, pages_of(end) * page_bytes)));
    return one;
}

json::document heap_look::extents(uint64_t from) const {
    json::document one;
    one["from"] = json::wide(from);
    one["extents"] = json::document::array();
    extent_place next = extent_at(from);
    for (size_t n = 0; n < extents_max && next != extents_.end(); ++n, ++next)
        one["extents"].push_back({{"offset", json::wide(next->offset)},
                                  {"bytes", json::wide(next->size_bytes)},
                                  {"kind", name_of(next->kind)},
                                  {"block_bytes", json::wide(next->block_bytes)},
                                  {"block_count", json::wide(next->block_count)},
                                  {"live_count", json::wide(next->live_count)}});
    one["more"] = json::wide(static_cast<uint64_t>(extents_.end() - next));
    return one;
}

json::document heap_look::block(uint64_t offset, uint64_t bytes, bool live) const {
    json::document one{{"offset", json::wide(offset)}, {"bytes", json::wide(bytes)}, {"live", live}};
    if (internal_.contains(offset))
        one["internal"] = true;
    json::document roots = json::document::array();
    for (auto root = roots_.lower_bound(offset); root != roots_.end() && root->first < offset + bytes; ++root)
        roots.push_back(root->second);
    if (!roots.empty())
        one["roots"] = std::move(roots);
    return one;
}

json::document heap_look::blocks(uint64_t from) const {
    const uint64_t page = from / page_bytes * page_bytes;
    json::document one{{"from", json::wide(page)}, {"epoch", json::wide(epoch_)}, {"blocks", json::document::array()}};
    const extent_place extent = extent_at(page);
    if (extent == extents_.end() || page >= touched_bytes_)
        return one;
    one["kind"] = name_of(extent->kind);
    one["extent"] = json::wide(extent->offset);
    one["extent_bytes"] = json::wide(extent->size_bytes);
    one["block_bytes"] = json::wide(extent->block_bytes);
    one["dirty"] = is_dirty(page / page_bytes);
    if (extent->kind == TY_EXTENT_BLOCK)
        one["blocks"].push_back(block(extent->offset, extent->size_bytes, true));
    if (extent->kind != TY_EXTENT_SPAN)
        return one;
    for (uint64_t n = (page - extent->offset) / extent->block_bytes; n < extent->block_count; ++n) {
        const uint64_t offset = extent->offset + n * extent->block_bytes;
        if (offset >= page + page_bytes)
            break;
        one["blocks"].push_back(block(offset, extent->block_bytes, is_live(*extent, n)));
    }
    return one;
}

} // namespace cli
