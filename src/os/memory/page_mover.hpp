// Moves the content of memory by its page-table entries instead of copying its bytes.
#pragma once

#include "../process/process.hpp"
#include <cstddef>

namespace taiyen::os {

// Works on one range of private anonymous memory: with a userfaultfd of its own (UFFDIO_MOVE, Linux 6.8), on which the
// range is registered at the first move, permanently. No mapping is split, and page faults are unchanged. Where the
// kernel refuses, bytes are copied. Decision 16 (docs/decisions) has measurements.
class page_mover {
public:
    // Opens nothing yet. The range must outlive the mover.
    void start(void *base, size_t bytes);
    void stop();

    // Moves the content of [from, from + bytes) to [to, to + bytes): both within the range, disjoint, and used by no
    // other thread meanwhile. The content at from is then lost or unchanged. Whole huge pages are moved if both places
    // have them at the same offset, that is, from and to are equal modulo huge_page_bytes; the rest is copied. Cannot
    // fail. Thread-safe. O(bytes / huge_page_bytes) if all is moved.
    // fresh: the target has no pages, or zeros, which saves a call; if it has zeros, huge pages may be split.
    // Returns how many bytes, from the first huge page that begins in the old place, have left it with their memory.
    size_t move(void *from, void *to, size_t bytes, bool fresh = false);

    // Moves the whole pages of [from, from + bytes) to [to, to + bytes), where there are none, or zeros. Returns how
    // many bytes, from the first, have moved; the rest is unchanged. Copies nothing. Moving a part of a huge page
    // splits it, once (350 µs). Thread-safe.
    size_t hand_over(void *from, void *to, size_t bytes);
    // Pages of the range were just mapped, where nothing was.
    void cover(void *address, size_t bytes);
    // Whether the kernel moves nothing here, permanently.
    bool refuses() const { return refused_.load(std::memory_order_relaxed); }

private:
    int descriptor();
    size_t move_entries(int fd, char *from, char *to, size_t bytes);
    size_t move_whole(int fd, char *from, char *to, size_t bytes, bool fresh);

    mutex lock_{lock_rank::page_mover};
    char *base_ = nullptr;
    size_t bytes_ = 0;
    int fd_ = -1;                      // guarded by lock_, as are process_ and refused_
    uint64_t process_ = 0;             // the process that opened fd_
    std::atomic<bool> refused_{false}; // permanently
};

} // namespace taiyen::os
