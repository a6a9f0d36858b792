// Taiyen in C++: how a heap of values creates, counts and frees them. Part of value_heap.hpp, which includes it.
#ifndef TAIYEN_VALUE_HEAP_CALLS_HPP
#define TAIYEN_VALUE_HEAP_CALLS_HPP

#include <taiyen/value_heap.hpp>

#include <cerrno>
#include <unistd.h>

namespace taiyen {
inline namespace v0 {
namespace detail {

inline bool is_ascii(std::string_view text) {
    std::uint64_t all = 0;
    std::size_t i = 0;
    for (std::uint64_t word; i + 8 <= text.size(); i += 8) {
        std::memcpy(&word, text.data() + i, sizeof word);
        all |= word;
    }
    for (; i < text.size(); ++i)
        all |= static_cast<unsigned char>(text[i]);
    return (all & 0x8080808080808080) == 0;
}

inline value_head new_head(value_kind kind, unsigned flags = 0, std::uint16_t type = 0) {
    return {static_cast<std::uint8_t>(kind), static_cast<std::uint8_t>(flags), type, 0};
}

inline constexpr std::uint16_t hashable_depth = 200;
inline constexpr std::size_t recent_keys = 64;
inline constexpr std::size_t recent_key_bytes_max = 40;

} // namespace detail

// ---- Creating.

inline ty_status value_heap::find_or_make() {
    void *found = ty_root(heap_, detail::values_root_name);
    if (!found)
        return make_space();
    auto *space = static_cast<detail::value_space *>(found);
    if (ty_usable_size(found) < sizeof *space || space->magic != detail::values_magic)
        return ty_error_set(TY_E_MISMATCH, 0, "use the root taiyen.values: it leads to something else", nullptr,
                            UINT64_MAX, "give another name to what it leads to");
    if (space->version != values_format_version)
        return ty_error_set(TY_E_FORMAT, 0, "use the values of a heap: they are of another version", nullptr,
                            UINT64_MAX, "use a program with the headers of that version");
    space_ = space;
    last_stamp_ = space->stamp;
    const value root = space->root;
    if ((root.is_block() && !is_live(root.address(), sizeof(detail::value_head))) ||
        !are_names(space->shapes, value_kind::tuple) || !are_names(space->layouts, value_kind::text))
        return ty_error_set(TY_E_DAMAGED, 0, "use the values of a heap: they make no sense", nullptr, UINT64_MAX,
                            "restore the heap from a copy");
    return TY_OK;
}

// VA14: verify() is safe whatever the bytes are. No value is ever removed from these sets, so all entries are used.
inline bool value_heap::are_names(value names, value_kind kind) const {
    const auto *set = detail::block_as<const detail::value_container>(names);
    if (names.is_nothing())
        return true;
    if (!names.is_block() || !is_live(set, sizeof *set) || set->head.kind != static_cast<std::uint8_t>(value_kind::set))
        return false;
    if (!set->body)
        return set->count == 0;
    const auto *table = reinterpret_cast<const detail::value_table *>(set->body);
    if (!is_live(table, sizeof *table) || table->head.kind != detail::body_table || table->head.type != 1 ||
        table->head.flags > 31 || table->used != set->count || table->used > table->head.refs ||
        !is_live(table, sizeof *table + detail::index_bytes(table->head.flags) +
                            std::size_t{table->head.refs} * sizeof(value)))
        return false;
    const std::size_t width = kind == value_kind::tuple ? sizeof(value) : 1;
    for (std::uint32_t i = 0; i < table->used; ++i) {
        const value one = detail::entries_of(table)[i];
        if (kind == value_kind::text && one.is_short_text())
            continue;
        const auto *block = detail::block_as<const detail::value_data>(one); // a tuple's count has the same offset
        if (!one.is_block() || !is_live(block, sizeof *block) || block->head.kind != static_cast<std::uint8_t>(kind) ||
            !is_live(block, sizeof *block + std::size_t{block->size} * width))
            return false;
    }
    return true;
}

inline ty_status value_heap::make_space() {
    if (read_only_)
        return ty_error_set(TY_E_NOT_FOUND, 0, "find the values of a heap that is open for reading only: it has none",
                            nullptr, UINT64_MAX, "open it for writing once");
    detail::value_space made{};
    made.head.kind = detail::block_space;
    made.magic = detail::values_magic;
    made.version = values_format_version;
    if (getentropy(made.seed, sizeof made.seed))
        return ty_error_set(TY_E_IO, errno, "get random bytes for the hashes of a heap's values", nullptr, UINT64_MAX,
                            "see what keeps the process from the system call getrandom");
    if (const ty_status status = begin_write())
        return status;
    void *block = allocate(sizeof made);
    if (!block)
        return error::last().status();
    std::memcpy(block, &made, sizeof made);
    if (const ty_status status = ty_root_set(heap_, detail::values_root_name, block)) {
        static_cast<void>(free(block)); // the error of the root is reported
        return status;
    }
    space_ = static_cast<detail::value_space *>(block);
    return TY_OK;
}

inline result<value> value_heap::make_data(value_kind kind, std::uint16_t type, std::string_view data, bool negative,
                                           unsigned flags) {
    if (data.size() > UINT32_MAX)
        return refuse("make a value of more than 4,294,967,295 bytes", "keep it in parts, or in an array");
    if (begin_write())
        return error::last();
    auto *block = static_cast<detail::value_data *>(allocate(sizeof(detail::value_data) + data.size()));
    if (!block)
        return error::last();
    if (kind == value_kind::text && detail::is_ascii(data))
        flags |= detail::flag_ascii;
    block->head = detail::new_head(kind, flags | (negative ? unsigned{detail::flag_negative} : 0u), type);
    block->size = static_cast<std::uint32_t>(data.size());
    block->hash = detail::hash_data(hasher(), kind, type, data, negative);
    std::memcpy(block->bytes(), data.data(), data.size());
    return value::block(block);
}

inline result<value> value_heap::make_key(const value_key &key) {
    if (!key.word.is_nothing())
        return key.word;
    if (key.kind != value_kind::text || key.data.size() > detail::recent_key_bytes_max)
        return make_data(key.kind, key.type, key.data, key.negative);
    look_at_stamp();
    value &recent = recent_keys_[key.hash % detail::recent_keys];
    if (!recent.is_nothing() && detail::matches(recent, key))
        return recent;
    result<value> made = make_data(key.kind, key.type, key.data, key.negative);
    if (made)
        recent = made.value();
    return made;
}

inline result<value> value_heap::make_tuple(const value *values, std::size_t count) {
    if (count > UINT32_MAX)
        return refuse("make a tuple of more than 4,294,967,295 values", "use tuples of tuples");
    if (begin_write())
        return error::last();
    std::uint16_t depth = 1;
    bool hashable = true;
    std::uint64_t joined = count;
    for (std::size_t i = 0; i < count; ++i) {
        if (prepare(values[i], false))
            return error::last();
        if (kind_of(values[i]) == value_kind::tuple && detail::head_of(values[i])->type >= depth)
            depth = static_cast<std::uint16_t>(detail::head_of(values[i])->type +
                                               (detail::head_of(values[i])->type < UINT16_MAX));
        hashable = hashable && detail::is_hashable(values[i]);
        if (hashable)
            joined = hasher().join(joined, detail::hash_of(hasher(), values[i]));
    }
    if (prepared())
        return error::last();
    auto *tuple = static_cast<detail::value_tuple *>(allocate(sizeof(detail::value_tuple) + count * sizeof(value)));
    if (!tuple)
        return error::last();
    hashable = hashable && depth <= detail::hashable_depth;
    tuple->head = detail::new_head(value_kind::tuple, hashable ? 0u : unsigned{detail::flag_unhashable}, depth);
    tuple->count = static_cast<std::uint32_t>(count);
    tuple->hash = hasher().end(joined);
    touch();
    for (std::size_t i = 0; i < count; ++i)
        count_at(&tuple->items()[i], values[i]);
    drain();
    return value::block(tuple);
}

inline result<value> value_heap::make_array(std::string_view type, std::uint32_t item_size, const std::uint64_t *shape,
                                            std::uint32_t dimensions) {
    detail::value_array made{};
    if (type.size() >= sizeof made.type || dimensions > 8)
        return refuse("make an array of more than 8 dimensions, or whose type has more than 15 letters",
                      "use a shorter name, or fewer dimensions");
    detail::wide_word bytes = item_size;
    for (std::uint32_t i = 0; i < dimensions && bytes >> 48 == 0; ++i)
        bytes *= made.shape[i] = shape[i];
    if (bytes >> 48)
        return refuse("make an array that no heap has room for", "make it smaller", TY_E_MEMORY);
    made.head = detail::new_head(value_kind::array);
    made.size = static_cast<std::uint64_t>(bytes);
    made.item_size = item_size;
    made.dimensions = dimensions;
    std::memcpy(made.type, type.data(), type.size());
    if (begin_write() || declare(&space_->last_id, sizeof space_->last_id))
        return error::last();
    const std::size_t size = detail::value_array::data_offset + made.size;
    void *block = undo_         ? ty_undo_alloc_aligned(heap_, size, 64)
                  : txn_        ? ty_txn_alloc_aligned(txn_, size, 64)
                  : size < 4096 ? ty_alloc_aligned(heap_, size, 64)
                                : ty_alloc_zeroed(heap_, size); // whole pages
    if (!block)
        return error::last();
    if (!txn_ && (undo_ || size < 4096))
        std::memset(block, 0, size);
    made.id = next_id();
    std::memcpy(block, &made, sizeof made);
    return value::block(block);
}

inline result<value> value_heap::make_container(value_kind kind) {
    if (kind < value_kind::dict || kind > value_kind::deque)
        return refuse("make a container of a kind that is none", "make a dict, list, set or deque");
    if (begin_write() || declare(&space_->last_id, sizeof space_->last_id))
        return error::last();
    auto *container = static_cast<detail::value_container *>(allocate(sizeof(detail::value_container)));
    if (!container)
        return error::last();
    touch();
    *container = {detail::new_head(kind), nullptr, 0, 0, short_stamp(), next_id()};
    return value::block(container);
}

// ---- Counting. VA1: a block counts how often it is stored. VA3: a call that fails has changed no value: what can fail
// comes before the first store.

inline ty_status value_heap::prepare(value v, bool alone) {
    if (!v.is_block())
        return TY_OK;
    const detail::value_head *head = detail::head_of(v);
    if (is_item(v))
        return ty_error_set(TY_E_ARGUMENT, 0, "store a part of a packed container", nullptr, UINT64_MAX,
                            "store what value_heap::own() makes of it");
    if (const ty_status status = declare_head(head))
        return status;
    if (!detail::is_container(*head) || (alone && head->refs == 0))
        return TY_OK;
    const auto *container = reinterpret_cast<const detail::value_container *>(head);
    if (container->suspect)
        return TY_OK;
    ++planned_;
    return declare(&container->suspect, sizeof container->suspect);
}

inline ty_status value_heap::prepared() {
    if (planned_ == 0)
        return TY_OK;
    detail::value_suspects *old = space_->suspects;
    const std::size_t needed = std::size_t{space_->suspect_count} + planned_;
    if (!old || needed > old->head.refs) {
        const std::size_t room = needed + needed / 2 + 7;
        auto *larger = static_cast<detail::value_suspects *>(allocate(sizeof *old + room * sizeof(void *)));
        if (!larger)
            return error::last().status();
        larger->head = {detail::body_suspects, 0, 0, static_cast<std::uint32_t>(room)};
        std::memset(static_cast<void *>(larger->slots()), 0, room * sizeof(void *));
        if (const ty_status status = old ? declare_head(&old->head) : TY_OK)
            return status;
        if (const ty_status status = declare(&space_->suspects, sizeof old))
            return status;
        if (old) {
            std::memcpy(static_cast<void *>(larger->slots()), old->slots(), space_->suspect_count * sizeof(void *));
            bury(&old->head);
        }
        space_->suspects = larger;
    }
    if (const ty_status status = declare(space_->suspects->slots() + space_->suspect_count, planned_ * sizeof(void *)))
        return status;
    return declare(&space_->suspect_count, sizeof space_->suspect_count);
}

inline void value_heap::count(value v) {
    if (!v.is_block() || detail::head_of(v)->refs == UINT32_MAX)
        return;
    detail::value_head *head = detail::head_of(v);
    if (++head->refs < (detail::fault("ring_never_collected") ? 3 : 2) || !detail::is_container(*head))
        return; // else VA6: a container that was stored twice is a suspect
    auto *container = reinterpret_cast<detail::value_container *>(head);
    if (container->suspect)
        return;
    space_->suspects->slots()[space_->suspect_count] = container;
    container->suspect = ++space_->suspect_count;
}

inline ty_status value_heap::put(value *slot, value v, bool keep) {
    const value old = *slot;
    if (same(old, v))
        return TY_OK;
    ty_status status = prepare(v);
    if (!status)
        status = prepared();
    if (!status)
        status = prepare_release(old);
    if (!status && detail::fault("value_stored_before_it_is_declared"))
        *slot = v;
    if (!status)
        status = declare(slot, sizeof *slot);
    if (status)
        return status;
    touch();
    count_at(slot, v);
    if (!detail::fault("replaced_value_never_freed"))
        release(old, keep);
    drain();
    return TY_OK;
}

inline ty_status value_heap::clear(detail::value_container *container) {
    if (!container->body)
        return TY_OK;
    ty_status status = begin_write();
    if (!status)
        status = declare(container, sizeof *container);
    if (!status)
        status = declare_head(container->body);
    const detail::value_rows rows = detail::values_in(&container->head);
    if (!status)
        rows.each([&](value v) { return (status = prepare_release(v)) == TY_OK; });
    if (status)
        return status;
    touch();
    detail::value_head *body = container->body;
    rows.each([this](value v) { return release(v), true; });
    container->body = nullptr;
    container->count = 0;
    container->stamp = short_stamp();
    bury(body);
    drain();
    return TY_OK;
}

// ---- Freeing. VA7: values are freed without a growing stack: one block after the other, whatever they refer to.

inline void value_heap::bury(detail::value_head *head) {
    if (freed_)
        report_freed(head);
    if (head->kind == static_cast<std::uint8_t>(value_kind::text)) {
        const std::uint32_t hash =
            reinterpret_cast<const detail::value_data *>(head)->hash; // VA11: no dead key stays remembered
        if (value &recent = recent_keys_[hash % detail::recent_keys];
            same(recent, value::block(head)) && !detail::fault("key_that_waits_to_be_freed_taken_again"))
            recent = value();
    }
    detail::set_next_dead(head, space_->dead);
    space_->dead = head;
}

inline void value_heap::report_freed(const detail::value_head *head) {
    const std::uint8_t kind = detail::kind_byte(head);
    if (kind >= static_cast<std::uint8_t>(value_kind::tuple) && kind < detail::body_items)
        return freed_(head, freed_context_);
    if (!is_packed(value::block(head)))
        return;
    const detail::packed_view view(space_, head);
    const std::uint8_t *item = view.items;
    for (std::uint32_t i = 0; i < view.count; ++i, item = detail::next_item(item))
        if (is_packed(value::block(item)))
            report_freed(reinterpret_cast<const detail::value_head *>(item));
    freed_(head, freed_context_);
}

inline void value_heap::drain() {
    while (detail::value_head *head = space_->dead) {
        const bool full = !(head->flags & detail::flag_emptied) &&
                          head->kind >= static_cast<std::uint8_t>(value_kind::tuple) &&
                          head->kind < detail::body_items && head->kind != static_cast<std::uint8_t>(value_kind::array);
        if (full ? empty_dead(head) : free_dead(head))
            return; // memory is short: the block stays in the chain
    }
}

// Releases what a dead block refers to; the block itself stays in the chain.
inline ty_status value_heap::empty_dead(detail::value_head *head) {
    if (const ty_status status = declare_head(head))
        return status;
    const detail::value_rows rows = detail::values_in(head);
    if (txn_ || undo_) {
        ty_status status = TY_OK;
        rows.each([&](value v) { return (status = prepare_release(v)) == TY_OK; });
        if (status)
            return status;
    }
    if (detail::is_container(*head))
        if (const ty_status status = forget_suspect(reinterpret_cast<detail::value_container *>(head)))
            return status;
    head->flags |= detail::flag_emptied;
    rows.each([&](value v) {
        release(v);
        return true;
    });
    return TY_OK;
}

inline ty_status value_heap::forget_suspect(detail::value_container *container) {
    if (!container->suspect)
        return TY_OK;
    detail::value_container **last_slot = &space_->suspects->slots()[space_->suspect_count - 1], *last = *last_slot;
    detail::value_container **slot = &space_->suspects->slots()[container->suspect - 1];
    ty_status status = declare(slot, sizeof *slot);
    if (!status)
        status = declare(last_slot, sizeof *last_slot);
    if (!status)
        status = declare(&last->suspect, sizeof last->suspect);
    if (!status)
        status = declare(&container->suspect, sizeof container->suspect);
    if (!status)
        status = declare(&space_->suspect_count, sizeof space_->suspect_count);
    if (status)
        return status;
    *slot = last;
    *last_slot = nullptr;
    last->suspect = container->suspect;
    container->suspect = 0;
    --space_->suspect_count;
    return TY_OK;
}

// Frees the first block of the chain.
inline ty_status value_heap::free_dead(detail::value_head *head) {
    detail::value_head *next = detail::next_dead(head);
    auto *container = reinterpret_cast<detail::value_container *>(head);
    if (detail::is_container(*head) && container->body) {
        ty_status status = declare(&container->body, sizeof container->body);
        if (!status)
            status = free(container->body);
        if (status)
            return status;
        container->body = nullptr;
    }
    if (const ty_status status = free(head))
        return status;
    space_->dead = next;
    return TY_OK;
}

} // namespace v0
} // namespace taiyen

#endif
