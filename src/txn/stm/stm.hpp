// The façade of the stm layer: software transactional memory, for transactions of many threads at once on any memory.
// It knows no heap, no file and no log. docs/design/stm.md explains it.
//
// Words of 8 bytes map to ownership records (orecs) by their address. An orec is a versioned lock: a word that holds
// the commit timestamp of the last store to it (by the domain's clock), or the transaction that has it locked. A
// transaction reads what was committed up to its start, buffers its stores, and writes them at its commit, with its
// orecs locked. Sources: Dice, Shalev, Shavit, "Transactional Locking II" (2006); Riegel, Felber, Fetzer, "A Lazy
// Snapshot Algorithm with Eager Validation" (2006).
//
// Q1: All loads of a transaction are of one state of the memory, also when it fails later.
// Q2: A word is stored to only with its orec locked, and the orec is unlocked with the timestamp of the commit.
// Q3: A committing transaction announces that (committing_) before it reads what others request (attention_). So a
//      thread that makes a request, and then waits for the commits under way, has missed none.
// Q4: While one transaction is in serial mode, no other commits: it cannot be aborted.
// Q5: Before a word is stored to, its old value is recorded for the readers that may still need it, or they learn that
//      it was not.
// Q6: A transaction that waits for a change is known to those that commit before it validates for the last time.
// Q7: A transaction begun with wait_policy::never waits for no other: where it would have to, it ends instead. So a
//      thread with a transaction of another domain under way delays no thread that waits for that one.
// Q8: A thread that commits needs no lock that is held while a thread waits for commits.
#pragma once

#include "write_set.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <taiyen/status.h>

namespace taiyen::stm {

class domain;

// An ownership record: the timestamp of the last commit that stored there, or the transaction that has locked it. A
// plain word, as a program's inline loads read it too.
using orec = uint64_t;
inline uint64_t load_orec(const orec *from) {
    return __atomic_load_n(from, __ATOMIC_ACQUIRE);
}

enum class conflict : uint8_t {
    locked,       // a word is being committed to by another thread
    changed,      // a word was committed to after something that depends on it was read
    serial,       // another transaction is in serial mode
    evicted,      // an old value was not kept
    other_domain, // the thread would have had to wait in another domain (Q7)
    restart,      // no conflict: the body requested it
    count
};

// How a transaction reads. serial: no other commits meanwhile. old: the state at its start; it stores nothing.
enum class manner : uint8_t { optimistic, old, serial };

enum class kind : uint8_t { writes, reads };
// Whether it waits for a thread that has stopped the domain, or a transaction in serial mode.
enum class wait_policy : uint8_t { never, any };
enum class verdict : uint8_t { commit, roll_back, retry };

struct metrics {
    uint64_t commits;
    uint64_t conflicts[static_cast<size_t>(conflict::count)];
    uint64_t serial;      // transactions that ran in serial mode
    uint64_t old_readers; // transactions that read old values
};

// Records commits, for a domain whose memory is durable. Called by the committing thread with its orecs locked, so
// what it is about to overwrite does not change meanwhile.
class transaction;
struct recorder {
    void *context;
    // Makes sure that the commit can be recorded. A failure ends the transaction with this status.
    ty_status (*prepare)(void *context, transaction &own);
    // The commit has its timestamp. valid: the commit is in force, nothing is stored yet. Not valid: the timestamp has
    // no other use; 0: none was assigned. Every timestamp is passed to this function; each prepare that succeeded is
    // followed by one call of it, by the same thread.
    void (*record)(void *context, transaction &own, uint64_t timestamp, bool valid);
    // All words are stored, and not yet visible. On failure the function has put back what was there. NULL: nothing to
    // do.
    ty_status (*stored)(void *context, transaction &own, uint64_t timestamp);
    // The transaction is about to end without a commit, and has no orec locked. May be called twice for one.
    void (*discard)(void *context, transaction &own);
    // Whether each commit is recorded; otherwise only those of transactions with changed().
    bool every_commit;
};

// A thread's transaction in a domain; one at a time, reused. Not thread-safe, except where noted.
class transaction {
public:
    transaction() = default;
    ~transaction();
    transaction(const transaction &) = delete;
    transaction &operator=(const transaction &) = delete;

    // Words in the bytes from `base` on are loaded and stored by the fast paths: all of them must have memory, from now
    // on. Until the first call these are none.
    void set_range(const void *base, size_t bytes) {
        range_words_ = bytes / sizeof(uint64_t);
        window_.base = reinterpret_cast<uintptr_t>(base);
        if (runs_)
            open_window();
    }
    // Begins; waits while the domain is stopped. The one before must have ended. False: it would have to wait, and has
    // not begun (Q7: no waits with wait_policy::never).
    [[gnu::always_inline]] inline bool begin(kind what, manner how, wait_policy waits = wait_policy::any);
    bool runs() const { return runs_; }
    // Until release_domain(), no other thread commits or stops the domain, and every transaction that this one begins
    // is serial. False: it would have to wait. It must not run when either is called.
    [[nodiscard]] bool acquire_domain(wait_policy waits);
    bool is_exclusive() const { return exclusive_; }
    void release_domain(); // allowed also where it is not held

    // Any bytes, also across words. False: the transaction is aborted(), *value may be partly filled, and the caller
    // must end it.
    [[nodiscard]] bool load(const void *address, void *value, size_t bytes);
    [[nodiscard]] bool store(void *address, const void *value, size_t bytes);
    // The same for a whole word, on the fast path only. False: nothing has changed; load() or store() does the rest.
    [[nodiscard, gnu::always_inline]] inline bool load_at_once(uintptr_t word, uint64_t *value) {
        return ty_detail_load(&window_, word, value);
    }
    // value has no bits outside the mask.
    [[nodiscard, gnu::always_inline]] inline bool store_at_once(uintptr_t word, uint64_t value, uint64_t mask) {
        if (!ty_detail_is_fast(window_.base, window_.store_words, word) || may_store_slowly(word) ||
            !writes_.put_at_once(reinterpret_cast<uint64_t *>(word), value, mask)) [[unlikely]]
            return false;
        window_.written |= ty_detail_filter_bit(word);
        return true;
    }
    bool is_in_range(const void *address) const {
        return (reinterpret_cast<uintptr_t>(address) - window_.base) / sizeof(uint64_t) < range_words_;
    }
    // Until its end no store to these bytes takes the fast path.
    void store_slowly(const void *address, size_t bytes);
    // Loads or stores some bytes of a word.
    [[nodiscard]] bool load_in_word(const uint64_t *word, uint64_t mask, uint64_t *value);
    [[nodiscard]] bool store_in_word(uint64_t *word, uint64_t value, uint64_t mask);
    // Prefetches words that will soon be loaded, so that their cache misses overlap. A hint.
    void prefetch(const void *const *addresses, size_t count) const;

    bool may_wait() const { return how_ == manner::optimistic; }
    conflict last_conflict() const { return last_conflict_; }
    // Aborts the transaction: another domain's keeps it waiting, or its body wants to run again.
    void abort_for_other_domain() { abort(conflict::other_domain); }
    void restart() { abort(conflict::restart); }
    // Waits while another transaction is in serial mode. False: it would have to wait, and may not.
    [[nodiscard]] bool await_serial_end(wait_policy waits) const;
    // Moves its start to now, if nothing that it has read has changed: it no longer keeps blocks in use that were freed
    // before. False: it is aborted.
    [[nodiscard]] bool renew();

    // Why it cannot continue. TY_OK: it can. TY_E_BUSY: a conflict. TY_E_MEMORY: with the error detail. TY_E_ARGUMENT:
    // it is read-only.
    ty_status aborted() const { return aborted_; }

    // Ends the transaction. False: it is aborted, and has been rolled back.
    [[nodiscard, gnu::always_inline]] inline bool commit();
    void roll_back();
    // Ends the transaction, and sleeps until another commits to a word that it read. For an optimistic one that is not
    // aborted. False: it has read nothing.
    [[nodiscard]] bool await_change();

    // start: it reads what was committed up to here, the clock at its begin or later. timestamp: of its last commit
    // that stored something.
    uint64_t start() const { return window_.start; }
    uint64_t timestamp() const { return timestamp_; }
    // The state that the last ended transaction belongs to: its own commit, or what it read.
    uint64_t last_timestamp() const { return stored_ ? timestamp_ : window_.start; }
    bool is_serial() const { return how_ == manner::serial; }

    // Parts that can be rolled back: what was stored after the savepoint is discarded, and not committed.
    struct part_savepoint {
        write_set::writes_savepoint writes;
        size_t calls;
    };
    part_savepoint savepoint() { return {writes_.savepoint(), calls_.count()}; }
    void back_to(const part_savepoint &to);

    // Calls made after the end, in the order in which they were registered; those of a part that was rolled back count
    // as rolled back, and are made when the whole has ended. A transaction that is aborted is rolled back each time.
    // TY_E_MEMORY: no room, and nothing will be called. call_due() makes the calls.
    ty_status call_after_commit(void (*function)(void *context), void *context) {
        return calls_.push({call_when::committed, function, context});
    }
    ty_status call_after_roll_back(void (*function)(void *context), void *context) {
        return calls_.push({call_when::rolled_back, function, context});
    }

    // Called by the code that ended the transaction, after it has read the outcome: the calls may begin the next one.
    void call_due() {
        if (due_.count() != 0) [[unlikely]]
            call_all_due();
    }

    // What it is about to commit; for a recorder.
    const write_set &writes() const { return writes_; }
    // For a change of something that is no word of the memory, but is represented by one: the commit counts as a store
    // to it.
    [[nodiscard]] bool touch(void *word);
    // False: it only reads, and is aborted with TY_E_ARGUMENT. what completes "cannot ... in a transaction that only
    // reads".
    [[nodiscard]] bool may_change(const char *what) {
        return what_ == kind::writes || abort(failure(TY_E_ARGUMENT, "%s in a transaction that only reads", what)
                                                  .remedy("run it without reads_only"));
    }
    // Its commit is recorded, and has a timestamp, whether it stores something or not.
    void changed() { has_changes_ = true; }
    // Whether no other transaction has committed to such a word after this one's start. False: it is aborted.
    [[nodiscard]] bool unchanged(const void *word);
    // Whether another transaction is committing to it now; that may still fail.
    bool is_locked_now(const void *word) const;

private:
    friend class domain;

    // The word of a locked orec: locked_bit, the owner's id (24 bits: more than a process has threads), the index in
    // its locks_. Others hold a timestamp.
    static constexpr uint64_t locked_bit = uint64_t{1} << 63;
    static constexpr unsigned index_bits = 39;
    static constexpr uint64_t index_mask = (uint64_t{1} << index_bits) - 1;
    static bool is_locked(uint64_t version) { return (version & locked_bit) != 0; }

    struct locked_orec {
        orec *at;
        uint64_t version; // before it was locked
    };
    enum class call_when : uint8_t { committed, rolled_back, always, never };
    struct call {
        call_when when;
        void (*function)(void *);
        void *context;
    };

    // Stores, so that of two threads that each store and then load what the other has stored, one sees it: this one, or
    // the other, which calls await_announcements() between the two.
    inline void announce(std::atomic<uint64_t> &field, uint64_t value) const;
    inline bool try_to_enter();
    bool enter(wait_policy waits) { return try_to_enter() || enter_slowly(waits); }
    [[gnu::cold, gnu::noinline]] bool enter_slowly(wait_policy waits);
    [[gnu::cold, gnu::noinline]] bool begin_otherwise(wait_policy waits);
    [[gnu::cold]] void call_all_due();
    inline void runs_no_more();
    [[gnu::cold, gnu::noinline]] void wake_those_that_await_ends() const;
    [[gnu::cold, gnu::noinline]] void end_manner();
    bool may_store_slowly(uintptr_t word) const {
        return slow_stores_ != 0 && (slow_stores_ & ty_detail_filter_bit(word / slow_bytes)) != 0;
    }
    inline void open_window(); // the fast paths may be taken, as its manner allows
    void close_window() { window_.load_words = window_.store_words = 0; }
    [[gnu::cold, gnu::noinline]] ty_status grow_reads();
    size_t reads_count() const { return static_cast<size_t>(window_.reads_end - reads_) - (reads_ != nullptr); }
    inline void clear_reads();
    [[gnu::cold, gnu::noinline]] void release_reads();
    bool note_read(orec *read);
    bool load_committed(const uint64_t *word, uint64_t *value);
    bool load_old(const uint64_t *word, uint64_t *value);
    bool extend_start();
    bool reads_hold() const;
    void discard_changes();
    bool abort(conflict kind);
    bool abort(ty_status status);
    bool holds(uint64_t version) const;      // whether it has locked the orec with this word
    uint64_t before(uint64_t version) const; // the version of such an orec before
    bool lock_orecs();
    [[gnu::cold, gnu::noinline]] bool rest_at_locked(unsigned *looks);
    [[gnu::cold, gnu::noinline]] void wake_waiting() const;
    void unlock_orecs();
    bool try_commit();
    void store_words();
    void release_orecs(uint64_t timestamp);
    inline void end(call_when outcome);
    [[gnu::cold, gnu::noinline]] void collect_due(call_when outcome);
    bool commit_stores();
    void add_to(metrics &sums) const;

    // Aborted, serial or on old values: no fast loads. Aborted, or without stores: no fast stores.
    ty_atomic_window window_{}; // at the transaction's begin: where programs find it
    size_t range_words_ = 0;
    // A 64-bit filter of where stores are slow, by pieces of so many bytes.
    static constexpr size_t slow_bytes = 64;
    uint64_t slow_stores_ = 0;
    orec **reads_ = nullptr; // NULL, and then the orecs that it read
    write_set writes_;
    os::array<locked_orec> locks_;

    // Written by its thread, read by threads that make a request to all (Q3: it is written before attention_ is read).
    alignas(64) std::atomic<uint64_t> began_{0}; // the clock at its begin, plus 1; 0: not running
    std::atomic<uint64_t> committing_{0};        // a lower bound of its timestamp; 0: not committing
    std::atomic<uint32_t> changes_{0};   // the futex on which it waits: counts up when something may have changed
    std::atomic<uint64_t> waits_for_{0}; // the orecs, as a 64-bit filter
    alignas(64) domain *domain_ = nullptr;
    transaction *next_ = nullptr; // in the domain's list
    uint64_t id_ = 0;             // not 0
    uint64_t stops_ = 0;          // the domain's count of stops at its begin
    uint64_t timestamp_ = 0;
    bool stored_ = false; // whether the one that ended last stored something
    kind what_ = kind::writes;
    manner how_ = manner::optimistic;
    conflict last_conflict_ = conflict::count;
    ty_status aborted_ = TY_OK;
    bool runs_ = false;
    bool exclusive_ = false;   // no other thread commits, also between its transactions
    bool has_changes_ = false; // its commit is recorded, also without a store
    os::array<call> calls_;
    os::array<call> due_;              // calls of ended transactions
    std::atomic<uint64_t> commits_{0}; // metrics: written by its own thread only
    std::atomic<uint64_t> conflicts_[static_cast<size_t>(conflict::count)]{};
    std::atomic<uint64_t> serial_count_{0};
    std::atomic<uint64_t> old_count_{0};
};

struct options {
    unsigned orec_bits = 20;             // 2 to this power orecs, of 8 bytes each
    size_t old_bytes = size_t{32} << 20; // for old values, at most
    uint64_t clock = 0;                  // the last timestamp of earlier runs
    const recorder *keeper = nullptr;    // lives as long as the domain; NULL: commits are not recorded
};

// What all transactions share.
class domain {
public:
    // Expected: TY_E_MEMORY.
    static ty_status create(const options &wanted, domain **made);
    void destroy(); // no transaction is left

    // A transaction for one thread at a time, as long as the domain. Thread-safe.
    void join(transaction &own);

    // Returns when all transactions have ended, but those that wait for a change; none begins until go_on. So the
    // caller, which runs none, may load and store directly. Externally serialised.
    void stop();
    void go_on();
    // While the domain is stopped: what its caller stored has timestamps up to this one.
    void advance(uint64_t timestamp) { clock_.store(timestamp, std::memory_order_release); }

    // Returns when all commits with timestamps up to this one are recorded and stored, except that of a transaction in
    // which the caller is (NULL: none). Thread-safe.
    void await(uint64_t timestamp, const transaction *but);
    // Returns once all transactions that ran at the call have ended, or read all that was committed by then. The caller
    // runs none. Thread-safe.
    void quiesce();
    // Every transaction that runs, or will run, reads what was committed up to this timestamp. Thread-safe.
    uint64_t oldest();
    bool any_runs(); // may be out of date, unless the domain is stopped
    uint64_t now() const { return clock_.load(std::memory_order_acquire); }
    // For threads that announce something, as transactions do their begin, without a fence: what they had announced
    // before is seen after await_announcements(). False: each needs a fence.
    bool announces_without_fence() const { return barrier_; }
    void await_announcements() const {
        if (barrier_ && !os::process_barrier())
            os::await_stores();
    }
    metrics count();

private:
    friend class transaction;

    // Requests to all transactions, in attention_.
    static constexpr uint32_t ask_stop = 1;
    static constexpr uint32_t ask_serial = 2;
    static constexpr uint32_t ask_old = 4;
    static constexpr uint32_t ask_wake = 8;
    static constexpr uint32_t ask_ends = 16;

    static constexpr unsigned old_index_bits = 24;
    static constexpr uint64_t old_index_mask = (uint64_t{1} << old_index_bits) - 1;
    struct old_value {
        const uint64_t *word;
        uint64_t value;
        uint64_t until; // the timestamp of the commit that overwrote it
        uint64_t next;  // next record of the orec, encoded as in heads_
    };

    size_t orec_number(const void *address) const {
        return ty_detail_orec_offset(reinterpret_cast<uintptr_t>(address), orec_mask_) / sizeof(orec);
    }
    orec *orec_of(const void *address) const {
        const size_t offset = ty_detail_orec_offset(reinterpret_cast<uintptr_t>(address), orec_mask_);
        return reinterpret_cast<orec *>(reinterpret_cast<char *>(orecs_) + offset);
    }

    // Calls use with each transaction until it returns false.
    template <class Use>
    void each(Use use) {
        transaction *at = first_.load(std::memory_order_seq_cst);
        while (at != nullptr && use(*at))
            at = at->next_;
    }
    size_t orecs_bytes() const; // also the size of heads_
    size_t old_bytes() const;
    void ask(uint32_t what); // also waits for commits that may have missed it; under lock_
    void no_longer(uint32_t what);
    void await_end_of(uint32_t what);
    bool is_asked(uint32_t what) const { return (attention_.load(std::memory_order_seq_cst) & what) != 0; }
    // Waits for the commits under way; if none, until no commit is under way. Ignores but.
    void await_commits(bool none, const transaction *but);
    bool take_ticket(wait_policy waits);
    bool begin_serial(const transaction &who, wait_policy waits); // false: it would have to wait for its turn
    void end_serial();
    ty_status begin_old();
    void end_old();
    void note_old(const write_set &writes, uint64_t timestamp);
    bool find_old(const uint64_t *word, uint64_t start, uint64_t *value) const;
    void wake(uint64_t orecs);
    // An orec's bit in a 64-bit filter.
    uint64_t bit_of(const orec *of) const { return uint64_t{1} << (of - orecs_) % 64; }

    alignas(128) std::atomic<uint64_t> clock_{0};
    alignas(128) std::atomic<uint32_t> attention_{0};
    std::atomic<uint32_t> answered_{0}; // counts up when a request is withdrawn
    std::atomic<uint32_t> ended_{0};    // counts up when a transaction ends and a thread waits for that
    std::atomic<uint64_t> stops_{0};    // completed stops
    orec *orecs_ = nullptr;
    size_t orec_mask_ = 0; // of the offset of one in bytes
    recorder keeper_{};    // functions NULL: none
    bool barrier_ = false; // the process barrier works: a beginning transaction needs no fence
    alignas(128) std::atomic<uint32_t> next_ticket_{0};
    std::atomic<uint32_t> serving_{0};
    os::mutex lock_{os::lock_rank::stm};
    // Q8: grows under lock_, and is read without.
    std::atomic<transaction *> first_{nullptr};
    uint64_t last_id_ = 0; // guarded by lock_, as are the members below
    uint32_t old_readers_ = 0;
    uint32_t waiting_ = 0;
    uint32_t quiescing_ = 0;
    // Old values, while there are readers of them: by orec the newest record, with old_time_ in its upper bits.
    old_value *old_ = nullptr;
    std::atomic<uint64_t> *heads_ = nullptr;
    uint64_t old_max_ = 0;
    uint64_t old_time_ = 0; // changes while no commit is recording
    std::atomic<uint64_t> old_used_{0};
    std::atomic<bool> old_full_{false};
};

inline uintptr_t word_around(const void *address) {
    return reinterpret_cast<uintptr_t>(address) & ~uintptr_t{7};
}
// Half of a word, not across two.
inline bool is_half(const void *address, size_t bytes) {
    return bytes == sizeof(uint32_t) && reinterpret_cast<uintptr_t>(address) % sizeof(uint32_t) == 0;
}
// Within one word, and at least a byte.
inline bool lies_in_word(const void *address, size_t bytes) {
    return bytes - 1 < 8 - reinterpret_cast<uintptr_t>(address) % 8;
}
inline unsigned bit_in_word(const void *address) {
    return static_cast<unsigned>(reinterpret_cast<uintptr_t>(address) % sizeof(uint64_t) * 8);
}

} // namespace taiyen::stm

#include "begin_end.hpp"
#include "run.hpp"
