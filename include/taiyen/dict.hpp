// Taiyen in C++: a dict and a set in a heap of values, header-only, C++17 and later.
//
//     taiyen::value_heap values = taiyen::value_heap::open(heap).value();
//     taiyen::dict cities(values, values.make_container(taiyen::value_kind::dict).value());
//     cities.set(values.text_key("Lisbon"), taiyen::value::integer(545796)).value();
//
// Purpose: values by keys, in the order in which the keys came.
//
// Vocabulary: as value_heap.hpp. A dict or set here is a handle of one in the heap: it owns nothing, and is good as
// long as the container is stored, or loose. A *position* is the number of an entry.
//
// Guarantees: as value_heap.hpp's. What stands for a key that is there already is replaced; the key stays as it was
// written first. Errors: TY_E_ARGUMENT (no transaction), TY_E_PERMISSION (read-only), TY_E_MEMORY; of undo TY_E_SPACE.
//
// Cost: an entry has 16 bytes (of a set 8) and 1.5 to 3 slots of 1, 2 or 4 bytes, more in a table that has just grown.
#ifndef TAIYEN_DICT_HPP
#define TAIYEN_DICT_HPP

#include "value_table.hpp"

namespace taiyen {
inline namespace v0 {

class dict : public detail::table_container {
public:
    // Only for a value whose kind is value_kind::dict.
    dict(value_heap &heap, value v) : table_container(heap, v) {}

    // What stands for the key; nothing if it is not there.
    value get(const value_key &key) const {
        const std::uint32_t position = find(key);
        return position == end_position ? value() : value_at(position);
    }
    // The same by a text.
    value get(std::string_view text) const { return get(heap_->text_key(text)); }
    // What stands there.
    value value_at(std::uint32_t position) const { return packed() ? view().at(position) : table().entry(position)[1]; }
    // Replaces what stands there, and changes neither stamp nor order. before: it is given to the caller, loose if it
    // was stored only there.
    result<void> set_at(std::uint32_t position, value v, value *before = nullptr) {
        if (loosen() || heap_->begin_write())
            return error::last();
        value *slot = &table().entry(position)[1];
        if (before)
            *before = *slot;
        if (heap_->put(slot, v, before != nullptr))
            return error::last();
        return {};
    }
    // Stores a value for the key. True: the key was not there. before: as in set_at; nothing if the key was not there.
    result<bool> set(const value_key &key, value v, value *before = nullptr) {
        if (const std::uint32_t position = find(key); position != end_position) {
            if (result<void> done = set_at(position, v, before); !done)
                return done.error();
            return false;
        }
        if (before)
            *before = value();
        value made;
        detail::table_view::new_slot slot{};
        if (loosen() || heap_->begin_write() || heap_->prepare(v) || heap_->prepared() ||
            begin_insert(key, 2, &made, &slot))
            return error::last();
        heap_->count_at(end_insert(made, slot) + 1, v);
        heap_->drain();
        return true;
    }
    // The same by a text.
    result<bool> set(std::string_view text, value v) { return set(heap_->text_key(text), v); }
    // Erases a key with what stands for it. False: it was not there.
    result<bool> erase(const value_key &key) {
        const std::uint32_t position = find(key);
        if (position == end_position)
            return false;
        if (loosen() || heap_->begin_write() || erase_at(position, false))
            return error::last();
        return true;
    }
    // Erases what stands there, and gives it to the caller, loose if it was stored only here.
    result<value> take_at(std::uint32_t position) {
        if (loosen())
            return error::last();
        const value taken = value_at(position);
        if (heap_->begin_write() || erase_at(position, true))
            return error::last();
        return taken;
    }
};

class set : public detail::table_container {
public:
    // Only for a value whose kind is value_kind::set.
    set(value_heap &heap, value v) : table_container(heap, v) {}

    // True: the key was not there.
    result<bool> add(const value_key &key) {
        if (contains(key))
            return false;
        value made;
        detail::table_view::new_slot slot{};
        if (heap_->begin_write() || begin_insert(key, 1, &made, &slot))
            return error::last();
        end_insert(made, slot);
        heap_->drain();
        return true;
    }
    // False: the key was not there.
    result<bool> erase(const value_key &key) {
        const std::uint32_t position = find(key);
        if (position == end_position)
            return false;
        if (heap_->begin_write() || erase_at(position, false))
            return error::last();
        return true;
    }
    // Erases the key there, and gives it to the caller, loose if it was stored only here.
    result<value> take_at(std::uint32_t position) {
        const value taken = key_at(position);
        if (heap_->begin_write() || erase_at(position, true))
            return error::last();
        return taken;
    }
};

} // namespace v0
} // namespace taiyen

#include "value_packing.hpp"
#endif
