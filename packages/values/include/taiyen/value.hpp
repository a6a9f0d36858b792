// Taiyen in C++: a value of 8 bytes, header-only, C++17 and later. Part of values.hpp, which includes it.
//
// Purpose: none, true and false, integers, floating-point numbers, short texts and bytes, or the address of a block
// with anything else: one word each, in a heap or outside.
//
// The word: an address is stored as it is, so a scan for addresses in a heap finds it; every other value has bits in
// its upper 16, which no address has. 0 is no value: the content of memory before a store.
//
//     0000  an address                          fff3, fffc, fffd  not used
//     0001  not used                            fff4 .. fffa      text of 0 .. 6 bytes
//     0002 .. 7ffa, 8002 .. fff2  a number      fffb              none 0, false 1, true 2
//     7ffb .. 8001  0 .. 6 bytes                fffe, ffff        an integer, plus 2 to the 48th
#ifndef TAIYEN_VALUE_HPP
#define TAIYEN_VALUE_HPP

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace taiyen {
inline namespace v0 {

// The kind of a value.
enum class value_kind : std::uint8_t {
    nothing = 0, // no value
    none = 1,
    boolean = 2,
    integer = 3, // of 49 bits, in the word
    real = 4,
    text = 5, // UTF-8
    bytes = 6,
    big_integer = 7,
    complex = 8,
    opaque = 9, // bytes with a type number of the user
    tuple = 10,
    array = 11, // numbers side by side, aligned to 64 bytes
    dict = 12,
    list = 13,
    set = 14,
    deque = 15,
    records = 16 // of one layout, side by side
};

// One word, copied freely. It does not own the block that it points to: see value_heap.
class value {
public:
    static constexpr std::size_t short_bytes_max = 6;
    static constexpr std::int64_t integer_max = (std::int64_t{1} << 48) - 1;
    static constexpr std::int64_t integer_min = -(std::int64_t{1} << 48);

    // No value.
    constexpr value() = default;
    // The value none.
    static constexpr value none() { return value(special_tag << 48); }
    // True or false.
    static constexpr value boolean(bool yes) { return value(special_tag << 48 | (yes ? 2 : 1)); }
    // Whether the integer fits in the word; else use value_heap::make_integer.
    static constexpr bool fits(std::int64_t number) { return number >= integer_min && number <= integer_max; }
    // Only for an integer that fits.
    static constexpr value integer(std::int64_t number) {
        return value((integer_tag << 48) + static_cast<std::uint64_t>(number - integer_min));
    }
    // All NaNs become one.
    static value real(double number) {
        std::uint64_t bits = 0;
        if (number != number)
            bits = std::uint64_t{0x7ff8} << 48;
        else
            std::memcpy(&bits, &number, sizeof bits);
        return value(bits + real_offset);
    }
    // Only for at most short_bytes_max bytes.
    static value short_text(std::string_view text) { return value(pack(short_text_tag, text)); }
    // The same for bytes that are not a text.
    static value short_bytes(std::string_view bytes) { return value(pack(short_bytes_tag, bytes)); }
    // The address of a block that value_heap made.
    static value block(const void *address) { return value(reinterpret_cast<std::uint64_t>(address)); }

    // Whether it is no value.
    constexpr bool is_nothing() const { return bits_ == 0; }
    // Whether it is value::none().
    constexpr bool is_none() const { return bits_ == none().bits_; }
    // Whether it is true or false.
    constexpr bool is_boolean() const { return bits_ == boolean(true).bits_ || bits_ == boolean(false).bits_; }
    // Whether it is an integer in the word.
    constexpr bool is_integer() const { return tag() >= integer_tag; }
    // Whether it is a floating-point number.
    constexpr bool is_real() const {
        return (tag() >= 0x0002 && tag() <= 0x7ffa) || (tag() >= 0x8002 && tag() <= 0xfff2);
    }
    // Whether it is a text in the word.
    constexpr bool is_short_text() const { return tag() - short_text_tag <= short_bytes_max; }
    // Whether it is bytes in the word.
    constexpr bool is_short_bytes() const { return tag() - short_bytes_tag <= short_bytes_max; }
    // Whether it is the address of something in the heap.
    constexpr bool is_block() const { return bits_ != 0 && tag() == 0; }

    // Each only for such a value.
    constexpr bool as_boolean() const { return bits_ == boolean(true).bits_; }
    // Only for an integer in the word.
    constexpr std::int64_t as_integer() const {
        return static_cast<std::int64_t>(bits_ - (integer_tag << 48)) + integer_min;
    }
    // Only for a floating-point number.
    double as_real() const {
        const std::uint64_t bits = bits_ - real_offset;
        double number = 0;
        std::memcpy(&number, &bits, sizeof number);
        return number;
    }
    // Only for a block: its address.
    void *address() const { return reinterpret_cast<void *>(bits_); }
    // The bytes of a short text or bytes: they lie in this object, and are valid as long as it is.
    std::string_view short_view() const & {
        const std::uint64_t length = is_short_text() ? tag() - short_text_tag : tag() - short_bytes_tag;
        return {reinterpret_cast<const char *>(&bits_), static_cast<std::size_t>(length)};
    }
    // Not for a temporary: the bytes lie in it.
    std::string_view short_view() const && = delete;

    // The word.
    constexpr std::uint64_t bits() const { return bits_; }
    // Whether both are the same word. Equal values may be different words.
    friend constexpr bool same(value a, value b) { return a.bits_ == b.bits_; }

private:
    static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "short texts start at the word's first byte");
    static constexpr std::uint64_t real_offset = std::uint64_t{1} << 49;
    static constexpr std::uint64_t integer_tag = 0xfffe;
    static constexpr std::uint64_t special_tag = 0xfffb;
    static constexpr std::uint64_t short_text_tag = 0xfff4;
    static constexpr std::uint64_t short_bytes_tag = 0x7ffb;

    explicit constexpr value(std::uint64_t bits) : bits_(bits) {}
    constexpr std::uint64_t tag() const { return bits_ >> 48; }
    static std::uint64_t pack(std::uint64_t first_tag, std::string_view text) {
        std::uint64_t bits = 0;
        std::memcpy(&bits, text.data(), text.size());
        return bits | (first_tag + text.size()) << 48;
    }
    std::uint64_t bits_ = 0;
};

} // namespace v0
} // namespace taiyen

#endif
