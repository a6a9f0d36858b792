// Taiyen in C++: decomposes an aggregate into its members. Part of types.hpp, which includes it.
#ifndef TAIYEN_AGGREGATES_HPP
#define TAIYEN_AGGREGATES_HPP

#include <cstddef>
#include <type_traits>
#include <utility>

#if __cplusplus >= 202002L && defined(__cpp_exceptions)

namespace taiyen {
inline namespace v0 {

// The description of a type, if it cannot be deduced: specialise it.
template <class T>
struct describe;

namespace detail {

template <class T>
concept described = requires {
    sizeof(describe<T>);
};
template <class T>
concept described_by_hand = described<T> && requires {
    describe<T>::descriptor();
};

// Storage of a T, only used for the addresses of its members.
template <class T>
union descriptor_sample {
    constexpr descriptor_sample() noexcept : nothing() {}
    ~descriptor_sample() {}
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
// With one of another kind after the first.
template <class T, class Value, std::size_t... first, std::size_t... rest>
constexpr bool takes_one(std::index_sequence<first...>, std::index_sequence<rest...>) {
    return requires {
        T{any_value_at<first>()..., Value(), any_value_at<rest>()...};
    };
}
// With nested values in braces of their own after the first.
template <class T, class Value, std::size_t... first, std::size_t... nested, std::size_t... rest>
constexpr bool takes_nested(std::index_sequence<first...>, std::index_sequence<nested...>,
                            std::index_sequence<rest...>) {
    return requires {
        T{any_value_at<first>()..., {(static_cast<void>(nested), Value())...}, any_value_at<rest>()...};
    };
}

// How deep containers are nested.
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
// The value that is tried in nested braces, for the member at a place. In braces of a container any value would count
// as an element, and clang rejects a container of elements without an allocator with a hard error instead of a
// substitution failure.
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
// The number of values that braces of a T may have; each element of an array counts. Searched from above: with fewer
// values than members, some would be default-constructed, which not all can be (containers whose allocator needs a
// heap).
template <class T, std::size_t n>
constexpr std::size_t value_count_from() {
    if constexpr (n == 0 || takes<T>(std::make_index_sequence<n>()))
        return n;
    else
        return value_count_from<T, n - 1>();
}
inline constexpr std::size_t values_most = 256; // a longer array counts as this many
template <class T>
constexpr std::size_t value_count() { // more values than bytes: bit-fields
    return value_count_from<T, (sizeof(T) < values_most / 8 ? sizeof(T) * 8 : values_most)>();
}
// How many values the member takes that begins with value `at`: an array takes more than one.
template <class T, std::size_t all, std::size_t at, std::size_t size>
constexpr std::size_t array_length() {
    if constexpr (size <= 1) {
        return 1;
    } else {
        // First with as many values after it as if it were one member; then as if it were an array of `size`.
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

struct any_union {
    template <class T>
    requires(std::is_union_v<T> && !described<T>) operator T() const noexcept;
};
template <class Derived>
struct any_base_of {
    template <class T>
    requires(std::is_base_of_v<T, Derived> && !std::is_same_v<T, Derived>) operator T() const noexcept;
};
// A union among the members that is not described. An anonymous one cannot be described.
template <class T, std::size_t all, std::size_t at = 0>
constexpr bool has_union() {
    if constexpr (at >= all)
        return false;
    else
        return takes_one<T, any_union>(std::make_index_sequence<at>(), std::make_index_sequence<all - at - 1>()) ||
               has_union<T, all, at + array_length<T, all, at, all - at>()>();
}
template <class T, std::size_t all>
constexpr bool has_base() {
    if constexpr (all == 0)
        return false;
    else
        return takes_one<T, any_base_of<T>>(std::index_sequence<>(), std::make_index_sequence<all - 1>());
}
// A flexible array member, at the end. GCC reports only one of length 0.
template <class T, std::size_t... n>
constexpr bool takes_empty(std::index_sequence<n...>) {
    return sizeof...(n) < values_most && requires {
        T{any_value_at<n>()..., {}};
    };
}

// Calls visit with all members of an aggregate.
template <class T, class Visit>
void with_members(T &object, const Visit &visit) {
    constexpr std::size_t values = value_count<T>();
    constexpr std::size_t count = member_count<T, values>();
    constexpr bool is_parted = count != 0 && !has_base<T, values>() && !has_union<T, values>() &&
                               !takes_empty<T>(std::make_index_sequence<values>());
    static_assert(count != 0, "its members cannot be known: a reference? Make it a pointer, or describe the type by "
                              "hand: taiyen::describe<T>::descriptor()");
    static_assert(!has_base<T, values>(),
                  "a base: describe the type by taiyen::members, or taiyen::describe<T>::descriptor()");
    static_assert(!has_union<T, values>(),
                  "a union is a member: describe it, or, if it has no name, this type, by hand: "
                  "taiyen::describe<T>::descriptor(), with a trace hook if it holds addresses");
    static_assert(!takes_empty<T>(std::make_index_sequence<values>()),
                  "an array without a length: describe the type by hand: taiyen::describe<T>::descriptor()");
    static_assert(count <= 32, "more than 32 members: describe the type by taiyen::members");
    if constexpr (!is_parted) {
        return;
    } else if constexpr (count == 1) { // an error here: a flexible array member? Describe the type by hand

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

} // namespace detail
} // namespace v0
} // namespace taiyen

#endif // C++20
#endif
