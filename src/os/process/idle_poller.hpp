// Keeps a processor awake while a thread waits on it for a device.
#pragma once

#include "thread.hpp"

namespace taiyen::os {

// An idle processor goes to sleep, and waking it takes time: some microseconds, and tens of them for a virtual one,
// which its host must schedule again. A durable write sleeps twice, for the write and for the flush. So a thread of the
// lowest class (SCHED_IDLE) spins meanwhile on the writer's processor: it runs only if nothing else would, and a thread
// that wakes there preempts it at once. It uses only processor time that would be idle.
class idle_poller {
public:
    // Starts the thread. Where the kernel refuses it the lowest class, no idle poller runs. Expected: TY_E_MEMORY.
    ty_status start();
    void stop(); // not between begin and end

    // The calling thread is about to wait for a device. Polling stops after a millisecond. False: not polling; do not
    // call end(). Only one thread at a time may be between begin and end; otherwise thread-safe.
    bool begin();
    void end();

private:
    static constexpr uint64_t spin_ns_max = 1000000;
    static constexpr unsigned no_core = UINT32_MAX;

    void keep();
    bool follow_caller();

    thread thread_;
    std::atomic<uint32_t> ready_{0};    // 1: thread_id_ is known
    std::atomic<uint32_t> word_{0};     // odd: a thread waits
    std::atomic<bool> asleep_{false};   // must be woken when word_ changes
    std::atomic<bool> stopping_{false}; // set before word_ changes
    uint64_t thread_id_ = 0;            // 0: no idle poller runs
    unsigned core_ = no_core;           // the core to which the thread is bound; changed by begin
};

// Decides whether an idle poller pays, by trial, since it depends on the machine (its processors may not sleep), the
// disk (long waits gain nothing) and the load. In a trial every second wait is polled; if that was clearly shorter in
// most pairs, all waits are polled until the next trial.
class idle_poller_trial {
public:
    static constexpr unsigned pairs = 32;
    static constexpr unsigned pairs_to_win = 20;
    // Waits until the next trial: a lost one may have been bad luck, and costs little.
    static constexpr unsigned waits_when_won = 8192, waits_when_lost = 512;
    static constexpr uint64_t wait_ns_min = 20000; // shorter waits are not for a device

    // Whether to poll in the next wait.
    bool wants_poller() const { return at_ < 2 * pairs ? at_ % 2 == 1 && bare_ns_ >= wait_ns_min : worth_it_; }
    // Records the duration of a wait.
    void note(uint64_t wait_ns);

private:
    unsigned at_ = 0; // waits since the last trial began
    unsigned wins_ = 0;
    uint64_t bare_ns_ = 0; // of the pair's first wait, without poller
    bool worth_it_ = false;
};

} // namespace taiyen::os
