// Eviction of private copies of pages that the image holds: so a heap may be larger than memory. docs/design/image.md,
// "Heaps larger than memory".
#pragma once

#include "src/os/os.hpp"
#include <atomic>

namespace taiyen {

struct image;
struct batch_list;

// Under control, except the bound, which is constant from the open on.
struct private_copies {
    uint64_t bound_bytes; // of private copies; 0: what the machine and the control group have left

    os::memory_limits memory; // used from when copies are noted, if there is no bound

    bool noted;          // whether pages are noted below: once the heap is so large that it may not fit
    os::page_set pages;  // written since they were last evicted, and so possibly private; no other page is
    os::page_set filed;  // of memory that was anonymous at the open: maps the file now
    uint64_t hand;       // where the next round continues
    uint64_t last_pages; // that the last snapshot wrote

    // For readers without the lock: 1 more than the number of noted pages; 0: pages are not noted.
    std::atomic<uint64_t> published;
    void publish() { published.store(noted ? pages.count() + 1 : 0, std::memory_order_relaxed); }

    // Adds the pages that other threads may write although the heap is paused. NULL: no thread does.
    void (*being_written)(void *context, os::page_set &pages);
    void *being_written_context;

    // One pause evicts at most so many pages, or twice what a snapshot writes. Tests lower them.
    static inline uint64_t least_a_pause = 8192;
    static inline uint64_t piece_pages_min = 512; // of anonymous memory that is replaced by the file at once
    static inline uint64_t memory_bytes = 0; // of the machine or the control group; 0: as the kernel says. Tests set it
};

// The memory that defaults assume for a heap: of the machine or the control group, or the bound of the options.
uint64_t memory_for(uint64_t bound_bytes);
// How many private copies are allowed before they are counted.
uint64_t copies_allowed(uint64_t bound_bytes);

// From here on under control.
// Notes what is private at the open of a heap that may not fit. restored: batches whose pages were copied over the
// image.
void copies_start(image &im, const batch_list &restored);
void copies_stop(image &im);
// Whether copies must be evicted, as far as is known before the heap is paused; if so, checkpoints all batches if
// possible. Costs one comparison for a heap that fits.
bool copies_pressed(image &im);
// Evicts copies after a collect, within the same pause. written: pages that this snapshot is about to write.
void copies_evict(image &im, uint64_t written);
// Notes that these pages are private now.
void copies_note(image &im, const uint64_t *pages, uint64_t count);
// Whether a page shows the file once its private copy is gone; fresh memory would show zeros.
bool shows_file(const image &im, uint64_t page);

} // namespace taiyen
