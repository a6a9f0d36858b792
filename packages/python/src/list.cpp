// Lists and deques: the slots that are to be fast. taiyen/_containers.py has the rest.
#include "slots.hpp"

#include <new>
#include <numeric>

namespace typy {

namespace {

using taiyen::deque;
using taiyen::list;

// ---- Both.

template <class T>
constexpr const char *what = std::is_same_v<T, deque> ? "deque" : "list";

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
    const Py_ssize_t given = index_of(index, what<T>);
    if ((given == -1 && PyErr_Occurred()) || !use(self))
        return SIZE_MAX;
    return place_in<T>(self, given);
}

template <class T>
PyObject *item_at(PyObject *self, PyObject *index) {
    heap *of = use_newest(as_proxy(self));
    const std::size_t number = of ? number_in<T>(as_proxy(self), index) : SIZE_MAX;
    return number == SIZE_MAX ? nullptr : load(*of, container_of<T>(as_proxy(self)).at(number));
}

template <class T>
PyObject *sequence_item(PyObject *self, Py_ssize_t number) {
    heap *of = use_newest(as_proxy(self));
    if (!of)
        return nullptr;
    const value v = number < 0 ? value() : container_of<T>(as_proxy(self)).at(static_cast<std::size_t>(number));
    if (!v.is_nothing())
        return load(*of, v);
    PyErr_SetString(PyExc_IndexError, "index out of range");
    return nullptr;
}

// A container's items so many times.
template <class T>
std::vector<value> repeated(const T &from, Py_ssize_t times) {
    std::vector<value> all;
    const std::size_t size = from.size();
    if (size && static_cast<std::size_t>(times) > all.max_size() / size)
        throw std::bad_alloc();
    all.reserve(size * static_cast<std::size_t>(times));
    for (Py_ssize_t i = 0; i < times; ++i)
        for (std::size_t number = 0; number < size; ++number)
            all.push_back(from.at(number));
    return all;
}

// PY31. Room for all comes first.
bool push_all(heap &of, proxy *self, const std::vector<value> &items, bool front) {
    deque into = container_of<deque>(self);
    if (!done(into.reserve_more(items.size())) || !reserve_counts(of, items))
        return false;
    for (const value v : items)
        if (!done(front ? into.push_front(v) : into.push_back(v)))
            return false;
    return true;
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
    const Py_ssize_t given = index_of(index, what<T>);
    if (given == -1 && PyErr_Occurred())
        return -1;
    return change_of(as_proxy(self), [&](heap &of) { return set_or_erase<T>(of, as_proxy(self), given, item); }) ? 0
                                                                                                                 : -1;
}

// PY30. _pop(index).
template <class T>
PyObject *pop_at(PyObject *self, PyObject *index) {
    const Py_ssize_t given = index_of(index, what<T>);
    heap *of = given == -1 && PyErr_Occurred() ? nullptr : use_newest(as_proxy(self));
    if (!of)
        return nullptr;
    const auto number = [&] {
        return static_cast<std::size_t>(
            given < 0 ? given + static_cast<Py_ssize_t>(container_of<T>(as_proxy(self)).size()) : given);
    };
    const auto missing = [&]() -> PyObject * {
        const bool is_empty = container_of<T>(as_proxy(self)).empty();
        PyErr_SetString(PyExc_IndexError, is_empty ? "pop from empty list" : "index out of range");
        return nullptr;
    };
    return take_out(
        self,
        [&] {
            return looked_at{container_of<T>(as_proxy(self)).at(number()), {}};
        },
        [&](const looked_at &entry) { return plain_copy(*of, entry.item); },
        [&](heap &) { return done(container_of<T>(as_proxy(self)).erase(number())); }, missing);
}

// PY30. remove(item): takes the first item out that equals it. It is looked for before the change, since none is begun
// for what is not there, and again within it if anything has changed meanwhile.
template <class T>
PyObject *remove_item(PyObject *self, PyObject *object) {
    heap *of = use_newest(as_proxy(self));
    if (!of)
        return nullptr;
    std::vector<value> words;
    const auto item = [&](std::size_t place) {
        words.resize(std::max(words.size(), place + 1));
        words[place] = container_of<T>(as_proxy(self)).at(place);
        return load(*of, words[place]);
    };
    std::size_t number = 0;
    const auto find = [&] {
        if (!find_equal<T>(self, object, 0, SIZE_MAX, item, &number))
            return false;
        if (number == SIZE_MAX)
            PyErr_Format(PyExc_ValueError, "%R is not in %s", object, what<T>);
        return number != SIZE_MAX;
    };
    const std::uint64_t stamp = of->values->stamp();
    if (!find())
        return nullptr;
    return none_after(as_proxy(self), [&](heap &) {
        const bool looks = !fault("another_item_removed_than_was_found");
        if (looks && of->values->stamp() != stamp && !find())
            return false;
        while (looks && !same(container_of<T>(as_proxy(self)).at(number), words[number])) // a comparison has changed it
            if (!find())
                return false;
        return open_up(*of, as_proxy(self)) && of->let_go(container_of<T>(as_proxy(self)).at(number)) &&
               done(container_of<T>(as_proxy(self)).erase(number));
    });
}

// PY30. _repeat(times): all items so many times, one or more.
PyObject *list_repeat(PyObject *self, PyObject *number) {
    const Py_ssize_t times = PyNumber_AsSsize_t(number, PyExc_OverflowError);
    if (PyErr_Occurred())
        return nullptr;
    return none_after(as_proxy(self), [&](heap &of) {
        if (!open_up(of, as_proxy(self)))
            return false;
        list into = container_of<list>(as_proxy(self));
        const std::vector<value> more = repeated(into, times - 1);
        return done(into.insert(into.size(), more.data(), more.size()));
    });
}
PyObject *deque_repeat(PyObject *self, PyObject *number) {
    const Py_ssize_t times = PyNumber_AsSsize_t(number, PyExc_OverflowError);
    if (PyErr_Occurred())
        return nullptr;
    return none_after(as_proxy(self), [&](heap &of) {
        return push_all(of, as_proxy(self), repeated(container_of<deque>(as_proxy(self)), times - 1), false);
    });
}

// ---- Lists.

PyObject *list_item(PyObject *self, PyObject *index) {
    if (!PySlice_Check(index))
        return item_at<list>(self, index);
    heap *of = use_newest(as_proxy(self));
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
    if (!gone.keep() || !reserve_counts(of, all.items()))
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
    ref items(item ? items_of(item) : PyList_New(0)); // a list of its own, whatever runs meanwhile
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
    const ref items(items_of(given));
    if (!items)
        return nullptr;
    return none_after(as_proxy(self),
                      [&](heap &of) { return replace(of, as_proxy(self), SIZE_MAX, SIZE_MAX, items.get()); });
}

// PY30. reverse() and _sort(key, reverse): each one change.
PyObject *list_reverse(PyObject *self, PyObject *) {
    return none_after(as_proxy(self), [&](heap &) {
        list in = container_of<list>(as_proxy(self));
        std::vector<std::uint32_t> order(in.size());
        std::iota(order.rbegin(), order.rend(), 0u);
        std::vector<value> room(order.size());
        return done(in.rearrange(order.data(), room.data()));
    });
}

PyObject *list_sort(PyObject *self, PyObject *arguments) {
    PyObject *key, *reverse;
    if (!PyArg_ParseTuple(arguments, "OO", &key, &reverse))
        return nullptr;
    return none_after(as_proxy(self), [&](heap &) {
        const std::vector<value> before = repeated(container_of<list>(as_proxy(self)), 1);
        const ref items(PySequence_List(self));
        const ref numbers(items ? sorted_numbers(items.get(), key, reverse) : ref());
        std::vector<std::uint32_t> order(before.size());
        if (!numbers || !use(as_proxy(self)))
            return false;
        list in = container_of<list>(as_proxy(self));
        bool good = PyList_Size(numbers.get()) == static_cast<Py_ssize_t>(order.size()) && in.size() == order.size();
        for (std::size_t i = 0; i < order.size() && good; ++i) {
            good = same(in.at(i), before[i]);
            order[i] = static_cast<std::uint32_t>(
                PyLong_AsUnsignedLong(PyList_GetItem(numbers.get(), static_cast<Py_ssize_t>(i))));
        }
        if (!good) {
            PyErr_SetString(PyExc_ValueError, "list modified during sort");
            return false;
        }
        std::vector<value> room(order.size());
        return done(in.rearrange(order.data(), room.data()));
    });
}

template <class T, iterates what, bool backwards>
PyObject *iterate(PyObject *self) {
    return use_newest(as_proxy(self)) ? new_iterator(as_proxy(self), what, backwards) : nullptr;
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

// PY30.
template <bool front>
PyObject *deque_take(PyObject *self, PyObject *) {
    heap *of = use_newest(as_proxy(self));
    if (!of)
        return nullptr;
    const auto look = [&]() -> looked_at {
        const deque from = container_of<deque>(as_proxy(self));
        return {from.empty() ? value() : from.at(front ? 0 : from.size() - 1), {}};
    };
    const auto erase = [&](heap &) {
        deque from = container_of<deque>(as_proxy(self));
        taiyen::result<value> gone = front ? from.take_front() : from.take_back();
        return done(gone) && done(of->values->discard(taiyen::result<value>(gone).value()));
    };
    const auto missing = []() -> PyObject * {
        PyErr_SetString(PyExc_IndexError, "pop from an empty deque");
        return nullptr;
    };
    return take_out(
        self, look, [&](const looked_at &entry) { return plain_copy(*of, entry.item); }, erase, missing);
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
        return push_all(of, as_proxy(self), all.items(), front != 0);
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
    method<list_append>("append", METH_O, "append(item): adds an item after the last."),
    method<list_insert>("insert", METH_VARARGS, "insert(index, item): puts an item before that one."),
    method<list_extend>("extend", METH_O, "extend(items): adds all items, in one change."),
    method<clear_all<list>>("clear", METH_NOARGS, "clear(): takes everything out."),
    method<iterate_back<list, iterates::list>>("__reversed__", METH_NOARGS, nullptr),
    method<list_reverse>("reverse", METH_NOARGS, "reverse(): turns the order round."),
    method<list_sort>("_sort", METH_VARARGS, nullptr),
    method<list_repeat>("_repeat", METH_O, nullptr),
    method<pop_at<list>>("_pop", METH_O, nullptr),
    method<remove_item<list>>("remove", METH_O, "remove(item): takes the first item out that equals it."),
    method<find_item<list, sequence_item<list>>>("_find", METH_VARARGS, nullptr),
    method<count_items<list, sequence_item<list>>>("count", METH_O, "count(item): how many items equal it."),
    TYPY_COMMON_METHODS,
    {}};
PyMethodDef deque_methods[] = {
    method<deque_add<false>>("append", METH_O, "append(item): adds an item after the last."),
    method<deque_add<true>>("appendleft", METH_O, "appendleft(item): adds an item before the first."),
    method<deque_extend>("_extend", METH_VARARGS),
    method<deque_repeat>("_repeat", METH_O, nullptr),
    method<remove_item<deque>>("remove", METH_O, "remove(item): takes the first item out that equals it."),
    method<find_item<deque, sequence_item<deque>>>("_find", METH_VARARGS, nullptr),
    method<count_items<deque, sequence_item<deque>>>("count", METH_O, "count(item): how many items equal it."),
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
