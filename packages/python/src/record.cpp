// Records in a heap: Python's object for all of them, which is a list, and for each of them, a row.
#include "record.hpp"
#include "slots.hpp"

#include <algorithm>
#include <cstring>
#include <map>

namespace typy {

namespace {

using taiyen::records;

struct row {
    PyObject_HEAD struct records_proxy *list; // NULL: its record was deleted, or replaced
    std::size_t number;
    std::string *replaced; // the record's bytes when another one took its place; or NULL
};

// Rows are notified when records come or go before theirs; what else may have changed the order, the stamp shows.
struct records_proxy {
    proxy base;
    const layout *of;
    std::map<std::size_t, row *> *rows;
    std::uint32_t stamp;
};

struct field_object {
    PyObject_HEAD const layout *of;
    const field *one;
};

PyTypeObject *row_type = nullptr;
PyTypeObject *field_type = nullptr;

records_proxy *as_records(PyObject *object) {
    return reinterpret_cast<records_proxy *>(object);
}
row *as_row(PyObject *object) {
    return reinterpret_cast<row *>(object);
}
records container_of_rows(const records_proxy *list) {
    return container_of<records>(&list->base);
}

// ---- Rows.

void end_row(row *one) {
    Py_XDECREF(reinterpret_cast<PyObject *>(std::exchange(one->list, nullptr)));
}
// Those from a number on (below another one). The caller keeps the list.
void end_rows(records_proxy *list, std::size_t from, std::size_t to = SIZE_MAX) {
    for (auto at = list->rows->lower_bound(from); at != list->rows->end() && at->first < to;) {
        row *one = at->second;
        at = list->rows->erase(at);
        end_row(one);
    }
}
// PY10. After each change that puts records elsewhere, or others in their place.
void changed(records_proxy *list) {
    list->stamp = container_of_rows(list).stamp();
}
// PY19. Records [from, to) are replaced by others: their rows are of what they were, to be read and stored again, as
// items of a list that others took the place of. Before the change: the rows with their bytes.
using rows_kept = std::vector<std::pair<ref, std::string>>;
rows_kept keep_rows(records_proxy *list, std::size_t from, std::size_t to) {
    rows_kept kept;
    const records in = container_of_rows(list);
    for (auto at = list->rows->lower_bound(from); at != list->rows->end() && at->first < to; ++at)
        if (!is_going(at->second))
            kept.emplace_back(ref::borrowed(reinterpret_cast<PyObject *>(at->second)),
                              std::string(static_cast<const char *>(in.at(at->first)), in.item_size()));
    return kept;
}
// After it. The caller keeps the list.
void replace_rows(records_proxy *list, rows_kept kept) {
    for (auto &[object, bytes] : kept) {
        row *one = as_row(object.get());
        one->replaced = new std::string(std::move(bytes));
        list->rows->erase(one->number);
        end_row(one);
    }
    changed(list);
}
// PY10. Those after a change have other numbers.
void move_rows(records_proxy *list, std::size_t from, std::ptrdiff_t by) {
    std::map<std::size_t, row *> moved;
    for (auto at = list->rows->lower_bound(from); at != list->rows->end(); at = list->rows->erase(at)) {
        at->second->number += static_cast<std::size_t>(by > 0 || !fault("row_of_another_record") ? by : 0);
        moved.emplace(at->second->number, at->second);
    }
    list->rows->merge(moved);
}
// So many records have gone, at equal distances.
void end_rows_stepwise(records_proxy *list, std::size_t from, std::size_t count, std::size_t stride) {
    std::map<std::size_t, row *> left;
    for (const auto &[number, one] : *list->rows) {
        const std::size_t gone = number < from ? 0 : std::min((number - from) / stride + 1, count);
        if (gone && number == from + (gone - 1) * stride) {
            end_row(one);
        } else {
            one->number = number - gone;
            left.emplace(one->number, one);
        }
    }
    list->rows->swap(left);
}
PyObject *row_of(records_proxy *list, std::size_t number) {
    look_at_rows(&list->base);
    const without_cycles no_code; // PY34
    const auto place = list->rows->find(number);
    if (place != list->rows->end() && !is_going(place->second))
        return Py_NewRef(reinterpret_cast<PyObject *>(place->second));
    if (place != list->rows->end()) { // another one takes its place
        end_row(place->second);
        list->rows->erase(place);
    }
    PyObject *made = PyType_GenericAlloc(newest(list->of)->row, 0);
    if (!made)
        return nullptr;
    as_row(made)->list = as_records(Py_NewRef(reinterpret_cast<PyObject *>(list)));
    as_row(made)->number = number;
    (*list->rows)[number] = as_row(made);
    return made;
}

// The records that a row is of, if they can be used, and it is one of them.
records_proxy *use_row(row *one) {
    if (one->list && !use(&one->list->base))
        return nullptr;
    if (one->list)
        look_at_rows(&one->list->base);
    if (one->list)
        return one->list;
    raise_own(status_deleted, "what this stands for was deleted from the heap", "look it up again");
    return nullptr;
}

// PY41. Before it is read. False: there is an exception.
bool see_newest(row *one) {
    return !one->list || use_newest(&one->list->base);
}

void row_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    row *one = as_row(self);
    if (one->list)
        one->list->rows->erase(one->number);
    end_row(one);
    delete std::exchange(one->replaced, nullptr);
    reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

// Called as the class that it is derived from: a plain record.
PyObject *row_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
    if (const layout *of = layout_of(type))
        return PyObject_Call(reinterpret_cast<PyObject *>(of->plain), arguments, keywords);
    PyErr_SetString(PyExc_TypeError, "a record of a heap is made by storing one there");
    return nullptr;
}

int row_set_attribute(PyObject *self, PyObject *name, PyObject *item) {
    if (PyUnicode_Check(name) && PyUnicode_CompareWithASCIIString(name, "__class__") == 0) {
        PyErr_SetString(PyExc_TypeError, "a record in a heap keeps its class");
        return -1;
    }
    const ref there(PyObject_GetAttr(reinterpret_cast<PyObject *>(Py_TYPE(self)), name));
    if (there)
        return PyObject_GenericSetAttr(self, name, item);
    PyErr_Clear();
    PyErr_Format(PyExc_AttributeError, "a record %R in a heap has no field %R", Py_TYPE(self), name);
    return -1;
}

PyObject *row_plain(PyObject *self, PyObject *) {
    const layout *of = see_newest(as_row(self)) && bytes_of_row(self) ? layout_of(Py_TYPE(self)) : nullptr;
    const ref made(of ? PyObject_CallMethod(reinterpret_cast<PyObject *>(of->plain), "__new__", "O", of->plain)
                      : nullptr);
    if (!made)
        return nullptr;
    for (const field &one : of->fields) {
        const char *bytes = bytes_of_row(self);
        const ref item(bytes ? load_field(one, bytes + one.offset) : nullptr);
        if (!item || PyObject_SetAttr(made.get(), one.name.get(), item.get()) < 0)
            return nullptr;
    }
    return Py_NewRef(made.get());
}
PyObject *row_heap(PyObject *self, PyObject *) {
    records_proxy *list = as_row(self)->list;
    return list ? heap_of(reinterpret_cast<PyObject *>(list), nullptr) : Py_NewRef(Py_None);
}
PyObject *row_is_alive(PyObject *self, PyObject *) {
    if (use_row(as_row(self)))
        Py_RETURN_TRUE;
    PyErr_Clear();
    Py_RETURN_FALSE;
}

// ---- Fields.

PyObject *field_new(PyTypeObject *type, PyObject *arguments, PyObject *) {
    Py_ssize_t number, place;
    if (!PyArg_ParseTuple(arguments, "nn", &number, &place))
        return nullptr;
    const layout *of = layout_numbered(number);
    if (!of || place < 0 || static_cast<std::size_t>(place) >= of->fields.size())
        return of ? PyErr_Format(PyExc_ValueError, "no field has that number") : nullptr;
    PyObject *made = PyType_GenericAlloc(type, 0);
    if (made) {
        reinterpret_cast<field_object *>(made)->of = of;
        reinterpret_cast<field_object *>(made)->one = &of->fields[static_cast<std::size_t>(place)];
    }
    return made;
}
void field_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}
bool is_of(const field_object *self, PyObject *object) {
    if (is_row(object) && layout_of(Py_TYPE(object)) == self->of)
        return true;
    PyErr_Format(PyExc_TypeError, "a field of %s is not one of %R", self->of->name.c_str(), Py_TYPE(object));
    return false;
}
PyObject *field_get(PyObject *self, PyObject *object, PyObject *) {
    const auto *at = reinterpret_cast<field_object *>(self);
    if (!object || object == Py_None)
        return Py_NewRef(self);
    const char *bytes = is_of(at, object) && see_newest(as_row(object)) ? bytes_of_row(object) : nullptr;
    return bytes ? load_field(*at->one, bytes + at->one->offset) : nullptr;
}
int field_set(PyObject *self, PyObject *object, PyObject *item) {
    const auto *at = reinterpret_cast<field_object *>(self);
    if (!item || !is_of(at, object)) {
        if (!PyErr_Occurred())
            PyErr_Format(PyExc_AttributeError, "a field of a record cannot be deleted");
        return -1;
    }
    std::string bytes(at->one->size, '\0');
    records_proxy *list = use_row(as_row(object));
    if (!list || !pack_field(*at->one, item, bytes.data(), [&] { return at->of->name; }) ||
        !(list = use_row(as_row(object))))
        return -1;
    const ref kept = ref::borrowed(reinterpret_cast<PyObject *>(list));
    const bool good = change_of(&list->base, [&](heap &) {
        return use_row(as_row(object)) &&
               done(container_of_rows(list).store(as_row(object)->number, at->one->offset, bytes.data(), bytes.size()));
    });
    return good ? 0 : -1;
}

// ---- Records.

void records_dealloc(PyObject *self) {
    delete std::exchange(as_records(self)->rows, nullptr); // rows keep it: there are none
    proxy_dealloc(self);
}

std::size_t number_in(PyObject *self, Py_ssize_t number) {
    const auto size = use(as_proxy(self)) ? container_of_rows(as_records(self)).size() : 0;
    if (!PyErr_Occurred() && number >= 0 && static_cast<std::size_t>(number) < size)
        return static_cast<std::size_t>(number);
    if (!PyErr_Occurred())
        PyErr_SetString(PyExc_IndexError, "index out of range");
    return SIZE_MAX;
}
// Of an index, which may count from the end.
std::size_t number_from_end(PyObject *self, Py_ssize_t index) {
    const auto size =
        use(as_proxy(self)) ? static_cast<Py_ssize_t>(container_of_rows(as_records(self)).size()) : Py_ssize_t{0};
    return number_in(self, index < 0 ? index + size : index);
}

// Whether there are as many as when a change was made up, for its begin may wait for others; -1: any.
bool is_so_many(PyObject *self, Py_ssize_t size) {
    if (size < 0 || static_cast<std::size_t>(size) == container_of_rows(as_records(self)).size())
        return true;
    PyErr_SetString(PyExc_RuntimeError, "records changed size while others were stored in their place");
    return false;
}

// PY2. A change of how many there are, or where they lie. No view may see that.
template <class Function>
PyObject *reshape(PyObject *self, Function &&function, Py_ssize_t size = -1) {
    return none_after(as_proxy(self), [&](heap &of) {
        if (!is_so_many(self, size))
            return false;
        if (of.viewed.count(as_proxy(self)->block) && !fault("records_with_views_move")) {
            raise_own(status_live_views, "records with views cannot become more or fewer",
                      "delete the arrays and memoryviews that lead into them first: Heap.views() names them");
            return false;
        }
        look_at_rows(as_proxy(self));
        const void *before = container_of_rows(as_records(self)).data();
        if (!function(container_of_rows(as_records(self))) || !use(as_proxy(self))) // PY34: rows may go with code
            return false;
        if (container_of_rows(as_records(self)).data() != before && (of.transaction_open || of.step_open))
            of.fresh_arrays.insert(as_proxy(self)->block); // a rollback would free where they are now
        changed(as_records(self));
        return true;
    });
}

// _insert(number, list): records before the one with that number, which may be any, as a list's.
PyObject *insert(PyObject *self, PyObject *arguments) {
    Py_ssize_t number;
    PyObject *list;
    std::string bytes;
    if (!PyArg_ParseTuple(arguments, "nO!", &number, &PyList_Type, &list) || !use(as_proxy(self)))
        return nullptr;
    const layout *of = as_records(self)->of;
    if (!pack_records(*of, list, &bytes, [] { return std::string("value"); }))
        return nullptr;
    const std::size_t count = bytes.size() / of->size;
    return reshape(self, [&](records in) {
        const auto size = static_cast<Py_ssize_t>(in.size());
        const auto place =
            static_cast<std::size_t>(std::clamp<Py_ssize_t>(number < 0 ? number + size : number, 0, size));
        if (!done(in.insert(place, bytes.data(), count)))
            return false;
        move_rows(as_records(self), place, static_cast<std::ptrdiff_t>(count));
        return true;
    });
}

// _append_bytes(buffer): the bytes of records after the last.
PyObject *append_bytes(PyObject *self, PyObject *object) {
    Py_buffer view;
    if (!use(as_proxy(self)) || PyObject_GetBuffer(object, &view, PyBUF_SIMPLE) < 0)
        return nullptr;
    const std::string bytes(static_cast<const char *>(view.buf), static_cast<std::size_t>(view.len));
    PyBuffer_Release(&view);
    const std::size_t size = as_records(self)->of->size;
    if (bytes.size() % size)
        return PyErr_Format(PyExc_ValueError, "%zu bytes are no records of %zu bytes", bytes.size(), size);
    return reshape(self, [&](records in) { return done(in.insert(in.size(), bytes.data(), bytes.size() / size)); });
}
bool erase_records(PyObject *self, records in, std::size_t first, std::size_t count) {
    if (!done(in.erase(first, count)))
        return false;
    end_rows(as_records(self), first, first + count);
    move_rows(as_records(self), first, -static_cast<std::ptrdiff_t>(count));
    return true;
}

// PY30. _erase(index): the record with that index, which is counted from the end within the change.
PyObject *erase(PyObject *self, PyObject *index) {
    const Py_ssize_t given = index_of(index, "list");
    if ((given == -1 && PyErr_Occurred()) || !use_newest(as_proxy(self)) ||
        number_from_end(self, given) == SIZE_MAX) // no change is begun for it
        return nullptr;
    return reshape(self, [&](records in) {
        const std::size_t place = number_from_end(self, given);
        return place != SIZE_MAX && erase_records(self, in, place, 1);
    });
}

// _resize(size): those of zeros come, or the last ones go.
PyObject *resize(PyObject *self, PyObject *number) {
    const std::size_t size = PyLong_AsSize_t(number);
    if (PyErr_Occurred())
        return nullptr;
    return reshape(self, [&](records in) {
        return size < in.size() ? erase_records(self, in, size, in.size() - size)
                                : done(in.insert(in.size(), nullptr, size - in.size()));
    });
}

// _erase_slice(slice): those of a slice, in one change.
PyObject *erase_slice(PyObject *self, PyObject *slice) {
    Py_ssize_t start, stop, step;
    if (PySlice_Unpack(slice, &start, &stop, &step) < 0 || !use(as_proxy(self)))
        return nullptr;
    return reshape(self, [&](records in) {
        const auto count =
            static_cast<std::size_t>(PySlice_AdjustIndices(static_cast<Py_ssize_t>(in.size()), &start, &stop, step));
        if (count == 0)
            return true;
        const Py_ssize_t last = start + static_cast<Py_ssize_t>(count - 1) * step;
        const auto from = static_cast<std::size_t>(std::min(start, last));
        const auto stride = static_cast<std::size_t>(std::abs(step)), width = in.item_size();
        std::string between; // the records that stay, up to the last one that goes
        for (std::size_t i = 0; i + 1 < count; ++i)
            between.append(static_cast<const char *>(in.at(from + i * stride)) + width, (stride - 1) * width);
        if (!done(in.replace(from, (count - 1) * stride + 1, between.data(), between.size() / width)))
            return false;
        end_rows_stepwise(as_records(self), from, count, stride);
        return true;
    });
}

// PY30. Records in another order. numbers(): that of the one that is to stand at each place; a list, or NULL with an
// exception. It may run any code.
template <class Numbers>
PyObject *rearrange(PyObject *self, Numbers &&numbers) {
    return none_after(as_proxy(self), [&](heap &) {
        records_proxy *list = as_records(self);
        const std::uint32_t stamp = container_of_rows(list).stamp();
        const ref given(numbers());
        std::vector<std::uint32_t> order;
        for (Py_ssize_t i = 0; given && i < PyList_Size(given.get()); ++i)
            order.push_back(static_cast<std::uint32_t>(PyLong_AsUnsignedLong(PyList_GetItem(given.get(), i))));
        if (PyErr_Occurred() || !use(as_proxy(self)))
            return false;
        records in = container_of_rows(list);
        std::vector<std::uint32_t> place(order.size(), UINT32_MAX);
        for (std::uint32_t i = 0; i < order.size(); ++i)
            if (order[i] < order.size())
                place[order[i]] = i;
        if (in.stamp() != stamp || order.size() != in.size() || std::count(place.begin(), place.end(), UINT32_MAX)) {
            PyErr_SetString(PyExc_ValueError, "list modified during sort");
            return false;
        }
        look_at_rows(&list->base);
        std::vector<char> room(in.size() * list->of->size);
        if (!done(in.rearrange(order.data(), room.data())))
            return false;
        std::map<std::size_t, row *> moved;
        for (const auto &[number, one] : *list->rows)
            moved.emplace(one->number = place[number], one);
        list->rows->swap(moved);
        changed(list);
        return true;
    });
}

// _sort(key, reverse); reverse().
PyObject *sort(PyObject *self, PyObject *arguments) {
    PyObject *key, *backwards;
    if (!PyArg_ParseTuple(arguments, "OO", &key, &backwards))
        return nullptr;
    return rearrange(self, [&] {
        const ref items(PySequence_List(self));
        return items ? sorted_numbers(items.get(), key, backwards) : ref();
    });
}
PyObject *reverse(PyObject *self, PyObject *) {
    return rearrange(self, [&] {
        const std::size_t size = container_of_rows(as_records(self)).size();
        ref numbers(PyList_New(0));
        for (std::size_t number = size; numbers && number > 0; --number) {
            const ref one(PyLong_FromSize_t(number - 1));
            if (!one || PyList_Append(numbers.get(), one.get()) < 0)
                return ref();
        }
        return numbers;
    });
}

// After it stands Python's own, for numbers below zero.
PyObject *item(PyObject *self, Py_ssize_t number) {
    const std::size_t place = use_newest(as_proxy(self)) ? number_in(self, number) : SIZE_MAX;
    return place == SIZE_MAX ? nullptr : row_of(as_records(self), place);
}

// PY14. The rows of one moment.
PyObject *rows_of_slice(PyObject *self, PyObject *slice) {
    Py_ssize_t start, stop, step;
    if (PySlice_Unpack(slice, &start, &stop, &step) < 0 || !use_newest(as_proxy(self)))
        return nullptr;
    const without_cycles no_code; // PY34
    const Py_ssize_t count =
        PySlice_AdjustIndices(static_cast<Py_ssize_t>(container_of_rows(as_records(self)).size()), &start, &stop, step);
    ref made(PyList_New(count));
    for (Py_ssize_t i = 0; made && i < count; ++i, start += step) {
        PyObject *row = row_of(as_records(self), static_cast<std::size_t>(start));
        if (!row)
            return nullptr;
        PyList_SetItem(made.get(), i, row);
    }
    return made.release();
}

PyObject *subscript(PyObject *self, PyObject *index) {
    if (PySlice_Check(index))
        return rows_of_slice(self, index);
    const Py_ssize_t given = index_of(index, "list");
    const bool good = (given != -1 || !PyErr_Occurred()) && use_newest(as_proxy(self));
    const std::size_t place = good ? number_from_end(self, given) : SIZE_MAX;
    return place == SIZE_MAX ? nullptr : row_of(as_records(self), place);
}

// Whether it is the row of that record.
bool is_row_at(PyObject *object, records_proxy *list, std::size_t number) {
    return is_row(object) && as_row(object)->list == list && as_row(object)->number == number;
}

// PY30. _pop(index): takes a record out, as a plain one.
PyObject *pop(PyObject *self, PyObject *index) {
    const Py_ssize_t given = PyNumber_AsSsize_t(index, PyExc_IndexError);
    if ((given == -1 && PyErr_Occurred()) || !use_newest(as_proxy(self)))
        return nullptr;
    const auto place = [&] { return number_from_end(self, given); };
    if (container_of_rows(as_records(self)).size() == 0) {
        PyErr_SetString(PyExc_IndexError, "pop from empty list");
        return nullptr;
    }
    if (place() == SIZE_MAX) // no change is begun for it
        return nullptr;
    ref taken;
    const ref none(reshape(self, [&](records) {
        while (use(as_proxy(self))) {
            const std::size_t number = place();
            const ref one(number == SIZE_MAX ? nullptr : row_of(as_records(self), number));
            taken = ref(one ? in_python([&] { return row_plain(one.get(), nullptr); }) : nullptr);
            if (!taken || !use(as_proxy(self)) || place() == SIZE_MAX)
                return false;
            if (is_row_at(one.get(), as_records(self), place()))
                return erase_records(self, container_of_rows(as_records(self)), place(), 1);
        }
        return false;
    }));
    return none ? taken.release() : nullptr;
}

// PY30. remove(record): takes the first record out that equals it. As of lists, but that a row goes with its record.
PyObject *remove(PyObject *self, PyObject *object) {
    std::map<std::size_t, ref> rows; // they go with their records, wherever these are moved to
    std::size_t number = 0;
    const auto find = [&] {
        const auto one = [&](std::size_t at) {
            rows[at] = ref(item(self, static_cast<Py_ssize_t>(at)));
            return rows[at] ? Py_NewRef(rows[at].get()) : nullptr;
        };
        rows.clear();
        if (!find_equal<records>(self, object, 0, SIZE_MAX, one, &number))
            return false;
        if (number == SIZE_MAX)
            PyErr_Format(PyExc_ValueError, "%R is not in list", object);
        return number != SIZE_MAX;
    };
    heap *of = use_newest(as_proxy(self));
    if (!of)
        return nullptr;
    const one_state during(*of);
    const std::uint64_t stamp = of->values->stamp();
    if (!find())
        return nullptr;
    return reshape(self, [&](records) {
        if (of->values->stamp() != stamp && !find())
            return false;
        while (as_row(rows[number].get())->list != as_records(self))
            if (!find())
                return false;
        return erase_records(self, container_of_rows(as_records(self)), as_row(rows[number].get())->number, 1);
    });
}

// _set(number, record): stores a whole one.
PyObject *set(PyObject *self, PyObject *arguments) {
    Py_ssize_t number;
    PyObject *object;
    if (!PyArg_ParseTuple(arguments, "nO", &number, &object) || !use(as_proxy(self)))
        return nullptr;
    std::string bytes(as_records(self)->of->size, '\0');
    if (!pack_record(*as_records(self)->of, object, bytes.data(), [] { return std::string("value"); }))
        return nullptr;
    return none_after(as_proxy(self), [&](heap &) {
        const std::size_t place = number_from_end(self, number);
        if (place == SIZE_MAX || is_row_at(object, as_records(self), place))
            return place != SIZE_MAX;
        look_at_rows(as_proxy(self));
        rows_kept rows = keep_rows(as_records(self), place, place + 1);
        if (!done(container_of_rows(as_records(self)).replace(place, 1, bytes.data(), 1)))
            return false;
        replace_rows(as_records(self), std::move(rows));
        return true;
    });
}

// _replace(slice, list): records in the place of those of a slice, in one change. What is stored may be rows of these.
PyObject *replace(PyObject *self, PyObject *arguments) {
    PyObject *slice, *list;
    std::string bytes;
    Py_ssize_t start, stop, step;
    if (!PyArg_ParseTuple(arguments, "OO!", &slice, &PyList_Type, &list) ||
        PySlice_Unpack(slice, &start, &stop, &step) < 0 || !use(as_proxy(self)) ||
        !pack_records(*as_records(self)->of, list, &bytes, [] { return std::string("value"); }) || !use(as_proxy(self)))
        return nullptr;
    const std::size_t width = as_records(self)->of->size, others = bytes.size() / width;
    const auto size = static_cast<Py_ssize_t>(container_of_rows(as_records(self)).size());
    const auto count = static_cast<std::size_t>(PySlice_AdjustIndices(size, &start, &stop, step));
    if (step != 1 && count != others)
        return PyErr_Format(PyExc_ValueError, "attempt to assign sequence of size %zu to extended slice of size %zu",
                            others, count);
    if (step == 1) {
        const auto first = static_cast<std::size_t>(start);
        const auto function = [&](records in) {
            rows_kept rows = keep_rows(as_records(self), first, first + count);
            if (!done(in.replace(first, count, bytes.data(), others)))
                return false;
            if (others == 0) // nothing takes their place
                end_rows(as_records(self), first, first + count);
            else
                replace_rows(as_records(self), std::move(rows));
            if (others != count)
                move_rows(as_records(self), first, static_cast<std::ptrdiff_t>(others - count));
            return true;
        };
        if (others != count)
            return reshape(self, function, size);
        return none_after(as_proxy(self), [&](heap &) {
            look_at_rows(as_proxy(self));
            return is_so_many(self, size) && function(container_of_rows(as_records(self)));
        });
    }
    return none_after(as_proxy(self), [&](heap &) {
        look_at_rows(as_proxy(self));
        records in = container_of_rows(as_records(self));
        if (!is_so_many(self, size))
            return false;
        if (count == 0)
            return true;
        const Py_ssize_t last = start + static_cast<Py_ssize_t>(count - 1) * step;
        const auto from = static_cast<std::size_t>(std::min(start, last));
        const auto to = static_cast<std::size_t>(std::max(start, last)) + 1;
        std::string all(static_cast<const char *>(in.at(from)), (to - from) * width);
        rows_kept rows;
        for (std::size_t i = 0; i < count; ++i) {
            const auto place = static_cast<std::size_t>(start + static_cast<Py_ssize_t>(i) * step);
            std::memcpy(all.data() + (place - from) * width, bytes.data() + i * width, width);
            for (auto &one : keep_rows(as_records(self), place, place + 1))
                rows.push_back(std::move(one));
        }
        if (!done(in.replace(from, to - from, all.data(), to - from)))
            return false;
        replace_rows(as_records(self), std::move(rows));
        return true;
    });
}

// _use(class): rows are of that class from now on, which has the same fields. False: it has not.
PyObject *use_class(PyObject *self, PyObject *type) {
    heap *of = use(as_proxy(self));
    const layout *wanted = PyType_Check(type) ? layout_of(reinterpret_cast<PyTypeObject *>(type)) : nullptr;
    if (!of || !are_same(wanted, as_records(self)->of))
        return of ? Py_NewRef(Py_False) : nullptr;
    as_records(self)->of = wanted;
    const std::size_t number = container_of_rows(as_records(self)).layout();
    if (number < of->layouts.size() && are_same(of->layouts[number], wanted))
        of->layouts[number] = wanted;
    Py_RETURN_TRUE;
}

PyObject *keep_for_undo(PyObject *self, PyObject *) {
    heap *of = use(as_proxy(self));
    if (!of)
        return nullptr;
    const records in = container_of_rows(as_records(self));
    if (!in.empty() && ty_undo_record(of->handle, in.data(), in.size() * in.item_size()))
        return raise_last(), nullptr;
    Py_RETURN_NONE;
}

PyObject *record_class(PyObject *self, void *) {
    const layout *of = as_records(self)->of;
    return of ? Py_NewRef(reinterpret_cast<PyObject *>(newest(of)->plain)) : Py_NewRef(Py_None);
}

int get_buffer(PyObject *self, Py_buffer *view, int flags) {
    view->obj = nullptr;
    heap *of = use(as_proxy(self));
    if (!of)
        return -1;
    const records in = container_of_rows(as_records(self));
    if (!check_view(*of, as_proxy(self), flags, in.data(), in.size() * in.item_size()) || !use(as_proxy(self)))
        return -1;
    const auto size = static_cast<Py_ssize_t>(in.item_size());
    auto *form = new view_form{{static_cast<Py_ssize_t>(in.size())}, {size}};
    return give_view(*of, self, view, flags, form, in.data(), size,
                     const_cast<char *>(as_records(self)->of->format.c_str()));
}

PyMethodDef records_methods[] = {
    method<insert>("_insert", METH_VARARGS, nullptr),
    method<append_bytes>("_append_bytes", METH_O, nullptr),
    method<resize>("_resize", METH_O, nullptr),
    method<erase>("_erase", METH_O, nullptr),
    method<erase_slice>("_erase_slice", METH_O, nullptr),
    method<pop>("_pop", METH_O, nullptr),
    method<remove>("remove", METH_O, "remove(record): takes the first record out that equals it."),
    method<find_item<records, item>>("_find", METH_VARARGS, nullptr),
    method<count_items<records, item>>("count", METH_O, "count(record): how many records equal it."),
    method<sort>("_sort", METH_VARARGS, nullptr),
    method<reverse>("reverse", METH_NOARGS, "reverse(): turns the order round."),
    method<set>("_set", METH_VARARGS, nullptr),
    method<replace>("_replace", METH_VARARGS, nullptr),
    method<use_class>("_use", METH_O, nullptr),
    method<keep_for_undo>(
        "record", METH_NOARGS,
        "record(): in a step, keeps all records as they are now, for an undo of what is stored by way of arrays."),
    TYPY_COMMON_METHODS,
    {}};
PyGetSetDef records_fields[] = {{"of", guarded<record_class>::call, nullptr, "The class of the records.", nullptr}, {}};
PyType_Slot records_slots[] = {slot<records_dealloc>(Py_tp_dealloc),    slot<proxy_new>(Py_tp_new),
                               {Py_tp_methods, records_methods},        {Py_tp_getset, records_fields},
                               slot<size_of<records>>(Py_sq_length),    slot<item>(Py_sq_item),
                               slot<subscript>(Py_mp_subscript),        slot<get_buffer>(Py_bf_getbuffer),
                               slot<release_view>(Py_bf_releasebuffer), {}};

PyMethodDef row_methods[] = {method<row_plain>("_plain", METH_NOARGS, nullptr),
                             method<row_heap>("_heap", METH_NOARGS, nullptr),
                             method<row_is_alive>("_is_alive", METH_NOARGS, nullptr),
                             {}};
PyType_Slot row_slots[] = {slot<row_dealloc>(Py_tp_dealloc),
                           slot<row_new>(Py_tp_new),
                           slot<row_set_attribute>(Py_tp_setattro),
                           {Py_tp_methods, row_methods},
                           {}};
PyType_Spec row_spec = {"taiyen._core.RowBase", sizeof(row), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, row_slots};
PyType_Slot field_slots[] = {slot<field_dealloc>(Py_tp_dealloc),
                             slot<field_new>(Py_tp_new),
                             slot<field_get>(Py_tp_descr_get),
                             slot<field_set>(Py_tp_descr_set),
                             {}};
PyType_Spec field_spec = {"taiyen._core.Field", sizeof(field_object), 0, Py_TPFLAGS_DEFAULT, field_slots};
PyMethodDef record_functions[] = {method<add_layout>("add_layout", METH_VARARGS, nullptr),
                                  method<set_row_class>("set_row_class", METH_VARARGS, nullptr),
                                  method<replace_layout>("replace_layout", METH_VARARGS, nullptr),
                                  {}};

} // namespace

PyType_Spec records_spec = {"taiyen._core.RecordsBase", sizeof(records_proxy), 0,
                            Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, records_slots};

bool make_records(heap &of, const layout &layout, bool single, value *v) {
    const Py_ssize_t number = keep_layout(of, layout);
    if (number < 0)
        return false;
    taiyen::result<value> made =
        of.values->make_records(static_cast<std::uint16_t>(number), static_cast<std::uint16_t>(layout.size), single);
    if (!made)
        return raise_last() == 0;
    *v = made.value();
    if (of.transaction_open || of.step_open) // a rollback would free it
        of.fresh_arrays.insert(v->address());
    return true;
}

PyObject *load_records(heap &of, value v) {
    ref list(proxy_of(of, v));
    if (!list || !records(*of.values, v).is_single())
        return list.release();
    return row_of(as_records(list.get()), 0);
}

PyObject *plain_of_records(PyObject *list) {
    if (is_row(list))
        return row_plain(list, nullptr);
    const ref type(record_class(list, nullptr));
    ref made(PyObject_CallFunctionObjArgs(helpers.plain_records, type.get(), nullptr));
    for (Py_ssize_t i = 0; made && i < PySequence_Size(list); ++i) {
        const ref one(item(list, i));
        const ref plain(one ? row_plain(one.get(), nullptr) : nullptr);
        if (!plain || PyList_Append(made.get(), plain.get()) < 0)
            return nullptr;
    }
    return PyErr_Occurred() ? nullptr : made.release(); // asking for the size may have failed
}

void start_records(proxy *p, const layout *layout) {
    auto *list = reinterpret_cast<records_proxy *>(p);
    list->of = layout;
    list->rows = new std::map<std::size_t, row *>;
    changed(list);
}

// PY10.
void look_at_rows(proxy *p, bool are_others) {
    auto *list = reinterpret_cast<records_proxy *>(p);
    const ref kept = ref::borrowed(reinterpret_cast<PyObject *>(list)); // it may go with its last row
    const records in = container_of_rows(list);
    are_others |= in.stamp() != list->stamp;
    if (list->rows->empty() || (!are_others && list->rows->rbegin()->first < in.size())) {
        list->stamp = in.stamp();
        return;
    }
    end_rows(list, are_others ? 0 : in.size());
    list->stamp = in.stamp();
}

const char *bytes_of_row(PyObject *object) {
    if (const std::string *replaced = as_row(object)->replaced)
        return replaced->data();
    const records_proxy *list = use_row(as_row(object));
    return list ? static_cast<const char *>(container_of_rows(list).at(as_row(object)->number)) : nullptr;
}

bool is_row(PyObject *object) {
    return PyObject_TypeCheck(object, row_type);
}

bool add_record_types(PyObject *module) {
    row_type = reinterpret_cast<PyTypeObject *>(PyType_FromSpec(&row_spec));
    field_type = reinterpret_cast<PyTypeObject *>(PyType_FromSpec(&field_spec));
    return row_type && field_type &&
           PyModule_AddObjectRef(module, "RowBase", reinterpret_cast<PyObject *>(row_type)) == 0 &&
           PyModule_AddObjectRef(module, "Field", reinterpret_cast<PyObject *>(field_type)) == 0 &&
           PyModule_AddFunctions(module, record_functions) == 0;
}

} // namespace typy
