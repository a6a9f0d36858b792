// Taiyen in C++: a walk over the values that a block holds, header-only. Part of values.hpp, which includes it.
#ifndef TAIYEN_VALUE_WALK_HPP
#define TAIYEN_VALUE_WALK_HPP

#include "value_layout.hpp"

namespace taiyen {
inline namespace v0 {
namespace detail {

// The index of a table lies in front of its entries; its slots have 1, 2 or 4 bytes.
inline std::size_t index_slots(const value_table *table) {
    return table->head.flags ? std::size_t{1} << table->head.flags : 0;
}
inline unsigned index_width(unsigned slots_log2) {
    return slots_log2 <= 8 ? 1 : slots_log2 <= 16 ? 2 : 4;
}
inline std::size_t index_bytes(unsigned slots_log2) {
    return slots_log2 ? (std::size_t{1} << slots_log2) * index_width(slots_log2) : 0;
}
inline value *entries_of(value_table *table) {
    return reinterpret_cast<value *>(reinterpret_cast<char *>(table + 1) + index_bytes(table->head.flags));
}
inline const value *entries_of(const value_table *table) {
    return entries_of(const_cast<value_table *>(table));
}

// Rows of values: one, or two if a ring wraps.
struct value_rows {
    value *first = nullptr;
    std::size_t first_count = 0;
    value *second = nullptr;
    std::size_t second_count = 0;

    template <class Function> // false ends it
    bool each(Function &&function) const {
        for (std::size_t i = 0; i < first_count; ++i)
            if (!function(first[i]))
                return false;
        for (std::size_t i = 0; i < second_count; ++i)
            if (!function(second[i]))
                return false;
        return true;
    }
};

// The values in a tuple or container; erased ones are nothing.
inline value_rows values_in(value_head *head) {
    if (head->kind == static_cast<std::uint8_t>(value_kind::tuple)) {
        auto *tuple = reinterpret_cast<value_tuple *>(head);
        return {tuple->items(), tuple->count};
    }
    auto *container = reinterpret_cast<value_container *>(head);
    if (!is_container(*head) || !container->body)
        return {};
    switch (container->body->kind) {
    case body_items:
        return {reinterpret_cast<value_items *>(container->body)->slots(), container->count};
    case body_ring: {
        auto *ring = reinterpret_cast<value_ring *>(container->body);
        const std::size_t to_end = ring->head.refs - ring->first;
        if (container->count <= to_end)
            return {ring->slots() + ring->first, container->count};
        return {ring->slots() + ring->first, to_end, ring->slots(), container->count - to_end};
    }
    case body_table: {
        auto *table = reinterpret_cast<value_table *>(container->body);
        return {entries_of(table), std::size_t{table->used} * table->head.type};
    }
    default:
        return {};
    }
}

// The chain of dead blocks.
inline value_head *next_dead(const value_head *head) {
    std::uint64_t word = 0;
    std::memcpy(&word, head, sizeof word);
    return reinterpret_cast<value_head *>(word >> 16);
}
inline void set_next_dead(value_head *head, const value_head *next) {
    head->flags |= flag_dead;
    const std::uint64_t word =
        reinterpret_cast<std::uint64_t>(next) << 16 | std::uint64_t{head->flags} << 8 | head->kind;
    std::memcpy(static_cast<void *>(head), &word, sizeof word);
}

} // namespace detail
} // namespace v0
} // namespace taiyen

#endif
