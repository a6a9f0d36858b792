// Tracks which pages of a private file mapping (or of anonymous memory) were written since the last collect.
//
// Three methods with one contract; docs/design/os.md says how they work and what they cost:
//   kernel   userfaultfd write-protection in its asynchronous form plus PAGEMAP_SCAN: registered once, nothing is
//            protected at the start, no signal handlers, no mapping splits.
//   content  checksums of the private copies that /proc/self/pagemap shows; nothing is protected and nothing faults.
//            The kernel's soft-dirty bits say which copies need no check, where they exist and clearing them pays.
//   signal   page protection and a SIGSEGV handler that chains to the one before it. Where mappings would run out it
//            protects coarser pieces (a segment, then more), and reports all pages of a piece. System calls that write
//            into the range fail with EFAULT.
//
// T1: a page written after start or after the last collect is reported by the next collect (or query); content: a page
//      whose content has changed.
// T2: a page that was only read, or never touched, is not reported (signal: may be, by a coarse piece; content: may be,
//      once, where memory is anonymous).
// T3: a write that races with collect is reported by this collect or by the next one, where sees_racing_writes().
//      Elsewhere no thread may write meanwhile.
#pragma once

#include "../memory/memory.hpp"

namespace taiyen::os {

enum class tracker_method { automatic, kernel, signal, content };

struct page_range {
    uint64_t first;
    uint64_t count;
};

struct page_ranges {
    const page_range *ranges;
    size_t count;
};

class tracker {
public:
    // The range must be mapped, readable and writable. where: pages elsewhere were not written yet. automatic: the
    // first of kernel, content, signal that works. Expected: TY_E_UNSUPPORTED (the method is refused; the detail says
    // by what).
    ty_status start(void *base, uint64_t page_count, tracker_method method, page_ranges where);
    ty_status start(void *base, uint64_t page_count, tracker_method method) {
        page_range whole{0, page_count};
        return start(base, page_count, method, {&whole, 1});
    }
    void stop();
    tracker_method method() const { return method_; }

    bool sees_racing_writes() const { return method_ != tracker_method::content; }

    // Adds the written pages to `into` and starts over. On failure no write is lost. where: pages outside need not be
    // scanned; what was inside once must stay inside.
    ty_status collect(page_ranges where, page_set &into);
    ty_status collect(page_set &into) { return collect({&whole_, 1}, into); }
    // The same for a part of the range, in less time if the method can: pages outside may be collected, too, and others
    // outside stay for the next collect.
    ty_status collect_part(page_range part, page_set &into);
    // Adds the written pages without starting over.
    ty_status query(page_ranges where, page_set &into);
    ty_status query(page_set &into) { return query({&whole_, 1}, into); }
    // Finds up to `capacity` pages in [first, first + count) that have a private copy in memory which was not written
    // since the last collect: their copies can be evicted if the file holds the same bytes. signal: finds none. For
    // pages that are evicted otherwise, T2 does not hold until they are written.
    ty_status unwritten_copies(uint64_t first, uint64_t count, uint64_t *pages, size_t capacity, size_t *found,
                               uint64_t *next);

    // The private copies of these pages were evicted.
    void forget_copies(uint64_t first, uint64_t count);
    // What is mapped at [first, first + count) was replaced by a new private, untracked mapping: it is tracked from now
    // on. Its private copies may be reported once. No thread writes there meanwhile.
    ty_status track_again(uint64_t first, uint64_t count);
    // Whether a new mapping in the range must be read-only, since writes to it are detected by signals. TY_E_ARGUMENT:
    // not the same for all of it.
    ty_status needs_protection(uint64_t first, uint64_t count, bool *needs) const;

private:
    ty_status start_method(tracker_method method, page_ranges where);
    ty_status start_kernel();

    char *base_ = nullptr;
    page_range whole_{};
    tracker_method method_ = tracker_method::automatic;
    page_set copies_; // kernel: pages known to be private copies
    int userfault_ = -1;
    int pagemap_ = -1;
    uint64_t userfault_inode_ = 0; // N2: this and pagemap_mark_ identify the files
    int64_t pagemap_mark_ = 0;
    void *state_ = nullptr; // signal, content: the method's state
};

} // namespace taiyen::os
