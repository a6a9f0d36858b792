// Small dicts and lists, packed as they are stored: written from Python's objects, so that nothing is made for what
// they hold, and no room is taken that is given back.
#include "objects.hpp"

namespace typy {

namespace {

constexpr Py_ssize_t values_max = taiyen::detail::packed_values_max;

// False: not all keys are texts.
bool hash_of_keys(PyObject *dict, std::uint64_t *hash) {
    *hash = static_cast<std::uint64_t>(PyDict_Size(dict));
    PyObject *key = nullptr, *item = nullptr;
    for (Py_ssize_t at = 0; PyDict_Next(dict, &at, &key, &item);) {
        if (!PyUnicode_CheckExact(key))
            return false;
        *hash = (*hash ^ static_cast<std::uint64_t>(PyObject_Hash(key))) * 0x9e3779b97f4a7c15;
    }
    return true;
}

class packer {
public:
    packer(heap &of, const met_again &shared) : heap_(of), shared_(shared) {}
    taiyen::detail::item_writer items;

    // The values of a dict or list; false: it is not packed so.
    bool write_all(PyObject *object) {
        if (!PyDict_CheckExact(object)) {
            for (Py_ssize_t i = 0; i < PyList_Size(object); ++i)
                if (!write(PyList_GetItem(object, i)))
                    return false;
            return true;
        }
        PyObject *key = nullptr, *item = nullptr;
        for (Py_ssize_t at = 0; PyDict_Next(object, &at, &key, &item);)
            if (!write(item))
                return false;
        return true;
    }

private:
    bool write(PyObject *object) {
        PyTypeObject *type = Py_TYPE(object);
        if (object == Py_None)
            return items.put_scalar(value::none());
        if (type == &PyUnicode_Type)
            return write_text(object);
        if (type == &PyFloat_Type)
            return items.put_scalar(value::real(PyFloat_AsDouble(object)));
        if (type == &PyLong_Type) {
            int overflow = 0;
            const long long number = PyLong_AsLongLongAndOverflow(object, &overflow);
            return !overflow && value::fits(number) && items.put_scalar(value::integer(number));
        }
        if (type == &PyBool_Type)
            return items.put_scalar(value::boolean(object == Py_True));
        if (type == &PyBytes_Type)
            return items.put_data(false, {PyBytes_AsString(object), static_cast<std::size_t>(PyBytes_Size(object))});
        if (type == &PyTuple_Type)
            return write_tuple(object);
        return (type == &PyDict_Type || type == &PyList_Type) && is_met_once(object) && write_container(object);
    }
    bool is_met_once(PyObject *object) const {
        return Py_REFCNT(object) == 1 || (shared_.has_looked() && !shared_.has(object));
    }
    bool write_text(PyObject *object) {
        std::string_view bytes;
        ref kept;
        if (text_of(object, &bytes, &kept))
            return items.put_data(true, bytes);
        PyErr_Clear(); // the caller that stores it reports
        return false;
    }
    bool write_tuple(PyObject *tuple) {
        taiyen::detail::item_writer::place at;
        const Py_ssize_t size = PyTuple_Size(tuple);
        if (!items.open_tuple(static_cast<std::size_t>(size), &at))
            return false;
        for (Py_ssize_t i = 0; i < size; ++i) {
            PyObject *item = PyTuple_GetItem(tuple, i);
            if (PyDict_CheckExact(item) || PyList_CheckExact(item) || !write(item))
                return false; // tuples with containers are not packed
        }
        items.close(at);
        return true;
    }
    bool write_container(PyObject *object) {
        taiyen::detail::item_writer::place at;
        if (PyList_CheckExact(object)) {
            if (!items.open_list(static_cast<std::size_t>(PyList_Size(object)), &at))
                return false;
        } else {
            const std::int32_t shape = heap_.shapes.find(object);
            if (shape < 0 || !items.open_dict(static_cast<std::uint16_t>(shape), &at))
                return false;
        }
        if (!write_all(object))
            return false;
        items.close(at);
        return true;
    }
    heap &heap_;
    const met_again &shared_;
};

} // namespace

// PY8. Whether a dict was stored with the keys that it has now, in this order: code that ran meanwhile may have changed
// it.
bool is_stored_as_it_is(value_heap &values, PyObject *dict, value stored) {
    const without_cycles no_code; // PY34: a text that is no UTF-8 makes an exception
    const taiyen::dict in(values, stored);
    std::uint32_t position = in.next();
    PyObject *key = nullptr, *item = nullptr;
    for (Py_ssize_t at = 0; PyDict_Next(dict, &at, &key, &item); position = in.next(position + 1)) {
        std::string_view bytes;
        ref kept;
        const value there = position == in.end_position ? value() : in.key_at(position);
        if (taiyen::kind_of(there) != value_kind::text || !text_of(key, &bytes, &kept) ||
            taiyen::data_of(there) != bytes) {
            PyErr_Clear();
            return false;
        }
    }
    return position == in.end_position;
}

// PY8. Whether a dict has these keys, in this order.
bool has_keys(PyObject *dict, const std::vector<ref> &keys) {
    PyObject *key = nullptr, *item = nullptr;
    Py_ssize_t at = 0;
    for (const ref &known : keys)
        if (!PyDict_Next(dict, &at, &key, &item) || (key != known.get() && PyUnicode_Compare(key, known.get())))
            return false;
    return static_cast<Py_ssize_t>(keys.size()) == PyDict_Size(dict);
}

std::int32_t shape_memory::find(PyObject *dict) const {
    std::uint64_t hash = 0;
    if (known_.empty() || PyDict_Size(dict) > values_max || !hash_of_keys(dict, &hash))
        return -1;
    const auto place = known_.find(hash);
    return place == known_.end() || !has_keys(dict, place->second.keys) ? -1 : place->second.number;
}

void shape_memory::meet(value_heap &values, PyObject *dict, value stored) {
    constexpr std::size_t shapes_max = 1024;
    std::uint64_t hash = 0;
    if (PyDict_Size(dict) > values_max || !hash_of_keys(dict, &hash))
        return;
    const auto place = known_.find(hash);
    if (place != known_.end() && has_keys(dict, place->second.keys)) {
        if (is_stored_as_it_is(values, dict, stored) || fault("shape_of_a_dict_that_has_changed"))
            place->second.number = values.find_shape(stored, true);
        return;
    }
    if (known_.size() >= shapes_max)
        known_.clear();
    shape &known = known_[hash];
    known.number = -1;
    known.keys.clear();
    PyObject *key = nullptr, *item = nullptr;
    for (Py_ssize_t at = 0; PyDict_Next(dict, &at, &key, &item);)
        known.keys.push_back(ref::borrowed(key));
}

// PY7.
void met_again::look(PyObject *object) {
    has_looked_ = true;
    const without_cycles no_code;
    std::vector<PyObject *> open{object};
    while (!open.empty()) {
        PyObject *one = open.back();
        open.pop_back();
        if (Py_REFCNT(one) > 1 && !met_.insert(one).second)
            again_.insert(one);
        else
            look_at(one, &open);
    }
}

void met_again::look_at(PyObject *object, std::vector<PyObject *> *open) {
    const auto add = [open](PyObject *item) {
        PyTypeObject *type = Py_TYPE(item);
        if (type == &PyDict_Type || type == &PyList_Type || type == &PyTuple_Type || type == deque_type() ||
            is_proxy(item))
            open->push_back(item);
    };
    if (PyDict_CheckExact(object)) {
        PyObject *key = nullptr, *item = nullptr;
        for (Py_ssize_t at = 0; PyDict_Next(object, &at, &key, &item);)
            add(item);
    } else if (PyList_CheckExact(object)) {
        for (Py_ssize_t i = 0; i < PyList_Size(object); ++i)
            add(PyList_GetItem(object, i));
    } else if (PyTuple_CheckExact(object)) {
        for (Py_ssize_t i = 0; i < PyTuple_Size(object); ++i)
            add(PyTuple_GetItem(object, i));
    } else if (Py_TYPE(object) == deque_type()) {
        const ref iterator(PyObject_GetIter(object));
        while (const ref item{iterator ? PyIter_Next(iterator.get()) : nullptr})
            add(item.get());
    }
}

bool make_packed(heap &of, PyObject *object, const met_again &shared, value *v) {
    const bool is_dict = PyDict_CheckExact(object);
    *v = value();
    if ((!is_dict && !PyList_CheckExact(object)) || of.shared) // PY41
        return true;
    const Py_ssize_t size = is_dict ? PyDict_Size(object) : PyList_Size(object);
    const std::int32_t number = is_dict ? of.shapes.find(object) : static_cast<std::int32_t>(size);
    packer one(of, shared);
    if (size > values_max || number < 0)
        return true;
    {
        const without_cycles no_code; // PY34: a text that is no UTF-8 makes an exception
        if (!one.write_all(object))
            return true;
    }
    const taiyen::result<value> made = of.values->make_packed(is_dict, static_cast<std::uint16_t>(number), one.items);
    if (!made)
        return raise_last() == 0;
    *v = taiyen::result<value>(made).value();
    return true;
}

} // namespace typy
