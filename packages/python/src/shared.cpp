// Heaps that other processes write to: what this process shows of them, and when.
#include "module.hpp"

#include <chrono>

namespace typy {

// PY41. The GIL is the lock of Python's reads. At the interpreter's end there are none, and no GIL any more.
void lock_memory(void *context) {
    auto *of = static_cast<heap *>(context);
    of->has_gil = Py_IsInitialized() && !is_finalizing();
    if (of->has_gil)
        of->gil = PyGILState_Ensure();
    of->refreshed();
}

void unlock_memory(void *context) {
    auto *of = static_cast<heap *>(context);
    if (std::exchange(of->has_gil, false))
        PyGILState_Release(of->gil);
}

void heap::refreshed() {
    ++refreshes;
    ++taken_back;
    iterations_ended += shared ? 0 : 1;
}

bool heap::see_newest() {
    if (fault("read_of_a_state_of_before"))
        return true;
    if (ty_current_txn(handle)) // it has
        return true;
    ++busy;
    ty_status status;
    {
        const without_gil others;
        status = ty_refresh(handle, 0, nullptr);
    }
    --busy;
    return status == TY_OK || raise_last() == 0;
}

namespace {

bool follow(heap &of) {
    bool changed = false;
    must(fault("refreshed_beside_views") ||
         of.check_no_views("with views of its arrays, the heap cannot show a newer state"));
    const ty_status status = ty_refresh(of.handle, 0, &changed);
    if (changed || status == TY_E_EXPIRED)
        of.refreshed();
    must_be_ok(status);
    return changed;
}

// PY40. Other threads read what proxies stand for with the GIL alone: so the wait for a newer state is here, without
// it, and not in the library.
bool refresh(heap &of, double wait_s) {
    const auto begun = std::chrono::steady_clock::now();
    const std::uint64_t shown = of.refreshes;
    for (unsigned pause = shortest_wait_us;; wait_a_moment(&pause)) {
        bool changed = false;
        must(PyErr_CheckSignals() == 0 && of.check_task());
        if (of.shared) {
            if (ty_current_txn(of.handle)) // it shows the newest state
                return false;
            must(of.see_newest());
            changed = of.refreshes != shown;
        } else {
            changed = follow(of);
        }
        if (changed || std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count() >= wait_s)
            return changed;
    }
}

} // namespace

void bind_refresh(bound_heap &heaps) {
    heaps.def("_refresh", refresh);
}

} // namespace typy
