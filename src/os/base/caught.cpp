// The only file that is compiled with exceptions.
#include "caught.hpp"
#include "fault.hpp"

#include <cxxabi.h>
#include <exception>
#include <new>
#include <utility>

// Weak references: the C++ run-time library is present where a program can throw, and not needed where it cannot. So a
// program in C is linked without it.
asm(".weak __gxx_personality_v0\n"
    ".weak __cxa_begin_catch\n"
    ".weak __cxa_end_catch\n"
    ".weak __cxa_rethrow\n"
    ".weak _Unwind_Resume\n"
    ".weak _ZTIN10__cxxabiv115__forced_unwindE\n" // typeinfo for abi::__forced_unwind
    ".weak _ZSt9terminatev\n"
    ".weak _ZSt17current_exceptionv\n"
    ".weak _ZSt17rethrow_exceptionNSt15__exception_ptr13exception_ptrE\n"
    ".weak _ZNSt15__exception_ptr13exception_ptr9_M_addrefEv\n"
    ".weak _ZNSt15__exception_ptr13exception_ptr10_M_releaseEv\n");

namespace taiyen::os {

using std::exception_ptr;
static_assert(sizeof(exception_ptr) == sizeof(void *) && alignof(exception_ptr) == alignof(void *));

static exception_ptr &kept_in(void *&place) {
    return *std::launder(reinterpret_cast<exception_ptr *>(&place));
}

// Y6: nothing stays locked after a callback has thrown.
bool caught::run(void (*function)(void *argument), void *argument) {
    if (fault("exception_passes_through_the_library")) {
        function(argument);
        return true;
    }
    try {
        function(argument);
        return true;
    } catch (abi::__forced_unwind &) { // the end of a thread cannot be deferred
        throw;
    } catch (...) {
        if (exception_ == nullptr)
            new (&exception_) exception_ptr(std::current_exception());
        return false;
    }
}

caught::~caught() {
    if (exception_ != nullptr)
        kept_in(exception_).~exception_ptr();
}

void caught::forget() {
    if (exception_ != nullptr)
        kept_in(exception_).~exception_ptr();
    exception_ = nullptr;
}

void caught::rethrow() {
    if (exception_ != nullptr)
        std::rethrow_exception(std::move(kept_in(exception_)));
}

} // namespace taiyen::os
