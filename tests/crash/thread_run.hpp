// Threads that change a concurrent heap at the same time, in all the ways there are: in each commit mode, alone, by
// plain stores, with rollbacks, snapshots and reads among them. What they commit goes into the history.
//
// The heap holds slots that lead to blocks. Each block has a value, and the sum of all values stays the same: no
// transaction may see another one.
#pragma once

#include "commit_history.hpp"

#include <functional>
#include <mutex>

namespace crash {

class thread_run {
public:
    // tolerant: TY_E_IO and TY_E_SPACE are no findings.
    thread_run(trace &on, commit_history &history, ty_heap *heap, bool tolerant)
        : on_(on), history_(history), heap_(heap), tolerant_(tolerant) {}

    // Makes the slots in an empty heap, or finds them.
    void prepare();
    // So many threads, so many changes each. amid: called by the first one halfway; may be empty.
    void run(uint64_t seed, unsigned threads, unsigned changes, const std::function<void()> &amid = {});
    // The sum, as it lies there.
    void check_sum();
    const finding &result() const { return found_; }

private:
    friend class changer;
    struct slots;

    void fail(verdict what, std::string text);
    bool accept(ty_status status, const char *call);
    void record(recorded_commit commit);
    void acknowledge(uint64_t lsn);

    trace &on_;
    commit_history &history_;
    ty_heap *heap_;
    const bool tolerant_;
    slots *slots_ = nullptr;
    commit_counters *counters_ = nullptr;
    std::mutex lock_; // guards the history and the finding
    finding found_;
};

} // namespace crash
