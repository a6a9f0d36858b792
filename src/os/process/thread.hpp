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

// In the order in which they may be taken. A thread that holds one may wait for later ones, and for nothing that a
// program does in a callback: docs/design/heap-threads.md, "Locks".
enum class lock_rank : uint8_t {
    groups = 0,          // outcomes for resource managers of a group; they may use heaps
    code_record = 1,     // a heap's record of its code
    registry = 2,        // the list of open heaps
    refreshes = 3,       // one refresh of a follower at a time
    snapshots = 4,       // snapshots of a transactional heap
    log_buffers = 5,     // who takes records from a shared heap's log buffer to its log
    reservations = 6,    // reserved blocks of a transactional heap
    image = 7,           // one snapshot, checkpoint or close at a time on a heap
    members = 8,         // members of a concurrent heap
    caches = 9,          // the table of heaps by address, and the list of threads' caches
    safepoint = 10,      // the heap's safepoint: stop-the-world pauses
    span_class = 11,     // spans of one size class of a heap
    pages = 12,          // page extents of a heap
    checks = 13,         // records of a checked heap
    deferred_frees = 14, // blocks of a concurrent heap, freed and not released
    journal = 15,        // work queue between a snapshot and the background thread
    marks_file = 16,     // the file of a heap's durable marks
    base_pages = 17,     // what a checkpoint keeps for marks
    stm = 18,            // the transactions of a domain, and requests to them
    log = 19,            // a log's buffers
    storage = 20,        // inside a storage implementation
    tracker = 21,        // the ranges whose write faults are handled
    page_mover = 22,     // page movers
    procedures = 23,     // the process's table of procedures
    work_errors = 24,    // errors of a heap's background work, to be reported
    retired = 25,        // memory of destroyed objects
    dangling = 26,       // the callback for dangling variables
};

// Whether this build checks ranks: a lock taken out of order then ends the process with a message.
bool lock_ranks_checked();

// The library's own implementation, as for conditions (M1: nothing of libc that may allocate): neither is a
// cancellation point, and a program that replaces pthread_mutex_lock may allocate in it. A waiting thread spins for a
// moment first, as a lock is held for less time than a sleep and a wake take; then it sleeps.
class mutex {
public:
    explicit constexpr mutex(lock_rank rank) : rank_(rank) {}
    void lock();
    bool try_lock(); // false: it is held
    void unlock();

private:
    friend class condition; // checks the rank before it waits
    void lock_slowly();

    // Low bits: 0: free, 1: held, 2: held, and a thread may sleep. High bits: the process's number. In a forked child,
    // a lock that a thread of its parent holds counts as free.
    std::atomic<uint32_t> word_{0};
    lock_rank rank_;
};

// Called in a forked child by its only thread: locks that others held become free.
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
    void wait(mutex &m); // may end spuriously
    void notify_all();   // with the mutex held, or after the condition was changed with it held

private:
    std::atomic<uint32_t> changes_{0};
    std::atomic<uint32_t> waiting_{0}; // changes under the mutex, so that a notifier sees waiters
};

// Waits until a word changes, in the kernel (futex); for uses where a condition is too slow or too large. A wait ends
// when the word is not `value` (checked under the kernel's lock, so that no wake is missed if the word is changed
// first), on a wake, after the timeout, or spuriously: the caller checks again.
inline constexpr uint64_t wait_for_ever = UINT64_MAX;
void wait_on(const std::atomic<uint32_t> &word, uint32_t value, uint64_t timeout_ns = wait_for_ever);
void wake_one(const std::atomic<uint32_t> &word);
void wake_all(const std::atomic<uint32_t> &word);

class thread {
public:
    // The thread blocks all signals except its own faults, and is not cancelled. Expected: TY_E_MEMORY.
    ty_status start(void *(*main)(void *), void *argument);
    void join();

private:
    static void *run(void *self);

    pthread_t thread_{};
    void *(*main_)(void *) = nullptr;
    void *argument_ = nullptr;
};

// A pause in a spin loop: leaves more of the core to its other hardware thread.
inline void pause_briefly() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

uint64_t now_ns(); // monotonic
uint64_t unix_time_s();
uint64_t unix_time_ns();
uint64_t process_id();
bool process_exists(uint64_t id); // of any user; true also for a zombie
uint64_t thread_id();             // of the calling thread, as gettid returns it
// The address of the thread control block, from which other threads find its thread-local data; 0: not known.
inline uintptr_t thread_pointer() {
#if defined(__x86_64__) && defined(__GLIBC__)
    uintptr_t pointer;
    __asm__("mov %%fs:0, %0" : "=r"(pointer));
    return pointer;
#else
    return 0;
#endif
}
bool thread_has_ended(uint64_t id); // a thread of this process, according to the kernel; false: not known

inline void yield() {
    sched_yield();
}

// The same, in a loop that ends when another thread has progressed, however long that takes. A thread of a real-time
// class sleeps for a moment: while it runs, no thread of a lower priority runs on its core. Async-signal-safe.
void give_way();

// Makes every running thread of the process execute a full memory barrier (membarrier, private expedited); false where
// the kernel cannot: then every fast path must use its own fence. It may be refused later although it was available, as
// a program can drop system calls: then process_barrier returns false, and nothing was done.
bool process_barrier_available();
[[nodiscard]] bool process_barrier();
// The fallback where it is refused: when it returns, earlier stores of other threads are visible, and their loads from
// now on see the stores that this thread has made. Takes 20 ms.
void await_stores();
bool process_barrier_register(); // the work of the first process_barrier_available()

} // namespace taiyen::os
