// A session on a transactional heap. Each transaction that is committed is a point of the trace: it may be found from
// when its commit began, and must be from when the library said that it is durable.
//
// P1: points are in the order of the log. So "the transactions up to some LSN, each whole" is: the content
//     of one point, not older than the newest acknowledged one.
// P2: a commit that fails and leaves its transaction under way may have left it in a journal that no flush covered: its
//     point stays possible until a later one is acknowledged, also after a rollback.
#pragma once

#include "session.hpp"

namespace crash {

class txn_session : public session {
public:
    explicit txn_session(trace &on);

    // What the log says without the heap being open; it must agree with the open that follows.
    void read_log();
    void open(const open_choice &choice, const trace &expected, uint64_t event);

    // One transaction of any kind that ends in any way.
    void transaction(dice &random);
    // Many, of some KiB each: the log fills.
    void burst(dice &random);
    // So many that the log has no block left.
    void fill_ring(dice &random);
    // One that is durable when this returns.
    void commit_one(dice &random);
    // Transactions of two threads, whose log writes are in flight at the same time; the second's arrives first.
    void commit_two(dice &random);
    // Asks whether what was committed is durable, or waits for it.
    void poll(dice &random);
    void make_durable(dice &random);
    void reserve(dice &random);
    void cancel(dice &random);
    // The heap holds what the model says.
    void compare();

    void close();
    void discard();

private:
    struct asynchronous {
        uint64_t lsn;
        size_t index; // of its point
    };
    enum class ending { commit, commit_async, rollback };

    struct second_commit;

    ty_txn_stats stats() const;
    bool log_has_room() const;
    ty_txn *begin(dice &random, bool wait = true);
    bool change_in(ty_txn *txn, dice &random, uint64_t operations, bool everything);
    void end(ty_txn *txn, ending how, dice &random);
    bool commit(ty_txn *txn, bool wait);
    void rollback(ty_txn *txn);
    void end_in_two_phases(ty_txn *txn, bool commits, dice &random);
    void forget();

    content before_; // the transaction under way
    std::vector<reserved_block> reserved_;
    std::vector<reserved_block> reserved_before_;
    std::vector<asynchronous> unstable_; // what ty_commit_async returned since the last acknowledgement
    bool log_was_read_ = false;
    uint64_t lsn_read_ = 0;
};

} // namespace crash
