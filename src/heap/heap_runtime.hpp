// The volatile side of a heap: everything that is made anew when a heap is attached. Locks, caches, who owns which
// span, the index of spans with free blocks. docs/design/heap.md, "Small blocks" and "Threads", tells how they work
// together.
#pragma once

#include "class_tables.hpp"
#include "heap.hpp"
#include <atomic>

namespace taiyen {

struct class_cache;
struct check_hooks;
struct thread_cache;
struct thread_table;

// Spans with free blocks stand in bins by how full they are; the fullest bin comes first.
inline constexpr uint32_t partial_bins = 4;
inline constexpr uint8_t no_bin = partial_bins; // full spans, and an owner's current span
struct span_bins {
    uint32_t first[partial_bins]; // numbers of spans; 0: none
};

// What the volatile side knows of a span. Known spans have a number, at which this stands, so that they lie close
// together: a free looks at one of these and little else. Number 0 stands for all spans that are not known. A cache
// line each, since neighbours may have different owners.
// Guarded by the class's lock, but used, notice, next, prev and bin belong to the owner while there is one.
struct alignas(64) span_state {
    std::atomic<thread_cache *> owner; // changes under the class's lock; may be compared without it
    // The owner's cache of the class. NULL without an owner, and while the span is in the owner's remote queue. Changes
    // under the class's lock; may be compared without it.
    std::atomic<class_cache *> entry;
    std::atomic<uint64_t> *bits; // its bitmap
    uint32_t used;               // blocks that are allocated or in the owner's cached word
    uint32_t notice;             // an owner's free that makes `used` this has more to do
    uint32_t head;               // page; 0: the number is not in use
    uint32_t reciprocal;         // of its class, as are the next two
    uint16_t span_mask;
    uint8_t size_class;
    uint8_t bin;
    uint32_t next; // in its bin, or among unused numbers
    uint32_t prev;
    uint32_t next_owned; // among the spans of its owner
    uint32_t prev_owned;
    uint32_t remote_next; // in the queue of spans that other threads freed into
};
static_assert(sizeof(span_state) == 64);
inline bool in_remote_queue(const span_state &state) {
    return state.owner.load(std::memory_order_relaxed) != nullptr &&
           state.entry.load(std::memory_order_relaxed) == nullptr;
}
inline constexpr uint32_t notice_never = UINT32_MAX;

// Blocks of a class that a thread freed in spans of its own, to be allocated first and last in, first out: they and
// what tells of them are still cached. They are free in the truth and in all counts.
struct freed_block {
    char *block;
    uint32_t number; // of its span
    uint32_t index;  // in it
};
inline constexpr uint32_t freed_blocks_max = 31;
struct alignas((freed_blocks_max + 1) * sizeof(freed_block)) freed_blocks {
    freed_block bottom; // not a block: what an empty stack's top is
    freed_block stack[freed_blocks_max];
};
static_assert(sizeof(freed_blocks) == alignof(freed_blocks));
inline bool is_bottom(const freed_block *place) {
    return reinterpret_cast<uintptr_t>(place) % alignof(freed_blocks) == 0;
}

// What a thread's cache holds of one class: blocks that it freed last; and the free blocks of one word of its current
// span's bitmap, from which it takes blocks. The word itself is the truth (H5): these blocks are free there until they
// are taken.
struct alignas(64) class_cache {
    freed_block *freed = nullptr; // the last one
    uint64_t free = 0;
    std::atomic<uint64_t> *word = nullptr;
    char *blocks = nullptr; // of the word's first bit
    uint32_t block_bytes = 0;
    uint32_t current = 0; // the span's number, as in the lists; 0: none
    uint32_t owned = 0;   // all spans that it owns
    span_bins bins{};     // those with free blocks, but the current one
};
static_assert(sizeof(class_cache) == 64);

inline constexpr uint32_t gate_shut = 1;
inline constexpr uint32_t gate_fence = 2;   // there is no process barrier: the fast path needs its own fence
inline constexpr uint32_t gate_checked = 4; // the heap is checked: no call takes the fast path

struct alignas(freed_blocks) thread_cache {
    std::atomic<uint32_t> busy{0}; // 1 while its thread works on the heap
    std::atomic<uint32_t> gate{0}; // written under the heap's gate lock
    ty_heap *heap = nullptr;
    thread_cache *next_in_heap = nullptr;   // guarded by the heap's gate lock
    thread_cache *next_in_thread = nullptr; // guarded by the caches lock, as is table
    thread_table *table = nullptr;
    uint64_t thread = 0; // its thread's number; as a child of a fork has it, its own
    class_cache classes[size_class_count_max];
    freed_blocks freed[size_class_count_max]; // by class; not touched before a block is freed
    // Heads of the spans that other threads freed into; guarded by the class's lock, may be compared with 0 without it.
    alignas(64) std::atomic<uint32_t> remote[size_class_count_max]{};
};
inline bool is_part_of(const thread_cache *cache, const class_cache *entry) {
    return reinterpret_cast<uintptr_t>(entry) - reinterpret_cast<uintptr_t>(cache) < sizeof(thread_cache);
}

// What is known of the memory of free pages; page_memory.hpp has the functions, and P1. Guarded by pages_lock, but due.
// Counts are of pages.
struct page_memory {
    // A bit a page; NULL where the owner takes no memory back. Of a free page: it may be resident. Of one in use: what
    // it was when it was taken.
    std::atomic<uint64_t> *touched = nullptr;
    uint64_t used = 0; // in use; after an attach the free ones count too, until they are freed again
    uint64_t idle = 0; // P1
    uint64_t peak = 0; // of used, in this period, and in the one before
    uint64_t peak_before = 0;
    uint64_t period_start = 0;
    uint64_t period_ns = uint64_t{50} * 1000 * 1000;
    uint64_t next = 0;       // area for decay to look at
    uint64_t next_donor = 0; // and for who wants memory
    std::atomic<bool> due{false};
    std::atomic<bool> zeros{false}; // free pages whose bit is clear read as zeros
};

struct alignas(64) class_spans {
    os::mutex lock{os::lock_rank::span_class};
    span_bins shared{}; // known spans without owner that have free blocks
};

} // namespace taiyen

struct ty_heap {
    // Set by attach (and raise), read without locks.
    char *base;
    taiyen::page_descriptor *descriptors;
    std::atomic<uint64_t> *bitmaps;
    taiyen::span_state *states;
    std::atomic<uint32_t> *span_numbers; // by page: of known spans; else 0
    std::atomic<uint64_t> top;           // H7: pages below it have been used; written under pages_lock
    uint64_t *heads;
    uint64_t *remote_bits; // as bitmaps: blocks freed by others than the owner; guarded by the class's lock
    taiyen::heap_header *header;
    uint64_t limit_bytes;
    uint64_t first_table_page;
    size_t page_count; // that the volatile tables have room for
    taiyen::heap_owner owner;
    taiyen::os::page_mover mover; // used if the owner's pages are movable
    uint32_t class_count;
    uint32_t small_max; // the largest class's block size
    uint16_t slot;      // in the address table
    bool writable;
    bool barrier;                // os::process_barrier works
    taiyen::check_hooks *checks; // NULL: none; set before the heap is used

    alignas(64) taiyen::class_info classes[256];       // those from class_count on have no blocks
    uint8_t class_of[taiyen::small_bytes_max / 8 + 1]; // by (size + 7) / 8

    alignas(64) taiyen::os::mutex pages_lock{taiyen::os::lock_rank::pages};
    uint64_t used_pages; // of spans and runs, more or fewer since the heap was attached
    uint64_t soft_pages; // limits of these; UINT64_MAX: none
    uint64_t hard_pages;
    bool beyond_soft; // and told, or about to be
    ty_limit_callback *limit_reached;
    void *limit_context;
    uint64_t provided;          // pages that may be touched; at least top
    uint64_t sweep_next;        // spans below it are known
    uint32_t numbers_used;      // by spans so far
    uint32_t unused_number;     // first of those that were given up
    std::atomic<bool> swept;    // the sweep is over
    std::atomic<bool> soft_due; // the soft limit was passed: somebody is to be told
    taiyen::page_memory memory;

    alignas(64) taiyen::os::mutex gate_lock{taiyen::os::lock_rank::gate};
    taiyen::os::condition gate_opened;
    bool shut;        // guarded by gate_lock, as are pauser and caches
    bool fork_paused; // by the fork that is under way
    pthread_t pauser;
    taiyen::thread_cache *caches;
    uint64_t sweep_end;
    std::atomic<taiyen::heap_image *> image;
    std::atomic<taiyen::heap_service *> service;

    taiyen::class_spans spans[taiyen::size_class_count_max];
};

namespace taiyen {

inline uint64_t top_of(const ty_heap *heap) {
    return heap->top.load(std::memory_order_relaxed);
}
inline char *page_address(const ty_heap *heap, uint64_t page) {
    return heap->base + page * page_bytes;
}
inline std::atomic<uint64_t> *bitmap_of(const ty_heap *heap, uint64_t head) {
    return heap->bitmaps + head * bitmap_words_per_page;
}
inline uint64_t *remote_of(const ty_heap *heap, uint64_t head) {
    return heap->remote_bits + head * bitmap_words_per_page;
}
// Bits set in a word, without the instruction that not every processor has, and without a library's help.
inline uint32_t count_bits(uint64_t word) {
    word -= word >> 1 & 0x5555555555555555;
    word = (word & 0x3333333333333333) + (word >> 2 & 0x3333333333333333);
    word = (word + (word >> 4)) & 0x0f0f0f0f0f0f0f0f;
    return static_cast<uint32_t>(word * 0x0101010101010101 >> 56);
}
inline uint32_t number_of(const ty_heap *heap, uint64_t page) {
    return heap->span_numbers[page].load(std::memory_order_relaxed);
}
inline uint32_t head_of_span(const class_info &info, uint64_t page) { // H4
    return static_cast<uint32_t>(page & ~uint64_t{info.pages - 1u});
}

} // namespace taiyen
