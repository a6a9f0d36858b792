#include "bodies.hpp"

namespace taiyen {

constinit thread_local bodies_of_thread bodies_here{};

namespace {

template <class Use>
void each_running(const stm::transaction *but, Use use) {
    for (running_body *each = bodies_here.first; each != nullptr; each = each->next)
        if (each->own->runs() && each->own != but)
            use(*each);
}

} // namespace

void bodies_unlist(const running_body &body) {
    running_body **link = &bodies_here.first;
    while (*link != nullptr && *link != &body)
        link = &(*link)->next;
    if (*link != nullptr)
        *link = body.next;
}

void bodies_forget() {
    for (running_body *each = bodies_here.first; each != nullptr; each = each->next)
        each->depth = 0;
    bodies_here = {};
}

bool some_body_runs() {
    bool found = false;
    each_running(nullptr, [&found](const running_body &) { found = !fault("inner_body_waits_for_another_heap"); });
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

ty_status bodies_aborted(const stm::transaction *but) {
    ty_status status = TY_OK;
    each_running(but, [&status](const running_body &each) {
        if (status == TY_OK)
            status = each.own->aborted();
    });
    return status;
}

// X31: a thread in a body never waits on another heap; its bodies are aborted, and the outermost one waits later.
ty_status bodies_abort_for(const blocker &met) {
    running_body *outermost = nullptr;
    each_running(nullptr, [&outermost](running_body &each) {
        if (each.own->aborted() == TY_OK)
            each.own->abort_for_other_domain();
        if (outermost == nullptr || each.depth < outermost->depth)
            outermost = &each;
    });
    if (outermost != nullptr && outermost->met.what == blocker::kind::none)
        outermost->met = met;
    return failure(TY_E_BUSY, "wait for another thread within a body of ty_atomically: that one might wait for it")
        .remedy("return from the body: it is run again once the way is free");
}

ty_status refuse_in_body(const char *call) {
    return failure(TY_E_ARGUMENT, "%s: this thread is in a body of ty_atomically on another heap", call)
        .remedy("do it outside of the body, or by ty_atomic_on_commit");
}

} // namespace taiyen
