// Moving the content of memory by its page-table entries instead of its bytes.
#pragma once

#include "../process/process.hpp"
#include <cstddef>

namespace taiyen::os {

// Works on one range of private anonymous memory: a userfaultfd of its own (UFFDIO_MOVE, Linux 6.8), on which the range
// is registered at the first move, for good. No mapping is split, and pages fault as they did before. Where the kernel
// refuses, bytes are copied. Decision 16 (docs/decisions) tells what was measured.
class page_mover {
public:
    // Nothing is opened yet. The range outlives the mover.
    void start(void *base, size_t bytes);
    void stop();

    // The content of [from, from + bytes) becomes that of [to, to + bytes): both within the range, apart from each
    // other, and used by nobody else meanwhile. What is at from is then lost or as it was. Whole huge pages are moved
    // if both places have them at the same offset, which is so when from and to are equal modulo huge_page_bytes; the
    // rest is copied. Cannot fail. Thread-safe. O(bytes / huge_page_bytes) where all is moved.
    // fresh: in the target there is nothing, or zeros, which saves a call; if zeros are there, huge pages may be split.
    // Returns how many bytes, from the first huge page on that begins in the old place, have left it with their memory.
    size_t move(void *from, void *to, size_t bytes, bool fresh = false);

    // The pages of [from, from + bytes), whole ones, go to [to, to + bytes), where none are, or zeros. Returns how many
    // bytes from the first on are there now; the rest is where it was. Nothing is copied. Pages of a huge page cost a
    // split of it, once (350 µs). Thread-safe.
    size_t hand_over(void *from, void *to, size_t bytes);
    // Pages of the range were mapped just now, where nothing was.
    void cover(void *address, size_t bytes);
    // The kernel moves nothing here, and never will.
    bool refuses() const { return refused_.load(std::memory_order_relaxed); }

private:
    int descriptor();
    size_t move_entries(int fd, char *from, char *to, size_t bytes);
    size_t move_whole(int fd, char *from, char *to, size_t bytes, bool fresh);

    mutex lock_{lock_rank::page_mover};
    char *base_ = nullptr;
    size_t bytes_ = 0;
    int fd_ = -1;                      // guarded by lock_, as are the next two
    uint64_t process_ = 0;             // that opened it
    std::atomic<bool> refused_{false}; // for good
};

} // namespace taiyen::os
