// The content of a heap for a comparison: two heaps are read one after the other, as both may lie at the same address.
#pragma once

#include "commands.hpp"
#include "look/reading.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace cli {

// By offset from the heap's base, in order.
struct block_content {
    uint64_t offset;
    uint64_t size_bytes;
    uint64_t hash;
};
struct page_content {
    uint64_t number;
    uint64_t hash;
};

struct heap_content {
    ty_kind kind = TY_KIND_DEFAULT;
    uint64_t base = 0;
    uint64_t limit_bytes = 0;
    std::map<std::string, uint64_t> roots; // offsets
    std::vector<block_content> blocks;
    std::vector<page_content> pages; // those that are not free
    std::vector<ty_class_stats> classes;

    // Opens the heap for reading, reads all of it, and closes it. Shows its progress as `doing`.
    ty_status read(const heap_files &files, const char *doing);
};

} // namespace cli
