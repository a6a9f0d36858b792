#include "thread.hpp"

#include "../base/base.hpp"
#include "../calls/calls.hpp"
#include "standard_error.hpp"

#include <atomic>
#include <climits>
#include <ctime>
#include <unistd.h>

namespace taiyen::os {
namespace {

#if defined(TAIYEN_DEBUG)
constexpr bool ranks_checked = true;
#else
constexpr bool ranks_checked = false;
#endif

// Bit n: this thread holds a mutex of rank n.
thread_local unsigned held_ranks;

[[noreturn]] void stop_with(const char *message, size_t bytes) {
    write_standard_error(message, bytes);
    __builtin_trap();
}

unsigned bit_of(lock_rank rank) {
    return 1u << static_cast<unsigned>(rank);
}

void note_locked(lock_rank rank) {
    static constexpr char message[] = "taiyen: a lock is taken out of the order of ranks\n";
    if (held_ranks >= bit_of(rank))
        stop_with(message, sizeof message - 1);
    held_ranks |= bit_of(rank);
}

void note_unlocked(lock_rank rank) {
    static constexpr char message[] = "taiyen: a lock is released that this thread does not hold\n";
    if (!(held_ranks & bit_of(rank)))
        stop_with(message, sizeof message - 1);
    held_ranks &= ~bit_of(rank);
}

} // namespace

bool lock_ranks_checked() {
    return ranks_checked;
}

// A process's number in the words of its locks: 4, and 4 more in each child. Never 0: a free word belongs to no
// process.
static constinit std::atomic<uint32_t> process_bits{4};
constexpr uint32_t held = 1, waited_for = 2, state_bits = 3;

// Y3: a fork leaves the child no lock of others.
void note_fork() {
    process_bits.fetch_add(fault("locks_stay_held_in_a_child") ? 0 : state_bits + 1, std::memory_order_relaxed);
}

static bool is_free(uint32_t word, uint32_t process) {
    return (word & ~state_bits) != process;
}

// Spins for less time than the two context switches of a sleep take.
constexpr unsigned looks_before_sleep = 100;

void mutex::lock() {
    if (ranks_checked)
        note_locked(rank_);
    uint32_t free = 0;
    const uint32_t own = process_bits.load(std::memory_order_relaxed) | held;
    if (!word_.compare_exchange_strong(free, own, std::memory_order_acquire, std::memory_order_relaxed)) [[unlikely]]
        lock_slowly();
}

// A thread that has slept takes the lock as waited_for, as others may still sleep.
[[gnu::cold]] void mutex::lock_slowly() {
    const uint32_t process = process_bits.load(std::memory_order_relaxed);
    for (unsigned i = 0;; i++) {
        const bool sleeps = i >= looks_before_sleep;
        const uint32_t own = process | (sleeps ? waited_for : held);
        uint32_t word = word_.load(std::memory_order_relaxed);
        const bool was_free = is_free(word, process);
        const bool taken = (was_free || (sleeps && word != own)) &&
                           word_.compare_exchange_weak(word, own, std::memory_order_acquire, std::memory_order_relaxed);
        if (taken && was_free)
            return;
        if (!sleeps)
            pause_briefly();
        else if (taken || word == own)
            wait_on(word_, own);
    }
}

bool mutex::try_lock() {
    const uint32_t process = process_bits.load(std::memory_order_relaxed);
    uint32_t word = word_.load(std::memory_order_relaxed);
    if (!is_free(word, process) ||
        !word_.compare_exchange_strong(word, process | held, std::memory_order_acquire, std::memory_order_relaxed))
        return false;
    if (ranks_checked)
        note_locked(rank_);
    return true;
}

void mutex::unlock() {
    if ((word_.exchange(0, std::memory_order_release) & state_bits) == waited_for)
        wake_one(word_);
    if (ranks_checked)
        note_unlocked(rank_);
}

void condition::wait(mutex &m) {
    if (ranks_checked) { // checked before the wait: the lock is taken again after it, when no lower one may be held
        note_unlocked(m.rank_);
        note_locked(m.rank_);
    }
    uint32_t seen = changes_.load(std::memory_order_relaxed); // changes after the condition, under the lock
    waiting_.fetch_add(1, std::memory_order_relaxed);
    m.unlock();
    wait_on(changes_, seen);
    m.lock();
    waiting_.fetch_sub(1, std::memory_order_relaxed);
}

void condition::notify_all() {
    changes_.fetch_add(1, std::memory_order_relaxed);
    if (waiting_.load(std::memory_order_relaxed) != 0)
        wake_all(changes_);
}

static const uint32_t *address_of(const std::atomic<uint32_t> &word) {
    static_assert(sizeof word == sizeof(uint32_t) && std::atomic<uint32_t>::is_always_lock_free);
    return reinterpret_cast<const uint32_t *>(&word);
}

void wait_on(const std::atomic<uint32_t> &word, uint32_t value, uint64_t timeout_ns) {
    constexpr uint64_t second = 1000000000;
    timespec timeout{static_cast<time_t>(timeout_ns / second), static_cast<long>(timeout_ns % second)};
    sys::futex_wait(address_of(word), value, timeout_ns == wait_for_ever ? nullptr : &timeout);
}

void wake_one(const std::atomic<uint32_t> &word) {
    sys::futex_wake(address_of(word), 1);
}

void wake_all(const std::atomic<uint32_t> &word) {
    sys::futex_wake(address_of(word), INT_MAX);
}

void *thread::run(void *self) {
    const thread &started = *static_cast<thread *>(self);
    not_cancelable whole;
    return started.main_(started.argument_);
}

ty_status thread::start(void *(*main)(void *), void *argument) {
    main_ = main;
    argument_ = argument;
    // The program's signals are not for the library's threads. Faults of the thread itself are: it may write to pages
    // that the signal tracker protects.
    sigset_t blocked;
    sigset_t before;
    sigfillset(&blocked);
    for (int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS})
        sigdelset(&blocked, own);
    int error = sys::signal_mask(SIG_SETMASK, &blocked, &before);
    if (error == 0) {
        error = sys::thread_create(&thread_, run, this);
        ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    }
    if (error == 0)
        return TY_OK;
    return failure(TY_E_MEMORY, "start a thread").cause(error).remedy("free memory, or raise ulimit -u, -v or -d");
}

void thread::join() {
    not_cancelable whole;
    pthread_join(thread_, nullptr);
}

void give_way() {
    constexpr uint64_t moment_ns = 50'000;
    static const std::atomic<uint32_t> nothing{0};
    int kept = errno;
    int scheduling = sys::scheduling_class();
    if (scheduling == SCHED_FIFO || scheduling == SCHED_RR)
        wait_on(nothing, 0, moment_ns);
    else
        yield();
    errno = kept;
}

uint64_t now_ns() {
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<uint64_t>(time.tv_sec) * 1000000000 + static_cast<uint64_t>(time.tv_nsec);
}

uint64_t process_id() {
    return uint64_t(getpid());
}

bool process_exists(uint64_t id) {
    return direct::call(SYS_kill, id, 0) == 0 || errno == EPERM;
}

uint64_t thread_id() {
    return static_cast<uint64_t>(direct::call(SYS_gettid));
}

[[gnu::cold]] bool thread_has_ended(uint64_t id) {
    int kept = errno;
    bool ended = direct::call(SYS_tgkill, getpid(), id, 0) < 0 && errno == ESRCH;
    errno = kept;
    return ended;
}

uint64_t unix_time_ns() {
    timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    return static_cast<uint64_t>(time.tv_sec) * 1000000000 + static_cast<uint64_t>(time.tv_nsec);
}

uint64_t unix_time_s() {
    timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    return static_cast<uint64_t>(time.tv_sec);
}

// Revoking access by a change of protection interrupts the processors that run the process's threads, on most machines;
// and a store leaves a processor within much less time than this wait.
void await_stores() {
    constexpr uint64_t long_enough_ns = 20'000'000;
    static const std::atomic<uint32_t> nothing{0};
    void *page = sys::mmap(nullptr, page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page != MAP_FAILED) {
        *static_cast<volatile char *>(page) = 1;
        sys::mprotect(page, page_bytes, PROT_NONE);
        sys::munmap(page, page_bytes);
    }
    uint64_t now = now_ns();
    for (uint64_t until = now + long_enough_ns; now < until; now = now_ns())
        wait_on(nothing, 0, until - now);
}

bool process_barrier_register() {
    return sys::membarrier(kernel::membarrier_register_private_expedited) == 0;
}

bool process_barrier_available() {
    static std::atomic<int> known{0}; // 0: not known yet, 1: yes, 2: no; a race only asks twice
    int answer = known.load(std::memory_order_relaxed);
    if (answer == 0) {
        answer = process_barrier_register() ? 1 : 2;
        known.store(answer, std::memory_order_relaxed);
    }
    return answer == 1;
}

bool process_barrier() {
    constexpr int attempts = 1000; // it fails for want of a few bytes of kernel memory, temporarily
    int kept = errno;
    bool done = false;
    for (int i = 0; i < attempts && !done; i++) {
        done = sys::membarrier(kernel::membarrier_private_expedited) == 0;
        if (!done && errno != ENOMEM && !process_barrier_register())
            break; // such as EPERM or ENOSYS from a filter of system calls
        if (!done)
            yield();
    }
    errno = kept;
    return done;
}

} // namespace taiyen::os
