// Dicts and sets: the slots that are to be fast. taiyen/_containers.py has the rest.
#include "slots.hpp"

namespace typy {

namespace {

using taiyen::dict;
using taiyen::set;

// ---- Dicts.

PyObject *dict_get_item(PyObject *self, PyObject *key) {
    heap *of = use(as_proxy(self));
    key_of found;
    if (!of || !found.find(*of, key) || !use(as_proxy(self)))
        return nullptr;
    const value v = container_of<dict>(as_proxy(self)).get(found.get());
    if (v.is_nothing())
        return raise_key(key), nullptr;
    return load(*of, v);
}

PyObject *dict_get(PyObject *self, PyObject *const *arguments, Py_ssize_t count) {
    if (count < 1 || count > 2) {
        PyErr_Format(PyExc_TypeError, "get expected 1 or 2 arguments, got %zd", count);
        return nullptr;
    }
    heap *of = use(as_proxy(self));
    key_of found;
    if (!of || !found.find(*of, arguments[0]) || !use(as_proxy(self)))
        return nullptr;
    const value v = container_of<dict>(as_proxy(self)).get(found.get());
    return v.is_nothing() ? Py_NewRef(count == 2 ? arguments[1] : Py_None) : load(*of, v);
}

// A key and what is to stand for it, made.
struct made_entry {
    key_of key;
    std::optional<made_value> made_key; // where the key needs a block of the heap that is made first
};

bool make_key(heap &of, PyObject *key, made_entry *one) {
    if (!one->key.find(of, key))
        return false;
    if (!one->key.is_imitation())
        return true; // it may stand for an object that is no key: see check_stored()
    one->made_key.emplace(of);
    return one->key.make(of, key, *one->made_key);
}

bool check_key(const proxy *self, const key_of &found, PyObject *key) {
    return container_of<dict>(self).contains(found.get()) || found.check_stored(key);
}

// Runs no Python code.
bool put(heap &of, proxy *self, const value_key &key, value item) {
    dict into = container_of<dict>(self);
    const std::uint32_t position = into.find(key);
    if (position == dict::end_position)
        return done(into.set(key, item));
    return open_up(of, self) && of.let_go(container_of<dict>(self).value_at(position)) &&
           done(container_of<dict>(self).set_at(position, item));
}

bool put(heap &of, proxy *self, PyObject *key, PyObject *item) {
    made_entry one;
    made_value made(of);
    if (!make_key(of, key, &one) || !made.make(item) || !use(self) || (one.made_key && !one.made_key->check()))
        return false;
    return check_key(self, one.key, key) && put(of, self, one.key.get(), made.get());
}

bool erase(heap &of, proxy *self, PyObject *key) {
    key_of found;
    if (!found.find(of, key) || !use(self))
        return false;
    const std::uint32_t position = container_of<dict>(self).find(found.get());
    if (position == dict::end_position)
        return raise_key(key) == 0;
    return open_up(of, self) && of.let_go(container_of<dict>(self).value_at(position)) &&
           done(container_of<dict>(self).erase(found.get()));
}

int dict_set_item(PyObject *self, PyObject *key, PyObject *item) {
    const bool good = change_of(as_proxy(self), [&](heap &of) {
        return item ? put(of, as_proxy(self), key, item) : erase(of, as_proxy(self), key);
    });
    return good ? 0 : -1;
}

// Stores all of a dict, in one change.
PyObject *dict_update(PyObject *self, PyObject *items) {
    if (!PyDict_Check(items)) {
        PyErr_SetString(PyExc_TypeError, "a dict is needed");
        return nullptr;
    }
    return none_after(as_proxy(self), [&](heap &of) {
        const ref keys(PyDict_Keys(items)), values(PyDict_Values(items)); // whatever is done to the dict meanwhile
        if (!keys || !values)
            return false;
        std::vector<made_entry> all(static_cast<std::size_t>(PyList_Size(keys.get())));
        made_value made(of);
        for (std::size_t i = 0; i < all.size(); ++i)
            if (!make_key(of, PyList_GetItem(keys.get(), static_cast<Py_ssize_t>(i)), &all[i]))
                return false;
        if (PyList_Size(values.get()) != PyList_Size(keys.get()) || !made.make_items(values.get(), keys.get()) ||
            !use(as_proxy(self)))
            return false;
        for (std::size_t i = 0; i < all.size(); ++i)
            if ((all[i].made_key && !all[i].made_key->check()) ||
                !check_key(as_proxy(self), all[i].key, PyList_GetItem(keys.get(), static_cast<Py_ssize_t>(i))))
                return false;
        // Nothing fails from here on but for want of memory.
        for (std::size_t i = 0; i < all.size(); ++i)
            if (!put(of, as_proxy(self), all[i].key.get(), made.items()[i]))
                return false;
        return true;
    });
}

template <class T>
int contains(PyObject *self, PyObject *key) {
    heap *of = use(as_proxy(self));
    if (of && std::is_same_v<T, set> && PySet_Check(key))
        return 0; // the built-in looks for a frozenset
    key_of found;
    if (!of || !found.find(*of, key) || !use(as_proxy(self)))
        return -1;
    return container_of<T>(as_proxy(self)).contains(found.get());
}

PyObject *iterate_keys(PyObject *self) {
    return use(as_proxy(self)) ? new_iterator(as_proxy(self), iterates::keys, false) : nullptr;
}

// _iterate(what, backwards): keys, values or items.
PyObject *dict_iterate(PyObject *self, PyObject *arguments) {
    int what = 0, backwards = 0;
    if (!PyArg_ParseTuple(arguments, "ip", &what, &backwards) || !use(as_proxy(self)))
        return nullptr;
    return new_iterator(as_proxy(self), static_cast<iterates>(what % 3), backwards != 0);
}

template <class T>
PyObject *last_key(PyObject *self, PyObject *) {
    heap *of = use(as_proxy(self));
    if (!of)
        return nullptr;
    const T from = container_of<T>(as_proxy(self));
    const std::uint32_t position = from.previous();
    if (position != T::end_position)
        return load(*of, from.key_at(position));
    PyErr_SetString(PyExc_KeyError, "it is empty");
    return nullptr;
}

// ---- Sets.

// _change(keys, adds): puts all keys of a list in, or takes them out, in one change.
PyObject *set_change(PyObject *self, PyObject *arguments) {
    PyObject *keys = nullptr;
    int adds = 0;
    if (!PyArg_ParseTuple(arguments, "O!p", &PyList_Type, &keys, &adds))
        return nullptr;
    return none_after(as_proxy(self), [&](heap &of) {
        std::vector<made_entry> all(static_cast<std::size_t>(PyList_Size(keys)));
        for (std::size_t i = 0; i < all.size(); ++i) {
            const ref key = ref::borrowed(PyList_GetItem(keys, static_cast<Py_ssize_t>(i)));
            if (!key || !(adds ? make_key(of, key.get(), &all[i]) : all[i].key.find(of, key.get())))
                return false;
        }
        if (!use(as_proxy(self)))
            return false;
        set in = container_of<set>(as_proxy(self));
        for (std::size_t i = 0; i < all.size(); ++i)
            if ((all[i].made_key && !all[i].made_key->check()) ||
                (adds && !in.contains(all[i].key.get()) &&
                 !all[i].key.check_stored(PyList_GetItem(keys, static_cast<Py_ssize_t>(i)))))
                return false;
        for (const made_entry &one : all)
            if (!(adds ? done(in.add(one.key.get())) : done(in.erase(one.key.get()))))
                return false;
        return true;
    });
}

PyObject *set_add(PyObject *self, PyObject *key) {
    return none_after(as_proxy(self), [&](heap &of) {
        key_of found;
        if (!found.find(of, key) || !use(as_proxy(self)))
            return false;
        made_value made(of);
        if (container_of<set>(as_proxy(self)).contains(found.get()))
            return true;
        return found.check_stored(key) && found.make(of, key, made) && use(as_proxy(self)) && made.check() &&
               done(container_of<set>(as_proxy(self)).add(found.get()));
    });
}

// Whether it was there.
PyObject *set_take(PyObject *self, PyObject *key) {
    bool was_there = false;
    const bool good = change_of(as_proxy(self), [&](heap &of) {
        key_of found;
        if (PySet_Check(key))
            return true; // as contains()
        if (!found.find(of, key) || !use(as_proxy(self)))
            return false;
        const taiyen::result<bool> erased = container_of<set>(as_proxy(self)).erase(found.get());
        was_there = erased && taiyen::result<bool>(erased).value();
        return done(erased);
    });
    return good ? PyBool_FromLong(was_there) : nullptr;
}

PyMethodDef dict_methods[] = {
    method<dict_get>("get", METH_FASTCALL, "get(key, default=None): what stands for the key, or the default."),
    method<clear_all<dict>>("clear", METH_NOARGS, "clear(): takes everything out."),
    method<dict_update>("_update", METH_O, nullptr),
    method<dict_iterate>("_iterate", METH_VARARGS, nullptr),
    method<last_key<dict>>("_last_key", METH_NOARGS, nullptr),
    TYPY_COMMON_METHODS,
    {}};
PyMethodDef set_methods[] = {method<set_add>("add", METH_O, "add(key): puts a key in."),
                             method<clear_all<set>>("clear", METH_NOARGS, "clear(): takes everything out."),
                             method<set_take>("_take", METH_O, nullptr),
                             method<set_change>("_change", METH_VARARGS, nullptr),
                             method<last_key<set>>("_last_key", METH_NOARGS, nullptr),
                             TYPY_COMMON_METHODS,
                             {}};

PyType_Slot dict_slots[] = {slot<proxy_dealloc>(Py_tp_dealloc),
                            slot<proxy_new>(Py_tp_new),
                            {Py_tp_methods, dict_methods},
                            slot<iterate_keys>(Py_tp_iter),
                            slot<size_of<dict>>(Py_mp_length),
                            slot<dict_get_item>(Py_mp_subscript),
                            slot<dict_set_item>(Py_mp_ass_subscript),
                            slot<contains<dict>>(Py_sq_contains),
                            {}};
PyType_Slot set_slots[] = {slot<proxy_dealloc>(Py_tp_dealloc),
                           slot<proxy_new>(Py_tp_new),
                           {Py_tp_methods, set_methods},
                           slot<iterate_keys>(Py_tp_iter),
                           slot<size_of<set>>(Py_mp_length),
                           slot<contains<set>>(Py_sq_contains),
                           {}};

} // namespace

PyType_Spec dict_spec = {"taiyen._core.DictBase", sizeof(proxy), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                         dict_slots};
PyType_Spec set_spec = {"taiyen._core.SetBase", sizeof(proxy), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, set_slots};

} // namespace typy
