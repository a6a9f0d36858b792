// Taiyen in C++: a scope of scope.h as an object: it ends with the object, also when an exception leaves it.
#ifndef TAIYEN_SCOPE_HPP
#define TAIYEN_SCOPE_HPP

#include "scope.h"
#include "taiyen.hpp"

namespace taiyen {

// While it lives, malloc of the calling thread allocates from a heap. Keep it on the stack of that thread.
class scope {
public:
    // Enters a scope of the heap; an empty view is the process's heap: ty_enter.
    static result<scope> enter(heap_view heap) {
        if (ty_enter(heap.get()))
            return error::last();
        return scope();
    }
    // Moves the scope; the other object then ends nothing.
    scope(scope &&other) noexcept : entered_(std::exchange(other.entered_, false)) {}
    // Not assignable.
    scope &operator=(scope &&) = delete;
    // Leaves the scope, in the thread that entered it: ty_leave.
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
