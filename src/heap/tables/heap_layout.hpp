// The persistent layout of a heap: what lies in its range. All fields are in the machine's byte order, of fixed width
// and without padding. docs/design/heap.md has the picture; the invariants H1 to H8 that it lists are kept by pages/,
// spans/, blocks/ and maintenance/, and checked by maintenance/verify.cpp.
#pragma once

#include "src/os/os.hpp"
#include <cstddef>
#include <cstdint>

namespace taiyen {

inline constexpr uint64_t heap_magic = 0x3150414548595454; // "TTYHEAP1"
inline constexpr uint32_t heap_layout_version = 1;

using os::page_bytes;
inline constexpr uint32_t bitmap_words_per_page = 8; // one bit for each 8 bytes of a page
inline constexpr uint32_t size_class_count_max = 128;
inline constexpr uint32_t span_pages_max = 16;
inline constexpr uint32_t header_pages = 2; // the second holds the roots
inline constexpr uint32_t first_user_page = header_pages;

// A size class in the header. pages is a power of two up to span_pages_max.
struct size_class_record {
    uint32_t block_bytes;
    uint32_t pages;
};

// Page 0.
struct heap_header {
    uint64_t magic;
    uint32_t layout_version;
    uint32_t page_bytes;
    uint64_t limit_bytes;
    uint64_t descriptors_offset; // page_descriptor[limit / page]
    uint64_t bitmaps_offset;     // uint64_t[limit / page][bitmap_words_per_page]
    uint64_t heads_offset;       // one bit per page
    uint64_t top_page;           // H7: pages and table entries from here on read as zeros
    uint32_t tree_root;          // of the tree of free extents (H3); 0: none
    uint32_t class_table;        // a ty_class_table
    uint32_t class_count;
    uint32_t zero;
    uint64_t service_root; // offset of a block for a higher layer; 0: none
    uint32_t zero_to_classes[108];
    size_class_record classes[size_class_count_max];
    uint8_t zero_to_end[2560];
};

// Page 1.
struct root_record {
    char name[48];   // with its terminating 0; empty: not in use
    uint64_t offset; // from the heap's base
};
inline constexpr uint32_t root_count_max = 63;
struct heap_roots {
    root_record roots[root_count_max];
    uint8_t zero[568];
};

enum page_kind : uint8_t {
    page_inside = 0,      // inside an extent, or never used: the whole descriptor is zero (H6)
    page_span = 1,        // any page of a span (H4)
    page_extent_head = 2, // the head of an extent that is one block
    page_free = 3,        // the head of a free extent
    page_free_tail = 4,   // the last page of a free extent of two pages or more
    page_extent_kept = 5, // the head of an extent in a thread cache; never in a paused heap (K2)
};

struct page_descriptor {
    uint8_t kind;       // a page_kind
    uint8_t size_class; // of a span
    uint16_t zero;
    uint32_t length; // in pages: of an extent in use or free, at its head; of a free extent also at its tail (H2)
    uint32_t left;   // of a free extent's head: its children in the tree (H3); 0: none
    uint32_t right;
};

inline constexpr size_t heap_header_bytes_v1 = 4096;
inline constexpr size_t heap_classes_offset_v1 = 512;
inline constexpr size_t heap_top_offset_v1 = 48;
inline constexpr size_t heap_tree_root_offset_v1 = 56;
inline constexpr size_t heap_service_root_offset_v1 = 72;
inline constexpr size_t heap_roots_bytes_v1 = 4096;
inline constexpr size_t root_record_bytes_v1 = 56;
inline constexpr size_t page_descriptor_bytes_v1 = 16;
inline constexpr size_t page_bitmap_bytes_v1 = 64;
static_assert(sizeof(heap_header) == heap_header_bytes_v1);
static_assert(offsetof(heap_header, limit_bytes) == 16 && offsetof(heap_header, descriptors_offset) == 24);
static_assert(offsetof(heap_header, top_page) == heap_top_offset_v1);
static_assert(offsetof(heap_header, tree_root) == heap_tree_root_offset_v1);
static_assert(offsetof(heap_header, service_root) == heap_service_root_offset_v1);
static_assert(offsetof(heap_header, classes) == heap_classes_offset_v1);
static_assert(sizeof(size_class_record) == 8);
static_assert(sizeof(heap_roots) == heap_roots_bytes_v1 && sizeof(root_record) == root_record_bytes_v1);
static_assert(sizeof(page_descriptor) == page_descriptor_bytes_v1 && offsetof(page_descriptor, length) == 4);
static_assert(bitmap_words_per_page * sizeof(uint64_t) == page_bitmap_bytes_v1);

// The offsets of the tables in a heap of a given limit: at its end.
struct table_places {
    uint64_t pages; // of the whole limit
    uint64_t descriptors_offset;
    uint64_t bitmaps_offset;
    uint64_t heads_offset;

    explicit constexpr table_places(uint64_t limit_bytes)
        : pages(limit_bytes / page_bytes), descriptors_offset(0), bitmaps_offset(0), heads_offset(0) {
        heads_offset = limit_bytes - whole_pages(pages / 8 + 1);
        bitmaps_offset = heads_offset - whole_pages(pages * page_bitmap_bytes_v1);
        descriptors_offset = bitmaps_offset - whole_pages(pages * page_descriptor_bytes_v1);
    }
    // The first page that is not for blocks.
    constexpr uint64_t first_table_page() const { return descriptors_offset / page_bytes; }

    static constexpr uint64_t whole_pages(uint64_t bytes) { return (bytes + page_bytes - 1) & ~(page_bytes - 1); }
};

} // namespace taiyen
