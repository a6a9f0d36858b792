// Taiyen in C++: the hash table of a dict or set in a heap, header-only. Part of dict.hpp, which includes it.
//
// VA4: a key is found at its entry, and entries keep their order. Entries are stored in insertion order; an index in
// front of them leads from a hash to an entry, by linear probing. An erased entry becomes nothing, and stays until the
// table is rebuilt; slots that refer to it stay as well, and match no key. Up to 8 entries need no index.
#ifndef TAIYEN_VALUE_TABLE_HPP
#define TAIYEN_VALUE_TABLE_HPP

#include <taiyen/value_heap.hpp>

namespace taiyen {
inline namespace v0 {
namespace detail {

inline constexpr std::uint32_t entries_without_index = 8;

class table_view {
public:
    table_view(value_container *container) : table_(reinterpret_cast<value_table *>(container->body)) {}
    explicit table_view(value_table *table) : table_(table) {}

    static constexpr std::uint32_t missing = UINT32_MAX;

    value_table *get() const { return table_; }
    std::uint32_t used() const { return table_ ? table_->used : 0; }
    // Words of an entry: a key, and in a dict its value.
    value *entry(std::uint32_t number) const { return entries_of(table_) + std::size_t{number} * table_->head.type; }
    // How many more entries it has room for.
    std::uint32_t free_entries() const {
        const std::uint32_t taken = !table_ ? 0 : table_->head.flags ? table_->filled : table_->used;
        return table_ && taken < table_->head.refs ? table_->head.refs - taken : 0;
    }

    // The index of the key's entry.
    std::uint32_t find(const value_key &key) const {
        if (!table_)
            return missing;
        if (table_->head.flags == 0) {
            for (std::uint32_t i = 0; i < table_->used; ++i)
                if (holds(i, key))
                    return i;
            return missing;
        }
        switch (index_width(table_->head.flags)) {
        case 1:
            return find_by<std::uint8_t>(key);
        case 2:
            return find_by<std::uint16_t>(key);
        default:
            return find_by<std::uint32_t>(key);
        }
    }
    // The free slot for a hash: its place, and its content for the next entry.
    struct new_slot {
        void *place;
        std::uint32_t content;
        unsigned width;
    };
    new_slot slot_for(std::uint32_t hash) const {
        switch (table_->head.flags ? index_width(table_->head.flags) : 0) {
        case 0:
            return {nullptr, 0, 0};
        case 1:
            return slot_by<std::uint8_t>(hash);
        case 2:
            return slot_by<std::uint16_t>(hash);
        default:
            return slot_by<std::uint32_t>(hash);
        }
    }
    // Appends an entry, with a slot from slot_for().
    value *append(const new_slot &slot) const {
        if (slot.width) {
            std::memcpy(slot.place, &slot.content, slot.width); // the lowest byte first
            ++table_->filled;
        }
        return entry(table_->used++);
    }

private:
    bool holds(std::uint32_t number, const value_key &key) const {
        const value stored = *entry(number);
        return same(stored, key.word) ? !stored.is_nothing() : !stored.is_nothing() && matches(stored, key);
    }
    // A slot's lower bits are the entry's number plus 1, its upper bits are bits of the hash.
    template <class Slot>
    std::uint32_t tag_of(std::uint32_t hash) const {
        constexpr unsigned width = sizeof(Slot) * 8;
        return width == table_->head.flags ? 0
                                           : hash >> 16 >> (16 - (width - table_->head.flags)) << table_->head.flags;
    }
    template <class Slot>
    std::uint32_t find_by(const value_key &key) const {
        const auto *slots = reinterpret_cast<const Slot *>(table_ + 1);
        const std::uint32_t mask = (std::uint32_t{1} << table_->head.flags) - 1, tag = tag_of<Slot>(key.hash);
        for (std::uint32_t at = key.hash & mask, seen = 0; slots[at] && seen <= mask; at = (at + 1) & mask, ++seen) {
            const std::uint32_t number = (slots[at] & mask) - 1;
            if ((slots[at] & ~mask) == tag && number < table_->used && holds(number, key))
                return number;
        }
        return missing;
    }
    template <class Slot>
    new_slot slot_by(std::uint32_t hash) const {
        auto *slots = reinterpret_cast<Slot *>(table_ + 1);
        const std::uint32_t mask = (std::uint32_t{1} << table_->head.flags) - 1;
        std::uint32_t at = hash & mask;
        while (slots[at])
            at = (at + 1) & mask;
        return {&slots[at], tag_of<Slot>(hash) | (table_->used + 1), sizeof(Slot)};
    }
    value_table *table_;
};

// The capacity in entries, and the matching index.
struct table_size {
    std::uint32_t entries;
    unsigned slots_log2;
};
inline bool size_table(std::size_t entries, table_size *size) {
    if (entries <= entries_without_index) {
        *size = {static_cast<std::uint32_t>(entries < 2 ? 2 : entries), 0};
        return true;
    }
    unsigned log2 = 4;
    while ((std::size_t{1} << log2) / 3 * 2 < entries)
        ++log2;
    if (log2 > 31)
        return false;
    *size = {static_cast<std::uint32_t>(entries), log2};
    return true;
}
// As much as the index allows.
inline std::size_t entries_of_index(std::size_t entries) {
    std::size_t slots = 16;
    while (slots / 3 * 2 < entries)
        slots *= 2;
    return slots / 3 * 2;
}

// The common base of dict and set.
class table_container {
public:
    // The position past the last entry.
    static constexpr std::uint32_t end_position = UINT32_MAX;

    // The number of entries.
    std::size_t size() const { return packed() ? view().count : container_->count; }
    bool empty() const { return size() == 0; }
    // A stamp that changes with each change of size or order; 0 while it is packed.
    std::uint32_t stamp() const noexcept { return packed() ? 0 : container_->stamp; }
    // The container as a value.
    value as_value() const noexcept { return value::block(container_); }
    // Whether the key is there.
    bool contains(const value_key &key) const { return find(key) != end_position; }

    // Positions of entries, in insertion order; valid until the stamp changes or a key is added. The first from
    // `position` on, or end_position.
    std::uint32_t next(std::uint32_t position = 0) const {
        if (packed())
            return position < view().count ? position : end_position;
        const table_view t = table();
        for (; position < t.used(); ++position)
            if (!t.entry(position)->is_nothing())
                return position;
        return end_position;
    }
    // The last one before `position`, or end_position.
    std::uint32_t previous(std::uint32_t position = end_position) const {
        if (packed())
            return (position < view().count ? position : view().count) - 1;
        const table_view t = table();
        for (position = position < t.used() ? position : t.used(); position-- > 0;)
            if (!t.entry(position)->is_nothing())
                return position;
        return end_position;
    }
    // The key there.
    value key_at(std::uint32_t position) const {
        return packed() ? view().shape->items()[position] : *table().entry(position);
    }
    // The position of a key, or end_position.
    std::uint32_t find(const value_key &key) const {
        if (!packed())
            return table().find(key);
        const packed_view there = view();
        const std::uint32_t number = there.find(key);
        return number == there.count ? end_position : number;
    }

    // Reserves room for this many in all.
    result<void> reserve(std::size_t entries) {
        if (loosen() || heap_->begin_write() || (entries > room() && rebuild(entries)))
            return error::last();
        heap_->drain();
        return {};
    }
    // Reserves room for this many new keys: adding them then needs no memory, except for the key itself. Grows in the
    // same steps as single insertions.
    result<void> reserve_more(std::size_t keys) {
        if (loosen() || heap_->begin_write() || make_room(keys))
            return error::last();
        heap_->drain();
        return {};
    }
    // Erases all.
    result<void> clear() {
        if (loosen() || heap_->clear(container_))
            return error::last();
        return {};
    }

protected:
    table_container(value_heap &heap, value v) : heap_(&heap), container_(block_as<value_container>(v)) {}

    bool packed() const { return kind_byte(container_) >= block_packed_dict; }
    packed_view view() const { return packed_view(heap_->space(), reinterpret_cast<const value_head *>(container_)); }
    // Before a change: unpacks it, if it is packed.
    ty_status loosen() {
        if (!packed())
            return TY_OK;
        result<value> now = heap_->unpack(as_value());
        if (now)
            container_ = block_as<value_container>(now.value());
        return now.status();
    }
    table_view table() const { return table_view(container_); }

    // Begins an insertion: makes room for the entry of a new key, and declares all stores for it. *made: the key.
    ty_status begin_insert(const value_key &key, std::uint16_t words, value *made, table_view::new_slot *slot) {
        if (const ty_status status = make_room())
            return status;
        result<value> stored = heap_->make_key(key);
        if (!stored)
            return stored.status();
        *made = stored.value();
        const table_view t = table();
        *slot = t.slot_for(key.hash);
        ty_status status = heap_->prepare_release(*made); // its head
        if (!status && slot->width)
            status = heap_->declare(slot->place, slot->width);
        if (!status)
            status = heap_->declare(t.entry(t.used()), std::size_t{words} * sizeof(value));
        if (!status && !detail::fault("head_of_a_table_not_declared"))
            status = heap_->declare(t.get(), sizeof *t.get());
        if (!status)
            status = heap_->declare(container_, sizeof *container_);
        if (status && key.word.is_nothing() && head_of(*made)->refs == 0) {
            heap_->bury(head_of(*made));
            heap_->drain();
        }
        return status;
    }
    value *end_insert(value key, const table_view::new_slot &slot) {
        value *entry = table().append(slot);
        heap_->touch();
        heap_->count_at(entry, key);
        ++container_->count;
        container_->stamp = heap_->short_stamp();
        return entry;
    }
    // Removes an entry. keep: its value stays loose.
    ty_status erase_at(std::uint32_t position, bool keep) {
        const table_view t = table();
        value *entry = t.entry(position);
        const std::size_t words = t.get()->head.type;
        ty_status status = heap_->declare(entry, words * sizeof(value));
        for (std::size_t i = 0; i < words && !status; ++i)
            status = heap_->prepare_release(entry[i]);
        if (!status)
            status = heap_->declare(t.get(), sizeof *t.get());
        if (!status)
            status = heap_->declare(container_, sizeof *container_);
        if (status)
            return status;
        heap_->touch();
        for (std::size_t i = 0; i < words; ++i)
            heap_->release(std::exchange(entry[i], value()), keep && i + 1 == words);
        --container_->count;
        container_->stamp = heap_->short_stamp();
        while (t.get()->used && t.entry(t.get()->used - 1)->is_nothing())
            --t.get()->used;
        heap_->drain();
        return TY_OK;
    }

private:
    std::size_t room() const { return container_->body ? table().get()->head.refs : 0; }
    ty_status make_room(std::size_t more = 1) {
        if (more <= table().free_entries())
            return TY_OK;
        const std::size_t half = container_->count / 2 + 1;
        const std::size_t wanted = container_->count + (more > half ? more : half);
        return rebuild(wanted <= entries_without_index ? (wanted < 4 ? 4 : 8) : entries_of_index(wanted));
    }
    // Rebuilds the table with room for this many entries, without erased ones.
    ty_status rebuild(std::size_t entries) {
        table_size size;
        if (!size_table(entries, &size))
            return ty_error_set(TY_E_MEMORY, 0, "add to a dict or set of more than 1,431,655,764 entries", nullptr,
                                UINT64_MAX, "use several");
        const std::size_t bytes = index_bytes(size.slots_log2);
        auto *made = static_cast<value_table *>(
            heap_->allocate(sizeof(value_table) + bytes + std::size_t{size.entries} * words() * sizeof(value)));
        if (!made)
            return error::last().status();
        value_head *old = container_->body;
        ty_status status = heap_->declare(container_, sizeof *container_);
        if (!status && old)
            status = heap_->declare(old, sizeof *old);
        if (status) {
            static_cast<void>(heap_->free(made));
            return status;
        }
        std::memset(static_cast<void *>(made + 1), 0, bytes + std::size_t{size.entries} * words() * sizeof(value));
        *made = {{body_table, static_cast<std::uint8_t>(size.slots_log2), words(), size.entries}, 0, 0};
        copy_to(table_view(made));
        heap_->touch();
        container_->body = &made->head;
        container_->stamp = heap_->short_stamp();
        if (old)
            heap_->bury(old);
        return TY_OK;
    }
    void copy_to(table_view to) const {
        const table_view from = table();
        const value_hasher hasher = heap_->hasher();
        for (std::uint32_t i = 0; i < from.used(); ++i) {
            const value *entry = from.entry(i);
            if (entry->is_nothing())
                continue;
            value *copy =
                to.append(to.slot_for(hash_of(hasher, *entry) + detail::fault("copied_table_with_other_hashes")));
            std::memcpy(static_cast<void *>(copy), entry, words() * sizeof(value));
        }
    }
    std::uint16_t words() const { return container_->head.kind == static_cast<std::uint8_t>(value_kind::dict) ? 2 : 1; }

protected:
    value_heap *heap_;

private:
    value_container *container_;
};

} // namespace detail
} // namespace v0
} // namespace taiyen

#endif
