// Taiyen in C++: a deque in a heap of values, header-only, C++17 and later.
//
// Purpose: a ring of values, added to and taken from at both ends in constant time.
//
// Vocabulary and guarantees: as in dict.hpp. A deque has at most 4,294,967,294 values.
//
// Cost: 8 bytes for each value, and up to as much again as spare capacity; 48 bytes for the deque itself.
#ifndef TAIYEN_DEQUE_HPP
#define TAIYEN_DEQUE_HPP

#include "value_heap.hpp"

namespace taiyen {
inline namespace v0 {

class deque {
public:
    // Only for a value whose kind is value_kind::deque.
    deque(value_heap &heap, value v) : heap_(&heap), container_(detail::block_as<detail::value_container>(v)) {}

    // The number of values.
    std::size_t size() const noexcept { return container_->count; }
    // Whether it is empty.
    bool empty() const noexcept { return size() == 0; }
    // A stamp that changes with each change of size or order.
    std::uint32_t stamp() const noexcept { return container_->stamp; }
    // The deque as a value.
    value as_value() const noexcept { return value::block(container_); }
    // The value at that index, from the front on; nothing if the index is too large.
    value at(std::size_t number) const { return number < size() ? *slot(number) : value(); }

    // Replaces the value at that index, which must exist.
    result<void> set(std::size_t number, value v) {
        if (number >= size())
            return out_of_range();
        if (heap_->begin_write() || heap_->put(slot(number), v))
            return error::last();
        return {};
    }
    // Appends a value.
    result<void> push_back(value v) { return push(v, false); }
    // Prepends a value.
    result<void> push_front(value v) { return push(v, true); }
    // Removes and returns the last value, loose if it was stored only here.
    result<value> take_back() { return take(false); }
    // The same for the first value.
    result<value> take_front() { return take(true); }
    // Inserts a value before that index; at size() it appends. O(n).
    result<void> insert(std::size_t number, value v) {
        if (number > size())
            return out_of_range();
        if (begin_change(true)) // a new ring needs no declaration
            return error::last();
        if (result<void> done = push_back(v); !done)
            return done;
        for (std::size_t i = size() - 1; i > number; --i)
            std::swap(*slot(i), *slot(i - 1));
        return {};
    }
    // Removes a value. O(n).
    result<void> erase(std::size_t number) {
        if (number >= size())
            return out_of_range();
        if (begin_change(true) || heap_->prepare_release(*slot(number)))
            return error::last();
        const value gone = *slot(number);
        for (std::size_t i = number; i + 1 < size(); ++i)
            *slot(i) = *slot(i + 1);
        *slot(size() - 1) = value();
        --container_->count;
        heap_->release(gone);
        end_change();
        return {};
    }
    // Reserves room for this many more: adding them, at either end, then needs no memory.
    result<void> reserve_more(std::size_t count) {
        if (heap_->begin_write() || make_room(count))
            return error::last();
        heap_->drain();
        return {};
    }
    // Removes all.
    result<void> clear() { return result<void>::of(heap_->clear(container_)); }

private:
    detail::value_ring *ring() const { return reinterpret_cast<detail::value_ring *>(container_->body); }
    value *slot(std::size_t number) const {
        std::size_t place = ring()->first + number;
        return ring()->slots() + (place < ring()->head.refs ? place : place - ring()->head.refs);
    }
    static error out_of_range() {
        return value_heap::refuse("use a place of a deque that it does not have", "ask for its size");
    }
    // Declares what every change stores to; whole: all values, too.
    ty_status begin_change(bool whole) {
        ty_status status = heap_->begin_write();
        if (!status)
            status = declare_change(whole);
        return status;
    }
    ty_status declare_change(bool whole) {
        ty_status status = heap_->declare(container_, sizeof *container_);
        if (!status && ring())
            status = heap_->declare(ring(), sizeof *ring() + (whole ? ring()->head.refs * sizeof(value) : 0));
        return status;
    }
    void end_change() {
        heap_->touch();
        container_->stamp = heap_->short_stamp();
        heap_->drain();
    }
    result<void> push(value v, bool front) {
        if (heap_->begin_write() || heap_->prepare(v) || heap_->prepared() || make_room() || declare_change(false))
            return error::last();
        const std::uint32_t room = ring()->head.refs;
        const std::uint32_t first = !front ? ring()->first : ring()->first ? ring()->first - 1 : room - 1;
        const std::size_t after = std::size_t{ring()->first} + size();
        value *place = ring()->slots() + (front ? first : after < room ? after : after - room);
        if (heap_->declare(place, sizeof *place))
            return error::last();
        ring()->first = first;
        ++container_->count;
        heap_->count_at(place, v);
        end_change();
        return {};
    }
    result<value> take(bool front) {
        if (empty())
            return out_of_range();
        value *place = slot(front ? 0 : size() - 1);
        const value taken = *place;
        if (begin_change(false) || heap_->declare(place, sizeof *place) || heap_->prepare_release(taken))
            return error::last();
        *place = value();
        if (front)
            ring()->first = ring()->first + 1 < ring()->head.refs ? ring()->first + 1 : 0;
        --container_->count;
        heap_->release(taken, true);
        end_change();
        return taken;
    }
    ty_status make_room(std::size_t more = 1) {
        if (size() + more <= (ring() ? ring()->head.refs : 0))
            return TY_OK;
        const std::size_t twice = size() == 0 ? 6 : size() * 2, room = size() + more > twice ? size() + more : twice;
        if (room >= UINT32_MAX)
            return ty_error_set(TY_E_MEMORY, 0, "add to a deque of 2,147,483,647 values", nullptr, UINT64_MAX,
                                "use several");
        auto *made =
            static_cast<detail::value_ring *>(heap_->allocate(sizeof(detail::value_ring) + room * sizeof(value)));
        if (!made)
            return error::last().status();
        ty_status status = declare_change(false);
        if (status) {
            static_cast<void>(heap_->free(made));
            return status;
        }
        *made = {{detail::body_ring, 0, 0, static_cast<std::uint32_t>(room)}, 0, 0};
        std::memset(static_cast<void *>(made->slots()), 0, room * sizeof(value));
        for (std::size_t i = 0; i < size(); ++i)
            made->slots()[i] = *slot(i);
        detail::value_head *old = std::exchange(container_->body, &made->head);
        if (old)
            heap_->bury(old);
        return TY_OK;
    }
    value_heap *heap_;
    detail::value_container *container_;
};

} // namespace v0
} // namespace taiyen

#endif
