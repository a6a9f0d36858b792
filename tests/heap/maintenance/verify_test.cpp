// Goal: verify names what is wrong; and whatever the tables hold, the heap answers with a status, never with undefined
// behaviour or an endless loop.
// Method: each invariant is broken by hand in memory; then random bytes of header and tables of a used heap are
// changed, and everything is called on it. Meant to run under AddressSanitizer and UndefinedBehaviorSanitizer.
#include "../heap_fixture.hpp"
#include "src/heap/tables/heap_layout.hpp"

#include <type_traits>
#include <utility>

namespace taiyen::test {
namespace {

constexpr size_t small_limit = size_t{4} << 20;

heap_header &header_of(memory_heap &memory) {
    return *reinterpret_cast<heap_header *>(memory.base);
}
page_descriptor *descriptors_of(memory_heap &memory) {
    return reinterpret_cast<page_descriptor *>(memory.base + header_of(memory).descriptors_offset);
}
uint64_t *bitmap_words(memory_heap &memory, size_t page) {
    return reinterpret_cast<uint64_t *>(memory.base + header_of(memory).bitmaps_offset) + page * bitmap_words_per_page;
}
uint64_t *head_words(memory_heap &memory) {
    return reinterpret_cast<uint64_t *>(memory.base + header_of(memory).heads_offset);
}

// A heap with spans, runs and free runs of several lengths. All of its memory is usable.
struct used_heap : memory_heap {
    std::vector<char *> blocks;

    explicit used_heap(ty_class_table classes = TY_CLASSES_CACHE_LINE) : memory_heap(classes, small_limit) {
        EXPECT_EQ(os::commit(base, small_limit), TY_OK);
        random_source random{11};
        for (int i = 0; i < 300; i++)
            blocks.push_back(static_cast<char *>(
                heap_alloc(heap, i % 5 == 0 ? random.below(30'000) : random.below(2000), 0, false)));
        std::vector<char *> kept;
        for (char *block : blocks) {
            if (random.below(2) == 0)
                kept.push_back(block);
            else
                EXPECT_EQ(heap_free(block), TY_OK);
        }
        blocks = kept;
        EXPECT_EQ(problems_of(heap), "");
    }
    size_t top() { return header_of(*this).top_page; }
    // The first page from `from` on whose descriptor is of this kind, and has so many pages at least.
    size_t find(page_kind kind, uint32_t length = 0, size_t from = first_user_page) {
        for (size_t page = from; page < top(); page++) {
            if (descriptors_of(*this)[page].kind == kind && descriptors_of(*this)[page].length >= length)
                return page;
        }
        ADD_FAILURE() << "no such page";
        return first_user_page;
    }
};

void expect_named(used_heap &memory, const char *words) {
    std::string problems = problems_of(memory.heap);
    EXPECT_NE(problems.find(words), std::string::npos) << "verify says: " << problems;
}

TEST(heap_verify, names_h1_heads) {
    used_heap memory;
    size_t run = memory.find(page_extent_head, 3);
    head_words(memory)[(run + 1) / 64] ^= uint64_t{1} << (run + 1) % 64;
    expect_named(memory, "H1: page");
    head_words(memory)[(run + 1) / 64] ^= uint64_t{1} << (run + 1) % 64;
    EXPECT_EQ(problems_of(memory.heap), "");
    head_words(memory)[run / 64] ^= uint64_t{1} << run % 64;
    expect_named(memory, "has no head bit");
    head_words(memory)[run / 64] ^= uint64_t{1} << run % 64;
    descriptors_of(memory)[run].length += 100'000;
    expect_named(memory, "H1: the extent at page");
}

TEST(heap_verify, names_h2_free_runs) {
    used_heap memory;
    size_t free = memory.find(page_free, 3);
    descriptors_of(memory)[free + descriptors_of(memory)[free].length - 1].length--;
    expect_named(memory, "H2: the free extent at page");
}

TEST(heap_verify, names_h3_the_tree) {
    used_heap memory;
    uint32_t root = header_of(memory).tree_root;
    uint32_t left = descriptors_of(memory)[root].left;
    ASSERT_NE(left, 0u) << "the test needs more free extents";
    descriptors_of(memory)[root].left = 0;
    expect_named(memory, "is not in the tree");
    descriptors_of(memory)[root].left = left;
    std::swap(descriptors_of(memory)[root].left, descriptors_of(memory)[root].right);
    expect_named(memory, "H3:");
    std::swap(descriptors_of(memory)[root].left, descriptors_of(memory)[root].right);
    header_of(memory).tree_root = static_cast<uint32_t>(memory.find(page_span));
    expect_named(memory, "H3: the tree of free extents holds a page that is no free extent");
}

TEST(heap_verify, names_h4_spans) {
    used_heap memory;
    size_t span = memory.find(page_span);
    while (descriptors_of(memory)[span + 1].kind != page_span || span % 2 != 0)
        span = memory.find(page_span, 0, span + 1);
    descriptors_of(memory)[span + 1].size_class++;
    expect_named(memory, "H4: page");
    descriptors_of(memory)[span + 1].size_class--;
    descriptors_of(memory)[span].left = 3;
    expect_named(memory, "H4: the descriptor of page");
}

TEST(heap_verify, names_h5_bitmaps) {
    used_heap memory;
    size_t span = memory.find(page_span);
    bitmap_words(memory, span)[7] ^= uint64_t{1} << 63;
    expect_named(memory, "H5:");
    bitmap_words(memory, span)[7] ^= uint64_t{1} << 63;
    size_t run = memory.find(page_extent_head, 2);
    bitmap_words(memory, run + 1)[0] = 1;
    expect_named(memory, "belongs to no span");
}

TEST(heap_verify, names_h6_insides_of_runs) {
    used_heap memory;
    size_t run = memory.find(page_extent_head, 3);
    descriptors_of(memory)[run + 1].left = 1;
    expect_named(memory, "H6: the descriptor of page");
}

TEST(heap_verify, names_h7_what_lies_above_top) {
    used_heap memory;
    size_t top = memory.top();
    memory.base[top * page_bytes + 100] = 1;
    expect_named(memory, "is not zero");
    memory.base[top * page_bytes + 100] = 0;
    head_words(memory)[top / 64] ^= uint64_t{1} << top % 64;
    expect_named(memory, "H7: page");
    head_words(memory)[top / 64] ^= uint64_t{1} << top % 64;
    header_of(memory).top_page--;
    expect_named(memory, "H7: the header's top");
    header_of(memory).top_page++;
    EXPECT_EQ(problems_of(memory.heap), "");
}

TEST(heap_verify, names_h8_empty_spans) {
    used_heap memory;
    memory.detach();
    size_t span = memory.find(page_span);
    for (uint32_t i = 0; i < bitmap_words_per_page; i++)
        bitmap_words(memory, span)[i] = 0;
    memory.attach(true);
    expect_named(memory, "H8: the span at page");
}

TEST(heap_verify, names_the_header_and_roots) {
    used_heap memory;
    ASSERT_EQ(heap_root_set(memory.heap, "a", memory.blocks[0]), TY_OK);
    header_of(memory).classes[3].block_bytes += 8;
    expect_named(memory, "header: size class 3 was changed");
    header_of(memory).classes[3].block_bytes -= 8;
    reinterpret_cast<heap_roots *>(memory.base + page_bytes)->roots[0].offset = small_limit;
    expect_named(memory, "roots: root 0 leads out of the heap");
    EXPECT_EQ(heap_root(memory.heap, "a"), nullptr);
}

// Every field of every structure that no invariant has a test of above: what is planted in it, and what verify says.
TEST(heap_verify, names_each_field_that_must_be_zero) {
    used_heap memory;
    heap_header &header = header_of(memory);
    page_descriptor *pages = descriptors_of(memory);
    auto &roots = *reinterpret_cast<heap_roots *>(memory.base + page_bytes);
    const size_t free = memory.find(page_free, 3), run = memory.find(page_extent_head, 3),
                 span = memory.find(page_span);
    const size_t tail = free + pages[free].length - 1, top = memory.top();
    struct {
        void *field;
        size_t bytes;
        const char *words;
    } const fields[] = {
        {&header.zero, sizeof header.zero, "header: fields"},
        {header.zero_to_classes, sizeof header.zero_to_classes, "header: fields"},
        {header.zero_to_end, sizeof header.zero_to_end, "header: fields"},
        {&header.classes[header.class_count], sizeof header.classes[0], "header: size class"},
        {&header.classes[size_class_count_max - 1], sizeof header.classes[0], "header: size class"},
        {&header.service_root, sizeof header.service_root, "header: the service root leads to"},
        {&pages[free].size_class, 1, "H3: the descriptor of the free extent at page"},
        {&pages[free].zero, 2, "H3: the descriptor of the free extent at page"},
        {&pages[tail].size_class, 1, "H2: the descriptor of page"},
        {&pages[tail].zero, 2, "H2: the descriptor of page"},
        {&pages[tail].left, 4, "H2: the descriptor of page"},
        {&pages[tail].right, 4, "H2: the descriptor of page"},
        {&pages[free + 1], sizeof pages[0], "H6: the descriptor of page"},
        {&pages[run].size_class, 1, "H6: the descriptor of the extent"},
        {&pages[run].zero, 2, "H6: the descriptor of the extent"},
        {&pages[run].left, 4, "H6: the descriptor of the extent"},
        {&pages[run].right, 4, "H6: the descriptor of the extent"},
        {&pages[span].zero, 2, "H4: the descriptor of page"},
        {&pages[span].length, 4, "H4: the descriptor of page"},
        {&pages[span].left, 4, "H4: the descriptor of page"},
        {&pages[span].right, 4, "H4: the descriptor of page"},
        {&pages[top], sizeof pages[0], "H6: the descriptor of page"},
        {bitmap_words(memory, free), page_bitmap_bytes_v1, "H5: page"},
        {bitmap_words(memory, top), page_bitmap_bytes_v1, "H5: page"},
        {&roots.roots[5].offset, sizeof roots.roots[5].offset, "roots: root 5 has no name"},
        {roots.roots[5].name + 1, sizeof roots.roots[5].name - 1, "roots: root 5 has no name"},
        {roots.zero, sizeof roots.zero, "roots: bytes after the last one"},
    };
    for (const auto &one : fields) {
        auto *bytes = static_cast<uint8_t *>(one.field);
        for (size_t at : {size_t{0}, one.bytes - 1}) {
            SCOPED_TRACE(std::string(one.words) + ", byte " + std::to_string(at));
            const uint8_t before = std::exchange(bytes[at], uint8_t{1});
            expect_named(memory, one.words);
            bytes[at] = before;
            ASSERT_EQ(problems_of(memory.heap), "");
        }
    }
}

TEST(heap_verify, names_fields_of_the_header_that_say_something_else) {
    used_heap memory;
    heap_header &header = header_of(memory);
    auto change = [&memory](auto &field, uint64_t value, const char *words) {
        const auto before = field;
        field = static_cast<std::remove_reference_t<decltype(field)>>(value);
        expect_named(memory, words);
        field = before;
        ASSERT_EQ(problems_of(memory.heap), "");
    };
    change(header.magic, 0, "header: magic");
    change(header.layout_version, 2, "header: magic");
    change(header.page_bytes, 512, "header: magic");
    change(header.limit_bytes, header.limit_bytes * 2, "header: magic");
    change(header.descriptors_offset, 0, "header: the places of the tables");
    change(header.bitmaps_offset, 0, "header: the places of the tables");
    change(header.heads_offset, 0, "header: the places of the tables");
    change(header.class_table, 9, "header: the kind of its size classes");
    change(header.class_count, header.class_count - 1, "header: the table of size classes");
    change(header.classes[2].pages, 16, "header: size class 2");
    change(header.tree_root, UINT32_MAX, "H3:");
    change(header.tree_root, 0, "H3:");
}

TEST(heap_verify, names_roots_that_lead_nowhere) {
    used_heap memory;
    auto &roots = *reinterpret_cast<heap_roots *>(memory.base + page_bytes);
    char *block = memory.blocks[0], *last = memory.blocks.back();
    const uint64_t inside = static_cast<uint64_t>(block - memory.base);
    ASSERT_EQ(heap_root_set(memory.heap, "good", block), TY_OK);
    ASSERT_EQ(heap_root_set(memory.heap, "inside", last + heap_usable_size(last) - 1), TY_OK);
    ASSERT_EQ(problems_of(memory.heap), "");
    root_record &root = roots.roots[0];
    ASSERT_STREQ(root.name, "good");
    const uint64_t free = memory.find(page_free, 3), tables = header_of(memory).descriptors_offset;
    for (uint64_t offset : {uint64_t{0}, uint64_t{page_bytes}, free * page_bytes, (free + 1) * page_bytes,
                            memory.top() * page_bytes, tables, uint64_t{small_limit - 1}}) {
        root.offset = offset;
        expect_named(memory, "roots: root 0, \"good\", leads to");
    }
    root.offset = UINT64_MAX;
    expect_named(memory, "roots: root 0 leads out of the heap");
    root.offset = inside;
    ASSERT_EQ(problems_of(memory.heap), "");
    ASSERT_EQ(heap_free(block), TY_OK); // the program forgot its root
    expect_named(memory, "roots: root 0, \"good\", leads to");
    root.offset = static_cast<uint64_t>(last - memory.base);
    ASSERT_EQ(problems_of(memory.heap), "");
    root.name[40] = 'x';
    expect_named(memory, "roots: root 0 has bytes after the end of its name");
    root.name[40] = 0;
    std::memcpy(root.name, roots.roots[1].name, sizeof root.name);
    expect_named(memory, "roots: roots 0 and 1 have the same name");
}

bool ignore_block(const ty_block *, void *) {
    return true;
}
bool ignore_extent(const ty_extent *, void *) {
    return true;
}

// Every kind of call on a heap whose tables may hold anything.
void use_everything(used_heap &memory, random_source &random) {
    ty_heap_stats stats{};
    ty_block block;
    static_cast<void>(heap_verify(memory.heap, nullptr, nullptr));
    static_cast<void>(heap_each_block(memory.heap, ignore_block, nullptr));
    static_cast<void>(heap_each_extent(memory.heap, ignore_extent, nullptr));
    static_cast<void>(heap_get_stats(memory.heap, &stats));
    std::vector<void *> blocks(memory.blocks.begin(), memory.blocks.end());
    for (int i = 0; i < 200; i++) {
        char *anywhere = memory.base + random.below(small_limit);
        static_cast<void>(heap_block_of(anywhere, &block));
        static_cast<void>(heap_free(anywhere));
        void *got =
            heap_alloc(memory.heap, random.below(i % 4 == 0 ? 40'000 : 2000), size_t{1} << random.below(14), false);
        if (got != nullptr)
            blocks.push_back(got);
        size_t at = random.below(blocks.size());
        switch (random.below(4)) {
        case 0:
            static_cast<void>(heap_resize_in_place(blocks[at], random.below(30'000)));
            break;
        case 1:
            static_cast<void>(
                heap_alloc_at(memory.heap, anywhere - random.below(2) * (random.next() % 4096), random.below(20'000)));
            break;
        default:
            static_cast<void>(heap_free(blocks[at]));
        }
    }
    heap_pause(memory.heap);
    for (uint64_t page = 0; page < small_limit / page_bytes; page++)
        EXPECT_NE(heap_extent_at(memory.heap, page).count, 0u);
    heap_resume(memory.heap);
    static_cast<void>(heap_purge(memory.heap, nullptr));
    static_cast<void>(heap_verify(memory.heap, nullptr, nullptr));
}

// Somewhere in the header's fields, the class table, the roots, or the entries of pages in use; and a little beyond.
char *random_control_byte(used_heap &memory, size_t top, random_source &random) {
    table_places places(small_limit);
    switch (random.below(8)) {
    case 0:
        return memory.base + random.below(1600);
    case 1:
        return memory.base + page_bytes + random.below(page_bytes);
    case 2:
    case 3:
    case 4:
        return memory.base + places.descriptors_offset + random.below((top + 4) * page_descriptor_bytes_v1);
    case 5:
        return memory.base + places.bitmaps_offset + random.below((top + 4) * page_bitmap_bytes_v1);
    default:
        return memory.base + places.heads_offset + random.below(top / 8 + 4);
    }
}

TEST(heap_damage, any_bytes_give_a_status) {
    for (ty_class_table classes : {TY_CLASSES_CACHE_LINE, TY_CLASSES_DENSE}) {
        used_heap memory(classes);
        memory.detach();
        std::vector<char> good(memory.base, memory.base + small_limit);
        size_t top = memory.top();
        int attached = 0;
        for (uint64_t seed = 1; seed <= 600; seed++) {
            random_source random{seed};
            std::memcpy(memory.base, good.data(), small_limit);
            for (uint64_t i = 1 + random.below(seed % 2 == 0 ? 3 : 200); i > 0; i--) {
                char *byte = random_control_byte(memory, top, random);
                *byte = static_cast<char>(random.below(3) == 0 ? random.below(8) : random.next());
            }
            ty_heap *heap = nullptr;
            if (heap_attach(memory.base, small_limit, memory.owner, seed % 16 != 0, &heap) != TY_OK)
                continue;
            attached++;
            memory.heap = heap;
            use_everything(memory, random);
            memory.detach();
        }
        EXPECT_GT(attached, 100);
        std::memcpy(memory.base, good.data(), small_limit);
    }
}

} // namespace
} // namespace taiyen::test
