// Arrays: numbers side by side in the heap, that Python and numpy use where they lie, by the buffer protocol. A view
// keeps its heap open and its array from being freed, and nothing moves what it sees.
#include "slots.hpp"

#include <cstring>

namespace typy {

namespace {

using taiyen::detail::value_array;

value_array *array_of(const proxy *p) {
    return static_cast<value_array *>(p->block);
}

// The letters of an element's type as the heap keeps them: as in module struct, without a byte order; NULL: another
// one.
const char *type_of(const char *format, Py_ssize_t item_size) {
    static const struct {
        const char *code;
        Py_ssize_t size;
    } types[] = {{"?", 1}, {"b", 1}, {"B", 1}, {"h", 2}, {"H", 2}, {"i", 4},  {"I", 4},
                 {"q", 8}, {"Q", 8}, {"e", 2}, {"f", 4}, {"d", 8}, {"Zf", 8}, {"Zd", 16}};
    if (!format)
        format = "B";
    if (*format == '<' || *format == '@' || *format == '=')
        ++format;
    if (*format == 'c')
        format = "B";
    if (!std::strcmp(format, "l"))
        format = item_size == 8 ? "q" : "i";
    if (!std::strcmp(format, "L"))
        format = item_size == 8 ? "Q" : "I";
    for (const auto &type : types)
        if (!std::strcmp(type.code, format) && type.size == item_size)
            return type.code;
    return nullptr;
}

bool make(heap &of, const char *type, Py_ssize_t item_size, const std::vector<std::uint64_t> &shape, value *v) {
    taiyen::result<value> made = of.values->make_array(type, static_cast<std::uint32_t>(item_size), shape.data(),
                                                       static_cast<std::uint32_t>(shape.size()));
    if (!made)
        return raise_last() == 0;
    *v = std::move(made).value();
    if (of.transaction_open || of.step_open) // a rollback would free it
        of.fresh_arrays.insert(v->address());
    return true;
}

// Steps from one element to the next, a dimension each.
std::vector<Py_ssize_t> strides_of(const value_array *array) {
    std::vector<Py_ssize_t> strides(array->dimensions);
    Py_ssize_t step = array->item_size;
    for (std::uint32_t i = array->dimensions; i-- > 0;) {
        strides[i] = step;
        step *= static_cast<Py_ssize_t>(array->shape[i]);
    }
    return strides;
}

// A type for views. Whole numbers of 8 bytes are C's long to numpy, where that has so many, and other types are no
// int64.
char *view_type(char *type) {
    static char wide[] = "l", unsigned_wide[] = "L";
    if (sizeof(long) != 8 || type[1])
        return type;
    return type[0] == 'q' ? wide : type[0] == 'Q' ? unsigned_wide : type;
}

int get_buffer(PyObject *self, Py_buffer *view, int flags) {
    view->obj = nullptr;
    heap *of = use(as_proxy(self));
    if (!of)
        return -1;
    value_array *array = array_of(as_proxy(self));
    if (!check_view(*of, as_proxy(self), flags, array->data(), array->size) || !use(as_proxy(self)))
        return -1;
    auto *form = new view_form{{array->shape, array->shape + array->dimensions}, strides_of(array)};
    return give_view(*of, self, view, flags, form, array->data(), array->item_size, view_type(array->type));
}

PyObject *shape(PyObject *self, void *) {
    if (!use(as_proxy(self)))
        return nullptr;
    const value_array *array = array_of(as_proxy(self));
    const without_cycles no_code; // PY34
    ref made(PyTuple_New(array->dimensions));
    for (std::uint32_t i = 0; made && i < array->dimensions; ++i) {
        PyObject *length = PyLong_FromUnsignedLongLong(array->shape[i]);
        if (!length || PyTuple_SetItem(made.get(), i, length) < 0)
            return nullptr;
    }
    return made.release();
}
PyObject *format(PyObject *self, void *) {
    return use(as_proxy(self)) ? PyUnicode_FromString(array_of(as_proxy(self))->type) : nullptr;
}
PyObject *nbytes(PyObject *self, void *) {
    return use(as_proxy(self)) ? PyLong_FromUnsignedLongLong(array_of(as_proxy(self))->size) : nullptr;
}
PyObject *itemsize(PyObject *self, void *) {
    return use(as_proxy(self)) ? PyLong_FromUnsignedLong(array_of(as_proxy(self))->item_size) : nullptr;
}

// record(): a step of undo keeps the numbers as they are now.
PyObject *record(PyObject *self, PyObject *) {
    heap *of = use(as_proxy(self));
    if (!of)
        return nullptr;
    const value_array *array = array_of(as_proxy(self));
    if (ty_undo_record(of->handle, array->data(), array->size))
        return raise_last(), nullptr;
    Py_RETURN_NONE;
}

// _copy_into(buffer): the bytes of all numbers. Whoever has a copy sees nothing that moves, so it is no view.
PyObject *copy_into(PyObject *self, PyObject *object) {
    Py_buffer to;
    if (PyObject_GetBuffer(object, &to, PyBUF_WRITABLE) < 0)
        return nullptr;
    const bool is_alive = use_newest(as_proxy(self));
    const std::size_t size = is_alive ? array_of(as_proxy(self))->size : 0;
    const bool fits = static_cast<std::size_t>(to.len) == size;
    if (is_alive && fits && size)
        std::memcpy(to.buf, array_of(as_proxy(self))->data(), size);
    PyBuffer_Release(&to);
    if (is_alive && fits)
        Py_RETURN_NONE;
    return is_alive ? PyErr_Format(PyExc_ValueError, "the array has %zu bytes", size) : nullptr;
}

// _copy_from(buffer): the other way round, in one change.
PyObject *copy_from(PyObject *self, PyObject *object) {
    Py_buffer from;
    if (PyObject_GetBuffer(object, &from, PyBUF_SIMPLE) < 0)
        return nullptr;
    const bool good = change_of(as_proxy(self), [&](heap &of) {
        value_array *array = array_of(as_proxy(self));
        if (static_cast<std::size_t>(from.len) != array->size) {
            PyErr_Format(PyExc_ValueError, "the array has %zu bytes", static_cast<std::size_t>(array->size));
            return false;
        }
        ty_txn *txn = ty_current_txn(of.handle);
        if (txn && array->size && ty_declare(txn, array->data(), array->size))
            return raise_last() == 0;
        std::memcpy(array->data(), from.buf, array->size);
        return true;
    });
    PyBuffer_Release(&from);
    if (!good)
        return nullptr;
    Py_RETURN_NONE;
}

PyMethodDef array_methods[] = {
    method<copy_into>("_copy_into", METH_O, nullptr),
    method<copy_from>("_copy_from", METH_O, nullptr),
    method<record>("record", METH_NOARGS,
                   "record(): in a step, keeps the array's numbers as they are now, for an undo."),
    TYPY_COMMON_METHODS,
    {}};
PyGetSetDef array_fields[] = {
    {"shape", guarded<shape>::call, nullptr, "The lengths of the dimensions.", nullptr},
    {"format", guarded<format>::call, nullptr, "The numbers' type, as in module struct.", nullptr},
    {"nbytes", guarded<nbytes>::call, nullptr, "Bytes of all numbers.", nullptr},
    {"itemsize", guarded<itemsize>::call, nullptr, "Bytes of one number.", nullptr},
    {}};
PyType_Slot array_slots[] = {slot<proxy_dealloc>(Py_tp_dealloc),
                             slot<proxy_new>(Py_tp_new),
                             {Py_tp_methods, array_methods},
                             {Py_tp_getset, array_fields},
                             slot<get_buffer>(Py_bf_getbuffer),
                             slot<release_view>(Py_bf_releasebuffer),
                             {}};

} // namespace

PyType_Spec array_spec = {"taiyen._core.ArrayBase", sizeof(proxy), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                          array_slots};

// ---- Views, of records, too.

namespace {

// PY23. From the first view on, stores become known to transactions by themselves. The one under way may have declared
// some already: it goes on so, and what the view sees is declared to it.
bool find_stores(heap &of, const proxy *p, const void *data, std::size_t size) {
    if (of.kind != TY_TRANSACTIONAL || of.read_only)
        return true;
    ty_txn *txn = ty_current_txn(of.handle);
    const bool is_found = of.automatic && (!txn || ty_txn_stores(txn) == TY_STORES_TRACKED ||
                                           fault("stores_by_a_view_unknown_to_the_transaction"));
    if (is_found || of.declared_arrays.count(p->block))
        return true;
    const ty_status status = ty_set_stores(of.handle, TY_STORES_TRACKED);
    if (status == TY_E_BUSY && txn) {
        if (size && ty_declare(txn, data, size))
            return raise_last() == 0;
        of.declared_arrays.insert(p->block);
    } else if (status) {
        return raise_last() == 0;
    }
    if (std::exchange(of.automatic, true))
        return true;
    const ref faults(PyImport_ImportModule("taiyen._faults"));
    return faults && ref(PyObject_CallMethod(faults.get(), "watch", nullptr));
}

} // namespace

// PY2.
bool check_view(heap &of, const proxy *p, int flags, const void *data, std::size_t size) {
    const char *why = nullptr;
    if (of.shared) // PY41
        why =
            "the heap is shared, and another process may free or move what a view sees: take a copy of it, or an item";
    else if ((flags & PyBUF_WRITABLE) && of.read_only)
        why = "the heap is open for reading only";
    else if (of.fresh_arrays.count(p->block))
        why =
            "the array was made or has grown in the transaction or step that is under way: use it when that has ended";
    if (!why)
        return find_stores(of, p, data, size);
    PyErr_SetString(PyExc_BufferError, why);
    return false;
}

int give_view(heap &of, PyObject *self, Py_buffer *view, int flags, view_form *form, void *data, Py_ssize_t item_size,
              char *format) {
    view->internal = form;
    view->obj = Py_NewRef(self);
    view->buf = data;
    view->len = item_size;
    for (const Py_ssize_t length : form->shape)
        view->len *= length;
    view->itemsize = item_size;
    view->readonly = of.read_only;
    view->ndim = static_cast<int>(form->shape.size());
    view->format = flags & PyBUF_FORMAT ? format : nullptr;
    view->shape = flags & PyBUF_ND ? form->shape.data() : nullptr;
    view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? form->strides.data() : nullptr;
    view->suboffsets = nullptr;
    ++of.views;
    ++of.viewed[as_proxy(self)->block];
    return 0;
}

void release_view(PyObject *self, Py_buffer *view) {
    heap &of = *as_proxy(self)->owner;
    --of.views;
    const auto place = of.viewed.find(as_proxy(self)->block);
    if (place != of.viewed.end() && --place->second == 0)
        of.viewed.erase(place);
    delete static_cast<view_form *>(view->internal);
}

namespace {

// The text names a way for what it is: taiyen/_scalars.py.
void refuse_array(PyObject *object) {
    const ref scalars(PyImport_ImportModule("taiyen._scalars"));
    if (scalars)
        ref(PyObject_CallMethod(scalars.get(), "refuse_array", "O", object));
}

} // namespace

bool store_buffer(heap &of, PyObject *object, value *v, bool *is_other) {
    Py_buffer view;
    const std::uint64_t taken_back = of.taken_back;
    *is_other = true;
    if (PyObject_GetBuffer(object, &view, PyBUF_FULL_RO) < 0) { // PEP 688: it may run code
        if (PyErr_ExceptionMatches(PyExc_ValueError) ||
            PyErr_ExceptionMatches(PyExc_BufferError)) { // numpy's, of times
            PyErr_Clear();
            refuse_array(object);
        }
        return false;
    }
    const char *type = type_of(view.format, view.itemsize);
    bool good = type && view.ndim <= 8;
    *is_other = !good;
    if (!good)
        refuse_array(object);
    const std::vector<std::uint64_t> lengths(view.shape, view.shape + view.ndim);
    good = good && check_not_taken_back(of, taken_back) && make(of, type, view.itemsize, lengths, v);
    if (good && view.len &&
        PyBuffer_ToContiguous(static_cast<value_array *>(v->address())->data(), &view, view.len, 'C')) {
        static_cast<void>(of.values->discard(*v));
        good = false;
    }
    PyBuffer_Release(&view);
    return good;
}

// new_array(dict, key, type, item size, shape): makes an array of zeros, and stores it there if nothing is there, as
// another thread may have done since it was looked for. PY22.
PyObject *new_array(PyObject *, PyObject *arguments) {
    PyObject *into, *key, *lengths;
    const char *type;
    Py_ssize_t item_size;
    if (!PyArg_ParseTuple(arguments, "OOsnO!", &into, &key, &type, &item_size, &PyTuple_Type, &lengths))
        return nullptr;
    std::vector<std::uint64_t> sizes;
    for (Py_ssize_t i = 0; i < PyTuple_Size(lengths); ++i) {
        sizes.push_back(PyLong_AsUnsignedLongLong(PyTuple_GetItem(lengths, i)));
        if (PyErr_Occurred())
            return nullptr;
    }
    if (!is_proxy(into) || as_proxy(into)->kind != value_kind::dict || !type_of(type, item_size)) {
        PyErr_SetString(PyExc_TypeError, "an array is of numbers, and lies in a dict of a heap");
        return nullptr;
    }
    return none_after(as_proxy(into), [&](heap &of) {
        value made;
        key_of found;
        made_value made_key(of);
        if (!found.find(of, key) || !found.check_stored(key) || !found.make(of, key, made_key) || !use(as_proxy(into)))
            return false;
        taiyen::dict in = container_of<taiyen::dict>(as_proxy(into));
        if (in.contains(found.get()) && !fault("array_takes_the_place_of_another"))
            return true;
        if (!make(of, type_of(type, item_size), item_size, sizes, &made))
            return false;
        if (done(in.set(found.get(), made)))
            return true;
        static_cast<void>(of.values->discard(made));
        return false;
    });
}

} // namespace typy
