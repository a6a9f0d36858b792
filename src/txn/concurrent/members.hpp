// The state of a concurrent heap, and of each thread on it. docs/design/concurrent.md describes how they work.
//
// A transaction of src/txn/stm keeps its stores to itself until it commits. Blocks are allocated in the heap at once,
// and freed after the commit, once no thread can read them any more.
//
// X26: A block that a transaction allocated is visible to others only from the commit on: a rollback frees it before
//     the transaction ends, and so does a recovery from a snapshot that holds the block and not the commit (the list of
//     reserved blocks names it).
// X22: A block that a commit frees stays in the heap until no transaction runs that began before the commit. A recovery
//     from a snapshot that holds the commit frees it.
// X23: The timestamp of a commit is its LSN in the log, and every timestamp is in the log: commits are recovered in the
//     order of their timestamps, without a gap.
// X24: A thread that changes the heap's blocks or roots for a transaction holds the registration latch meanwhile; a
//     commit that frees blocks, or makes blocks its own, holds it from before its timestamp on. A snapshot closes the
//     latch before it takes its redo point: so each block is on one side or the other.
// X25: A snapshot that is collected while others commit holds all that was stored up to its place in the log. It counts
//     once the log durably holds all that it may have of later commits.
// X32: What a transaction stores to a block that it allocated is in the block at once, in the order of its stores,
//     whether by ty_atomic_store or not; so it is never among the words that a commit stores. A part that is rolled
//     back restores what it has changed by ty_atomic_store in blocks of the whole transaction.
// X34: Only the commit that no record can hold is a snapshot: the thread's next one has a record again.
// X35: What a thread remembers of a heap that ended is never used, also where the next heap has its address.
#pragma once

#include "../transactions/transactions.hpp"
#include "deferred_frees.hpp"
#include "src/txn/stm/stm.hpp"

#include <taiyen/concurrent.h>

namespace taiyen {

struct retired_block {
    uint64_t timestamp; // of the commit that freed it
    uint64_t word;
    uint64_t words;
};
struct root_note {
    char name[TY_ROOT_NAME_MAX + 1];
    void *address;
    void *before; // once it is set
};

// A byte buffer that grows and is reused.
class scratch {
public:
    scratch() = default;
    ~scratch() { free(bytes_); }
    scratch(const scratch &) = delete;
    scratch &operator=(const scratch &) = delete;
    // Expected: TY_E_MEMORY. The old content is lost.
    ty_status provide(size_t bytes);
    void trim() { // releases memory beyond what most uses need
        if (room_ > kept_bytes) [[unlikely]]
            release();
    }
    uint8_t *begin() const { return bytes_; }
    template <class T>
    T *as() const {
        return reinterpret_cast<T *>(bytes_);
    }

private:
    static constexpr size_t kept_bytes = size_t{1} << 20;
    [[gnu::cold]] void release();

    uint8_t *bytes_ = nullptr;
    size_t room_ = 0;
};

// Finds a block among the notes of a transaction. forget() is called when notes are removed, or replaced.
class block_index {
public:
    bool finds(const os::array<block_note> &notes, uint64_t word);
    void forget() { capacity_ = covered_ = 0; }
    void trim() {
        slots_.trim();
        forget();
    }

private:
    bool cover(const os::array<block_note> &notes);

    scratch slots_;       // indexes of notes, from 1 on; 0: none
    size_t capacity_ = 0; // a power of two
    size_t covered_ = 0;  // number of notes that are in it
};

// X22: what a thread's commits have freed, in the order of timestamps. Pushed by the thread, taken by any thread that
// releases memory; with the registration latch held, so that a thread that has closed the latch sees all.
class retired_blocks {
public:
    ty_status reserve(size_t more);                                    // expected: TY_E_MEMORY
    void push(uint64_t timestamp, const os::array<block_note> &freed); // reserve() made room
    // Takes up to `most` of those freed at or before the timestamp `oldest`: no running transaction began earlier.
    size_t take(uint64_t oldest, block_note *to, size_t most);
    size_t count() const { return count_.load(std::memory_order_relaxed); }
    size_t words() const { return words_.load(std::memory_order_relaxed); }
    // With the latch closed.
    template <class Use>
    void each(Use use) const {
        for (size_t i = done_; i < blocks_.count(); i++)
            use(blocks_[i].word);
    }

private:
    os::mutex lock_{os::lock_rank::deferred_frees};
    static constexpr size_t spare = 256;
    os::array<retired_block> blocks_;
    size_t done_ = 0; // number of those that are taken
    size_t room_ = 0; // for at least so many more; of the thread that pushes
    std::atomic<size_t> count_{0};
    std::atomic<size_t> words_{0}; // of these
};

// X32: which blocks are the transaction's own, and what a part has to restore in them.
class allocations_of_txn {
public:
    void add(const char *base, const block_note &made);
    bool may_hold(uint64_t word) const { return word >= low_ && word < high_; }
    // Whether the bytes lie in one of them; precondition: may_hold() of their first word.
    bool holds(ty_heap *heap, const char *base, const os::array<block_note> &allocs, const void *address, size_t bytes);
    // Whether they lie in the one that was allocated or found last.
    [[gnu::always_inline]] bool last_holds(const void *address, size_t bytes) const {
        const size_t offset = reinterpret_cast<uintptr_t>(address) - last_at_;
        return offset < last_bytes_ && bytes <= last_bytes_ - offset;
    }
    void forget() {
        index_.forget();
        last_at_ = last_bytes_ = 0;
        low_ = UINT64_MAX;
        high_ = 0;
    }
    void trim() { index_.trim(); }

private:
    block_index index_;
    uintptr_t last_at_ = 0;
    size_t last_bytes_ = 0;
    uint64_t low_ = UINT64_MAX, high_ = 0; // in words
};

struct concurrent_heap;

enum class commit_way : uint8_t {
    record,   // a record in the log
    snapshot, // a snapshot holds it in place of a record
};

} // namespace taiyen

// A thread's transaction on a concurrent heap, reused from one to the next.
struct ty_atomic_txn : taiyen::stm::transaction, taiyen::running_body {
    taiyen::concurrent_heap *all;
    ty_atomic_txn *next_member; // in the heap's list
    uintptr_t thread;           // 0: it has ended

    // Of the transaction under way.
    taiyen::os::array<taiyen::block_note> allocs;
    taiyen::os::array<taiyen::block_note> frees;
    taiyen::block_index freed;
    taiyen::allocations_of_txn own_allocations;
    taiyen::os::array<taiyen::stm::written_word> old_values; // old values in own blocks, for parts that are rolled back
    uint32_t parts;                                          // number of parts that run
    taiyen::os::array<taiyen::root_note> roots;
    bool has_rwlock; // it is serial, and no snapshot is taken meanwhile: it may commit by one
    taiyen::commit_way way;
    ty_commit_mode mode;
    bool independent; // its record may be recovered alone
    bool waits;       // its body retries

    // Of its commit.
    uint32_t stream; // its own log stream
    uint32_t ring;   // the stream that the record goes to
    bool appending;  // a position in the log is held:
    uint8_t *reserved;
    bool too_long;   // it is too long for a record
    bool log_failed; // the log had no room, or was broken
    size_t roots_set;
    size_t record_bytes;
    taiyen::scratch record;
    taiyen::scratch sorting;
    taiyen::record_words words;

    // X31: the heaps that the next run of the outermost body has to itself from its begin on.
    static constexpr unsigned holds_max = 16;
    struct hold {
        ty_atomic_txn *txn;
        bool with_rwlock;
    };
    hold holds[holds_max];
    unsigned hold_count;

    std::atomic<uint32_t> at_latch; // X24: it holds the registration latch
    taiyen::retired_blocks retired;
    uint32_t ends;                 // transactions since the last check of what can be freed
    uint32_t commits;              // commits since the last check whether a snapshot is due
    uint64_t bytes_since;          // bytes of records, likewise
    std::atomic<uint64_t> records; // metrics: written by this thread alone
    std::atomic<uint64_t> logged_bytes;
    std::atomic<uint64_t> snapshot_waits;
    std::atomic<uint64_t> longest_snapshot_wait_ns;
};

namespace taiyen {

struct concurrent_heap : heap_service, atomic_transactions, thread_end_watcher {
    ty_heap *heap;
    txn_runtime *rt; // NULL: volatile
    char *base;
    uint64_t first_byte; // range in which blocks can lie, from the base
    uint64_t end_byte;
    const std::atomic<uint64_t> *used_pages;
    stm::domain *domain;
    os::fork_guard fork;

    alignas(8) uint64_t roots_version; // a word of the transactional memory: every commit of roots changes it

    os::mutex lock{os::lock_rank::members}; // guards the list
    ty_atomic_txn *first;                   // includes those whose threads have ended, for reuse by new threads
    os::mutex stop_lock{os::lock_rank::members};
    uint32_t stops;
    uint32_t members;
    std::atomic<size_t> left; // blocks freed by threads that have ended
    std::atomic<uint32_t> latch_closed;
    size_t listed;                    // number of blocks that the current snapshot has listed
    std::atomic<uint32_t> frees_wait; // X22: 1: a snapshot is being collected, so nothing is freed

    taiyen::deferred_frees deferred;
};

inline uint64_t word_at(const concurrent_heap &all, const void *address) {
    return (reinterpret_cast<uintptr_t>(address) - reinterpret_cast<uintptr_t>(all.base)) / 8;
}
inline void *address_of(const concurrent_heap &all, uint64_t word) {
    return all.base + word * 8;
}

// ---- members.cpp

// Expected: TY_E_ARGUMENT with a detail (the heap is not concurrent), TY_E_MEMORY.
ty_status concurrent_of(ty_heap *heap, concurrent_heap **found);
// The calling thread's, created by the first call. Expected: TY_E_ARGUMENT with a detail (the heap is not concurrent),
// TY_E_MEMORY.
ty_status find_member(ty_heap *heap, ty_atomic_txn **found);
// The heaps that this thread used last. A concurrent heap that ends makes them all unknown: one at its place is
// another.
struct known_members {
    static constexpr unsigned most = 4;
    uint64_t ends; // of concurrent heaps, when it was filled
    ty_heap *heaps[most];
    ty_atomic_txn *txns[most]; // the newest first
};
extern constinit thread_local known_members known_here;
extern constinit std::atomic<uint64_t> concurrent_ends;
inline ty_status member_of(ty_heap *heap, ty_atomic_txn **found) {
    const known_members &known = known_here;
    if (known.heaps[0] == heap && known.ends == concurrent_ends.load(std::memory_order_acquire)) [[likely]] {
        *found = known.txns[0];
        return TY_OK;
    }
    return find_member(heap, found);
}
// Adds what members count themselves.
void count_members(concurrent_heap &all, ty_atomic_stats *stats);
// NULL: it has none yet.
ty_atomic_txn *member_known(concurrent_heap &all);
// rt NULL: a volatile heap.
ty_status concurrent_create(ty_heap *heap, txn_runtime *rt, concurrent_heap **made);
void concurrent_destroy(concurrent_heap *all);

// ---- snapshot_latch.cpp

// X24: from latch_enter to latch_leave no other thread's snapshot collects, and no mark is made or returned to.
void latch_enter(ty_atomic_txn &txn);
// In a transaction: what a volatile heap closes the latch for waits for the transaction anyway.
inline void latch_enter_in_txn(ty_atomic_txn &txn) {
    if (txn.all->rt != nullptr)
        latch_enter(txn);
}
inline void latch_leave(ty_atomic_txn &txn) {
    txn.at_latch.store(0, std::memory_order_release);
}
void latch_close(concurrent_heap &all); // returns when no thread holds it
void latch_open(concurrent_heap &all);
extern const atomic_transactions atomic_transactions_of;

// ---- atomic_blocks.cpp

struct block_savepoint {
    size_t allocs;
    size_t frees;
    size_t roots;
    size_t old_values;
};
inline block_savepoint blocks_savepoint(const ty_atomic_txn &txn) {
    return {txn.allocs.count(), txn.frees.count(), txn.roots.count(), txn.old_values.count()};
}
void blocks_back_to(ty_atomic_txn &txn, const block_savepoint &to);
inline bool blocks_touched(const ty_atomic_txn &txn) {
    return (txn.allocs.count() | txn.frees.count() | txn.roots.count()) != 0;
}
// With the registration latch held, at a commit: before its timestamp, and once it has one. valid false: the commit
// failed.
ty_status blocks_prepare(ty_atomic_txn &txn);
void blocks_finish_commit(ty_atomic_txn &txn, uint64_t timestamp, bool valid);
// X32: whether all of the bytes lie in a block of the transaction's own; and the store to it.
inline bool is_own(ty_atomic_txn &txn, const void *address, size_t bytes);
ty_status store_own(ty_atomic_txn &txn, void *address, const void *value, size_t bytes);
// X22: frees blocks that no thread can read any more. Called within no transaction. Finding out which these are takes
// some microseconds: so it is not done for each block.
[[gnu::cold]] void retired_free_now(ty_atomic_txn &txn);
inline void retired_free_some(ty_atomic_txn &txn) {
    constexpr size_t words = 128 << 10;
    if (++txn.ends >= retired_at_once || txn.retired.count() >= retired_at_once || txn.retired.words() >= words)
        [[unlikely]]
        retired_free_now(txn);
}
// While transactions are stopped, or no thread uses the heap. False: there was nothing to free.
bool retired_free_all(concurrent_heap &all);

inline bool is_own(ty_atomic_txn &txn, const void *address, size_t bytes) {
    return txn.own_allocations.may_hold(word_at(*txn.all, address)) &&
           txn.own_allocations.holds(txn.all->heap, txn.all->base, txn.allocs, address, bytes);
}

// ---- nested_heaps.cpp

// X31: for the outermost body, with nothing held: waits for what the last run met, and takes what the next run needs to
// itself. A failure is the transaction's.
ty_status acquire_blockers(ty_atomic_txn &txn, bool needs_rwlock);
[[gnu::cold]] void holds_drop(ty_atomic_txn &txn, bool forget);
// Called when the outermost body has ended.
inline void blockers_forget(ty_atomic_txn &txn) {
    txn.hold_count = 0;
    txn.met = {};
}

// ---- atomically.cpp

// Why the transaction cannot continue, with the detail.
ty_status aborted(const ty_atomic_txn &txn);
inline void *aborted_pointer(const ty_atomic_txn &txn) {
    static_cast<void>(aborted(txn));
    return nullptr;
}
[[gnu::cold]] ty_status refuse_forked();
[[gnu::cold]] ty_status conflict_met();
[[gnu::cold]] ty_status not_in_blocks(const char *call, const void *address, size_t bytes);

// ---- records.cpp

stm::recorder recorder_of(concurrent_heap &all);

} // namespace taiyen
