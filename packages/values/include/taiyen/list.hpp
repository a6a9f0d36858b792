// Taiyen in C++: a list in a heap of values, header-only, C++17 and later.
//
// Purpose: an array of values; appending takes constant time.
//
// Vocabulary and guarantees: as in dict.hpp. A list has at most 4,294,967,294 values.
//
// Cost: 8 bytes for each value, and up to half as much as spare capacity; 32 bytes for the list itself.
#ifndef TAIYEN_LIST_HPP
#define TAIYEN_LIST_HPP

#include "value_heap.hpp"

namespace taiyen {
inline namespace v0 {

class list {
public:
    // Only for a value whose kind is value_kind::list.
    list(value_heap &heap, value v) : heap_(&heap), container_(detail::block_as<detail::value_container>(v)) {}

    // The number of values.
    std::size_t size() const { return packed() ? view().count : container_->count; }
    // Whether it is empty.
    bool empty() const { return size() == 0; }
    // A stamp that changes with each change of size or order; 0 while it is packed.
    std::uint32_t stamp() const noexcept { return packed() ? 0 : container_->stamp; }
    // The list as a value.
    value as_value() const noexcept { return value::block(container_); }
    // The value at that index; nothing if the index is too large.
    value at(std::size_t number) const {
        if (number >= size())
            return {};
        return packed() ? view().at(static_cast<std::uint32_t>(number)) : slots()[number];
    }
    // The array of all values, valid until the next change; NULL for an empty list, and for a packed one.
    const value *data() const { return !packed() && container_->body ? slots() : nullptr; }

    // Replaces the value at that index, which must exist.
    result<void> set(std::size_t number, value v) {
        if (number >= size())
            return out_of_range();
        if (loosen() || heap_->begin_write() || heap_->put(&slots()[number], v))
            return error::last();
        return {};
    }
    // Appends a value.
    result<void> append(value v) { return insert(size(), &v, 1); }
    // Inserts `count` values before that index; at size() it appends. They must not lie in this list.
    result<void> insert(std::size_t number, const value *values, std::size_t count) {
        if (number > size())
            return out_of_range();
        if (count == 0)
            return {};
        if (loosen() || heap_->begin_write() || prepare(values, count) || make_room(count) ||
            declare_from(number, count))
            return error::last();
        heap_->touch();
        value *place = slots() + number;
        std::memmove(static_cast<void *>(place + count), place, (size() - number) * sizeof(value));
        for (std::size_t i = 0; i < count; ++i)
            heap_->count_at(place + i, values[i]);
        container_->count += static_cast<std::uint32_t>(count);
        container_->stamp = heap_->short_stamp();
        heap_->drain();
        return {};
    }
    // Removes `count` values, from that index on.
    result<void> erase(std::size_t number, std::size_t count = 1) {
        if (number > size() || count > size() - number)
            return out_of_range();
        return erase_range(number, count, false);
    }
    // Removes and returns a value, loose if it was stored only here.
    result<value> take(std::size_t number) {
        if (number >= size())
            return out_of_range();
        if (loosen())
            return error::last();
        const value taken = slots()[number];
        if (result<void> done = erase_range(number, 1, true); !done)
            return done.error();
        return taken;
    }
    // Removes all.
    result<void> clear() {
        if (loosen() || heap_->clear(container_))
            return error::last();
        return {};
    }
    // Permutes the values: `order` has for each place the index of its value, every index once.
    result<void> rearrange(const std::uint32_t *order, value *room) {
        if (empty())
            return {};
        if (loosen() || heap_->begin_write() || declare_from(0, 0))
            return error::last();
        heap_->touch();
        for (std::size_t i = 0; i < size(); ++i)
            room[i] = slots()[order[i]];
        std::memcpy(static_cast<void *>(slots()), room, size() * sizeof(value));
        container_->stamp = heap_->short_stamp();
        return {};
    }
    // Reserves room for this many in all.
    result<void> reserve(std::size_t count) {
        if (loosen() || heap_->begin_write() || (count > size() && make_room(count - size(), true)))
            return error::last();
        heap_->drain();
        return {};
    }

private:
    bool packed() const { return detail::kind_byte(container_) >= detail::block_packed_dict; }
    detail::packed_view view() const {
        return detail::packed_view(heap_->space(), reinterpret_cast<const detail::value_head *>(container_));
    }
    // Before a change: unpacks it, if it is packed.
    ty_status loosen() {
        if (!packed())
            return TY_OK;
        result<value> now = heap_->unpack(as_value());
        if (now)
            container_ = detail::block_as<detail::value_container>(now.value());
        return now.status();
    }
    value *slots() const { return reinterpret_cast<detail::value_items *>(container_->body)->slots(); }
    std::size_t room() const { return container_->body ? container_->body->refs : 0; }
    static error out_of_range() {
        return value_heap::refuse("use a place of a list that it does not have", "ask for its size");
    }
    ty_status prepare(const value *values, std::size_t count) {
        for (std::size_t i = 0; i < count; ++i)
            if (const ty_status status = heap_->prepare(values[i], count == 1))
                return status;
        return heap_->prepared();
    }
    // The range from a place on.
    ty_status declare_from(std::size_t number, std::size_t more) {
        if (const ty_status status = heap_->declare(container_, sizeof *container_); status || !container_->body)
            return status;
        return heap_->declare(slots() + number, (size() - number + more) * sizeof(value));
    }
    ty_status make_room(std::size_t more, bool exactly = false) {
        const std::size_t wanted = size() + more;
        if (wanted <= room())
            return TY_OK;
        if (wanted >= UINT32_MAX)
            return ty_error_set(TY_E_MEMORY, 0, "add to a list of 4,294,967,294 values", nullptr, UINT64_MAX,
                                "use several");
        std::size_t entries = exactly || size() == 0 ? wanted : wanted + size() / 2;
        entries = entries < UINT32_MAX ? entries : UINT32_MAX - 1;
        auto *made =
            static_cast<detail::value_items *>(heap_->allocate(sizeof(detail::value_items) + entries * sizeof(value)));
        if (!made)
            return error::last().status();
        detail::value_head *old = container_->body;
        ty_status status = heap_->declare(container_, sizeof *container_);
        if (!status && old)
            status = heap_->declare(old, sizeof *old);
        if (status) {
            static_cast<void>(heap_->free(made));
            return status;
        }
        made->head = {detail::body_items, 0, 0, static_cast<std::uint32_t>(entries)};
        if (old)
            std::memcpy(static_cast<void *>(made->slots()), slots(), size() * sizeof(value));
        std::memset(static_cast<void *>(made->slots() + size()), 0, (entries - size()) * sizeof(value));
        container_->body = &made->head;
        if (old)
            heap_->bury(old);
        return TY_OK;
    }
    result<void> erase_range(std::size_t number, std::size_t count, bool keep) {
        if (count == 0)
            return {};
        if (loosen() || heap_->begin_write() || declare_from(number, 0))
            return error::last();
        value *place = slots() + number;
        for (std::size_t i = 0; i < count; ++i)
            if (heap_->prepare_release(place[i]))
                return error::last();
        heap_->touch();
        for (std::size_t i = 0; i < count; ++i)
            heap_->release(place[i], keep);
        std::memmove(static_cast<void *>(place), place + count, (size() - number - count) * sizeof(value));
        std::memset(static_cast<void *>(slots() + size() - count), 0, count * sizeof(value));
        container_->count -= static_cast<std::uint32_t>(count);
        container_->stamp = heap_->short_stamp();
        heap_->drain();
        return {};
    }
    value_heap *heap_;
    detail::value_container *container_;
};

} // namespace v0
} // namespace taiyen

#include "detail/value_packing.hpp"
#endif
