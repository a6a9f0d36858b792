// Bodies of ty_atomically that a thread is in, on any concurrent heaps. Others may wait for the end of such a body: who
// stops its heap, or wants to commit while it is alone.
//
// X31: A thread that is in a body, but for an irrevocable one, waits for nobody on another heap. What would have to
// wait
//      there ends with TY_E_BUSY, and the bodies that the thread is in are lost. The outermost one waits in its place,
//      once it is taken back and nothing is held, and runs again.
#pragma once

#include "../../stm/stm.hpp"

namespace taiyen {

class fair_rwlock;
struct txn_runtime;
struct running_body;

// What a thread has to wait for before its outermost body runs again.
struct obstacle {
    enum class kind : uint8_t {
        none,
        heap,             // another thread has the heap of this body to itself
        heap_with_rwlock, // or its reader-writer lock
        rwlock,           // somebody has the reader-writer lock
        broken_log,       // the log of this heap goes on after a snapshot,
        full_log,         // or has room after one
    };
    kind what = kind::none;
    running_body *body = nullptr;
    fair_rwlock *rwlock = nullptr;
    txn_runtime *rt = nullptr;
};

// What a thread has of one heap, from the outermost call on it to its end.
struct running_body {
    stm::transaction *own = nullptr;
    running_body *next = nullptr; // of the same thread
    uint32_t depth = 0;           // from 1 on, of calls on other heaps around it; 0: no call is under way
    bool irrevocable = false;
    obstacle met; // by what it called, while it is the outermost
};

// From the begin of a call to its end; before is what leave() gets.
struct body_entry {
    uint32_t depth;
    bool irrevocable;
};

// Of the calling thread. Most transactions are within no other: these look at one word and find it NULL.
struct bodies_of_thread {
    running_body *first; // the order says nothing
    uint32_t depth;
};
extern constinit thread_local bodies_of_thread bodies_here;

[[gnu::cold]] void bodies_unlist(const running_body &body);
[[gnu::cold]] bool some_body_runs();
void bodies_forget(); // the thread ends

// Calls after a transaction's end may begin the next one while the heap's first call has not returned: that one is
// deeper.
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

// Whether the thread is in a body.
inline bool in_body() {
    return bodies_here.first != nullptr && some_body_runs();
}
bool in_irrevocable_body();
// In one that can be taken back: X31.
inline bool must_not_wait() {
    return in_body() && !in_irrevocable_body();
}
// The bodies that it is in, but for that one: how many, of which so many are handed out.
unsigned bodies_running(const stm::transaction *but, running_body **to, unsigned most);
// Why the bodies of the thread, but for that one, do not commit. TY_OK: they may.
ty_status bodies_lost(const stm::transaction *but);
// X31. For who would have to wait: TY_E_BUSY, with the detail.
[[gnu::cold]] ty_status bodies_give_way(const obstacle &met);
// Calls that make no sense in something that is run many times, and wait: TY_E_ARGUMENT. call completes "cannot ...".
[[gnu::cold]] ty_status refuse_in_body(const char *call);

} // namespace taiyen
