#include "picture/heap_map_model.hpp"

#include <algorithm>
#include <cmath>

namespace heap_map {

namespace {

uint64_t page_of(const model &model, const void *address) {
    return static_cast<uint64_t>(static_cast<const char *>(address) - static_cast<const char *>(model.stats.base)) /
           page_bytes;
}

// Adds so many pages of an extent to a cell, or to the total.
void add(cell &to, const ty_extent &extent, double pages) {
    switch (extent.kind) {
    case TY_EXTENT_FREE:
        to.free += pages;
        break;
    case TY_EXTENT_BLOCK:
        to.large += pages;
        break;
    case TY_EXTENT_CONTROL:
        to.control += pages;
        break;
    case TY_EXTENT_SPAN: {
        const double fill =
            extent.size_bytes ? double(extent.live_count) * double(extent.block_size_bytes) / double(extent.size_bytes)
                              : 0;
        to.small += pages * fill;
        to.small_free += pages * (1 - fill);
        to.log_size += pages * std::log2(double(std::max<size_t>(extent.block_size_bytes, 1)));
        break;
    }
    }
}

bool add_extent(const ty_extent *extent, void *context) {
    auto &model = *static_cast<heap_map::model *>(context);
    const uint64_t first = page_of(model, extent->address);
    const uint64_t end = std::min(first + extent->size_bytes / page_bytes, model.touched_pages);
    if (first >= end)
        return true; // never used, or the tables after the touched part
    const uint64_t per_cell = model.pages_per_cell;
    if (extent->kind == TY_EXTENT_BLOCK)
        model.cells[first / per_cell].starts = true;
    for (uint64_t page = first; page < end;) {
        const uint64_t next = std::min((page / per_cell + 1) * per_cell, end);
        add(model.cells[page / per_cell], *extent, double(next - page));
        page = next;
    }
    add(model.total, *extent, double(end - first));
    return true;
}

ty_status add_dirty_pages(ty_heap *heap, model &model) {
    if (ty_status status = ty_dirty_count(heap, &model.dirty_pages))
        return status;
    constexpr uint64_t step = 1 << 16;
    std::vector<uint64_t> bits(step / 64);
    for (uint64_t first = 0; first < model.touched_pages && model.dirty_pages; first += step) {
        const uint64_t count = std::min(step, model.touched_pages - first);
        if (ty_status status = ty_dirty_bitmap(heap, first, count, bits.data()))
            return status;
        for (uint64_t i = 0; i < count; ++i)
            if (bits[i / 64] >> (i % 64) & 1)
                ++model.cells[(first + i) / model.pages_per_cell].dirty;
    }
    return TY_OK;
}

} // namespace

ty_status look(ty_heap *heap, uint64_t cells_max, model &model) {
    model.kind = ty_heap_kind(heap);
    model.stats.struct_size = sizeof model.stats;
    if (ty_status status = ty_heap_get_stats(heap, &model.stats))
        return status;
    model.touched_pages = (model.stats.touched_bytes + page_bytes - 1) / page_bytes;
    while ((model.touched_pages + model.pages_per_cell - 1) / model.pages_per_cell > cells_max)
        model.pages_per_cell *= 2;
    model.cells.resize((model.touched_pages + model.pages_per_cell - 1) / model.pages_per_cell);
    if (ty_status status = ty_each_extent(heap, add_extent, &model))
        return status;
    auto keep = [](const ty_class_stats *one, void *all) {
        static_cast<std::vector<ty_class_stats> *>(all)->push_back(*one);
        return true;
    };
    if (ty_status status = ty_each_class(heap, keep, &model.classes))
        return status;
    return model.kind == TY_SNAPSHOT || model.kind == TY_TRANSACTIONAL ? add_dirty_pages(heap, model) : TY_OK;
}

} // namespace heap_map
