// Proxies: Python's objects for containers and arrays of a heap. A heap has one at most for each, so `is` works.
#include "record.hpp"

namespace typy {

namespace {

constexpr int kinds = 6;
PyTypeObject *proxy_classes[kinds] = {}; // Python's, by kind
PyTypeObject *base_types[kinds] = {};

// Of a kind that has proxies: its place in the tables.
int place_of(value_kind kind) {
    switch (kind) {
    case value_kind::dict:
        return 0;
    case value_kind::list:
        return 1;
    case value_kind::set:
        return 2;
    case value_kind::deque:
        return 3;
    case value_kind::records:
        return 5;
    default:
        return 4;
    }
}

} // namespace

heap *refuse_use(const proxy *p) {
    if (!p->owner)
        raise_own(status_deleted, "the object was not made by a heap", "take it from a heap");
    else if (p->owner->check())
        raise_own(status_deleted,
                  p->owner->shared || p->owner->read_only
                      ? "what this stands for was deleted from the heap or moved, by another process or a rollback"
                      : "what this stands for was deleted from the heap, by a rollback, an undo or a return to a mark",
                  "look it up again");
    return nullptr;
}

bool is_proxy(PyObject *object) {
    for (PyTypeObject *type : base_types)
        if (type && PyObject_TypeCheck(object, type))
            return true;
    return false;
}

PyTypeObject *array_type() {
    return base_types[place_of(value_kind::array)];
}

void proxy_dealloc(PyObject *self) {
    proxy *p = as_proxy(self);
    PyTypeObject *type = Py_TYPE(self);
    if (p->owner) {
        const auto place = p->owner->proxies.find(p->block);
        if (place != p->owner->proxies.end() && place->second == p)
            p->owner->proxies.erase(place);
        p->owner->displaced.erase(p);
        if (p->state == proxy_state::alive)
            p->owner->unhold(p->block);
    }
    delete std::exchange(p->others, nullptr);
    Py_XDECREF(p->heap_object);
    reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

PyObject *proxy_new(PyTypeObject *type, PyObject *, PyObject *) {
    PyErr_Format(PyExc_TypeError, "%R is made by a heap: store a built-in one there, and take it out", type);
    return nullptr;
}

PyObject *proxy_of(heap &of, value v) {
    const value_kind kind = taiyen::kind_of(v);
    const layout *records_layout = nullptr;
    if (kind == value_kind::records) {
        const unchanged as_before(of);
        if (!(records_layout = layout_in(of, v)) || !as_before.check("the class of its records was looked for"))
            return nullptr;
    }
    const without_cycles no_code; // PY34
    proxy *&slot = of.proxies[v.address()];
    if (slot && !is_going(slot)) {
        const bool same =
            is_current(slot) && slot->kind == kind && (taiyen::is_packed(v) || slot->id == taiyen::container_id(v));
        if (same)
            return Py_NewRef(reinterpret_cast<PyObject *>(slot));
        if (slot->state == proxy_state::alive)
            slot->state = proxy_state::gone;
        else if (slot->state != proxy_state::gone)
            of.displaced.insert(slot);
    }
    PyTypeObject *type = proxy_classes[place_of(kind)];
    PyObject *made = type ? PyType_GenericAlloc(type, 0) : nullptr;
    if (!made) {
        if (!slot)
            of.proxies.erase(v.address());
        return type ? nullptr : PyErr_NoMemory();
    }
    proxy *p = as_proxy(made);
    p->heap_object = Py_NewRef(of.self);
    p->owner = &of;
    p->block = v.address();
    p->id = taiyen::container_id(v);
    p->others = nullptr;
    p->is_packed = taiyen::is_packed(v);
    p->kind = kind;
    p->state = proxy_state::alive;
    p->seen = of.refreshes;
    slot = p;
    if (records_layout)
        start_records(p, records_layout);
    return made;
}

PyObject *set_proxy_classes(PyObject *classes) {
    for (Py_ssize_t i = 0; i < kinds; ++i) {
        PyObject *type = PyTuple_GetItem(classes, i);
        if (!type)
            return nullptr;
        const ref before(reinterpret_cast<PyObject *>(
            std::exchange(proxy_classes[i], reinterpret_cast<PyTypeObject *>(Py_NewRef(type)))));
    }
    Py_RETURN_NONE;
}

bool add_proxy_types(PyObject *module) {
    PyType_Spec *specs[] = {&dict_spec, &list_spec, &set_spec, &deque_spec, &array_spec, &records_spec};
    static const char *const names[] = {"DictBase", "ListBase", "SetBase", "DequeBase", "ArrayBase", "RecordsBase"};
    for (int i = 0; i < kinds; ++i) {
        PyObject *type = PyType_FromSpec(specs[i]);
        if (!type || PyModule_AddObjectRef(module, names[i], type) < 0)
            return false;
        base_types[i] = reinterpret_cast<PyTypeObject *>(type);
    }
    return add_iterator_types() && add_record_types(module);
}

} // namespace typy
