// The library's handler of faults beside others. It hands on what is not its own to the handler that was there before
// it. One that is set later, as that of faulthandler, takes every fault for the program's end: a handler here, in
// front of it, gives faults within heaps to the library first.
//
// PY20. Whoever sets one remembers the handler of before and puts it back some day. So the one in front is taken away
// before faulthandler is enabled or disabled (taiyen/_faults.py), and put there again after that: it is in nobody's
// memory.
#include "core.hpp"

#include <csignal>
#include <dlfcn.h>

namespace typy {

namespace {

struct sigaction library;             // the library's
struct sigaction other;               // whose faults are those outside of heaps
volatile std::sig_atomic_t handed_on; // to it

void on_fault(int signal, siginfo_t *info, void *context) {
    if (info->si_code > 0 && ty_heap_of(info->si_addr)) {
        library.sa_sigaction(signal, info, context);
        return;
    }
    if (handed_on) // and it came back
        std::signal(signal, SIG_DFL);
    else
        sigaction(signal, &other, nullptr); // the fault comes again, or is sent again
    handed_on = 1;
    if (info->si_code <= 0)
        raise(signal);
}

// Whether a function is of this module, which holds the library.
bool is_ours(const struct sigaction &action) {
    Dl_info its{}, own{};
    return dladdr(reinterpret_cast<void *>(action.sa_sigaction), &its) && dladdr(&library, &own) &&
           its.dli_fbase == own.dli_fbase;
}

bool is_in_front(const struct sigaction &now) {
    return now.sa_flags & SA_SIGINFO && now.sa_sigaction == on_fault;
}

} // namespace

void withdraw_fault_handler() {
    struct sigaction now;
    if (sigaction(SIGSEGV, nullptr, &now) == 0 && is_in_front(now))
        sigaction(SIGSEGV, &other, nullptr);
}

void keep_fault_handler() {
    struct sigaction now;
    if (sigaction(SIGSEGV, nullptr, &now) || is_in_front(now))
        return;
    if (now.sa_flags & SA_SIGINFO && (now.sa_sigaction == library.sa_sigaction || is_ours(now))) {
        library = now;
        return;
    }
    if (!library.sa_sigaction)
        return;
    other = now;
    handed_on = 0;
    struct sigaction first = library;
    first.sa_sigaction = on_fault;
    sigaction(SIGSEGV, &first, nullptr);
}

} // namespace typy
