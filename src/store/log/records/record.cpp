// Writes records. Changed words are gathered, without a branch for each, until there are enough for an item, whose
// smallest form is then computed exactly. Long runs of words that changed completely, or became zero, bypass that.
#include "record.hpp"

#include "record_decode.hpp"
#include "record_form.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

namespace taiyen {
namespace {

constexpr size_t block_words = 4;     // compared at once in long ranges
constexpr size_t run_words = 16;      // from which a run is an item of its own: its head is smaller than so many tokens
constexpr size_t copied_words = 4096; // at once, while the cache still holds what was compared
constexpr unsigned full_bytes = 6;    // a word with so many changed bytes is as cheap whole
// A store writes a whole word, and the output advances by less. The nine bytes for each word cover that already: a
// margin.
constexpr size_t scribble_bytes = 8;

struct mask_shape {
    uint8_t token; // kind
    uint8_t bytes; // that follow the token
    uint8_t changed;
};

constexpr std::array<mask_shape, 256> make_shapes(bool near) {
    std::array<mask_shape, 256> shapes{};
    for (unsigned mask = 0; mask < shapes.size(); mask++) {
        unsigned changed = static_cast<unsigned>(std::popcount(mask));
        mask_shape best{token_masked, static_cast<uint8_t>(1 + changed), static_cast<uint8_t>(changed)};
        for (uint8_t kind = 1; kind < 16; kind++) {
            token_field field = token_fields[kind];
            bool covers = (mask & ~(((1u << field.bytes) - 1) << field.start)) == 0 &&
                          !(near && kind >= token_near && kind <= token_near_last);
            // Where they are equal, low bytes are better than a mask: the next pointer can be near them.
            if (covers && (field.bytes < best.bytes || (field.bytes == best.bytes && best.token == token_masked))) {
                best.token = kind;
                best.bytes = field.bytes;
            }
        }
        shapes[mask] = best;
    }
    return shapes;
}
constexpr std::array<mask_shape, 256> shapes = make_shapes(false), near_shapes = make_shapes(true);

// The top bit of each byte that is zero.
uint64_t bytes_that_are_zero(uint64_t difference) {
    constexpr uint64_t sevens = 0x7f7f7f7f7f7f7f7f;
    return ~(((difference & sevens) + sevens) | difference | sevens);
}

// A bit for each byte that is not zero.
uint8_t bits_of_changed_bytes(uint64_t difference) {
    return static_cast<uint8_t>(~(((bytes_that_are_zero(difference) >> 7) * 0x0102040810204080) >> 56));
}

unsigned bytes_of_bits(uint64_t bits) {
    return static_cast<unsigned>((bits + 7) / 8);
}

unsigned width_of(uint64_t value) {
    return static_cast<unsigned>(std::bit_width(value));
}

// A seventh of the width, rounded up, correct for all possible widths: in fewer instructions than a division by 7.
unsigned varint_bytes(uint64_t value) {
    return (width_of(value | 1) * 9 + 64) / 64;
}

uint8_t *put_long_varint(uint8_t *at, uint64_t value) {
    for (; value >= 0x80; value >>= 7)
        *at++ = static_cast<uint8_t>(value | 0x80);
    *at++ = static_cast<uint8_t>(value);
    return at;
}

// Up to eight bytes without a branch for each: groups of 7 bits are moved apart, by halves.
uint8_t *put_varint(uint8_t *at, uint64_t value) {
    if (value >> 56)
        return put_long_varint(at, value);
    unsigned bytes = varint_bytes(value);
    value = (value & 0x000000000fffffff) | (value & 0x00fffffff0000000) << 4;
    value = (value & 0x00003fff00003fff) | (value & 0x0fffc0000fffc000) << 2;
    value = (value & 0x007f007f007f007f) | (value & 0x3f803f803f803f80) << 1;
    value |= 0x0080808080808080 & ((uint64_t{1} << (8 * (bytes - 1))) - 1);
    memcpy(at, &value, sizeof value);
    return at + bytes;
}

uint8_t *put_low_bytes(uint8_t *at, uint64_t value, unsigned bytes) {
    memcpy(at, &value, sizeof value);
    return at + bytes;
}

uint8_t *put_masked(uint8_t *at, uint64_t value, uint8_t mask) {
    for (unsigned i = 0; i < 8; i++) {
        *at = static_cast<uint8_t>(value >> (8 * i));
        at += (mask >> i) & 1;
    }
    return at;
}

uint8_t *put_head(uint8_t *at, unsigned item, uint64_t count) {
    bool small = count < 16;
    *at++ = static_cast<uint8_t>(item << 4 | (small ? count : 0));
    return small ? at : put_varint(at, count);
}

struct encoder {
    uint8_t *at;
    uint64_t next = 0; // the word after the last one written
    record_words words;
};

struct item_choice {
    unsigned item;
    unsigned width;
    bool first_apart;
    uint8_t mask;   // of all words together
    bool pointers;  // near tokens may be smaller
    uint64_t bytes; // after the head
};

// Whether it may be a pointer: others are rarely near each other, and not worth a look.
bool like_pointer(uint64_t value) {
    return (value & 0xffff000000000007) == 0;
}

// Computes the words' masks; returns how many bytes changed. *wide: how many of them near tokens may spare.
uint64_t make_masks(record_words &g, uint64_t *wide) {
    uint64_t changed = 0;
    *wide = 0;
    for (size_t i = 0; i < g.count; i++) {
        g.mask[i] = bits_of_changed_bytes(g.difference[i]);
        const uint8_t bytes = shapes[g.mask[i]].changed;
        changed += bytes;
        *wide += bytes >= token_wide && like_pointer(g.value[i]) ? bytes - 1u : 0;
    }
    return changed;
}

// Chooses the smallest form with a mask, if one is smaller; returns the bytes of the values.
uint64_t choose_masked(const record_words &g, uint64_t differences, uint64_t changed, uint64_t bytes,
                       item_choice *chosen) {
    uint8_t mask = bits_of_changed_bytes(differences);
    if (uint64_t one_mask = 1 + g.count * shapes[mask].changed; one_mask < bytes) {
        bytes = one_mask;
        chosen->item = static_cast<unsigned>(record_item::one_mask);
        chosen->mask = mask;
    }
    if (uint64_t masks = g.count + changed; masks < bytes) {
        bytes = masks;
        chosen->item = static_cast<unsigned>(record_item::masks);
    }
    return bytes;
}

// The bytes of a token beyond its first byte and the bytes of its word.
unsigned far_bytes(uint64_t distance) {
    return distance > record_near_max ? varint_bytes(distance - record_near_max - 1) : 0;
}

uint64_t bytes_as_tokens(const record_words &g) {
    uint64_t bytes = g.count;
    for (size_t i = 0; i < g.count; i++)
        bytes += far_bytes(g.number[i]) + (g.value[i] ? shapes[g.mask[i]].bytes : 0);
    return bytes;
}

// Computes distances (from the word after the one before), masks where they matter, and the size of each form. If at
// most one byte of each word changed, no mask is better. The size as tokens is computed only where it could be smaller:
// a word that does not become zero needs the bytes that changed, and the token of the nearest word is the shortest.
item_choice choose(record_words &g, uint64_t next) {
    const size_t count = g.count;
    const uint64_t first = g.number[0] - next;
    uint64_t nearest = first, distances = 0, differences = g.difference[0], values = g.value[0];
    bool zero = values == 0;
    next = g.number[0] + 1;
    g.number[0] = first;
    for (size_t i = 1; i < count; i++) {
        uint64_t distance = g.number[i] - next;
        next = g.number[i] + 1;
        g.number[i] = distance;
        distances |= distance;
        nearest = std::min(nearest, distance);
        differences |= g.difference[i];
        values |= g.value[i];
        zero |= g.value[i] == 0;
    }
    unsigned low = values ? bytes_of_bits(width_of(differences)) : 0; // all words become zero
    item_choice chosen{low, 0, false, 0, false, 0};
    uint64_t wide = 0, changed = low > 1 ? make_masks(g, &wide) : count;
    uint64_t bytes = low > 1 ? choose_masked(g, differences, changed, count * low, &chosen) : count * low;

    unsigned width_apart = width_of(distances), width_all = width_of(distances | first);
    unsigned apart = varint_bytes(first) + bytes_of_bits((count - 1) * width_apart);
    unsigned together = bytes_of_bits(count * width_all);
    chosen.first_apart = apart < together;
    chosen.width = chosen.first_apart ? width_apart : width_all;
    bytes += 1 + (chosen.first_apart ? apart : together);

    if (count * (1 + far_bytes(nearest)) + (zero ? 0 : changed - wide) < bytes) {
        if (low <= 1)
            make_masks(g, &wide);
        if (uint64_t tokens = bytes_as_tokens(g); tokens < bytes) {
            bytes = tokens;
            chosen.item = static_cast<unsigned>(record_item::tokens);
        }
        chosen.pointers = wide > 7; // more than one
    }
    chosen.bytes = bytes;
    return chosen;
}

uint8_t *put_token(uint8_t *at, uint64_t distance, uint8_t kind) {
    bool near = distance <= record_near_max;
    *at++ = static_cast<uint8_t>((near ? distance : record_near_max + 1) << 4 | kind);
    return near ? at : put_varint(at, distance - record_near_max - 1);
}

// Bytes of a value as its distance from the one before; more than a near token has: it is too far, or no pointer.
unsigned near_bytes(uint64_t value, uint64_t before) {
    const uint64_t apart = value - before;
    const uint64_t magnitude = (apart ^ static_cast<uint64_t>(static_cast<int64_t>(apart) >> 63)) >> 3;
    return like_pointer(value) && apart % 8 == 0 ? (width_of(magnitude) + 8) / 8 : 8;
}

uint8_t *put_near_tokens(uint8_t *at, const record_words &g) {
    const size_t count = g.count; // in a register: `at` may alias any memory
    uint64_t before = 0;
    for (size_t i = 0; i < count; i++) {
        const uint64_t value = g.value[i];
        const mask_shape shape = value ? near_shapes[g.mask[i]] : mask_shape{};
        const unsigned near = shape.bytes >= token_wide ? near_bytes(value, before) : 8;
        if (near < shape.bytes && near <= token_near_last - token_near + 1) {
            at = put_token(at, g.number[i], static_cast<uint8_t>(token_near + near - 1));
            at = put_low_bytes(at, (value - before) >> 3, near);
            before = value;
            continue;
        }
        at = put_token(at, g.number[i], shape.token);
        if (shape.token == token_masked) {
            *at++ = g.mask[i];
            at = put_masked(at, value, g.mask[i]);
        } else {
            at = put_low_bytes(at, value >> (8 * token_fields[shape.token].start), shape.bytes);
        }
        if (token_is_wide(shape.token))
            before = value & low_bytes(shape.bytes);
    }
    return at;
}

uint8_t *put_tokens(uint8_t *at, const record_words &g) {
    const size_t count = g.count; // in a register: `at` may alias any memory
    for (size_t i = 0; i < count; i++) {
        uint64_t value = g.value[i];
        uint8_t kind = value ? shapes[g.mask[i]].token : token_zero;
        at = put_token(at, g.number[i], kind);
        if (kind == token_masked) {
            *at++ = g.mask[i];
            at = put_masked(at, value, g.mask[i]);
        } else {
            at = put_low_bytes(at, value >> (8 * token_fields[kind].start), token_fields[kind].bytes);
        }
    }
    return at;
}

uint8_t *put_distances(uint8_t *at, const record_words &g, item_choice chosen) {
    const size_t count = g.count; // in a register: `at` may alias any memory
    if (chosen.first_apart)
        at = put_varint(at, g.number[0]);
    uint64_t pending = 0; // fewer than 8 bits between two words
    unsigned bits = 0;
    for (size_t i = chosen.first_apart; i < count; i++) {
        pending |= g.number[i] << bits;
        bits += chosen.width;
        at = put_low_bytes(at, pending, bits / 8);
        pending >>= bits & ~7u;
        bits &= 7;
    }
    return put_low_bytes(at, pending, bits != 0);
}

uint8_t *put_values(uint8_t *at, const record_words &g, item_choice chosen) {
    const size_t count = g.count; // in a register: `at` may alias any memory
    if (chosen.item <= static_cast<unsigned>(record_item::all_bytes)) {
        for (size_t i = 0; i < count; i++)
            at = put_low_bytes(at, g.value[i], chosen.item);
    } else if (chosen.item == static_cast<unsigned>(record_item::one_mask)) {
        for (size_t i = 0; i < count; i++)
            at = put_masked(at, g.value[i], chosen.mask);
    } else {
        for (size_t i = 0; i < count; i++)
            at = put_masked(at, g.value[i], g.mask[i]);
    }
    return at;
}

// Writes an item of the words, and turns them into distances; next: the word after the last one written.
uint8_t *put_item(uint8_t *at, record_words &g, uint64_t next) {
    item_choice chosen = choose(g, next);
    if (chosen.pointers) { // how many bytes they take is known once they are written
        const uint8_t *start = put_head(at, static_cast<unsigned>(record_item::near_tokens), g.count);
        uint8_t *end = put_near_tokens(at + (start - at), g);
        if (static_cast<uint64_t>(end - start) < chosen.bytes)
            return end;
    }
    at = put_head(at, chosen.item, g.count);
    if (chosen.item == static_cast<unsigned>(record_item::tokens))
        return put_tokens(at, g);
    *at++ = static_cast<uint8_t>(chosen.width | (chosen.first_apart ? record_first_apart : 0));
    if (chosen.item == static_cast<unsigned>(record_item::one_mask))
        *at++ = chosen.mask;
    at = put_distances(at, g, chosen);
    if (chosen.item == static_cast<unsigned>(record_item::masks)) {
        memcpy(at, g.mask, g.count);
        at += g.count;
    }
    return put_values(at, g, chosen);
}

// Writes what was gathered; returns 0, the new count.
size_t flush(encoder &e, size_t count) {
    if (count == 0)
        return 0;
    e.words.count = count;
    uint64_t after = e.words.number[count - 1] + 1;
    e.at = put_item(e.at, e.words, e.next);
    e.next = after;
    return 0;
}

// Two words at once: every 64-bit processor has such registers, and without them the compiler emulates them.
using pair = uint64_t __attribute__((vector_size(16)));
using pair_bytes = uint8_t __attribute__((vector_size(16)));

pair load_pair(const uint64_t *words) {
    pair loaded;
    memcpy(&loaded, words, sizeof loaded);
    return loaded;
}
pair where_zero(pair words) {
    return reinterpret_cast<pair>(words == 0);
}
pair where_byte_zero(pair words) {
    return reinterpret_cast<pair>(reinterpret_cast<pair_bytes>(words) == 0);
}
bool any(pair words) {
    return (words[0] | words[1]) != 0;
}

// A range, read without branches for its variants: without `before` the old words are zeros, and a whole range differs
// in all bits.
struct range_view {
    explicit range_view(const word_range &range)
        : now(range.now), before(range.before ? range.before : zeros), kept(range.before ? SIZE_MAX : 0),
          forced(range.whole ? UINT64_MAX : 0) {}
    uint64_t difference(size_t i) const { return (now[i] ^ before[i & kept]) | forced; }
    pair differences(size_t i) const { return (load_pair(now + i) ^ load_pair(before + (i & kept))) | forced; }

    static constexpr uint64_t zeros[2] = {};
    const uint64_t *now;
    const uint64_t *before;
    size_t kept; // mask of an index
    uint64_t forced;
};

// Returns how many are gathered: in a register, where a member would be stored and loaded for each word.
size_t gather(record_words &g, size_t count, uint64_t word, uint64_t value, uint64_t difference) {
    g.number[count] = word;
    g.value[count] = value;
    g.difference[count] = difference;
    return count + (difference != 0);
}

// Properties that four words share, without a branch for each.
struct block {
    static_assert(block_words == 4);
    block(const range_view &view, size_t i)
        : values{load_pair(view.now + i), load_pair(view.now + i + 2)}, differences{view.differences(i),
                                                                                    view.differences(i + 2)} {}

    bool nothing() const { return !any(differences[0] | differences[1]); }
    // In each word at most one byte is unchanged, and no word is zero.
    bool full() const {
        pair first = where_byte_zero(differences[0]) & 0x8080808080808080;
        pair second = where_byte_zero(differences[1]) & 0x8080808080808080;
        pair unchanged = (first & (first - 1)) | (second & (second - 1));
        return !any(unchanged | where_zero(values[0]) | where_zero(values[1]));
    }
    bool cleared() const {
        return !any(values[0] | values[1] | where_zero(differences[0]) | where_zero(differences[1]));
    }

    pair values[2];
    pair differences[2];
};

// Where the run of words to be logged whole ends that reached i: a word that is cheaper in another form ends it only if
// it is unchanged, or the next is cheaper too.
size_t full_run_end(const range_view &view, size_t i, size_t count) {
    auto cheaper = [&](size_t k) {
        return view.now[k] == 0 || shapes[bits_of_changed_bytes(view.difference(k))].changed < full_bytes;
    };
    for (;; i++) {
        while (i + block_words <= count && block(view, i).full())
            i += block_words;
        if (i == count || view.difference(i) == 0 || (cheaper(i) && (i + 1 == count || cheaper(i + 1))))
            return i;
    }
}

size_t zero_run_end(const range_view &view, size_t i, size_t count) {
    while (i < count && view.now[i] == 0 && view.difference(i) != 0)
        i++;
    return i;
}

void put_run(encoder &e, unsigned item, uint64_t first, uint64_t count) {
    e.at = put_head(e.at, item, count);
    *e.at++ = record_first_apart;
    e.at = put_varint(e.at, first - e.next);
    e.next = first + count;
}

void put_full_run(encoder &e, const word_range &range, size_t from, size_t to) {
    put_run(e, static_cast<unsigned>(record_item::all_bytes), range.first + from, to - from);
    size_t bytes = (to - from) * sizeof(uint64_t);
    memcpy(e.at, range.now + from, bytes);
    e.at += bytes;
}

void put_zero_run(encoder &e, const word_range &range, size_t from, size_t to) {
    while (from < to) {
        size_t n = std::min<size_t>(to - from, record_zero_words_max);
        put_run(e, 0, range.first + from, n);
        from += n;
    }
}

// Gathers the words of a short range, or the rest of a long one. `count` are gathered; returns the new count.
size_t gather_short(encoder &e, size_t count, const word_range &range, size_t from) {
    range_view view(range);
    for (size_t i = from; i < range.count; i++) {
        if (count == record_words_max)
            count = flush(e, count);
        count = gather(e.words, count, range.first + i, view.now[i], view.difference(i));
    }
    return count;
}

size_t gather_long(encoder &e, size_t count, const word_range &range) {
    range_view view(range);
    size_t full = 0, cleared = 0; // words at the end of what was gathered, in whole blocks
    size_t i = 0;
    while (i + block_words <= range.count) {
        block next(view, i);
        if (next.nothing()) {
            i += block_words;
            full = cleared = 0;
            continue;
        }
        if (count > record_words_max - block_words) {
            count = flush(e, count);
            full = cleared = 0;
        }
        for (size_t end = i + block_words; i < end; i++)
            count = gather(e.words, count, range.first + i, view.now[i], view.difference(i));
        full = next.full() ? full + block_words : 0;
        cleared = next.cleared() ? cleared + block_words : 0;
        if (full + cleared < run_words) // one of them is 0
            continue;
        count = flush(e, count - run_words);
        size_t from = i - run_words;
        if (full) {
            i = full_run_end(view, i, std::min<size_t>(range.count, from + copied_words));
            put_full_run(e, range, from, i);
        } else {
            i = zero_run_end(view, i, range.count);
            put_zero_run(e, range, from, i);
        }
        full = cleared = 0;
    }
    return gather_short(e, count, range, i);
}

uint8_t *put_bytes(uint8_t *at, const void *bytes, uint32_t count) {
    at = put_varint(at, count);
    if (count)
        memcpy(at, bytes, count);
    return at + count;
}

// Blocks are encoded by their distance from the last one, in either direction: small numbers of either sign are short
// varints.
uint8_t *put_number(uint8_t *at, uint64_t word, uint64_t *last) {
    auto distance = static_cast<int64_t>(word - *last);
    *last = word;
    return put_varint(at, static_cast<uint64_t>(distance) << 1 ^ static_cast<uint64_t>(distance >> 63));
}

constexpr uint8_t operation_head(unsigned kind) {
    return static_cast<uint8_t>(static_cast<unsigned>(record_item::operation) << 4 | kind);
}

// How many allocations from here on are of blocks of one size, one right after the other.
unsigned alloc_run(const record_operation *operations, size_t count) {
    unsigned run = 1;
    const record_operation &first = operations[0];
    if (first.kind != operation_kind::alloc || first.size == 0 || first.size % 8 != 0)
        return 1;
    while (run < count && run < record_alloc_run_max && operations[run].kind == operation_kind::alloc &&
           operations[run].size == first.size && operations[run].word == first.word + run * (first.size / 8))
        run++;
    return run;
}

uint8_t *put_alloc_run(uint8_t *at, const record_operation &first, unsigned run, uint64_t *last) {
    *at++ = operation_head(record_alloc_run + run - 2);
    at = put_varint(put_number(at, first.word, last), first.size);
    *last += (run - 1) * (first.size / 8);
    return at;
}

uint8_t *put_operation(uint8_t *at, const record_operation &operation, uint64_t *last) {
    bool removed = operation.kind == operation_kind::root && operation.null_address;
    uint8_t kind = removed ? record_root_removed : static_cast<uint8_t>(operation.kind);
    *at++ = operation_head(kind);
    switch (operation.kind) {
    case operation_kind::alloc:
    case operation_kind::resize:
        return put_varint(put_number(at, operation.word, last), operation.size);
    case operation_kind::free:
        return put_number(at, operation.word, last);
    case operation_kind::root:
        if (!removed)
            at = put_number(at, operation.word, last);
        return put_bytes(at, operation.bytes, operation.byte_count);
    case operation_kind::procedure:
        return put_bytes(put_varint(at, operation.procedure), operation.bytes, operation.byte_count);
    }
    return at;
}

} // namespace

size_t record_bound(const record_part &part) {
    if (part.words)
        return record_words_bound(part.words->count);
    constexpr size_t operation_bytes = 1 + 10 + 10; // with the longest varints
    constexpr size_t range_bytes = 10;              // the distance to it, and a little
    size_t bytes = 1 + 2 + scribble_bytes;          // where the part starts; the last item's head
    for (size_t i = 0; i < part.operation_count; i++)
        bytes += operation_bytes + part.operations[i].byte_count;
    // Never more than items of tokens take: a byte and its bytes for each word, and two bytes for the head of each
    // item, of which there are at most two for run_words words.
    for (size_t i = 0; i < part.range_count; i++)
        bytes += range_bytes + size_t{part.ranges[i].count} * 9 + part.ranges[i].count / 8;
    return bytes;
}

size_t record_encode_words(record_words &words, uint8_t *out) {
    return static_cast<size_t>(put_item(out, words, 0) - out);
}

size_t record_encode(const record_part &part, bool first, uint8_t *out) {
    if (part.words)
        return part.words->count ? record_encode_words(*part.words, out) : 0;
    encoder e;
    uint8_t *start = out;
    if (!first)
        *start++ = operation_head(record_part_starts);
    e.at = start;
    uint64_t last = 0;
    for (size_t i = 0; i < part.operation_count;) {
        const record_operation &operation = part.operations[i];
        const unsigned run = alloc_run(&operation, part.operation_count - i);
        e.at = run > 1 ? put_alloc_run(e.at, operation, run, &last) : put_operation(e.at, operation, &last);
        i += run;
    }
    size_t count = 0;
    for (size_t i = 0; i < part.range_count; i++) {
        const word_range &range = part.ranges[i];
        count = range.count < run_words ? gather_short(e, count, range, 0) : gather_long(e, count, range);
    }
    flush(e, count);
    return e.at == start ? 0 : static_cast<size_t>(e.at - out);
}

size_t record_put_prepared(const void *description, size_t bytes, uint8_t *out) {
    uint8_t *at = out;
    *at++ = operation_head(record_prepared);
    return static_cast<size_t>(put_bytes(at, description, static_cast<uint32_t>(bytes)) - out);
}

namespace {

size_t put_beginning(const record_beginning &before, uint8_t *out) {
    const size_t head = before.description ? record_put_prepared(before.description, before.description_bytes, out) : 0;
    if (before.parts_bytes)
        memcpy(out + head, before.parts, before.parts_bytes);
    return head + before.parts_bytes;
}

} // namespace

size_t record_encode_whole(const record_beginning &before, const record_part &part, uint8_t *out) {
    const size_t bytes = put_beginning(before, out);
    return bytes + record_encode(part, !before.parts_bytes, out + bytes);
}

void record_put_pending(uint8_t *out) {
    *out = operation_head(record_pending);
}

void record_put_outcome(record_outcome outcome, uint8_t *out) {
    out[0] = operation_head(record_outcome_follows);
    out[1] = static_cast<uint8_t>(outcome);
}

ty_status record_inspect(const uint8_t *bytes, size_t size, record_view *view) {
    *view = {record_role::plain, record_outcome::rolled_back, nullptr, 0, bytes, size};
    if (size == 0)
        return TY_OK;
    if (bytes[0] == operation_head(record_outcome_follows)) {
        if (size != record_outcome_bytes || bytes[1] > static_cast<uint8_t>(record_outcome::committed))
            return TY_E_DAMAGED;
        *view = {record_role::outcome, static_cast<record_outcome>(bytes[1]), nullptr, 0, bytes + size, 0};
    } else if (bytes[0] == operation_head(record_pending)) {
        *view = {record_role::pending,         record_outcome::rolled_back, nullptr, 0,
                 bytes + record_pending_bytes, size - record_pending_bytes};
    } else if (bytes[0] == operation_head(record_prepared)) {
        record_cursor cursor{bytes + 1, bytes + size};
        uint64_t length = 0;
        if (!cursor.long_varint(&length) || length > description_max || length > cursor.left())
            return TY_E_DAMAGED;
        const uint8_t *parts = cursor.at + length;
        *view = {record_role::prepared,
                 record_outcome::rolled_back,
                 cursor.at,
                 length,
                 parts,
                 static_cast<size_t>(cursor.end - parts)};
    }
    return TY_OK;
}

// X27: a prepared record, pending ones before it, and their outcome are neighbours in the log.
ty_status record_order::step(const record_view &view) {
    const bool ends = view.role == record_role::outcome;
    const bool unexpected = ends ? none() || (view.outcome == record_outcome::committed && !prepared_) : prepared_;
    if (unexpected && !(fault("anything_follows_a_prepared_record") && !ends))
        return TY_E_DAMAGED;
    if (view.role == record_role::plain && pending_ != 0)
        return TY_E_DAMAGED;
    if (ends)
        *this = {};
    prepared_ = view.role == record_role::prepared;
    if (view.role == record_role::pending && ++pending_ > record_pending_max)
        return TY_E_DAMAGED;
    return TY_OK;
}

ty_status record_damaged(uint64_t offset) {
    return failure(TY_E_DAMAGED, "read a record of the log").at(nullptr, offset);
}

} // namespace taiyen
