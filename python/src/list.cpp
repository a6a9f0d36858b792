// Lists and deques: the slots that are to be fast. taiyen/_containers.py has the rest.
#include "slots.hpp"

namespace typy {

namespace {

using taiyen::deque;
using taiyen::list;

// ---- Both.

// Numbers from the end are below zero. SIZE_MAX with an exception: there is none with that number.
template <class T>
std::size_t place_in(const proxy *self, Py_ssize_t given) {
    const auto size = static_cast<Py_ssize_t>(container_of<T>(self).size());
    const Py_ssize_t number = given < 0 ? given + size : given;
    if (number >= 0 && number < size)
        return static_cast<std::size_t>(number);
    PyErr_SetString(PyExc_IndexError, "index out of range");
    return SIZE_MAX;
}
template <class T>
std::size_t number_in(const proxy *self, PyObject *index) {
    const Py_ssize_t given = PyNumber_AsSsize_t(index, PyExc_IndexError);
    if ((given == -1 && PyErr_Occurred()) || !use(self))
        return SIZE_MAX;
    return place_in<T>(self, given);
}

template <class T>
PyObject *item_at(PyObject *self, PyObject *index) {
    heap *of = use(as_proxy(self));
    const std::size_t number = of ? number_in<T>(as_proxy(self), index) : SIZE_MAX;
    return number == SIZE_MAX ? nullptr : load(*of, container_of<T>(as_proxy(self)).at(number));
}

template <class T>
PyObject *sequence_item(PyObject *self, Py_ssize_t number) {
    heap *of = use(as_proxy(self));
    if (!of)
        return nullptr;
    const value v = number < 0 ? value() : container_of<T>(as_proxy(self)).at(static_cast<std::size_t>(number));
    if (!v.is_nothing())
        return load(*of, v);
    PyErr_SetString(PyExc_IndexError, "index out of range");
    return nullptr;
}

template <class T>
bool set_or_erase(heap &of, proxy *self, Py_ssize_t given, PyObject *item) {
    made_value made(of);
    if ((item && !made.make(item)) || !use(self))
        return false;
    const std::size_t number = place_in<T>(self, given);
    if (number == SIZE_MAX || !open_up(of, self))
        return false;
    T in = container_of<T>(self);
    return of.let_go(in.at(number)) && done(item ? in.set(number, made.get()) : in.erase(number));
}

// The index first, whose __index__ may do anything.
template <class T>
int set_item(PyObject *self, PyObject *index, PyObject *item) {
    const Py_ssize_t given = PyNumber_AsSsize_t(index, PyExc_IndexError);
    if (given == -1 && PyErr_Occurred())
        return -1;
    return change_of(as_proxy(self), [&](heap &of) { return set_or_erase<T>(of, as_proxy(self), given, item); }) ? 0
                                                                                                                 : -1;
}

// ---- Lists.

PyObject *list_item(PyObject *self, PyObject *index) {
    if (!PySlice_Check(index))
        return item_at<list>(self, index);
    heap *of = use(as_proxy(self));
    Py_ssize_t start, stop, step;
    if (!of || PySlice_Unpack(index, &start, &stop, &step) < 0 || !use(as_proxy(self)))
        return nullptr;
    reader one(*of, false);
    ref made;
    {
        const without_cycles no_code;
        const list from = container_of<list>(as_proxy(self));
        const Py_ssize_t count = PySlice_AdjustIndices(static_cast<Py_ssize_t>(from.size()), &start, &stop, step);
        made = ref(PyList_New(count));
        for (Py_ssize_t i = 0; made && i < count; ++i, start += step)
            if (!one.put(made.get(), i, from.at(static_cast<std::size_t>(start))))
                return nullptr;
    }
    return made && one.finish() ? made.release() : nullptr;
}

// Items [first, last) are replaced by those of a Python list.
bool replace(heap &of, proxy *self, std::size_t first, std::size_t last, PyObject *items) {
    made_value all(of);
    if (!all.make_items(items) || !use(self) || !open_up(of, self))
        return false;
    list into = container_of<list>(self);
    last = last < into.size() ? last : into.size();
    first = first < last ? first : last;
    going gone(of);
    for (std::size_t i = first; i < last; ++i)
        if (!gone.add(into.at(i)))
            return false;
    if (!gone.keep() || !done(into.insert(last, all.items().data(), all.items().size())))
        return false;
    return first == last || done(into.erase(first, last - first));
}

// A slice with a step: as many items as it has places, or none to erase them.
bool replace_stepwise(heap &of, proxy *self, Py_ssize_t start, Py_ssize_t stop, Py_ssize_t step, PyObject *items) {
    made_value all(of);
    if ((items && !all.make_items(items)) || !use(self) || !open_up(of, self))
        return false;
    list into = container_of<list>(self);
    const Py_ssize_t count = PySlice_AdjustIndices(static_cast<Py_ssize_t>(into.size()), &start, &stop, step);
    if (items && static_cast<Py_ssize_t>(all.items().size()) != count) {
        PyErr_Format(PyExc_ValueError, "attempt to assign sequence of size %zu to extended slice of size %zd",
                     all.items().size(), count);
        return false;
    }
    if (!items && step > 0) { // from the end on, so that numbers stay right
        start += (count - 1) * step;
        step = -step;
    }
    going gone(of); // PY1: what has a proxy, and may be stored again further on
    for (Py_ssize_t i = 0; i < count; ++i)
        if (!gone.add(into.at(static_cast<std::size_t>(start + i * step))))
            return false;
    if (!gone.keep())
        return false;
    for (Py_ssize_t i = 0; i < count; ++i, start += step) {
        const auto number = static_cast<std::size_t>(start);
        if (!done(items ? into.set(number, all.items()[static_cast<std::size_t>(i)]) : into.erase(number)))
            return false;
    }
    return true;
}

int list_set_item(PyObject *self, PyObject *index, PyObject *item) {
    if (!PySlice_Check(index))
        return set_item<list>(self, index, item);
    Py_ssize_t start, stop, step;
    ref items(item ? PySequence_List(item) : PyList_New(0)); // a list of its own, whatever runs meanwhile
    if (!items || PySlice_Unpack(index, &start, &stop, &step) < 0)
        return -1;
    const bool good = change_of(as_proxy(self), [&](heap &of) {
        if (step != 1)
            return replace_stepwise(of, as_proxy(self), start, stop, step, item ? items.get() : nullptr);
        PySlice_AdjustIndices(static_cast<Py_ssize_t>(container_of<list>(as_proxy(self)).size()), &start, &stop, step);
        return replace(of, as_proxy(self), static_cast<std::size_t>(start),
                       static_cast<std::size_t>(stop < start ? start : stop), items.get());
    });
    return good ? 0 : -1;
}

PyObject *list_append(PyObject *self, PyObject *item) {
    return none_after(as_proxy(self), [&](heap &of) {
        made_value made(of);
        return made.make(item) && use(as_proxy(self)) && done(container_of<list>(as_proxy(self)).append(made.get()));
    });
}

PyObject *list_insert(PyObject *self, PyObject *arguments) {
    Py_ssize_t number = 0;
    PyObject *item = nullptr;
    if (!PyArg_ParseTuple(arguments, "nO", &number, &item))
        return nullptr;
    return none_after(as_proxy(self), [&](heap &of) {
        made_value made(of);
        if (!made.make(item) || !use(as_proxy(self)))
            return false;
        list into = container_of<list>(as_proxy(self));
        const auto size = static_cast<Py_ssize_t>(into.size());
        const Py_ssize_t from_end = number < 0 ? number + size : number;
        const Py_ssize_t place = from_end < 0 ? 0 : from_end < size ? from_end : size;
        const value v = made.get();
        return done(into.insert(static_cast<std::size_t>(place), &v, 1));
    });
}

PyObject *list_extend(PyObject *self, PyObject *given) {
    const ref items(PySequence_List(given));
    if (!items)
        return nullptr;
    return none_after(as_proxy(self),
                      [&](heap &of) { return replace(of, as_proxy(self), SIZE_MAX, SIZE_MAX, items.get()); });
}

// _rearrange(numbers): the item that is to stand at each place.
PyObject *list_rearrange(PyObject *self, PyObject *numbers) {
    return none_after(as_proxy(self), [&](heap &) {
        std::vector<std::uint32_t> order;
        std::vector<bool> seen(container_of<list>(as_proxy(self)).size());
        for (Py_ssize_t i = 0; i < PySequence_Size(numbers); ++i) {
            const ref number(PySequence_GetItem(numbers, i));
            const unsigned long one = number ? PyLong_AsUnsignedLong(number.get()) : 0;
            if (PyErr_Occurred())
                return false;
            if (one >= seen.size() || seen[one])
                break;
            seen[one] = true;
            order.push_back(static_cast<std::uint32_t>(one));
        }
        if (!use(as_proxy(self)))
            return false;
        list in = container_of<list>(as_proxy(self));
        if (order.size() != in.size()) {
            PyErr_SetString(PyExc_ValueError, "list modified during sort");
            return false;
        }
        std::vector<value> room(order.size());
        return done(in.rearrange(order.data(), room.data()));
    });
}

template <class T, iterates what, bool backwards>
PyObject *iterate(PyObject *self) {
    return use(as_proxy(self)) ? new_iterator(as_proxy(self), what, backwards) : nullptr;
}
template <class T, iterates what>
PyObject *iterate_back(PyObject *self, PyObject *) {
    return iterate<T, what, true>(self);
}

// ---- Deques.

template <bool front>
PyObject *deque_add(PyObject *self, PyObject *item) {
    return none_after(as_proxy(self), [&](heap &of) {
        made_value made(of);
        if (!made.make(item) || !use(as_proxy(self)))
            return false;
        deque into = container_of<deque>(as_proxy(self));
        return done(front ? into.push_front(made.get()) : into.push_back(made.get()));
    });
}

template <bool front>
PyObject *deque_take(PyObject *self, PyObject *) {
    ref taken;
    const bool good = change_of(as_proxy(self), [&](heap &of) {
        if (container_of<deque>(as_proxy(self)).empty()) {
            PyErr_SetString(PyExc_IndexError, "pop from an empty deque");
            return false;
        }
        const std::uint32_t stamp = container_of<deque>(as_proxy(self)).stamp();
        const auto number = [&] { return front ? 0 : container_of<deque>(as_proxy(self)).size() - 1; };
        taken = ref(plain_copy(of, container_of<deque>(as_proxy(self)).at(number())));
        if (!taken || !use(as_proxy(self)))
            return false;
        deque from = container_of<deque>(as_proxy(self));
        if (from.stamp() != stamp) {
            PyErr_SetString(PyExc_RuntimeError, "deque changed while an item was taken out");
            return false;
        }
        if (!of.let_go(from.at(number())))
            return false;
        taiyen::result<value> gone = front ? from.take_front() : from.take_back();
        return done(gone) && done(of.values->discard(taiyen::result<value>(gone).value()));
    });
    return good ? taken.release() : nullptr;
}

// _extend(items, front): adds all of a list, in one change.
PyObject *deque_extend(PyObject *self, PyObject *arguments) {
    PyObject *items = nullptr;
    int front = 0;
    if (!PyArg_ParseTuple(arguments, "O!p", &PyList_Type, &items, &front))
        return nullptr;
    return none_after(as_proxy(self), [&](heap &of) {
        made_value all(of);
        if (!all.make_items(items) || !use(as_proxy(self)))
            return false;
        deque into = container_of<deque>(as_proxy(self));
        for (const value v : all.items())
            if (!done(front ? into.push_front(v) : into.push_back(v)))
                return false;
        return true;
    });
}

// Takes all out at the front, and puts them back there, so the order is turned round; or some of the end.
bool put_in_front(deque in, std::size_t count, bool from_front) {
    std::vector<value> taken;
    taken.reserve(count); // nothing fails for want of it later on
    bool good = true;
    for (; taken.size() < count && good;) {
        taiyen::result<value> one = from_front ? in.take_front() : in.take_back();
        good = done(one);
        if (good)
            taken.push_back(std::move(one).value());
    }
    for (const value v : taken)
        good = done(in.push_front(v)) && good;
    return good;
}

PyObject *deque_rotate(PyObject *self, PyObject *arguments) {
    Py_ssize_t steps = 1;
    if (!PyArg_ParseTuple(arguments, "|n", &steps))
        return nullptr;
    return none_after(as_proxy(self), [&](heap &) {
        const deque in = container_of<deque>(as_proxy(self));
        const auto size = static_cast<Py_ssize_t>(in.size());
        const Py_ssize_t count = size ? (steps % size + size) % size : 0;
        return put_in_front(in, static_cast<std::size_t>(count), false);
    });
}

PyObject *deque_reverse(PyObject *self, PyObject *) {
    return none_after(as_proxy(self), [&](heap &) {
        const deque in = container_of<deque>(as_proxy(self));
        return put_in_front(in, in.size(), true);
    });
}

PyObject *deque_insert(PyObject *self, PyObject *arguments) {
    Py_ssize_t number = 0;
    PyObject *item = nullptr;
    if (!PyArg_ParseTuple(arguments, "nO", &number, &item))
        return nullptr;
    return none_after(as_proxy(self), [&](heap &of) {
        made_value made(of);
        if (!made.make(item) || !use(as_proxy(self)))
            return false;
        deque into = container_of<deque>(as_proxy(self));
        const auto size = static_cast<Py_ssize_t>(into.size());
        const Py_ssize_t from_end = number < 0 ? number + size : number;
        const Py_ssize_t place = from_end < 0 ? 0 : from_end < size ? from_end : size;
        return done(into.insert(static_cast<std::size_t>(place), made.get()));
    });
}

PyMethodDef list_methods[] = {
    method<list_append>("append", METH_O, "append(item): adds an item behind the last."),
    method<list_insert>("insert", METH_VARARGS, "insert(index, item): puts an item before that one."),
    method<list_extend>("extend", METH_O, "extend(items): adds all items, in one change."),
    method<clear_all<list>>("clear", METH_NOARGS, "clear(): takes everything out."),
    method<iterate_back<list, iterates::list>>("__reversed__", METH_NOARGS, nullptr),
    method<list_rearrange>("_rearrange", METH_O, nullptr),
    TYPY_COMMON_METHODS,
    {}};
PyMethodDef deque_methods[] = {
    method<deque_add<false>>("append", METH_O, "append(item): adds an item behind the last."),
    method<deque_add<true>>("appendleft", METH_O, "appendleft(item): adds an item before the first."),
    method<deque_extend>("_extend", METH_VARARGS),
    method<deque_take<false>>("pop", METH_NOARGS, "pop(): takes the last item out, as a plain object."),
    method<deque_rotate>("rotate", METH_VARARGS,
                         "rotate(steps=1): takes items from the end, and puts them before the first."),
    method<deque_reverse>("reverse", METH_NOARGS, "reverse(): turns the order round."),
    method<deque_take<true>>("popleft", METH_NOARGS, "popleft(): takes the first item out, as a plain object."),
    method<deque_insert>("insert", METH_VARARGS, "insert(index, item): puts an item before that one."),
    method<clear_all<deque>>("clear", METH_NOARGS, "clear(): takes everything out."),
    method<iterate_back<deque, iterates::deque>>("__reversed__", METH_NOARGS, nullptr),
    TYPY_COMMON_METHODS,
    {}};

PyType_Slot list_slots[] = {slot<proxy_dealloc>(Py_tp_dealloc),
                            slot<proxy_new>(Py_tp_new),
                            {Py_tp_methods, list_methods},
                            slot<iterate<list, iterates::list, false>>(Py_tp_iter),
                            slot<size_of<list>>(Py_sq_length),
                            slot<size_of<list>>(Py_mp_length),
                            slot<sequence_item<list>>(Py_sq_item),
                            slot<list_item>(Py_mp_subscript),
                            slot<list_set_item>(Py_mp_ass_subscript),
                            {}};
PyType_Slot deque_slots[] = {slot<proxy_dealloc>(Py_tp_dealloc),
                             slot<proxy_new>(Py_tp_new),
                             {Py_tp_methods, deque_methods},
                             slot<iterate<deque, iterates::deque, false>>(Py_tp_iter),
                             slot<size_of<deque>>(Py_sq_length),
                             slot<size_of<deque>>(Py_mp_length),
                             slot<sequence_item<deque>>(Py_sq_item),
                             slot<item_at<deque>>(Py_mp_subscript),
                             slot<set_item<deque>>(Py_mp_ass_subscript),
                             {}};

} // namespace

PyType_Spec list_spec = {"taiyen._core.ListBase", sizeof(proxy), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                         list_slots};
PyType_Spec deque_spec = {"taiyen._core.DequeBase", sizeof(proxy), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                          deque_slots};

} // namespace typy
