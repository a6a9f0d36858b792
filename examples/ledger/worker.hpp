// The process that is killed: threads that post and settle orders without end, and one that reads all balances over and
// over. Through a pipe it reports what has been acknowledged as durable.
#pragma once

#include "branch.hpp"
#include <atomic>

namespace ledger {

struct message {
    enum class kind : uint64_t {
        started,     // the process runs; nothing is open yet
        opened,      // the heap is open
        posted,      // the order of this number is durably posted
        settled,     // the order of this number is durably settled
        transferred, // the transfer of this number, of this teller, is durable, and so are all of the teller's before
                     // it
        wrong,       // a reader saw a sum of balances that is not the bank's
    };
    kind what;
    uint64_t number;
    uint64_t teller = 0;
};

struct dice {
    uint64_t state;
    uint64_t below(uint64_t bound) { // xorshift64*
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        return (state * 0x2545f4914f6cdd1du >> 32) % bound;
    }
};

// One of the bank's clerks. Several work at once, each in its own thread.
class clerk {
public:
    clerk(ty_heap *heap, bank *b, uint64_t seed, int pipe); // pipe -1: reports nothing
    // One transaction; most of them commit durably, some leave it to a later one.
    void work();
    uint64_t commits() const { return commits_; }

private:
    void post_order();
    void settle_order();
    void commit(ty_txn *txn, message done, bool reports);

    static constexpr unsigned unreported_max = 16;
    ty_heap *heap_;
    bank *bank_;
    dice random_;
    int pipe_;
    uint64_t commits_ = 0;
    message unreported_[unreported_max]; // committed without waiting: reported once a later commit is durable
    unsigned unreported_count_ = 0;
};

// Transfers of one teller of a branch.
class transfers {
public:
    transfers(ty_heap *heap, branch *b, uint64_t number, uint64_t seed, int pipe) // pipe -1: reports nothing
        : heap_(heap), branch_(*b), teller_(b->tellers[number]), number_(number), random_{seed * 2 + 1}, pipe_(pipe) {}
    // One transaction; most are not waited for, but reported once a later one is durable.
    void work();
    uint64_t commits() const { return commits_; }

private:
    ty_heap *heap_;
    branch &branch_;
    teller &teller_;
    uint64_t number_;
    dice random_;
    int pipe_;
    uint64_t commits_ = 0;
};

// Returns only by an exception: the worker ends by being killed, and dies with its parent.
[[noreturn]] void run_worker(const std::string &path, int pipe, uint64_t seed, unsigned threads);
[[noreturn]] void run_tellers(const std::string &path, int pipe, uint64_t seed, unsigned threads);

// The options with which the branch's heap is opened or created.
ty_open_options options_of_branch();

} // namespace ledger
