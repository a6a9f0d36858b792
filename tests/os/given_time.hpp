// For tests that look whether a thread waits where it has to.
#pragma once

#include <ctime>
#include <fstream>
#include <pthread.h>
#include <sched.h>
#include <string>
#include <sys/syscall.h>

namespace taiyen::os {

// Lets another thread run until something is so, or for so long that it would have been done if nothing had held the
// thread back. Its own time counts, however busy the machine is. Async-signal-safe.
template <class Done>
void give_time_to(pthread_t thread, Done done) {
    constexpr uint64_t enough_ns = 5'000'000;
    clockid_t clock;
    pthread_getcpuclockid(thread, &clock);
    auto used_ns = [clock] {
        timespec used{};
        clock_gettime(clock, &used);
        return static_cast<uint64_t>(used.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(used.tv_nsec);
    };
    for (uint64_t begin = used_ns(); !done() && used_ns() - begin < enough_ns;)
        sched_yield();
}

// Whether a thread of this process, by the number that gettid gave it, sleeps in the kernel until a word changes.
inline bool waits_for_a_word(int thread) {
    std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/syscall");
    long number = -1;
    return thread != 0 && file >> number && number == SYS_futex;
}

} // namespace taiyen::os
