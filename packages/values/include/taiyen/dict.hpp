// Taiyen in C++: a dict and a set in a heap of values, header-only, C++17 and later.
//
//     taiyen::value_heap values = taiyen::value_heap::open(heap).value(); taiyen::dict cities(values,
//     values.make_container(taiyen::value_kind::dict).value()); cities.set(values.text_key("Lisbon"),
//     taiyen::value::integer(545796)).value();
//
// Purpose: values by keys, in insertion order of the keys.
//
// Vocabulary: as in value_heap.hpp. A dict or set here is a non-owning handle of one in the heap, valid as long as the
// container is stored, or loose. A *position* is the index of an entry.
//
// Guarantees: as in value_heap.hpp. Setting an existing key replaces its value; the key stays as it was first written.
// Errors: TY_E_ARGUMENT (no transaction), TY_E_PERMISSION (read-only), TY_E_MEMORY; with undo TY_E_SPACE.
//
// Cost: an entry takes 16 bytes (in a set 8) and 1.5 to 3 slots of 1, 2 or 4 bytes, more in a table that has just
// grown.
#ifndef TAIYEN_DICT_HPP
#define TAIYEN_DICT_HPP

#include "detail/value_table.hpp"

namespace taiyen {
inline namespace v0 {

class dict : public detail::table_container {
public:
    // Only for a value whose kind is value_kind::dict.
    dict(value_heap &heap, value v) : table_container(heap, v) {}

    // The value of the key; nothing if the key is not there.
    value get(const value_key &key) const {
        const std::uint32_t position = find(key);
        return position == end_position ? value() : value_at(position);
    }
    // The same for a text key.
    value get(std::string_view text) const { return get(heap_->text_key(text)); }
    // The value at that position.
    value value_at(std::uint32_t position) const { return packed() ? view().at(position) : table().entry(position)[1]; }
    // Replaces the value there, and changes neither stamp nor order. before: receives the old value, loose if it was
    // stored only there.
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
    // Sets the key's value. True: the key was not there. before: as in set_at; nothing if the key was not there.
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
    // The same for a text key.
    result<bool> set(std::string_view text, value v) { return set(heap_->text_key(text), v); }
    // Erases a key with its value. False: the key was not there.
    result<bool> erase(const value_key &key) {
        const std::uint32_t position = find(key);
        if (position == end_position)
            return false;
        if (loosen() || heap_->begin_write() || erase_at(position, false))
            return error::last();
        return true;
    }
    // Erases the entry there, and returns its value, loose if it was stored only here.
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

    // Adds a key. True: the key was not there.
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
    // Erases a key. False: the key was not there.
    result<bool> erase(const value_key &key) {
        const std::uint32_t position = find(key);
        if (position == end_position)
            return false;
        if (heap_->begin_write() || erase_at(position, false))
            return error::last();
        return true;
    }
    // Erases the key there, and returns it, loose if it was stored only here.
    result<value> take_at(std::uint32_t position) {
        const value taken = key_at(position);
        if (heap_->begin_write() || erase_at(position, true))
            return error::last();
        return taken;
    }
};

} // namespace v0
} // namespace taiyen

#include "detail/value_packing.hpp"
#endif
