#include "thread.hpp"

#include "failure.hpp"
#include "kernel_abi.hpp"
#include "syscalls.hpp"

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
    ssize_t written = ::write(STDERR_FILENO, message, bytes);
    static_cast<void>(written);
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

void mutex::lock() {
    if (ranks_checked)
        note_locked(rank_);
    pthread_mutex_lock(&mutex_);
}

bool mutex::try_lock() {
    if (pthread_mutex_trylock(&mutex_) != 0)
        return false;
    if (ranks_checked)
        note_locked(rank_);
    return true;
}

void mutex::unlock() {
    pthread_mutex_unlock(&mutex_);
    if (ranks_checked)
        note_unlocked(rank_);
}

void condition::wait(mutex &m) {
    if (ranks_checked)
        note_unlocked(m.rank_);
    // Waiting takes the lock again: no lock of a higher rank may be held meanwhile.
    if (ranks_checked)
        note_locked(m.rank_);
    pthread_cond_wait(&condition_, &m.mutex_);
}

void condition::notify_all() {
    pthread_cond_broadcast(&condition_);
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

ty_status thread::start(void *(*main)(void *), void *argument) {
    // The program's signals are not for the library's threads. A fault of the thread itself is: it may write to pages
    // that the signal tracker protects.
    sigset_t blocked;
    sigset_t before;
    sigfillset(&blocked);
    for (int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS})
        sigdelset(&blocked, own);
    int error = sys::signal_mask(SIG_SETMASK, &blocked, &before);
    if (error == 0) {
        error = sys::thread_create(&thread_, main, argument);
        ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    }
    if (error == 0)
        return TY_OK;
    return failure(TY_E_MEMORY, "start a thread").cause(error).remedy("free memory, or raise the limit: ulimit -u");
}

void thread::join() {
    pthread_join(thread_, nullptr);
}

uint64_t now_ns() {
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<uint64_t>(time.tv_sec) * 1000000000 + static_cast<uint64_t>(time.tv_nsec);
}

uint64_t process_id() {
    return uint64_t(getpid());
}

uint64_t thread_id() {
    return static_cast<uint64_t>(::syscall(SYS_gettid));
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

// Where the kernel has no randomness to give, time, process and order are mixed: identities and nonces must differ,
// they need not be secret.
static uint64_t mixed_word() {
    static std::atomic<uint64_t> order{0};
    timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    uint64_t word = static_cast<uint64_t>(time.tv_nsec) ^ static_cast<uint64_t>(time.tv_sec) << 30 ^
                    static_cast<uint64_t>(getpid()) << 48;
    word += order.fetch_add(1, std::memory_order_relaxed) * 0x9e3779b97f4a7c15;
    word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9;
    word = (word ^ word >> 27) * 0x94d049bb133111eb;
    return word ^ word >> 31;
}

void random_bytes(void *bytes, unsigned count) {
    unsigned char *out = static_cast<unsigned char *>(bytes);
    while (count != 0) {
        ssize_t got = sys::getrandom(out, count);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            uint64_t word = mixed_word();
            got = count < sizeof word ? static_cast<ssize_t>(count) : static_cast<ssize_t>(sizeof word);
            __builtin_memcpy(out, &word, static_cast<size_t>(got));
        }
        out += got;
        count -= static_cast<unsigned>(got);
    }
}

bool process_barrier_register() {
    return sys::membarrier(kernel::membarrier_register_private_expedited) == 0;
}

bool process_barrier_available() {
    static std::atomic<int> known{0}; // 0: not asked yet, 1: yes, 2: no; asking twice does no harm
    int answer = known.load(std::memory_order_relaxed);
    if (answer == 0) {
        answer = process_barrier_register() ? 1 : 2;
        known.store(answer, std::memory_order_relaxed);
    }
    return answer == 1;
}

void process_barrier() {
    static constexpr char message[] = "taiyen: the kernel no longer allows membarrier, which it did before\n";
    constexpr int attempts = 10000; // it fails for want of a few bytes of kernel memory, which passes
    for (int i = 0; i < attempts; i++) {
        if (sys::membarrier(kernel::membarrier_private_expedited) == 0)
            return;
        process_barrier_register();
        sched_yield();
    }
    stop_with(message, sizeof message - 1); // going on would corrupt the heap
}

} // namespace taiyen::os
