// How long commits take, while a reader wants to know (BD3: without a reader nothing is measured): otherwise a commit
// loads one word.
#pragma once

#include "../txn.hpp"
#include "src/os/os.hpp"

#include <atomic>

namespace taiyen {

struct commit_times {
    // One in so many asynchronous commits is timed, as they may take less time than a clock read.
    static constexpr uint32_t asynchronous_every = 64;

    std::atomic<bool> wanted{false};
    std::atomic<uint32_t> turn{0};
    std::atomic<uint64_t> counts[commit_ways][commit_buckets];
};

// Times one commit, from the constructor to end(); a commit that fails does not call it.
class commit_watch {
public:
    // times NULL: nothing is timed. turn: the number of this commit, roughly.
    commit_watch(commit_times *times, commit_timed way, uint64_t turn) : times_(times), way_(way) {
        if (times != nullptr && times->wanted.load(std::memory_order_relaxed) &&
            (way == commit_timed::durable || turn % commit_times::asynchronous_every == 0)) [[unlikely]]
            begin();
    }
    void end() {
        if (began_ns_ != 0) [[unlikely]]
            note();
    }

private:
    [[gnu::cold]] void begin();
    [[gnu::cold]] void note();

    commit_times *times_;
    const commit_timed way_;
    uint64_t began_ns_ = 0;
};

} // namespace taiyen
