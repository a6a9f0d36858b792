// What the containers' slots share.
#ifndef TAIYEN_PYTHON_SLOTS_HPP
#define TAIYEN_PYTHON_SLOTS_HPP

#include "core.hpp"

#include <algorithm>
#include <cstring>

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
// thread's transaction, so the proxy is looked at again after it; what runs Python code is to do so, too.
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

// PY31. Before a change stores several values by calls of the heap of their own: the room that counting them needs, so
// that none of these fails for want of it. False: there is an exception.
inline bool reserve_counts(heap &of, const std::vector<value> &values) {
    if (std::none_of(values.begin(), values.end(), taiyen::is_container)) // the others need none
        return true;
    ty_status status = of.values->begin_write();
    for (std::size_t i = 0; i < values.size() && !status; ++i)
        if (taiyen::is_container(values[i]))
            status = of.values->prepare(values[i], false);
    if (!status)
        status = of.values->prepared();
    of.values->drain();
    return !status || raise_last() == 0;
}

// PY30. Takes an entry out, and gives it as a plain object: in one change, which waits for others before it looks, so
// no two threads take the same one. A copy that runs Python code is made again if the entry is another one after it.
struct looked_at {
    value item; // nothing: there is none
    value key;  // where the copy has it
};
// look(): the entry. copy(entry): a new reference. erase(): of what look() gives; false with an exception. missing():
// what is returned if there is none, a new reference or NULL with an exception; no change is begun for it.
template <class Look, class Copy, class Erase, class Missing>
PyObject *take_out(PyObject *self, Look &&look, Copy &&copy, Erase &&erase, Missing &&missing) {
    const proxy *p = as_proxy(self);
    if (look().item.is_nothing())
        return missing();
    ref taken;
    if (fault("item_taken_by_two_threads"))
        taken = ref(copy(look()));
    const bool good = change_of(p, [&](heap &of) {
        for (;;) {
            const looked_at before = look();
            if (before.item.is_nothing())
                return static_cast<bool>(taken = ref(missing()));
            if (!fault("item_taken_by_two_threads"))
                taken = ref(copy(before));
            if (!taken || !use(p))
                return false;
            const looked_at now = look();
            if (same(now.item, before.item) && same(now.key, before.key))
                break;
        }
        return open_up(of, p) && of.let_go(look().item) && erase(of);
    });
    return good ? taken.release() : nullptr;
}

// The first item in [from, to) that equals an object, as built-in lists look for it: SIZE_MAX if there is none.
// item(number): a new reference. Where comparisons run Python code, items can go meanwhile, and those after them come
// before the place that is looked at: if nothing was found so, it is looked for in a copy. False: there is an
// exception.
template <class T, class Item>
bool find_equal(PyObject *self, PyObject *object, std::size_t from, std::size_t to, Item &&item, std::size_t *found) {
    const auto equals = [&](PyObject *one) {
        const int equal = one ? in_python([&] { return PyObject_RichCompareBool(one, object, Py_EQ); }) : -1;
        return equal < 0 || !use(as_proxy(self)) ? -1 : equal;
    };
    // PY34: the last item may have gone with code, after its comparison, too.
    const auto there = [&](std::size_t number) {
        return number < to && use(as_proxy(self)) && number < container_of<T>(as_proxy(self)).size();
    };
    if (!use(as_proxy(self)))
        return false;
    const std::uint32_t stamp = container_of<T>(as_proxy(self)).stamp();
    int equal = 0;
    for (*found = from; there(*found); ++*found)
        if ((equal = equals(ref(item(*found)).get())) != 0)
            return equal > 0 && use(as_proxy(self));
    if (!use(as_proxy(self)))
        return false;
    std::vector<ref> copy;
    if (container_of<T>(as_proxy(self)).stamp() != stamp)
        for (std::size_t number = from; there(number) && (copy.empty() || copy.back()); ++number)
            copy.emplace_back(item(number));
    if (PyErr_Occurred())
        return false;
    for (*found = from; *found < from + copy.size(); ++*found)
        if ((equal = equals(copy[*found - from].get())) != 0)
            break;
    if (equal == 0)
        *found = SIZE_MAX;
    copy.clear();
    return equal >= 0 && use(as_proxy(self));
}
// _find(item, slice): its number, or -1. Item: the sequence's slot. In C++, as is count(): where no comparison runs
// Python code, all items are those of one moment.
template <class T, PyObject *(*Item)(PyObject *, Py_ssize_t)>
PyObject *find_item(PyObject *self, PyObject *arguments) {
    PyObject *object, *slice;
    Py_ssize_t start, stop, step;
    if (!PyArg_ParseTuple(arguments, "OO!", &object, &PySlice_Type, &slice) ||
        PySlice_Unpack(slice, &start, &stop, &step) < 0 || !use_newest(as_proxy(self)))
        return nullptr;
    const one_state during(*as_proxy(self)->owner);
    PySlice_AdjustIndices(static_cast<Py_ssize_t>(container_of<T>(as_proxy(self)).size()), &start, &stop, step);
    std::size_t number;
    const bool good = find_equal<T>(
        self, object, static_cast<std::size_t>(start), static_cast<std::size_t>(stop),
        [&](std::size_t place) { return Item(self, static_cast<Py_ssize_t>(place)); }, &number);
    return good ? PyLong_FromSsize_t(number == SIZE_MAX ? -1 : static_cast<Py_ssize_t>(number)) : nullptr;
}
template <class T, PyObject *(*Item)(PyObject *, Py_ssize_t)>
PyObject *count_items(PyObject *self, PyObject *object) {
    Py_ssize_t count = 0;
    if (!use_newest(as_proxy(self)))
        return nullptr;
    const one_state during(*as_proxy(self)->owner);
    for (std::size_t number = 0; use(as_proxy(self)); ++number, ++count) {
        const auto item = [&](std::size_t place) { return Item(self, static_cast<Py_ssize_t>(place)); };
        if (!find_equal<T>(self, object, number, SIZE_MAX, item, &number))
            return nullptr;
        if (number == SIZE_MAX)
            return PyLong_FromSsize_t(count);
    }
    return nullptr;
}

// The numbers of a list's items in the order that list.sort() gives them: a list. In C++, so that other threads run
// only where a key or comparison is Python code, as with the built-in.
inline ref sorted_numbers(PyObject *items, PyObject *key, PyObject *reverse) {
    const Py_ssize_t size = PyList_Size(items);
    ref keys = ref::borrowed(items);
    if (key != Py_None)
        keys = ref(PyList_New(0));
    ref numbers(PyList_New(0));
    for (Py_ssize_t i = 0; keys && numbers && i < size; ++i) {
        const ref number(PyLong_FromSsize_t(i));
        if (!number || PyList_Append(numbers.get(), number.get()) < 0)
            return {};
        if (key == Py_None)
            continue;
        const ref one(in_python([&] { return PyObject_CallFunctionObjArgs(key, PyList_GetItem(items, i), nullptr); }));
        if (!one || PyList_Append(keys.get(), one.get()) < 0)
            return {};
    }
    const ref item(keys ? PyObject_GetAttrString(keys.get(), "__getitem__") : nullptr);
    const ref sort(item && numbers ? PyObject_GetAttrString(numbers.get(), "sort") : nullptr);
    const ref nothing(PyTuple_New(0)),
        how(sort ? Py_BuildValue("{sOsO}", "key", item.get(), "reverse", reverse) : nullptr);
    const ref none(nothing && how ? in_python([&] { return PyObject_Call(sort.get(), nothing.get(), how.get()); })
                                  : nullptr);
    return none ? std::move(numbers) : ref();
}

// The size of any container.
template <class T>
Py_ssize_t size_of(PyObject *self) {
    return use_newest(as_proxy(self)) ? static_cast<Py_ssize_t>(container_of<T>(as_proxy(self)).size()) : -1;
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
    heap *of = use_newest(as_proxy(self));
    return of ? plain_copy(*of, value_of(as_proxy(self))) : nullptr;
}

// The heap, as Python has it.
inline PyObject *heap_of(PyObject *self, PyObject *) {
    return as_proxy(self)->heap_object ? Py_NewRef(as_proxy(self)->heap_object) : Py_NewRef(Py_None);
}

// Whether it can be used.
inline PyObject *is_alive(PyObject *self, PyObject *) {
    const proxy *p = as_proxy(self);
    return PyBool_FromLong(p->owner && p->owner->is_usable() && is_current(p));
}

#define TYPY_COMMON_METHODS                                                                                            \
    method<plain>("_plain", METH_NOARGS), method<heap_of>("_heap", METH_NOARGS),                                       \
        method<is_alive>("_is_alive", METH_NOARGS)

// An index of a list or deque, which the text of the exception calls by its name. -1 with an exception: it is none.
inline Py_ssize_t index_of(PyObject *index, const char *of) {
    if (PyIndex_Check(index))
        return PyNumber_AsSsize_t(index, PyExc_IndexError);
    const ref name(PyType_GetName(Py_TYPE(index)));
    if (name)
        PyErr_Format(PyExc_TypeError, "%s indices must be integers%s, not %U", of,
                     std::strcmp(of, "deque") == 0 ? "" : " or slices", name.get());
    return -1;
}

// A plain list of what something iterable has. How many it says to have is not believed.
inline PyObject *items_of(PyObject *iterable) {
    if (PyList_Check(iterable) || PyTuple_Check(iterable) || is_proxy(iterable))
        return PySequence_List(iterable);
    const ref iterator(PyObject_GetIter(iterable));
    ref items(iterator ? PyList_New(0) : nullptr);
    while (items) {
        const ref item(PyIter_Next(iterator.get()));
        if (!item)
            return PyErr_Occurred() ? nullptr : items.release();
        if (PyList_Append(items.get(), item.get()) < 0)
            return nullptr;
    }
    return nullptr;
}

} // namespace typy

#endif
