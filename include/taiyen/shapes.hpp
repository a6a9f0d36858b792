// Taiyen in C++: shapes of types, deduced or said in one line (shapes.h), header-only, C++20 and later.
//
// Purpose: `taiyen::shape_of<T>()` is the shape of a type, for ty_shapes_root and ty_shapes_add.
//
// Vocabulary: as in shapes.h. An *aggregate* is a struct without constructors, private members and bases.
//
// Guarantees: deduced without any line: aggregates of up to 32 members; in them numbers, bit-fields, enumerations,
// addresses of one object (of void and numbers: of bytes), C arrays (of 256 elements at most where there is another
// one) and std::array, nested aggregates; taiyen::hash_map, ordered_map, queue, counter and var; and what is known here
// by its layout in libstdc++ (GCC 5 to 15): std::vector but of bool, std::basic_string, std::list, std::map, std::set
// and their multi- kinds, std::unordered_map and std::unordered_set and theirs, with taiyen::allocator; std::unique_ptr
// with an empty deleter. Addresses of functions count as numbers: the census tells of them as code. A type that holds
// others is named in one line:
//
//     template <> struct taiyen::describe<account> : taiyen::members<&account::owner, &account::next> {};
//
// A name that the program does not have alone (a type in an anonymous namespace or a function, a lambda, and what is
// made of them) gets a number behind it, which comes of all that the type leads to: the same in each run, as long as
// the types stay the same. To name a type yourself:
//
//     template <> inline constexpr const char *taiyen::shape_name<account> = "bank::account";
//
// What a member's type cannot say (how many an address leads to, tags, unions, references, arrays without a length) is
// refused by the compiler, or is to be said in a ty_shape by hand: a describe with `static const ty_shape *shape()`.
// After a move, a taiyen::hash_map or ordered_map whose keys hold addresses is put in order by a hook of its shape; a
// container of libstdc++ whose keys do is to be made anew by the program.
//
// Cost: shapes are made at the first call, once for a type; a call is a look at a flag then. Thread-safe.
#ifndef TAIYEN_SHAPES_HPP
#define TAIYEN_SHAPES_HPP

#include "aggregates.hpp"
#include "shape_names.hpp"
#include "shapes.h"
#include "taiyen.hpp"
#include "var.hpp"

#if __cplusplus >= 202002L && defined(__cpp_exceptions)

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace taiyen {
inline namespace v0 {

// The shape of T. It lives as long as the program.
template <class T>
const ty_shape *shape_of();

namespace detail {

// Fields as they are collected.
class shape_fields {
public:
    template <class T>
    void add(const void *object, const T &member) {
        if constexpr (!std::is_arithmetic_v<T> && !std::is_enum_v<T>) // a bit-field is here as a copy of it
            add_at<T>(offset_of(object, member));
    }
    template <class T>
    static std::size_t offset_of(const void *object, const T &member) {
        return static_cast<std::size_t>(reinterpret_cast<const volatile char *>(std::addressof(member)) -
                                        static_cast<const volatile char *>(object));
    }
    // A T, or an array of them.
    template <class T>
    void add_at(std::size_t offset, std::size_t count = 1);
    void put(ty_field_kind kind, std::size_t offset, const ty_shape *shape, std::size_t count = 1) {
        ty_field field{};
        field.kind = kind;
        field.offset = offset;
        field.shape = shape;
        field.here = {TY_COUNT_FIXED, count, 0, 0};
        fields.push_back(field);
    }
    ty_field &last() { return fields.back(); }

    std::vector<ty_field> fields;
};

inline std::recursive_mutex &shapes_lock() {
    static std::recursive_mutex lock;
    return lock;
}

// One for each type. Shapes that lead to one another need each other's addresses before they are complete.
template <class T>
struct shape_store {
    static inline ty_shape shape{};
    static inline shape_fields collected;
    static inline std::vector<std::string> names;
    static inline shape_label label;
    static inline bool begun = false;
    static inline std::atomic<bool> complete{false};
};

// What a type is known by, if not by its members. Each has fill(ty_shape &, shape_fields &).
template <class T>
struct layout_of;
template <class T>
concept laid_out = requires {
    sizeof(layout_of<T>);
};

template <class T>
void fill_shape(ty_shape &shape, shape_fields &fields) {
    if constexpr (laid_out<T>) {
        layout_of<T>::fill(shape, fields);
    } else if constexpr (described<T>) {
        describe<T>::template fill<T>(fields);
    } else if constexpr (std::is_class_v<T> && !std::is_empty_v<T>) {
        static_assert(std::is_aggregate_v<T>, "describe this type: taiyen::describe");
        static shape_sample<T> sample;
        with_members(sample.object, [&](const auto &...members) { (fields.add(&sample.object, members), ...); });
    } else if constexpr (std::is_pointer_v<T>) {
        fields.add_at<T>(0);
    } else {
        static_assert(!std::is_union_v<T>, "a union needs a trace hook: taiyen::describe<T>::shape()");
    }
}

// SH12. Until its fields are known, a shape has this one: what is asked for meanwhile leads to itself, so it has an
// address.
inline constexpr ty_field unknown_field{"", TY_FIELD_POINTER, 0, nullptr, {}, {}, 0, 0};

// Under the lock.
template <class T>
const ty_shape *begin_shape() {
    using store = shape_store<T>;
    if (store::begun)
        return &store::shape;
    store::begun = true;
    store::label.template begin<T>(store::shape);
    store::shape.size_bytes = sizeof(T);
    store::shape.fields = &unknown_field;
    store::shape.field_count = 1;
    fill_shape<T>(store::shape, store::collected);
    for (const ty_field &field : store::collected.fields)
        store::names.push_back("+" + std::to_string(field.offset));
    for (std::size_t n = 0; n < store::names.size(); ++n)
        store::collected.fields[n].name = store::names[n].c_str();
    store::shape.fields = store::collected.fields.data();
    store::shape.field_count = store::collected.fields.size();
    return &store::shape;
}

template <class T>
const ty_shape *inner_shape() {
    if constexpr (described_by_hand<T>)
        return describe<T>::shape();
    else
        return begin_shape<T>();
}

// NULL of numbers: what leads to them leads to bytes.
template <class T>
const ty_shape *target_shape() {
    if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>)
        return nullptr;
    else
        return inner_shape<T>();
}

inline bool holds_addresses(const ty_shape *shape) {
    bool holds = shape && shape->trace;
    for (std::size_t n = 0; shape && n < shape->field_count; ++n) {
        const ty_field &field = shape->fields[n];
        holds |= field.kind == TY_FIELD_NESTED ? holds_addresses(field.shape) : field.kind != TY_FIELD_PLAIN;
    }
    return holds;
}

template <class T>
void shape_fields::add_at(std::size_t offset, std::size_t count) {
    if constexpr (std::is_array_v<T>) {
        add_at<std::remove_extent_t<T>>(offset, count * std::extent_v<T>);
    } else if constexpr (std::is_pointer_v<T>) {
        using target = std::remove_cv_t<std::remove_pointer_t<T>>;
        if constexpr (std::is_function_v<target>)
            return;
        else if constexpr (std::is_void_v<target> || std::is_arithmetic_v<target> || std::is_enum_v<target>)
            put(TY_FIELD_POINTER, offset, nullptr, count);
        else
            put(TY_FIELD_POINTER, offset, inner_shape<target>(), count);
    } else if constexpr (std::is_class_v<T> || std::is_union_v<T>) {
        if constexpr (!std::is_empty_v<T>)
            put(TY_FIELD_NESTED, offset, inner_shape<std::remove_cv_t<T>>(), count);
    }
}

template <auto member>
struct member_of;
template <class Class, class Type, Type Class::*member>
struct member_of<member> {
    template <class T>
    static void add(const shape_sample<T> &sample, shape_fields &fields) {
        fields.add(&sample.object, sample.object.*member);
    }
};

} // namespace detail

// For describe: the members of a type that hold addresses.
template <auto... listed>
struct members {
    // Adds them.
    template <class T>
    static void fill(detail::shape_fields &fields) {
        static detail::shape_sample<T> sample;
        (detail::member_of<listed>::add(sample, fields), ...);
    }
};

template <class T>
const ty_shape *shape_of() {
    using store = detail::shape_store<T>;
    if (!store::complete.load(std::memory_order_acquire)) {
        std::lock_guard<std::recursive_mutex> guard(detail::shapes_lock());
        detail::naming all;
        const ty_shape *shape = detail::inner_shape<T>();
        if constexpr (detail::described_by_hand<T>)
            return shape;
        if (all.end())
            store::complete.store(true, std::memory_order_release);
    }
    return &store::shape;
}

} // namespace v0
} // namespace taiyen

#include "container_shapes.hpp"

#endif // C++20
#endif
