// taiyen dump: the content of a heap: its roots, and each block, by size class. One block by its address:
// dump_block.cpp.
#include "common/numbers.hpp"
#include "common/terminal.hpp"
#include "common/text.hpp"
#include "look/dump_block.hpp"
#include "look/reading.hpp"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <unordered_set>

namespace cli {

namespace {

// Prints the blocks of one size class, in order of address.
struct block_printer {
    const heap_files &files;
    const request &given;
    const std::unordered_set<const void *> &own;
    size_t block_bytes = 0; // 0: blocks of whole pages
    unsigned columns = 80;
    unsigned column = 0; // in the current line

    void end_line() {
        if (column != 0)
            std::printf("\n");
        column = 0;
    }
    void print(const ty_extent &extent, const void *address, size_t size) {
        if (given.json) {
            json::document one{{"path", files.path},
                               {"kind", "block"},
                               {"address", text::hex(address)},
                               {"size_bytes", json::wide(size)},
                               {"extent", text::hex(extent.address)}};
            if (own.contains(address))
                one["internal"] = true;
            json::print(one);
            return;
        }
        std::string word = text::hex(address);
        if (block_bytes == 0)
            word += " (" + text::count(size) + ")";
        if (own.contains(address))
            word += "*";
        if (column != 0 && column + 2 + word.size() > columns)
            end_line();
        std::printf("  %s", word.c_str());
        column += 2 + static_cast<unsigned>(word.size());
    }
};

bool print_extent(const ty_extent *extent, void *context) {
    auto &printer = *static_cast<block_printer *>(context);
    if (extent->kind == TY_EXTENT_BLOCK && printer.block_bytes == 0)
        printer.print(*extent, extent->address, extent->size_bytes);
    if (extent->kind != TY_EXTENT_SPAN || extent->block_size_bytes != printer.block_bytes)
        return std::ferror(stdout) == 0;
    for (size_t n = 0; n < extent->block_count; ++n)
        if (extent->live[n / 64] >> (n % 64) & 1)
            printer.print(*extent, static_cast<const char *>(extent->address) + n * extent->block_size_bytes,
                          extent->block_size_bytes);
    return std::ferror(stdout) == 0; // the reader has closed the pipe: main reports it
}

std::unordered_set<const void *> internal_addresses(ty_heap *heap, ty_status *status) {
    std::unordered_set<const void *> own;
    auto add = [](const ty_block *block, void *all) {
        static_cast<std::unordered_set<const void *> *>(all)->insert(block->address);
        return true;
    };
    *status = ty_each_internal_block(heap, add, &own);
    return own;
}

void print_head(const heap_files &files, ty_heap *heap, const heap_metrics &metrics,
                const std::vector<named_root> &roots) {
    std::printf("%s: %s heap at %s: %s of %s\n", in(ink::strong, text::printable(files.path)).c_str(),
                kind_name(ty_heap_kind(heap)), text::hex(metrics.stats.base).c_str(),
                text::counted(metrics.stats.live_blocks, "block").c_str(),
                text::size(metrics.stats.live_bytes).c_str());
    print_roots(roots);
}

void print_json_head(const heap_files &files, ty_heap *heap, const heap_metrics &metrics,
                     const std::vector<named_root> &roots) {
    json::document one{{"path", files.path}, {"kind", "heap"}, {"heap_kind", kind_name(ty_heap_kind(heap))}};
    metrics.add_to(one);
    json::print(one);
    for (const named_root &root : roots) {
        json::document entry{{"path", files.path}, {"kind", "root"}};
        entry.update(document_of(root));
        json::print(entry);
    }
}

ty_status dump_heap(ty_heap *heap, const heap_files &files, const request &given) {
    heap_metrics metrics;
    std::vector<named_root> roots;
    if (ty_status status = metrics.read(heap))
        return status;
    if (ty_status status = roots_of(heap, roots))
        return status;
    ty_status status = TY_OK;
    const std::unordered_set<const void *> own = internal_addresses(heap, &status);
    if (status)
        return status;
    if (given.json)
        print_json_head(files, heap, metrics, roots);
    else
        print_head(files, heap, metrics, roots);
    for (const ty_class_stats &one : metrics.classes) {
        block_printer printer{files, given, own, one.block_bytes, columns()};
        const std::string size = one.block_bytes != 0 ? text::counted(one.block_bytes, "byte") : "whole pages";
        if (!given.json)
            std::printf("  %s\n",
                        in(ink::strong, "of " + size + ": " + text::counted(one.live_blocks, "block")).c_str());
        if ((status = ty_each_extent(heap, print_extent, &printer)))
            return status;
        printer.end_line();
    }
    if (!given.json && !own.empty())
        std::printf("  * the library's own\n");
    return TY_OK;
}

} // namespace

int dump(const request &given) {
    const heap_files files = files_at_mark(given);
    uint64_t address = 0;
    if (!given.block.empty() && !read_address(given.block, &address)) {
        refuse_value("block", given.block, "an address in the heap, such as 0x420000002000");
        return exit_cannot;
    }
    read_heap heap;
    if (ty_status status = heap.open(files))
        return refuse(files, given, status);
    ty_status status = given.block.empty() ? dump_heap(heap, files, given) : dump_block(heap, files, given, address);
    if (status == TY_OK)
        status = heap.close();
    return status ? refuse(files, given, status) : int(exit_fine);
}

} // namespace cli
