// Keys to look for. What is looked for need not be in the heap, and nothing is made there for it.
#include "objects.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace typy {

namespace {

bool refuse(PyObject *object) {
    PyErr_Format(PyExc_TypeError, "unhashable type: %R cannot be a key in a heap", Py_TYPE(object));
    return false;
}

// Whether it is known that no heap has one that is equal: it equals itself alone, or others of its type.
bool equals_nothing(PyObject *object) {
    PyTypeObject *type = Py_TYPE(object);
    return PyFrozenSet_CheckExact(object) || type == &PyRange_Type ||
           PyType_GetSlot(type, Py_tp_richcompare) == PyType_GetSlot(&PyBaseObject_Type, Py_tp_richcompare);
}

// What a heap may have that equals an object of a derived class, or a number of another library. NULL: nothing, or an
// exception.
PyObject *plain_key(PyObject *object) {
    PyTypeObject *type = Py_TYPE(object);
    const auto as = [object](PyTypeObject &plain) {
        return PyObject_CallFunctionObjArgs(reinterpret_cast<PyObject *>(&plain), object, nullptr);
    };
    if (PyUnicode_Check(object) && type != &PyUnicode_Type)
        return PyUnicode_FromObject(object);
    if (PyFloat_Check(object) && type != &PyFloat_Type)
        return PyFloat_FromDouble(PyFloat_AsDouble(object));
    if (PyBytes_Check(object) && type != &PyBytes_Type)
        return PyBytes_FromStringAndSize(PyBytes_AsString(object), PyBytes_Size(object));
    if (PyTuple_Check(object) && type != &PyTuple_Type)
        return PySequence_Tuple(ref(PySequence_List(object)).get());
    if (type != &PyLong_Type && (PyLong_Check(object) || PyIndex_Check(object)))
        return as(PyLong_Type);
    return nullptr;
}

} // namespace

bool key_of::find(heap &of, PyObject *object) {
    if (!of.check()) // PY34: whatever came before
        return false;
    PyTypeObject *type = Py_TYPE(object);
    if (type == &PyUnicode_Type) {
        std::string_view bytes;
        kept_.emplace_back();
        if (!text_of(object, &bytes, &kept_.back()) || (kept_.back() && !of.check()))
            return false;
        key_ = of.values->text_key(bytes);
        return true;
    }
    if (type == &PyLong_Type) {
        int overflow = 0;
        const long long number = PyLong_AsLongLongAndOverflow(object, &overflow);
        if (!overflow && value::fits(number)) {
            key_ = of.values->key(value::integer(number)).value();
            return true;
        }
    } else if (type == &PyTuple_Type) {
        return of_tuple(of, object);
    } else if (type == &PyFloat_Type || type == &PyBool_Type || object == Py_None) {
        const value v = type == &PyFloat_Type  ? value::real(PyFloat_AsDouble(object))
                        : type == &PyBool_Type ? value::boolean(object == Py_True)
                                               : value::none();
        key_ = of.values->key(v).value();
        return true;
    }
    return of_bytes_like(of, object);
}

bool key_of::of_bytes_like(heap &of, PyObject *object) {
    kept_.emplace_back();
    if (PyBytes_CheckExact(object)) {
        key_ = of.values->bytes_key({PyBytes_AsString(object), static_cast<std::size_t>(PyBytes_Size(object))});
        return true;
    }
    if (PyLong_CheckExact(object)) {
        std::string magnitude;
        bool negative = false;
        if (!magnitude_of(object, &magnitude, &negative) || !of.check())
            return false;
        kept_.back() = ref(PyBytes_FromStringAndSize(magnitude.data(), static_cast<Py_ssize_t>(magnitude.size())));
        if (!kept_.back())
            return false;
        key_ = of.values->integer_key({PyBytes_AsString(kept_.back().get()), magnitude.size()}, negative);
        return true;
    }
    if (PyComplex_CheckExact(object)) {
        const double parts[2] = {PyComplex_RealAsDouble(object), PyComplex_ImagAsDouble(object)};
        if (parts[1] == 0) {
            key_ = of.values->key(value::real(parts[0])).value();
            is_imitation_ = true; // it is found as the number that it equals, and stored as what it is
            return true;
        }
        kept_.back() = ref(PyBytes_FromStringAndSize(reinterpret_cast<const char *>(parts), sizeof parts));
        if (!kept_.back())
            return false;
        key_ = value_key{};
        key_.kind = value_kind::complex;
        key_.data = {PyBytes_AsString(kept_.back().get()), sizeof parts};
        key_.hash = taiyen::detail::hash_data(of.values->hasher(), key_.kind, 0, key_.data, false);
        return true;
    }
    encoded code;
    if (!encode(object, false, &code) || !of.check())
        return false;
    if (code.bytes.data() == nullptr || !code.is_key)
        return of_another(of, object);
    key_ = of.values->opaque_key(static_cast<std::uint16_t>(code.type), code.bytes);
    kept_.back() = std::move(code.kept);
    return true;
}

bool key_of::of_another(heap &of, PyObject *object) {
    if (equals_nothing(object)) {
        if (PyObject_Hash(object) == -1 || !of.check())
            return false;
        constexpr std::uint16_t of_none = UINT16_MAX;
        key_ = of.values->opaque_key(of_none, {});
        stands_in_ = true;
        return true;
    }
    const ref plain(plain_key(object));
    if (!plain && PyErr_Occurred())
        return false;
    int is_equal = 0;
    if (plain) {
        const Py_hash_t hash = PyObject_Hash(object);
        if (hash == -1 && PyErr_Occurred())
            return false;
        is_equal = hash == PyObject_Hash(plain.get()) ? PyObject_RichCompareBool(object, plain.get(), Py_EQ) : 0;
    }
    if (is_equal < 0 || !of.check())
        return false;
    if (!is_equal)
        return refuse(object);
    kept_.push_back(ref::borrowed(plain.get()));
    if (!find(of, plain.get()))
        return false;
    is_imitation_ = false; // it is not stored
    return stands_in_ = true;
}

// PY22.
bool key_of::check_stored(PyObject *object) const {
    return !stands_in_ || refuse(object);
}

// A tuple to look for lies outside of the heap, in blocks like the heap's.
bool key_of::of_tuple(heap &of, PyObject *tuple) {
    value v;
    if (!imitate(of, tuple, &v) || !of.check())
        return false;
    key_ = value_key{};
    key_.word = v;
    key_.hash = taiyen::detail::hash_of(of.values->hasher(), v);
    is_imitation_ = true;
    return true;
}

// PY6.
bool key_of::imitate(heap &of, PyObject *item, value *v) {
    namespace detail = taiyen::detail;
    if (!PyTuple_CheckExact(item)) {
        key_of one;
        if (!one.find(of, item))
            return false;
        kept_.push_back(ref::borrowed(item));
        if (!one.key_.word.is_nothing()) {
            std::move(one.blocks_.begin(), one.blocks_.end(), std::back_inserter(blocks_)); // what the word leads to
            *v = one.key_.word;
            return true;
        }
        blocks_.emplace_back((sizeof(detail::value_data) + one.key_.data.size() + 7) / 8);
        auto *block = reinterpret_cast<detail::value_data *>(blocks_.back().data());
        block->head =
            detail::new_head(one.key_.kind, one.key_.negative ? unsigned{detail::flag_negative} : 0u, one.key_.type);
        block->size = static_cast<std::uint32_t>(one.key_.data.size());
        block->hash = one.key_.hash;
        std::memcpy(block->bytes(), one.key_.data.data(), one.key_.data.size());
        *v = value::block(block);
        return true;
    }
    const auto count = static_cast<std::size_t>(PyTuple_Size(item));
    const deeper room_deeper(" while a tuple is looked for");
    if (!room_deeper)
        return false;
    std::vector<value> items(count);
    bool good = true;
    for (std::size_t i = 0; i < count && good; ++i)
        good = imitate(of, PyTuple_GetItem(item, static_cast<Py_ssize_t>(i)), &items[i]);
    if (!good || !of.check())
        return false;
    std::vector<std::uint64_t> room((sizeof(detail::value_tuple) + count * sizeof(value)) / 8);
    auto *block = reinterpret_cast<detail::value_tuple *>(room.data());
    const detail::value_hasher hasher = of.values->hasher();
    std::uint64_t joined = count;
    for (std::size_t i = 0; i < count; ++i) {
        block->items()[i] = items[i];
        joined = hasher.join(joined, detail::hash_of(hasher, items[i]));
    }
    block->head = detail::new_head(value_kind::tuple);
    block->count = static_cast<std::uint32_t>(count);
    block->hash = hasher.end(joined);
    blocks_.push_back(std::move(room));
    *v = value::block(block);
    return true;
}

bool key_of::make(heap &of, PyObject *object, made_value &made) {
    if (!is_imitation_)
        return true;
    if (!made.make(object) || !made.check())
        return false;
    taiyen::result<value_key> stored = of.values->key(made.get());
    if (!stored) // one with a pickle in it
        return refuse(object);
    key_ = std::move(stored).value();
    is_imitation_ = false;
    return true;
}

} // namespace typy
