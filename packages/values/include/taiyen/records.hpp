// Taiyen in C++: records in a heap of values, header-only, C++17 and later.
//
// Purpose: structs of one layout side by side, as in a C array; appending takes constant time.
//
// Vocabulary: a *layout* is a text that describes the fields of a record: the heap stores it, and a user of records
// compares it with the layout that it expects. Records hold plain bytes, no values.
//
// Guarantees: as in dict.hpp. Records are aligned to 8 bytes. They move only when they outgrow their room. At most
// 4,294,967,294 of them.
//
// Cost: the size of the structs, and up to half as much as spare capacity; 40 bytes for the container itself.
#ifndef TAIYEN_RECORDS_HPP
#define TAIYEN_RECORDS_HPP

#include "dict.hpp"

namespace taiyen {
inline namespace v0 {

class records {
public:
    // Only for a value whose kind is value_kind::records.
    records(value_heap &heap, value v) : heap_(&heap), container_(detail::block_as<detail::value_container>(v)) {}

    // The number of records.
    std::size_t size() const { return container_->count; }
    // Whether it is empty.
    bool empty() const { return size() == 0; }
    // The number of records that fit before they move.
    std::size_t room() const { return container_->body ? container_->body->refs : 0; }
    // Bytes of each record.
    std::size_t item_size() const { return container_->body ? container_->body->type : 0; }
    // The number of their layout: value_heap::layout().
    std::uint16_t layout() const { return container_->head.type; }
    // Whether it is a single record that stands alone.
    bool is_single() const { return container_->head.flags & detail::flag_single; }
    // A stamp that changes whenever an index may mean another record afterwards, also when a record is replaced;
    // appending does not change it.
    std::uint32_t stamp() const noexcept { return container_->stamp; }
    // The records as a value.
    value as_value() const noexcept { return value::block(container_); }
    // All records, valid until they move.
    void *data() const { return container_->body ? body()->bytes() : nullptr; }
    // The record at that index, which must exist.
    void *at(std::size_t number) const { return body()->bytes() + number * item_size(); }

    // Stores bytes to a part of an existing record.
    result<void> store(std::size_t number, std::size_t offset, const void *bytes, std::size_t count) {
        if (number >= size() || offset > item_size() || count > item_size() - offset)
            return out_of_range();
        char *place = static_cast<char *>(at(number)) + offset;
        if (heap_->begin_write() || heap_->declare(place, count))
            return error::last();
        heap_->touch();
        std::memmove(place, bytes, count);
        return {};
    }
    // Inserts `count` records before that index; at size() it appends. NULL: zeros. They must not lie in this
    // container.
    result<void> insert(std::size_t number, const void *bytes, std::size_t count) {
        if (number > size())
            return out_of_range();
        if (count == 0)
            return {};
        if (heap_->begin_write() || make_room(count) || declare_from(number, count))
            return error::last();
        heap_->touch();
        const bool appends = number == size();
        const std::size_t width = item_size();
        char *place = static_cast<char *>(at(number));
        std::memmove(place + count * width, place, (size() - number) * width);
        if (bytes)
            std::memcpy(place, bytes, count * width);
        else
            std::memset(place, 0, count * width);
        container_->count += static_cast<std::uint32_t>(count);
        if (!appends)
            container_->stamp = heap_->short_stamp();
        heap_->drain();
        return {};
    }
    // Removes `count` records, from that index on.
    result<void> erase(std::size_t number, std::size_t count = 1) {
        if (number > size() || count > size() - number)
            return out_of_range();
        if (count == 0)
            return {};
        if (heap_->begin_write() || declare_from(number, 0))
            return error::last();
        heap_->touch();
        const std::size_t width = item_size();
        char *place = static_cast<char *>(at(number));
        std::memmove(place, place + count * width, (size() - number - count) * width);
        container_->count -= static_cast<std::uint32_t>(count);
        container_->stamp = heap_->short_stamp();
        return {};
    }
    // Replaces `count` records by `others` new ones, in one change. They must not lie in this container.
    result<void> replace(std::size_t number, std::size_t count, const void *bytes, std::size_t others) {
        if (number > size() || count > size() - number)
            return out_of_range();
        if (count == 0)
            return insert(number, bytes, others);
        if (others == 0)
            return erase(number, count);
        const std::size_t more = others > count ? others - count : 0;
        if (others == count)
            return store_all(number, bytes, count);
        if (heap_->begin_write() || (more && make_room(more)) || declare_from(number, more))
            return error::last();
        heap_->touch();
        const std::size_t width = item_size();
        char *place = static_cast<char *>(at(number));
        std::memmove(place + others * width, place + count * width, (size() - number - count) * width);
        std::memcpy(place, bytes, others * width);
        container_->count = static_cast<std::uint32_t>(size() - count + others);
        container_->stamp = heap_->short_stamp();
        heap_->drain();
        return {};
    }
    // Permutes the records: `order` has for each place the index of its record, every index once; `room` has room for
    // all.
    result<void> rearrange(const std::uint32_t *order, void *room) {
        if (empty())
            return {};
        if (heap_->begin_write() || declare_from(0, 0))
            return error::last();
        heap_->touch();
        const std::size_t width = item_size();
        for (std::size_t i = 0; i < size(); ++i)
            std::memcpy(static_cast<char *>(room) + i * width, at(order[i]), width);
        std::memcpy(data(), room, size() * width);
        container_->stamp = heap_->short_stamp();
        return {};
    }
    // Reserves room for this many in all.
    result<void> reserve(std::size_t count) {
        if (heap_->begin_write() || (count > size() && make_room(count - size(), true)))
            return error::last();
        heap_->drain();
        return {};
    }

private:
    detail::value_records *body() const { return reinterpret_cast<detail::value_records *>(container_->body); }
    static error out_of_range() {
        return value_heap::refuse("use a place of records that they do not have", "ask for their size");
    }
    result<void> store_all(std::size_t number, const void *bytes, std::size_t count) {
        if (heap_->begin_write() || heap_->declare(container_, sizeof *container_) ||
            heap_->declare(at(number), count * item_size()))
            return error::last();
        heap_->touch();
        std::memcpy(at(number), bytes, count * item_size());
        container_->stamp = heap_->short_stamp();
        return {};
    }
    // The range from a place on.
    ty_status declare_from(std::size_t number, std::size_t more) {
        if (const ty_status status = heap_->declare(container_, sizeof *container_))
            return status;
        return heap_->declare(at(number), (size() - number + more) * item_size());
    }
    // VA12: records have room for as many as there are, and a layout of the heap.
    ty_status make_room(std::size_t more, bool exactly = false) {
        const std::size_t wanted = size() + more;
        if (wanted <= room())
            return TY_OK;
        if (wanted >= UINT32_MAX || !container_->body)
            return ty_error_set(TY_E_MEMORY, 0, "add to records, of which there are 4,294,967,294 at most", nullptr,
                                UINT64_MAX, "use several");
        std::size_t entries = exactly || size() == 0 ? wanted : wanted + size() / 2;
        entries = entries < UINT32_MAX ? entries : UINT32_MAX - 1;
        auto *made = static_cast<detail::value_records *>(
            heap_->allocate(sizeof(detail::value_records) + entries * item_size()));
        if (!made)
            return error::last().status();
        detail::value_head *old = container_->body;
        ty_status status = heap_->declare(container_, sizeof *container_);
        if (!status)
            status = heap_->declare(old, sizeof *old);
        if (status) {
            static_cast<void>(heap_->free(made));
            return status;
        }
        made->head = {detail::body_records, 0, old->type, static_cast<std::uint32_t>(entries)};
        std::memcpy(made->bytes(), data(), size() * item_size());
        std::memset(made->bytes() + size() * item_size(), 0, (entries - size()) * item_size());
        container_->body = &made->head;
        heap_->bury(old);
        return TY_OK;
    }
    value_heap *heap_;
    detail::value_container *container_;
};

inline result<value> value_heap::make_records(std::uint16_t layout, std::uint16_t item_size, bool single) {
    if (item_size == 0 || this->layout(layout).empty())
        return refuse("make records of a layout that the heap does not have, or of no bytes", "keep a layout first");
    result<value> made = make_container(value_kind::deque); // any kind: only the head is used
    if (!made)
        return made;
    auto *container = detail::block_as<detail::value_container>(made.value());
    const std::uint32_t room = single ? 1 : 0;
    auto *body = static_cast<detail::value_records *>(allocate(sizeof(detail::value_records) + room * item_size));
    if (!body) {
        const error why = error::last();
        static_cast<void>(discard(made.value()));
        return why;
    }
    std::memset(static_cast<void *>(body), 0, sizeof *body + room * item_size);
    body->head = {detail::body_records, 0, item_size, room};
    container->head = detail::new_head(value_kind::records, single ? unsigned{detail::flag_single} : 0u, layout);
    container->body = &body->head;
    container->count = room;
    return made;
}

// VA13: a layout keeps its number, since none is ever removed.
inline result<std::uint16_t> value_heap::keep_layout(std::string_view text) {
    if (space_->layouts.is_nothing()) {
        result<value> layouts = make_container(value_kind::set);
        if (!layouts)
            return layouts.error();
        if (begin_write() || put(&space_->layouts, layouts.value())) {
            const error why = error::last();
            static_cast<void>(discard(layouts.value()));
            return why;
        }
    }
    set layouts(*this, space_->layouts);
    const value_key wanted = text_key(text);
    if (text.empty() || (layouts.size() > UINT16_MAX && !layouts.contains(wanted)))
        return refuse("keep a layout: it is empty, or the heap has 65,536", "give records a layout, or use fewer");
    if (result<bool> added = layouts.add(wanted); !added)
        return added.error();
    return static_cast<std::uint16_t>(layouts.find(wanted));
}

inline std::string_view value_heap::layout(std::size_t number) const {
    const auto *layouts = detail::block_as<detail::value_container>(space_->layouts);
    if (!layouts || number >= layouts->count)
        return {};
    const value *entry =
        detail::table_view(const_cast<detail::value_container *>(layouts)).entry(static_cast<std::uint32_t>(number));
    return entry->is_block() ? data_of(*entry) : entry->short_view();
}

} // namespace v0
} // namespace taiyen

#endif
