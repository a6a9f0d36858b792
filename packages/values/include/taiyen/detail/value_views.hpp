// Taiyen in C++: the content of tuples, arrays and other values that never change, header-only. Part of values.hpp,
// which includes it.
#ifndef TAIYEN_VALUE_VIEWS_HPP
#define TAIYEN_VALUE_VIEWS_HPP

#include "value_packed.hpp"

namespace taiyen {
inline namespace v0 {

// The values of a tuple, also of one within a packed container.
class tuple {
public:
    // Only for a value whose kind is value_kind::tuple.
    explicit tuple(value v) : tuple_(v.address()) {}
    // The number of values.
    std::size_t size() const noexcept { return is_item() ? item()[2] : whole()->count; }
    // The value at that index; nothing if the index is too large.
    value at(std::size_t number) const {
        if (number >= size())
            return {};
        if (!is_item())
            return whole()->items()[number];
        const std::uint8_t *at = item() + 3;
        while (number-- > 0)
            at = detail::next_item(at);
        return detail::value_of_item(at);
    }
    // Whether the tuple, or what value_heap::own() makes of it, can be a key.
    bool is_hashable() const noexcept { return is_item() || !(whole()->head.flags & detail::flag_unhashable); }

private:
    bool is_item() const { return detail::kind_byte(tuple_) == detail::item_tuple; }
    const std::uint8_t *item() const { return static_cast<const std::uint8_t *>(tuple_); }
    const detail::value_tuple *whole() const { return static_cast<const detail::value_tuple *>(tuple_); }
    const void *tuple_;
};

// An array of numbers, at an address that never changes.
class array {
public:
    // Only for a value whose kind is value_kind::array.
    explicit array(value v) : array_(detail::block_as<detail::value_array>(v)) {}
    // The address of the numbers, aligned to 64 bytes. Stores there in a transaction must be declared.
    void *data() const noexcept { return array_->data(); }
    // The bytes of all.
    std::size_t size_bytes() const noexcept { return array_->size; }
    // The element type that was passed to value_heap::make_array.
    std::string_view type() const noexcept { return {array_->type, strnlen(array_->type, sizeof array_->type)}; }
    // Bytes of an element.
    std::uint32_t item_size() const noexcept { return array_->item_size; }
    // The number of dimensions, at most 8.
    std::uint32_t dimensions() const noexcept { return array_->dimensions; }
    // The length of each dimension, the outermost first.
    const std::uint64_t *shape() const noexcept { return array_->shape; }

private:
    detail::value_array *array_;
};

// Whether all characters of a text are ASCII.
inline bool is_ascii(const value &text) {
    if (text.is_block() && !is_item(text))
        return detail::head_of(text)->flags & detail::flag_ascii;
    for (const char letter : data_of(text))
        if (static_cast<unsigned char>(letter) >= 0x80)
            return false;
    return true;
}
// Whether a big integer is negative; data_of() is its magnitude.
inline bool is_negative(value big) {
    return detail::head_of(big)->flags & detail::flag_negative;
}
// The type number of opaque bytes.
inline std::uint16_t opaque_type(value opaque) {
    return detail::head_of(opaque)->type;
}
// The parts of a complex number.
struct complex_parts {
    double real, imaginary;
};
// The two numbers of a complex number; only for a value whose kind is value_kind::complex.
inline complex_parts complex_of(value v) {
    complex_parts parts{};
    std::memcpy(&parts, detail::block_as<const detail::value_data>(v)->bytes(), sizeof parts);
    return parts;
}

} // namespace v0
} // namespace taiyen

#endif
