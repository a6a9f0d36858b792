// Dicts and sets: the slots that are to be fast. taiyen/_containers.py has the rest.
#include "slots.hpp"

namespace typy {

namespace {

using taiyen::dict;
using taiyen::set;

// ---- Dicts.

PyObject *dict_get_item(PyObject *self, PyObject *key) {
    heap *of = use_newest(as_proxy(self));
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
    heap *of = use_newest(as_proxy(self));
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

// keeps: what stands for the key already, also if that came while this was made.
bool put(heap &of, proxy *self, PyObject *key, PyObject *item, bool keeps = false) {
    made_entry one;
    made_value made(of);
    if (!make_key(of, key, &one) || !made.make(item) || !use(self) || (one.made_key && !one.made_key->check()))
        return false;
    if (keeps && container_of<dict>(self).contains(one.key.get()))
        return true;
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

// PY31. The keys of a change that are not there yet, made before anything is stored. Each counts one store until the
// change is over, for the key that an equal one was made as before is taken once more, and what the change releases may
// have been all that stored it. Runs no Python code.
class new_keys {
public:
    explicit new_keys(heap &of) : heap_(of), taken_back_(of.taken_back) {}
    ~new_keys() {
        if (made_.empty() || is_gone())
            return;
        for (const value key : made_)
            heap_.values->release(key);
        heap_.values->drain();
    }
    new_keys(const new_keys &) = delete;
    new_keys &operator=(const new_keys &) = delete;
    // False: there is an exception.
    bool add(const value_key &key, value_key *made) {
        ++count_;
        *made = key;
        if (!key.word.is_nothing()) // it needs no block, or whoever made that looks after it
            return true;
        made_.emplace_back(); // its room comes first
        const taiyen::result<value> one = heap_.values->make_key(key);
        const value word = one ? taiyen::result<value>(one).value() : value();
        if (!one || heap_.values->begin_write() || heap_.values->prepare_release(word)) {
            made_.pop_back();
            const bool good = raise_last() == 0;
            if (!is_gone())
                static_cast<void>(heap_.values->discard(word));
            return good;
        }
        heap_.values->touch();
        if (!fault("key_of_a_change_freed_within_it"))
            heap_.values->count_at(&made_.back(), word);
        *made = heap_.values->key(word).value();
        return true;
    }
    std::size_t count() const { return count_; }

private:
    bool is_gone() const { return !heap_.is_usable() || heap_.taken_back != taken_back_; } // an exception has run code
    heap &heap_;
    const std::uint64_t taken_back_;
    std::vector<value> made_;
    std::size_t count_ = 0;
};

// PY31. What can fail for want of memory comes before the first store. Keys that Python distinguishes, as two that are
// no numbers, may be one in the heap: what is stored for the first of them stays until the change is over, for it is
// one of the items, too. Runs no Python code.
bool put_all(heap &of, proxy *self, const std::vector<made_entry> &entries, const std::vector<value> &items) {
    if (entries.empty())
        return true;
    if (!open_up(of, self))
        return false;
    std::vector<value_key> keys;
    std::vector<value> before; // what stands for them; nothing: they are new
    new_keys fresh(of);
    going gone(of);
    for (const made_entry &one : entries) {
        keys.push_back(one.key.get());
        before.push_back(container_of<dict>(self).get(keys.back()));
        if (!(before.back().is_nothing() ? fresh.add(keys.back(), &keys.back()) : gone.add(before.back())))
            return false;
    }
    dict into = container_of<dict>(self);
    const bool late = fault("table_grows_after_the_first_store");
    if (!gone.keep() || (!late && !done(into.reserve_more(fresh.count()))) || !reserve_counts(of, items))
        return false;
    for (std::size_t i = 0; i < keys.size(); ++i) {
        value replaced;
        if (!done(into.set(keys[i], items[i], &replaced)))
            return false;
        const bool is_old = same(replaced, before[i]) || fault("item_of_a_change_freed_within_it");
        if (is_old && !done(of.values->discard(replaced)))
            return false;
    }
    return true;
}

// By the key that an entry has.
template <class T>
bool erase_key(const proxy *self, value key) {
    const taiyen::result<value_key> found = self->owner->values->key(key);
    return done(found) && done(container_of<T>(self).erase(taiyen::result<value_key>(found).value()));
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
        return put_all(of, as_proxy(self), all, made.items());
    });
}

// PY30. _pop(key[, default]), popitem(), _setdefault(key, default): each one change.
PyObject *dict_pop(PyObject *self, PyObject *const *arguments, Py_ssize_t count) {
    heap *of = use_newest(as_proxy(self));
    if (!of)
        return nullptr;
    const auto missing = [&]() -> PyObject * {
        if (count > 1)
            return Py_NewRef(arguments[1]);
        return raise_key(arguments[0]), nullptr;
    };
    if (container_of<dict>(as_proxy(self)).empty()) // as the built-in: whatever the key is
        return missing();
    key_of key;
    if (!key.find(*of, arguments[0]) || !use(as_proxy(self)))
        return nullptr;
    return take_out(
        self,
        [&] {
            return looked_at{container_of<dict>(as_proxy(self)).get(key.get()), {}};
        },
        [&](const looked_at &entry) { return plain_copy(*of, entry.item); },
        [&](heap &) { return done(container_of<dict>(as_proxy(self)).erase(key.get())); }, missing);
}

PyObject *raise_empty(const char *what) {
    PyErr_SetString(PyExc_KeyError, what);
    return nullptr;
}

// The last entry, in the order in which they came.
looked_at last_pair(const dict &from) {
    const std::uint32_t position = from.previous();
    return position == dict::end_position ? looked_at{} : looked_at{from.value_at(position), from.key_at(position)};
}

PyObject *dict_pop_item(PyObject *self, PyObject *) {
    heap *of = use_newest(as_proxy(self));
    if (!of)
        return nullptr;
    const auto look = [&] { return last_pair(container_of<dict>(as_proxy(self))); };
    const auto copy = [&](const looked_at &entry) -> PyObject * {
        ref pair;
        reader one(*of, true);
        {
            const without_cycles no_code;
            pair = ref(PyList_New(2));
            if (!pair || !one.put(pair.get(), 0, entry.key) || !one.put(pair.get(), 1, entry.item))
                return nullptr;
        }
        return one.finish() ? PyList_AsTuple(pair.get()) : nullptr;
    };
    const auto erase = [&](heap &) { return erase_key<dict>(as_proxy(self), look().key); };
    return take_out(self, look, copy, erase, [] { return raise_empty("popitem(): dictionary is empty"); });
}

PyObject *dict_set_default(PyObject *self, PyObject *const *arguments, Py_ssize_t) {
    heap *of = use_newest(as_proxy(self));
    key_of key;
    if (!of || !key.find(*of, arguments[0]) || !use(as_proxy(self)))
        return nullptr;
    const auto there = [&] { return container_of<dict>(as_proxy(self)).get(key.get()); };
    if (const value v = there(); !v.is_nothing()) // no change is begun for it
        return load(*of, v);
    ref found;
    const bool good = change_of(as_proxy(self), [&](heap &) {
        if (there().is_nothing() &&
            (!put(*of, as_proxy(self), arguments[0], arguments[1], true) || !use(as_proxy(self))))
            return false;
        found = ref(load(*of, there()));
        return static_cast<bool>(found);
    });
    return good ? found.release() : nullptr;
}

template <class T>
int contains(PyObject *self, PyObject *key) {
    heap *of = use_newest(as_proxy(self));
    if (of && std::is_same_v<T, set> && PySet_Check(key))
        return 0; // the built-in looks for a frozenset
    key_of found;
    if (!of || !found.find(*of, key) || !use(as_proxy(self)))
        return -1;
    return container_of<T>(as_proxy(self)).contains(found.get());
}

PyObject *iterate_keys(PyObject *self) {
    return use_newest(as_proxy(self)) ? new_iterator(as_proxy(self), iterates::keys, false) : nullptr;
}

// _iterate(what, backwards): keys, values or items.
PyObject *dict_iterate(PyObject *self, PyObject *arguments) {
    int what = 0, backwards = 0;
    if (!PyArg_ParseTuple(arguments, "ip", &what, &backwards) || !use_newest(as_proxy(self)))
        return nullptr;
    return new_iterator(as_proxy(self), static_cast<iterates>(what % 3), backwards != 0);
}

// ---- Sets.

// _change(keys, how): takes all keys of a list out, puts them in, or does what it does not have them for; in one
// change.
enum how : int { erases, adds, toggles };

bool change_keys(heap &of, proxy *self, const std::vector<made_entry> &entries, int how) {
    set in = container_of<set>(self);
    std::vector<value_key> keys;
    new_keys fresh(of); // PY31: what can fail for want of memory comes before the first store
    for (const made_entry &one : entries) {
        keys.push_back(one.key.get());
        if (how != erases && !in.contains(keys.back()) && !fresh.add(keys.back(), &keys.back()))
            return false;
    }
    if (!done(in.reserve_more(fresh.count())))
        return false;
    for (const value_key &key : keys)
        if (!(how == erases || (how == toggles && in.contains(key)) ? done(in.erase(key)) : done(in.add(key))))
            return false;
    return true;
}

PyObject *set_change(PyObject *self, PyObject *arguments) {
    PyObject *keys = nullptr;
    int how = 0;
    if (!PyArg_ParseTuple(arguments, "O!i", &PyList_Type, &keys, &how))
        return nullptr;
    return none_after(as_proxy(self), [&](heap &of) {
        std::vector<made_entry> all(static_cast<std::size_t>(PyList_Size(keys)));
        for (std::size_t i = 0; i < all.size(); ++i) {
            const ref key = ref::borrowed(PyList_GetItem(keys, static_cast<Py_ssize_t>(i)));
            if (!key || !(how == erases ? all[i].key.find(of, key.get()) : make_key(of, key.get(), &all[i])))
                return false;
        }
        if (!use(as_proxy(self)))
            return false;
        const set in = container_of<set>(as_proxy(self));
        for (std::size_t i = 0; i < all.size(); ++i)
            if ((all[i].made_key && !all[i].made_key->check()) ||
                (how != erases && !in.contains(all[i].key.get()) &&
                 !all[i].key.check_stored(PyList_GetItem(keys, static_cast<Py_ssize_t>(i)))))
                return false;
        return change_keys(of, as_proxy(self), all, how);
    });
}

// PY30. _keep(keys): takes all out but those of a built-in set. Comparisons may run Python code, so they are made again
// if the set has changed meanwhile.
PyObject *set_keep(PyObject *self, PyObject *keys) {
    return none_after(as_proxy(self), [&](heap &of) {
        std::vector<value> gone;
        std::uint32_t stamp;
        do {
            gone.clear();
            stamp = container_of<set>(as_proxy(self)).stamp();
            for (std::uint32_t at = 0;; ++at) {
                if (!use(as_proxy(self))) // PY34: the last key may have gone with code
                    return false;
                const set in = container_of<set>(as_proxy(self));
                if (in.stamp() != stamp || (at = in.next(at)) == set::end_position)
                    break;
                const value word = in.key_at(at);
                const ref key(load(of, word));
                const int stays = key ? in_python([&] { return PySet_Contains(keys, key.get()); }) : -1;
                if (stays < 0 || !use(as_proxy(self)))
                    return false;
                if (!stays)
                    gone.push_back(word);
            }
        } while (container_of<set>(as_proxy(self)).stamp() != stamp);
        return std::all_of(gone.begin(), gone.end(), [&](value key) { return erase_key<set>(as_proxy(self), key); });
    });
}

// PY30.
PyObject *set_pop(PyObject *self, PyObject *) {
    heap *of = use_newest(as_proxy(self));
    if (!of)
        return nullptr;
    const auto look = [&]() -> looked_at {
        const set from = container_of<set>(as_proxy(self));
        const std::uint32_t position = from.previous();
        return {position == set::end_position ? value() : from.key_at(position), {}};
    };
    return take_out(
        self, look, [&](const looked_at &entry) { return load(*of, entry.item); },
        [&](heap &) { return erase_key<set>(as_proxy(self), look().item); },
        [] { return raise_empty("pop from an empty set"); });
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
    method<dict_pop>("_pop", METH_FASTCALL, nullptr),
    method<dict_pop_item>("popitem", METH_NOARGS, "popitem(): takes the last pair out, as plain objects."),
    method<dict_set_default>("_setdefault", METH_FASTCALL, nullptr),
    TYPY_COMMON_METHODS,
    {}};
PyMethodDef set_methods[] = {method<set_add>("add", METH_O, "add(key): puts a key in."),
                             method<clear_all<set>>("clear", METH_NOARGS, "clear(): takes everything out."),
                             method<set_take>("_take", METH_O, nullptr),
                             method<set_change>("_change", METH_VARARGS, nullptr),
                             method<set_keep>("_keep", METH_O, nullptr),
                             method<set_pop>("pop", METH_NOARGS, "pop(): takes some key out."),
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
