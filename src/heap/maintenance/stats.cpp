// Statistics.
#include "walk.hpp"

#include "../tables/tables.hpp"

namespace taiyen {
namespace {

// Request sizes for which availability is computed: four for each doubling.
constexpr uint32_t sizes_per_doubling = 4;
constexpr uint32_t sizes_max = 48 * sizes_per_doubling;
constexpr double size_factors[sizes_per_doubling] = {1.0, 1.189207115002721, 1.414213562373095, 1.681792830507429};

struct availability_sum {
    uint64_t sizes[sizes_max];
    double usable[sizes_max];
    uint32_t count = 0;

    explicit availability_sum(uint64_t total) {
        for (uint64_t power = 16; power <= total && count < sizes_max; power *= 2) {
            for (double factor : size_factors) {
                uint64_t size = static_cast<uint64_t>(static_cast<double>(power) * factor);
                if (size > total)
                    break;
                sizes[count] = size;
                usable[count++] = 0;
            }
        }
    }
    void add(uint64_t block_bytes, uint64_t blocks) {
        for (uint32_t i = 0; i < count && sizes[i] <= block_bytes; i++) {
            uint64_t whole = block_bytes / sizes[i] * sizes[i];
            usable[i] += static_cast<double>(whole) * static_cast<double>(blocks);
        }
    }
    double mean(uint64_t total) const {
        double sum = 0;
        for (uint32_t i = 0; i < count; i++)
            sum += usable[i] / static_cast<double>(total);
        return count != 0 ? sum / count : 1;
    }
};

void add_extent(const ty_heap *heap, page_extent extent, ty_heap_stats *stats) {
    uint64_t bytes = extent.count * page_bytes;
    if (kind_at(heap, extent.first) != page_free)
        stats->used_bytes += bytes;
    if (kind_at(heap, extent.first) == page_span) {
        const class_info &info = heap->classes[heap->descriptors[extent.first].size_class];
        uint64_t live = count_allocated(heap, info, extent.first);
        stats->live_blocks += live;
        stats->live_bytes += live * info.block_bytes;
        stats->free_bytes += (info.blocks - live) * info.block_bytes;
        if (live < info.blocks && info.block_bytes > stats->largest_free_bytes)
            stats->largest_free_bytes = info.block_bytes;
    } else if (kind_at(heap, extent.first) == page_extent_head) {
        stats->live_blocks++;
        stats->live_bytes += bytes;
    } else {
        stats->free_extents++;
        stats->free_bytes += bytes;
        if (extent.first + uint64_t{extent.count} == top_of(heap))
            bytes += (heap->first_table_page - top_of(heap)) * page_bytes; // continues in pages that were never used
        if (bytes > stats->largest_free_bytes)
            stats->largest_free_bytes = bytes;
    }
}

double availability(const ty_heap *heap, uint64_t free_bytes) {
    if (free_bytes == 0)
        return 1;
    availability_sum sum(free_bytes);
    extent_walk walk(heap);
    page_extent extent;
    while (walk.next(&extent)) {
        if (kind_at(heap, extent.first) == page_span) {
            const class_info &info = heap->classes[heap->descriptors[extent.first].size_class];
            sum.add(info.block_bytes, info.blocks - count_allocated(heap, info, extent.first));
        } else if (kind_at(heap, extent.first) == page_free) {
            sum.add(extent.count * page_bytes, 1);
        }
    }
    return sum.mean(free_bytes);
}

struct byte_range {
    char *start;
    size_t bytes;
};

// The parts of the range that may have been touched.
struct touched_parts {
    byte_range part[4];

    explicit touched_parts(const ty_heap *heap) {
        uint64_t top = reached_by(heap);
        part[0] = {heap->base, top * page_bytes};
        part[1] = {reinterpret_cast<char *>(heap->descriptors), table_places::whole_pages(top * 16)};
        part[2] = {reinterpret_cast<char *>(heap->bitmaps), table_places::whole_pages(top * 64)};
        part[3] = {reinterpret_cast<char *>(heap->heads), table_places::whole_pages(top / 8 + 1)};
    }
};

} // namespace

size_t heap_unused(const ty_heap *heap, size_t mapped_bytes, heap_stretch (&unused)[heap_unused_max]) {
    touched_parts touched(heap);
    size_t count = 0;
    for (size_t i = 0; i < 4; i++) {
        char *start = touched.part[i].start + touched.part[i].bytes;
        char *end = i < 3 ? touched.part[i + 1].start : heap->base + heap->limit_bytes;
        if (start < end)
            unused[count++] = {start, static_cast<size_t>(end - start)};
    }
    if (mapped_bytes > heap->limit_bytes) // a growth that was not finished
        unused[count++] = {heap->base + heap->limit_bytes, mapped_bytes - heap->limit_bytes};
    return count;
}

ty_status heap_get_stats(ty_heap *heap, ty_heap_stats *stats) {
    pause_guard paused(heap);
    ty_heap_stats found{};
    found.struct_size = stats->struct_size;
    found.base = heap->base;
    found.limit_bytes = heap->limit_bytes;
    found.touched_bytes = top_of(heap) * page_bytes;
    if (top_of(heap) < heap->first_table_page)
        found.largest_free_bytes = (heap->first_table_page - top_of(heap)) * page_bytes;
    extent_walk walk(heap);
    page_extent extent;
    while (walk.next(&extent))
        add_extent(heap, extent, &found);
    if (walk.damaged())
        return tables_damaged("no extent starts there", heap, walk.page());
    if (heap->checks != nullptr)
        heap->checks->calls->subtract_freed(heap, &found);
    touched_parts touched(heap);
    found.control_bytes = header_pages * page_bytes;
    for (const byte_range &range : touched.part) {
        found.resident_bytes += os::resident_bytes(range.start, range.bytes);
        if (range.start != heap->base)
            found.control_bytes += range.bytes;
    }
    found.availability = availability(heap, found.free_bytes);
    found.page_efficiency = found.resident_bytes == 0
                                ? 1
                                : static_cast<double>(found.live_bytes) / static_cast<double>(found.resident_bytes);
    if (found.page_efficiency > 1)
        found.page_efficiency = 1; // its blocks' pages were never touched
    *stats = found;
    return TY_OK;
}

} // namespace taiyen
