// What is known of a damaged heap's page 0 without it. Nothing of the page is trusted.
#include "attach.hpp"

#include <algorithm>
#include <cstring>

namespace taiyen {
namespace {

// The heap's own limit, if plausible: smaller than what is mapped where a growth was not finished.
size_t limit_in(const heap_header &header, size_t mapped_bytes) {
    const uint64_t limit = header.limit_bytes;
    const bool fits = limit >= heap_limit_min && limit <= mapped_bytes && limit % page_bytes == 0;
    return fits && table_places(limit).descriptors_offset == header.descriptors_offset ? limit : mapped_bytes;
}

static_assert(heap_pages_in_descriptors * sizeof(page_descriptor) == page_bytes);

bool is_top(uint64_t page, const table_places &places) {
    return page >= first_user_page && page <= places.first_table_page();
}

} // namespace

heap_page_range heap_descriptor_pages(const void *header_page, size_t mapped_bytes) {
    const table_places places(limit_in(*static_cast<const heap_header *>(header_page), mapped_bytes));
    return {places.first_table_page(), (places.bitmaps_offset - places.descriptors_offset) / page_bytes};
}

uint64_t heap_described_end(const void *descriptors, size_t bytes, uint64_t first_page) {
    const auto *pages = static_cast<const page_descriptor *>(descriptors);
    for (size_t i = bytes / sizeof *pages; i > 0; --i) {
        const page_descriptor &last = pages[i - 1];
        if (last.kind == page_inside)
            continue;
        const bool reaches_on =
            last.kind == page_extent_head || last.kind == page_extent_kept || last.kind == page_free;
        return first_page + i - 1 + (reaches_on ? std::max(last.length, 1u) : 1);
    }
    return 0;
}

bool heap_repair_header(void *header_page, const void *base, size_t mapped_bytes, ty_class_table classes, bool damaged,
                        uint64_t described_end) {
    auto &header = *static_cast<heap_header *>(header_page);
    const ty_status sound = damaged ? TY_E_DAMAGED : header_status(header, base, mapped_bytes);
    if (sound == TY_OK || sound == TY_E_FORMAT) // TY_E_FORMAT: of another version, perhaps
        return false;
    heap_header repaired = header;
    repaired.limit_bytes = limit_in(header, mapped_bytes);
    const table_places places(repaired.limit_bytes);
    fill_in_constants(repaired);
    memset(repaired.classes, 0, sizeof repaired.classes);
    repaired.class_table = classes;
    repaired.class_count = fill_class_table(classes, repaired.classes);
    repaired.zero = 0;
    memset(repaired.zero_to_classes, 0, sizeof repaired.zero_to_classes);
    memset(repaired.zero_to_end, 0, sizeof repaired.zero_to_end);
    if (!is_top(repaired.top_page, places))
        repaired.top_page = is_top(described_end, places) && !fault("end_of_used_pages_lost")
                                ? described_end
                                : uint64_t{first_user_page};
    if (repaired.tree_root >= repaired.top_page)
        repaired.tree_root = 0; // free extents are not found again
    if (repaired.service_root >= repaired.top_page * page_bytes)
        repaired.service_root = 0;
    const bool changed = memcmp(&repaired, &header, sizeof header) != 0;
    header = repaired;
    return changed;
}

size_t heap_used_pages_of(const void *header_page, heap_page_range (&used)[heap_used_max]) {
    const auto &header = *static_cast<const heap_header *>(header_page);
    if (header.layout_version != heap_layout_version) // its fields were not checked
        return 0;
    const table_places places(header.limit_bytes);
    const uint64_t top = header.top_page;
    const auto table = [](uint64_t offset, uint64_t bytes) {
        return heap_page_range{offset / page_bytes, table_places::whole_pages(bytes) / page_bytes};
    };
    used[0] = {0, top};
    used[1] = table(places.descriptors_offset, top * sizeof(page_descriptor));
    used[2] = table(places.bitmaps_offset, top * page_bitmap_bytes_v1);
    used[3] = table(places.heads_offset, top / 8 + 1);
    return heap_used_max;
}

} // namespace taiyen
