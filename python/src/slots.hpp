// What the containers' slots share.
#ifndef TAIYEN_PYTHON_SLOTS_HPP
#define TAIYEN_PYTHON_SLOTS_HPP

#include "core.hpp"

namespace typy {

inline value value_of(const proxy *p) {
    return value::block(p->block);
}
template <class T> // taiyen::dict, list, set or deque
T container_of(const proxy *p) {
    return T(*p->owner->values, value_of(p));
}

// KeyError, also of a tuple.
inline int raise_key(PyObject *key) {
    if (const ref arguments(PyTuple_Pack(1, key)); arguments)
        PyErr_SetObject(PyExc_KeyError, arguments.get());
    return -1;
}

template <class Result>
bool done(const Result &result) {
    return static_cast<bool>(result) || raise_last() == 0;
}

// Runs a change of the proxy's container: function() gives false with an exception. begin() may wait for another
// thread's transaction, so the proxy is looked at again behind it; what runs Python code is to do so, too.
template <class Function>
bool change_of(const proxy *p, Function &&function) {
    heap *of = use(p);
    if (!of)
        return false;
    change one(*of);
    return one.begin() && use(p) && function(*of) && one.end();
}

template <class Function>
PyObject *none_after(const proxy *p, Function &&function) {
    if (!change_of(p, function))
        return nullptr;
    Py_RETURN_NONE;
}

// Before a change of a container's values: it is an ordinary one, and its values are blocks of their own, so that what
// is released can be looked at. False: there is an exception.
inline bool open_up(heap &of, const proxy *p) {
    return !taiyen::is_packed(value_of(p)) || done(of.values->unpack(value_of(p)));
}

// The size of any container.
template <class T>
Py_ssize_t size_of(PyObject *self) {
    return use(as_proxy(self)) ? static_cast<Py_ssize_t>(container_of<T>(as_proxy(self)).size()) : -1;
}

// Takes everything out.
template <class T>
PyObject *clear_all(PyObject *self, PyObject *) {
    return none_after(as_proxy(self), [&](heap &of) {
        if (!open_up(of, as_proxy(self)))
            return false;
        going all(of);
        const auto rows = taiyen::detail::values_in(taiyen::detail::head_of(value_of(as_proxy(self))));
        return rows.each([&](value item) { return all.add(item); }) && all.keep() &&
               done(container_of<T>(as_proxy(self)).clear());
    });
}

// A plain copy, all the way down.
inline PyObject *plain(PyObject *self, PyObject *) {
    heap *of = use(as_proxy(self));
    return of ? plain_copy(*of, value_of(as_proxy(self))) : nullptr;
}

// The heap, as Python has it.
inline PyObject *heap_of(PyObject *self, PyObject *) {
    return as_proxy(self)->heap_object ? Py_NewRef(as_proxy(self)->heap_object) : Py_NewRef(Py_None);
}

// Whether it can be used.
inline PyObject *is_alive(PyObject *self, PyObject *) {
    const proxy *p = as_proxy(self);
    return PyBool_FromLong(p->owner && p->owner->is_usable() && p->state == proxy_state::alive);
}

#define TYPY_COMMON_METHODS                                                                                            \
    method<plain>("_plain", METH_NOARGS), method<heap_of>("_heap", METH_NOARGS),                                       \
        method<is_alive>("_is_alive", METH_NOARGS)

} // namespace typy

#endif
