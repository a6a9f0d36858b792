// PM1: a descriptor is closed only when the kernel has just accepted it for this range. A program may close all files
//      that it does not know, and the number is then reused for another file.
// PM2: a forked child opens its own: the kernel refuses moves through the parent's.
// PM3: at any moment of a move each page's content is in one of the two places, and the next step starts after the
//      last page that is at its new one.
// PM4: the kernel may have moved pages without counting them. Before anything is copied over a page, or the target is
//      emptied, the page is known to be at its old place.
#include "page_mover.hpp"

#include "../calls/calls.hpp"
#include "vm.hpp"

#include <cstring>

namespace taiyen::os {
namespace {

// The kernel returns EAGAIN when a page is briefly locked, and after it has split a huge page.
constexpr unsigned tries_max = 64;

constexpr size_t short_tail_bytes = 64 * page_bytes;

bool passing(int error) {
    return error == EMFILE || error == ENFILE || error == ENOMEM || error == EINTR;
}

int open_mover() {
    low_descriptors_taken taken; // N1: never 0, 1 or 2
    return move_descriptor_high(sys::userfaultfd(O_CLOEXEC | kernel::userfault_user_mode_only));
}

// Registers for write-protection, which is never used: so no fault is ever delayed.
bool register_range(int fd, char *base, size_t bytes) {
    uffdio_api api{};
    api.api = UFFD_API;
    api.features = kernel::userfault_move_feature;
    uffdio_register range{};
    range.range = {reinterpret_cast<uintptr_t>(base), bytes};
    range.mode = UFFDIO_REGISTER_MODE_WP;
    return sys::ioctl(fd, UFFDIO_API, &api) == 0 && sys::ioctl(fd, UFFDIO_REGISTER, &range) == 0;
}

bool unregister_range(int fd, char *base, size_t bytes) {
    uffdio_range range{reinterpret_cast<uintptr_t>(base), bytes};
    return sys::ioctl(fd, UFFDIO_UNREGISTER, &range) == 0;
}

// Bytes up to the next huge page.
size_t to_boundary(const char *address) {
    return -reinterpret_cast<uintptr_t>(address) & (huge_page_bytes - 1);
}

bool is_zero(const char *page) {
    return *page == 0 && memcmp(page, page + 1, page_bytes - 1) == 0;
}

// PM4: nothing is copied over a page that moved uncounted. After Linux 6.18 has waited for a page, it does not count
//      the pages that it moves next, and then finds them in its way (move_pages in mm/userfaultfd.c: EAGAIN outlives
//      the success after it). If it has counted others, or stopped before it got there, only the next call reports
//      that, which it may refuse for any other reason. Nothing is left of these pages at their old place, which reads
//      as zeros. A page of zeros that has not moved need not: its new place has nothing, or zeros. Returns how many
//      bytes, from the first, count as moved.
size_t moved_uncounted(char *from, size_t bytes) {
    size_t most = bytes < huge_page_bytes ? bytes : huge_page_bytes; // the kernel counts in pieces of at most this size
    size_t moved = 0;
    while (moved < most && is_zero(from + moved))
        moved += page_bytes;
    if (moved != 0)
        static_cast<void>(sys::madvise(from, moved, MADV_DONTNEED)); // is_zero mapped the kernel's zero page
    return fault("uncounted_moved_pages_overwritten") ? 0 : moved;
}

size_t to_next_boundary(const char *address) {
    return to_boundary(address + 1) + 1;
}

// Copying a short tail to where no page is should not make the kernel clear a huge page first: copies it into new small
// pages.
void copy_tail(int fd, const char *from, char *to, size_t bytes) {
    kernel::copy_arguments part{};
    part.to = reinterpret_cast<uintptr_t>(to);
    part.from = reinterpret_cast<uintptr_t>(from);
    part.bytes = bytes & ~(page_bytes - 1);
    part.mode = kernel::copy_wakes_nobody;
    size_t copied = 0;
    if (fd >= 0 && bytes <= short_tail_bytes && part.bytes != 0) {
        static_cast<void>(sys::ioctl(fd, kernel::userfault_copy, &part)); // the memcpy below does the rest
        copied = part.copied > 0 ? static_cast<size_t>(part.copied) : 0;
    }
    memcpy(to + copied, from + copied, bytes - copied);
}

} // namespace

void page_mover::start(void *base, size_t bytes) {
    base_ = static_cast<char *>(base);
    bytes_ = bytes;
}

void page_mover::stop() {
    lock_guard guard(lock_);
    if (fd_ >= 0 && process_ == process_id() &&
        (unregister_range(fd_, base_, bytes_) ||
         fault("page_mover_closes_another_file"))) // PM1: only if it is still this range's
        sys::close(fd_);
    fd_ = -1;
}

// The userfaultfd, or -1.
[[gnu::cold]] int page_mover::descriptor() {
    lock_guard guard(lock_);
    if (fd_ >= 0 && process_ == process_id()) // PM2: not the parent's
        return fd_;
    fd_ = -1;
    if (refuses())
        return -1;
    int fd = open_mover();
    if (fd >= 0 && register_range(fd, base_, bytes_)) {
        process_ = process_id();
        return fd_ = fd;
    }
    refused_.store(!passing(errno), std::memory_order_relaxed);
    if (fd >= 0)
        sys::close(fd);
    return -1;
}

// Moves need both ends registered, and mappings merge only if both are registered or neither is. What the kernel
// refuses here is copied instead of moved.
[[gnu::cold]] void page_mover::cover(void *address, size_t bytes) {
    lock_guard guard(lock_);
    if (fd_ < 0 || process_ != process_id())
        return; // the first move opens one and registers all that is mapped
    uffdio_register range{};
    range.range = {reinterpret_cast<uintptr_t>(address), bytes};
    range.mode = UFFDIO_REGISTER_MODE_WP;
    int kept = errno;
    static_cast<void>(sys::ioctl(fd_, UFFDIO_REGISTER, &range));
    errno = kept;
}

// Returns how many bytes, from the first, are at their new place. The kernel moves from one mapping to one other at a
// time; if mappings meet within the bytes, which happens only between huge pages, it returns EINVAL.
[[gnu::cold]] size_t page_mover::move_entries(int fd, char *from, char *to, size_t bytes) {
    int error_before = errno; // an allocation that succeeds does not change errno
    size_t moved = 0;
    size_t piece = bytes;
    for (unsigned tries = 0; moved < bytes && tries < tries_max; tries++) {
        kernel::move_arguments part{};
        part.to = reinterpret_cast<uintptr_t>(to) + moved;
        part.from = reinterpret_cast<uintptr_t>(from) + (fault("page_move_goes_on_at_its_start") ? 0 : moved);
        part.bytes = piece;
        part.mode = kernel::move_allows_holes;
        int error = sys::ioctl(fd, kernel::userfault_move, &part) == 0 ? 0 : errno;
        size_t done = error == 0 ? piece : part.moved > 0 ? static_cast<size_t>(part.moved) : 0;
        if (error == EINVAL) {
            size_t in_one = to_next_boundary(from + moved);
            in_one = in_one < to_next_boundary(to + moved) ? in_one : to_next_boundary(to + moved);
            if (in_one < piece) {
                piece = in_one;
                continue;
            }
        }
        if (error == EBADF || error == ENOTTY) { // PM1: the program closed it; the next move opens another
            lock_guard guard(lock_);
            if (fd_ == fd)
                fd_ = -1;
        }
        if (done == 0)
            done = moved_uncounted(from + moved, piece);
        if (done != 0) {
            moved += done;
            piece = bytes - moved;
            tries = 0;
        } else if (error != EAGAIN) {
            break;
        }
    }
    errno = error_before;
    return moved;
}

// Moves whole huge pages, at the same offset in both places. A piece that the kernel does not move (pages that a forked
// child still shares; pages that a device reads) is copied to its end. Returns how many bytes moved before the first
// copied one.
size_t page_mover::move_whole(int fd, char *from, char *to, size_t bytes, bool fresh) {
    size_t done = 0, left = 0;
    bool emptied = false;
    while (done < bytes) {
        // Entries can be moved only to where there are none. PM4: the target is emptied before the first move, never
        // after.
        if (fd < 0 || (!fresh && !emptied && sys::madvise(to + done, bytes - done, MADV_DONTNEED) != 0)) {
            memcpy(to + done, from + done, bytes - done);
            break;
        }
        emptied = !fresh;
        size_t moved =
            move_entries(fd, from + done, to + done, bytes - done); // PM3: continues after the last page that moved
        left += left == done ? moved : 0;
        done += moved;
        if (done < bytes && emptied) {
            size_t copied = to_next_boundary(from + done);
            memcpy(to + done, from + done, copied);
            done += copied;
        }
        fresh = false;
    }
    return left;
}

size_t page_mover::move(void *source, void *target, size_t bytes, bool fresh) {
    char *from = static_cast<char *>(source);
    char *to = static_cast<char *>(target);
    size_t head = to_boundary(from);
    if (head != to_boundary(to) || bytes < head + huge_page_bytes) {
        memcpy(to, from, bytes);
        return 0;
    }
    int fd = descriptor();
    size_t whole = (bytes - head) & ~(huge_page_bytes - 1);
    size_t tail = bytes - head - whole;
    memcpy(to, from, head);
    size_t left = move_whole(fd, from + head, to + head, whole, fresh);
    copy_tail(fd, from + head + whole, to + head + whole, tail);
    return left;
}

size_t page_mover::hand_over(void *from, void *to, size_t bytes) {
    int fd = descriptor();
    return fd >= 0 ? move_entries(fd, static_cast<char *>(from), static_cast<char *>(to), bytes) : 0;
}

} // namespace taiyen::os
