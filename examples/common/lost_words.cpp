#include "lost_words.hpp"
#include "heap_file.hpp"
#include <algorithm>
#include <cstdio>
#include <link.h>

namespace demo {
namespace {

struct range {
    uint64_t begin, end;
    bool overlaps(const range &other) const { return begin < other.end && other.begin < end; }
};

// The ranges of the program and its libraries, with their variables.
std::vector<range> ranges_of_objects() {
    std::vector<range> found;
    auto add = [](dl_phdr_info *object, size_t, void *context) {
        for (int i = 0; i < object->dlpi_phnum; ++i)
            if (const ElfW(Phdr) &part = object->dlpi_phdr[i]; part.p_type == PT_LOAD)
                static_cast<std::vector<range> *>(context)->push_back(
                    {object->dlpi_addr + part.p_vaddr, object->dlpi_addr + part.p_vaddr + part.p_memsz});
        return 0;
    };
    dl_iterate_phdr(add, &found);
    return found;
}

// Writable memory that belongs to no file, no loaded object, and not to the heap.
std::vector<range> ranges_of_process(const range &heap) {
    std::vector<range> others = ranges_of_objects(), found;
    others.push_back(heap);
    std::FILE *maps = std::fopen("/proc/self/maps", "re");
    if (maps == nullptr)
        throw failure("cannot read /proc/self/maps");
    char line[4096];
    while (std::fgets(line, sizeof line, maps) != nullptr) {
        unsigned long begin = 0, end = 0, inode = 0;
        char rights[5] = "";
        if (std::sscanf(line, "%lx-%lx %4s %*s %*s %lu", &begin, &end, rights, &inode) != 4 || inode != 0 ||
            rights[1] != 'w')
            continue;
        const range memory{begin, end};
        if (std::none_of(others.begin(), others.end(), [&](const range &other) { return other.overlaps(memory); }))
            found.push_back(memory);
    }
    std::fclose(maps);
    return found;
}

struct search {
    std::vector<range> where; // in order
    std::vector<lost_word> found;

    void look_at(const ty_block &block) {
        const auto *words = static_cast<const uint64_t *>(block.address);
        for (size_t i = 0; i < block.size_bytes / sizeof *words; ++i) {
            auto after = std::upper_bound(where.begin(), where.end(), words[i],
                                          [](uint64_t value, const range &each) { return value < each.begin; });
            if (after != where.begin() && words[i] < std::prev(after)->end)
                found.push_back({block.address, block.size_bytes, i * sizeof *words, words[i]});
        }
    }
};

} // namespace

std::vector<lost_word> lost_words_of(ty_heap *heap) {
    ty_heap_stats stats{};
    stats.struct_size = sizeof stats;
    check(ty_heap_get_stats(heap, &stats));
    const auto base = reinterpret_cast<uint64_t>(ty_heap_base(heap));
    search all;
    all.where = ranges_of_process({base, base + stats.limit_bytes});
    all.found.reserve(1024); // before the search: memory mapped later would not be in `where`
    check(ty_each_block(
        heap,
        [](const ty_block *block, void *context) {
            static_cast<search *>(context)->look_at(*block);
            return true;
        },
        &all));
    return all.found;
}

} // namespace demo
