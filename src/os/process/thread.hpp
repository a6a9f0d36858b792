// Threads, locks and clocks over pthreads. Locks have ranks; a debug build checks that a thread takes them in rising
// order.
#pragma once

#include "../base/base.hpp"

#include <atomic>
#include <cstdint>
#include <pthread.h>
#include <sched.h>
#include <taiyen/status.h>

namespace taiyen::os {

// In the order in which they may be taken. Who holds one waits for those behind it, and for nothing that a program does
// in a callback: docs/design/heap-threads.md, "Locks".
enum class lock_rank : uint8_t {
    groups = 0,       // what resource managers of a group are to be told; they may use heaps
    notes = 1,        // who notes code
    registry = 2,     // the list of open heaps
    snapshots = 3,    // who takes a snapshot of a transactional heap
    reservations = 4, // reserved blocks of a transactional heap
    image = 5,        // one snapshot, checkpoint or close at a time on a heap
    members = 6,      // who takes part in a concurrent heap
    caches = 7,       // the table of heaps by address, and the list of threads' caches
    safepoint = 8,    // the heap's safepoint: who pauses the allocators
    span_class = 9,   // spans of one size class of a heap
    pages = 10,       // page runs of a heap
    checks = 11,      // what a checked heap knows of its blocks
    leaving = 12,     // blocks of a concurrent heap that are freed and not given back
    journal = 13,     // work queue between a snapshot and the background thread
    stm = 14,         // the transactions of a domain, and what is asked of them
    log = 15,         // a log's buffers
    storage = 16,     // inside a storage implementation
    tracker = 17,     // the ranges whose write faults are handled
    page_mover = 18,  // how pages of a range are moved
    procedures = 19,  // the process's table of procedures
    work_errors = 20, // what a heap's background work left to be told
    retired = 21,     // memory of objects that are no more
    dangling = 22,    // whom to tell of variables that lead to blocks that are gone
};

// Whether this build checks ranks: a lock taken out of order then ends the process with a message.
bool lock_ranks_checked();

// Of the library's own making, as are conditions (M1): neither is a cancellation point, and a program that puts
// functions of its own in the place of pthread_mutex_lock may allocate in them. Who waits looks again for a moment
// first, as a lock is held for less time than the kernel takes to make a thread wait and wake it; then it sleeps.
class mutex {
public:
    explicit constexpr mutex(lock_rank rank) : rank_(rank) {}
    void lock();
    bool try_lock(); // false: somebody has it
    void unlock();

private:
    friend class condition; // which checks the rank before it waits
    void lock_slowly();

    // Below: 0: free, 1: held, 2: held, and somebody may sleep. Above: the process's number. In a child, what a thread
    // of its parent holds, which the child has not got, is free.
    std::atomic<uint32_t> word_{0};
    lock_rank rank_;
};

// In a forked child, by its one thread: locks that others held are free.
void note_fork();

class [[nodiscard]] lock_guard {
public:
    explicit lock_guard(mutex &m) : mutex_(m) { mutex_.lock(); }
    ~lock_guard() { mutex_.unlock(); }
    lock_guard(const lock_guard &) = delete;
    lock_guard &operator=(const lock_guard &) = delete;

private:
    mutex &mutex_;
};

class condition {
public:
    void wait(mutex &m); // may end for no reason
    void notify_all();   // with the mutex held, or after what it tells of was changed with the mutex held

private:
    std::atomic<uint32_t> changes_{0};
    std::atomic<uint32_t> waiting_{0}; // changes under the mutex, so that who notifies sees who waits
};

// Waiting for a word to change, in the kernel (futex); for what a condition is too slow or too large for. A wait ends
// when the word is not `value` (which is looked at under the kernel's lock, so no wake is missed by whoever changes the
// word first), when it is woken, after the timeout, or for no reason: the caller looks again.
inline constexpr uint64_t wait_for_ever = UINT64_MAX;
void wait_on(const std::atomic<uint32_t> &word, uint32_t value, uint64_t timeout_ns = wait_for_ever);
void wake_one(const std::atomic<uint32_t> &word);
void wake_all(const std::atomic<uint32_t> &word);

class thread {
public:
    // All signals but its own faults are blocked in it, and it is not cancelled. Expected: TY_E_MEMORY.
    ty_status start(void *(*main)(void *), void *argument);
    void join();

private:
    static void *run(void *self);

    pthread_t thread_{};
    void *(*main_)(void *) = nullptr;
    void *argument_ = nullptr;
};

// In a loop that looks at a word: leaves the core's other thread more of it.
inline void pause_briefly() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

uint64_t now_ns(); // monotonic
uint64_t unix_time_s();
uint64_t unix_time_ns();
uint64_t process_id();
bool process_exists(uint64_t id); // by any user; also where it has ended and nobody has asked how
uint64_t thread_id();             // of the calling thread, as gettid gives it
// Where its control block lies, from which others find its thread-local data; 0 where that is not known.
inline uintptr_t thread_pointer() {
#if defined(__x86_64__) && defined(__GLIBC__)
    uintptr_t pointer;
    __asm__("mov %%fs:0, %0" : "=r"(pointer));
    return pointer;
#else
    return 0;
#endif
}
bool thread_has_ended(uint64_t id); // of this process, for the kernel; false: not known

inline void yield() {
    sched_yield();
} // lets another thread run on this core

// The same, in a loop that ends when another thread has got on, however long that takes. A thread of a real-time class
// sleeps for a moment: as long as it runs, no thread of a lower priority does on its core. Async-signal-safe.
void give_way();

// Makes every running thread of the process execute a full memory barrier (membarrier, private expedited); false where
// the kernel cannot: then every fast path must use its own fence. What was available may be refused later, as a program
// can give up system calls: then process_barrier returns false, and nothing was done.
bool process_barrier_available();
[[nodiscard]] bool process_barrier();
// What can be done where it is refused: returns when the stores that other threads had made before are visible, and
// what they load from now on is newer than the stores that this thread has made. Takes 20 ms.
void await_stores();
bool process_barrier_register(); // what the first process_barrier_available() does

} // namespace taiyen::os
