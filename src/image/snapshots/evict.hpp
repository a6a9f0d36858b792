// Private copies of pages that the image holds can go: so a heap may be larger than memory. docs/design/image.md,
// "Heaps larger than memory".
#pragma once

#include "../../os/os.hpp"
#include <atomic>

namespace taiyen {

struct image;
struct batch_list;

// Under control, but for the bound, which is constant from the open on.
struct private_copies {
    uint64_t bound_bytes; // of private copies; 0: by what the machine and the control group have left

    os::memory_watch memory; // from where copies are noted, without a bound

    bool noted;          // whether pages are noted below: since the heap is so large that it may not fit
    os::page_set pages;  // written since they were last given back, and so perhaps private; nothing else is
    os::page_set filed;  // of memory that was anonymous at the open: shows the file now
    uint64_t hand;       // where the next round goes on
    uint64_t last_pages; // that the last snapshot wrote

    // For who looks without the lock: 1 more than the pages that are noted; 0: none are.
    std::atomic<uint64_t> told;
    void tell() { told.store(noted ? pages.count() + 1 : 0, std::memory_order_relaxed); }

    // Adds the pages that others may write to although the heap is paused. NULL: nobody does.
    void (*being_written)(void *context, os::page_set &pages);
    void *being_written_context;

    // In one pause no more than so many pages go, or twice what a snapshot writes. Tests lower them.
    static inline uint64_t least_a_pause = 8192;
    static inline uint64_t piece_pages_min = 512; // of anonymous memory that is put back on the file at once
    static inline uint64_t memory_bytes = 0; // of the machine or the control group; 0: as the kernel says. Tests set it
};

// The memory that a heap may have, for defaults: of the machine or the control group, or the bound of the options.
uint64_t memory_for(uint64_t bound_bytes);
// How many private copies need not be looked at.
uint64_t copies_allowed(uint64_t bound_bytes);

// From here on under control.
// Notes what is private at the open, of a heap that may not fit. restored: batches whose pages were put over the image.
void copies_start(image &im, const batch_list &restored);
void copies_stop(image &im);
// Whether copies are to go, as far as can be told before the heap is paused; then all batches are checkpointed if that
// can be. Nothing but a comparison for a heap that fits.
bool copies_pressed(image &im);
// Gives copies back, after a collect, within the same pause. written: pages that this snapshot is about to write.
void copies_evict(image &im, uint64_t written);
// These pages are private now.
void copies_note(image &im, const uint64_t *pages, uint64_t count);
// Whether a page shows the file once its private copy is gone; fresh memory would show zeros.
bool shows_file(const image &im, uint64_t page);

} // namespace taiyen
