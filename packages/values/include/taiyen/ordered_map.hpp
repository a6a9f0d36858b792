// Taiyen in C++: an ordered map in a concurrent heap, header-only, C++17 and later.
//
// Purpose: values by their keys, in the order of the keys, for many threads; walks over a range see one state of it.
// Created by txn.make or txn.root, or as a member of such an object.
//
// Vocabulary: a skip list. Each entry is in the list of level 0, a quarter of them in that of level 1, a quarter of
// these in that of level 2, and so on: a search goes down from the highest. Source: Pugh, "Skip Lists: A Probabilistic
// Alternative to Balanced Trees" (1990).
//
// Guarantees: each call is part of the transaction that is passed to it; calls without one are part of the thread's
// transaction on the map's heap, or a transaction of their own. Failures throw, as in taiyen/concurrent.hpp, and leave
// the map whole. Keys and values are trivially copyable; the order must be the same in each run of the program. An
// entry never moves. Empty a map before you destroy it: clear().
//
// Cost: 1 KB, and a block of at least 64 bytes for each entry. A search among n entries reads some 2 log2(n). Values do
// not share locks with keys, so a change of a value does not conflict with searches that pass by.
#ifndef TAIYEN_ORDERED_MAP_HPP
#define TAIYEN_ORDERED_MAP_HPP

#include "counter.hpp"
#include "detail/move_walk.hpp"

#if defined(__cpp_exceptions)

#include <functional>

namespace taiyen {
inline namespace v0 {

namespace detail {

// Followed by its links to the next entries, a pointer for each level that it is in.
template <class Key, class Value>
struct ordered_entry {
    static constexpr std::size_t lock_bytes = 32;
    alignas(lock_bytes) Value value;
    alignas(lock_bytes) Key key;
};
template <class T>
struct layout_of; // types.hpp

} // namespace detail

// Values by their keys, in the order of the keys.
template <class Key, class Value, class Less = std::less<Key>>
class ordered_map {
public:
    static_assert(std::is_trivially_copyable_v<Key> && std::is_trivially_copyable_v<Value>,
                  "keys and values are kept as bytes");
    using value_type = std::pair<Key, Value>;

    // Empty.
    ordered_map() = default;
    // Not copyable: it belongs to its place in the heap.
    ordered_map(const ordered_map &) = delete;
    // Not assignable.
    ordered_map &operator=(const ordered_map &) = delete;

    // The address of the key's value, for txn[*value]; NULL if the key is not there.
    Value *find(atomic_txn &txn, const Key &key) {
        entry *found = seek(txn, key);
        return is_of(txn, found, key) ? std::addressof(found->value) : nullptr;
    }
    // The same; a missing key is added with a first value.
    Value &find_or_make(atomic_txn &txn, const Key &key, const Value &first = Value()) {
        bool made = false;
        return reach(txn, key, first, &made)->value;
    }
    // The key's value, if the key is there.
    std::optional<Value> get(atomic_txn &txn, const Key &key) const {
        const entry *found = seek(txn, key);
        return is_of(txn, found, key) ? std::optional<Value>(txn[found->value].load()) : std::nullopt;
    }
    // The same.
    std::optional<Value> get(const Key &key) const {
        return detail::in_reader(this, [&](atomic_txn &txn) { return get(txn, key); });
    }
    // Sets the key's value. True: the key is new.
    bool put(atomic_txn &txn, const Key &key, const Value &value) {
        bool made = false;
        entry *there = reach(txn, key, value, &made);
        if (!made)
            txn[there->value] = value;
        return made;
    }
    // The same.
    bool put(const Key &key, const Value &value) {
        return detail::in_transaction(this, [&](atomic_txn &txn) { return put(txn, key, value); });
    }
    // Sets the key's value if the key is not there. True: it was not.
    bool insert(atomic_txn &txn, const Key &key, const Value &value) {
        bool made = false;
        reach(txn, key, value, &made);
        return made;
    }
    // The same.
    bool insert(const Key &key, const Value &value) {
        return detail::in_transaction(this, [&](atomic_txn &txn) { return insert(txn, key, value); });
    }
    // Erases the key and its value. True: it was there.
    bool erase(atomic_txn &txn, const Key &key) {
        path way;
        entry *found = seek(txn, key, &way);
        if (!is_of(txn, found, key))
            return false;
        txn.free(found); // calls that may fail come before stores
        for (unsigned level = 0; level < levels; level++)
            if (txn[*way.links[level]] == found)
                txn[*way.links[level]] = txn[links_of(found)[level]];
        count_.add(txn, -1);
        return true;
    }
    // The same.
    bool erase(const Key &key) {
        return detail::in_transaction(this, [&](atomic_txn &txn) { return erase(txn, key); });
    }

    // The first key that is not before this one, and its value.
    std::optional<value_type> at_least(atomic_txn &txn, const Key &key) const { return pair_of(txn, seek(txn, key)); }
    // The same.
    std::optional<value_type> at_least(const Key &key) const {
        return detail::in_reader(this, [&](atomic_txn &txn) { return at_least(txn, key); });
    }
    // The last key that is before this one, and its value.
    std::optional<value_type> before(atomic_txn &txn, const Key &key) const {
        path way;
        seek(txn, key, &way);
        return pair_of(txn, way.last);
    }
    // The same.
    std::optional<value_type> before(const Key &key) const {
        return detail::in_reader(this, [&](atomic_txn &txn) { return before(txn, key); });
    }
    // The first key, and its value.
    std::optional<value_type> first(atomic_txn &txn) const { return pair_of(txn, txn[first_[0]]); }
    // The same.
    std::optional<value_type> first() const {
        return detail::in_reader(this, [&](atomic_txn &txn) { return first(txn); });
    }
    // The last key, and its value.
    std::optional<value_type> last(atomic_txn &txn) const {
        const entry *at = nullptr;
        entry *const *tower = first_;
        for (unsigned level = levels; level-- > 0;)
            while (const entry *next = txn[tower[level]]) {
                at = next;
                tower = links_of(at);
            }
        return pair_of(txn, at);
    }
    // The same.
    std::optional<value_type> last() const {
        return detail::in_reader(this, [&](atomic_txn &txn) { return last(txn); });
    }
    // Calls the function with each key and value (const Key &, const Value &), in order, until it returns false; it may
    // also return nothing. It may erase the key that is passed to it; it must change nothing else of the map.
    template <class Function>
    void each(atomic_txn &txn, Function &&function) const {
        walk(
            txn, txn[first_[0]], [](const Key &) { return true; }, function);
    }
    // The same, read-only: to erase, use the one above. After a conflict the effects of the function are not rolled
    // back; it is called again for all.
    template <class Function>
    void each(Function &&function) const {
        detail::in_reader(this, [&](atomic_txn &txn) { each(txn, function); });
    }
    // The same for the keys from `from` on and before `to`.
    template <class Function>
    void each_in(atomic_txn &txn, const Key &from, const Key &to, Function &&function) const {
        walk(
            txn, seek(txn, from), [&to](const Key &key) { return Less()(key, to); }, function);
    }
    // The same, read-only.
    template <class Function>
    void each_in(const Key &from, const Key &to, Function &&function) const {
        detail::in_reader(this, [&](atomic_txn &txn) { each_in(txn, from, to, function); });
    }

    // The number of keys.
    std::uint64_t size(atomic_txn &txn) const { return static_cast<std::uint64_t>(count_.read(txn)); }
    // The same.
    std::uint64_t size() const { return static_cast<std::uint64_t>(count_.read()); }
    // Erases all.
    void clear(atomic_txn &txn) {
        while (const entry *each = txn[first_[0]])
            erase(txn, txn[each->key].load());
    }
    // The same.
    void clear() {
        detail::in_transaction(this, [this](atomic_txn &txn) { clear(txn); });
    }

private:
    template <class T>
    friend struct detail::layout_of;
    static constexpr unsigned levels = 16;

    using entry = detail::ordered_entry<Key, Value>;
    // The links that lead past all entries before a key.
    struct path {
        entry **links[levels];
        entry *last; // before the key; or NULL
    };

    static entry **links_of(const entry *of) noexcept {
        return reinterpret_cast<entry **>(const_cast<entry *>(of) + 1);
    }
    // The first entry that is not before the key.
    entry *seek(atomic_txn &txn, const Key &key, path *way = nullptr) const {
        entry **tower = const_cast<entry **>(first_), *at = nullptr, *last = nullptr;
        for (unsigned level = levels; level-- > 0;) {
            const entry *after = at; // the one of the level above: it is not before the key
            while ((at = txn[tower[level]]) && at != after && Less()(txn[at->key].load(), key)) {
                last = at;
                tower = links_of(at);
            }
            if (way)
                way->links[level] = &tower[level];
        }
        if (way)
            way->last = last;
        return at;
    }
    static bool is_of(atomic_txn &txn, const entry *found, const Key &key) {
        return found && !Less()(key, txn[found->key].load());
    }
    static std::optional<value_type> pair_of(atomic_txn &txn, const entry *of) {
        return of ? std::optional<value_type>(std::in_place, txn[of->key].load(), txn[of->value].load()) : std::nullopt;
    }
    // J2: each level's list is in order, and part of the one below. J4: a call that fails leaves the map whole. Returns
    // the key's entry; a missing one is added.
    entry *reach(atomic_txn &txn, const Key &key, const Value &first, bool *made) {
        path way;
        entry *there = seek(txn, key, &way);
        if (is_of(txn, there, key))
            return there;
        const unsigned height = some_height();
        void *block = txn.alloc(sizeof(entry) + height * sizeof(entry *), alignof(entry));
        entry *own = ::new (block) entry{first, key};
        for (unsigned level = 0; level < height; level++) {
            links_of(own)[level] = txn[*way.links[level]];
            if (level != 0 || height == 1 || !detail::fault("ordered_map_entry_in_upper_lists_alone"))
                txn[*way.links[level]] = own;
        }
        count_.add(txn, 1);
        *made = true;
        return own;
    }
    static unsigned some_height() noexcept {
        thread_local std::uint64_t dice = detail::thread_number();
        dice = (dice + 1) * 0x9e3779b97f4a7c15;
        unsigned height = 1;
        for (std::uint64_t bits = dice ^ dice >> 29; height < levels && bits >> 62 == 0; bits <<= 2)
            height++;
        return height;
    }
    template <class Goes, class Function>
    static void walk(atomic_txn &txn, const entry *at, Goes goes, Function &function) {
        for (; at; at = txn[*links_of(at)]) {
            const Key key = txn[at->key];
            if (!goes(key) || !detail::call_on(function, key, txn[at->value].load()))
                return;
        }
    }

    // J2 after a move: keys that hold addresses may be in another order, so the lists are sorted. No thread uses the
    // map meanwhile. J6: a map that is not whole, such as a list without an end, stays as it is after a move.
    void sort_anew() {
        for (unsigned level = 0; level < levels; level++) {
            detail::move_walk walk(this);
            entry *each = first_[level];
            while (each && walk.meet(each, sizeof(entry) + (level + 1) * sizeof(entry *)))
                each = links_of(each)[level];
            if (!each && walk.is_whole() && !detail::fault("ordered_map_keeps_the_order_of_before_a_move"))
                first_[level] = sorted(first_[level], level);
        }
    }
    static entry *sorted(entry *list, unsigned level) {
        entry *runs[64] = {}; // NULL, or sorted runs of 1, 2, 4, ... entries
        while (list) {
            entry *run = list;
            list = links_of(run)[level];
            links_of(run)[level] = nullptr;
            unsigned n = 0;
            for (; runs[n]; runs[n++] = nullptr)
                run = merged(runs[n], run, level);
            runs[n] = run;
        }
        for (entry *run : runs)
            list = merged(run, list, level);
        return list;
    }
    static entry *merged(entry *a, entry *b, unsigned level) {
        entry *all = nullptr, **end = &all;
        while (a && b) {
            entry *&lower = Less()(b->key, a->key) ? b : a;
            *end = lower;
            end = &links_of(lower)[level];
            lower = *end;
        }
        *end = a ? a : b;
        return all;
    }

    entry *first_[levels] = {};
    counter count_;
};

} // namespace v0
} // namespace taiyen

#endif
#endif
