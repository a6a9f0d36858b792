// Iterators. Over dicts, sets and deques they notice changes, as the built-in ones do; over lists they go by number.
#include "slots.hpp"

namespace typy {

namespace {

struct iterator {
    PyObject_HEAD proxy *over; // NULL: at the end
    std::uint64_t next;
    std::uint64_t ended; // of the heap, when it began
    std::uint32_t stamp; // 0: it was packed, and had so many
    std::uint32_t size;
    const value *entries; // of a table with that stamp: no other one has it. NULL: not known
    std::uint32_t used;
    std::uint32_t words;
    PyObject *pair; // of keys and values: the last one, which is used again if nobody else has it. Or NULL
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
    Py_XDECREF(as_iterator(self)->pair);
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
        return at_end(at); // it has become shorter
    if (at->backwards ? at->next == 0 : at->next >= in.size())
        return at_end(at);
    return load(of, in.at(at->backwards ? --at->next : at->next++));
}

// Where the entries are. They stay there as long as the stamp does.
void find_entries(iterator *at) {
    const auto *container = static_cast<const taiyen::detail::value_container *>(at->over->block);
    at->entries = nullptr;
    if (taiyen::is_packed(value_of(at->over)) || !container->body)
        return;
    const auto *table = reinterpret_cast<const taiyen::detail::value_table *>(container->body);
    at->entries = taiyen::detail::entries_of(table);
    at->used = table->used;
    at->words = table->head.type;
}

// PY9.
bool is_as_before(const iterator *at) {
    const auto *container = static_cast<const taiyen::detail::value_container *>(at->over->block);
    const bool same =
        container->stamp == at->stamp || (fault("iteration_goes_on_after_a_change") && container->stamp > at->stamp);
    return at->entries && same && taiyen::detail::is_container(container->head);
}

// What stood there.
ref replaced(PyObject *pair, Py_ssize_t place, ref item) {
#ifdef Py_LIMITED_API
    ref old = ref::borrowed(PyTuple_GetItem(pair, place));
    PyTuple_SetItem(pair, place, item.release());
#else
    ref old(PyTuple_GET_ITEM(pair, place));
    PyTuple_SET_ITEM(pair, place, item.release());
#endif
    return old;
}

// The last pair with other content, where nobody else has it, as the built-in does.
PyObject *pair_of(iterator *at, ref key, ref item) {
    if (!at->pair || Py_REFCNT(at->pair) != 1) {
        PyObject *made = PyTuple_Pack(2, key.get(), item.get());
        if (made) {
            const ref before(std::exchange(at->pair, Py_NewRef(made)));
        }
        return made;
    }
    PyObject *pair = at->pair;
    const ref old_key = replaced(pair, 0, std::move(key)), old_item = replaced(pair, 1, std::move(item));
    if (!PyObject_GC_IsTracked(pair)) // a collection has seen that it led nowhere
        PyObject_GC_Track(pair);
    return Py_NewRef(pair); // before the old ones go, which may run code
}

PyObject *next_of(iterator *at, heap &of, value key, value item) {
    if (at->what == iterates::keys)
        return load(of, key);
    if (at->what == iterates::values)
        return load(of, item);
    if (runs_code(key) &&
        !fault("key_made_before_its_value_is_read")) { // which may change or free what the item's word leads to
        ref both;
        reader one(of, false);
        {
            const without_cycles no_code;
            both = ref(PyList_New(2));
            if (!both || !one.put(both.get(), 0, key) || !one.put(both.get(), 1, item))
                return nullptr;
        }
        return one.finish() ? PyList_AsTuple(both.get()) : nullptr;
    }
    ref loaded_key(load(of, key));
    ref loaded_item(loaded_key ? load(of, item) : nullptr);
    return loaded_item ? pair_of(at, std::move(loaded_key), std::move(loaded_item)) : nullptr;
}

PyObject *next_in_table(iterator *at, heap &of) {
    using taiyen::dict; // a set has the same entries, without values
    const dict in = container_of<dict>(at->over);
    const std::uint32_t position = at->backwards ? in.previous(static_cast<std::uint32_t>(at->next))
                                                 : in.next(static_cast<std::uint32_t>(at->next));
    if (position == dict::end_position)
        return at_end(at);
    at->next = at->backwards ? position : position + 1;
    return next_of(at, of, in.key_at(position), at->what == iterates::keys ? value() : in.value_at(position));
}

PyObject *next(PyObject *self) {
    iterator *at = as_iterator(self);
    heap *of = at->over ? use(at->over) : nullptr;
    if (!of)
        return nullptr;
    if (at->ended != of->iterations_ended && !fault("iteration_goes_on_after_a_refresh")) { // PY40
        PyErr_SetString(PyExc_RuntimeError, of->shared ? "the transaction was rolled back during iteration"
                                                       : "the heap was refreshed during iteration");
        return nullptr;
    }
    if (at->what == iterates::list)
        return next_in_row<taiyen::list>(at, *of);
    if (is_as_before(at) && !at->backwards) { // nearly always
        while (at->next < at->used) {
            const value *entry = at->entries + at->next++ * at->words;
            if (!entry->is_nothing())
                return next_of(at, *of, entry[0], at->words == 2 ? entry[1] : value());
        }
        return at_end(at);
    }
    if (has_changed(at)) {
        PyErr_Format(PyExc_RuntimeError, "%s changed size during iteration",
                     at->what == iterates::deque          ? "deque"
                     : at->over->kind == value_kind::dict ? "dictionary"
                                                          : "Set");
        return nullptr;
    }
    return at->what == iterates::deque ? next_in_row<taiyen::deque>(at, *of) : next_in_table(at, *of);
}

PyType_Slot iterator_slots[] = {
    slot<iterator_dealloc>(Py_tp_dealloc), slot<PyObject_SelfIter>(Py_tp_iter), slot<next>(Py_tp_iternext), {}};
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
    at->ended = over->owner->iterations_ended;
    if (what != iterates::list)
        look_at(over, &at->stamp, &at->size);
    at->what = what;
    at->backwards = backwards;
    at->entries = nullptr;
    at->pair = nullptr;
    if (what <= iterates::items)
        find_entries(at);
    at->next = !backwards ? 0 : what == iterates::list ? container_of<taiyen::list>(over).size() : at->size;
    if (backwards && what <= iterates::items)
        at->next = UINT32_MAX;
    return reinterpret_cast<PyObject *>(at);
}

} // namespace typy
