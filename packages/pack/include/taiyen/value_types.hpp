// Taiyen in C++: the type descriptor of values (types.h), header-only, C++17 and later; library taiyen_pack.
//
// Purpose: describes the pointers of a heap's values to the pointer audit and to moves: taiyen::add_values(types). A
// heap that stores such type descriptors (ty_types_keep) can be moved by the library and its tools without the program.
#ifndef TAIYEN_VALUE_DESCRIPTORS_HPP
#define TAIYEN_VALUE_DESCRIPTORS_HPP

#include "types.h"
#include <taiyen/detail/value_walk.hpp>
#include <taiyen/heap.h>

namespace taiyen {
inline namespace v0 {

// The type descriptor of any block of values: its hook traces what the block refers to.
const ty_type *value_descriptor();

// Declares the type of the root of a heap's values. Errors: as ty_types_root.
inline ty_status add_values(ty_types *descriptors) {
    return ty_types_root(descriptors, detail::values_root_name, value_descriptor(), nullptr);
}

namespace detail {

// Words that are no addresses, whatever they look like: descriptors for 1 word, and for 512.
inline constexpr ty_field plain_fields[2] = {
    {"word", TY_FIELD_PLAIN, 0, nullptr, {TY_COUNT_FIXED, 1, 0, 0}, {TY_COUNT_FIXED, 1, 0, 0}, 0, 0},
    {"words", TY_FIELD_PLAIN, 0, nullptr, {TY_COUNT_FIXED, 512, 0, 0}, {TY_COUNT_FIXED, 1, 0, 0}, 0, 0}};
inline constexpr ty_type plain_word = {"taiyen::value_word", 8, &plain_fields[0], 1, nullptr, nullptr, nullptr};
inline constexpr ty_type plain_page = {"taiyen::value_page", 4096, &plain_fields[1], 1, nullptr, nullptr, nullptr};

class value_tracer {
public:
    value_tracer(ty_tracer *tracer, void *block)
        : tracer_(tracer), from_(static_cast<char *>(block)), size_(ty_usable_size(block)) {}

    void run() {
        auto *head = reinterpret_cast<value_head *>(from_);
        if (head->flags & flag_dead)
            trace_dead(head);
        if (head->flags & flag_dead && head->kind >= body_items)
            return plain(0, size_);
        const bool emptied = head->flags & flag_dead && head->flags & flag_emptied;
        if (size_ >= sizeof(value_container) && is_container(*head)) {
            auto *container = reinterpret_cast<value_container *>(head);
            return pointer(&container->body, emptied ? nullptr : value_descriptor(), sizeof *container);
        }
        if (head->kind == static_cast<std::uint8_t>(value_kind::tuple))
            return emptied ? plain(8, size_) : slots(sizeof(value_tuple), reinterpret_cast<value_tuple *>(head)->count);
        if (head->kind == body_items)
            return slots(sizeof(value_items), head->refs);
        if (head->kind == body_ring)
            return slots(sizeof(value_ring), head->refs);
        if (head->kind == body_table)
            return slots(sizeof(value_table) + index_bytes(head->flags & 31), std::size_t{head->refs} * head->type);
        if (head->kind == body_suspects)
            return slots(sizeof(value_suspects), head->refs);
        if (head->kind != block_space || size_ < sizeof(value_space))
            return plain(0, fault("bytes_taken_for_addresses") ? 8 : size_);
        auto *space = reinterpret_cast<value_space *>(head);
        for (void *word : {static_cast<void *>(&space->root), static_cast<void *>(&space->dead),
                           static_cast<void *>(&space->suspects), static_cast<void *>(&space->shapes),
                           static_cast<void *>(&space->layouts), static_cast<void *>(&space->kept)})
            slot(static_cast<char *>(word));
        plain(0, offsetof(value_space, root));
        plain(offsetof(value_space, stamp), offsetof(value_space, suspects));
        plain(offsetof(value_space, suspect_count), offsetof(value_space, shapes));
        plain(offsetof(value_space, reserved), size_);
    }

private:
    // VA9: a move changes addresses in values, and nothing else. Marks bytes that are no addresses.
    void plain(std::size_t from, std::size_t to) {
        for (; from < to && from % 4096; from += 8)
            ty_trace_nested(tracer_, from_ + from, &plain_word, 1);
        if (from + 4096 <= to) {
            ty_trace_nested(tracer_, from_ + from, &plain_page, (to - from) / 4096);
            from += (to - from) / 4096 * 4096;
        }
        if (from < to)
            ty_trace_nested(tracer_, from_ + from, &plain_word, (to - from) / 8);
    }
    // A value, or a plain address.
    void slot(char *word) {
        value v;
        std::memcpy(&v, word, sizeof v);
        if (v.is_block())
            ty_trace_pointer(tracer_, word, value_descriptor(), 1, 0);
    }
    void slots(std::size_t from, std::size_t count) {
        if (from >= size_)
            return plain(0, size_);
        const std::size_t room = (size_ - from) / sizeof(value);
        count = count < room ? count : room;
        for (std::size_t i = 0; i < count; ++i)
            slot(from_ + from + i * sizeof(value));
        plain(0, from);
        plain(from + count * sizeof(value), size_);
    }
    void pointer(value_head **word, const ty_type *descriptor, std::size_t size) {
        if (*word)
            ty_trace_pointer(tracer_, word, descriptor, 1, 0);
        plain(0, 8);
        plain(16, size_ > size ? size_ : size);
    }
    void trace_dead(value_head *head) {
        value_head *next = next_dead(head);
        void *now = next ? ty_trace_address(tracer_, next, value_descriptor(), 1) : nullptr;
        if (now != next)
            set_next_dead(head, static_cast<value_head *>(now));
    }
    ty_tracer *tracer_;
    char *from_;
    std::size_t size_;
};

inline void trace_value(ty_tracer *tracer, void *block, void *) {
    value_tracer(tracer, block).run();
}

} // namespace detail

inline const ty_type *value_descriptor() {
    static const ty_type descriptor = {
        "taiyen::value_block", sizeof(detail::value_head), nullptr, 0, detail::trace_value, nullptr, nullptr};
    return &descriptor;
}

// Binds the hook to the type descriptor of values in a set that was read from a text (ty_types_read, ty_types_load), if
// the set has it.
inline ty_status bind_values(ty_types *descriptors) {
    const ty_type *descriptor = value_descriptor(), *known = ty_types_find(descriptors, descriptor->name);
    if (!known || known == descriptor)
        return TY_OK;
    return ty_types_bind(descriptors, descriptor->name, descriptor->trace, nullptr, nullptr);
}

} // namespace v0
} // namespace taiyen

#endif
