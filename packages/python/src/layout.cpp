// Layouts of records: what their fields are, and Python objects as bytes of them.
#include "record.hpp"

#include <cmath>
#include <cstring>
#include <limits>
#include <memory>

namespace typy {

struct kind_of_field {
    const char *letter;
    bool (*pack)(const field &, PyObject *, char *, const place_text &);
    PyObject *(*load)(const char *bytes); // NULL: it depends on more
};

namespace {

std::vector<std::unique_ptr<layout>> all_layouts;
std::unordered_map<PyTypeObject *, const layout *> by_type;

// As errors name it; a whole number may be too long for that.
ref shown_text(PyObject *object) {
    PyErr_Clear();
    ref text(PyObject_Repr(object));
    if (text)
        return text;
    PyErr_Clear();
    return ref(PyUnicode_FromFormat("one of type %R", Py_TYPE(object)));
}
bool refuse_type(const field &one, PyObject *object, const place_text &where, const char *wanted) {
    if (const ref text = shown_text(object))
        PyErr_Format(PyExc_TypeError, "%s.%U: %s is needed, not %U", where().c_str(), one.name.get(), wanted,
                     text.get());
    return false;
}
bool refuse_size(const field &one, PyObject *object, const place_text &where) {
    if (const ref text = shown_text(object))
        PyErr_Format(PyExc_OverflowError, "%s.%U: %U does not fit in %zu bytes", where().c_str(), one.name.get(),
                     text.get(), one.size);
    return false;
}

// ---- Numbers.

template <class T>
bool pack_integer(const field &one, PyObject *object, char *bytes, const place_text &where) {
    const ref number(PyNumber_Index(object));
    if (!number)
        return refuse_type(one, object, where, "a whole number");
    T made = 0;
    if constexpr (std::is_signed_v<T>) {
        int overflow = 0;
        const long long wide = PyLong_AsLongLongAndOverflow(number.get(), &overflow);
        made = static_cast<T>(wide);
        if (overflow || made != wide)
            return refuse_size(one, object, where);
    } else {
        const unsigned long long wide = PyLong_AsUnsignedLongLong(number.get());
        made = static_cast<T>(wide);
        if (PyErr_Occurred() || made != wide)
            return refuse_size(one, object, where);
    }
    std::memcpy(bytes, &made, sizeof made);
    return true;
}
template <class T>
PyObject *load_integer(const char *bytes) {
    T number = 0;
    std::memcpy(&number, bytes, sizeof number);
    if constexpr (std::is_signed_v<T>)
        return PyLong_FromLongLong(number);
    else
        return PyLong_FromUnsignedLongLong(number);
}

// What was asked of the object has failed, or gave a finite number that is none of the field's.
bool refuse_real(const field &one, PyObject *object, const place_text &where, const char *wanted) {
    const bool is_large = !PyErr_Occurred() || PyErr_ExceptionMatches(PyExc_OverflowError);
    return is_large ? refuse_size(one, object, where) : refuse_type(one, object, where, wanted);
}
template <class T>
bool is_too_large(double wide) {
    return std::isfinite(wide) && !std::isfinite(static_cast<T>(wide));
}

template <class T>
bool pack_real(const field &one, PyObject *object, char *bytes, const place_text &where) {
    const double wide = PyFloat_AsDouble(object);
    if ((wide == -1 && PyErr_Occurred()) || is_too_large<T>(wide))
        return refuse_real(one, object, where, "a float");
    const T number = static_cast<T>(wide);
    std::memcpy(bytes, &number, sizeof number);
    return true;
}
template <class T>
PyObject *load_real(const char *bytes) {
    T number = 0;
    std::memcpy(&number, bytes, sizeof number);
    return PyFloat_FromDouble(static_cast<double>(number));
}

template <class T>
bool pack_complex(const field &one, PyObject *object, char *bytes, const place_text &where) {
    const double real = PyComplex_RealAsDouble(object);
    const double imaginary = PyErr_Occurred() ? 0 : PyComplex_ImagAsDouble(object);
    if (PyErr_Occurred() || is_too_large<T>(real) || is_too_large<T>(imaginary))
        return refuse_real(one, object, where, "a complex number");
    const T parts[2] = {static_cast<T>(real), static_cast<T>(imaginary)};
    std::memcpy(bytes, parts, sizeof parts);
    return true;
}
template <class T>
PyObject *load_complex_of(const char *bytes) {
    T parts[2];
    std::memcpy(parts, bytes, sizeof parts);
    return PyComplex_FromDoubles(static_cast<double>(parts[0]), static_cast<double>(parts[1]));
}

bool pack_boolean(const field &one, PyObject *object, char *bytes, const place_text &where) {
    int yes = object == Py_True;
    if (!PyBool_Check(object)) {
        const ref name(PyObject_GetAttrString(reinterpret_cast<PyObject *>(Py_TYPE(object)), "__name__"));
        const char *text = name ? PyUnicode_AsUTF8AndSize(name.get(), nullptr) : nullptr;
        const bool is_numpys = text && (!std::strcmp(text, "bool") || !std::strcmp(text, "bool_"));
        yes = is_numpys ? PyObject_IsTrue(object) : -1;
    }
    if (yes < 0)
        return refuse_type(one, object, where, "True or False");
    *bytes = static_cast<char>(yes);
    return true;
}

// ---- Texts, bytes, times.

bool pack_text(const field &one, PyObject *object, char *bytes, const place_text &where) {
    Py_ssize_t size = 0;
    const char *text = PyUnicode_Check(object) ? PyUnicode_AsUTF8AndSize(object, &size) : nullptr;
    if (!text || std::memchr(text, 0, static_cast<std::size_t>(size)))
        return refuse_type(one, object, where, "a text without zero bytes");
    if (static_cast<std::size_t>(size) > one.size)
        return refuse_size(one, object, where);
    std::memset(bytes, 0, one.size);
    std::memcpy(bytes, text, static_cast<std::size_t>(size));
    return true;
}
bool pack_bytes(const field &one, PyObject *object, char *bytes, const place_text &where) {
    if (!PyBytes_Check(object) || static_cast<std::size_t>(PyBytes_Size(object)) != one.size)
        return refuse_type(one, object, where, ("bytes object of length " + std::to_string(one.size)).c_str());
    std::memcpy(bytes, PyBytes_AsString(object), one.size);
    return true;
}
bool pack_time(const field &one, PyObject *object, char *bytes, const place_text &where) {
    const ref number(PyObject_CallFunction(helpers.to_time, "sO", one.letter.c_str(), object));
    const long long made = number && number.get() != Py_None ? PyLong_AsLongLong(number.get()) : -1;
    if (PyErr_Occurred())
        return false;
    if (number.get() == Py_None)
        return refuse_type(one, object, where, one.letter == "M" ? "a datetime without a zone" : "a date");
    std::memcpy(bytes, &made, sizeof made);
    return true;
}

// ---- What each letter is.

const kind_of_field kinds[] = {{"?", pack_boolean, [](const char *b) { return PyBool_FromLong(*b); }},
                               {"b", pack_integer<std::int8_t>, load_integer<std::int8_t>},
                               {"B", pack_integer<std::uint8_t>, load_integer<std::uint8_t>},
                               {"h", pack_integer<std::int16_t>, load_integer<std::int16_t>},
                               {"H", pack_integer<std::uint16_t>, load_integer<std::uint16_t>},
                               {"i", pack_integer<std::int32_t>, load_integer<std::int32_t>},
                               {"I", pack_integer<std::uint32_t>, load_integer<std::uint32_t>},
                               {"q", pack_integer<std::int64_t>, load_integer<std::int64_t>},
                               {"Q", pack_integer<std::uint64_t>, load_integer<std::uint64_t>},
                               {"f", pack_real<float>, load_real<float>},
                               {"d", pack_real<double>, load_real<double>},
                               {"Zf", pack_complex<float>, load_complex_of<float>},
                               {"Zd", pack_complex<double>, load_complex_of<double>},
                               {"s", pack_text, nullptr},
                               {"y", pack_bytes, nullptr},
                               {"M", pack_time, nullptr},
                               {"D", pack_time, nullptr}};

// An exception that says how a class differs from the one of a heap.
PyObject *refuse(const layout &given, std::string_view kept) {
    return PyObject_CallFunction(helpers.refuse_layout, "ny#", given.number, kept.data(),
                                 static_cast<Py_ssize_t>(kept.size()));
}

const kind_of_field *kind_of(const field &one) {
    for (const kind_of_field &kind : kinds)
        if (one.letter == kind.letter)
            return &kind;
    return nullptr;
}

} // namespace

bool pack_field(const field &one, PyObject *object, char *bytes, const place_text &where) {
    return one.kind->pack(one, object, bytes, where);
}

PyObject *load_field(const field &one, const char *bytes) {
    if (one.kind->load)
        return one.kind->load(bytes);
    if (one.letter == "s") {
        const without_cycles no_code; // PY34: what is no UTF-8 makes an exception
        return PyUnicode_DecodeUTF8(bytes, static_cast<Py_ssize_t>(strnlen(bytes, one.size)), "replace");
    }
    if (one.letter == "y")
        return PyBytes_FromStringAndSize(bytes, static_cast<Py_ssize_t>(one.size));
    long long number = 0;
    std::memcpy(&number, bytes, sizeof number);
    return PyObject_CallFunction(helpers.from_time, "sL", one.letter.c_str(), number);
}

bool pack_record(const layout &of, PyObject *object, char *bytes, const place_text &where) {
    if (is_row(object) && are_same(layout_of(Py_TYPE(object)), &of)) {
        const char *from = bytes_of_row(object);
        return from && std::memcpy(bytes, from, of.size);
    }
    const layout *given = layout_of(Py_TYPE(object));
    if (!are_same(given, &of)) {
        if (given && given->name == of.name)
            return static_cast<void>(ref(refuse(*given, of.text))), false;
        PyErr_Format(PyExc_TypeError,
                     "%s: a %s is needed, not %R; records of several classes go into a list with others",
                     where().c_str(), of.name.c_str(), object);
        return false;
    }
    std::memset(bytes, 0, of.size);
    for (const field &one : of.fields) {
        const ref item(PyObject_GetAttr(object, one.name.get()));
        if (!item || !pack_field(one, item.get(), bytes + one.offset, where))
            return false;
    }
    return true;
}

bool pack_records(const layout &of, PyObject *list, std::string *bytes, const place_text &where) {
    bytes->assign(static_cast<std::size_t>(PyList_Size(list)) * of.size, '\0');
    for (Py_ssize_t i = 0; i < PyList_Size(list); ++i) {
        const ref item = ref::borrowed(PyList_GetItem(list, i)); // whatever is done to the list
        const std::size_t place = static_cast<std::size_t>(i) * of.size;
        const auto there = [&] { return where() + "[" + std::to_string(i) + "]"; };
        if (place >= bytes->size() || !pack_record(of, item.get(), bytes->data() + place, there)) {
            if (!PyErr_Occurred())
                PyErr_SetString(PyExc_RuntimeError, "list changed size while it was stored");
            return false;
        }
    }
    return true;
}

const layout *newest(const layout *of) {
    while (of->newer)
        of = of->newer;
    return of;
}

const layout *layout_of(PyTypeObject *type) {
    const auto place = by_type.find(type);
    return place == by_type.end() ? nullptr : place->second;
}

const layout *layout_of_all(PyObject *list) {
    const Py_ssize_t size = PyList_Size(list);
    const layout *first = size && !by_type.empty() ? layout_of(Py_TYPE(PyList_GetItem(list, 0))) : nullptr;
    for (Py_ssize_t i = 1; first && i < size; ++i)
        if (!are_same(layout_of(Py_TYPE(PyList_GetItem(list, i))), first))
            return nullptr;
    return first;
}

const layout *layout_of_list(PyObject *list) {
    const ref of(PyObject_GetAttrString(list, "of"));
    if (of)
        return layout_of(reinterpret_cast<PyTypeObject *>(of.get()));
    PyErr_Clear();
    return nullptr;
}

const layout *layout_numbered(Py_ssize_t number) {
    if (number >= 0 && static_cast<std::size_t>(number) < all_layouts.size())
        return all_layouts[static_cast<std::size_t>(number)].get();
    PyErr_SetString(PyExc_ValueError, "no layout has that number");
    return nullptr;
}

// A layout for records that are so large as it says.
static const layout *checked_size(heap &of, value records, const layout *layout) {
    if (taiyen::records(*of.values, records).item_size() == layout->size)
        return layout;
    raise_own(TY_E_DAMAGED, "records in the heap have another size than their layout says",
              "restore the heap from a copy");
    return nullptr;
}

// PY11. A number may be another one's after a rollback.
const layout *layout_in(heap &of, value records) {
    const std::size_t number = taiyen::records(*of.values, records).layout();
    const std::string_view text = of.values->layout(number);
    if (number < of.layouts.size() && of.layouts[number] && of.layouts[number]->text == text)
        return checked_size(of, records, of.layouts[number] = newest(of.layouts[number]));
    const ref found(
        PyObject_CallFunction(helpers.find_layout, "y#", text.data(), static_cast<Py_ssize_t>(text.size())));
    const layout *made = found ? layout_numbered(PyLong_AsSsize_t(found.get())) : nullptr;
    if (!made)
        return nullptr;
    if (of.layouts.size() <= number)
        of.layouts.resize(number + 1);
    return checked_size(of, records, of.layouts[number] = made);
}

// PY18. Before anything is stored.
Py_ssize_t keep_layout(heap &of, const layout &layout) {
    std::string_view other;
    std::size_t number = 0;
    for (std::string_view text; !(text = of.values->layout(number)).empty() && text != layout.text; ++number)
        if (text.substr(0, text.rfind(' ', text.find('\n'))) == layout.name)
            other = text;
    if (of.values->layout(number).empty()) {
        if (!other.empty() && !fault("records_of_another_class_taken"))
            return static_cast<void>(ref(refuse(layout, other))), -1;
        const taiyen::result<std::uint16_t> kept = of.values->keep_layout(layout.text);
        if (!kept)
            return raise_last();
        number = taiyen::result<std::uint16_t>(kept).value();
    }
    if (of.layouts.size() <= number)
        of.layouts.resize(number + 1);
    of.layouts[number] = &layout;
    return static_cast<Py_ssize_t>(number);
}

PyObject *add_layout(PyObject *, PyObject *arguments) {
    const char *name, *text, *format;
    Py_ssize_t size;
    PyObject *fields, *type;
    if (!PyArg_ParseTuple(arguments, "sssnO!O!", &name, &text, &format, &size, &PyTuple_Type, &fields, &PyType_Type,
                          &type))
        return nullptr;
    auto made = std::make_unique<layout>();
    made->number = static_cast<Py_ssize_t>(all_layouts.size());
    made->name = name;
    made->text = text;
    made->format = format;
    made->size = static_cast<std::size_t>(size);
    for (Py_ssize_t i = 0; i < PyTuple_Size(fields); ++i) {
        PyObject *field_name;
        const char *letter;
        Py_ssize_t offset, bytes;
        if (!PyArg_ParseTuple(PyTuple_GetItem(fields, i), "Usnn", &field_name, &letter, &offset, &bytes))
            return nullptr;
        field one{ref::borrowed(field_name), letter, static_cast<std::size_t>(offset), static_cast<std::size_t>(bytes)};
        one.kind = kind_of(one);
        if (!one.kind || offset < 0 || bytes < 1 || bytes > size || offset > size - bytes) {
            PyErr_Format(PyExc_ValueError, "%s.%U: no field of a record", name, field_name);
            return nullptr;
        }
        made->fields.push_back(std::move(one));
    }
    made->plain = reinterpret_cast<PyTypeObject *>(Py_NewRef(type));
    by_type[made->plain] = made.get();
    all_layouts.push_back(std::move(made));
    return PyLong_FromSize_t(all_layouts.size() - 1);
}

PyObject *replace_layout(PyObject *, PyObject *arguments) {
    Py_ssize_t before, now;
    if (!PyArg_ParseTuple(arguments, "nn", &before, &now) || !layout_numbered(before) || !layout_numbered(now))
        return nullptr;
    if (before < now)
        all_layouts[static_cast<std::size_t>(before)]->newer = all_layouts[static_cast<std::size_t>(now)].get();
    Py_RETURN_NONE;
}

PyObject *set_row_class(PyObject *, PyObject *arguments) {
    Py_ssize_t number;
    PyObject *type;
    if (!PyArg_ParseTuple(arguments, "nO!", &number, &PyType_Type, &type) || !layout_numbered(number))
        return nullptr;
    layout &of = *all_layouts[static_cast<std::size_t>(number)];
    of.row = reinterpret_cast<PyTypeObject *>(Py_NewRef(type));
    by_type[of.row] = &of;
    Py_RETURN_NONE;
}

} // namespace typy
