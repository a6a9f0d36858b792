// A processor kept awake for a thread that waits on it for a device.
#pragma once

#include "thread.hpp"

namespace taiyen::os {

// A processor on which nothing runs goes to sleep, and to wake it takes time: some microseconds, and tens of them where
// it is a virtual one, which its host must run again. A durable write sleeps twice, for the write and for the flush. So
// a thread of the lowest class (SCHED_IDLE) spins meanwhile on the processor where the writer waits: it runs only where
// nothing else would, and who wakes there takes its place at once. It costs time of a processor that nobody wanted.
class idle_poller {
public:
    // Starts the thread. Where the kernel does not let it have the lowest class, no idle poller runs. Expected:
    // TY_E_MEMORY.
    ty_status start();
    void stop(); // not between begin and end

    // The calling thread is about to wait for a device, for less than a millisecond: after that, it stops.
    // False: it is not kept, and there is no end(). One at a time is between begin and end; else thread-safe.
    bool begin();
    void end();

private:
    static constexpr uint64_t spin_ns_max = 1000000;
    static constexpr unsigned no_core = UINT32_MAX;

    void keep();
    bool follow_caller();

    thread thread_;
    std::atomic<uint32_t> ready_{0};    // 1: thread_id_ is known
    std::atomic<uint32_t> word_{0};     // odd: somebody waits
    std::atomic<bool> asleep_{false};   // must be woken when the word changes
    std::atomic<bool> stopping_{false}; // set before the word changes
    uint64_t thread_id_ = 0;            // 0: no idle poller runs
    unsigned core_ = no_core;           // where the thread was sent; changed by begin
};

// Whether an idle poller is worth it: tried, since it depends on the machine (its processors may not sleep), the disk
// (what takes long gains nothing) and on who else runs. Of some waits every second one is watched over; what was
// clearly shorter in most pairs is done until the next trial.
class idle_poller_trial {
public:
    static constexpr unsigned pairs = 32;
    static constexpr unsigned pairs_to_win = 20;
    // From one trial to the next: a lost one may have been bad luck, and costs little.
    static constexpr unsigned waits_when_won = 8192, waits_when_lost = 512;
    static constexpr uint64_t wait_ns_min = 20000; // what is shorter is no device's

    // For the next wait.
    bool wants_poller() const { return at_ < 2 * pairs ? at_ % 2 == 1 && bare_ns_ >= wait_ns_min : worth_it_; }
    // It took so long.
    void note(uint64_t wait_ns);

private:
    unsigned at_ = 0; // since the last trial began
    unsigned wins_ = 0;
    uint64_t bare_ns_ = 0; // of the pair's first
    bool worth_it_ = false;
};

} // namespace taiyen::os
