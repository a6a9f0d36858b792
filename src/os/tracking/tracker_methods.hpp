// The methods of finding written pages, after tracker.hpp.
#pragma once

#include "../memory/memory.hpp"
#include "fault_handler.hpp"
#include "tracker.hpp"

namespace taiyen::os {

// By the kernel: userfaultfd write-protection in its asynchronous form, and PAGEMAP_SCAN.
namespace kernel_tracker {

struct handles {
    int userfault = -1;
    int pagemap = -1;
    // N2: a userfaultfd has an inode of its own, and no position.
    uint64_t userfault_inode = 0;
    off_t pagemap_mark = 0;
};
ty_status start(char *base, uint64_t page_count, handles *made);
void stop(const handles &made);
// after: whether pages that are found written are protected again.
enum class after { leave, protect };
// Adds the written ones of these pages to `into`; page 0 is at base. copies: pages that are known as private copies;
// grows. A page that is in it wrongly is reported even if it was only read. Both may be NULL.
ty_status find_written(int pagemap, char *base, page_range where, after then, page_set *copies, page_set *into);
ty_status track_again(int userfault, char *base, uint64_t page_count);
ty_status find_unwritten_copies(int pagemap, char *base, uint64_t first, uint64_t count, uint64_t *pages,
                                size_t capacity, size_t *found, uint64_t *next);

} // namespace kernel_tracker

// By page protection and a SIGSEGV handler.
namespace signal_tracker {

struct range;
ty_status start(char *base, uint64_t page_count, range **made);
void stop(range *tracked);
ty_status collect(range *tracked, page_set &into);
void query(range *tracked, page_set &into);

// Records pages as written; async-signal-safe. Call it before pages of a tracked range are made writable, between
// faults::enter and faults::leave of the tracker's node.
void note(const faults::watch &node, const void *address, size_t bytes);

} // namespace signal_tracker

// By the content of private copies. Not thread-safe.
namespace content_tracker {

struct range;
ty_status start(char *base, uint64_t page_count, page_ranges where, range **made);
void stop(range *tracked);
ty_status collect(range *tracked, page_ranges where, page_set &into);
ty_status query(range *tracked, page_ranges where, page_set &into);
ty_status find_unwritten_copies(range *tracked, page_range pages, uint64_t *list, size_t capacity, size_t *found,
                                uint64_t *next);

// For tests: how many copies a range must have for the kernel's marks to be used, and whether the next collect can use
// them.
void set_marks_from(uint64_t copies);
bool has_marks(const range *tracked);

} // namespace content_tracker
} // namespace taiyen::os
