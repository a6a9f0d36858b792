// Iterators. Over dicts, sets and deques they notice changes, as the built-in ones do; over lists they go by number.
#include "slots.hpp"

namespace typy {

namespace {

struct iterator {
    PyObject_HEAD proxy *over; // NULL: at the end
    std::uint64_t next;
    std::uint32_t stamp; // 0: it was packed, and had so many
    std::uint32_t size;
    iterates what;
    bool backwards;
};

PyTypeObject *iterator_type = nullptr;

iterator *as_iterator(PyObject *object) {
    return reinterpret_cast<iterator *>(object);
}

template <class T>
void look(const proxy *p, std::uint32_t *stamp, std::uint32_t *size) {
    const T container = container_of<T>(p);
    *stamp = container.stamp();
    *size = static_cast<std::uint32_t>(container.size());
}
void look_at(const proxy *p, std::uint32_t *stamp, std::uint32_t *size) {
    if (p->kind == value_kind::deque)
        return look<taiyen::deque>(p, stamp, size);
    if (p->kind == value_kind::set)
        return look<taiyen::set>(p, stamp, size);
    look<taiyen::dict>(p, stamp, size);
}

// Whether size or order have changed. A change of a value alone may have unpacked it.
bool has_changed(iterator *at) {
    std::uint32_t stamp = 0, size = 0;
    look_at(at->over, &stamp, &size);
    if (at->stamp == 0 && size == at->size)
        at->stamp = stamp;
    return stamp != at->stamp;
}

void iterator_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    Py_XDECREF(reinterpret_cast<PyObject *>(as_iterator(self)->over));
    PyObject_Free(self);
    Py_DECREF(type);
}

PyObject *at_end(iterator *at) {
    Py_CLEAR(at->over);
    return nullptr;
}

template <class T>
PyObject *next_in_row(iterator *at, heap &of) {
    const T in = container_of<T>(at->over);
    if (at->backwards && at->next > in.size())
        at->next = in.size();
    if (at->backwards ? at->next == 0 : at->next >= in.size())
        return at_end(at);
    return load(of, in.at(at->backwards ? --at->next : at->next++));
}

PyObject *next_in_table(iterator *at, heap &of) {
    using taiyen::dict; // a set has the same entries, without values
    const dict in = container_of<dict>(at->over);
    const std::uint32_t position = at->backwards ? in.previous(static_cast<std::uint32_t>(at->next))
                                                 : in.next(static_cast<std::uint32_t>(at->next));
    if (position == dict::end_position)
        return at_end(at);
    at->next = at->backwards ? position : position + 1;
    if (at->what == iterates::keys)
        return load(of, in.key_at(position));
    if (at->what == iterates::values)
        return load(of, in.value_at(position));
    const value key = in.key_at(position), item = in.value_at(position);
    ref pair(PyTuple_New(2));
    PyObject *loaded = pair ? load(of, key) : nullptr;
    if (!loaded || PyTuple_SetItem(pair.get(), 0, loaded) < 0)
        return nullptr;
    loaded = load(of, item);
    if (!loaded || PyTuple_SetItem(pair.get(), 1, loaded) < 0)
        return nullptr;
    return pair.release();
}

PyObject *next(PyObject *self) {
    iterator *at = as_iterator(self);
    heap *of = at->over ? use(at->over) : nullptr;
    if (!of)
        return nullptr;
    if (at->what == iterates::list)
        return next_in_row<taiyen::list>(at, *of);
    if (has_changed(at)) {
        PyErr_Format(PyExc_RuntimeError, "%s changed size during iteration",
                     at->what == iterates::deque          ? "deque"
                     : at->over->kind == value_kind::dict ? "dictionary"
                                                          : "Set");
        return nullptr;
    }
    return at->what == iterates::deque ? next_in_row<taiyen::deque>(at, *of) : next_in_table(at, *of);
}

PyType_Slot iterator_slots[] = {{Py_tp_dealloc, reinterpret_cast<void *>(iterator_dealloc)},
                                {Py_tp_iter, reinterpret_cast<void *>(PyObject_SelfIter)},
                                {Py_tp_iternext, reinterpret_cast<void *>(next)},
                                {}};
PyType_Spec iterator_spec = {"taiyen._core.Iterator", sizeof(iterator), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, iterator_slots};

} // namespace

bool add_iterator_types() {
    iterator_type = reinterpret_cast<PyTypeObject *>(PyType_FromSpec(&iterator_spec));
    return iterator_type;
}

PyObject *new_iterator(proxy *over, iterates what, bool backwards) {
    iterator *at = PyObject_New(iterator, iterator_type);
    if (!at)
        return nullptr;
    at->over = reinterpret_cast<proxy *>(Py_NewRef(reinterpret_cast<PyObject *>(over)));
    at->stamp = at->size = 0;
    if (what != iterates::list)
        look_at(over, &at->stamp, &at->size);
    at->what = what;
    at->backwards = backwards;
    at->next = !backwards ? 0 : UINT32_MAX;
    return reinterpret_cast<PyObject *>(at);
}

} // namespace typy
