// From Python to the heap: an object is copied in with all that it holds. What the object holds twice is stored once,
// and what leads to itself does so in the heap.
#include "objects.hpp"
#include "record.hpp"

namespace typy {

namespace {

using taiyen::detail::value_head;

std::vector<value_head *> heads_of(const std::vector<value> &blocks) {
    std::vector<value_head *> heads;
    for (const value v : blocks)
        heads.push_back(taiyen::detail::head_of(v));
    return heads;
}

std::unordered_set<const void *> addresses_of(const std::vector<value> &blocks) {
    std::unordered_set<const void *> addresses;
    for (const value v : blocks)
        addresses.insert(v.address());
    return addresses;
}

// PY4. Frees blocks that were made and that nothing else leads to, also what leads to itself. staying: others that were
// made, and may be stored there alone.
void free_made(heap &of, std::uint64_t taken_back, const std::vector<value_head *> &made,
               const std::vector<value> &staying = {}) {
    const auto is_gone = [&] { return !of.is_usable() || of.taken_back != taken_back; }; // or it is, with the heap
    if (made.empty() || is_gone() || fault("failed_store_leaves_what_it_made"))
        return;
    going parts(of, false, true); // what was stored elsewhere before, and is no more
    for (value_head *head : made)
        taiyen::detail::values_in(head).each([&](value part) { return parts.add(part); });
    if (!parts.keep() && is_gone()) // an exception runs code
        return;
    ty_status status = of.values->begin_write();
    for (std::size_t i = 0; i < staying.size() && !status; ++i)
        status = of.values->prepare_release(staying[i]);
    if (status)
        return;
    for (const value v : staying)
        if (v.is_block())
            ++taiyen::detail::head_of(v)->refs;
    for (value_head *head : made) // they stay while they are emptied
        ++head->refs;
    for (value_head *head : made)
        if (taiyen::detail::is_container(*head))
            static_cast<void>(of.values->clear(reinterpret_cast<taiyen::detail::value_container *>(head)));
    for (value_head *head : made)
        of.values->release(value::block(head));
    of.values->drain();
    for (const value v : staying)
        of.values->release(v, true);
}

} // namespace

class storer {
public:
    explicit storer(heap &of) : heap_(of), values_(*of.values), taken_back_(of.taken_back) {}

    // PY13. Whether what was made is still there: to be asked after whatever may have run Python code.
    bool still() const { return fault("what_was_taken_back_is_used") || check_not_taken_back(heap_, taken_back_); }

    bool store(PyObject *object, value *v) {
        if (word(object, v))
            return true;
        if (!still()) // PY34: what was stored before may have gone with code
            return false;
        PyTypeObject *type = Py_TYPE(object);
        if (type == &PyUnicode_Type)
            return text(object, v);
        if (type == &PyBytes_Type)
            return take(values_.make_bytes(bytes_view(object)), v);
        if (type == &PyLong_Type)
            return integer(object, v);
        if (type == &PyComplex_Type)
            return take(values_.make_complex(PyComplex_RealAsDouble(object), PyComplex_ImagAsDouble(object)), v);
        return store_larger(object, type, v);
    }
    // After the last part: what was made is the caller's, who has `results` of it. Frees what is no part of these, as
    // what stood for the first of two keys that Python distinguishes and a heap does not (two that are no numbers).
    // Gives all that was made if some of it is met again in it: counts alone do not show then whether it was stored.
    std::vector<value> hand_over(const std::vector<value> &results) {
        if (has_replaced_)
            free_replaced(results);
        has_made_ = !made_.empty();
        std::vector<value> made = std::move(made_);
        made_.clear();
        if (!is_met_again_ || fault("ring_that_is_not_stored_stays"))
            made.clear();
        return made;
    }
    // Then, what was made takes less room so. Where there is none for that, it stays as it is.
    void pack(value *v) {
        if (!has_made_ || heap_.shared || !v->is_block() || taiyen::detail::head_of(*v)->refs != 0)
            return;
        try {
            if (const taiyen::result<value> packed = values_.pack(*v))
                *v = taiyen::result<value>(packed).value();
        } catch (const std::bad_alloc &) {
        }
    }
    // PY4. After a failure: frees what was made.
    void give_up() { free_made(heap_, taken_back_, heads_of(made_)); }

    void give_up_quietly() {
        const kept_error before;
        give_up();
    }
    // Before parts are stored that may be met again in each other.
    void look(PyObject *object) { shared_.look(object); }
    // A part of what is stored: errors name the way to it.
    bool part(PyObject *in, Py_ssize_t at, PyObject *object, value *v) {
        path_.emplace_back(in, at);
        const bool good = store(object, v);
        if (good)
            path_.pop_back();
        return good;
    }
    // Of what was made in vain; containers, tuples and arrays go with give_up().
    void drop(value v) {
        if (!v.is_block() || !heap_.is_usable() || heap_.taken_back != taken_back_)
            return;
        if (taiyen::kind_of(v) < value_kind::tuple || taiyen::is_packed(v))
            static_cast<void>(values_.discard(v));
    }

private:
    static bool word(PyObject *object, value *v) {
        if (object == Py_None)
            *v = value::none();
        else if (object == Py_True || object == Py_False)
            *v = value::boolean(object == Py_True);
        else if (Py_TYPE(object) == &PyFloat_Type)
            *v = value::real(PyFloat_AsDouble(object));
        else
            return false;
        return true;
    }
    static std::string_view bytes_view(PyObject *bytes) {
        return {PyBytes_AsString(bytes), static_cast<std::size_t>(PyBytes_Size(bytes))};
    }
    static bool take(taiyen::result<value> made, value *v) {
        if (!made)
            return raise_last() == 0;
        *v = std::move(made).value();
        return true;
    }
    bool text(PyObject *object, value *v) {
        std::string_view bytes;
        ref kept;
        return text_of(object, &bytes, &kept) && (!kept || still()) && take(values_.make_text(bytes), v);
    }
    bool integer(PyObject *object, value *v) {
        int overflow = 0;
        const long long number = PyLong_AsLongLongAndOverflow(object, &overflow);
        if (!overflow)
            return take(values_.make_integer(static_cast<std::int64_t>(number)), v);
        std::string magnitude;
        bool negative = false;
        return magnitude_of(object, &magnitude, &negative) && still() &&
               take(values_.make_integer(magnitude, negative), v);
    }
    bool store_larger(PyObject *object, PyTypeObject *type, value *v) {
        const bool is_container = type == &PyDict_Type || type == &PyList_Type || type == &PyTuple_Type ||
                                  type == &PySet_Type || type == deque_type();
        const auto place = done_.find(object);
        if (place != done_.end()) {
            *v = place->second;
            return is_met_again_ = true;
        }
        if (!is_container)
            return is_proxy(object) ? of_proxy(object, v) : other(object, v);
        if (!shared_.has(object) && !make_packed(heap_, object, shared_, v))
            return false;
        if (!v->is_nothing())
            return true;
        if (!shared_.has_looked()) { // something large, or with parts that others have, too
            shared_.look(object);
            return store_larger(object, type, v);
        }
        const deeper room(" while an object is stored in a heap");
        if (!room)
            return false;
        const bool good = type == &PyTuple_Type  ? tuple(object, v)
                          : type == &PyDict_Type ? dict(object, v)
                          : type == &PySet_Type  ? set(object, v)
                          : type == &PyList_Type ? list(object, v)
                                                 : deque(object, v);
        return good;
    }
    // Of this heap: the same container, once more. Of another one: a copy; one, if it is met again.
    bool of_proxy(PyObject *object, value *v) {
        heap *from = use(as_proxy(object));
        if (!from)
            return false;
        *v = value::block(as_proxy(object)->block);
        if (from == &heap_)
            return take(values_.own(*v), v);
        const ref plain(plain_copy(*from, *v));
        *v = value();
        if (!plain || !still())
            return false;
        if (shared_.has_looked()) // PY7: not yet at this
            shared_.look(plain.get());
        if (!shared_.has(object))
            return store(plain.get(), v);
        shared_.add(plain.get());
        if (!store(plain.get(), v))
            return false;
        remember(object, *v);
        return true;
    }
    bool other(PyObject *object, value *v) {
        if (const layout *of = layout_of(Py_TYPE(object)))
            return record(*of, object, v);
        if (const layout *of = PyList_Check(object) ? layout_of_list(object) : nullptr)
            return records(*of, object, v);
        encoded code;
        if (!encode(object, false, &code) || !still())
            return false;
        if (code.kept.get() == Py_None && PyObject_CheckBuffer(object)) {
            bool is_other = false;
            if (store_buffer(heap_, object, v, &is_other)) {
                if (fault("array_met_again_is_a_copy"))
                    made_.push_back(*v);
                else
                    keep(object, *v);
                return true;
            }
            if (!is_other || !heap_.takes_pickles)
                return false;
            PyErr_Clear();
        }
        if (code.bytes.data() == nullptr && heap_.takes_pickles && (!encode(object, true, &code) || !still()))
            return false;
        if (code.bytes.data() == nullptr)
            return refuse(object);
        return take(values_.make_opaque(static_cast<std::uint16_t>(code.type), code.bytes, code.is_key), v);
    }
    // One that stands alone: a copy each time.
    bool record(const layout &of, PyObject *object, value *v) {
        std::string bytes(of.size, '\0');
        if (!pack_record(of, object, bytes.data(), [this] { return "value" + path(); }) || !still() ||
            !make_records(heap_, of, true, v))
            return false;
        made_.push_back(*v);
        return done(taiyen::records(values_, *v).store(0, 0, bytes.data(), bytes.size()));
    }
    bool records(const layout &of, PyObject *list, value *v) {
        std::string bytes;
        if (!pack_records(of, list, &bytes, [this] { return "value" + path(); }) || !still() ||
            !make_records(heap_, of, false, v))
            return false;
        keep(list, *v);
        return done(taiyen::records(values_, *v).insert(0, bytes.data(), bytes.size() / of.size));
    }
    static bool done(const taiyen::result<void> &result) { return static_cast<bool>(result) || raise_last() == 0; }
    std::string path() {
        std::string path;
        for (const auto &[in, at] : path_) {
            const ref text(in ? PyObject_Repr(in) : PyUnicode_FromFormat("%zd", at));
            const char *part = text ? PyUnicode_AsUTF8AndSize(text.get(), nullptr) : nullptr;
            if (!part)
                PyErr_Clear();
            path += std::string("[") + (part ? part : "?") + "]";
        }
        return path;
    }
    bool refuse(PyObject *object) {
        const ref zone(PyObject_GetAttrString(object, "tzinfo"));
        PyErr_Clear();
        PyErr_Format(PyExc_TypeError,
                     "value%s: a heap cannot hold %R objects%s; store what they are made of, or open the heap with "
                     "pickle=True",
                     path().c_str(), Py_TYPE(object), zone && zone.get() != Py_None ? " whose zone has no name" : "");
        return false;
    }
    bool begin(value_kind kind, PyObject *object, value *v) {
        if (!take(values_.make_container(kind), v))
            return false;
        keep(object, *v);
        return true;
    }
    // Containers, tuples and arrays: what is met again is stored once.
    void keep(PyObject *object, value v) {
        made_.push_back(v);
        remember(object, v);
    }
    // PY7. The object's address is not to come twice meanwhile.
    void remember(PyObject *object, value v) {
        kept_.push_back(ref::borrowed(object));
        done_.emplace(object, v);
    }
    bool ended(bool stored, value v) {
        if (stored)
            return true;
        raise_last();
        drop(v);
        return false;
    }
    void free_replaced(const std::vector<value> &results) {
        const std::unordered_set<const void *> made = addresses_of(made_);
        taiyen::detail::value_graph graph(&made);
        std::vector<const void *> roots;
        for (const value v : made_)
            graph.add(taiyen::detail::head_of(v));
        for (const value v : results)
            if (v.is_block())
                roots.push_back(v.address());
        const std::vector<value_head *> left = graph.unreached(roots);
        const std::unordered_set<const void *> gone(left.begin(), left.end());
        std::erase_if(made_, [&](value v) { return gone.count(v.address()) != 0; });
        free_made(heap_, taken_back_, left, results);
    }
    // An equal key was there. A container, tuple or array stays: it may be met again.
    void drop_replaced(value v, value key = value()) {
        has_replaced_ = true;
        drop(v);
        drop(key);
    }
    bool key_part(taiyen::result<value_key> key, value v, value_key *found) {
        if (!key) {
            drop(v);
            PyErr_SetString(PyExc_TypeError, "unhashable type in a key of a heap");
            return false;
        }
        *found = std::move(key).value();
        return true;
    }
    bool dict(PyObject *object, value *v) {
        if (!begin(value_kind::dict, object, v))
            return false;
        taiyen::dict to(values_, *v);
        if (!to.reserve(static_cast<std::size_t>(PyDict_Size(object))))
            return raise_last() == 0;
        PyObject *key = nullptr, *item = nullptr;
        Py_ssize_t at = 0;
        const Py_ssize_t size = PyDict_Size(object);
        while (PyDict_Next(object, &at, &key, &item)) {
            const ref kept_key = ref::borrowed(key), kept_item = ref::borrowed(item); // whatever is done to the dict
            if (!entry(to, key, item) || !still())
                return false;
            if (PyDict_Size(object) != size) {
                PyErr_SetString(PyExc_RuntimeError, "dictionary changed size while it was stored");
                return false;
            }
        }
        if (!still()) // PY34: the last key and item may have gone with code
            return false;
        heap_.shapes.meet(values_, object, *v);
        return true;
    }
    bool entry(taiyen::dict &to, PyObject *key, PyObject *item) {
        key_of found;
        value made_item, made_key;
        if (!part(key, 0, item, &made_item))
            return false;
        value_key looked_for;
        const bool has_block = PyTuple_CheckExact(key) || PyComplex_CheckExact(key); // it is made as a value is
        if (has_block ? !store(key, &made_key) || !still() || !key_part(values_.key(made_key), made_key, &looked_for)
                      : !find(found, key, &looked_for)) {
            drop(made_item);
            return false;
        }
        value replaced;
        if (const taiyen::result<bool> is_new = to.set(looked_for, made_item, &replaced)) {
            if (!taiyen::result<bool>(is_new).value())
                drop_replaced(replaced, made_key);
            return true;
        }
        static_cast<void>(ended(false, made_item));
        return ended(false, made_key);
    }
    // PY22.
    bool find(key_of &found, PyObject *key, value_key *looked_for) {
        if (!found.find(heap_, key) || (!fault("key_that_no_heap_takes_stored") && !found.check_stored(key)) ||
            !still())
            return false;
        *looked_for = found.get();
        return true;
    }
    bool list(PyObject *object, value *v) {
        if (const layout *of = layout_of_all(object))
            return records(*of, object, v);
        if (!begin(value_kind::list, object, v))
            return false;
        taiyen::list to(values_, *v);
        if (!to.reserve(static_cast<std::size_t>(PyList_Size(object))))
            return raise_last() == 0;
        for (Py_ssize_t i = 0; i < PyList_Size(object); ++i) {
            const ref item = ref::borrowed(PyList_GetItem(object, i));
            value made;
            if (!part(nullptr, i, item.get(), &made) || !still() || !ended(static_cast<bool>(to.append(made)), made))
                return false;
        }
        return true;
    }
    template <class Function>
    bool each(PyObject *object, Function &&function) {
        const ref iterator(PyObject_GetIter(object));
        Py_ssize_t i = 0;
        while (iterator) {
            const ref item(PyIter_Next(iterator.get()));
            if (!item)
                return !PyErr_Occurred();
            value made;
            if (!part(nullptr, i++, item.get(), &made) || !still() || !function(made))
                return false;
        }
        return false;
    }
    bool set(PyObject *object, value *v) {
        if (!begin(value_kind::set, object, v))
            return false;
        taiyen::set to(values_, *v);
        return each(object, [&](value made) {
            value_key key;
            if (!key_part(values_.key(made), made, &key))
                return false;
            const taiyen::result<bool> added = to.add(key);
            if (added && !taiyen::result<bool>(added).value())
                drop_replaced(made);
            return ended(static_cast<bool>(added), made);
        });
    }
    bool deque(PyObject *object, value *v) {
        const ref most(PyObject_GetAttrString(object, "maxlen"));
        if (!most || most.get() != Py_None) {
            if (most)
                PyErr_Format(
                    PyExc_TypeError,
                    "value%s: a deque of a heap has no maxlen; store collections.deque(it), and take items out "
                    "yourself",
                    path().c_str());
            return false;
        }
        if (!begin(value_kind::deque, object, v))
            return false;
        taiyen::deque to(values_, *v);
        return each(object, [&](value made) { return ended(static_cast<bool>(to.push_back(made)), made); });
    }
    bool tuple(PyObject *object, value *v) {
        std::vector<value> items;
        bool good = true;
        for (Py_ssize_t i = 0; i < PyTuple_Size(object) && good; ++i) {
            value made;
            good = part(nullptr, i, PyTuple_GetItem(object, i), &made);
            if (good)
                items.push_back(made);
        }
        good = good && still() && take(values_.make_tuple(items.data(), items.size()), v);
        if (good)
            return keep(object, *v), true;
        for (value item : items)
            drop(item);
        return false;
    }
    heap &heap_;
    value_heap &values_;
    const std::uint64_t taken_back_;
    std::vector<value> made_;
    std::vector<std::pair<PyObject *, Py_ssize_t>> path_;
    std::vector<ref> kept_;
    std::unordered_map<PyObject *, value> done_;
    met_again shared_;
    bool has_made_ = false;
    bool is_met_again_ = false;
    bool has_replaced_ = false;
};

bool made_value::make(PyObject *object) {
    return check() && make_value(object) && check(); // PY34: what was met goes with the storer, which may run code
}

bool made_value::make_value(PyObject *object) {
    storer one(heap_);
    try {
        if (one.store(object, &value_) && one.still()) {
            take_over(one, {value_});
            one.pack(&value_);
            return true;
        }
    } catch (const std::exception &caught) {
        raise_caught(caught);
    }
    value_ = value();
    one.give_up_quietly();
    return false;
}

bool made_value::make_items(PyObject *list, PyObject *keys) {
    return check() && make_all(list, keys) && check();
}

bool made_value::make_all(PyObject *list, PyObject *keys) {
    storer one(heap_);
    try {
        if (make_items_by(one, list, keys))
            return true;
    } catch (const std::exception &caught) {
        raise_caught(caught);
    }
    for (value v : items_)
        one.drop(v);
    items_.clear();
    one.give_up_quietly();
    return false;
}

bool made_value::make_items_by(storer &one, PyObject *list, PyObject *keys) {
    one.look(list);
    for (Py_ssize_t i = 0; i < PyList_Size(list); ++i) {
        const ref item = ref::borrowed(PyList_GetItem(list, i));
        value made;
        if (one.part(keys ? PyList_GetItem(keys, i) : nullptr, i, item.get(), &made) && one.still()) {
            items_.push_back(made);
            continue;
        }
        return false;
    }
    take_over(one, items_);
    // One that another one has, or that comes twice, is not to go into a packed block.
    std::unordered_set<const void *> seen;
    for (const value v : items_)
        if (v.is_block() && (taiyen::detail::head_of(v)->refs != 0 || !seen.insert(v.address()).second))
            return true;
    for (value &v : items_)
        one.pack(&v);
    return true;
}

bool made_value::check() const {
    return check_not_taken_back(heap_, taken_back_);
}

void made_value::take_over(storer &one, const std::vector<value> &values) {
    stores_.reserve(values.size());
    made_ = one.hand_over(values);
    for (const value v : values)
        if (!made_.empty())
            stores_.push_back(v.is_block() ? taiyen::detail::head_of(v)->refs : 0);
}

// PY4. What was made and leads to itself has stores, though nobody else has stored it.
void made_value::free_rings() {
    bool is_stored = true;
    for (std::size_t i = 0; i < stores_.size(); ++i)
        is_stored = is_stored &&
                    (!taiyen::detail::leads_on(items_[i]) || taiyen::detail::head_of(items_[i])->refs > stores_[i]);
    if (is_stored)
        return;
    const std::unordered_set<const void *> made = addresses_of(made_);
    taiyen::detail::value_graph graph(&made);
    for (const value v : items_)
        if (taiyen::detail::leads_on(v) && made.count(v.address()))
            graph.add(taiyen::detail::head_of(v));
    const std::vector<value_head *> left = graph.unreached({});
    const std::unordered_set<const void *> gone(left.begin(), left.end());
    std::erase_if(items_, [&](value v) { return gone.count(v.address()) != 0; });
    free_made(heap_, taken_back_, left, items_);
}

made_value::~made_value() {
    // In a heap that was closed meanwhile, nothing is loose; a proxy's value is stored.
    const auto is_gone = [this] { return !heap_.is_usable() || heap_.taken_back != taken_back_; };
    if (is_gone())
        return;
    const kept_error before;
    items_.push_back(value_);
    if (!made_.empty())
        free_rings();
    std::unordered_set<const void *> seen;
    for (value v : items_)
        if (!is_gone() && v.is_block() && (items_.size() == 1 || seen.insert(v.address()).second) &&
            !taiyen::is_item(v) && taiyen::detail::head_of(v)->refs == 0 && heap_.let_go(v))
            static_cast<void>(heap_.values->discard(v));
}

} // namespace typy
