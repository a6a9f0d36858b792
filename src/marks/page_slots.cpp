#include "page_slots.hpp"

#include <cstdlib>

namespace taiyen {
namespace {

size_t whole_pages(uint64_t leaves) {
    return (leaves * sizeof(uint32_t *) + os::page_bytes - 1) & ~(os::page_bytes - 1);
}

} // namespace

ty_status page_slots::create(uint64_t page_count) {
    leaf_count_ = page_count / leaf_pages + 1;
    void *memory = nullptr;
    const ty_status status = os::map_memory(whole_pages(leaf_count_), os::memory_hint::none, &memory);
    leaves_ = static_cast<uint32_t **>(memory);
    return status;
}

void page_slots::destroy() {
    if (leaves_ == nullptr)
        return;
    for (uint64_t i = 0; i < leaf_count_; i++)
        free(leaves_[i]);
    os::unmap_memory(leaves_, whole_pages(leaf_count_));
    leaves_ = nullptr;
}

ty_status page_slots::provide(uint64_t page) {
    uint32_t *&leaf = leaves_[page / leaf_pages];
    if (leaf == nullptr)
        leaf = static_cast<uint32_t *>(os::internal_calloc(leaf_pages, sizeof *leaf));
    return leaf != nullptr ? TY_OK
                           : failure(TY_E_MEMORY, "copy a page for a mark").remedy("free memory, or drop marks");
}

} // namespace taiyen
