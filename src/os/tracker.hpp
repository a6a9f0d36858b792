// Which pages of a private file mapping (or of anonymous memory) were written since the last collection.
//
// Two methods with one contract:
//  kernel  userfaultfd write-protection in its asynchronous form plus PAGEMAP_SCAN: registered once, nothing is
//          protected at the start, no signal handlers, no mapping splits. See docs/design/os.md for the recipe.
//  signal  page protection and a SIGSEGV handler that chains to the one before it. Where mappings would run out it
//          protects coarser pieces (a segment, then more), and reports all pages of a piece.
//
// T1: a page written after start or after the last collect is reported by the next collect (or query).
// T2: a page that was only read, or never touched, is not reported (signal: may be, by a coarse piece).
// T3: a write that races with collect is reported by this collect or by the next one.
#pragma once

#include "page_set.hpp"

namespace taiyen::os {

enum class tracker_method { automatic, kernel, signal };

struct page_range {
    uint64_t first;
    uint64_t count;
};

class tracker {
public:
    // The range is mapped, readable and writable. automatic: kernel where it works, else signal.
    // Expected: TY_E_UNSUPPORTED (kernel asked for and refused; the detail says by what).
    ty_status start(void *base, uint64_t page_count, tracker_method method);
    void stop();
    tracker_method method() const { return method_; }

    // Adds the written pages to `into` and starts over. On failure no write is forgotten.
    ty_status collect(page_set &into);
    // Adds them without starting over.
    ty_status query(page_set &into);
    // Finds up to `capacity` pages in [first, first + count) that have a private copy in memory which was not written
    // since the last collect: their memory can be given back where the file holds the same bytes. kernel method only
    // (signal: finds none). Of pages that are given back without it, T2 does not hold until they are written.
    ty_status unwritten_copies(uint64_t first, uint64_t count, uint64_t *pages, size_t capacity, size_t *found,
                               uint64_t *next);

private:
    char *base_ = nullptr;
    uint64_t page_count_ = 0;
    tracker_method method_ = tracker_method::automatic;
    page_set copies_; // kernel: pages known to be private copies
    int userfault_ = -1;
    int pagemap_ = -1;
    uint64_t userfault_inode_ = 0; // N2, as the next
    int64_t pagemap_mark_ = 0;
    void *signal_state_ = nullptr; // struct signal_range of tracker_signal.cpp
};

} // namespace taiyen::os
