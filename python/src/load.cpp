// From the heap to Python.
#include "record.hpp"

#include <cstring>

namespace typy {

python_helpers helpers;

namespace {

PyObject *load_text(std::string_view text) {
    return PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "surrogatepass");
}

PyObject *load_big(value v) {
    const std::string_view magnitude = taiyen::data_of(v);
    const ref bytes(PyBytes_FromStringAndSize(magnitude.data(), static_cast<Py_ssize_t>(magnitude.size())));
    ref number(bytes ? PyObject_CallMethod(reinterpret_cast<PyObject *>(&PyLong_Type), "from_bytes", "Os", bytes.get(),
                                           "little")
                     : nullptr);
    if (!number || !(taiyen::detail::head_of(v)->flags & taiyen::detail::flag_negative))
        return number.release();
    return PyNumber_Negative(number.get());
}

PyObject *load_complex(value v) {
    double parts[2];
    std::memcpy(parts, taiyen::data_of(v).data(), sizeof parts);
    return PyComplex_FromDoubles(parts[0], parts[1]);
}

PyObject *load_opaque(heap &of, value v) {
    const std::string_view data = taiyen::data_of(v);
    return PyObject_CallFunction(helpers.decode, "iy#O", static_cast<int>(taiyen::detail::head_of(v)->type),
                                 data.data(), static_cast<Py_ssize_t>(data.size()),
                                 of.takes_pickles ? Py_True : Py_False);
}

PyObject *load_tuple(heap &of, value v) {
    const taiyen::tuple from(v);
    ref tuple(PyTuple_New(static_cast<Py_ssize_t>(from.size())));
    if (!tuple || Py_EnterRecursiveCall(" while a tuple is read"))
        return nullptr;
    bool good = true;
    for (std::size_t i = 0; i < from.size() && good; ++i) {
        PyObject *item = load(of, from.at(i));
        good = item && PyTuple_SetItem(tuple.get(), static_cast<Py_ssize_t>(i), item) == 0;
    }
    Py_LeaveRecursiveCall();
    return good ? tuple.release() : nullptr;
}

} // namespace

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

namespace {

// Copies containers, each once however often it is met.
class copier {
public:
    explicit copier(heap &of) : heap_(of) {}

    PyObject *copy(value v) {
        const value_kind kind = taiyen::kind_of(v);
        if (kind < value_kind::tuple)
            return load(heap_, v);
        const auto place = done_.find(v.address());
        if (place != done_.end())
            return Py_NewRef(place->second.get());
        if (Py_EnterRecursiveCall(" while a value of a heap is copied"))
            return nullptr;
        PyObject *made = copy_of(kind, v);
        Py_LeaveRecursiveCall();
        return made;
    }

private:
    PyObject *copy_of(value_kind kind, value v) {
        switch (kind) {
        case value_kind::dict:
            return dict(v);
        case value_kind::list:
            return list(v);
        case value_kind::set:
            return set(v);
        case value_kind::tuple:
            return tuple(v);
        case value_kind::deque:
            return deque(v);
        case value_kind::records:
            return plain_records(heap_, v);
        default: {
            const ref array(proxy_of(heap_, v));
            return array ? PyObject_CallFunctionObjArgs(helpers.copy_array, array.get(), nullptr) : nullptr;
        }
        }
    }
    bool keep(value v, PyObject *made) {
        if (made)
            done_.emplace(v.address(), ref::borrowed(made));
        return made;
    }
    PyObject *dict(value v) {
        const taiyen::dict from(*heap_.values, v);
        ref made(PyDict_New());
        bool good = keep(v, made.get());
        for (std::uint32_t at = from.next(); good && at != from.end_position; at = from.next(at + 1)) {
            const ref key(copy(from.key_at(at)));
            const ref item(key ? copy(from.value_at(at)) : nullptr);
            good = item && PyDict_SetItem(made.get(), key.get(), item.get()) == 0;
        }
        return good ? made.release() : nullptr;
    }
    PyObject *list(value v) {
        const taiyen::list from(*heap_.values, v);
        ref made(PyList_New(0));
        bool good = keep(v, made.get());
        for (std::size_t i = 0; i < from.size() && good; ++i) {
            const ref item(copy(from.at(i)));
            good = item && PyList_Append(made.get(), item.get()) == 0;
        }
        return good ? made.release() : nullptr;
    }
    PyObject *set(value v) {
        const taiyen::set from(*heap_.values, v);
        ref made(PySet_New(nullptr));
        bool good = keep(v, made.get());
        for (std::uint32_t at = from.next(); good && at != from.end_position; at = from.next(at + 1)) {
            const ref key(copy(from.key_at(at)));
            good = key && PySet_Add(made.get(), key.get()) == 0;
        }
        return good ? made.release() : nullptr;
    }
    PyObject *tuple(value v) {
        const taiyen::tuple from(v);
        ref made(PyTuple_New(static_cast<Py_ssize_t>(from.size())));
        for (std::size_t i = 0; made && i < from.size(); ++i) {
            PyObject *item = copy(from.at(i));
            if (!item || PyTuple_SetItem(made.get(), static_cast<Py_ssize_t>(i), item) < 0)
                return nullptr;
        }
        return made.release();
    }
    PyObject *deque(value v) {
        const taiyen::deque from(*heap_.values, v);
        const ref collections(PyImport_ImportModule("collections"));
        ref made(collections ? PyObject_CallMethod(collections.get(), "deque", nullptr) : nullptr);
        bool good = keep(v, made.get());
        for (std::size_t i = 0; i < from.size() && good; ++i) {
            const ref item(copy(from.at(i)));
            good = item && ref(PyObject_CallMethod(made.get(), "append", "O", item.get()));
        }
        return good ? made.release() : nullptr;
    }
    heap &heap_;
    std::unordered_map<const void *, ref> done_;
};

} // namespace

PyObject *plain_copy(heap &of, value v) {
    return copier(of).copy(v);
}

} // namespace typy
