// The process that is killed: threads that post and settle orders without end, and one that reads all balances over and
// over. What has been acknowledged as durable it tells through a pipe.
#pragma once

#include "ledger.hpp"
#include <atomic>

namespace ledger {

struct message {
    enum class kind : uint64_t {
        started, // the process runs; nothing is open yet
        opened,  // the heap is open
        posted,  // the order of this number is durably posted
        settled, // the order of this number is durably settled
        wrong,   // a reader saw a sum of balances that is not the bank's
    };
    kind what;
    uint64_t number;
};

// One of the bank's clerks. Several work at once, each in its own thread.
class clerk {
public:
    clerk(ty_heap *heap, bank *b, uint64_t seed, int pipe); // pipe -1: tells nobody
    // One transaction; most of them commit durably, some leave it to a later one.
    void work();
    uint64_t commits() const { return commits_; }

private:
    uint64_t below(uint64_t bound);
    void post_order();
    void settle_order();
    void commit(ty_txn *txn, message done, bool worth_telling);

    static constexpr unsigned untold_max = 16;
    ty_heap *heap_;
    bank *bank_;
    uint64_t state_;
    int pipe_;
    uint64_t commits_ = 0;
    message untold_[untold_max]; // committed without waiting: told once a later commit is durable
    unsigned untold_count_ = 0;
};

// Returns only by an exception: the worker ends by being killed, and dies with its parent.
[[noreturn]] void run_worker(const std::string &path, int pipe, uint64_t seed, unsigned threads);

} // namespace ledger
