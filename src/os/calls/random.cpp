#include "random.hpp"

#include "syscalls.hpp"

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <ctime>
#include <unistd.h>

namespace taiyen::os {

// Without randomness from the kernel: mixes time, process and a counter.
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

} // namespace taiyen::os
