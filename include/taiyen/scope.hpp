// A scope of scope.h as an object: it ends where the object does, also when an exception leaves it.
#ifndef TAIYEN_SCOPE_HPP
#define TAIYEN_SCOPE_HPP

#include "scope.h"
#include "taiyen.hpp"

namespace taiyen {

// The calling thread's malloc is a heap's while it lives. It belongs on the stack of the thread that made it.
class scope {
public:
    // Of the heap; of none, for what is to lie in the process's heap: ty_enter.
    static result<scope> enter(heap_view heap) {
        if (ty_enter(heap.get()))
            return error::last();
        return scope();
    }
    // Takes the other one's place, which then ends nothing.
    scope(scope &&other) noexcept : entered_(std::exchange(other.entered_, false)) {}
    // Not assigned.
    scope &operator=(scope &&) = delete;
    // Ends the scope, on the thread that entered it: ty_leave.
    ~scope() {
        if (entered_)
            ty_leave();
    }

private:
    scope() = default;
    bool entered_ = true;
};

} // namespace taiyen
#endif
