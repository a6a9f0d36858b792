// The façade of the stm layer: transactions of many threads at once on memory, whatever the memory is. It knows no
// heap, no file and no log. docs/design/stm.md tells how it works.
//
// Words of 8 bytes belong to stripes by their address. A stripe is a word that says when it was last stored to (a
// timestamp of the domain's clock), or who is about to. A transaction reads what was committed up to its start, keeps
// what it stores to itself, and stores it at its commit, with its stripes locked. Sources: Dice, Shalev, Shavit,
// "Transactional Locking II" (2006); Riegel, Felber, Fetzer, "A Lazy Snapshot Algorithm with Eager Validation" (2006).
//
// Q1: All that a transaction loads is of one state of the memory, also when it fails later.
// Q2: A word is stored to only with its stripe locked, and the stripe is unlocked with the timestamp of the commit.
// Q3: Who commits says so before it looks at what others ask of it (attention_). So who asks, and waits for the commits
//     that are under way, has missed nobody.
// Q4: While one transaction is alone, no other commits: it cannot lose.
// Q5: Before a word is stored to, its old value is noted for the readers that may still want it, or they are told that
//     it is not.
// Q6: Who waits for a change is known to those who commit before it looks for the last time.
// Q7: A transaction that is begun with patience::none waits for no other: where it would have to, it ends instead. So a
//     thread that has a transaction of another domain under way holds nobody up who waits for that one.
#pragma once

#include "../os/os.hpp"
#include "perturb.hpp"
#include "pile.hpp"
#include "write_set.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <taiyen/status.h>

namespace taiyen::stm {

class domain;

enum class conflict : uint8_t {
    locked,    // a word that is being committed to by another thread
    changed,   // a word that was committed to after something that depends on it was read
    alone,     // another transaction is alone
    forgotten, // an old value that was not kept
    elsewhere, // the thread would have had to wait in another domain (Q7)
    asked,     // none: the body asked for it
    count
};

// How a transaction reads. alone: no other commits meanwhile. old: what was there at its start; it stores nothing.
enum class manner : uint8_t { optimistic, old, alone };

enum class kind : uint8_t { writes, reads };
// Whether it waits for those who have stopped all, or are alone.
enum class patience : uint8_t { none, any };
enum class verdict : uint8_t { commit, roll_back, wait };

struct metrics {
    uint64_t commits;
    uint64_t conflicts[static_cast<size_t>(conflict::count)];
    uint64_t alone;       // transactions that ran alone
    uint64_t old_readers; // that read old values
};

// Who keeps what commits, for a domain whose memory is durable. Called by who commits, with its stripes locked; so what
// it is about to store over does not change meanwhile.
class transaction;
struct recorder {
    void *context;
    // Makes sure that the commit can be recorded. A failure is the transaction's.
    ty_status (*prepare)(void *context, transaction &own);
    // The commit has its timestamp. valid: it is in force, nothing is stored yet. Else there is no other use of the
    // timestamp; 0: it has not got one. Every timestamp comes by here, and by one thread between a prepare and this.
    void (*record)(void *context, transaction &own, uint64_t timestamp, bool valid);
    // All is stored, and nobody sees it yet. A failure has put back what was there. NULL: nothing to do.
    ty_status (*stored)(void *context, transaction &own, uint64_t timestamp);
};

// A thread's transaction in a domain; one at a time, used again and again. Not thread-safe, but as said.
class transaction {
public:
    // Begins; waits while the domain is stopped. The one before has ended. False: it would have to wait, and has not
    // begun (Q7).
    bool begin(kind what, manner how, patience waits = patience::any);
    bool runs() const { return runs_; }
    // From now on nobody else commits, or stops the domain, and all that it begins is alone, until let_go(). False: it
    // would have to wait. Runs none in both.
    [[nodiscard]] bool hold(patience waits);
    bool is_held() const { return held_; }
    void let_go(); // also where it does not hold it

    // Any bytes, also across words. False: the transaction is lost(), and *value may be there in part: the caller ends
    // it.
    [[nodiscard]] bool load(const void *address, void *value, size_t bytes);
    [[nodiscard]] bool store(void *address, const void *value, size_t bytes);
    // The same of a whole word, where nothing is in the way. False: nothing has changed; load() or store() knows why.
    [[nodiscard, gnu::always_inline]] inline bool load_at_once(const uint64_t *word, uint64_t *value);
    [[nodiscard, gnu::always_inline]] inline bool store_at_once(uint64_t *word, uint64_t value, uint64_t mask);
    // The words are wanted soon: their memory is asked for at once, not one after the other. A hint.
    void expect(const void *const *addresses, size_t count) const;

    // Within a part of it: the whole is to wait (run()).
    void wait_as_a_whole() {
        waits_ = true;
        lose(TY_E_BUSY);
    }
    bool waits() const { return waits_; }
    bool may_wait() const { return how_ == manner::optimistic; }
    conflict last_conflict() const { return last_conflict_; }
    // Loses: another domain's keeps it waiting, or its body wants to run again.
    void give_way_elsewhere() { lose(conflict::elsewhere); }
    void restart() { lose(conflict::asked); }
    // Waits while another is alone. False: it would have to.
    [[nodiscard]] bool let_alone_end(patience waits) const;
    // What it sees is of now, as far as nothing has changed that it has read: it keeps nothing in use any more that was
    // freed before. False: it is lost.
    [[nodiscard]] bool renew();

    // Why it cannot go on: TY_OK it can; TY_E_BUSY a conflict; TY_E_MEMORY with the error detail; TY_E_ARGUMENT it only
    // reads.
    ty_status lost() const { return lost_; }

    // False: it is lost, and has been rolled back. Ends it in both cases.
    [[nodiscard]] bool commit();
    void roll_back();
    // Ends, and sleeps until a word that it read is committed to by another. An optimistic one that is not lost. False:
    // it has read nothing.
    [[nodiscard]] bool await_change();

    // What it reads was committed up to here: the clock at its begin, or later. And the timestamp of its last commit
    // that stored something.
    uint64_t start() const { return start_; }
    uint64_t timestamp() const { return timestamp_; }
    // What the last one was of that has ended: its own commit, or the state that it has seen.
    uint64_t last_timestamp() const { return stored_ ? timestamp_ : start_; }
    bool is_alone() const { return how_ == manner::alone; }

    // Parts that can be taken back: what was stored after the mark is as if it had not been, and is not committed.
    struct part_mark {
        write_set::mark_of_writes writes;
        size_t calls;
    };
    part_mark mark() { return {writes_.mark(), calls_.count()}; }
    void back_to(const part_mark &mark);

    // For the time after the end, in the order in which they came; of a part that was rolled back with that one's, when
    // the whole has ended. A transaction that loses is rolled back each time. TY_E_MEMORY: there is no room, and
    // nothing is called. They are called by call_due().
    ty_status call_after_commit(void (*function)(void *context), void *context) {
        return calls_.push({call_when::committed, function, context});
    }
    ty_status call_after_roll_back(void (*function)(void *context), void *context) {
        return calls_.push({call_when::rolled_back, function, context});
    }

    // Who has ended it calls this once it has asked what it wants to know of it: the calls may begin the next one.
    void call_due() {
        if (due_.count() != 0) [[unlikely]]
            call_all_due();
    }

    // What it is about to commit; for a recorder.
    const write_set &writes() const { return writes_; }
    // For who changes something that is no word of the memory, but stands for one: the commit is one to it, too.
    [[nodiscard]] bool touch(void *word);
    // And whether no other has committed to such a word since what this one sees. False: it is lost.
    [[nodiscard]] bool unchanged(const void *word);
    // Whether another commits to it just now: it may still fail.
    bool is_committed_to(const void *word) const;
    void *upper = nullptr; // of who stands above it

private:
    friend class domain;

    // A locked stripe's word: who has it, its place among those that it has, and 1.
    static constexpr unsigned place_bits = 40;
    static constexpr uint64_t id_max = (uint64_t{1} << (64 - place_bits)) - 1;

    struct locked_stripe {
        std::atomic<uint64_t> *stripe;
        uint64_t version; // before
    };
    enum class call_when : uint8_t { committed, rolled_back, always, never };
    struct call {
        call_when when;
        void (*function)(void *);
        void *context;
    };

    bool try_to_enter();
    bool enter(patience waits) { return try_to_enter() || enter_slowly(waits); }
    [[gnu::cold, gnu::noinline]] bool enter_slowly(patience waits);
    [[gnu::noinline]] bool begin_otherwise(patience waits);
    [[gnu::cold]] void call_all_due();
    void runs_no_more();
    bool load_settled(const std::atomic<uint64_t> *stripe, const uint64_t *word, uint64_t *value) const;
    bool load_word(const uint64_t *word, uint64_t *value);
    bool load_committed(const uint64_t *word, uint64_t *value);
    bool load_old(const uint64_t *word, uint64_t *value);
    bool move_start_up();
    bool reads_hold() const;
    bool lose(conflict kind);
    bool lose(ty_status status);
    bool holds(uint64_t version) const;      // whether it has locked a stripe that looks so
    uint64_t before(uint64_t version) const; // what such a stripe was then
    bool lock_stripes();
    void unlock_stripes();
    bool try_commit();
    void store_words();
    void release_stripes(uint64_t timestamp);
    void end(call_when outcome);
    void add_to(metrics &sums) const;

    // Written by its thread, read by who asks something of all: Q3.
    alignas(64) std::atomic<uint64_t> began_{0}; // the clock then, and 1; 0: none runs
    std::atomic<uint64_t> committing_{0};        // its timestamp will not be less; 0: it does not commit
    std::atomic<uint32_t> changes_{0};           // what it waits on: counts up when something may have changed
    std::atomic<uint64_t> waits_for_{0};         // the stripes, by the bits of their numbers
    alignas(64) domain *domain_ = nullptr;
    transaction *next_ = nullptr; // in the domain's list
    uint64_t id_ = 0;             // not 0
    uint64_t stops_ = 0;          // of the domain, at its begin
    uint64_t start_ = 0;          // it reads what was committed up to here
    uint64_t timestamp_ = 0;
    bool stored_ = false; // the one that ended last
    kind what_ = kind::writes;
    manner how_ = manner::optimistic; // load_at_once asks for this and lost_ by one instruction
    conflict last_conflict_ = conflict::count;
    ty_status lost_ = TY_OK;
    bool waits_ = false;
    bool runs_ = false;
    bool held_ = false; // its thread is alone also between its transactions
    pile<std::atomic<uint64_t> *> reads_;
    pile<locked_stripe> locks_;
    write_set writes_;
    pile<call> calls_;
    pile<call> due_;                   // of those that have ended
    std::atomic<uint64_t> commits_{0}; // metrics: written by its thread alone
    std::atomic<uint64_t> conflicts_[static_cast<size_t>(conflict::count)]{};
    std::atomic<uint64_t> alone_count_{0};
    std::atomic<uint64_t> old_count_{0};
};

struct options {
    unsigned stripe_bits = 20;           // 2 to this power stripes, of 8 bytes
    size_t old_bytes = size_t{32} << 20; // for old values, at most
    uint64_t clock = 0;                  // the last timestamp of before
    const recorder *keeper = nullptr;    // lives as long as the domain; NULL: what commits is not kept
};

// What transactions have in common.
class domain {
public:
    // Expected: TY_E_MEMORY.
    static ty_status create(const options &wanted, domain **made);
    void destroy(); // no transaction is left

    // A transaction for the calling thread, or one that follows it. Expected: TY_E_MEMORY. Thread-safe.
    ty_status join(transaction **made);
    void leave(transaction *left); // it does not run

    // All transactions have ended, but for those that wait for a change, and none begins until go_on. So the caller,
    // who runs none, may load and store directly. Externally serialised.
    void stop();
    void go_on();
    // While it is stopped: what its caller stored has timestamps up to this one.
    void advance(uint64_t timestamp) { clock_.store(timestamp, std::memory_order_release); }

    // All commits with timestamps up to this one are recorded and stored, but that of one that the caller is amid
    // (NULL: none). Thread-safe.
    void await(uint64_t timestamp, const transaction *but);
    // Returns once all that ran at the call have ended, or see all that was committed by then. The caller runs none.
    // Thread-safe.
    void quiesce();
    // Every transaction that runs, or will, sees what was committed up to this timestamp. Thread-safe.
    uint64_t oldest();
    bool any_runs(); // of a moment ago, if they are not stopped
    uint64_t now() const { return clock_.load(std::memory_order_acquire); }
    metrics count();

private:
    friend class transaction;

    // What is asked of all.
    static constexpr uint32_t ask_stop = 1;
    static constexpr uint32_t ask_alone = 2;
    static constexpr uint32_t ask_old = 4;
    static constexpr uint32_t ask_wake = 8;
    static constexpr uint32_t ask_ends = 16;

    static constexpr unsigned old_place_bits = 24;
    static constexpr uint64_t old_places = (uint64_t{1} << old_place_bits) - 1;
    struct old_value {
        const uint64_t *word;
        uint64_t value;
        uint64_t until; // the timestamp of the commit that stored another
        uint64_t next;  // of the stripe's, as heads_ has it
    };

    size_t stripe_number(const void *address) const {
        uint64_t line = reinterpret_cast<uintptr_t>(address) >> stripe_shift;
        return (line ^ line >> stripe_bits_) & stripe_mask_;
    }
    std::atomic<uint64_t> *stripe_of(const void *address) const { return stripes_ + stripe_number(address); }
    static constexpr unsigned stripe_shift = 5; // neighbouring words are often changed together

    size_t stripes_bytes() const; // and of the lists of old values
    size_t old_bytes() const;
    uint64_t unused_id();
    void ask(uint32_t what); // and waits for the commits that may not have heard; under lock_
    void no_longer(uint32_t what);
    void await_end_of(uint32_t what);
    bool is_asked(uint32_t what) const { return (attention_.load(std::memory_order_seq_cst) & what) != 0; }
    // Those under way; or until there are none. But one may go on.
    void await_commits(bool none, const transaction *but);
    bool take_ticket(patience waits);
    bool begin_alone(const transaction &who, patience waits); // false: it would have to wait for its turn
    void end_alone();
    ty_status begin_old();
    void end_old();
    void note_old(const write_set &writes, uint64_t timestamp);
    bool find_old(const uint64_t *word, uint64_t start, uint64_t *value) const;
    void wake(uint64_t stripes);
    // A bit for each stripe, of 64.
    uint64_t bit_of(const std::atomic<uint64_t> *stripe) const { return uint64_t{1} << (stripe - stripes_) % 64; }

    alignas(128) std::atomic<uint64_t> clock_{0};
    alignas(128) std::atomic<uint32_t> attention_{0};
    std::atomic<uint32_t> answered_{0}; // counts up when something is no longer asked,
    std::atomic<uint32_t> ended_{0};    // and when a transaction has ended and somebody waits for that
    std::atomic<uint64_t> stops_{0};    // that are over
    std::atomic<uint64_t> *stripes_ = nullptr;
    unsigned stripe_bits_ = 0;
    size_t stripe_mask_ = 0;
    recorder keeper_{};    // functions NULL: there is none
    bool barrier_ = false; // others' stores can be waited for: who begins needs no fence
    alignas(128) std::atomic<uint32_t> next_ticket_{0};
    std::atomic<uint32_t> serving_{0};
    os::mutex lock_{os::lock_rank::stm};
    transaction *first_ = nullptr; // guarded by lock_, as are these
    uint64_t last_id_ = 0;
    uint32_t old_readers_ = 0;
    uint32_t waiting_ = 0;
    uint32_t quiescing_ = 0;
    metrics left_{}; // of transactions that left
    // Old values, while there are readers of them: by stripe the newest, with the number of this time above.
    old_value *old_ = nullptr;
    std::atomic<uint64_t> *heads_ = nullptr;
    uint64_t old_max_ = 0;
    uint64_t old_time_ = 0; // changes while nobody notes anything
    std::atomic<uint64_t> old_used_{0};
    std::atomic<bool> old_full_{false};
};

// Q1. A value that was committed up to the start; false: somebody commits, or has done since. Loads and stores are
// ordered so that who sees the value of a commit sees that its stripe is, or was, locked.
[[gnu::always_inline]] inline bool transaction::load_settled(const std::atomic<uint64_t> *stripe, const uint64_t *word,
                                                             uint64_t *value) const {
    const uint64_t version = stripe->load(std::memory_order_acquire);
    perturb();
    *value = __atomic_load_n(word, __ATOMIC_ACQUIRE);
    perturb();
    return (version & 1) == 0 && (version >> 1 <= start_ || fault("stm_word_later_than_the_start_taken")) &&
           (stripe->load(std::memory_order_relaxed) == version || fault("stm_stripe_read_once"));
}

inline bool transaction::load_at_once(const uint64_t *word, uint64_t *value) {
    if (lost_ != TY_OK || how_ != manner::optimistic || !reads_.has_room() || writes_.may_have(word)) [[unlikely]]
        return false;
    std::atomic<uint64_t> *stripe = domain_->stripe_of(word);
    uint64_t loaded;
    if (!load_settled(stripe, word, &loaded)) [[unlikely]]
        return false;
    if (reads_.count() == 0 || reads_[reads_.count() - 1] != stripe)
        reads_.push_in_room(stripe);
    *value = loaded;
    return true;
}

inline bool transaction::store_at_once(uint64_t *word, uint64_t value, uint64_t mask) {
    return lost_ == TY_OK && what_ != kind::reads && writes_.put_new(word, value, mask);
}

inline bool is_word(const void *address, size_t bytes) {
    return bytes == sizeof(uint64_t) && reinterpret_cast<uintptr_t>(address) % sizeof(uint64_t) == 0;
}
// Half a word that does not lie across two.
inline bool is_half(const void *address, size_t bytes) {
    return bytes == sizeof(uint32_t) && reinterpret_cast<uintptr_t>(address) % sizeof(uint32_t) == 0;
}
inline unsigned bit_in_word(const void *address) {
    return static_cast<unsigned>(reinterpret_cast<uintptr_t>(address) % sizeof(uint64_t) * 8);
}
inline uint64_t *word_around(const void *address) {
    return reinterpret_cast<uint64_t *>(reinterpret_cast<uintptr_t>(address) & ~uintptr_t{7});
}

// Calls first; if it wants to wait, what it stored is taken back and second is called.
verdict either(transaction &own, verdict (*first)(transaction &own, void *context),
               verdict (*second)(transaction &own, void *context), void *context);

// Runs the body in a transaction until it commits, or the body has it rolled back, which leaves *committed false. The
// body may run many times. Once the transaction is lost its loads and stores are refused, and whatever the body returns
// it runs again, but where memory is short (TY_E_MEMORY) or it stored what it said it would not (TY_E_ARGUMENT). After
// some conflicts it runs so that it cannot lose. Within a transaction of the thread's own the body is a part of that
// one: rolled back alone, committed with it; if it waits, the whole does.
// wait: the body cannot go on as things are: it runs again when a word that it loaded has changed.
// The caller calls own.call_due() after it, where it was no part.
//
// TY_E_BUSY, where it was no part: it has been rolled back, and is to be run again by another call, with the same
// losses. Its last conflict says why: conflict::asked by its body; conflict::elsewhere. Else it would have had to wait
// and may not (patience::none, Q7); one that asks to wait for a change then gets TY_E_ARGUMENT.
struct attempts {
    bool alone = false; // it runs so from the first time on, and does not wait
    patience waits = patience::any;
    unsigned losses = 0; // so far: they count on
};
ty_status run(transaction &own, kind what, verdict (*body)(transaction &own, void *context), void *context,
              bool *committed, attempts &tried);

} // namespace taiyen::stm
