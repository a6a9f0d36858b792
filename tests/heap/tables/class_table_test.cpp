// Goal: size classes keep their promises: block index arithmetic is exact, blocks touch no more cache lines than they
// must, alignment is natural, little is wasted.
// Method: every class and every offset of a span; every size up to 64 KB through a heap; averages over the sizes that
// the promises name.
#include "../heap_fixture.hpp"
#include "src/heap/tables/class_tables.hpp"
#include <algorithm>

namespace taiyen::test {
namespace {

class heap_classes_of : public testing::TestWithParam<ty_class_table> {};

TEST_P(heap_classes_of, table_is_sound) {
    size_class_record classes[size_class_count_max];
    uint32_t count = fill_class_table(GetParam(), classes);
    const char *text = "";
    EXPECT_TRUE(class_table_sound(classes, count, &text)) << text;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t span_bytes = classes[i].pages * static_cast<uint32_t>(page_bytes);
        EXPECT_LE(span_bytes % classes[i].block_bytes, span_bytes / 16) << classes[i].block_bytes;
    }
}

TEST_P(heap_classes_of, block_index_is_exact) {
    size_class_record classes[size_class_count_max];
    uint32_t count = fill_class_table(GetParam(), classes);
    for (uint32_t i = 0; i < count; i++) {
        class_info info = make_class_info(classes[i]);
        for (uint32_t offset = 0; offset <= info.span_mask; offset++) {
            place_in_span place = find_place(info.reciprocal, offset);
            ASSERT_EQ(place.index, offset / info.block_bytes) << info.block_bytes << " at " << offset;
            ASSERT_EQ(place.exact, offset % info.block_bytes == 0) << info.block_bytes << " at " << offset;
        }
    }
}

// The table comes from the heap's header, which may hold any.
TEST(heap_classes, block_index_is_exact_for_all_sizes) {
    for (uint32_t bytes = 8; bytes <= small_bytes_max; bytes += 8) {
        class_info info = make_class_info({bytes, span_pages_max});
        for (uint32_t index = 0; index * bytes <= info.span_mask; index++) {
            uint32_t start = index * bytes;
            place_in_span first = find_place(info.reciprocal, start);
            place_in_span second = find_place(info.reciprocal, start + 1);
            place_in_span last = find_place(info.reciprocal, std::min(start + bytes - 1, info.span_mask));
            ASSERT_TRUE(first.index == index && second.index == index && last.index == index)
                << bytes << " at " << start;
            ASSERT_TRUE(first.exact && !second.exact && !last.exact) << bytes << " at " << start;
        }
    }
}

TEST_P(heap_classes_of, natural_alignment) {
    memory_heap memory(GetParam());
    for (size_t size = 0; size <= 66'000; size += size < 1200 ? 1 : 16) {
        uintptr_t address = reinterpret_cast<uintptr_t>(heap_alloc(memory.heap, size, 0, false));
        ASSERT_NE(address, 0u);
        ASSERT_EQ(address % (size != 0 && size % 16 == 0 ? 16 : 8), 0u) << size;
    }
}

INSTANTIATE_TEST_SUITE_P(tables, heap_classes_of, testing::Values(TY_CLASSES_CACHE_LINE, TY_CLASSES_DENSE));

TEST(heap_line_table, no_block_touches_more_lines_than_it_must) {
    memory_heap memory(TY_CLASSES_CACHE_LINE, size_t{4} << 30);
    for (size_t size = 1; size <= 65'536; size++) {
        uintptr_t address = reinterpret_cast<uintptr_t>(heap_alloc(memory.heap, size, 0, false));
        ASSERT_NE(address, 0u) << ty_error_text();
        size_t lines = (address + size - 1) / 64 - address / 64 + 1;
        ASSERT_EQ(lines, (size + 63) / 64) << size;
        ASSERT_TRUE(size < page_bytes || address % page_bytes == 0) << size;
        ASSERT_EQ(heap_free(reinterpret_cast<void *>(address)), TY_OK);
    }
}

double mean_waste(ty_heap *heap, size_t from, size_t to, size_t step) {
    double sum = 0;
    size_t count = 0;
    for (size_t size = from; size <= to; size += step, count++) {
        void *block = heap_alloc(heap, size, 0, false);
        double usable = static_cast<double>(heap_usable_size(block));
        sum += (usable - static_cast<double>(size)) / usable;
        EXPECT_EQ(heap_free(block), TY_OK);
    }
    return sum / static_cast<double>(count);
}

TEST(heap_packed_table, little_is_wasted) {
    memory_heap memory(TY_CLASSES_DENSE);
    EXPECT_LT(mean_waste(memory.heap, 100, 132'000, 100), 0.05);
    EXPECT_LT(mean_waste(memory.heap, 8, 100, 1), 0.12);
}

// A thread has a span of each class that it uses, all of which may be resident: with many threads these are the heap.
TEST(heap_packed_table, a_few_blocks_of_all_small_sizes_take_little) {
    memory_heap memory(TY_CLASSES_DENSE);
    for (size_t size = 8; size <= 1024; size += 8)
        ASSERT_NE(heap_alloc(memory.heap, size, 0, false), nullptr) << size;
    ty_heap_stats stats{};
    ASSERT_EQ(heap_get_stats(memory.heap, &stats), TY_OK);
    EXPECT_LE(stats.used_bytes, size_t{5} << 18);
}

TEST(heap_class_check, refuses_wrong_tables) {
    const char *text = "";
    size_class_record good[2] = {{16, 1}, {64, 2}};
    EXPECT_TRUE(class_table_sound(good, 2, &text));
    EXPECT_FALSE(class_table_sound(good, 0, &text));
    EXPECT_FALSE(class_table_sound(good, size_class_count_max + 1, &text));
    for (size_class_record wrong :
         {size_class_record{0, 1}, {12, 1}, {64, 3}, {64, 0}, {64, 32}, {8192, 1}, {65536, 16}})
        EXPECT_FALSE(class_table_sound(&wrong, 1, &text)) << wrong.block_bytes << ' ' << wrong.pages;
    size_class_record falling[2] = {{64, 1}, {64, 1}};
    EXPECT_FALSE(class_table_sound(falling, 2, &text));
}

} // namespace
} // namespace taiyen::test
