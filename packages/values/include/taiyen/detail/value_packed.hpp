// Taiyen in C++: reading packed values, small trees of values in one block, header-only. Part of value_heap.hpp, which
// includes it.
//
// A *packed* dict or list is one block with all that is below it: a head, and consecutive items, one for each value. It
// never changes; a change first unpacks it to ordinary containers (value_packing.hpp). A packed dict stores, instead of
// keys, the number of a *shape*: the tuple of keys that all dicts with the same keys in the same order share. The first
// byte of an item is its code:
//
//     64 none, 65 false, 66 true        67 .. 70    an integer of 1, 2, 4 or 7 bytes
//     71  a number of 8 bytes           72 .. 80    a number: 4 bytes, divided by 10 to the 0th .. 8th
//     81, 82  length, text or bytes     83          bytes of the items, count, a list's items
//     84  bytes, shape (2), a dict's    85          as 83, a tuple's: without containers
//     96 .. 111  bytes, 0 .. 15 items of a list
//     128 .. 191  a text of 0 .. 63     192 .. 255  the integers 0 .. 63
//
// A value that does not fit in a word is returned as the address of its item.
#ifndef TAIYEN_VALUE_PACKED_HPP
#define TAIYEN_VALUE_PACKED_HPP

#include "value_hash.hpp"
#include "value_walk.hpp"
#include <taiyen/heap.h>

namespace taiyen {
inline namespace v0 {
namespace detail {

inline constexpr std::uint32_t packed_values_max = 64; // of one container
inline constexpr double powers_of_ten[] = {1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8};

// Decodes a signed number from some bytes.
inline std::int64_t packed_integer(const std::uint8_t *at, unsigned bytes) {
    std::uint64_t number = 0;
    std::memcpy(&number, at, bytes);
    const unsigned rest = 64 - bytes * 8;
    return static_cast<std::int64_t>(number << rest) >> rest;
}
inline unsigned packed_integer_bytes(std::uint8_t code) {
    return code == item_integer + 3 ? 7 : 1u << (code - item_integer);
}

// The next item.
inline const std::uint8_t *next_item(const std::uint8_t *at) {
    const std::uint8_t code = *at;
    if (code >= item_small_integer || code <= item_true)
        return at + 1;
    if (code >= item_short_text)
        return at + 1 + (code - item_short_text);
    if (code >= item_short_list)
        return at + 2 + at[1];
    if (code >= item_text)
        return at + (code <= item_bytes ? 2 : code == item_dict ? 4 : 3) + at[1];
    if (code >= item_decimal)
        return at + 5;
    return at + 1 + (code == item_real ? 8 : packed_integer_bytes(code));
}

// The value of an item; for a short text or short bytes the word.
inline value value_of_item(const std::uint8_t *at) {
    const std::uint8_t code = *at;
    if (code >= item_small_integer)
        return value::integer(code - item_small_integer);
    if (code >= item_text) {
        const value there = value::block(at);
        const value_kind kind = kind_of(there);
        if (kind != value_kind::text && kind != value_kind::bytes)
            return there;
        const std::string_view data = data_of(there);
        if (data.size() > value::short_bytes_max)
            return there;
        return kind == value_kind::text ? value::short_text(data) : value::short_bytes(data);
    }
    if (code >= item_decimal)
        return value::real(static_cast<double>(packed_integer(at + 1, 4)) / powers_of_ten[code - item_decimal]);
    if (code == item_real) {
        double number = 0;
        std::memcpy(&number, at + 1, sizeof number);
        return value::real(number);
    }
    if (code >= item_integer)
        return value::integer(packed_integer(at + 1, packed_integer_bytes(code)));
    return code == item_none ? value::none() : value::boolean(code == item_true);
}

inline constexpr value_tuple no_keys{{static_cast<std::uint8_t>(value_kind::tuple), 0, 1, 0}, 0, 0};

// A packed dict or list, or one within it.
struct packed_view {
    const std::uint8_t *items = nullptr;
    std::uint32_t count = 0;
    const value_tuple *shape = nullptr; // of a dict

    packed_view(const value_space *space, const value_head *head) {
        const auto *at = reinterpret_cast<const std::uint8_t *>(head);
        std::uint16_t number = 0;
        switch (*at) {
        case block_packed_dict:
            number = head->type;
            items = at + sizeof *head;
            break;
        case block_packed_list:
            items = at + sizeof *head;
            count = head->type;
            return;
        case item_dict:
            std::memcpy(&number, at + 2, sizeof number);
            items = at + 4;
            break;
        case item_list:
            items = at + 3;
            count = at[2];
            return;
        default:
            items = at + 2;
            count = *at - item_short_list;
            return;
        }
        const auto *shapes = block_as<const value_container>(space->shapes);
        const auto *table = shapes ? reinterpret_cast<const value_table *>(shapes->body) : nullptr;
        if (!table || number >= table->used) { // damaged: as if it had no keys
            shape = &no_keys;
            return;
        }
        shape = block_as<const value_tuple>(entries_of(table)[number]);
        count = shape->count;
    }
    const std::uint8_t *item(std::uint32_t number) const {
        const std::uint8_t *at = items;
        while (number-- > 0)
            at = next_item(at);
        return at;
    }
    value at(std::uint32_t number) const { return value_of_item(item(number)); }
    // The index of the key's item; the number of items if the key is not there.
    std::uint32_t find(const value_key &key) const {
        for (std::uint32_t i = 0; i < count; ++i)
            if (matches(shape->items()[i], key))
                return i;
        return count;
    }
};

} // namespace detail

// Of a container or array: a number that none has that is created later in the run; for a packed one, a number derived
// from its content. Together with the address, it identifies a container, also after a rollback or a return to a mark.
inline std::uint32_t container_id(value v) {
    const detail::value_head *head = detail::head_of(v);
    if (head->kind == static_cast<std::uint8_t>(value_kind::array))
        return reinterpret_cast<const detail::value_array *>(head)->id;
    if (!is_packed(v))
        return reinterpret_cast<const detail::value_container *>(head)->id;
    const auto *from = reinterpret_cast<const std::uint8_t *>(head);
    const bool whole = *from < detail::item_none;
    const std::size_t bytes =
        whole ? ty_usable_size(head) - sizeof *head : static_cast<std::size_t>(detail::next_item(from) - from);
    const std::uint64_t seed[2] = {*from, whole ? head->type : 0u};
    return detail::value_hasher(seed).bytes({reinterpret_cast<const char *>(from) + (whole ? sizeof *head : 0), bytes},
                                            1);
}

} // namespace v0
} // namespace taiyen

#endif
