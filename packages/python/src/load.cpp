// From the heap to Python.
#include "objects.hpp"
#include "record.hpp"

#include <cstring>

namespace typy {

python_helpers helpers;

namespace {

#ifndef Py_LIMITED_API
bool is_ascii(std::string_view text) {
    std::uint64_t seen = 0, word;
    std::size_t at = 0;
    for (; at + sizeof word <= text.size(); at += sizeof word) {
        std::memcpy(&word, text.data() + at, sizeof word);
        seen |= word;
    }
    for (; at < text.size(); ++at)
        seen |= static_cast<unsigned char>(text[at]);
    return (seen & 0x8080808080808080) == 0;
}
#endif

PyObject *load_text(std::string_view text) {
#ifndef Py_LIMITED_API // most texts, and half the work of decoding them; one of one character is not made anew
    if (text.size() > 1 && is_ascii(text)) {
        PyObject *made = PyUnicode_New(static_cast<Py_ssize_t>(text.size()), 127);
        if (made)
            std::memcpy(PyUnicode_DATA(made), text.data(), text.size());
        return made;
    }
#endif
    const without_cycles no_code; // a half of a pair of surrogates makes an exception, which is handled
    return PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "surrogatepass");
}

PyObject *load_big(value v) {
    const std::string_view magnitude = taiyen::data_of(v);
    const bool is_negative = taiyen::is_negative(v);
    const ref bytes(PyBytes_FromStringAndSize(magnitude.data(), static_cast<Py_ssize_t>(magnitude.size())));
    ref number(bytes ? PyObject_CallMethod(reinterpret_cast<PyObject *>(&PyLong_Type), "from_bytes", "Os", bytes.get(),
                                           "little")
                     : nullptr);
    return number && is_negative ? PyNumber_Negative(number.get()) : number.release();
}

PyObject *load_complex(value v) {
    double parts[2];
    std::memcpy(parts, taiyen::data_of(v).data(), sizeof parts);
    return PyComplex_FromDoubles(parts[0], parts[1]);
}

PyObject *decode(heap &of, int type, PyObject *bytes) {
    return in_python([&] {
        return PyObject_CallFunction(helpers.decode, "iOO", type, bytes, of.takes_pickles ? Py_True : Py_False);
    });
}
PyObject *bytes_of(value v) {
    const std::string_view data = taiyen::data_of(v);
    return PyBytes_FromStringAndSize(data.data(), static_cast<Py_ssize_t>(data.size()));
}
PyObject *load_opaque(heap &of, value v) {
    const int type = taiyen::opaque_type(v);
    const ref bytes(bytes_of(v));
    return bytes ? decode(of, type, bytes.get()) : nullptr;
}

PyObject *load_tuple(heap &of, value v) {
    reader one(of, false);
    ref made;
    {
        const without_cycles no_code;
        made = ref(one.make(v));
    }
    return made && one.finish() ? made.release() : nullptr;
}

} // namespace

// Whether reading it runs Python code, or may do so.
bool runs_code(value v) {
    const value_kind kind = taiyen::kind_of(v);
    return kind == value_kind::opaque || kind == value_kind::tuple || kind == value_kind::records ||
           kind == value_kind::big_integer;
}

PyObject *load(heap &of, value v) {
    switch (taiyen::kind_of(v)) {
    case value_kind::none:
        Py_RETURN_NONE;
    case value_kind::boolean:
        return PyBool_FromLong(v.as_boolean());
    case value_kind::integer:
        return PyLong_FromLongLong(v.as_integer());
    case value_kind::real:
        return PyFloat_FromDouble(v.as_real());
    case value_kind::text:
        return load_text(taiyen::data_of(v));
    case value_kind::bytes: {
        const std::string_view bytes = taiyen::data_of(v);
        return PyBytes_FromStringAndSize(bytes.data(), static_cast<Py_ssize_t>(bytes.size()));
    }
    case value_kind::big_integer:
        return load_big(v);
    case value_kind::complex:
        return load_complex(v);
    case value_kind::opaque:
        return load_opaque(of, v);
    case value_kind::tuple:
        return load_tuple(of, v);
    case value_kind::nothing:
        raise_own(TY_E_DAMAGED, "a value is missing in the heap", "restore the heap from a copy");
        return nullptr;
    case value_kind::records:
        return load_records(of, v);
    default:
        return proxy_of(of, v);
    }
}

// ---- Many at one moment.

PyObject *reader::keep(value v, PyObject *made) {
    if (made)
        done_.emplace(v.address(), ref::borrowed(made));
    return made;
}

// PY14. What needs Python code; false without an exception: it needs none.
bool reader::open_hole(value v, hole *made) {
    const value_kind kind = taiyen::kind_of(v);
    made->type = -1;
    if (kind == value_kind::opaque) {
        made->type = taiyen::opaque_type(v);
        made->what = ref(bytes_of(v));
    } else if (plain_ && kind == value_kind::array) {
        made->what = ref(proxy_of(heap_, v));
    } else if (plain_ && kind == value_kind::records) {
        made->what = ref(load_records(heap_, v));
    }
    return static_cast<bool>(made->what);
}

bool reader::put(PyObject *row, Py_ssize_t place, value v) {
    hole open{row, place, ref(), ref(), -1};
    const bool is_list = PyList_CheckExact(row);
    if (open_hole(v, &open)) {
        holes_.push_back(std::move(open));
        Py_INCREF(Py_None);
        return (is_list ? PyList_SetItem(row, place, Py_None) : PyTuple_SetItem(row, place, Py_None)) == 0;
    }
    PyObject *made = PyErr_Occurred() ? nullptr : make(v);
    return made && (is_list ? PyList_SetItem(row, place, made) : PyTuple_SetItem(row, place, made)) == 0;
}

PyObject *reader::make(value v) {
    const value_kind kind = taiyen::kind_of(v);
    if (kind != value_kind::tuple && (!plain_ || kind < value_kind::tuple))
        return load(heap_, v);
    const auto place = done_.find(v.address());
    if (place != done_.end())
        return Py_NewRef(place->second.get());
    const deeper room(" while a value of a heap is copied");
    return room ? make_container(kind, v) : nullptr;
}

PyObject *reader::make_container(value_kind kind, value v) {
    switch (kind) {
    case value_kind::dict:
        return dict(v);
    case value_kind::list:
        return list(v);
    case value_kind::set:
        return set(v);
    case value_kind::deque:
        return deque(v);
    default:
        return tuple(v);
    }
}

PyObject *reader::tuple(value v) {
    const taiyen::tuple from(v);
    ref made(PyTuple_New(static_cast<Py_ssize_t>(from.size())));
    for (std::size_t i = 0; made && i < from.size(); ++i)
        if (!put(made.get(), static_cast<Py_ssize_t>(i), from.at(i)))
            return nullptr;
    return made.release();
}

PyObject *reader::list(value v) {
    const taiyen::list from(*heap_.values, v);
    ref made(keep(v, PyList_New(static_cast<Py_ssize_t>(from.size()))));
    for (std::size_t i = 0; made && i < from.size(); ++i)
        if (!put(made.get(), static_cast<Py_ssize_t>(i), from.at(i)))
            return nullptr;
    return made.release();
}

PyObject *reader::deque(value v) {
    const taiyen::deque from(*heap_.values, v);
    ref made(keep(v, PyObject_CallObject(reinterpret_cast<PyObject *>(deque_type()), nullptr)));
    ref items(made ? PyList_New(static_cast<Py_ssize_t>(from.size())) : nullptr);
    if (!items)
        return nullptr;
    for (std::size_t i = 0; i < from.size(); ++i)
        if (!put(items.get(), static_cast<Py_ssize_t>(i), from.at(i)))
            return nullptr;
    fillings_.push_back({ref::borrowed(made.get()), std::move(items)});
    return made.release();
}

// Keys whose hash runs Python code, as those of UUIDs, are put in after it all.
PyObject *reader::dict(value v) {
    const taiyen::dict from(*heap_.values, v);
    ref made(keep(v, PyDict_New()));
    bool good = static_cast<bool>(made), is_quiet = true;
    for (std::uint32_t at = from.next(); is_quiet && at != from.end_position; at = from.next(at + 1))
        is_quiet = !runs_code(from.key_at(at));
    if (good && !is_quiet) {
        ref items(PyList_New(static_cast<Py_ssize_t>(from.size() * 2)));
        good = static_cast<bool>(items);
        Py_ssize_t place = 0;
        for (std::uint32_t at = from.next(); good && at != from.end_position; at = from.next(at + 1), place += 2)
            good = put(items.get(), place, from.key_at(at)) && put(items.get(), place + 1, from.value_at(at));
        if (good)
            fillings_.push_back({ref::borrowed(made.get()), std::move(items)});
        return good ? made.release() : nullptr;
    }
    for (std::uint32_t at = from.next(); good && at != from.end_position; at = from.next(at + 1)) {
        ref key(load(heap_, from.key_at(at)));
        hole open{made.get(), 0, ref(), ref(), -1};
        const bool is_open = key && open_hole(from.value_at(at), &open);
        const ref item(!key || PyErr_Occurred() ? nullptr : is_open ? Py_NewRef(Py_None) : make(from.value_at(at)));
        good = item && PyDict_SetItem(made.get(), key.get(), item.get()) == 0;
        if (good && is_open) {
            open.key = std::move(key);
            holes_.push_back(std::move(open));
        }
    }
    return good ? made.release() : nullptr;
}

PyObject *reader::set(value v) {
    const taiyen::set from(*heap_.values, v);
    ref made(keep(v, PySet_New(nullptr)));
    ref items(made ? PyList_New(static_cast<Py_ssize_t>(from.size())) : nullptr);
    if (!items)
        return nullptr;
    Py_ssize_t place = 0;
    for (std::uint32_t at = from.next(); at != from.end_position; at = from.next(at + 1))
        if (!put(items.get(), place++, from.key_at(at)))
            return nullptr;
    fillings_.push_back({ref::borrowed(made.get()), std::move(items)});
    return made.release();
}

bool reader::fill(const filling &one) {
    PyObject *container = one.container.get(), *items = one.items.get();
    if (PyDict_CheckExact(container)) {
        for (Py_ssize_t i = 0; i + 1 < PyList_Size(items); i += 2)
            if (PyDict_SetItem(container, PyList_GetItem(items, i), PyList_GetItem(items, i + 1)))
                return false;
        return true;
    }
    if (PySet_Check(container)) {
        for (Py_ssize_t i = 0; i < PyList_Size(items); ++i)
            if (PySet_Add(container, PyList_GetItem(items, i)))
                return false;
        return true;
    }
    return static_cast<bool>(ref(PyObject_CallMethod(container, "extend", "(O)", items)));
}

// PY7. A plain copy of an array or of records, once however often it is met.
PyObject *reader::copy(PyObject *what) {
    ref &made = copies_[what];
    if (!made)
        made = ref(in_python([what] {
            return PyObject_TypeCheck(what, array_type())
                       ? PyObject_CallFunctionObjArgs(helpers.copy_array, what, nullptr)
                       : plain_of_records(what);
        }));
    return made ? Py_NewRef(made.get()) : nullptr;
}

bool reader::finish() {
    for (hole &open : holes_) {
        ref made(open.type >= 0 ? decode(heap_, open.type, open.what.get()) : copy(open.what.get()));
        if (!made)
            return false;
        const int failed = open.key                     ? PyDict_SetItem(open.in, open.key.get(), made.get())
                           : PyList_CheckExact(open.in) ? PyList_SetItem(open.in, open.place, made.release())
                                                        : PyTuple_SetItem(open.in, open.place, made.release());
        if (failed)
            return false;
        if (PyTuple_CheckExact(open.in) && !PyObject_GC_IsTracked(open.in)) // a collection has seen that it led nowhere
            PyObject_GC_Track(open.in);
    }
    for (const filling &one : fillings_)
        if (!in_python([&] { return fill(one); }))
            return false;
    return true;
}

PyObject *plain_copy(heap &of, value v) {
    const value_kind kind = taiyen::kind_of(v);
    if (kind < value_kind::tuple)
        return load(of, v);
    reader one(of, true);
    ref made;
    {
        const without_cycles no_code; // PY34
        made = ref(PyList_New(1));
        if (!made || !one.put(made.get(), 0, v))
            return nullptr;
    }
    return one.finish() ? Py_NewRef(PyList_GetItem(made.get(), 0)) : nullptr;
}

} // namespace typy
