// What the sources that bind functions with nanobind share. There, an exception of Python's is one of C++, too.
#ifndef TAIYEN_PYTHON_MODULE_HPP
#define TAIYEN_PYTHON_MODULE_HPP

#include "core.hpp"

#include <cstring>
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

namespace typy {

namespace nb = nanobind;

inline void must(bool good) {
    if (!good)
        throw nb::python_error();
}
inline void must_be_ok(ty_status status) {
    must(status == TY_OK || raise_last() == 0);
}
// raise_own().
[[noreturn]] inline void refuse(int status, const char *what, const char *remedy) {
    raise_own(status, what, remedy);
    throw nb::python_error();
}

// A call of the library without the GIL.
template <class Function>
void call(heap &of, Function &&function) {
    ty_status status;
    ++of.busy;
    {
        const without_gil others;
        status = function();
    }
    --of.busy;
    must_be_ok(status);
}

// A text of the library: names of files in it may be any bytes.
inline nb::str text_of(const char *text) {
    PyObject *made = PyUnicode_DecodeUTF8(text, static_cast<Py_ssize_t>(std::strlen(text)), "replace");
    must(made);
    return nb::steal<nb::str>(made);
}

// What ends a transaction or step, or goes from one state of the heap to another, is not to come within a change: of
// this thread it is refused, those of other threads are waited for.
inline void must_not_change(heap &of, bool hears_signals = true) {
    must(of.wait_for_changes(hears_signals));
    if (of.is_changing())
        refuse(TY_E_BUSY, "a change of this heap is under way in this thread",
               "do it after that, and not in what is called while something is stored");
}

using bound_heap = nb::class_<heap>;
void bind_marks(nb::module_ &module, bound_heap &heaps); // packages/python/src/marks.cpp
void bind_refresh(bound_heap &heaps);                    // shared.cpp

} // namespace typy

#endif
