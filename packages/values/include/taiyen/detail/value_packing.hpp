// Taiyen in C++: packing and unpacking of containers, header-only. Part of dict.hpp and list.hpp, which include it.
#ifndef TAIYEN_VALUE_PACKING_HPP
#define TAIYEN_VALUE_PACKING_HPP

#include <taiyen/dict.hpp>
#include <taiyen/list.hpp>

#include <cmath>
#include <vector>

namespace taiyen {
inline namespace v0 {
namespace detail {

inline constexpr std::size_t packed_bytes_max = 248; // so that a length is one byte

// Writes items. Fails once they are too long for a packed block.
class item_writer {
public:
    std::size_t size() const { return size_; }
    const std::uint8_t *bytes() const { return bytes_; }

    bool put(const void *bytes, std::size_t count) {
        if (count > sizeof bytes_ - size_)
            return false;
        std::memcpy(bytes_ + size_, bytes, count);
        size_ += count;
        return true;
    }
    bool put_byte(std::size_t byte) {
        const auto one = static_cast<std::uint8_t>(byte);
        return put(&one, 1);
    }
    // Writes a value that needs no block, a text or bytes. False also for a value that has no item.
    bool put_scalar(value v) {
        switch (kind_of(v)) {
        case value_kind::none:
            return put_byte(item_none);
        case value_kind::boolean:
            return put_byte(v.as_boolean() ? item_true : item_false);
        case value_kind::integer:
            return put_integer(v.as_integer());
        case value_kind::real:
            return put_real(v.as_real());
        case value_kind::text:
        case value_kind::bytes:
            return put_data(kind_of(v) == value_kind::text, data_of(v));
        default:
            return false;
        }
    }

    // Writes a text or bytes, which need not be in the heap.
    bool put_data(bool text, std::string_view data) {
        if (text && data.size() < item_small_integer - item_short_text)
            return put_byte(item_short_text + data.size()) && put(data.data(), data.size());
        return data.size() < packed_bytes_max && put_byte(text ? item_text : item_bytes) && put_byte(data.size()) &&
               put(data.data(), data.size());
    }
    // Begins a dict, list or tuple within: its head is written first, its values follow, and close() fills in their
    // length.
    struct place {
        std::size_t start = 0;
        std::size_t values = 0;
    };
    bool open_dict(std::uint16_t shape, place *at) {
        const std::uint8_t head[4] = {item_dict, 0, static_cast<std::uint8_t>(shape),
                                      static_cast<std::uint8_t>(shape >> 8)};
        return open(head, sizeof head, at);
    }
    bool open_list(std::size_t count, place *at) {
        const bool is_short = count < 16;
        const std::uint8_t head[3] = {
            static_cast<std::uint8_t>(is_short ? item_short_list + count : std::size_t{item_list}), 0,
            static_cast<std::uint8_t>(count)};
        return count <= packed_values_max && open(head, is_short ? 2 : 3, at);
    }
    bool open_tuple(std::size_t count, place *at) {
        const std::uint8_t head[3] = {item_tuple, 0, static_cast<std::uint8_t>(count)};
        return count <= packed_values_max && open(head, sizeof head, at);
    }
    void close(place at) { bytes_[at.start + 1] = static_cast<std::uint8_t>(size_ - at.values); }

private:
    bool open(const std::uint8_t *head, std::size_t bytes, place *at) {
        *at = {size_, size_ + bytes};
        return put(head, bytes);
    }
    bool put_integer(std::int64_t number) {
        if (number >= 0 && number < 64)
            return put_byte(static_cast<std::size_t>(item_small_integer + number));
        unsigned code = item_integer;
        const auto spare = fault("packed_number_cut_off") ? 0u : 1u;
        while (code < item_integer + 3 && number >> ((8u << (code - item_integer)) - spare) != number >> 63)
            ++code;
        return put_byte(code) && put(&number, packed_integer_bytes(static_cast<std::uint8_t>(code)));
    }
    // Numbers with few digits get a short form.
    bool put_real(double number) {
        for (unsigned power = 0; power < sizeof powers_of_ten / sizeof powers_of_ten[0]; ++power) {
            const double digits = std::nearbyint(number * powers_of_ten[power]);
            if (!(std::fabs(digits) <= INT32_MAX))
                break;
            const auto whole = static_cast<std::int32_t>(digits);
            if (same(value::real(whole / powers_of_ten[power]), value::real(number)))
                return put_byte(item_decimal + power) && put(&whole, sizeof whole);
        }
        return put_byte(item_real) && put(&number, sizeof number);
    }
    std::uint8_t bytes_[packed_bytes_max];
    std::size_t size_ = 0;
};

inline value_rows rows_of(value v) {
    return values_in(head_of(v));
}

// The content of a head: the shape of a dict, the number of values of a list.
inline bool number_of(value_heap &heap, value v, std::uint16_t *number) {
    const auto *container = block_as<const value_container>(v);
    if (container->suspect || container->count > packed_values_max)
        return false;
    const bool is_dict = kind_of(v) == value_kind::dict;
    const std::int32_t found = is_dict ? heap.find_shape(v) : static_cast<std::int32_t>(container->count);
    *number = static_cast<std::uint16_t>(found);
    return found >= 0;
}

inline bool put_item(item_writer &to, value_heap &heap, value v);

// VA8: a packed container reads as the one it was made from. Writes the values of an ordinary dict or list.
inline bool put_items(item_writer &to, value_heap &heap, value v) {
    const bool is_dict = kind_of(v) == value_kind::dict;
    std::uint32_t word = 0;
    return rows_of(v).each([&](value one) {
        if (is_dict && (word++ % 2 == 0 || one.is_nothing()))
            return true; // keys, and erased entries
        return put_item(to, heap, one);
    });
}

// A tuple of values that never change: a copy replaces it.
inline bool put_tuple(item_writer &to, const value_tuple *from) {
    item_writer::place at;
    if (!to.open_tuple(from->count, &at))
        return false;
    for (std::uint32_t i = 0; i < from->count; ++i) {
        const value one = from->items()[i];
        if (!(kind_of(one) == value_kind::tuple ? put_tuple(to, block_as<const value_tuple>(one)) : to.put_scalar(one)))
            return false;
    }
    to.close(at);
    return true;
}

// A container that is packed already: its values are written in the same form.
inline bool put_packed(item_writer &to, value_heap &heap, const value_head *head) {
    const packed_view view(heap.space(), head);
    const auto bytes = static_cast<std::size_t>(view.item(view.count) - view.items);
    item_writer::place at;
    if (!(view.shape ? to.open_dict(head->type, &at) : to.open_list(view.count, &at)) || !to.put(view.items, bytes))
        return false;
    to.close(at);
    return true;
}

inline bool put_item(item_writer &to, value_heap &heap, value v) {
    const value_kind kind = kind_of(v);
    if (kind == value_kind::tuple)
        return put_tuple(to, block_as<const value_tuple>(v));
    if (kind != value_kind::dict && kind != value_kind::list)
        return to.put_scalar(v);
    if (head_of(v)->refs != 1)
        return false;
    if (is_packed(v))
        return put_packed(to, heap, head_of(v));
    std::uint16_t number = 0;
    item_writer::place at;
    if (!number_of(heap, v, &number) ||
        !(kind == value_kind::dict ? to.open_dict(number, &at) : to.open_list(number, &at)) || !put_items(to, heap, v))
        return false;
    to.close(at);
    return true;
}

} // namespace detail

// The number of the shape with these keys; -1: none. dict: its id; 0: creates the shape at once.
inline std::int32_t value_heap::shape_number(const value *keys, std::uint32_t count, std::uint32_t dict) {
    value_key wanted;
    wanted.kind = value_kind::tuple;
    wanted.data = {reinterpret_cast<const char *>(keys), count * sizeof(value)};
    std::uint64_t joined = count;
    for (std::uint32_t i = 0; i < count; ++i)
        joined = hasher().join(joined, detail::hash_of(hasher(), keys[i]));
    wanted.hash = hasher().end(joined);
    if (!space_->shapes.is_nothing()) {
        const std::uint32_t found = set(*this, space_->shapes).find(wanted);
        if (found != set::end_position)
            return static_cast<std::int32_t>(found);
    }
    seen_shape &seen = seen_shapes_[wanted.hash % 64];
    if (dict && (seen.hash != wanted.hash || seen.dict == dict || seen.dict == 0)) {
        seen = {wanted.hash, dict};
        return -1;
    }
    if (space_->shapes.is_nothing()) {
        result<value> shapes = make_container(value_kind::set);
        if (!shapes)
            return -1;
        if (begin_write() || put(&space_->shapes, shapes.value())) {
            static_cast<void>(discard(shapes.value()));
            return -1;
        }
    }
    set shapes(*this, space_->shapes);
    if (shapes.size() > UINT16_MAX)
        return -1;
    result<value> tuple = make_tuple(keys, count);
    if (!tuple)
        return -1;
    result<value_key> shape = key(tuple.value()); // not a key: tuples in it are nested too deep
    if (shape)
        shape.value().exact = true; // VA8: equal keys that are written differently have different shapes
    if (!shape || !shapes.add(shape.value())) {
        static_cast<void>(discard(tuple.value()));
        return -1;
    }
    return static_cast<std::int32_t>(shapes.find(wanted));
}

// Packs the container; returns it as a loose value, or nothing if it cannot be packed.
inline result<value> value_heap::try_to_pack(value v) {
    detail::item_writer items;
    std::uint16_t number = 0;
    if (!detail::number_of(*this, v, &number) || !detail::put_items(items, *this, v))
        return value();
    return make_packed(kind_of(v) == value_kind::dict, number, items);
}

inline std::int32_t value_heap::find_shape(value dict, bool at_once) {
    if (is_packed(dict) || detail::block_as<detail::value_container>(dict)->count > detail::packed_values_max)
        return -1;
    value keys[detail::packed_values_max];
    std::uint32_t count = 0, word = 0;
    detail::rows_of(dict).each([&](value one) {
        if (word++ % 2 == 0 && !one.is_nothing())
            keys[count++] = one;
        return true;
    });
    return shape_number(keys, count, at_once ? 0 : container_id(dict));
}

inline result<value> value_heap::make_packed(bool is_dict, std::uint16_t number, const detail::item_writer &items) {
    if (begin_write())
        return error::last();
    constexpr std::size_t least = sizeof(detail::value_container); // it may be unpacked in place
    const std::size_t bytes = sizeof(detail::value_head) + items.size();
    void *block = allocate(bytes < least ? least : bytes);
    if (!block)
        return error::last();
    std::memset(block, 0, ty_usable_size(block)); // container_id() hashes all bytes
    const std::uint8_t kind = is_dict ? detail::block_packed_dict : detail::block_packed_list;
    const detail::value_head head{kind, 0, number, 0};
    std::memcpy(block, &head, sizeof head);
    std::memcpy(static_cast<char *>(block) + sizeof head, items.bytes(), items.size());
    return value::block(block);
}

inline result<value> value_heap::pack(value v) {
    const auto is_open = [](value one) { return is_container(one) && !is_packed(one); };
    if (!is_open(v))
        return v;
    if (kind_of(v) == value_kind::dict || kind_of(v) == value_kind::list) {
        result<value> packed = try_to_pack(v);
        if (!packed)
            return packed;
        if (!packed.value().is_nothing()) {
            if (result<void> gone = discard(v); !gone) {
                static_cast<void>(discard(packed.value()));
                return gone.error();
            }
            return packed;
        }
    }
    std::vector<value> open{v};
    while (!open.empty()) {
        const value from = open.back();
        open.pop_back();
        ty_status status = TY_OK;
        detail::rows_of(from).each([&](value &slot) {
            if (!is_open(slot) || detail::head_of(slot)->refs != 1 ||
                detail::block_as<detail::value_container>(slot)->suspect)
                return true; // stored twice: also referred to from elsewhere
            value packed;
            if (kind_of(slot) == value_kind::dict || kind_of(slot) == value_kind::list) {
                result<value> tried = try_to_pack(slot);
                if (!tried)
                    return (status = tried.status()) == TY_OK;
                packed = tried.value();
            }
            if (packed.is_nothing())
                return open.push_back(slot), true;
            status = begin_write();
            if (!status)
                status = put(&slot, packed);
            if (status)
                static_cast<void>(discard(packed));
            return status == TY_OK;
        });
        if (status)
            return error::last();
    }
    return v;
}

namespace detail {

// Makes an ordinary, loose container from a packed one. On a failure the blocks made so far are discarded. unpacked:
// the old and the new place of each container within.
class unpacker {
public:
    explicit unpacker(value_heap &heap) : heap_(heap) {}
    std::vector<std::pair<const void *, value>> unpacked;

    result<value> make(const value_head *packed) {
        const packed_view view(heap_.space(), packed);
        result<value> made = heap_.make_container(view.shape ? value_kind::dict : value_kind::list);
        if (!made)
            return made;
        unpacked.emplace_back(packed, made.value());
        if (fill(view, made.value()))
            return made;
        const error why = error::last();
        static_cast<void>(heap_.discard(made.value()));
        return why;
    }

private:
    bool fill(const packed_view &view, value to) {
        if (view.shape ? !dict(heap_, to).reserve(view.count) : !list(heap_, to).reserve(view.count))
            return false;
        const std::uint8_t *item = view.items;
        for (std::uint32_t i = 0; i < view.count; ++i, item = next_item(item)) {
            const value there = value_of_item(item);
            result<value> own = is_packed(there) ? make(head_of(there)) : heap_.own(there);
            if (!own)
                return false;
            if (!add(view, i, to, own.value())) {
                static_cast<void>(heap_.discard(own.value()));
                return false;
            }
        }
        return true;
    }
    bool add(const packed_view &view, std::uint32_t number, value to, value v) {
        if (!view.shape)
            return bool(list(heap_, to).append(v));
        result<value_key> key = heap_.key(view.shape->items()[number]);
        return key && dict(heap_, to).set(key.value(), v);
    }
    value_heap &heap_;
};

} // namespace detail

inline result<value> value_heap::own_tuple(value v) {
    const auto *at = detail::block_as<const std::uint8_t>(v);
    const std::uint32_t count = at[2];
    value parts[detail::packed_values_max];
    std::uint32_t made = 0;
    result<value> tuple = value();
    for (at += 3; made < count && tuple; ++made, at = detail::next_item(at)) {
        tuple = own(detail::value_of_item(at));
        if (!tuple)
            break;
        parts[made] = tuple.value();
    }
    if (tuple)
        tuple = make_tuple(parts, count);
    if (!tuple)
        for (std::uint32_t i = 0; i < made; ++i)
            static_cast<void>(discard(parts[i]));
    return tuple;
}

inline result<value> value_heap::unpack(value v) {
    if (!is_packed(v))
        return v;
    auto *block = static_cast<detail::value_container *>(v.address());
    if (is_item(v)) {
        ty_block whole{};
        if (ty_block_of(v.address(), &whole))
            return error::last();
        block = static_cast<detail::value_container *>(whole.address);
    }
    detail::unpacker unpacker(*this);
    result<value> made = unpacker.make(&block->head);
    if (!made)
        return made;
    auto *loose = detail::block_as<detail::value_container>(made.value());
    const bool shared = block->head.refs >= 2;
    ty_status status = begin_write();
    if (!status && shared)
        status = plan_suspect();
    if (!status)
        status = declare(block, sizeof *block);
    if (status) {
        const error why = error::last();
        static_cast<void>(discard(made.value()));
        return why;
    }
    touch();
    const std::uint32_t refs = block->head.refs;
    *block = *loose;
    block->head.refs = refs;
    loose->body = nullptr;
    loose->count = 0;
    if (shared) {
        space_->suspects->slots()[space_->suspect_count] = block;
        block->suspect = ++space_->suspect_count;
    }
    freed_callback *freed = std::exchange(freed_, nullptr); // no handle refers to it
    bury(&loose->head);
    drain();
    freed_ = freed;
    value now = value::block(block);
    for (const auto &[packed, container] : unpacker.unpacked) {
        const value moved = packed == static_cast<const void *>(block) ? value::block(block) : container;
        if (packed == v.address())
            now = moved;
        if (unpacked_)
            unpacked_(packed, moved, unpacked_context_);
    }
    return now;
}

} // namespace v0
} // namespace taiyen

#endif
