// Resident bytes of a range: by PAGEMAP_SCAN where the kernel has it, otherwise by the entries of pagemap.
#include "../calls/calls.hpp"
#include "vm.hpp"

namespace taiyen::os {
namespace {

bool count_by_scan(int pagemap, uintptr_t start, uintptr_t end, size_t *pages) {
    kernel::page_region regions[128];
    kernel::scan_arguments scan{};
    scan.size = sizeof scan;
    scan.vec = reinterpret_cast<uintptr_t>(regions);
    scan.vec_len = sizeof regions / sizeof regions[0];
    scan.category_mask = kernel::page_is_present;
    scan.return_mask = kernel::page_is_present;
    scan.end = end;
    for (scan.start = start; scan.start < end; scan.start = scan.walk_end) {
        int found = sys::ioctl(pagemap, kernel::pagemap_scan, &scan);
        if (found < 0 || scan.walk_end <= scan.start)
            return false;
        for (int i = 0; i < found; i++)
            *pages += (regions[i].end - regions[i].start) / page_bytes;
    }
    return true;
}

bool count_by_entries(int pagemap, uintptr_t start, uintptr_t end, size_t *pages) {
    uint64_t entries[512];
    uint64_t page = start / page_bytes;
    uint64_t last = end / page_bytes;
    while (page < last) {
        uint64_t wanted = last - page < 512 ? last - page : 512;
        ssize_t got = sys::pread(pagemap, entries, wanted * sizeof entries[0], page * sizeof entries[0]);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < static_cast<ssize_t>(sizeof entries[0]))
            return false;
        uint64_t count = static_cast<uint64_t>(got) / sizeof entries[0];
        for (uint64_t i = 0; i < count; i++)
            *pages += (entries[i] & kernel::pagemap_present) != 0;
        page += count;
    }
    return true;
}

} // namespace

size_t resident_bytes(const void *address, size_t bytes) {
    uintptr_t start = reinterpret_cast<uintptr_t>(address);
    int pagemap = open_descriptor("/proc/self/pagemap", O_RDONLY);
    if (pagemap < 0)
        return 0;
    size_t pages = 0;
    bool known = count_by_scan(pagemap, start, start + bytes, &pages);
    if (!known) {
        pages = 0;
        known = count_by_entries(pagemap, start, start + bytes, &pages);
    }
    sys::close(pagemap);
    return known ? pages * page_bytes : 0;
}

} // namespace taiyen::os
