#include "bodies.hpp"

namespace taiyen {
namespace {

thread_local running_body *first_body; // the order tells nothing
thread_local uint32_t depth_now;

template <class Use>
void each_running(const stm::transaction *but, Use use) {
    for (running_body *each = first_body; each != nullptr; each = each->next)
        if (each->own->runs() && each->own != but)
            use(*each);
}

} // namespace

// Calls after a transaction's end may begin the next one while the heap's first call has not returned: that one is
// deeper.
body_entry bodies_enter(running_body &body, bool irrevocable) {
    const body_entry before{body.listed, body.depth, body.irrevocable};
    if (!body.listed) {
        body.next = first_body;
        first_body = &body;
        body.listed = true;
    }
    body.depth = ++depth_now;
    body.irrevocable = irrevocable;
    return before;
}

void bodies_leave(running_body &body, const body_entry &before) {
    depth_now--;
    body.depth = before.depth;
    body.irrevocable = before.irrevocable;
    if (before.listed)
        return;
    running_body **link = &first_body;
    while (*link != nullptr && *link != &body)
        link = &(*link)->next;
    if (*link != nullptr)
        *link = body.next;
    body.listed = false;
}

void bodies_forget() {
    for (running_body *each = first_body; each != nullptr; each = each->next)
        each->listed = false;
    first_body = nullptr;
    depth_now = 0;
}

bool in_body(const stm::transaction *but) {
    bool found = false;
    each_running(but, [&found](const running_body &) { found = true; });
    return found;
}

unsigned bodies_running(const stm::transaction *but, running_body **to, unsigned most) {
    unsigned count = 0;
    each_running(but, [&](running_body &each) {
        if (count++ < most)
            to[count - 1] = &each;
    });
    return count;
}

bool in_irrevocable_body() {
    bool found = false;
    each_running(nullptr, [&found](const running_body &each) { found |= each.irrevocable; });
    return found;
}

ty_status bodies_lost(const stm::transaction *but) {
    ty_status status = TY_OK;
    each_running(but, [&status](const running_body &each) {
        if (status == TY_OK)
            status = each.own->lost();
    });
    return status;
}

// X31.
ty_status bodies_give_way(const obstacle &met) {
    running_body *outermost = nullptr;
    each_running(nullptr, [&outermost](running_body &each) {
        if (each.own->lost() == TY_OK)
            each.own->give_way_elsewhere();
        if (outermost == nullptr || each.depth < outermost->depth)
            outermost = &each;
    });
    if (outermost != nullptr && outermost->met.what == obstacle::kind::none)
        outermost->met = met;
    return failure(TY_E_BUSY, "wait for another thread within a body of ty_atomically: that one might wait for it")
        .remedy("return from the body: it is run again once the way is free");
}

ty_status refuse_in_body(const char *call) {
    return failure(TY_E_ARGUMENT, "%s: this thread is in a body of ty_atomically on another heap", call)
        .remedy("do it outside of the body, or by ty_atomic_on_commit");
}

} // namespace taiyen
