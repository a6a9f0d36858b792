// The library's handler of faults beside others. It hands on what is not its own to the handler that was there before
// it. One that is set later, as that of faulthandler, takes every fault for the program's end: a handler here, in
// front of it, gives faults within heaps to the library first.
#include "core.hpp"

#include <csignal>
#include <dlfcn.h>

namespace typy {

namespace {

struct sigaction library; // the library's
struct sigaction other;   // whose faults are those outside of heaps

void on_fault(int signal, siginfo_t *info, void *context) {
    if (info->si_code > 0 && ty_heap_of(info->si_addr)) {
        library.sa_sigaction(signal, info, context);
        return;
    }
    sigaction(signal, &other, nullptr); // the fault comes again, or is sent again
    if (info->si_code <= 0)
        raise(signal);
}

// Whether a function is of this module, which holds the library.
bool is_ours(const struct sigaction &action) {
    Dl_info its{}, own{};
    return dladdr(reinterpret_cast<void *>(action.sa_sigaction), &its) && dladdr(&library, &own) &&
           its.dli_fbase == own.dli_fbase;
}

} // namespace

void keep_fault_handler() {
    struct sigaction now;
    if (sigaction(SIGSEGV, nullptr, &now) || (now.sa_flags & SA_SIGINFO && now.sa_sigaction == on_fault))
        return;
    if (now.sa_flags & SA_SIGINFO && (now.sa_sigaction == library.sa_sigaction || is_ours(now))) {
        library = now;
        return;
    }
    if (!library.sa_sigaction)
        return;
    other = now;
    struct sigaction first = library;
    first.sa_sigaction = on_fault;
    sigaction(SIGSEGV, &first, nullptr);
}

} // namespace typy
