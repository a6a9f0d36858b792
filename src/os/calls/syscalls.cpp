#include "syscalls.hpp"

namespace taiyen::os::sys {

constinit std::atomic<fault_hook> hook{nullptr};

} // namespace taiyen::os::sys

namespace taiyen::os::direct {

// M1: nothing here calls a function of libc that allocates.
long system_call(long number, const long (&arguments)[6]) {
#if defined(__x86_64__)
    long result;
    asm volatile("movq %5, %%r10\n\tmovq %6, %%r8\n\tmovq %7, %%r9\n\tsyscall"
                 : "=a"(result)
                 : "a"(number), "D"(arguments[0]), "S"(arguments[1]), "d"(arguments[2]), "rm"(arguments[3]),
                   "rm"(arguments[4]), "rm"(arguments[5])
                 : "rcx", "r8", "r9", "r10", "r11", "memory");
    constexpr long errors = 4095;
    if (result >= 0 || result < -errors)
        return result;
    errno = static_cast<int>(-result);
    return -1;
#else
    return ::syscall(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5]);
#endif
}

} // namespace taiyen::os::direct
