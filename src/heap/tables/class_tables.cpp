#include "class_tables.hpp"

#include <bit>

namespace taiyen {
namespace {

// A span should hold this many blocks, so that a thread seldom needs another one; but take no more pages than that
// needs, so that small heaps stay small. For larger blocks few_blocks are enough, in pages_for_few pages: a thread has
// a span of each class that it uses. For blocks of a page and more, two: a span of many is seldom empty, and keeps its
// free memory.
struct span_rule {
    uint32_t blocks;
    uint32_t few_blocks, pages_for_few;
};
constexpr uint32_t tail_waste_shift = 5; // at most 1/32 of a span may be left over after its last block

bool enough_blocks(uint32_t pages, uint32_t blocks, const span_rule &rule) {
    return blocks >= rule.blocks || (pages >= rule.pages_for_few && blocks >= rule.few_blocks) ||
           (blocks >= 2 && blocks <= pages);
}

uint32_t pages_of_span(uint32_t block_bytes, const span_rule &rule) {
    for (uint32_t pages = 1; pages <= span_pages_max; pages *= 2) {
        uint32_t bytes = pages * static_cast<uint32_t>(page_bytes);
        if (enough_blocks(pages, bytes / block_bytes, rule) && bytes % block_bytes <= bytes >> tail_waste_shift)
            return pages;
    }
    return span_pages_max; // the least waste, or the only fit
}

struct table_builder {
    size_class_record *classes;
    span_rule rule;
    uint32_t count = 0;

    void add(uint32_t block_bytes) { classes[count++] = {block_bytes, pages_of_span(block_bytes, rule)}; }
    uint32_t last() const { return classes[count - 1].block_bytes; }
};

// Below a cache line powers of two, so that no block straddles one; then whole lines, growing by at most 1/8; from a
// page up whole pages, which are extents.
uint32_t fill_cache_line(size_class_record *classes) {
    constexpr uint32_t line = 64;
    table_builder table{classes, {64, 16, 8}};
    for (uint32_t size = 8; size <= line; size *= 2)
        table.add(size);
    for (;;) {
        uint32_t step = table.last() / 8 / line * line;
        uint32_t next = table.last() + (step < line ? line : step);
        if (next >= page_bytes)
            return table.count;
        table.add(next);
    }
}

// Steps of 8 up to 128, then of about 1/16; the largest sizes divide a span of 16 pages evenly. Beyond 16 KB whole
// pages waste no more than classes with so few blocks would.
uint32_t fill_dense(size_class_record *classes) {
    constexpr uint32_t span_bytes = span_pages_max * static_cast<uint32_t>(page_bytes);
    table_builder table{classes, {512, 16, 8}};
    for (uint32_t size = 8; size <= 128; size += 8)
        table.add(size);
    table.rule = {512, 8, 4};
    while (table.last() < page_bytes) {
        uint32_t power = std::bit_floor(table.last());
        table.add(table.last() + (power / 16 < 16 ? 16 : power / 16));
    }
    for (uint32_t blocks = span_bytes / static_cast<uint32_t>(page_bytes) - 1; blocks >= 4; blocks--)
        table.add(span_bytes / blocks / 16 * 16);
    return table.count;
}

} // namespace

[[gnu::cold]] uint32_t fill_class_table(ty_class_table table, size_class_record classes[size_class_count_max]) {
    return table == TY_CLASSES_DENSE ? fill_dense(classes) : fill_cache_line(classes);
}

bool class_table_sound(const size_class_record *classes, uint32_t count, const char **text) {
    if (count == 0 || count > size_class_count_max) {
        *text = "the number of size classes is out of bounds";
        return false;
    }
    uint32_t before = 0;
    for (uint32_t i = 0; i < count; i++) {
        const size_class_record &record = classes[i];
        if (record.block_bytes <= before || record.block_bytes % 8 != 0 || record.block_bytes > small_bytes_max) {
            *text = "a size class has an impossible block size";
            return false;
        }
        if (!std::has_single_bit(record.pages) || record.pages > span_pages_max ||
            record.block_bytes > record.pages * page_bytes) {
            *text = "a size class has an impossible number of pages";
            return false;
        }
        before = record.block_bytes;
    }
    return true;
}

} // namespace taiyen
