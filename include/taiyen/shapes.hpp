// Taiyen in C++: shapes of types, deduced or said in one line (shapes.h), header-only, C++20 and later.
//
// Purpose: `taiyen::shape_of<T>()` is the shape of a type, for ty_shapes_root and ty_shapes_add.
//
// Vocabulary: as in shapes.h. An *aggregate* is a struct without constructors, private members and bases.
//
// Guarantees: deduced without any line: aggregates of up to 32 members; in them numbers, enumerations, addresses of one
// object (of void and numbers: of bytes), C arrays and std::array, nested aggregates; taiyen::hash_map, ordered_map,
// queue, counter and var; and what is known here by its layout in libstdc++ (GCC 5 to 15): std::vector but of bool,
// std::basic_string, std::list, std::map, std::set and their multi- kinds, std::unordered_map and std::unordered_set
// and theirs, with taiyen::allocator; std::unique_ptr with an empty deleter. Addresses of functions count as numbers:
// the census tells of them as code. A type that holds others is named in one line:
//
//     template <> struct taiyen::describe<account> : taiyen::members<&account::owner, &account::next> {};
//
// What a member's type cannot say (how many an address leads to, tags, unions) is for a ty_shape by hand: a describe
// with `static const ty_shape *shape()`. After a move, a taiyen::hash_map or ordered_map whose keys hold addresses is
// put in order by a hook of its shape; a container of libstdc++ whose keys do is to be made anew by the program.
//
// Cost: shapes are made at the first call, once for a type; a call is a look at a flag then. Thread-safe.
#ifndef TAIYEN_SHAPES_HPP
#define TAIYEN_SHAPES_HPP

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

// What a type is described by, where nothing can be deduced: specialise it.
template <class T>
struct describe;

namespace detail {

template <class T>
concept described = requires {
    sizeof(describe<T>);
};
template <class T>
concept described_by_hand = described<T> && requires {
    describe<T>::shape();
};

// Room for a T of which only addresses of members are taken.
template <class T>
union shape_sample {
    constexpr shape_sample() noexcept : nothing() {}
    ~shape_sample() {}
    char nothing;
    T object;
};

struct any_value {
    template <class T>
    operator T() const noexcept;
};
template <std::size_t>
using any_value_at = any_value;

template <class T, std::size_t... n>
constexpr bool takes(std::index_sequence<n...>) {
    return requires {
        T{any_value_at<n>()...};
    };
}
// With one of another kind behind the first.
template <class T, class Value, std::size_t... first, std::size_t... rest>
constexpr bool takes_one(std::index_sequence<first...>, std::index_sequence<rest...>) {
    return requires {
        T{any_value_at<first>()..., Value(), any_value_at<rest>()...};
    };
}
// With nested values in braces of their own behind the first.
template <class T, class Value, std::size_t... first, std::size_t... nested, std::size_t... rest>
constexpr bool takes_nested(std::index_sequence<first...>, std::index_sequence<nested...>,
                            std::index_sequence<rest...>) {
    return requires {
        T{any_value_at<first>()..., {(static_cast<void>(nested), Value())...}, any_value_at<rest>()...};
    };
}

// How deep containers stand in one another.
template <class T>
inline constexpr std::size_t depth_of = 0;
template <class T>
requires requires {
    typename T::allocator_type;
    typename T::value_type;
}
inline constexpr std::size_t depth_of<T> = 1 + depth_of<typename T::value_type>;
template <std::size_t depth>
struct any_container {
    template <class T>
    requires(depth_of<T> == depth) operator T() const noexcept;
};
struct any_aggregate {
    template <class T>
    requires(std::is_class_v<T> &&std::is_aggregate_v<T>) operator T() const noexcept;
};
// What is tried in nested braces, for the member at a place. In those of a container any value would be taken for an
// element, and to make a container of elements without an allocator is an error, to clang, which does not only mean
// that it cannot be made so.
template <class T, std::size_t all, std::size_t at, std::size_t depth = 8>
constexpr auto value_in_braces() {
    using first = std::make_index_sequence<at>;
    using rest = std::make_index_sequence<all - at - 1>;
    if constexpr (depth == 0 || takes_one<T, any_aggregate>(first(), rest()))
        return any_value();
    else if constexpr (takes_one<T, any_container<depth>>(first(), rest()))
        return any_container<depth>();
    else
        return value_in_braces<T, all, at, depth - 1>();
}
// Values that braces of a T may have; those of an array count each. From above: with fewer values than there are,
// members would have to be made without one, which not all can be (containers whose allocator needs a heap).
template <class T, std::size_t n>
constexpr std::size_t value_count_from() {
    if constexpr (n == 0 || takes<T>(std::make_index_sequence<n>()))
        return n;
    else
        return value_count_from<T, n - 1>();
}
inline constexpr std::size_t values_most = 256; // a longer array counts as so many
template <class T>
constexpr std::size_t value_count() { // more values than bytes: members of some bits
    return value_count_from<T, (sizeof(T) < values_most / 8 ? sizeof(T) * 8 : values_most)>();
}
// How many values the member takes that begins with value at: more than one is an array.
template <class T, std::size_t all, std::size_t at, std::size_t size>
constexpr std::size_t array_length() {
    if constexpr (size <= 1) {
        return 1;
    } else {
        // With as many values behind as if it were one member; then with as many as if it were an array of so many.
        using value = decltype(value_in_braces<T, all, at>());
        constexpr bool is_one =
            takes_nested<T, value>(std::make_index_sequence<at>(), std::make_index_sequence<size>(),
                                   std::make_index_sequence<all - at - (all < values_most ? 1 : size - 1)>());
        if constexpr (is_one)
            return array_length<T, all, at, size - 1>();
        else if constexpr (takes_nested<T, value>(std::make_index_sequence<at>(), std::make_index_sequence<size>(),
                                                  std::make_index_sequence<all - at - size>()))
            return size;
        else
            return array_length<T, all, at, size - 1>();
    }
}
template <class T, std::size_t all, std::size_t at = 0>
constexpr std::size_t member_count() {
    if constexpr (at >= all)
        return 0;
    else
        return 1 + member_count<T, all, at + array_length<T, all, at, all - at>()>();
}

// Calls visit with all members of an aggregate.
template <class T, class Visit>
void with_members(T &object, const Visit &visit) {
    constexpr std::size_t count = member_count<T, value_count<T>()>();
    static_assert(count <= 32, "more than 32 members: describe the type by taiyen::members");
    if constexpr (count == 0) {
        return;
    }
    if constexpr (count == 1) {
        auto &[m0] = object;
        visit(m0);
    } else if constexpr (count == 2) {
        auto &[m0, m1] = object;
        visit(m0, m1);
    } else if constexpr (count == 3) {
        auto &[m0, m1, m2] = object;
        visit(m0, m1, m2);
    } else if constexpr (count == 4) {
        auto &[m0, m1, m2, m3] = object;
        visit(m0, m1, m2, m3);
    } else if constexpr (count == 5) {
        auto &[m0, m1, m2, m3, m4] = object;
        visit(m0, m1, m2, m3, m4);
    } else if constexpr (count == 6) {
        auto &[m0, m1, m2, m3, m4, m5] = object;
        visit(m0, m1, m2, m3, m4, m5);
    } else if constexpr (count == 7) {
        auto &[m0, m1, m2, m3, m4, m5, m6] = object;
        visit(m0, m1, m2, m3, m4, m5, m6);
    } else if constexpr (count == 8) {
        auto &[m0, m1, m2, m3, m4, m5, m6, m7] = object;
        visit(m0, m1, m2, m3, m4, m5, m6, m7);
    } else if constexpr (count == 9) {
        auto &[m0, m1, m2, m3, m4, m5, m6, m7, m8] = object;
        visit(m0, m1, m2, m3, m4, m5, m6, m7, m8);
    } else if constexpr (count == 10) {
        auto &[m0, m1, m2, m3, m4, m5, m6, m7, m8, m9] = object;
        visit(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9);
    } else if constexpr (count == 11) {
        auto &[m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10] = object;
        visit(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10);
    } else if constexpr (count == 12) {
        auto &[m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11] = object;
        visit(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11);
    } else if constexpr (count == 13) {
        auto &[m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12] = object;
        visit(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12);
    } else if constexpr (count == 14) {
        auto &[m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13] = object;
        visit(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13);
    } else if constexpr (count == 15) {
        auto &[m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14] = object;
        visit(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14);
    } else if constexpr (count == 16) {
        auto &[m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15] = object;
        visit(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15);
    } else if constexpr (count == 17) {
        auto &[m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16] = object;
        visit(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16);
    } else if constexpr (count == 18) {
        auto &[m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17] = object;
        visit(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17);
    } else if constexpr (count == 19) {
        auto &[m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18] = object;
        visit(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18);
    } else if constexpr (count == 20) {
        auto &[m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19] = object;
        visit(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19);
    } else if constexpr (count == 21) {
        auto &[m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20] = object;
        visit(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20);
    } else if constexpr (count == 22) {
        auto &[m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21] =
            object;
        visit(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21);
    } else if constexpr (count == 23) {
        auto &[m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21,
               m22] = object;
        visit(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22);
    } else if constexpr (count == 24) {
        auto &[m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22,
               m23] = object;
        visit(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22,
              m23);
    } else if constexpr (count == 25) {
        auto &[m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22,
               m23, m24] = object;
        visit(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22,
              m23, m24);
    } else if constexpr (count == 26) {
        auto &[m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22,
               m23, m24, m25] = object;
        visit(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22,
              m23, m24, m25);
    } else if constexpr (count == 27) {
        auto &[m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22,
               m23, m24, m25, m26] = object;
        visit(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22,
              m23, m24, m25, m26);
    } else if constexpr (count == 28) {
        auto &[m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22,
               m23, m24, m25, m26, m27] = object;
        visit(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22,
              m23, m24, m25, m26, m27);
    } else if constexpr (count == 29) {
        auto &[m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22,
               m23, m24, m25, m26, m27, m28] = object;
        visit(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22,
              m23, m24, m25, m26, m27, m28);
    } else if constexpr (count == 30) {
        auto &[m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22,
               m23, m24, m25, m26, m27, m28, m29] = object;
        visit(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22,
              m23, m24, m25, m26, m27, m28, m29);
    } else if constexpr (count == 31) {
        auto &[m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22,
               m23, m24, m25, m26, m27, m28, m29, m30] = object;
        visit(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22,
              m23, m24, m25, m26, m27, m28, m29, m30);
    } else if constexpr (count == 32) {
        auto &[m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22,
               m23, m24, m25, m26, m27, m28, m29, m30, m31] = object;
        visit(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22,
              m23, m24, m25, m26, m27, m28, m29, m30, m31);
    }
}

// Fields as they are collected.
class shape_fields {
public:
    template <class T>
    void add(const void *object, const T &member) {
        add_at<T>(offset_of(object, member));
    }
    template <class T>
    static std::size_t offset_of(const void *object, const T &member) {
        return static_cast<std::size_t>(reinterpret_cast<const char *>(std::addressof(member)) -
                                        static_cast<const char *>(object));
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
    static inline std::string name;
    static inline bool begun = false;
    static inline std::atomic<bool> complete{false};
};

template <class T>
constexpr std::string_view type_name() {
    std::string_view text = __PRETTY_FUNCTION__; // ... [with T = NAME; ...], or [T = NAME]
    std::size_t begin = text.find("T = ") + 4;
    std::size_t end = text.find_first_of(";", begin);
    return text.substr(begin, (end == std::string_view::npos ? text.size() - 1 : end) - begin);
}

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
        with_members(sample.object, [&](auto &...members) { (fields.add(&sample.object, members), ...); });
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
    store::name = std::string(type_name<T>());
    store::shape.name = store::name.c_str();
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
        const ty_shape *shape = detail::inner_shape<T>();
        if constexpr (detail::described_by_hand<T>)
            return shape;
        store::complete.store(true, std::memory_order_release);
    }
    return &store::shape;
}

} // namespace v0
} // namespace taiyen

#include "container_shapes.hpp"

#endif // C++20
#endif
