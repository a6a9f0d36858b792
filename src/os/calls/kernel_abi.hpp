// Parts of the kernel's interface that the headers of the C library or the distribution may lack: values from
// linux/fs.h, linux/userfaultfd.h, linux/membarrier.h and linux/mman.h of Linux 6.8.
#pragma once

#include <cstdint>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif
#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif
#ifndef MADV_DONTNEED_LOCKED // since Linux 5.18
#define MADV_DONTNEED_LOCKED 24
#endif

namespace taiyen::os::kernel {

inline constexpr int userfault_user_mode_only = 1;
inline constexpr uint64_t userfault_wp_unpopulated = uint64_t{1} << 13;
inline constexpr uint64_t userfault_wp_async = uint64_t{1} << 15;

inline constexpr uint64_t userfault_move_feature = uint64_t{1} << 16;

struct move_arguments {
    uint64_t to;
    uint64_t from;
    uint64_t bytes;
    uint64_t mode;
    int64_t moved; // bytes, or a negative error
};
static_assert(sizeof(move_arguments) == 40);
inline constexpr unsigned long userfault_move = _IOWR(UFFDIO, 5, move_arguments);
inline constexpr uint64_t move_allows_holes = 2;

struct copy_arguments {
    uint64_t to;
    uint64_t from;
    uint64_t bytes;
    uint64_t mode;
    int64_t copied; // bytes, or a negative error
};
static_assert(sizeof(copy_arguments) == 40);
inline constexpr unsigned long userfault_copy = _IOWR(UFFDIO, 3, copy_arguments);
inline constexpr uint64_t copy_wakes_nobody = 1;

inline constexpr uint64_t page_is_written = uint64_t{1} << 1;
inline constexpr uint64_t page_is_file = uint64_t{1} << 2;
inline constexpr uint64_t page_is_present = uint64_t{1} << 3;
inline constexpr uint64_t page_is_swapped = uint64_t{1} << 4;
inline constexpr uint64_t page_is_zero_page = uint64_t{1} << 5;

inline constexpr uint64_t scan_protect_matching = 1;
inline constexpr uint64_t scan_check_registered = 2;

struct page_region {
    uint64_t start;
    uint64_t end;
    uint64_t categories;
};

struct scan_arguments {
    uint64_t size;
    uint64_t flags;
    uint64_t start;
    uint64_t end;
    uint64_t walk_end;
    uint64_t vec;
    uint64_t vec_len;
    uint64_t max_pages;
    uint64_t category_inverted;
    uint64_t category_mask;
    uint64_t category_anyof_mask;
    uint64_t return_mask;
};
static_assert(sizeof(scan_arguments) == 96);

inline constexpr unsigned long pagemap_scan = _IOWR('f', 16, scan_arguments);

// Bits of an entry of /proc/self/pagemap.
inline constexpr uint64_t pagemap_present = uint64_t{1} << 63;
inline constexpr uint64_t pagemap_swapped = uint64_t{1} << 62;
inline constexpr uint64_t pagemap_file = uint64_t{1} << 61; // or shared memory; not a private copy
inline constexpr uint64_t pagemap_soft_dirty = uint64_t{1} << 55;

inline constexpr int membarrier_private_expedited = 8;
inline constexpr int membarrier_register_private_expedited = 16;

} // namespace taiyen::os::kernel
