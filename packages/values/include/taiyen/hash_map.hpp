// Taiyen in C++: a hash map in a concurrent heap, header-only, C++17 and later.
//
// Purpose: values by their keys, for many threads. It grows where it is full, a few entries at a time, so no thread
// waits for all of it to move. Created by txn.make or txn.root, or as a member of such an object.
//
// Vocabulary: a slot has a list of entries, or points to a table of slots below it. The next bits of a key's hash
// select the key's slot in that table.
//
// Guarantees: each call is part of the transaction that is passed to it; calls without one are part of the thread's
// transaction on the map's heap, or a transaction of their own. Failures throw, as in taiyen/concurrent.hpp, and leave
// the map whole. Keys and values are trivially copyable. Hashes are stored: a hash function must return the same in
// each run and version of the program; those of keys that hold addresses are recomputed when types.hpp moves the heap's
// blocks. Otherwise an entry never moves. Empty a map before you destroy it: clear().
//
// Cost: 2 KB, a block for each entry, and at most some 60 bytes for each entry for tables. Transactions conflict if
// they change the same list, of at most 8 entries (more only if their hashes are equal), and with those that read the
// size.
#ifndef TAIYEN_HASH_MAP_HPP
#define TAIYEN_HASH_MAP_HPP

#include "counter.hpp"
#include "detail/move_walk.hpp"

#include <iterator>

#if defined(__cpp_exceptions)

namespace taiyen {
inline namespace v0 {

// For keys that are equal if their bytes are: a hash of the bytes.
template <class Key>
struct byte_hash {
    static_assert(std::has_unique_object_representations_v<Key>,
                  "equal keys may have different bytes: give the map a hash function, and when keys are equal");
    // The same in each run and version.
    std::uint64_t operator()(const Key &key) const noexcept {
        const auto *bytes = reinterpret_cast<const unsigned char *>(std::addressof(key));
        std::uint64_t mixed = sizeof key;
        for (std::size_t at = 0; at < sizeof key; at += 8) {
            std::uint64_t word = 0;
            std::memcpy(&word, bytes + at, sizeof key - at < 8 ? sizeof key - at : 8);
            mixed = (mixed ^ word) * 0x9e3779b97f4a7c15;
            mixed ^= mixed >> 32;
        }
        return mixed ^ mixed >> 17;
    }
};
// Compares such keys.
template <class Key>
struct byte_equal {
    // Compares the bytes.
    bool operator()(const Key &a, const Key &b) const noexcept {
        return std::memcmp(std::addressof(a), std::addressof(b), sizeof a) == 0;
    }
};

namespace detail {

template <class Key, class Value>
struct hash_entry {
    hash_entry *next;
    std::uint64_t hash;
    Key key;
    Value value;
};
template <class T>
struct layout_of; // types.hpp

} // namespace detail

// Values by their keys, in no order.
template <class Key, class Value, class Hash = byte_hash<Key>, class Equal = byte_equal<Key>>
class hash_map {
public:
    static_assert(std::is_trivially_copyable_v<Key> && std::is_trivially_copyable_v<Value>,
                  "keys and values are kept as bytes");

    // Empty.
    hash_map() = default;
    // Not copyable: it belongs to its place in the heap.
    hash_map(const hash_map &) = delete;
    // Not assignable.
    hash_map &operator=(const hash_map &) = delete;

    // The address of the key's value, for txn[*value]; NULL if the key is not there.
    Value *find(atomic_txn &txn, const Key &key) {
        const std::uint64_t hash = Hash()(key);
        unsigned used = 0;
        entry *found = look(txn, slot_of(txn, hash, &used), hash, key).found;
        return found ? std::addressof(found->value) : nullptr;
    }
    // The same; a missing key is added with a first value.
    Value &find_or_make(atomic_txn &txn, const Key &key, const Value &first = Value()) {
        bool made = false;
        return reach(txn, key, first, &made)->value;
    }
    // The key's value, if the key is there.
    std::optional<Value> get(atomic_txn &txn, const Key &key) const {
        const Value *value = const_cast<hash_map *>(this)->find(txn, key);
        return value ? std::optional<Value>(txn[*value].load()) : std::nullopt;
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
        const std::uint64_t hash = Hash()(key);
        unsigned used = 0;
        const place there = look(txn, slot_of(txn, hash, &used), hash, key);
        if (!there.found)
            return false;
        entry *next = txn[there.found->next];
        txn.free(there.found); // calls that may fail come before stores
        txn[*there.link] = next;
        count_.add(txn, -1);
        free_empty_tables(txn, hash);
        return true;
    }
    // The same.
    bool erase(const Key &key) {
        return detail::in_transaction(this, [&](atomic_txn &txn) { return erase(txn, key); });
    }

    // The number of keys.
    std::uint64_t size(atomic_txn &txn) const { return static_cast<std::uint64_t>(count_.read(txn)); }
    // The same.
    std::uint64_t size() const { return static_cast<std::uint64_t>(count_.read()); }
    // Calls the function with each key and value (const Key &, const Value &) until it returns false; it may also
    // return nothing. It may erase the key that is passed to it; it must change nothing else of the map.
    template <class Function>
    void each(atomic_txn &txn, Function &&function) const {
        for (const slot &top : top_)
            if (!each_of(txn, top, function))
                return;
    }
    // The same, read-only: to erase, use the one above. After a conflict the effects of the function are not rolled
    // back; it is called again for all.
    template <class Function>
    void each(Function &&function) const {
        detail::in_reader(this, [&](atomic_txn &txn) { each(txn, function); });
    }
    // Erases all.
    void clear(atomic_txn &txn) {
        for (slot &top : top_)
            clear_slot(txn, top);
    }
    // The same.
    void clear() {
        detail::in_transaction(this, [this](atomic_txn &txn) { clear(txn); });
    }

private:
    template <class T>
    friend struct detail::layout_of;
    static constexpr unsigned list_max = 8; // entries
    static constexpr unsigned top_bits = 6; // of the hash
    static constexpr unsigned table_bits = 4;

    using entry = detail::hash_entry<Key, Value>;
    struct table;
    struct slot { // one of the two is NULL
        entry *entries;
        table *below;
    };
    struct table {
        slot slots[1 << table_bits];
    };
    struct place {
        entry *found;    // or NULL
        entry **link;    // the link that points to it
        unsigned length; // of the list, if the key is not found
    };

    static slot &slot_in(table *of, std::uint64_t hash, unsigned used) noexcept {
        return of->slots[hash >> used & ((1 << table_bits) - 1)];
    }
    // J1: an entry is in the list that its hash leads to. *used: how many bits of the hash selected the slot.
    slot &slot_of(atomic_txn &txn, std::uint64_t hash, unsigned *used) {
        slot *at = &top_[hash & ((1 << top_bits) - 1)];
        *used = top_bits;
        while (table *below = txn[at->below]) {
            at = &slot_in(below, hash, *used);
            *used += table_bits;
        }
        return *at;
    }
    static place look(atomic_txn &txn, slot &in, std::uint64_t hash, const Key &key) {
        place there{nullptr, &in.entries, 0};
        while (entry *each = txn[*there.link]) {
            if (txn[each->hash] == hash && Equal()(txn[each->key].load(), key)) {
                there.found = each;
                break;
            }
            there.link = &each->next;
            there.length++;
        }
        return there;
    }
    // J4: a call that fails leaves the map whole. Returns the key's entry; a missing one is added.
    entry *reach(atomic_txn &txn, const Key &key, const Value &first, bool *made) {
        const std::uint64_t hash = Hash()(key);
        unsigned used = 0;
        slot *in = &slot_of(txn, hash, &used);
        for (;;) {
            const place there = look(txn, *in, hash, key);
            if (there.found)
                return there.found;
            if (there.length < list_max || used + table_bits > 64)
                break;
            in = &slot_in(split(txn, *in, used), hash, used);
            used += table_bits;
        }
        if (detail::fault("entry_counted_before_it_is_made"))
            count_.add(txn, 1);
        entry *own = txn.make<entry>(txn[in->entries].load(), hash, key, first);
        txn[in->entries] = own;
        if (!detail::fault("entry_counted_before_it_is_made"))
            count_.add(txn, 1);
        *made = true;
        return own;
    }
    // J1: an entry is in the list that its hash leads to. Moves the entries of a slot to a table below it, which
    // belongs to this transaction until the commit.
    static table *split(atomic_txn &txn, slot &full, unsigned used) {
        table *below = txn.make<table>();
        for (entry *each = txn[full.entries]; each;) {
            entry *next = txn[each->next];
            slot &to = slot_in(below, txn[each->hash], used + detail::fault("hash_map_splits_by_other_bits"));
            txn[each->next] = to.entries;
            to.entries = each;
            each = next;
        }
        txn[full.entries] = nullptr;
        txn[full.below] = below;
        return below;
    }
    // Frees empty tables on the path of the hash, from the lowest one up.
    void free_empty_tables(atomic_txn &txn, std::uint64_t hash) {
        slot *way[(64 - top_bits) / table_bits + 2];
        unsigned depth = 0, used = top_bits;
        slot *at = &top_[hash & ((1 << top_bits) - 1)];
        while (table *below = txn[at->below]) {
            way[depth++] = at;
            at = &slot_in(below, hash, used);
            used += table_bits;
        }
        while (depth-- != 0 && is_empty(txn, *at)) {
            at = way[depth];
            table *below = txn[at->below];
            for (const slot &each : below->slots)
                if (!is_empty(txn, each))
                    return;
            txn.free(below);
            txn[at->below] = nullptr;
        }
    }
    static bool is_empty(atomic_txn &txn, const slot &looked_at) {
        return !txn[looked_at.entries] && !txn[looked_at.below];
    }
    template <class Function>
    static bool each_of(atomic_txn &txn, const slot &of, Function &function) {
        if (const table *below = txn[of.below]) {
            for (const slot &each : below->slots)
                if (!each_of(txn, each, function))
                    return false;
            return true;
        }
        for (const entry *each = txn[of.entries]; each; each = txn[each->next])
            if (!detail::call_on(function, txn[each->key].load(), txn[each->value].load()))
                return false;
        return true;
    }
    void clear_slot(atomic_txn &txn, slot &of) {
        if (table *below = txn[of.below]) {
            for (slot &each : below->slots)
                clear_slot(txn, each);
            txn.free(below);
            txn[of.below] = nullptr;
        }
        while (entry *first = txn[of.entries]) {
            entry *next = txn[first->next];
            txn.free(first);
            txn[of.entries] = next;
            count_.add(txn, -1);
        }
    }

    // J1 after a move: keys that hold addresses have other hashes, so their entries change lists. No thread uses the
    // map meanwhile, and nothing is allocated: the tables stay, and a list may be too long until an entry is added to
    // it. J6: a map that is not whole stays as it is after a move.
    void hash_anew() {
        detail::move_walk walk(this);
        for (const slot &top : top_)
            if (!meet_all(top, top_bits, walk))
                return;
        if (!walk.is_whole())
            return;
        entry *all = nullptr;
        for (slot &top : top_)
            take_entries(top, all);
        while (all) {
            entry *own = all;
            all = own->next;
            own->hash = Hash()(own->key);
            slot *at = &top_[own->hash & ((1 << top_bits) - 1)];
            for (unsigned used = top_bits; at->below; used += table_bits)
                at = &slot_in(at->below, own->hash, used);
            own->next = at->entries;
            at->entries = own;
        }
    }
    static bool meet_all(const slot &of, unsigned used, detail::move_walk &walk) {
        for (const entry *each = of.entries; each; each = each->next)
            if (!walk.meet(each, sizeof(entry)))
                return false;
        if (!of.below)
            return true;
        if (used + table_bits > 64 || !walk.meet(of.below, sizeof(table)))
            return false;
        return std::all_of(std::begin(of.below->slots), std::end(of.below->slots),
                           [&](const slot &each) { return meet_all(each, used + table_bits, walk); });
    }
    static void take_entries(slot &of, entry *&all) {
        if (of.below)
            for (slot &each : of.below->slots)
                take_entries(each, all);
        while (entry *first = of.entries) {
            of.entries = first->next;
            first->next = all;
            all = first;
        }
    }

    slot top_[1 << top_bits] = {};
    counter count_;
};

} // namespace v0
} // namespace taiyen

#endif
#endif
