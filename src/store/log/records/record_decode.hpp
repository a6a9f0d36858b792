// Reads records: see record.hpp. Nothing in a record is believed before it is checked.
#pragma once

#include "record.hpp"
#include "record_form.hpp"

#include <bit>
#include <cstring>

namespace taiyen {

[[gnu::cold]] ty_status record_damaged(uint64_t offset);

// A position in a record. At least 8 bytes before `end` can be read, whatever the record's size.
struct record_cursor {
    const uint8_t *at;
    const uint8_t *end;

    size_t left() const { return static_cast<size_t>(end - at); }

    // Eight bytes from a position in the record; after its end are zeros.
    uint64_t load(const uint8_t *from) const {
        const uint8_t *last = end - sizeof(uint64_t);
        size_t beyond = from > last ? static_cast<size_t>(from - last) : 0; // at most 8
        uint64_t value;
        memcpy(&value, from - beyond, sizeof value);
        return value >> (4 * beyond) >> (4 * beyond);
    }

    // Up to eight bytes without a branch for each: groups of 7 bits are moved together, by halves.
    bool varint(uint64_t *value) {
        uint64_t read = load(at);
        uint64_t ends = ~read & 0x8080808080808080;
        if (ends == 0)
            return long_varint(value);
        auto bytes = static_cast<size_t>(std::countr_zero(ends) / 8 + 1);
        if (bytes > left())
            return false;
        read &= (ends ^ (ends - 1)) & 0x7f7f7f7f7f7f7f7f;
        read = (read & 0x007f007f007f007f) | (read & 0x7f007f007f007f00) >> 1;
        read = (read & 0x00003fff00003fff) | (read & 0x3fff00003fff0000) >> 2;
        *value = (read & 0x000000000fffffff) | (read & 0x0fffffff00000000) >> 4;
        at += bytes;
        return true;
    }
    [[gnu::noinline]] bool long_varint(uint64_t *value) {
        uint64_t read = 0;
        for (unsigned shift = 0; shift < 64 && at != end; shift += 7) {
            uint8_t byte = *at++;
            if (shift == 63 && byte > 1)
                return false;
            read |= uint64_t{byte & 0x7fu} << shift;
            if (byte < 0x80) {
                *value = read;
                return true;
            }
        }
        return false;
    }

    // A count in the lower half of an item's first byte, or after it. Zero is invalid.
    bool count(uint8_t head, uint64_t *value) {
        *value = head & 15;
        return (*value || varint(value)) && *value;
    }

    // The bytes of the mask, as many as bytes_of_mask, which are in the record.
    uint64_t masked(uint8_t mask) {
        uint64_t from = load(at), value = 0;
        at += bytes_of_mask(mask);
        for (unsigned i = 0; i < 8; i++) {
            uint64_t set = (mask >> i) & 1;
            value |= (from & 0xff & (0 - set)) << (8 * i);
            from >>= 8 * set;
        }
        return value;
    }
    static size_t bytes_of_mask(uint8_t mask) {
        constexpr uint64_t ones = 0x0101010101010101;
        return (byte_mask(mask) & ones) * ones >> 56;
    }
};

// Reads the items of a record.
template <class Sink>
class record_decoder {
public:
    record_decoder(const uint8_t *bytes, size_t size, record_scope scope, Sink &sink)
        : cursor_{bytes, bytes + size}, scope_(scope), sink_(sink) {
        if (scope_.end > record_word_limit)
            scope_.end = record_word_limit;
    }

    // How far it got: where the damage is.
    const uint8_t *at() const { return cursor_.at; }

    // TY_E_DAMAGED has no detail if damaged() is true: the caller knows the offset.
    ty_status run() {
        while (cursor_.at != cursor_.end) {
            const uint8_t *start = cursor_.at;
            uint8_t head = *cursor_.at++;
            ty_status status;
            if (head >> 4 <= static_cast<unsigned>(record_item::masks))
                status = packed(head);
            else if (head >> 4 == static_cast<unsigned>(record_item::tokens))
                status = tokens<false>(head);
            else if (head >> 4 == static_cast<unsigned>(record_item::near_tokens))
                status = tokens<true>(head);
            else if (head >> 4 == static_cast<unsigned>(record_item::operation))
                status = operation(head & 15);
            else
                status = damaged();
            if (status) {
                if (damaged_)
                    cursor_.at = start;
                return status;
            }
        }
        return TY_OK;
    }

    bool is_damaged() const { return damaged_; }

private:
    ty_status damaged() {
        damaged_ = true;
        return TY_E_DAMAGED;
    }

    // Moves to a word at a distance from the next one; false: outside the scope.
    bool reach(uint64_t *next, uint64_t distance) const {
        *next += distance; // neither is more than 2^56
        return distance < record_word_limit && *next >= scope_.first && *next < scope_.end;
    }
    bool holds(uint64_t word, uint64_t words) const {
        return word >= scope_.first && word < scope_.end && words <= scope_.end - word;
    }

    ty_status packed(uint8_t head) {
        unsigned item = head >> 4;
        uint64_t count = 0;
        if (!cursor_.count(head, &count) || cursor_.at == cursor_.end)
            return damaged();
        uint8_t shape = *cursor_.at++;
        unsigned width = shape & record_width_bits;
        // Each word has at least one byte, unless the words become zero: so count is small where it is multiplied.
        if (count > (item ? cursor_.left() : record_zero_words_max) || width > record_width_max || shape >> 7)
            return damaged();
        uint8_t one_mask = 0;
        if (item == static_cast<unsigned>(record_item::one_mask)) {
            one_mask = *cursor_.at++;
            if (one_mask == 0)
                return damaged();
        }
        uint64_t first = 0, in_row = count;
        bool apart = shape & record_first_apart;
        if (apart) {
            if (!cursor_.varint(&first))
                return damaged();
            in_row--;
        }
        const uint8_t *distances = cursor_.at;
        uint64_t distance_bytes = (in_row * width + 7) / 8;
        if (distance_bytes > cursor_.left())
            return damaged();
        cursor_.at += distance_bytes;
        if (width == 0 && (item == 0 || item == static_cast<unsigned>(record_item::all_bytes)))
            return run_of_words(item, first, count);
        row r{distances, width, count, apart, first};
        if (item <= static_cast<unsigned>(record_item::all_bytes))
            return low_bytes_each(r, item);
        return item == static_cast<unsigned>(record_item::masks) ? masks(r) : masked_alike(r, one_mask);
    }

    struct row {
        const uint8_t *distances;
        unsigned width;
        uint64_t count;
        bool apart;
        uint64_t first;
    };

    // Calls value(cursor, word, index) for each word. What the sink stores may alias any memory, so everything that
    // changes is in registers here, and in tokens().
    template <class Value>
    ty_status each(const row &given, Value value) {
        const row r = given;
        record_cursor cursor = cursor_;
        uint64_t next = next_, bit = 0, field = (uint64_t{1} << r.width) - 1;
        for (uint64_t i = 0; i < r.count; i++) {
            uint64_t distance = r.first;
            if (i != 0 || !r.apart) {
                distance = cursor.load(r.distances + bit / 8) >> (bit % 8) & field;
                bit += r.width;
            }
            if (!reach(&next, distance))
                return damaged();
            if (ty_status status = value(cursor, next, i))
                return status;
            next++;
        }
        cursor_ = cursor;
        next_ = next;
        return TY_OK;
    }

    ty_status run_of_words(unsigned item, uint64_t first, uint64_t count) {
        uint64_t word = next_;
        if (!reach(&word, first) || !holds(word, count))
            return damaged();
        next_ = word + count;
        if (item == 0)
            return sink_.zeros(word, count);
        if (count > cursor_.left() / sizeof(uint64_t))
            return damaged();
        const uint8_t *bytes = cursor_.at;
        cursor_.at += count * sizeof(uint64_t);
        return sink_.words(word, count, bytes);
    }

    ty_status low_bytes_each(const row &r, unsigned bytes) {
        if (bytes * r.count > cursor_.left())
            return damaged();
        uint64_t low = low_bytes(bytes), mask = bytes ? low : UINT64_MAX;
        return each(r, [&](record_cursor &cursor, uint64_t word, uint64_t) {
            uint64_t value = cursor.load(cursor.at) & low;
            cursor.at += bytes;
            return sink_.word(word, mask, value);
        });
    }

    ty_status masked_alike(const row &r, uint8_t bits) {
        uint64_t mask = byte_mask(bits);
        if (cursor_.bytes_of_mask(bits) * r.count > cursor_.left())
            return damaged();
        return each(r, [&](record_cursor &cursor, uint64_t word, uint64_t) {
            return sink_.word(word, mask, cursor.masked(bits));
        });
    }

    ty_status masks(const row &r) {
        const uint8_t *masks = cursor_.at;
        if (r.count > cursor_.left())
            return damaged();
        cursor_.at += r.count;
        return each(
            r, [&](record_cursor &cursor, uint64_t word, uint64_t i) { return masked_word(cursor, word, masks[i]); });
    }

    ty_status masked_word(record_cursor &cursor, uint64_t word, uint8_t bits) {
        if (bits == 0 || cursor.bytes_of_mask(bits) > cursor.left())
            return damaged();
        return sink_.word(word, byte_mask(bits), cursor.masked(bits));
    }

    template <bool near>
    ty_status tokens(uint8_t head) {
        uint64_t count = 0, before = 0;
        if (!cursor_.count(head, &count))
            return damaged();
        record_cursor cursor = cursor_;
        uint64_t next = next_;
        for (; count; count--) {
            if (cursor.at == cursor.end)
                return damaged();
            uint8_t token = *cursor.at++;
            uint64_t distance = token >> 4;
            if (distance > record_near_max) {
                if (!cursor.varint(&distance) || distance >= record_word_limit)
                    return damaged();
                distance += record_near_max + 1;
            }
            if (!reach(&next, distance))
                return damaged();
            const unsigned kind = token & 15;
            ty_status status =
                near && token_is_wide(kind) ? wide_word(cursor, next, kind, &before) : token_word(cursor, next, kind);
            if (status)
                return status;
            next++;
        }
        cursor_ = cursor;
        next_ = next;
        return TY_OK;
    }

    ty_status token_word(record_cursor &cursor, uint64_t word, unsigned kind) {
        if (kind == token_masked) {
            if (cursor.at == cursor.end)
                return damaged();
            uint8_t bits = *cursor.at++;
            return masked_word(cursor, word, bits);
        }
        token_field field = token_fields[kind];
        if (field.bytes > cursor.left())
            return damaged();
        uint64_t low = low_bytes(field.bytes);
        uint64_t value = cursor.load(cursor.at) & low;
        cursor.at += field.bytes;
        uint64_t mask = kind == token_zero ? UINT64_MAX : low << (8 * field.start);
        return sink_.word(word, mask, value << (8 * field.start));
    }

    // A word that the next near one counts from, or that is near the one before.
    ty_status wide_word(record_cursor &cursor, uint64_t word, unsigned kind, uint64_t *before) {
        const unsigned bytes = kind < token_near ? kind : kind - token_near + 1;
        if (bytes > cursor.left())
            return damaged();
        uint64_t value = cursor.load(cursor.at) & low_bytes(bytes), mask = low_bytes(bytes);
        cursor.at += bytes;
        if (kind >= token_near) {
            const unsigned unused = 64 - 8 * bytes;
            value = *before + (static_cast<uint64_t>(static_cast<int64_t>(value << unused) >> unused) << 3);
            mask = UINT64_MAX;
        }
        *before = value;
        return sink_.word(word, mask, value);
    }

    // A block's word; false: missing, or outside the scope.
    bool take_word(uint64_t *word) {
        uint64_t folded = 0;
        if (!cursor_.varint(&folded))
            return false;
        last_block_ += folded >> 1 ^ (~(folded & 1) + 1);
        *word = last_block_;
        return holds(*word, 1);
    }
    bool size(record_operation *read) {
        return cursor_.varint(&read->size) && read->size <= (scope_.end - read->word) * sizeof(uint64_t);
    }
    bool bytes(record_operation *read) {
        uint64_t count = 0;
        if (!cursor_.varint(&count) || count > cursor_.left() || count > UINT32_MAX)
            return false;
        read->bytes = cursor_.at;
        read->byte_count = static_cast<uint32_t>(count);
        cursor_.at += count;
        return true;
    }

    ty_status alloc_run(unsigned blocks) {
        record_operation read{};
        read.kind = operation_kind::alloc;
        if (!take_word(&read.word) || !size(&read) || read.size == 0 || read.size % sizeof(uint64_t) != 0 ||
            !holds(read.word, blocks * (read.size / sizeof(uint64_t))))
            return damaged();
        for (; blocks != 0; blocks--) {
            last_block_ = read.word;
            if (ty_status status = sink_.operation(read))
                return status;
            read.word += read.size / sizeof(uint64_t);
        }
        return TY_OK;
    }

    ty_status operation(uint8_t kind) {
        if (kind == record_part_starts) {
            next_ = last_block_ = 0;
            return TY_OK;
        }
        if (kind >= record_alloc_run)
            return alloc_run(kind - record_alloc_run + 2u);
        record_operation read{};
        bool sound = false;
        read.null_address = kind == record_root_removed;
        read.kind = read.null_address ? operation_kind::root : static_cast<operation_kind>(kind);
        switch (read.kind) {
        case operation_kind::alloc:
        case operation_kind::resize:
            sound = take_word(&read.word) && size(&read);
            break;
        case operation_kind::free:
            sound = take_word(&read.word);
            break;
        case operation_kind::root:
            sound = (read.null_address || take_word(&read.word)) && bytes(&read);
            break;
        case operation_kind::procedure:
            sound = cursor_.varint(&read.procedure) && bytes(&read);
            break;
        }
        return sound ? sink_.operation(read) : damaged();
    }

    record_cursor cursor_;
    record_scope scope_;
    Sink &sink_;
    uint64_t next_ = 0;       // the word after the last one
    uint64_t last_block_ = 0; // of the last operation
    bool damaged_ = false;
};

template <class Sink>
ty_status record_decode_in_place(const uint8_t *bytes, size_t size, record_scope scope, Sink &sink) {
    record_decoder<Sink> decoder(bytes, size, scope, sink);
    ty_status status = decoder.run();
    return decoder.is_damaged() ? record_damaged(static_cast<uint64_t>(decoder.at() - bytes)) : status;
}

template <class Sink>
ty_status record_decode(const uint8_t *bytes, size_t size, record_scope scope, Sink &sink) {
    uint8_t copy[2 * sizeof(uint64_t)] = {};
    if (size < sizeof(uint64_t)) { // so that the eight bytes before the end can be read
        if (size)
            memcpy(copy + sizeof(uint64_t), bytes, size);
        bytes = copy + sizeof(uint64_t);
    }
    return record_decode_in_place(bytes, size, scope, sink);
}

} // namespace taiyen
