// The runtime state of a heap: everything that is rebuilt when a heap is attached. Locks, caches, owners of spans, the
// index of spans with free blocks. docs/design/heap.md, "Small blocks", and heap-threads.md explain how they work
// together.
#pragma once

#include "../heap.hpp"
#include "class_tables.hpp"
#include <atomic>

namespace taiyen {

inline constexpr uint64_t huge_page_pages = os::huge_page_bytes / page_bytes;

struct class_cache;
struct check_hooks;
struct remote_batch;
struct thread_cache;
struct thread_table;

// Spans with free blocks are in bins by how full they are; the fullest bin comes first.
inline constexpr uint32_t partial_bins = 4;
inline constexpr uint8_t no_bin = partial_bins; // full spans, and an owner's current span
struct span_bins {
    uint32_t first[partial_bins]; // numbers of spans; 0: none
};

// The runtime state of a span. Known spans have a number, the index of their state, so that states lie close together:
// a free accesses one of them and little else. Number 0 stands for all spans that are not known. A cache line each,
// since neighbours may have different owners.
// Guarded by the class's lock; but used, notice, next, prev and bin belong to the owner while there is one.
struct alignas(64) span_state {
    std::atomic<thread_cache *> owner; // changes under the class's lock; may be compared without it
    std::atomic<uint64_t> *bits;       // its bitmap
    std::atomic<uint32_t> pending;     // blocks being freed by threads that are not the owner: remote.hpp
    std::atomic<uint32_t> remote_next; // in the queue of spans with pending blocks
    uint32_t used;                     // blocks that are allocated or in the owner's cached word
    uint32_t notice;                   // after an owner's free that lowers `used` to this, after_free is called
    uint32_t head;                     // first page; 0: the number is not in use
    uint32_t reciprocal;               // of its class, as are the next two
    uint16_t span_mask;
    uint8_t size_class;
    uint8_t bin;
    uint32_t next; // in its bin, or among unused numbers
    uint32_t prev;
    uint32_t next_owned; // among the spans of its owner
    uint32_t prev_owned;
    std::atomic<uint32_t> refused; // pending blocks that are not to be freed, as another thread freed them (R6)
};
static_assert(sizeof(span_state) == 64);
inline constexpr uint32_t pending_gone = UINT32_MAX; // instead of a count: the span is released (R7)
// False while a block is pending (R1): the thread that freed it may be about to queue the span.
inline bool is_empty(const span_state &state) {
    return state.used == 0 && state.pending.load(std::memory_order_seq_cst) == 0;
}
// R7: a released span cannot be counted in. The thread that gets true releases the span; for others it no longer
// exists.
inline bool claim_empty(span_state &state) {
    uint32_t none = 0;
    return state.used == 0 && state.pending.compare_exchange_strong(none, pending_gone, std::memory_order_seq_cst);
}
inline constexpr uint32_t notice_never = UINT32_MAX;

// Blocks of a class that a thread freed in spans of its own; they are allocated first, last in, first out, as they and
// their metadata are still in the processor's cache. They are free in the persistent metadata and in all counts.
struct freed_block {
    char *block;
    uint32_t number; // of its span
    uint32_t index;  // in it
};
inline constexpr uint32_t freed_blocks_max = 31;
struct alignas((freed_blocks_max + 1) * sizeof(freed_block)) freed_blocks {
    freed_block bottom; // not a block: the top of an empty stack
    freed_block stack[freed_blocks_max];
};
static_assert(sizeof(freed_blocks) == alignof(freed_blocks));
inline bool is_bottom(const freed_block *place) {
    return reinterpret_cast<uintptr_t>(place) % alignof(freed_blocks) == 0;
}

// A thread's cache of one class: the blocks that it freed last; and the free blocks of one word of its current span's
// bitmap, from which it takes blocks. The word itself is persistent metadata (H5: bits are set exactly where
// allocated): these blocks are free there until they are taken.
struct alignas(64) class_cache {
    freed_block *freed = nullptr; // the last one
    uint64_t free = 0;
    std::atomic<uint64_t> *word = nullptr;
    char *blocks = nullptr; // the block of the word's first bit
    uint32_t block_bytes = 0;
    uint32_t current = 0; // the span's number, as in the lists; 0: none
    uint32_t owned = 0;   // number of spans that it owns
    uint32_t empty = 0;   // the one empty span that it keeps (H8); 0: none
    span_bins bins{};     // those with free blocks, except the current one
};
static_assert(sizeof(class_cache) == 64);

// The stack of a thread's cached blocks of a class: blocks/magazine.hpp. *bottom is NULL, which ends the stack; the
// last block is at top[-1].
struct magazine {
    char **top = nullptr;
    char **end = nullptr;
    uint32_t reciprocal = 0; // of the class, as is the next
    uint32_t span_mask = 0;
    char **bottom = nullptr;
};
enum class cached_free { cached, wrong, elsewhere };

// The allocator's interface to thread caches of blocks: a table, so that a program whose heaps have none is linked
// without them. The calls work on a cache whose thread is the caller or is stopped.
struct cached_calls {
    thread_cache *(*map)(const ty_heap *heap); // with its stacks; NULL with the error detail set
    void (*unmap)(thread_cache *cache);
    void (*make)(thread_cache *cache);
    void (*start)(thread_cache *cache); // the calling thread gets it
    void (*rest)(thread_cache *cache);  // its thread ends, and it keeps what it has
    void (*shut)(thread_cache *cache);  // it is about to release what it has
    void (*end)(const thread_cache *cache);
    // NULL with the error detail set.
    void *(*take)(thread_cache *cache, uint32_t size_class);
    // wrong: not the start of a block, or the last one freed. elsewhere: not a small block.
    cached_free (*hold)(thread_cache *cache, const void *block);
    // Whether the block was the last one of its class that this thread freed.
    bool (*is_last)(const thread_cache *cache, const void *block);
    // Delivers all remote frees from and to this cache, while all threads are stopped. let_go: frees all cached blocks
    // of a class.
    void (*deliver)(thread_cache *cache);
    void (*let_go)(thread_cache *cache, uint32_t size_class);
    // Its thread is about to make a span, and holds no lock. True: there may be a span without owner now.
    bool (*trim)(thread_cache *cache, uint32_t size_class);
    void (*stop)(ty_heap *heap); // at the heap's end
};
inline constexpr uint32_t outgoing_max = 62; // blocks in a remote-free batch

inline constexpr uint32_t safepoint_requested = 1;
inline constexpr uint32_t safepoint_fence = 2;     // no process barrier: the fast path needs its own fence
inline constexpr uint32_t safepoint_checked = 4;   // the heap is checked: no call takes the fast path
inline constexpr uint32_t safepoint_magazines = 8; // threads cache blocks: only magazine.hpp has a fast path

// Extents that a thread freed and keeps in its cache, by their pages; extent_cache.hpp has the rules (K1, K2).
inline constexpr uint32_t kept_pages_max = 16;    // of one extent
inline constexpr uint32_t kept_pages_total = 512; // of a thread
inline constexpr uint32_t kept_extents_max = 32;  // of one length
struct kept_extents {
    uint32_t pages = 0;
    uint8_t counts[kept_pages_max + 1]{};
    uint32_t firsts[kept_pages_max + 1][kept_extents_max];
};
// How often in a period of decay caches release what they hold for others that are about to make spans.
inline constexpr uint64_t sharings_a_period = 10;

// Only heaps of at least so many bytes have cached extents: there, what threads keep does not matter.
inline constexpr uint64_t kept_limit_min = uint64_t{1} << 30;

struct alignas(freed_blocks) thread_cache {
    std::atomic<uint32_t> busy{0};      // 1 while its thread works on the heap
    std::atomic<uint32_t> safepoint{0}; // written under the heap's safepoint lock
    ty_heap *heap = nullptr;
    // Copies of what blocks/magazine.hpp needs of the heap: its base, the bytes that its tables describe (possibly out
    // of date: an address beyond is looked up again), and its page_stacks.
    uintptr_t base = 0;
    uint64_t bytes = 0;
    std::atomic<magazine *> *page_stacks = nullptr;
    thread_cache *next_in_heap = nullptr;   // guarded by the heap's safepoint lock
    thread_cache *next_in_thread = nullptr; // guarded by the caches lock, as is table
    thread_cache *next_resting = nullptr;   // guarded by the heap's safepoint lock
    thread_table *table = nullptr;          // NULL: no thread has it, it rests (R5)
    uint64_t thread = 0;                    // its thread's id; in a forked child, that of the child's thread
    bool asleep = false; // R9: another thread flushed it since its thread last took blocks from the persistent metadata
    kept_extents kept;
    class_cache classes[size_class_count_max];
    magazine cached[size_class_count_max + 1]; // the last one, of no class, stays empty
    // Blocks taken from the persistent metadata since the stack's last let_go; 0: no let_go yet.
    uint32_t magazine_filled[size_class_count_max]{};
    uint32_t enlarged = 0;                    // number of enlarged stacks
    os::space memory;                         // where the cache lies, if threads cache blocks
    uint64_t trimmed = 0;                     // when the stacks were last shrunk
    freed_blocks freed[size_class_count_max]; // by class; not touched before a block is freed
    // Blocks of other threads' spans that this one freed, to be sent together; if threads cache blocks.
    uint32_t outgoing_count = 0;
    thread_cache *outgoing_to = nullptr; // the owner of all their spans; NULL: several owners, or none
    char *outgoing[outgoing_max];
    uint32_t outgoing_bytes = 0; // the size of these blocks
    // The remote-free queue, of what other threads sent to this one: remote_batches.hpp.
    alignas(64) std::atomic<remote_batch *> remote_queue{nullptr};
    std::atomic<uint64_t> waiting_bytes{0}; // R9: bytes that others freed and it has not received yet; approximate
    // The first spans in the queues of those into which other threads freed.
    alignas(64) std::atomic<uint32_t> remote[size_class_count_max]{};
};
inline bool is_part_of(const thread_cache *cache, const void *entry) {
    return reinterpret_cast<uintptr_t>(entry) - reinterpret_cast<uintptr_t>(cache) < sizeof(thread_cache);
}

// Runtime state of the memory of free pages; page_memory.hpp has the functions, and P1. Guarded by pages_lock, except
// due. Counts are of pages.
struct page_memory {
    static constexpr uint32_t long_run_pages = 64; // shorter free extents are trimmed last (page_memory.cpp)
    // A bit per page; NULL where the owner takes no memory back. For a free page: it may be resident. For one in use:
    // its bit when it was taken.
    std::atomic<uint64_t> *touched = nullptr;
    // A bit per huge page: it holds or held small pages, so there may be a page table. Changes without a lock.
    std::atomic<uint64_t> *small_pages = nullptr;
    std::atomic<bool> parts_move{false}; // parts of huge pages have been moved
    uint64_t used = 0;                   // in use; after an attach free pages count too, until they are freed again
    uint64_t idle = 0;                   // P1: free pages below top whose bit in `touched` is set
    uint64_t peak = 0;                   // of used, in this period, and in the one before
    uint64_t peak_before = 0;
    uint64_t longest = 0; // extent that was taken, likewise
    uint64_t longest_before = 0;
    uint64_t period_start = 0;
    uint64_t period_ns = uint64_t{50} * 1000 * 1000;
    uint32_t next_length = long_run_pages; // the next free extent for decay: of so many pages or more,
    uint32_t next = 0;                     // and from this page on
    bool found = false;                    // any memory, in this round over the free extents
    uint64_t barren = 0;                   // cached_pages() when a round in this period found nothing; 0: none did
    bool gives_short = false;              // decay includes short extents
    uint64_t next_donor = 0;               // page at which the search for memory donors continues
    std::atomic<bool> due{false};
    std::atomic<bool> zeros{false}; // free pages whose bit is clear read as zeros
};

// How far a growing heap has been advised for huge pages (P2 in provide.hpp). Counts are of pages.
struct huge_growth {
    uint64_t found = 0; // of what the heap grew by, as much as was found in use
    uint64_t asked = 0; // advised for huge pages since
    uint64_t end = 0;   // checked up to here
    uint64_t probe = 0; // from this page on, as many as a huge page has are small, to be checked next; 0: none
};

// The tables of the runtime state, one entry per page of the limit (states: per known span). They are mapped as far as
// `described` says. A heap without a kind of table has it empty.
enum volatile_table : uint32_t {
    table_states,
    table_remote,
    table_numbers,
    table_touched,
    table_small_pages,
    table_stacks,
    table_count
};
struct volatile_tables {
    os::space spaces[table_count];
};

// What the owner was asked for since the attach, and is not asked for again: bytes of the tables in the range, from the
// start of each (descriptors, bitmaps, head bits); and pages, from the base.
struct asked_parts {
    uint64_t bytes[3];
    uint64_t pages;
};

struct alignas(64) class_spans {
    os::mutex lock{os::lock_rank::span_class};
    span_bins shared{}; // known spans without owner that have free blocks
};

} // namespace taiyen

struct ty_heap {
    // Set by attach (and grow), read without locks.
    char *base;
    taiyen::page_descriptor *descriptors;
    std::atomic<uint64_t> *bitmaps;
    taiyen::span_state *states;
    std::atomic<uint32_t> *span_numbers; // by page: its known span's number; 0: none
    const taiyen::cached_calls *cached;  // NULL: threads cache no blocks; else the next three are set
    // By page: the owner's stack for the span's class.
    std::atomic<taiyen::magazine *> *page_stacks;
    void (*wrong_free)(const void *block);
    size_t cache_alignment;    // the alignment of thread caches
    std::atomic<uint64_t> top; // pages below it have been used (H7); written under pages_lock
    uint64_t *heads;
    std::atomic<uint64_t> *remote_bits; // like bitmaps: blocks that threads other than the owner freed
    taiyen::heap_header *header;
    uint64_t limit_bytes;
    uint64_t first_table_page;
    taiyen::heap_owner owner;
    taiyen::os::page_mover mover; // used if the owner's pages are movable
    uint32_t class_count;
    uint32_t small_max; // the largest class's block size
    uint16_t slot;      // in the address table
    bool writable;
    bool left;                       // it belongs to the parent process: not writable
    std::atomic<bool> keeps_extents; // threads cache short extents that they free
    taiyen::check_hooks *checks;     // NULL: none; set before the heap is used

    alignas(64) taiyen::class_info classes[256];       // those from class_count on have no blocks
    uint8_t class_of[taiyen::small_bytes_max / 8 + 1]; // by (size + 7) / 8

    alignas(64) taiyen::os::mutex pages_lock{taiyen::os::lock_rank::pages};
    uint64_t reached;    // the highest `top` before the last return to a mark; 0: none was higher
    uint64_t used_pages; // of spans and extents, relative to their number at the attach
    uint64_t soft_pages; // limits of used_pages; UINT64_MAX: none
    uint64_t hard_pages;
    bool beyond_soft; // and reported, or about to be
    ty_limit_callback *limit_reached;
    void *limit_context;
    uint64_t provided; // pages that may be touched; at least top
    // Pages whose entries in the tables, including the volatile ones, may be touched; at least provided. Only rises,
    // and may be read without the lock.
    std::atomic<uint64_t> described;
    taiyen::asked_parts asked;
    taiyen::volatile_tables tables; // changes only while the heap is paused
    taiyen::huge_growth growth;     // guarded by pages_lock
    // Bit i: huge page i from base was advised as huge; unknown from 64 on. The owner of an extent may read its bits.
    std::atomic<uint64_t> huge_places;
    uint64_t sweep_next;        // spans below it are known
    uint32_t numbers_used;      // span numbers used so far
    uint32_t unused_number;     // first of those that became free
    std::atomic<bool> swept;    // the sweep is complete
    std::atomic<bool> soft_due; // the soft limit was passed, to be reported
    taiyen::page_memory memory;

    // Y1 to Y5 in threads/safepoint.hpp: who may wait for a pause, and with which locks.
    alignas(64) taiyen::os::mutex safepoint_lock{taiyen::os::lock_rank::safepoint};
    taiyen::os::condition safepoint_changed;
    uint32_t pauses;  // under way; guarded by safepoint_lock, as is all down to caches
    bool stopped;     // all threads are stopped
    bool changing;    // by the only pause under way
    bool own;         // of the thread that restores the heap, unknown to others; guarded by caches_lock
    bool fork_paused; // by the fork under way; guarded by caches_lock
    bool barrier;     // os::process_barrier works
    taiyen::thread_cache *ended_caches; // Y4: of threads that ended in a pause; linked by next_resting
    taiyen::thread_cache *caches;
    taiyen::thread_cache *idle_caches;    // retired, for the next threads; linked by next_in_heap (R2)
    taiyen::thread_cache *resting_caches; // R5: with their spans, for the next threads; linked by next_resting
    uint64_t all_resting_shared;          // when all of them last released what they held
    std::atomic<uint32_t> resting_count;  // of resting_caches; changes under safepoint_lock
    uint32_t cache_count;                 // in `caches`
    std::atomic<uint64_t> waiting_share;  // R9: bytes that may wait for one owner; changes under safepoint_lock
    std::atomic<uint32_t> enlarged;       // enlarged stacks of all caches
    uint64_t sweep_end;
    std::atomic<taiyen::heap_image *> image;
    std::atomic<taiyen::heap_service *> service;
    std::atomic<taiyen::end_watch *> end_watch; // heap_watch_end
    taiyen::os::mutex marks_lock{taiyen::os::lock_rank::image};
    taiyen::heap_marks *marks; // guarded by marks_lock

    taiyen::class_spans spans[taiyen::size_class_count_max];
};

namespace taiyen {

inline uint64_t top_of(const ty_heap *heap) {
    return heap->top.load(std::memory_order_relaxed);
}
// Pages from here on were never used; those between `top` and it have been, and read as zeros again (H7).
inline uint64_t reached_by(const ty_heap *heap) {
    return top_of(heap) > heap->reached ? top_of(heap) : heap->reached;
}
// Atomic: without the lock a head may change to that of a kept extent (K1).
inline uint8_t kind_of(const page_descriptor &page) {
    return __atomic_load_n(&page.kind, __ATOMIC_RELAXED);
}
inline uint64_t described_bytes(const ty_heap *heap) {
    return heap->described.load(std::memory_order_acquire) * page_bytes;
}
inline char *page_address(const ty_heap *heap, uint64_t page) {
    return heap->base + page * page_bytes;
}
inline std::atomic<uint64_t> *bitmap_of(const ty_heap *heap, uint64_t head) {
    return heap->bitmaps + head * bitmap_words_per_page;
}
inline std::atomic<uint64_t> *remote_of(const ty_heap *heap, uint64_t head) {
    return heap->remote_bits + head * bitmap_words_per_page;
}
// The number of set bits, without the instruction that some processors lack, and without a library call. Not inline: it
// is called once per word, from many places.
uint32_t count_bits(uint64_t word);
inline uint32_t number_of(const ty_heap *heap, uint64_t page) {
    return heap->span_numbers[page].load(std::memory_order_relaxed);
}
inline uint32_t head_of_span(const class_info &info,
                             uint64_t page) { // H4: a span's head is known from any of its pages
    return static_cast<uint32_t>(page & ~uint64_t{info.pages - 1u});
}

} // namespace taiyen
