// Dirty pages by the kernel. A private writable page gets a write-protection mark when it is collected; the kernel
// removes the mark at the next write. "Written" is the absence of the mark, so a page counts only if it is a private
// copy: in memory or swapped, not a page of the file, nor the kernel's zero page, which reading new memory maps. To
// distinguish a copy from a page of the file, the kernel must read the page's descriptor, which costs ten times the
// rest of the scan; so known copies are remembered.
#include "../base/base.hpp"
#include "../calls/calls.hpp"
#include "tracker_methods.hpp"

#include <cstring>

namespace taiyen::os::kernel_tracker {
namespace {

constexpr size_t regions_a_scan = 256;

ty_status refused(const char *what, int error) {
    bool passing = error == EMFILE || error == ENFILE || error == ENOMEM || error == EAGAIN;
    failure detail(passing ? status_of_errno(error) : TY_E_UNSUPPORTED, "track written pages: %s", what);
    detail.cause(error);
    if (passing)
        return detail.remedy("close files or free memory, and try again");
    return detail.remedy("Linux 6.7 or newer is needed, and userfaultfd and /proc allowed; the signal method does "
                         "without");
}

int open_userfault() {
    low_descriptors_taken taken; // N1: never 0, 1 or 2
    int fd = sys::userfaultfd(O_CLOEXEC | kernel::userfault_user_mode_only);
    // Before 5.11 that flag is unknown, and a privilege may suffice instead.
    return move_descriptor_high(fd >= 0 || errno != EINVAL ? fd : sys::userfaultfd(O_CLOEXEC));
}

ty_status register_range(int userfault, char *base, uint64_t page_count) {
    uffdio_register range{};
    range.range.start = reinterpret_cast<uintptr_t>(base);
    range.range.len = page_count * page_bytes;
    range.mode = UFFDIO_REGISTER_MODE_WP;
    if (sys::ioctl(userfault, UFFDIO_REGISTER, &range) != 0)
        return refused("userfaultfd does not take the range", errno);
    // A huge page has one mark for 512 pages: all would be reported. On a kernel without huge pages the call fails.
    sys::madvise(base, page_count * page_bytes, MADV_NOHUGEPAGE);
    return TY_OK;
}

ty_status choose_asynchronous(int userfault) {
    uffdio_api api{};
    api.api = UFFD_API;
    api.features = kernel::userfault_wp_async | kernel::userfault_wp_unpopulated;
    if (sys::ioctl(userfault, UFFDIO_API, &api) != 0)
        return refused("userfaultfd lacks asynchronous write-protection", errno);
    return TY_OK;
}

kernel::scan_arguments scan_of(char *base, uint64_t first, uint64_t count, kernel::page_region *regions) {
    kernel::scan_arguments scan{};
    scan.size = sizeof scan;
    scan.start = reinterpret_cast<uintptr_t>(base + first * page_bytes);
    scan.end = scan.start + count * page_bytes;
    scan.vec = reinterpret_cast<uintptr_t>(regions);
    scan.vec_len = regions_a_scan;
    return scan;
}

ty_status scan_failure(const char *base) {
    int error = errno;
    return failure(error == ENOMEM ? TY_E_MEMORY : TY_E_IO, "find the written pages of the memory at %p", base)
        .cause(error)
        .remedy("%s", error == EPERM
                          ? "a part of the range was mapped anew by somebody else since it was opened, or the "
                            "program closed descriptors that are not its own"
                      : error == EBADF || error == ENOTTY
                          ? "the program closed descriptors that are not its own (closefrom, the start of a daemon)"
                          : "nothing is lost: try again");
}

page_range pages_of(const kernel::page_region &region, const char *base) {
    uint64_t start = reinterpret_cast<uintptr_t>(base);
    return {(region.start - start) / page_bytes, (region.end - region.start) / page_bytes};
}

// Adds the private copies among the pages to `copies` (T2: a page that was only read is not reported).
ty_status find_copies(int pagemap, char *base, page_range pages, page_set &copies) {
    kernel::page_region regions[regions_a_scan];
    kernel::scan_arguments scan = scan_of(base, pages.first, pages.count, regions);
    scan.category_inverted = scan.category_mask = kernel::page_is_file | kernel::page_is_zero_page;
    scan.category_anyof_mask = kernel::page_is_present | kernel::page_is_swapped;
    while (scan.start < scan.end) {
        int found = sys::ioctl(pagemap, kernel::pagemap_scan, &scan);
        if (found < 0 && errno == EINTR)
            continue;
        if (found < 0)
            return scan_failure(base);
        for (int i = 0; i < found; i++) {
            page_range copied = pages_of(regions[i], base);
            copies.insert_range(copied.first, copied.count);
        }
        scan.start = scan.walk_end;
    }
    return TY_OK;
}

constexpr int copies_a_call = 8; // checking fewer costs less than another call

bool few_copies(const page_set &copies, uint64_t first, uint64_t end) {
    int count = 0;
    for (uint64_t page = copies.next(first); page < end; page = copies.next(page + 1))
        if (++count == copies_a_call)
            return false;
    return true;
}

// Checks the pages of the regions that are not known as private copies.
ty_status learn_copies(int pagemap, char *base, const kernel::page_region *regions, size_t count, page_set &copies) {
    page_range unknown{};
    for (size_t i = 0; i < count; i++) {
        page_range pages = pages_of(regions[i], base);
        for (uint64_t page = pages.first; page < pages.first + pages.count; page++) {
            if (copies.contains(page))
                continue;
            if (unknown.count && few_copies(copies, unknown.first + unknown.count, page)) {
                unknown.count = page + 1 - unknown.first;
                continue;
            }
            if (unknown.count)
                if (ty_status status = find_copies(pagemap, base, unknown, copies))
                    return status;
            unknown = {page, 1};
        }
    }
    return unknown.count ? find_copies(pagemap, base, unknown, copies) : TY_OK;
}

// Adds the private copies in the regions to `into`; all pages, if the kernel does not say which are copies.
ty_status add_copies(int pagemap, char *base, const kernel::page_region *regions, size_t count, page_set &copies,
                     page_set &into) {
    ty_status status = learn_copies(pagemap, base, regions, count, copies);
    for (size_t i = 0; i < count; i++) {
        page_range pages = pages_of(regions[i], base);
        for (uint64_t page = pages.first; page < pages.first + pages.count; page++)
            if (status || copies.contains(page))
                into.insert(page);
    }
    return status;
}

size_t filled(const kernel::page_region *regions) {
    size_t count = 0;
    while (count < regions_a_scan && regions[count].end > regions[count].start)
        count++;
    return count;
}

} // namespace

// T1: a written page is reported.
ty_status find_written(int pagemap, char *base, page_range where, after then, page_set *copies, page_set *into) {
    kernel::page_region regions[regions_a_scan];
    kernel::scan_arguments scan = scan_of(base, where.first, where.count, regions);
    if (then == after::protect)
        scan.flags = kernel::scan_protect_matching | kernel::scan_check_registered;
    scan.category_inverted = kernel::page_is_zero_page;
    scan.category_mask = kernel::page_is_written | scan.category_inverted;
    scan.category_anyof_mask = kernel::page_is_present | kernel::page_is_swapped;
    while (scan.start < scan.end) {
        // A scan that fails half-way has protected the pages that it reports in `regions`, without their number: the
        // rest of the array is empty, so none is lost.
        memset(regions, 0, sizeof regions);
        int found = sys::ioctl(pagemap, kernel::pagemap_scan, &scan);
        int error = errno;
        const bool adds = into && !fault("failed_scan_forgets_written_pages");
        ty_status status = adds ? add_copies(pagemap, base, regions, filled(regions), *copies, *into) : TY_OK;
        errno = error;
        if (found < 0 && error != EINTR)
            return scan_failure(base);
        if (status)
            return status;
        if (found >= 0)
            scan.start = scan.walk_end;
    }
    return TY_OK;
}

ty_status find_unwritten_copies(int pagemap, char *base, uint64_t first, uint64_t count, uint64_t *pages,
                                size_t capacity, size_t *found, uint64_t *next) {
    kernel::page_region regions[regions_a_scan];
    kernel::scan_arguments scan = scan_of(base, first, count, regions);
    uint64_t not_these = kernel::page_is_written | kernel::page_is_file | kernel::page_is_zero_page;
    scan.category_mask = kernel::page_is_present | not_these;
    scan.category_inverted = not_these;
    while (scan.start < scan.end && *found < capacity) {
        scan.max_pages = capacity - *found;
        int ranges = sys::ioctl(pagemap, kernel::pagemap_scan, &scan);
        if (ranges < 0 && errno == EINTR)
            continue;
        if (ranges < 0)
            return scan_failure(base);
        for (int i = 0; i < ranges; i++)
            for (uint64_t at = regions[i].start; at < regions[i].end; at += page_bytes)
                pages[(*found)++] = (at - reinterpret_cast<uintptr_t>(base)) / page_bytes;
        scan.start = scan.walk_end;
    }
    *next = (scan.start - reinterpret_cast<uintptr_t>(base)) / page_bytes;
    return TY_OK;
}

ty_status start(char *base, uint64_t page_count, handles *made) {
    int userfault = open_userfault();
    if (userfault < 0)
        return refused("userfaultfd is refused", errno);
    ty_status status = choose_asynchronous(userfault);
    if (status == TY_OK)
        status = register_range(userfault, base, page_count);
    int pagemap = -1;
    off_t mark = 0;
    if (status == TY_OK) {
        pagemap = open_descriptor("/proc/self/pagemap", O_RDONLY);
        if (pagemap < 0 || (mark = mark_descriptor(pagemap)) == 0)
            status = refused("/proc/self/pagemap cannot be read", errno);
    }
    // Discards earlier writes.
    if (status == TY_OK && find_written(pagemap, base, {0, page_count}, after::protect, nullptr, nullptr) != TY_OK)
        status = refused("PAGEMAP_SCAN is refused", errno);
    if (status == TY_OK) {
        *made = {userfault, pagemap, inode_of(userfault), mark};
        return TY_OK;
    }
    if (pagemap >= 0)
        sys::close(pagemap);
    sys::close(userfault);
    return status;
}

ty_status track_again(int userfault, char *base, uint64_t page_count) {
    return register_range(userfault, base, page_count);
}

// Closing ends the registration and removes all protection (N2: only if it still is this file).
void stop(const handles &made) {
    if (is_marked(made.pagemap, made.pagemap_mark))
        sys::close(made.pagemap);
    if (inode_of(made.userfault) == made.userfault_inode || fault("descriptor_of_another_file_closed"))
        sys::close(made.userfault);
}

} // namespace taiyen::os::kernel_tracker
