#include "look/heap_content.hpp"

#include "common/numbers.hpp"
#include "common/progress.hpp"
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace cli {

namespace {

struct content_reader {
    heap_content &content;
    const char *base;
    uint64_t total_bytes;
    progress shown;
    uint64_t done_bytes = 0;

    uint64_t offset_of(const void *address) const {
        return static_cast<uint64_t>(static_cast<const char *>(address) - base);
    }
    void add_block(const void *address, size_t size) {
        content.blocks.push_back({offset_of(address), size, XXH3_64bits(address, size)});
        shown.show(done_bytes += size, total_bytes);
    }
};

bool read_extent(const ty_extent *extent, void *context) {
    auto &into = *static_cast<content_reader *>(context);
    const auto *first = static_cast<const char *>(extent->address);
    if (extent->kind == TY_EXTENT_BLOCK)
        into.add_block(first, extent->size_bytes);
    for (size_t n = 0; extent->kind == TY_EXTENT_SPAN && n < extent->block_count; ++n)
        if (extent->live[n / 64] >> (n % 64) & 1)
            into.add_block(first + n * extent->block_size_bytes, extent->block_size_bytes);
    if (extent->kind != TY_EXTENT_SPAN && extent->kind != TY_EXTENT_BLOCK)
        return true;
    for (size_t at = 0; at < extent->size_bytes; at += page_bytes)
        into.content.pages.push_back({into.offset_of(first + at) / page_bytes, XXH3_64bits(first + at, page_bytes)});
    return true;
}

} // namespace

ty_status heap_content::read(const heap_files &files, const char *doing) {
    read_heap heap;
    if (ty_status status = heap.open(files))
        return status;
    heap_metrics metrics;
    if (ty_status status = metrics.read(heap))
        return status;
    kind = ty_heap_kind(heap);
    base = reinterpret_cast<uintptr_t>(metrics.stats.base);
    limit_bytes = metrics.stats.limit_bytes;
    classes = metrics.classes;
    std::vector<named_root> named;
    if (ty_status status = roots_of(heap, named))
        return status;
    for (const named_root &root : named)
        roots[root.name] = reinterpret_cast<uintptr_t>(root.address) - base;
    content_reader into{*this, static_cast<const char *>(metrics.stats.base), metrics.stats.live_bytes,
                        progress(doing)};
    if (ty_status status = ty_each_extent(heap, read_extent, &into))
        return status;
    return heap.close();
}

} // namespace cli
