// Taiyen in C++: the layout of values in a heap, header-only. Part of values.hpp, which includes it.
//
// Every block of values begins with a head of 8 bytes. Texts and the like, tuples and arrays are one block and never
// change. A container is a block of 32 bytes, whose address stays, and a body that is replaced when it grows.
#ifndef TAIYEN_VALUE_LAYOUT_HPP
#define TAIYEN_VALUE_LAYOUT_HPP

#include <taiyen/detail/fault.hpp>
#include <taiyen/value.hpp>

namespace taiyen {
inline namespace v0 {

// The version of the layouts below, and of the hashes stored in them. A heap with another version is refused.
inline constexpr std::uint32_t values_format_version = 1;

namespace detail {

// Further kinds of blocks. They continue the numbers of value_kind.
enum : std::uint8_t {
    body_items = 32,
    body_ring = 33,
    body_table = 34,
    block_space = 35,
    body_suspects = 36,
    body_records = 37,
    block_packed_dict = 40,
    block_packed_list = 41
};

// The first byte of a place in a packed block (value_packed.hpp) that a value may refer to.
enum : std::uint8_t {
    item_none = 64,
    item_false = 65,
    item_true = 66,
    item_integer = 67,
    item_real = 71,
    item_decimal = 72,
    item_text = 81,
    item_bytes = 82,
    item_list = 83,
    item_dict = 84,
    item_tuple = 85,
    item_short_list = 96,
    item_short_text = 128,
    item_small_integer = 192
};

enum : std::uint8_t {
    flag_ascii = 1,      // of a text
    flag_negative = 2,   // of a big integer
    flag_unhashable = 4, // of a tuple or opaque bytes
    flag_emptied = 8,    // of a dead block: what it referred to is released
    flag_single = 16,    // of records: a single one that stands alone
    flag_dead = 128
};

// A dead block has the address of the next one in its upper 48 bits.
struct value_head {
    std::uint8_t kind;
    std::uint8_t flags;
    std::uint16_t type; // opaque: the user's type number. Tuple: nesting depth of tuples. Table: words of an entry.
                        // Packed dict: its shape; packed list: its count. Records: their layout; their body: bytes of
                        // each record
    std::uint32_t refs; // how many stored values refer to the block; saturates at the maximum. Bodies: their capacity
};

// Text, bytes, big integer (the magnitude, lowest byte first), complex (two numbers), opaque.
struct value_data {
    value_head head;
    std::uint32_t size;
    std::uint32_t hash;
    const char *bytes() const { return reinterpret_cast<const char *>(this + 1); }
    char *bytes() { return reinterpret_cast<char *>(this + 1); }
};

struct value_tuple {
    value_head head;
    std::uint32_t count;
    std::uint32_t hash;
    const value *items() const { return reinterpret_cast<const value *>(this + 1); }
    value *items() { return reinterpret_cast<value *>(this + 1); }
};

struct value_container {
    value_head head;
    value_head *body;      // NULL: empty
    std::uint32_t count;   // values; of a dict, pairs
    std::uint32_t suspect; // its place in the list of suspects, which may be in cycles, from 1 on; 0: not in the list
    std::uint32_t stamp;   // changes with each change of the count or of the order
    std::uint32_t id;      // unique among the last four thousand million containers and arrays of the heap
};

struct value_items { // of a list
    value_head head;
    const value *slots() const { return reinterpret_cast<const value *>(this + 1); }
    value *slots() { return reinterpret_cast<value *>(this + 1); }
};

struct value_ring { // of a deque
    value_head head;
    std::uint32_t first;
    std::uint32_t unused;
    const value *slots() const { return reinterpret_cast<const value *>(this + 1); }
    value *slots() { return reinterpret_cast<value *>(this + 1); }
};

// The body of a dict or set: entries in insertion order, and in front of them an index with slots of 1, 2 or 4 bytes. A
// slot has the number of its entry plus 1, and above that bits of the hash. A small table has no index.
struct value_table {
    value_head head;
    std::uint32_t used;   // entries, including erased ones
    std::uint32_t filled; // slots of the index
};

struct value_records { // the body of records
    value_head head;
    const char *bytes() const { return reinterpret_cast<const char *>(this + 1); }
    char *bytes() { return reinterpret_cast<char *>(this + 1); }
};

struct value_array {
    value_head head;
    std::uint64_t size; // size of the data, which begins at data_offset
    char type[16];      // the element type, as named by the user
    std::uint32_t item_size;
    std::uint32_t dimensions;
    std::uint64_t shape[8];
    std::uint32_t id; // as of containers
    std::uint32_t reserved;
    static constexpr std::size_t data_offset = 128;
    void *data() { return reinterpret_cast<char *>(this) + data_offset; }
    const void *data() const { return reinterpret_cast<const char *>(this) + data_offset; }
};

struct value_suspects {
    value_head head;
    value_container *const *slots() const { return reinterpret_cast<value_container *const *>(this + 1); }
    value_container **slots() { return reinterpret_cast<value_container **>(this + 1); }
};

// The block at the root "taiyen.values", from which all values are found.
struct value_space {
    value_head head;
    std::uint32_t magic;
    std::uint32_t version;
    std::uint64_t seed[2];
    value root;
    value_head *dead;    // blocks that are to be freed
    std::uint64_t stamp; // changes with each change of a value of the heap
    value_suspects *suspects;
    std::uint32_t suspect_count;
    std::uint32_t last_id;
    value shapes;  // a set of tuples: the keys of packed dicts. None is ever removed
    value layouts; // a set of texts: the layouts of records. None is ever removed
    value kept;    // a list, or dict of lists: values that a program has handles of, and that are stored nowhere else
    std::uint64_t reserved[3];
};

inline constexpr std::uint32_t values_magic = 0x76795454; // "TTyv"
inline constexpr const char *values_root_name = "taiyen.values";

static_assert(sizeof(value) == 8 && sizeof(value_head) == 8);
static_assert(sizeof(value_data) == 16 && sizeof(value_tuple) == 16 && sizeof(value_container) == 32);
static_assert(sizeof(value_items) == 8 && sizeof(value_ring) == 16 && sizeof(value_table) == 16);
static_assert(sizeof(value_array) == 112 && sizeof(value_space) == 120);

// The first byte of what a value refers to, which may be a place within a packed block.
inline std::uint8_t kind_byte(const void *at) {
    return *static_cast<const std::uint8_t *>(at);
}
inline std::uint8_t kind_byte(value v) {
    return kind_byte(v.address());
}
inline value_head *head_of(value v) {
    return static_cast<value_head *>(v.address());
}
inline bool is_container(const value_head &head) {
    return head.kind >= static_cast<std::uint8_t>(value_kind::dict) &&
           head.kind <= static_cast<std::uint8_t>(value_kind::records);
}
template <class T>
T *block_as(value v) {
    return reinterpret_cast<T *>(v.address());
}

} // namespace detail

// Whether a value is a place within a packed block.
inline bool is_item(value v) {
    return v.is_block() && detail::kind_byte(v) >= detail::item_none;
}
// Whether it is a packed container, or one within a packed block.
inline bool is_packed(value v) {
    if (!v.is_block())
        return false;
    const std::uint8_t kind = detail::kind_byte(v);
    return kind >= detail::block_packed_dict &&
           (kind < detail::item_none ||
            (kind >= detail::item_list && kind < detail::item_short_text && kind != detail::item_tuple));
}

namespace detail {

// The kind of a value that is not an ordinary block.
inline value_kind packed_kind(std::uint8_t kind) {
    if (kind == block_packed_dict || kind == item_dict)
        return value_kind::dict;
    if (kind == item_bytes)
        return value_kind::bytes;
    if (kind == item_tuple)
        return value_kind::tuple;
    return kind == item_text || kind >= item_short_text ? value_kind::text : value_kind::list;
}

inline std::string_view item_data(const char *at) {
    const auto code = static_cast<std::uint8_t>(*at);
    if (code >= item_short_text)
        return {at + 1, static_cast<std::size_t>(code - item_short_text)};
    return {at + 2, static_cast<std::uint8_t>(at[1])};
}

} // namespace detail

// The kind of a value.
inline value_kind kind_of(value v) {
    if (v.is_block()) {
        const std::uint8_t kind = detail::kind_byte(v);
        return kind < detail::body_items ? static_cast<value_kind>(kind) : detail::packed_kind(kind);
    }
    if (v.is_integer())
        return value_kind::integer;
    if (v.is_real())
        return value_kind::real;
    if (v.is_short_text())
        return value_kind::text;
    if (v.is_short_bytes())
        return value_kind::bytes;
    if (v.is_none())
        return value_kind::none;
    return v.is_boolean() ? value_kind::boolean : value_kind::nothing;
}

// The bytes of a text, bytes, a big integer, a complex number or opaque bytes: in the heap or in the value itself.
inline std::string_view data_of(const value &v) {
    if (!v.is_block())
        return v.short_view();
    if (is_item(v))
        return detail::item_data(detail::block_as<const char>(v));
    const auto *data = detail::block_as<const detail::value_data>(v);
    return {data->bytes(), data->size};
}
// Not for a temporary: short bytes lie in it.
std::string_view data_of(const value &&v) = delete;

// Whether it is a container: a dict, list, set, deque, or records.
inline bool is_container(value v) {
    return v.is_block() && kind_of(v) >= value_kind::dict;
}

} // namespace v0
} // namespace taiyen

#endif
