// Python objects as bytes: what storing a value and looking for a key share.
#ifndef TAIYEN_PYTHON_OBJECTS_HPP
#define TAIYEN_PYTHON_OBJECTS_HPP

#include "core.hpp"

namespace typy {

// The bytes of a whole number without its sign, lowest first.
inline bool magnitude_of(PyObject *number, std::string *magnitude, bool *negative) {
    const ref zero(PyLong_FromLong(0));
    const int less = zero ? PyObject_RichCompareBool(number, zero.get(), Py_LT) : -1;
    const ref size(less < 0 ? nullptr : PyNumber_Absolute(number));
    const ref bits(size ? PyObject_CallMethod(size.get(), "bit_length", nullptr) : nullptr);
    const Py_ssize_t count = bits ? PyLong_AsSsize_t(bits.get()) : -1;
    const ref bytes(count < 0 ? nullptr : PyObject_CallMethod(size.get(), "to_bytes", "ns", (count + 7) / 8, "little"));
    if (!bytes)
        return false;
    magnitude->assign(PyBytes_AsString(bytes.get()), static_cast<std::size_t>(PyBytes_Size(bytes.get())));
    *negative = less == 1;
    return true;
}

// The bytes of a text; *kept holds them where the object does not: then code may have run.
inline bool text_of(PyObject *text, std::string_view *bytes, ref *kept) {
    Py_ssize_t size = 0;
    if (const char *data = PyUnicode_AsUTF8AndSize(text, &size)) {
        *bytes = {data, static_cast<std::size_t>(size)};
        return true;
    }
    PyErr_Clear(); // half of a pair of surrogates is no UTF-8, and stored all the same
    *kept = ref(PyUnicode_AsEncodedString(text, "utf-8", "surrogatepass"));
    if (!*kept)
        return false;
    *bytes = {PyBytes_AsString(kept->get()), static_cast<std::size_t>(PyBytes_Size(kept->get()))};
    return true;
}

// collections.deque; NULL with an exception: it could not be imported.
inline PyTypeObject *deque_type() {
    static PyObject *type = nullptr;
    if (!type)
        if (const ref collections(PyImport_ImportModule("collections")); collections)
            type = PyObject_GetAttrString(collections.get(), "deque");
    return reinterpret_cast<PyTypeObject *>(type);
}

// What encode() of taiyen/_scalars.py gives for an object.
struct encoded {
    ref kept;
    int type = 0;
    std::string_view bytes;
    bool is_key = false;
};
// False with an exception; encoded.kept is None where no heap takes such objects, but for arrays; False: nor as an
// array.
inline bool encode(PyObject *object, bool pickles, encoded *result) {
    result->kept = ref(in_python(
        [&] { return PyObject_CallFunctionObjArgs(helpers.encode, object, pickles ? Py_True : Py_False, nullptr); }));
    if (!result->kept)
        return false;
    if (result->kept.get() == Py_None || result->kept.get() == Py_False)
        return true;
    const char *data = nullptr;
    Py_ssize_t size = 0;
    int is_key = 0;
    if (!PyArg_ParseTuple(result->kept.get(), "iy#p", &result->type, &data, &size, &is_key))
        return false;
    result->bytes = {data, static_cast<std::size_t>(size)};
    result->is_key = is_key != 0;
    return true;
}

} // namespace typy

#endif
