// Goal: of the forms that a row of words can be written in, the smallest is. Method: words at random, near and far,
// with few and many bytes changed; what each form takes is computed here by the document, and compared with what was
// written.
#include "src/store/log/records/record.hpp"
#include "src/store/log/records/record_form.hpp"

#include <algorithm>
#include <bit>
#include <gtest/gtest.h>
#include <random>
#include <vector>

using namespace taiyen;

namespace {

// What follows the head of a near token. *before: the value that the next one counts from.
size_t near_bytes(uint64_t value, unsigned changed, uint64_t *before) {
    if (value == 0)
        return 0;
    size_t smallest = 1 + static_cast<size_t>(std::popcount(changed)), low = 8;
    for (unsigned kind : {1, 2, 3, 4, 5, 6, 7, 8, 14, 15}) {
        token_field field = token_fields[kind];
        if ((changed & ~(((1u << field.bytes) - 1) << field.start)) != 0)
            continue;
        smallest = std::min<size_t>(smallest, field.bytes);
        if (field.start == 0)
            low = std::min<size_t>(low, field.bytes);
    }
    const auto apart = static_cast<int64_t>(value - *before);
    size_t near = 9;
    const bool like_pointer = value >> 48 == 0 && value % 8 == 0;
    for (unsigned bytes = 4; like_pointer && apart % 8 == 0 && bytes != 0; bytes--)
        if (apart / 8 >= -(int64_t{1} << (8 * bytes - 1)) && apart / 8 < int64_t{1} << (8 * bytes - 1))
            near = bytes;
    if (smallest >= 5 && near < smallest)
        *before = value;
    else if (low == smallest && low >= 5)
        *before = value & low_bytes(static_cast<unsigned>(low));
    return smallest >= 5 ? std::min(smallest, near) : smallest;
}

// What each form of these words takes by docs/design/log.md, computed one by one.
size_t smallest_form(const record_words &words) {
    auto varint_bytes = [](uint64_t value) {
        size_t taken = 1;
        for (; value >= 128; value >>= 7)
            taken++;
        return taken;
    };
    auto changed_bytes = [](uint64_t difference) { // a bit for each
        unsigned bits = 0;
        for (unsigned i = 0; i < 8; i++)
            bits |= (difference >> (8 * i) & 0xff ? 1u : 0u) << i;
        return bits;
    };
    uint64_t next = 0, first = 0, others = 0, differences = 0, values = 0;
    size_t tokens = 0, near_tokens = 0, masks = 0;
    uint64_t before = 0; // the value that a near token counts from
    for (size_t i = 0; i < words.count; i++) {
        uint64_t distance = words.number[i] - next;
        next = words.number[i] + 1;
        (i == 0 ? first : others) |= distance;
        differences |= words.difference[i];
        values |= words.value[i];
        unsigned changed = changed_bytes(words.difference[i]);
        size_t smallest = 1 + static_cast<size_t>(std::popcount(changed));
        masks += smallest;
        for (unsigned kind = 1; kind < 16; kind++) {
            token_field field = token_fields[kind];
            if (kind != token_masked && (changed & ~(((1u << field.bytes) - 1) << field.start)) == 0)
                smallest = std::min<size_t>(smallest, field.bytes);
        }
        const size_t head = 1 + (distance >= 15 ? varint_bytes(distance - 15) : 0);
        tokens += head + (words.value[i] != 0 ? smallest : 0);
        near_tokens += head + near_bytes(words.value[i], changed, &before);
    }
    size_t low = values == 0 ? 0 : (static_cast<size_t>(std::bit_width(differences)) + 7) / 8;
    size_t one_mask = 1 + words.count * static_cast<size_t>(std::popcount(changed_bytes(differences)));
    size_t apart = varint_bytes(first) + ((words.count - 1) * static_cast<size_t>(std::bit_width(others)) + 7) / 8;
    size_t together = (words.count * static_cast<size_t>(std::bit_width(first | others)) + 7) / 8;
    size_t packed = 1 + std::min(apart, together) + std::min({words.count * low, one_mask, masks});
    return 1 + (words.count < 16 ? 0 : varint_bytes(words.count)) + std::min({packed, tokens, near_tokens});
}

} // namespace

// Pointers to blocks that lie near each other, or in the heap at random, among other words.
void put_pointers(record_words &words, std::mt19937_64 &d) {
    const uint64_t spread = d() % 40, base = uint64_t{0x29} << 40 | d() % (uint64_t{1} << 38);
    for (size_t i = 0; i < words.count; i++)
        if (d() % 4 != 0) {
            words.value[i] = base + (d() >> (24 + spread % 40)) * 8 + d() % 32 / 31;
            words.difference[i] = d() % 4 != 0 ? words.value[i] : words.value[i] ^ (base + (d() >> (24 + spread)));
            words.difference[i] |= 1;
        }
}

TEST(record_form, no_form_would_be_smaller) {
    std::mt19937_64 d(5);
    for (int turn = 0; turn < 100000; turn++) {
        record_words words;
        words.count = 1 + d() % (turn % 2 ? 8 : record_words_max);
        const uint64_t near = d() % 60, wide = d() % 64, zeros = d() % 5;
        uint64_t place = d() >> (9 + d() % 55);
        for (size_t i = 0; i < words.count; i++) {
            words.number[i] = place;
            words.value[i] = d() % 4 < zeros ? 0 : d() | 1;
            words.difference[i] = uint64_t{1} << wide | (d() >> d() % 64 & d() << d() % 64 & d());
            place += 1 + (d() >> std::min<uint64_t>(63, 20 + near + d() % 3));
        }
        if (turn % 3 == 0)
            put_pointers(words, d);
        size_t expected = smallest_form(words);
        std::vector<uint8_t> out(record_words_bound(words.count));
        ASSERT_EQ(record_encode_words(words, out.data()), expected) << turn;
    }
}
