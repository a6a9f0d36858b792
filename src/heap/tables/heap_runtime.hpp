// The runtime state of a heap: everything that is made anew when a heap is attached. Locks, caches, who owns which
// span, the index of spans with free blocks. docs/design/heap.md, "Small blocks", and heap-threads.md tell how they
// work together.
#pragma once

#include "../heap.hpp"
#include "class_tables.hpp"
#include <atomic>

namespace taiyen {

inline constexpr uint64_t huge_page_pages = os::huge_page_bytes / page_bytes;

struct class_cache;
struct check_hooks;
struct parcel;
struct thread_cache;
struct thread_table;

// Spans with free blocks stand in bins by how full they are; the fullest bin comes first.
inline constexpr uint32_t partial_bins = 4;
inline constexpr uint8_t no_bin = partial_bins; // full spans, and an owner's current span
struct span_bins {
    uint32_t first[partial_bins]; // numbers of spans; 0: none
};

// What the runtime state knows of a span. Known spans have a number, at which this stands, so that they lie close
// together: a free looks at one of these and little else. Number 0 stands for all spans that are not known. A cache
// line each, since neighbours may have different owners.
// Guarded by the class's lock, but used, notice, next, prev and bin belong to the owner while there is one.
struct alignas(64) span_state {
    std::atomic<thread_cache *> owner; // changes under the class's lock; may be compared without it
    std::atomic<uint64_t> *bits;       // its bitmap
    std::atomic<uint32_t> pending;     // blocks that others than the owner free: remote.hpp
    std::atomic<uint32_t> remote_next; // in the queue of spans that have any
    uint32_t used;                     // blocks that are allocated or in the owner's cached word
    uint32_t notice;                   // an owner's free that makes `used` this has more to do
    uint32_t head;                     // page; 0: the number is not in use
    uint32_t reciprocal;               // of its class, as are the next two
    uint16_t span_mask;
    uint8_t size_class;
    uint8_t bin;
    uint32_t next; // in its bin, or among unused numbers
    uint32_t prev;
    uint32_t next_owned; // among the spans of its owner
    uint32_t prev_owned;
    std::atomic<uint32_t> refused; // of the pending ones: not to be freed, as somebody else has (R6)
};
static_assert(sizeof(span_state) == 64);
inline constexpr uint32_t pending_gone = UINT32_MAX; // instead of a count: the span is given back (R7)
// Not as long as a block is pending (R1): who freed it may be about to queue the span.
inline bool is_empty(const span_state &state) {
    return state.used == 0 && state.pending.load(std::memory_order_seq_cst) == 0;
}
// R7: an empty span is given back by who gets this; for others it is not there any more.
inline bool claim_empty(span_state &state) {
    uint32_t none = 0;
    return state.used == 0 && state.pending.compare_exchange_strong(none, pending_gone, std::memory_order_seq_cst);
}
inline constexpr uint32_t notice_never = UINT32_MAX;

// Blocks of a class that a thread freed in spans of its own, to be allocated first and last in, first out: they and
// what tells of them are still cached. They are free in the persistent metadata and in all counts.
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
// span's bitmap, from which it takes blocks. The word itself is the persistent metadata (H5): these blocks are free
// there until they are taken.
struct alignas(64) class_cache {
    freed_block *freed = nullptr; // the last one
    uint64_t free = 0;
    std::atomic<uint64_t> *word = nullptr;
    char *blocks = nullptr; // of the word's first bit
    uint32_t block_bytes = 0;
    uint32_t current = 0; // the span's number, as in the lists; 0: none
    uint32_t owned = 0;   // all spans that it owns
    uint32_t empty = 0;   // the one of these that is kept though it is empty (H8)
    span_bins bins{};     // those with free blocks, but the current one
};
static_assert(sizeof(class_cache) == 64);

// Blocks of a class that a thread holds: blocks/magazine.hpp. *bottom is NULL, which ends the stack; the last block is
// at top[-1].
struct magazine {
    char **top = nullptr;
    char **end = nullptr;
    uint32_t reciprocal = 0; // of the class, as is the next
    uint32_t span_mask = 0;
    char **bottom = nullptr;
};
enum class cached_free { cached, wrong, elsewhere };

// What the allocator knows of cached blocks: through a table, so that a program whose heaps hold nothing is linked
// without them. The calls work on a cache whose thread is the caller or stands still.
struct cached_calls {
    thread_cache *(*map)(const ty_heap *heap); // with its stacks; NULL with the error detail set
    void (*unmap)(thread_cache *cache);
    void (*make)(thread_cache *cache);
    void (*start)(thread_cache *cache); // the calling thread gets it
    void (*rest)(thread_cache *cache);  // its thread ends, and it keeps what it has
    void (*shut)(thread_cache *cache);  // it is about to give up what it has
    void (*end)(const thread_cache *cache);
    // NULL with the error detail set.
    void *(*take)(thread_cache *cache, uint32_t size_class);
    // Wrong: it is not the start of a block, or was the last one freed. Elsewhere: it is no small block.
    cached_free (*hold)(thread_cache *cache, const void *block);
    // The block was the last one of its class that this thread freed.
    bool (*is_last)(const thread_cache *cache, const void *block);
    // All that is on its way from this thread or to it gets there, as all threads stand still; and all that is held of
    // a class becomes free.
    void (*deliver)(thread_cache *cache);
    void (*let_go)(thread_cache *cache, uint32_t size_class);
    // Its thread is about to make a span, and holds no lock. True: there may be one without owner now.
    bool (*trim)(thread_cache *cache, uint32_t size_class);
    void (*stop)(ty_heap *heap); // at the heap's end
};
inline constexpr uint32_t outgoing_max = 62; // what a parcel has room for

inline constexpr uint32_t safepoint_requested = 1;
inline constexpr uint32_t safepoint_fence = 2;   // there is no process barrier: the fast path needs its own fence
inline constexpr uint32_t safepoint_checked = 4; // the heap is checked: no call takes the fast path
inline constexpr uint32_t safepoint_holds =
    8; // threads hold blocks: only the fast path of blocks/magazine.hpp is for it

// Runs that a thread freed and keeps for itself, by their pages; extent_cache.hpp has the rules (K1, K2).
inline constexpr uint32_t kept_pages_max = 16;    // of one
inline constexpr uint32_t kept_pages_total = 512; // of a thread
inline constexpr uint32_t kept_runs_max = 32;     // of a length
struct kept_runs {
    uint32_t pages = 0;
    uint8_t counts[kept_pages_max + 1]{};
    uint32_t firsts[kept_pages_max + 1][kept_runs_max];
};
// How often in a period of decay what caches hold is given up for others, where they are about to make spans.
inline constexpr uint64_t sharings_a_period = 10;

// Only heaps of so many bytes: what threads keep is nothing to them.
inline constexpr uint64_t kept_limit_min = uint64_t{1} << 30;

struct alignas(freed_blocks) thread_cache {
    std::atomic<uint32_t> busy{0};      // 1 while its thread works on the heap
    std::atomic<uint32_t> safepoint{0}; // written under the heap's safepoint lock
    ty_heap *heap = nullptr;
    // What blocks/magazine.hpp wants of the heap at once: its base, how far its tables tell of it (less than they do by
    // now, maybe: who finds an address beyond looks again), and its page_stacks.
    uintptr_t base = 0;
    uint64_t bytes = 0;
    std::atomic<magazine *> *page_stacks = nullptr;
    thread_cache *next_in_heap = nullptr;   // guarded by the heap's safepoint lock
    thread_cache *next_in_thread = nullptr; // guarded by the caches lock, as is table
    thread_cache *next_resting = nullptr;   // guarded by the heap's safepoint lock
    thread_table *table = nullptr;          // NULL: no thread has it, it rests (R5)
    uint64_t thread = 0;                    // its thread's number; as a child of a fork has it, its own
    bool asleep = false; // others settled it since its thread last took blocks from the persistent metadata: R9
    kept_runs kept;
    class_cache classes[size_class_count_max];
    magazine cached[size_class_count_max + 1];        // the last one, of no class, stays empty
    uint32_t magazine_filled[size_class_count_max]{}; // taken from the persistent metadata since the stack let go; 0:
                                                      // it never did
    uint32_t enlarged = 0;                            // so many stacks have room for more than at first
    os::space memory;                                 // where it lies, if its thread holds blocks
    uint64_t trimmed = 0;                             // when they last were made as at first
    freed_blocks freed[size_class_count_max];         // by class; not touched before a block is freed
    // Blocks of other threads' spans that this one freed, to be handed to them together; if threads hold blocks.
    uint32_t outgoing_count = 0;
    thread_cache *outgoing_to = nullptr; // who owned the spans of all of them; NULL: several, or nobody
    char *outgoing[outgoing_max];
    uint32_t outgoing_bytes = 0; // of them
    // And what others sent to this one: parcels.hpp.
    alignas(64) std::atomic<parcel *> inbox{nullptr};
    std::atomic<uint64_t> waiting_bytes{0}; // that others freed, and it has not looked at: R9; about right
    // The first spans in the queues of those that other threads freed into.
    alignas(64) std::atomic<uint32_t> remote[size_class_count_max]{};
};
inline bool is_part_of(const thread_cache *cache, const void *entry) {
    return reinterpret_cast<uintptr_t>(entry) - reinterpret_cast<uintptr_t>(cache) < sizeof(thread_cache);
}

// What is known of the memory of free pages; page_memory.hpp has the functions, and P1. Guarded by pages_lock, but due.
// Counts are of pages.
struct page_memory {
    static constexpr uint32_t long_run_pages = 64; // free extents of fewer are given back last (page_memory.cpp)
    // A bit a page; NULL where the owner takes no memory back. Of a free page: it may be resident. Of one in use: what
    // it was when it was taken.
    std::atomic<uint64_t> *touched = nullptr;
    // A bit a huge page: small pages were left there or came there, so that there may be a page table. It changes
    // without a lock.
    std::atomic<uint64_t> *small_pages = nullptr;
    std::atomic<bool> parts_move{false}; // parts of huge pages have moved
    uint64_t used = 0;                   // in use; after an attach the free ones count too, until they are freed again
    uint64_t idle = 0;                   // P1
    uint64_t peak = 0;                   // of used, in this period, and in the one before
    uint64_t peak_before = 0;
    uint64_t longest = 0; // run that was taken, likewise
    uint64_t longest_before = 0;
    uint64_t period_start = 0;
    uint64_t period_ns = uint64_t{50} * 1000 * 1000;
    uint32_t next_length = long_run_pages; // free extent for decay to look at: of so many pages or more,
    uint32_t next = 0;                     // and from here on
    bool found = false;                    // some, in this round over the free extents
    uint64_t barren = 0;      // so many pages were held when a round in this period found nothing; 0: none did
    bool gives_short = false; // short extents, too
    uint64_t next_donor = 0;  // extent for who wants memory to look at
    std::atomic<bool> due{false};
    std::atomic<bool> zeros{false}; // free pages whose bit is clear read as zeros
};

// How far huge pages are asked for as a heap grows (P2 in provide.hpp). Counts are of pages.
struct huge_growth {
    uint64_t found = 0; // of what the heap grew by, as much as was found in use
    uint64_t asked = 0; // for which huge pages were asked since
    uint64_t end = 0;   // it was looked at, as far as this
    uint64_t probe = 0; // from this page on as many as a huge one has are small, to be looked at next; 0: none
};

// The tables of the runtime state, one entry a page of the limit (states: a known span). They are mapped as far as
// `described` says. Those of a heap that has none of a kind are empty.
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
// start of each on (descriptors, bitmaps, head bits); and pages, from the base on.
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
    // Set by attach (and raise), read without locks.
    char *base;
    taiyen::page_descriptor *descriptors;
    std::atomic<uint64_t> *bitmaps;
    taiyen::span_state *states;
    std::atomic<uint32_t> *span_numbers; // by page: of known spans; else 0
    const taiyen::cached_calls *cached;  // NULL: threads hold nothing; else the next three are set
    // By page: the stack of the span's owner, for the span's class.
    std::atomic<taiyen::magazine *> *page_stacks;
    void (*wrong_free)(const void *block);
    size_t cache_alignment;    // a thread's cache starts at a multiple of it
    std::atomic<uint64_t> top; // H7: pages below it have been used; written under pages_lock
    uint64_t *heads;
    std::atomic<uint64_t> *remote_bits; // as bitmaps: blocks that others than the owner freed
    taiyen::heap_header *header;
    uint64_t limit_bytes;
    uint64_t first_table_page;
    taiyen::heap_owner owner;
    taiyen::os::page_mover mover; // used if the owner's pages are movable
    uint32_t class_count;
    uint32_t small_max; // the largest class's block size
    uint16_t slot;      // in the address table
    bool writable;
    bool left;                    // to the parent process: not writable
    std::atomic<bool> keeps_runs; // threads keep short extents that they free
    taiyen::check_hooks *checks;  // NULL: none; set before the heap is used

    alignas(64) taiyen::class_info classes[256];       // those from class_count on have no blocks
    uint8_t class_of[taiyen::small_bytes_max / 8 + 1]; // by (size + 7) / 8

    alignas(64) taiyen::os::mutex pages_lock{taiyen::os::lock_rank::pages};
    uint64_t used_pages; // of spans and runs, more or fewer since the heap was attached
    uint64_t soft_pages; // limits of these; UINT64_MAX: none
    uint64_t hard_pages;
    bool beyond_soft; // and told, or about to be
    ty_limit_callback *limit_reached;
    void *limit_context;
    uint64_t provided; // pages that may be touched; at least top
    // Pages whose entries in the tables, the volatile ones too, may be touched; at least provided. It only rises, and
    // may be read without the lock.
    std::atomic<uint64_t> described;
    taiyen::asked_parts asked;
    taiyen::volatile_tables tables; // changes when the heap is paused
    taiyen::huge_growth growth;     // guarded by pages_lock
    // Bit i: a huge page was asked for at place i from base; of 64 and on nothing is known. Who has a run may read it.
    std::atomic<uint64_t> huge_places;
    uint64_t sweep_next;        // spans below it are known
    uint32_t numbers_used;      // by spans so far
    uint32_t unused_number;     // first of those that were given up
    std::atomic<bool> swept;    // the sweep is over
    std::atomic<bool> soft_due; // the soft limit was passed: somebody is to be told
    taiyen::page_memory memory;

    // Y1 to Y5 in threads/safepoint.hpp.
    alignas(64) taiyen::os::mutex safepoint_lock{taiyen::os::lock_rank::safepoint};
    taiyen::os::condition safepoint_changed;
    uint32_t
        pauses;    // that are under way; 0: the safepoint is open. Guarded by safepoint_lock, as are all down to caches
    bool standing; // all threads stand still
    bool changing; // by the one pause that there is
    bool own;      // of the thread that restores the heap, which others do not know yet; by the caches' lock
    bool fork_paused;                   // by the fork that is under way; likewise
    bool barrier;                       // os::process_barrier works
    taiyen::thread_cache *ended_caches; // Y4; linked by next_resting
    taiyen::thread_cache *caches;
    taiyen::thread_cache *idle_caches;    // of threads that ended, for the next ones; linked by next_in_heap (R2)
    taiyen::thread_cache *resting_caches; // R5; linked by next_resting
    uint64_t all_resting_shared;          // when all of them last gave up what they had
    std::atomic<uint32_t> resting_count;  // of these; changes under safepoint_lock
    uint32_t cache_count;                 // in `caches`
    std::atomic<uint64_t> waiting_share;  // R9; changes under safepoint_lock
    std::atomic<uint32_t> enlarged;       // stacks of all caches
    uint64_t sweep_end;
    std::atomic<taiyen::heap_image *> image;
    std::atomic<taiyen::heap_service *> service;
    std::atomic<taiyen::end_watch *> end_watch; // heap_watch_end

    taiyen::class_spans spans[taiyen::size_class_count_max];
};

namespace taiyen {

inline uint64_t top_of(const ty_heap *heap) {
    return heap->top.load(std::memory_order_relaxed);
}
// Without the lock a head may become that of a kept extent (K1).
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
// Bits set in a word, without the instruction that not every processor has, and without a library's help. Not in line:
// it is called once a word, and in many places.
uint32_t count_bits(uint64_t word);
inline uint32_t number_of(const ty_heap *heap, uint64_t page) {
    return heap->span_numbers[page].load(std::memory_order_relaxed);
}
inline uint32_t head_of_span(const class_info &info, uint64_t page) { // H4
    return static_cast<uint32_t>(page & ~uint64_t{info.pages - 1u});
}

} // namespace taiyen
