// Scopes: a thread whose malloc allocates in a heap of the library beside it. docs/design/malloc.md, "Scopes".
//
// M5: a thread in no scope pays nothing: the inline calls are unchanged. In a scope the thread cache is hidden, so that
//      every call comes here.
// M6: what the library, libc and the C++ run-time library allocate for themselves comes from the process's heap.
// M7: a block is freed and resized in the heap that it lies in, whatever scope the thread is in.
#pragma once

#include "src/heap/blocks/magazine.hpp"
#include "src/os/os.hpp"
#include <atomic>

namespace taiyen::drop_in {

// The call site of an allocation function. Operator new is treated differently from malloc: std::string calls it from
// within the C++ run-time library.
struct call_site {
    const void *caller;
    bool operator_new;
};
#define TAIYEN_MALLOC_SITE                                                                                             \
    call_site {                                                                                                        \
        __builtin_return_address(0), false                                                                             \
    }
#define TAIYEN_NEW_SITE                                                                                                \
    call_site {                                                                                                        \
        __builtin_return_address(0), true                                                                              \
    }

extern constinit thread_local os::current_malloc *current_scope; // NULL: none

// While it lives, the thread is in no scope.
class out_of_scope {
public:
    out_of_scope() : scope_(current_scope) {
        if (scope_ == nullptr)
            return;
        current_scope = nullptr;
        show_magazines();
    }
    ~out_of_scope() {
        if (scope_ == nullptr)
            return;
        hide_magazines();
        current_scope = scope_;
    }
    out_of_scope(const out_of_scope &) = delete;
    out_of_scope &operator=(const out_of_scope &) = delete;
    const os::current_malloc *scope() const { return scope_; }

private:
    os::current_malloc *scope_;
};

// Whether an allocation belongs to the scope.
bool counts_in(const os::current_malloc &scope, call_site site);

// Whether any thread was ever in a scope.
extern constinit std::atomic<bool> any_scope;

// The library whose heap the block lies in; NULL: no library beside this one. own: the process's heap.
const os::current_malloc_calls *find_owner(const ty_heap *own, const void *block);
inline const os::current_malloc_calls *owner_of(const ty_heap *own, const void *block) {
    return any_scope.load(std::memory_order_acquire) ? find_owner(own, block) : nullptr;
}

} // namespace taiyen::drop_in
