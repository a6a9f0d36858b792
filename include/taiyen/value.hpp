// Taiyen in C++: a value of 8 bytes, header-only, C++17 and later. A part of values.hpp, which includes it.
//
// Purpose: none, true and false, whole numbers, numbers with a fraction, short texts and bytes, or the address of a
// block with anything else: one word each, in a heap or outside.
//
// The word: an address is one as it is, so whatever looks for addresses in a heap finds it; every other value has bits
// in its upper 16, which no address has. 0 is no value: what memory is before something is stored there.
//
//     0000  an address                          fff3, fffc, fffd  not used
//     0001  not used                            fff4 .. fffa      text of 0 .. 6 bytes
//     0002 .. 7ffa, 8002 .. fff2  a number      fffb              none 0, false 1, true 2
//     7ffb .. 8001  0 .. 6 bytes                fffe, ffff        a whole number, plus 2 to the 48th
#ifndef TAIYEN_VALUE_HPP
#define TAIYEN_VALUE_HPP

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace taiyen {
inline namespace v0 {

// What a value is.
enum class value_kind : std::uint8_t {
    nothing = 0, // no value at all
    none = 1,
    boolean = 2,
    integer = 3, // of 49 bits, in the word
    real = 4,
    text = 5, // UTF-8
    bytes = 6,
    big_integer = 7,
    complex = 8,
    opaque = 9, // bytes with a type number of the user's
    tuple = 10,
    array = 11, // numbers side by side, aligned to 64 bytes
    dict = 12,
    list = 13,
    set = 14,
    deque = 15,
    records = 16 // of one layout, side by side
};

// One word, copied freely. It says nothing of how long what it leads to lives: see value_heap.
class value {
public:
    static constexpr std::size_t short_bytes_max = 6;
    static constexpr std::int64_t integer_max = (std::int64_t{1} << 48) - 1;
    static constexpr std::int64_t integer_min = -(std::int64_t{1} << 48);

    // No value.
    constexpr value() = default;
    // What stands for nothing, as a value.
    static constexpr value none() { return value(special_tag << 48); }
    // True or false.
    static constexpr value boolean(bool yes) { return value(special_tag << 48 | (yes ? 2 : 1)); }
    // Whether the number fits in the word; else value_heap::make_integer.
    static constexpr bool fits(std::int64_t number) { return number >= integer_min && number <= integer_max; }
    // Only of a number that fits.
    static constexpr value integer(std::int64_t number) {
        return value((integer_tag << 48) + static_cast<std::uint64_t>(number - integer_min));
    }
    // All that are no numbers (NaN) become one.
    static value real(double number) {
        std::uint64_t bits = 0;
        if (number != number)
            bits = std::uint64_t{0x7ff8} << 48;
        else
            std::memcpy(&bits, &number, sizeof bits);
        return value(bits + real_offset);
    }
    // Only of short_bytes_max bytes and less.
    static value short_text(std::string_view text) { return value(pack(short_text_tag, text)); }
    // The same of bytes that are no text.
    static value short_bytes(std::string_view bytes) { return value(pack(short_bytes_tag, bytes)); }
    // The address of a block that value_heap made.
    static value block(const void *address) { return value(reinterpret_cast<std::uint64_t>(address)); }

    // Whether it is no value at all.
    constexpr bool is_nothing() const { return bits_ == 0; }
    // Whether it is value::none().
    constexpr bool is_none() const { return bits_ == none().bits_; }
    // Whether it is true or false.
    constexpr bool is_boolean() const { return bits_ == boolean(true).bits_ || bits_ == boolean(false).bits_; }
    // Whether it is a whole number in the word.
    constexpr bool is_integer() const { return tag() >= integer_tag; }
    // Whether it is a number with a fraction.
    constexpr bool is_real() const {
        return (tag() >= 0x0002 && tag() <= 0x7ffa) || (tag() >= 0x8002 && tag() <= 0xfff2);
    }
    // Whether it is a text in the word.
    constexpr bool is_short_text() const { return tag() - short_text_tag <= short_bytes_max; }
    // Whether it is bytes in the word.
    constexpr bool is_short_bytes() const { return tag() - short_bytes_tag <= short_bytes_max; }
    // Whether it is the address of something in the heap.
    constexpr bool is_block() const { return bits_ != 0 && tag() == 0; }

    // Each only of such a value.
    constexpr bool as_boolean() const { return bits_ == boolean(true).bits_; }
    // Only of a whole number in the word.
    constexpr std::int64_t as_integer() const {
        return static_cast<std::int64_t>(bits_ - (integer_tag << 48)) + integer_min;
    }
    // Only of a number with a fraction.
    double as_real() const {
        const std::uint64_t bits = bits_ - real_offset;
        double number = 0;
        std::memcpy(&number, &bits, sizeof number);
        return number;
    }
    // Only of a block: where it lies.
    void *address() const { return reinterpret_cast<void *>(bits_); }
    // Of a short text or bytes: within this very object, and good as long as it is.
    std::string_view short_view() const & {
        const std::uint64_t length = is_short_text() ? tag() - short_text_tag : tag() - short_bytes_tag;
        return {reinterpret_cast<const char *>(&bits_), static_cast<std::size_t>(length)};
    }
    // Not of a value that ends with the expression: the bytes lie in it.
    std::string_view short_view() const && = delete;

    // The word.
    constexpr std::uint64_t bits() const { return bits_; }
    // Whether they are one word. Values that are equal may be different ones.
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
