// Taiyen in C++: hashes and equality of values, header-only. Part of values.hpp, which includes it.
//
// Purpose: keys as in Python: equal numbers are one key, however they are written (1, 1.0, true); a text and bytes are
// never equal. A NaN is the same key as itself only.
//
// Hashes depend on the heap's seed, so keys that collide cannot be chosen without knowing it. They are stored in the
// heap: the functions here are part of the format (values_format_version).
#ifndef TAIYEN_VALUE_HASH_HPP
#define TAIYEN_VALUE_HASH_HPP

#include "value_layout.hpp"

#include <cmath>

namespace taiyen {
inline namespace v0 {

// A key to look up in a dict or set: a value, or bytes of a text or the like that need not be in the heap yet.
struct value_key {
    value word; // nothing: the key is a text, or what kind says, of the bytes in data; or a tuple of the values in them
    std::string_view data;
    std::uint32_t hash = 0;
    value_kind kind = value_kind::nothing;
    std::uint16_t type = 0;
    bool negative = false;
    bool exact = false; // matches only a key that is written alike, not every equal one: 1 is neither 1.0 nor true
};

namespace detail {

__extension__ using wide_word = unsigned __int128;

inline std::uint64_t fold(std::uint64_t a, std::uint64_t b) {
    const wide_word product = static_cast<wide_word>(a) * b;
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

// VA5: values that are one key have one hash. Integers and floating-point numbers are hashed by their remainder modulo
// the prime 2 to the 61st less 1, so that equal numbers have the same.
inline constexpr std::uint64_t number_modulus = (std::uint64_t{1} << 61) - 1;

inline std::uint64_t rest_of(std::int64_t number) {
    const std::uint64_t size = number < 0 ? 0 - static_cast<std::uint64_t>(number) : static_cast<std::uint64_t>(number);
    const std::uint64_t rest = size % number_modulus;
    return number < 0 && rest ? number_modulus - rest : rest;
}
inline std::uint64_t rest_of(std::string_view magnitude, bool negative) {
    std::uint64_t rest = 0;
    for (std::size_t i = magnitude.size(); i-- > 0;)
        rest =
            ((rest << 8 & number_modulus) + (rest >> 53) + static_cast<unsigned char>(magnitude[i])) % number_modulus;
    return negative && rest ? number_modulus - rest : rest;
}
inline std::uint64_t rest_of(double number) {
    if (std::isnan(number))
        return number_modulus + 1;
    if (std::isinf(number))
        return number_modulus + (number > 0 ? 2 : 3);
    int exponent = 0;
    const double fraction = std::frexp(number, &exponent); // number = whole * 2 to the (exponent - 53)
    const auto whole = static_cast<std::int64_t>(std::ldexp(std::fabs(fraction), 53));
    const int turn = ((exponent - 53) % 61 + 61) % 61; // 2 to the 61st is 1
    const auto rest = static_cast<std::uint64_t>(whole);
    const std::uint64_t turned = ((rest << turn & number_modulus) | rest >> (61 - turn)) % number_modulus;
    return number < 0 && turned && !fault("equal_numbers_of_two_hashes") ? number_modulus - turned : turned;
}

class value_hasher {
public:
    explicit value_hasher(const std::uint64_t (&seed)[2]) : seed_{seed[0], seed[1]} {}

    std::uint32_t number(std::uint64_t rest) const { return end(fold(rest ^ seed_[0], seed_[1] | 1)); }
    // salt: 0 for texts, else something for each kind.
    std::uint32_t bytes(std::string_view data, std::uint64_t salt) const {
        const char *at = data.data();
        std::size_t left = data.size();
        std::uint64_t mixed = fold(seed_[0] ^ left, seed_[1] ^ salt * spread);
        for (; left > 8; at += 8, left -= 8)
            mixed = fold(word(at, 8) ^ seed_[1], mixed ^ spread);
        return end(fold(word(at, left) ^ seed_[1], mixed ^ seed_[0]));
    }
    // The hash of a sequence of hashes.
    std::uint64_t join(std::uint64_t so_far, std::uint32_t next) const {
        return fold(so_far ^ next ^ seed_[0], seed_[1] ^ spread);
    }
    std::uint32_t end(std::uint64_t mixed) const {
        mixed = fold(mixed ^ spread, spread);
        return static_cast<std::uint32_t>(mixed ^ mixed >> 32);
    }

private:
    static constexpr std::uint64_t spread = 0x9e3779b97f4a7c15;
    static std::uint64_t word(const char *at, std::size_t bytes) {
        std::uint64_t word = 0;
        std::memcpy(&word, at, bytes);
        return word;
    }
    std::uint64_t seed_[2];
};

// Whether a big integer is this number.
inline bool equals_real(std::string_view magnitude, bool negative, double number) {
    if (!std::isfinite(number) || (number < 0) != negative)
        return false;
    int exponent = 0;
    const double fraction = std::frexp(std::fabs(number), &exponent);
    const auto whole = static_cast<std::uint64_t>(std::ldexp(fraction, 53));
    const int shift = exponent - 53; // number = whole * 2 to the shift; a big integer is above 2 to the 48th
    if (shift < 0 && (shift < -52 || (whole & ((std::uint64_t{1} << -shift) - 1)) != 0))
        return false;
    if (magnitude.size() != (static_cast<std::size_t>(exponent) + 7) / 8)
        return false;
    for (std::size_t i = 0; i < magnitude.size(); ++i) {
        const int from = static_cast<int>(i * 8) - shift; // the bit of `whole` that this byte begins with
        std::uint64_t byte = 0;
        if (from >= 0 && from < 64)
            byte = whole >> from;
        else if (from < 0 && from > -8)
            byte = whole << -from;
        if ((byte & 0xff) != static_cast<unsigned char>(magnitude[i]))
            return false;
    }
    return true;
}

inline bool is_number(value v) {
    return v.is_integer() || v.is_real() || v.is_boolean();
}
inline double number_of(value v) { // 49 bits are exact
    return v.is_real()      ? v.as_real()
           : v.is_integer() ? static_cast<double>(v.as_integer())
           : v.as_boolean() ? 1.0
                            : 0.0;
}
inline bool real_part_alone(std::string_view complex, double *real) {
    double parts[2];
    std::memcpy(parts, complex.data(), sizeof parts);
    *real = parts[0];
    return parts[1] == 0;
}
inline bool equals_complex(std::string_view a, std::string_view b) {
    double left[2], right[2];
    std::memcpy(left, a.data(), sizeof left);
    std::memcpy(right, b.data(), sizeof right);
    return (left[0] == right[0] && left[1] == right[1]) || std::memcmp(left, right, sizeof left) == 0;
}

bool equal_keys(value a, value b);

// Whether a number in a word is the one in a block.
inline bool number_equals_block(double number, const value_data *data) {
    if (data->head.kind == static_cast<std::uint8_t>(value_kind::big_integer))
        return equals_real({data->bytes(), data->size}, data->head.flags & flag_negative, number);
    double real = 0;
    return data->head.kind == static_cast<std::uint8_t>(value_kind::complex) &&
           real_part_alone({data->bytes(), data->size}, &real) && real == number;
}

inline bool big_equals_complex(const value_data *big, const value_data *complex) {
    double real = 0;
    return real_part_alone({complex->bytes(), complex->size}, &real) && number_equals_block(real, big);
}

inline bool equal_data(const value_data *a, const value_data *b) {
    constexpr auto complex = static_cast<std::uint8_t>(value_kind::complex);
    constexpr auto big = static_cast<std::uint8_t>(value_kind::big_integer);
    if (a->head.kind == big && b->head.kind == complex)
        return big_equals_complex(a, b);
    if (a->head.kind == complex && b->head.kind == big)
        return big_equals_complex(b, a);
    if (a->head.kind != b->head.kind || a->head.type != b->head.type)
        return false;
    if (a->head.kind == complex)
        return equals_complex({a->bytes(), a->size}, {b->bytes(), b->size});
    return a->size == b->size && (a->head.flags & flag_negative) == (b->head.flags & flag_negative) &&
           std::memcmp(a->bytes(), b->bytes(), a->size) == 0;
}

inline bool equal_tuples(const value_tuple *a, const value_tuple *b) { // as deep as hashable ones are: 200
    if (a->count != b->count || a->hash != b->hash)
        return false;
    for (std::uint32_t i = 0; i < a->count; ++i)
        if (!equal_keys(a->items()[i], b->items()[i]))
            return false;
    return true;
}

// Whether two hashable values are one key.
inline bool equal_keys(value a, value b) {
    if (same(a, b))
        return true;
    if (!a.is_block() && !b.is_block())
        return is_number(a) && is_number(b) && number_of(a) == number_of(b);
    constexpr auto tuple = static_cast<std::uint8_t>(value_kind::tuple);
    if (!a.is_block() || !b.is_block()) {
        const value word = a.is_block() ? b : a, block = a.is_block() ? a : b;
        return is_number(word) && head_of(block)->kind < tuple &&
               number_equals_block(number_of(word), block_as<const value_data>(block));
    }
    const value_head *left = head_of(a), *right = head_of(b);
    if (left->kind == tuple && right->kind == tuple)
        return equal_tuples(block_as<const value_tuple>(a), block_as<const value_tuple>(b));
    return left->kind < tuple && right->kind < tuple &&
           equal_data(block_as<const value_data>(a), block_as<const value_data>(b));
}

// VA8: a packed container reads as the one it was made from. Whether two hashable values are written alike: 1, 1.0 and
// true are one key, but written differently; so are 0.0 and -0.0.
inline bool identical_keys(value a, value b) {
    if (same(a, b))
        return true;
    if (!a.is_block() || !b.is_block())
        return false;
    const value_head *left = head_of(a), *right = head_of(b);
    constexpr std::uint8_t flags = flag_negative | flag_unhashable;
    if (left->kind != right->kind || left->type != right->type || (left->flags & flags) != (right->flags & flags))
        return false;
    if (left->kind != static_cast<std::uint8_t>(value_kind::tuple)) {
        const auto *one = block_as<const value_data>(a), *other = block_as<const value_data>(b);
        return left->kind < static_cast<std::uint8_t>(value_kind::tuple) && one->size == other->size &&
               std::memcmp(one->bytes(), other->bytes(), one->size) == 0;
    }
    const auto *one = block_as<const value_tuple>(a), *other = block_as<const value_tuple>(b);
    bool good = one->count == other->count && one->hash == other->hash;
    for (std::uint32_t i = 0; i < one->count && good; ++i)
        good = identical_keys(one->items()[i], other->items()[i]);
    return good;
}

// VA8: a packed container reads as the one it was made from. Whether it is the tuple of these keys, written alike:
// dicts with the same keys share a shape.
inline bool is_tuple_of(value stored, const value_key &key) {
    const std::size_t count = key.data.size() / sizeof(value);
    const auto *parts = reinterpret_cast<const value *>(key.data.data());
    const auto *tuple = block_as<const value_tuple>(stored);
    if (!stored.is_block() || tuple->head.kind != static_cast<std::uint8_t>(value_kind::tuple) ||
        tuple->count != count || tuple->hash != key.hash)
        return false;
    for (std::size_t i = 0; i < count; ++i)
        if (!(fault("equal_keys_share_a_shape") ? equal_keys(tuple->items()[i], parts[i])
                                                : identical_keys(tuple->items()[i], parts[i])))
            return false;
    return true;
}

// Whether a stored key is the one to look up. If the hashes are equal, it mostly is.
inline bool matches(value stored, const value_key &key) {
    if (!key.word.is_nothing())
        return key.exact ? identical_keys(stored, key.word) : equal_keys(stored, key.word);
    if (key.kind == value_kind::big_integer && stored.is_real())
        return equals_real(key.data, key.negative, stored.as_real());
    if (key.kind == value_kind::tuple)
        return is_tuple_of(stored, key);
    if (!stored.is_block())
        return false;
    const auto *data = block_as<const value_data>(stored);
    double real = 0;
    if (key.kind == value_kind::big_integer && data->head.kind == static_cast<std::uint8_t>(value_kind::complex))
        return real_part_alone({data->bytes(), data->size}, &real) && equals_real(key.data, key.negative, real);
    if (data->head.kind != static_cast<std::uint8_t>(key.kind))
        return false;
    if (data->hash != key.hash || data->size != key.data.size())
        return false;
    if (key.kind == value_kind::complex)
        return equals_complex({data->bytes(), data->size}, key.data);
    return data->head.type == key.type && ((data->head.flags & flag_negative) != 0) == key.negative &&
           std::memcmp(data->bytes(), key.data.data(), data->size) == 0;
}

// The salt of each kind, so that a text and the same bytes do not collide.
inline std::uint64_t salt_of(value_kind kind, std::uint16_t type) {
    return kind == value_kind::text ? 0 : static_cast<std::uint64_t>(kind) << 16 | type;
}

inline std::uint32_t hash_data(const value_hasher &hasher, value_kind kind, std::uint16_t type, std::string_view data,
                               bool negative) {
    if (kind == value_kind::big_integer)
        return hasher.number(rest_of(data, negative));
    if (kind == value_kind::complex) {
        double parts[2];
        std::memcpy(parts, data.data(), sizeof parts);
        if (parts[1] == 0)
            return hasher.number(rest_of(parts[0]));
        parts[0] = parts[0] == 0 ? 0.0 : parts[0]; // -0.0 equals it
        return hasher.bytes({reinterpret_cast<const char *>(parts), sizeof parts}, salt_of(kind, type));
    }
    return hasher.bytes(data, salt_of(kind, type));
}

// The hash of a hashable value.
inline std::uint32_t hash_of(const value_hasher &hasher, value v) {
    if (v.is_short_text() || v.is_short_bytes())
        return hasher.bytes(v.short_view(), salt_of(kind_of(v), 0));
    if (v.is_integer())
        return hasher.number(rest_of(v.as_integer()));
    if (v.is_real())
        return hasher.number(rest_of(v.as_real()));
    if (v.is_boolean())
        return hasher.number(rest_of(std::int64_t{v.as_boolean()}));
    if (!v.is_block())
        return hasher.end(v.bits());
    return block_as<const value_data>(v)->hash; // a tuple's hash has the same offset
}

// Containers and arrays are not hashable, nor are blocks with flag_unhashable.
inline bool is_hashable(value v) {
    if (!v.is_block())
        return !v.is_nothing();
    return kind_byte(v) <= static_cast<std::uint8_t>(value_kind::tuple) && !(head_of(v)->flags & flag_unhashable);
}

} // namespace detail
} // namespace v0
} // namespace taiyen

#endif
