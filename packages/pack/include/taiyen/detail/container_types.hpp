// Taiyen in C++: type descriptors of containers, the library's own and those of libstdc++. Part of types.hpp, which
// includes it.
#ifndef TAIYEN_CONTAINER_DESCRIPTORS_HPP
#define TAIYEN_CONTAINER_DESCRIPTORS_HPP

#include <taiyen/containers.hpp>
#include <taiyen/types.hpp>

#if __cplusplus >= 202002L && defined(__cpp_exceptions)

#include <list>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>

namespace taiyen {
inline namespace v0 {
namespace detail {

// An allocator stores the base of its heap.
template <class T>
struct layout_of<allocator<T>> {
    static_assert(sizeof(allocator<T>) == sizeof(void *));
    static void fill(ty_type &, descriptor_fields &fields) { fields.put(TY_FIELD_HEAP, 0, nullptr); }
};

// Only the value.
template <class T>
struct layout_of<var<T>> {
    static_assert(sizeof(var<T>) == sizeof(T));
    static void fill(ty_type &, descriptor_fields &fields) { fields.add_at<T>(0); }
};

template <class T, std::size_t n>
struct layout_of<std::array<T, n>> {
    static void fill(ty_type &, descriptor_fields &fields) { fields.add_at<T>(0, n); }
};

template <class A, class B>
struct layout_of<std::pair<A, B>> {
    static void fill(ty_type &, descriptor_fields &fields) {
        static descriptor_sample<std::pair<A, B>> sample;
        fields.add(&sample.object, sample.object.first);
        fields.add(&sample.object, sample.object.second);
    }
};

template <class T, class Deleter>
requires(std::is_empty_v<Deleter> && !std::is_array_v<T>) struct layout_of<std::unique_ptr<T, Deleter>> {
    static_assert(sizeof(std::unique_ptr<T, Deleter>) == sizeof(void *));
    static void fill(ty_type &, descriptor_fields &fields) { fields.add_at<T *>(0); }
};

// Numbers, each on a cache line of its own: the padding may hold remains.
template <>
struct layout_of<counter> {
    static void fill(ty_type &, descriptor_fields &fields) {
        fields.put(TY_FIELD_PLAIN, 0, nullptr, sizeof(counter) / sizeof(std::uint64_t));
    }
};

// The first item, which points to the next, and on another cache line the last.
template <class T>
struct layout_of<queue_item<T>> {
    static void fill(ty_type &, descriptor_fields &fields) {
        using item = queue_item<T>;
        members<&item::value, &item::next>::template fill<item>(fields);
    }
};
template <class T>
struct layout_of<queue<T>> {
    static void fill(ty_type &, descriptor_fields &fields) {
        static descriptor_sample<queue<T>> sample;
        fields.add(&sample.object, sample.object.front_.first);
        fields.put(TY_FIELD_REFERENCE, fields.offset_of(&sample.object, sample.object.back_.last), nullptr);
        for (std::size_t place : {8, 72}) // counts, and padding that may hold remains
            fields.put(TY_FIELD_PLAIN, place, nullptr, 7);
    }
    static_assert(sizeof(queue<T>) == 128);
};

// Hashes are numbers, also if a hash function computes them from addresses.
template <class Key, class Value>
struct layout_of<hash_entry<Key, Value>> {
    static void fill(ty_type &, descriptor_fields &fields) {
        using entry = hash_entry<Key, Value>;
        members<&entry::next, &entry::key, &entry::value>::template fill<entry>(fields);
        fields.put(TY_FIELD_PLAIN, sizeof(entry *), nullptr); // the hash
    }
};
template <class Key, class Value, class Hash, class Equal>
struct layout_of<hash_map<Key, Value, Hash, Equal>> {
    using map = hash_map<Key, Value, Hash, Equal>;
    static void fill(ty_type &descriptor, descriptor_fields &fields) {
        static descriptor_sample<map> sample;
        fields.add(&sample.object, sample.object.top_);
        fields.add(&sample.object, sample.object.count_);
        if (holds_addresses(target_descriptor<Key>()))
            descriptor.moved = [](void *object, void *) { static_cast<map *>(object)->hash_anew(); };
    }
};

// An entry, as the list of a level points to it: it does not store its number of levels. Zeros follow its links, as
// transactions allocate zeroed blocks.
template <class Key, class Value, std::size_t level>
struct entry_of_level {};
template <class Key, class Value, std::size_t level>
struct layout_of<entry_of_level<Key, Value, level>> {
    static void fill(ty_type &descriptor, descriptor_fields &fields) {
        using entry = ordered_entry<Key, Value>;
        constexpr std::size_t link = sizeof(entry) + level * sizeof(entry *);
        descriptor.size_bytes = link + sizeof(entry *);
        if constexpr (level == 0) // which contains all entries
            members<&entry::value, &entry::key>::template fill<entry>(fields);
        fields.put(TY_FIELD_POINTER, link, &descriptor);
    }
};
template <class Key, class Value, class Less>
struct layout_of<ordered_map<Key, Value, Less>> {
    using map = ordered_map<Key, Value, Less>;
    static void fill(ty_type &descriptor, descriptor_fields &fields) {
        static descriptor_sample<map> sample;
        add_levels(fields, fields.offset_of(&sample.object, sample.object.first_),
                   std::make_index_sequence<map::levels>());
        fields.add(&sample.object, sample.object.count_);
        if (holds_addresses(target_descriptor<Key>()))
            descriptor.moved = [](void *object, void *) { static_cast<map *>(object)->sort_anew(); };
    }
    template <std::size_t... level>
    static void add_levels(descriptor_fields &fields, std::size_t first, std::index_sequence<level...>) {
        (fields.add_at<entry_of_level<Key, Value, level> *>(first + level * sizeof(void *)), ...);
    }
};

#if defined(__GLIBCXX__)

// Allocator, begin, end, end of the capacity.
template <class T>
requires(!std::is_same_v<T, bool>) struct layout_of<std::vector<T, allocator<T>>> {
    static_assert(sizeof(std::vector<T, allocator<T>>) == 32);
    static void fill(ty_type &, descriptor_fields &fields) {
        fields.add_at<allocator<T>>(0);
        fields.put(TY_FIELD_POINTER, 8, target_descriptor<T>());
        fields.last().there = {TY_COUNT_END, 0, 16, 0};
        for (std::size_t place : {16, 24}) {
            fields.put(TY_FIELD_PLACE, place, nullptr);
            fields.last().base_offset = 8;
        }
    }
};

// Allocator, address of the characters (in the string itself if they are few), length, capacity.
template <class Char, class Traits>
struct layout_of<std::basic_string<Char, Traits, allocator<Char>>> {
    static_assert(sizeof(std::basic_string<Char, Traits, allocator<Char>>) == 40);
    static void fill(ty_type &, descriptor_fields &fields) {
        fields.add_at<allocator<Char>>(0);
        fields.put(TY_FIELD_POINTER, 8, nullptr);
        fields.put(TY_FIELD_PLAIN, 24, nullptr, 2); // short texts, and remains of them
    }
};

// Links point to nodes, and those of the first and the last node to the container itself. A node is a block, with its
// value after its links; a container never has its links at the start of a block, where its allocator is.
template <class T, std::size_t words, std::size_t first>
struct links {
    std::uint64_t word[words];
};
template <class T, std::size_t words, std::size_t first>
struct layout_of<links<T, words, first>> {
    static constexpr std::size_t value = (words * 8 + alignof(T) - 1) / alignof(T) * alignof(T);
    static void fill(ty_type &descriptor, descriptor_fields &fields) {
        fields.put(TY_FIELD_POINTER, first * 8, &descriptor, words - first);
        descriptor.context = const_cast<ty_type *>(target_descriptor<T>());
        if (descriptor.context)
            descriptor.trace = trace;
    }
    static void trace(ty_tracer *tracer, void *object, void *context) {
        ty_block block;
        if (ty_block_of(object, &block) == TY_OK && block.address == object)
            ty_trace_nested(tracer, static_cast<char *>(object) + value, static_cast<const ty_type *>(context), 1);
    }
};

// Allocator, links to the first and the last, number.
template <class T>
struct layout_of<std::list<T, allocator<T>>> {
    static_assert(sizeof(std::list<T, allocator<T>>) == 32);
    static void fill(ty_type &, descriptor_fields &fields) {
        fields.add_at<allocator<T>>(0);
        fields.add_at<links<T, 2, 0>>(8);
    }
};

// Allocator, comparison, links (colour, parent, left, right), number.
template <class Tree, class T, class Compare>
struct tree_layout {
    static_assert(std::is_empty_v<Compare> && sizeof(Tree) == 56);
    static void fill(ty_type &, descriptor_fields &fields) {
        fields.add_at<allocator<T>>(0);
        fields.add_at<links<T, 4, 1>>(16);
    }
};
template <class K, class V, class C>
struct layout_of<std::map<K, V, C, allocator<std::pair<const K, V>>>>
    : tree_layout<std::map<K, V, C, allocator<std::pair<const K, V>>>, std::pair<const K, V>, C> {};
template <class K, class V, class C>
struct layout_of<std::multimap<K, V, C, allocator<std::pair<const K, V>>>>
    : tree_layout<std::multimap<K, V, C, allocator<std::pair<const K, V>>>, std::pair<const K, V>, C> {};
template <class K, class C>
struct layout_of<std::set<K, C, allocator<K>>> : tree_layout<std::set<K, C, allocator<K>>, K, C> {};
template <class K, class C>
struct layout_of<std::multiset<K, C, allocator<K>>> : tree_layout<std::multiset<K, C, allocator<K>>, K, C> {};

// Allocator, address of the slots (if it has one slot, the last word here), their number, link to the first, number of
// values, growth policy, the one slot.
template <class Table, class T, class Hash, class Equal>
struct table_layout {
    static_assert(std::is_empty_v<Hash> && std::is_empty_v<Equal> && sizeof(Table) == 64);
    static void fill(ty_type &, descriptor_fields &fields) {
        fields.add_at<allocator<T>>(0);
        fields.put(TY_FIELD_POINTER, 8, begin_descriptor<links<T, 1, 0> *>());
        fields.last().there = {TY_COUNT_FIELD, 1, 16, 8};
        fields.add_at<links<T, 1, 0>>(24);
        fields.add_at<links<T, 1, 0> *>(56);
    }
};
template <class K, class V, class H, class E>
struct layout_of<std::unordered_map<K, V, H, E, allocator<std::pair<const K, V>>>>
    : table_layout<std::unordered_map<K, V, H, E, allocator<std::pair<const K, V>>>, std::pair<const K, V>, H, E> {};
template <class K, class V, class H, class E>
struct layout_of<std::unordered_multimap<K, V, H, E, allocator<std::pair<const K, V>>>>
    : table_layout<std::unordered_multimap<K, V, H, E, allocator<std::pair<const K, V>>>, std::pair<const K, V>, H, E> {
};
template <class K, class H, class E>
struct layout_of<std::unordered_set<K, H, E, allocator<K>>>
    : table_layout<std::unordered_set<K, H, E, allocator<K>>, K, H, E> {};
template <class K, class H, class E>
struct layout_of<std::unordered_multiset<K, H, E, allocator<K>>>
    : table_layout<std::unordered_multiset<K, H, E, allocator<K>>, K, H, E> {};

#endif // __GLIBCXX__

} // namespace detail
} // namespace v0
} // namespace taiyen

#endif // C++20
#endif
