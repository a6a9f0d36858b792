// Taiyen in C++: type descriptors, deduced or declared in one line (types.h), header-only, C++20 and later.
//
// Purpose: `taiyen::descriptor_of<T>()` is the type descriptor of a type, for ty_types_root and ty_types_add.
//
// Vocabulary: as in types.h. An *aggregate* is a struct without constructors, private members and bases.
//
// Guarantees: deduced without any declaration are aggregates of up to 32 members; in them numbers, bit-fields,
// enumerations, pointers to one object (to void and numbers: to bytes), C arrays (of at most 256 elements if the struct
// has another array) and std::array, nested aggregates; taiyen::hash_map, ordered_map, queue, counter and var; and
// types whose libstdc++ layout (GCC 5 to 15) is known here: std::vector except of bool, std::basic_string, std::list,
// std::map, std::set and their multi- kinds, std::unordered_map and std::unordered_set and theirs, with
// taiyen::allocator; std::unique_ptr with an empty deleter. Function pointers count as numbers: the pointer audit
// reports them as code. Any other type is described in one line:
//
//     template <> struct taiyen::describe<account> : taiyen::members<&account::owner, &account::next> {};
//
// A name that is not unique in the program (a type in an anonymous namespace or a function, a lambda, and types made of
// them) gets a number appended, which is derived from all that the type refers to: the same in each run, as long as the
// types stay the same. To name a type yourself:
//
//     template <> inline constexpr const char *taiyen::descriptor_name<account> = "bank::account";
//
// What a member's type cannot express (how many objects a pointer points to, tags, unions, references, flexible arrays)
// is refused by the compiler, or must be declared in a ty_type by hand: a describe with `static const ty_type
// *descriptor()`. After a move, a hook of its type descriptor rehashes or sorts a taiyen::hash_map or ordered_map whose
// keys hold addresses; the program must rebuild a container of libstdc++ whose keys do.
//
// Cost: a type descriptor is built at the first call for its type; later calls read a flag. Thread-safe.
#ifndef TAIYEN_TYPES_HPP
#define TAIYEN_TYPES_HPP

#include "detail/aggregates.hpp"
#include "detail/type_names.hpp"
#include "types.h"
#include <taiyen/taiyen.hpp>
#include <taiyen/var.hpp>

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

// The type descriptor of T. It lives as long as the program.
template <class T>
const ty_type *descriptor_of();

namespace detail {

// Fields as they are collected.
class descriptor_fields {
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
    void put(ty_field_kind kind, std::size_t offset, const ty_type *descriptor, std::size_t count = 1) {
        ty_field field{};
        field.kind = kind;
        field.offset = offset;
        field.descriptor = descriptor;
        field.here = {TY_COUNT_FIXED, count, 0, 0};
        fields.push_back(field);
    }
    ty_field &last() { return fields.back(); }

    std::vector<ty_field> fields;
};

inline std::recursive_mutex &descriptors_lock() {
    static std::recursive_mutex lock;
    return lock;
}

// One for each type. Type descriptors that refer to each other need each other's addresses before they are complete.
template <class T>
struct descriptor_store {
    static inline ty_type descriptor{};
    static inline descriptor_fields collected;
    static inline std::vector<std::string> names;
    static inline descriptor_label label;
    static inline bool begun = false;
    static inline std::atomic<bool> complete{false};
};

// The known layout of a type that is not described by its members. Each has fill(ty_type &, descriptor_fields &).
template <class T>
struct layout_of;
template <class T>
concept laid_out = requires {
    sizeof(layout_of<T>);
};

template <class T>
void fill_descriptor(ty_type &descriptor, descriptor_fields &fields) {
    if constexpr (laid_out<T>) {
        layout_of<T>::fill(descriptor, fields);
    } else if constexpr (described<T>) {
        describe<T>::template fill<T>(fields);
    } else if constexpr (std::is_class_v<T> && !std::is_empty_v<T>) {
        static_assert(std::is_aggregate_v<T>, "describe this type: taiyen::describe");
        static descriptor_sample<T> sample;
        with_members(sample.object, [&](const auto &...members) { (fields.add(&sample.object, members), ...); });
    } else if constexpr (std::is_pointer_v<T>) {
        fields.add_at<T>(0);
    } else {
        static_assert(!std::is_union_v<T>, "a union needs a trace hook: taiyen::describe<T>::descriptor()");
    }
}

// SH12: a map whose keys hold addresses is put in order after a move. Until its fields are known, a type descriptor has
// this field, so a type that refers to itself counts as one that holds an address.
inline constexpr ty_field unknown_field{"", TY_FIELD_POINTER, 0, nullptr, {}, {}, 0, 0};

// Called under the lock.
template <class T>
const ty_type *begin_descriptor() {
    using store = descriptor_store<T>;
    if (store::begun)
        return &store::descriptor;
    store::begun = true;
    store::label.template begin<T>(store::descriptor);
    store::descriptor.size_bytes = sizeof(T);
    store::descriptor.fields = &unknown_field;
    store::descriptor.field_count = 1;
    fill_descriptor<T>(store::descriptor, store::collected);
    for (const ty_field &field : store::collected.fields)
        store::names.push_back("+" + std::to_string(field.offset));
    for (std::size_t n = 0; n < store::names.size(); ++n)
        store::collected.fields[n].name = store::names[n].c_str();
    store::descriptor.fields = store::collected.fields.data();
    store::descriptor.field_count = store::collected.fields.size();
    return &store::descriptor;
}

template <class T>
const ty_type *inner_descriptor() {
    if constexpr (described_by_hand<T>)
        return describe<T>::descriptor();
    else
        return begin_descriptor<T>();
}

// NULL for numbers: a pointer to them is a pointer to bytes.
template <class T>
const ty_type *target_descriptor() {
    if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>)
        return nullptr;
    else
        return inner_descriptor<T>();
}

inline bool holds_addresses(const ty_type *descriptor) {
    bool holds = descriptor && descriptor->trace;
    for (std::size_t n = 0; descriptor && n < descriptor->field_count; ++n) {
        const ty_field &field = descriptor->fields[n];
        holds |= field.kind == TY_FIELD_NESTED ? holds_addresses(field.descriptor) : field.kind != TY_FIELD_PLAIN;
    }
    return holds;
}

template <class T>
void descriptor_fields::add_at(std::size_t offset, std::size_t count) {
    if constexpr (std::is_array_v<T>) {
        add_at<std::remove_extent_t<T>>(offset, count * std::extent_v<T>);
    } else if constexpr (std::is_pointer_v<T>) {
        using target = std::remove_cv_t<std::remove_pointer_t<T>>;
        if constexpr (std::is_function_v<target>)
            return;
        else if constexpr (std::is_void_v<target> || std::is_arithmetic_v<target> || std::is_enum_v<target>)
            put(TY_FIELD_POINTER, offset, nullptr, count);
        else
            put(TY_FIELD_POINTER, offset, inner_descriptor<target>(), count);
    } else if constexpr (std::is_class_v<T> || std::is_union_v<T>) {
        if constexpr (!std::is_empty_v<T>)
            put(TY_FIELD_NESTED, offset, inner_descriptor<std::remove_cv_t<T>>(), count);
    }
}

template <auto member>
struct member_of;
template <class Class, class Type, Type Class::*member>
struct member_of<member> {
    template <class T>
    static void add(const descriptor_sample<T> &sample, descriptor_fields &fields) {
        fields.add(&sample.object, sample.object.*member);
    }
};

} // namespace detail

// For describe: lists the members of a type that hold addresses.
template <auto... listed>
struct members {
    // Adds these members.
    template <class T>
    static void fill(detail::descriptor_fields &fields) {
        static detail::descriptor_sample<T> sample;
        (detail::member_of<listed>::add(sample, fields), ...);
    }
};

template <class T>
const ty_type *descriptor_of() {
    using store = detail::descriptor_store<T>;
    if (!store::complete.load(std::memory_order_acquire)) {
        std::lock_guard<std::recursive_mutex> guard(detail::descriptors_lock());
        detail::naming all;
        const ty_type *descriptor = detail::inner_descriptor<T>();
        if constexpr (detail::described_by_hand<T>)
            return descriptor;
        if (all.end())
            store::complete.store(true, std::memory_order_release);
    }
    return &store::descriptor;
}

} // namespace v0
} // namespace taiyen

#include "detail/container_types.hpp"

#endif // C++20
#endif
