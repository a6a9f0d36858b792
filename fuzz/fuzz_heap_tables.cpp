// Goal: whatever a heap's header and tables say, the allocator never leaves the heap's range.
// Method: a used heap's control pages are changed in memory, then the heap is attached, read and used.
#include "fuzz/exercise.hpp"
#include "fuzz/patches.hpp"
#include "src/heap/heap.hpp"
#include <array>
#include <cstdio>
#include <cstdlib>

namespace {

constexpr size_t limit_bytes = size_t{8} << 20;
using page = std::array<uint8_t, taiyen::os::page_bytes>;

struct saved_page {
    size_t offset;
    page content;
};

struct used_heap {
    char *base = nullptr;
    std::vector<saved_page> pages; // those that are not zero
    std::vector<size_t> control;   // offsets of control pages that are not zero
};

void must(bool done, const char *what) {
    if (done)
        return;
    fprintf(stderr, "cannot %s: %s\n", what, ty_error_text());
    abort();
}

bool collect_control(const ty_extent *extent, void *context) {
    auto *made = static_cast<used_heap *>(context);
    if (extent->kind != TY_EXTENT_CONTROL)
        return true;
    size_t start = static_cast<size_t>(static_cast<char *>(extent->address) - made->base);
    for (size_t offset = start; offset < start + extent->size_bytes; offset += sizeof(page))
        made->control.push_back(offset);
    return true;
}

bool is_zero(const char *bytes) {
    static const page zeros{};
    return memcmp(bytes, zeros.data(), sizeof zeros) == 0;
}

used_heap make_heap() {
    used_heap made;
    void *memory = nullptr;
    must(!taiyen::os::reserve(0, taiyen::heap_granule_bytes, taiyen::heap_granule_bytes, &memory), "reserve");
    must(!taiyen::os::commit(memory, limit_bytes), "commit");
    made.base = static_cast<char *>(memory);
    ty_heap *heap = nullptr;
    must(!taiyen::heap_format(memory, limit_bytes, TY_CLASSES_CACHE_LINE, {}), "format");
    must(!taiyen::heap_attach(memory, limit_bytes, {}, true, &heap), "attach");
    for (uint64_t round = 1; round < 20; round++)
        fuzz::churn(heap, round * 0x9e3779b97f4a7c15);
    must(!ty_root_set(heap, "root", ty_alloc(heap, 10)), "set a root");
    must(!ty_each_extent(heap, collect_control, &made), "find the control pages");
    taiyen::heap_detach(heap);
    std::erase_if(made.control, [&](size_t offset) { return is_zero(made.base + offset); });
    for (size_t offset = 0; offset < limit_bytes; offset += sizeof(page))
        if (!is_zero(made.base + offset)) {
            made.pages.push_back({offset, {}});
            memcpy(made.pages.back().content.data(), made.base + offset, sizeof(page));
        }
    return made;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const used_heap made = make_heap();
    fuzz::input changes = fuzz::parse(data, size);
    must(!taiyen::os::decommit(made.base, limit_bytes), "clear the heap");
    for (const saved_page &saved : made.pages)
        memcpy(made.base + saved.offset, saved.content.data(), sizeof saved.content);
    for (const fuzz::patch &p : changes.patches)
        fuzz::apply(p, made.base + made.control[p.region % made.control.size()], sizeof(page));

    ty_heap *heap = nullptr;
    bool writable = !(changes.flags & 1);
    if (taiyen::heap_attach(made.base, limit_bytes, {}, writable, &heap))
        return 0;
    fuzz::look(heap);
    if (writable) {
        fuzz::churn(heap, fuzz::hash(data, size));
        fuzz::look(heap);
    }
    taiyen::heap_detach(heap);
    return 0;
}
