// The bodies of ty_atomically that a thread is in, on any concurrent heaps. Other threads may wait for the end of such
// a body: a thread that stops its heap, or one that wants to commit in serial mode.
//
// X31: A thread in a body, unless the body is irrevocable, never waits on another heap. A call that would have to wait
//     there ends with TY_E_BUSY, and the bodies that the thread is in are aborted. The outermost one waits instead,
//     once it is rolled back and holds nothing, and runs again.
#pragma once

#include "src/txn/stm/stm.hpp"

namespace taiyen {

class fair_rwlock;
struct txn_runtime;
struct running_body;

// What a thread must wait for before its outermost body runs again.
struct blocker {
    enum class kind : uint8_t {
        none,
        heap,             // another thread has exclusive use of this body's heap
        heap_with_rwlock, // or its reader-writer lock
        rwlock,           // another thread holds the reader-writer lock
        broken_log,       // the log of this heap continues after a snapshot,
        full_log,         // or has room after one
    };
    kind what = kind::none;
    running_body *body = nullptr;
    fair_rwlock *rwlock = nullptr;
    txn_runtime *rt = nullptr;
};

// A thread's state on one heap, from the outermost call on it to that call's end.
struct running_body {
    stm::transaction *own = nullptr;
    running_body *next = nullptr; // of the same thread
    uint32_t depth = 0;           // nesting among calls on other heaps, from 1 on; 0: no call is under way
    bool irrevocable = false;
    blocker met; // what a call within it ran into, while it is the outermost
};

// Lives from the begin of a call to its end; `before` is passed to bodies_leave().
struct body_entry {
    uint32_t depth;
    bool irrevocable;
};

// Per thread. Most transactions are nested in no other: they load one word and find it NULL.
struct bodies_of_thread {
    running_body *first; // in no particular order
    uint32_t depth;
};
extern constinit thread_local bodies_of_thread bodies_here;

[[gnu::cold]] void bodies_unlist(const running_body &body);
[[gnu::cold]] bool some_body_runs();
void bodies_forget(); // the thread ends

// A callback after a transaction's end may begin the next one while the heap's first call has not returned: that one is
// nested deeper.
inline body_entry bodies_enter(running_body &body, bool irrevocable) {
    const body_entry before{body.depth, body.irrevocable};
    if (before.depth == 0) [[likely]] {
        body.next = bodies_here.first;
        bodies_here.first = &body;
    }
    body.depth = ++bodies_here.depth;
    body.irrevocable = irrevocable;
    return before;
}

inline void bodies_leave(running_body &body, const body_entry &before) {
    bodies_here.depth--;
    body.depth = before.depth;
    body.irrevocable = before.irrevocable;
    if (before.depth != 0) [[unlikely]]
        return;
    if (bodies_here.first == &body) [[likely]]
        bodies_here.first = body.next;
    else
        bodies_unlist(body);
}

inline bool in_body() {
    return bodies_here.first != nullptr && some_body_runs();
}
bool in_irrevocable_body();
// In a body that can be rolled back (X31: it must not wait on another heap).
inline bool must_not_wait() {
    return in_body() && !in_irrevocable_body();
}
// The bodies that the thread is in, except `but`: returns their number; up to `most` of them are stored to `to`.
unsigned bodies_running(const stm::transaction *but, running_body **to, unsigned most);
// Why the thread's bodies, except `but`, will not commit. TY_OK: they may.
ty_status bodies_aborted(const stm::transaction *but);
// X31: for a thread that would have to wait within a body. Returns TY_E_BUSY, with the detail.
[[gnu::cold]] ty_status bodies_abort_for(const blocker &met);
// For calls that wait, and make no sense in a body that may run many times: TY_E_ARGUMENT. call completes "cannot ...".
[[gnu::cold]] ty_status refuse_in_body(const char *call);

} // namespace taiyen
