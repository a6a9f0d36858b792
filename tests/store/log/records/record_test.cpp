// Goal: what a record says is what was written, no more bytes than promised, and bytes that are not a record are
// refused. Method: memory before and after is made at random, encoded, and decoded into what was before; sizes are
// compared with fixed figures, from fixed seeds; every truncation and many flips of good records are decoded within
// strict bounds.
#include "src/store/log/records/record.hpp"
#include "src/store/log/records/record_decode.hpp"

#include <algorithm>
#include <gtest/gtest.h>
#include <random>
#include <string>
#include <vector>

using namespace taiyen;

namespace {

using dice = std::mt19937_64;
using bytes = std::vector<uint8_t>;

constexpr uint64_t heap_words = uint64_t{1} << 27; // 1 GB
constexpr record_scope anywhere = {0, record_word_limit};

// Encodes and checks that nothing was written after the bound.
bytes encode(const record_part &part, bool first = true) {
    constexpr size_t guard_bytes = 64;
    constexpr uint8_t guard = 0xa5;
    size_t bound = record_bound(part);
    bytes out(bound + guard_bytes, guard);
    size_t size = record_encode(part, first, out.data());
    EXPECT_LE(size, bound);
    EXPECT_TRUE(
        std::all_of(out.begin() + static_cast<ptrdiff_t>(bound), out.end(), [](uint8_t b) { return b == guard; }));
    out.resize(size);
    out.shrink_to_fit(); // so that a read after it is seen
    return out;
}

bytes encode(const std::vector<word_range> &ranges) {
    return encode({nullptr, 0, ranges.data(), ranges.size()});
}

unsigned item_of(const bytes &record) {
    return record.at(0) >> 4;
}

// Stores words in memory, whose first word has a number.
struct memory_sink {
    std::vector<uint64_t> &memory;
    uint64_t first = 0;
    std::vector<record_operation> operations = {};
    std::vector<std::string> operation_bytes = {};
    uint64_t stores = 0;  // calls
    uint64_t changed = 0; // words
    std::string order = {};

    ty_status operation(const record_operation &operation) {
        operations.push_back(operation);
        operation_bytes.emplace_back(static_cast<const char *>(operation.bytes), operation.byte_count);
        order += 'o';
        return TY_OK;
    }
    ty_status word(uint64_t word, uint64_t mask, uint64_t value) {
        EXPECT_EQ(value & ~mask, 0u);
        uint64_t &at = memory.at(word - first);
        at = (at & ~mask) | value;
        return stored(1);
    }
    ty_status words(uint64_t word, uint64_t count, const uint8_t *from) {
        EXPECT_LE(word - first + count, memory.size());
        memcpy(memory.data() + (word - first), from, count * sizeof(uint64_t));
        return stored(count);
    }
    ty_status zeros(uint64_t word, uint64_t count) {
        EXPECT_LE(word - first + count, memory.size());
        std::fill_n(memory.begin() + static_cast<ptrdiff_t>(word - first), count, 0);
        return stored(count);
    }
    ty_status stored(uint64_t count) {
        stores++;
        changed += count;
        order += 'w';
        return TY_OK;
    }
};

ty_status decode(const bytes &record, memory_sink &sink, record_scope scope = anywhere) {
    return record_decode(record.data(), record.size(), scope, sink);
}

// How bytes of words differ.
enum class change { nothing, counter, few_bytes, any_bytes, upper_half, all, cleared, float_like, pointer, mixed };
constexpr unsigned change_count = 10;

uint64_t change_word(dice &d, change how, uint64_t before) {
    switch (how) {
    case change::nothing:
        return before;
    case change::counter:
        return before + 1 + d() % 3;
    case change::few_bytes:
        return before ^ (d() % 255 + 1) << (8 * (d() % 8));
    case change::any_bytes:
        return before ^ (d() & byte_mask(static_cast<uint8_t>(d())));
    case change::upper_half:
        return before ^ (d() % 0xffff + 1) << 32;
    case change::all:
        return d();
    case change::cleared:
        return 0;
    case change::float_like:
        return before ^ (d() % 0xfff + 1) << 52;
    case change::pointer:
        return 0x297400000000 + (d() >> (30 + d() % 34)) * 8;
    case change::mixed:
        return change_word(d, static_cast<change>(d() % (change_count - 1)), before);
    }
    return before;
}

// Memory before and after a transaction, and the ranges that cover what changed.
struct transaction {
    std::vector<uint64_t> before, now;
    std::vector<word_range> ranges;
    uint64_t first_word = 0;

    void add_range(uint64_t at, uint32_t count, bool whole, bool zeros_before) {
        ranges.push_back({first_word + at, count, whole, zeros_before ? nullptr : before.data() + at, now.data() + at});
    }
    // What recovery finds: before, but anything where a range is logged whole.
    std::vector<uint64_t> found() const {
        std::vector<uint64_t> memory = before;
        for (const word_range &range : ranges)
            if (range.whole)
                std::fill_n(memory.begin() + static_cast<ptrdiff_t>(range.first - first_word), range.count,
                            0x1111111111111111);
        return memory;
    }
    void expect_round_trip() const {
        bytes record = encode(ranges);
        std::vector<uint64_t> memory = found();
        memory_sink sink{memory, first_word};
        ASSERT_EQ(decode(record, sink, {first_word, first_word + now.size()}), TY_OK);
        EXPECT_TRUE(memory == now);
    }
};

transaction make_transaction(dice &d, size_t words, uint32_t longest_range, change how, unsigned percent) {
    transaction t;
    t.first_word = d() % 3 ? d() % heap_words : (record_word_limit - words) - d() % 100;
    t.before.resize(words);
    for (uint64_t &word : t.before)
        word = d() % 4 ? d() : d() % 1000;
    t.now = t.before;
    for (uint64_t at = d() % 40; at < words;) {
        auto count = static_cast<uint32_t>(std::min<uint64_t>(1 + d() % longest_range, words - at));
        bool whole = d() % 8 == 0, zeros_before = d() % 4 == 0;
        for (uint64_t i = at; i < at + count; i++) {
            if (zeros_before)
                t.before[i] = 0;
            t.now[i] = d() % 100 < percent ? change_word(d, how, t.before[i]) : t.before[i];
        }
        t.add_range(at, count, whole, zeros_before);
        at += count + (d() % 2 ? d() % 20 : d() % 500);
    }
    return t;
}

// Six random words of a 1 GB heap; before and now in arrays.
struct six_words {
    uint64_t before[6], now[6];
    std::vector<word_range> ranges;

    six_words(dice &d, bool counters) {
        std::vector<uint64_t> places(6);
        for (uint64_t &place : places)
            place = d() % heap_words;
        std::sort(places.begin(), places.end());
        for (size_t i = 0; i < 6; i++) {
            before[i] = d();
            now[i] = counters ? before[i] + 1 : d();
            ranges.push_back({places[i], 1, false, &before[i], &now[i]});
        }
    }
};

TEST(record, random_transactions_round_trip) {
    dice d(1);
    for (unsigned round = 0; round < 6000; round++) {
        constexpr uint32_t longest[] = {1, 2, 8, 40, 300, 6000};
        constexpr unsigned percents[] = {3, 30, 90, 100};
        auto how = static_cast<change>(round % change_count);
        uint32_t range = longest[round / change_count % std::size(longest)];
        size_t words = range > 1000 ? 10000 : 20 + d() % 2000;
        make_transaction(d, words, range, how, percents[d() % std::size(percents)]).expect_round_trip();
        ASSERT_FALSE(HasFailure()) << "round " << round;
    }
}

TEST(record, words_alone_are_written_as_ranges_are_and_within_their_bound) {
    constexpr size_t guard_bytes = 64;
    dice d(99);
    for (int turn = 0; turn < 20000; turn++) {
        record_words words;
        words.count = 1 + d() % (turn % 2 ? 16 : record_words_max);
        std::vector<uint64_t> before(words.count);
        std::vector<word_range> ranges;
        uint64_t place = d() >> (9 + d() % 50);
        for (size_t i = 0; i < words.count; i++) {
            words.number[i] = place;
            words.value[i] = d() % 8 == 0 ? 0 : d() >> d() % 64;
            words.difference[i] = (d() >> d() % 64) | 1;
            before[i] = words.value[i] ^ words.difference[i];
            place += 1 + (d() >> (20 + d() % 44));
        }
        std::vector<uint64_t> values(words.value, words.value + words.count);
        for (size_t i = 0; i < words.count; i++)
            ranges.push_back({words.number[i], 1, false, &before[i], &values[i]});
        size_t bound = record_words_bound(words.count);
        bytes out(bound + guard_bytes, 0xa5);
        size_t size = record_encode_words(words, out.data());
        ASSERT_LE(size, bound);
        ASSERT_TRUE(
            std::all_of(out.begin() + static_cast<ptrdiff_t>(bound), out.end(), [](uint8_t b) { return b == 0xa5; }));
        out.resize(size);
        ASSERT_EQ(out, encode(ranges)) << turn;
    }
}

TEST(record, distances_of_all_widths) {
    for (unsigned bit = 0; bit <= 55; bit++)
        for (uint64_t low : {0, 1}) {
            uint64_t before[3] = {}, now[3] = {1, ~uint64_t{0}, uint64_t{3} << 30};
            uint64_t second = (uint64_t{1} << bit) + low + 1;
            std::vector<word_range> ranges = {{low, 1, false, before, now}, {second, 1, false, before + 1, now + 1}};
            if (second < record_word_limit - 1)
                ranges.push_back({record_word_limit - 1, 1, false, before + 2, now + 2});
            bytes record = encode(ranges);
            struct {
                std::vector<std::pair<uint64_t, uint64_t>> seen;
                ty_status operation(const record_operation &) { return TY_E_ARGUMENT; }
                ty_status word(uint64_t word, uint64_t, uint64_t value) {
                    seen.emplace_back(word, value);
                    return TY_OK;
                }
                ty_status words(uint64_t, uint64_t, const uint8_t *) { return TY_E_ARGUMENT; }
                ty_status zeros(uint64_t, uint64_t) { return TY_E_ARGUMENT; }
            } sink;
            ASSERT_EQ(record_decode(record.data(), record.size(), anywhere, sink), TY_OK);
            ASSERT_EQ(sink.seen.size(), ranges.size());
            for (size_t i = 0; i < ranges.size(); i++)
                EXPECT_EQ(sink.seen[i], std::make_pair(ranges[i].first, now[i]));
        }
}

// Each form is the smallest for something, is chosen for it, and reads back.
TEST(record, every_form_is_chosen) {
    struct sample {
        const char *what;
        unsigned item;
        std::vector<uint64_t> differences; // of the words, from `before`
        uint64_t step;                     // from word to word
    };
    constexpr uint64_t before = 0x8877665544332211;
    auto repeat = [](size_t n, uint64_t value) { return std::vector<uint64_t>(n, value); };
    const sample samples[] = {
        {"cleared", 0, repeat(8, before), 100},
        {"counters", 1, repeat(8, 0x01), 100},
        {"two bytes", 2, repeat(8, 0x0101), 100},
        {"seven bytes", 7, repeat(8, 0xffffffffffffff), 100},
        {"all bytes",
         8,
         {UINT64_MAX, UINT64_MAX / 3, UINT64_MAX / 5, UINT64_MAX / 15, UINT64_MAX / 17, UINT64_MAX / 51},
         100},
        {"one mask", 9, repeat(8, 0x0100010000000000), 100},
        {"a mask each", 10, {0x01000100, 0x0100000000010000, 0xff00000001, 0x0100000000000001}, 1000},
        {"tokens", 11, {0x01, 0xffffffffff, 0x01, 0xffff000000000000, 0xff00ff0000ff0000, 0x010000000000, before}, 2},
        {"pointers near each other",
         12,
         {before ^ 0x2974c003d7a0, before ^ 0x2974c003c410, before ^ 0x2974c003d7c0, before ^ 0x2974d003c420},
         2},
        {"a run", 8, repeat(100, UINT64_MAX), 1},
        {"a run of zeros", 0, repeat(100, before), 1},
    };
    for (const sample &s : samples) {
        transaction t;
        t.before.resize(s.differences.size() * s.step, before);
        t.now = t.before;
        for (size_t i = 0; i < s.differences.size(); i++) {
            t.now[i * s.step] ^= s.differences[i];
            if (s.step > 1)
                t.add_range(i * s.step, 1, false, false);
        }
        if (s.step == 1)
            t.add_range(0, static_cast<uint32_t>(t.now.size()), false, false);
        EXPECT_EQ(item_of(encode(t.ranges)), s.item) << s.what;
        t.expect_round_trip();
    }
}

// A word of each kind of token: the size is exact, so each took its own.
TEST(record, every_token_is_chosen) {
    constexpr uint64_t before = 0x8877665544332211;
    transaction t;
    t.before.assign(32, before);
    t.now = t.before;
    size_t expected = 2; // the head, and the count
    for (uint8_t kind = 0; kind < 16; kind++) {
        token_field field = token_fields[kind];
        uint64_t changed = low_bytes(field.bytes) << (8 * field.start) & 0x0101010101010101;
        if (kind == token_zero)
            changed = before;
        if (kind == token_masked)
            changed = 0x0000010000000100;
        t.now[kind * 2u] ^= changed;
        t.add_range(kind * 2u, 1, false, false);
        expected += 1u + (kind == token_masked ? 3 : field.bytes);
    }
    bytes record = encode(t.ranges);
    EXPECT_EQ(item_of(record), 11u);
    EXPECT_EQ(record.size(), expected);
    t.expect_round_trip();
}

// Likewise of each near token, from the nearest to the farthest in both directions.
TEST(record, every_near_token_is_chosen) {
    constexpr uint64_t pointer = 0x2974c003d7a0;
    transaction t;
    t.before.assign(24, 0);
    t.now = t.before;
    uint64_t value = pointer;
    size_t expected = 1 + 1 + 6, at = 0; // the head, and the first pointer
    auto put = [&](uint64_t put) {
        t.now[at] = put;
        t.add_range(at++, 1, false, false);
    };
    put(value);
    for (unsigned bytes = 1; bytes <= 4; bytes++)
        for (int64_t far : {(int64_t{1} << (8 * bytes - 1)) - 1, -(int64_t{1} << (8 * bytes - 1))}) {
            put(value += static_cast<uint64_t>(far) * 8);
            expected += 1 + bytes;
        }
    put(value += uint64_t{1} << 34); // farther than four bytes say
    put(value + 9);                  // no whole word away
    expected += 1 + 6 + 1 + 6;
    bytes record = encode(t.ranges);
    EXPECT_EQ(item_of(record), 12u);
    EXPECT_EQ(record.size(), expected);
    t.expect_round_trip();
}

TEST(record, six_counters_are_small) {
    dice d(2);
    constexpr size_t rounds = 20000;
    size_t total = 0, most = 0;
    for (size_t i = 0; i < rounds; i++) {
        size_t size = encode(six_words(d, true).ranges).size();
        total += size;
        most = std::max(most, size);
    }
    printf("six counters: %.3f bytes, at most %zu\n", static_cast<double>(total) / rounds, most);
    EXPECT_LE(most, 38u);
    EXPECT_LE(total, rounds * 282 / 10);
}

TEST(record, six_random_values_are_small) {
    dice d(3);
    constexpr size_t rounds = 20000;
    size_t total = 0, most = 0;
    for (size_t i = 0; i < rounds; i++) {
        size_t size = encode(six_words(d, false).ranges).size();
        total += size;
        most = std::max(most, size);
    }
    printf("six random values: %.3f bytes, at most %zu\n", static_cast<double>(total) / rounds, most);
    EXPECT_LE(most, 71u);
    EXPECT_LE(total, rounds * 70);
}

// Objects of which a count, a pointer, a size and a number in the upper half of a word change.
TEST(record, fields_of_objects_are_small) {
    dice d(4);
    constexpr size_t rounds = 2000;
    size_t total = 0;
    for (size_t i = 0; i < rounds; i++) {
        std::vector<uint64_t> before(16), now;
        for (uint64_t &word : before)
            word = d();
        now = before;
        for (size_t object : {0, 8}) {
            now[object] += 1;
            now[object + 2] ^= d() & 0xffffffffff; // a pointer into a heap of a terabyte
            now[object + 3] ^= 0x100 | (d() & 0xff);
            now[object + 5] ^= uint64_t{1} << 32;
        }
        uint64_t first = d() % (heap_words / 2), second = heap_words / 2 + d() % (heap_words / 2 - 8);
        total += encode({{first, 8, false, before.data(), now.data()},
                         {second, 8, false, before.data() + 8, now.data() + 8}})
                     .size();
    }
    printf("two objects of four fields: %.3f bytes\n", static_cast<double>(total) / rounds);
    EXPECT_LE(total, rounds * 35); // 18 bytes changed; 8 for where the objects are; 1 for each field; 1
}

TEST(record, runs_cost_their_bytes) {
    dice d(5);
    std::vector<uint64_t> before(100000), now(100000), zeros(100000);
    for (size_t i = 0; i < now.size(); i++) {
        before[i] = d();
        now[i] = d();
    }
    auto count = static_cast<uint32_t>(now.size());
    // 4,096 words, and 5 bytes, an item
    size_t full = encode({{1000, count, false, before.data(), now.data()}}).size();
    EXPECT_LE(full, now.size() * 8 + 5 * 25 + 1);
    EXPECT_EQ(encode({{1000, count, true, nullptr, now.data()}}).size(), now.size() * 8 + 5 * 25 + 1);
    // likewise
    EXPECT_LE(encode({{1000, count, true, nullptr, zeros.data()}}).size(), 5u * 25 + 1);
    EXPECT_LE(encode({{1000, count, false, before.data(), zeros.data()}}).size(), 5u * 25 + 30);
    EXPECT_EQ(encode({{1000, count, false, nullptr, zeros.data()}}).size(), 0u);
    // one byte of each word, in order: the words' places cost nothing
    for (size_t i = 0; i < now.size(); i++)
        now[i] = before[i] ^ (1 + d() % 255);
    EXPECT_LE(encode({{1000, count, false, before.data(), now.data()}}).size(), now.size() * 107 / 100);
}

TEST(record, nothing_changed_is_no_record) {
    std::vector<uint64_t> words(1000, 7);
    EXPECT_EQ(encode({{5, 1000, false, words.data(), words.data()}}).size(), 0u);
    EXPECT_EQ(encode(std::vector<word_range>{}).size(), 0u);
    word_range range = {5, 1, false, words.data(), words.data()};
    EXPECT_EQ(encode({nullptr, 0, &range, 1}, false).size(), 0u);
    memory_sink sink{words};
    EXPECT_EQ(decode({}, sink), TY_OK);
    EXPECT_EQ(sink.order, "");
}

record_operation make_operation(dice &d, const std::string &text) {
    record_operation operation{};
    operation.kind = static_cast<operation_kind>(1 + d() % 5);
    auto sets = [&](auto... kinds) { return ((operation.kind == kinds) || ...); };
    bool named = sets(operation_kind::root, operation_kind::procedure);
    operation.null_address = operation.kind == operation_kind::root && d() % 2;
    if (operation.kind != operation_kind::procedure && !operation.null_address)
        operation.word = d() % 4 ? d() % heap_words : d() % record_word_limit;
    if (sets(operation_kind::alloc, operation_kind::resize))
        operation.size = d() % ((std::min<uint64_t>(record_word_limit - operation.word, 1u << d() % 30)) * 8 + 1);
    if (operation.kind == operation_kind::procedure)
        operation.procedure = d() >> d() % 64;
    operation.bytes = named ? text.data() : nullptr;
    operation.byte_count = named ? static_cast<uint32_t>(d() % (text.size() + 1)) : 0;
    return operation;
}

// Blocks side by side, of one size, or nearly so.
void add_blocks_in_a_row(dice &d, std::vector<record_operation> *operations) {
    record_operation block{
        operation_kind::alloc, d() % heap_words, 8 * (1 + d() % 20) + d() % 10 / 9, 0, 0, false, nullptr, 0};
    for (size_t left = d() % 20; left != 0; left--) {
        operations->push_back(block);
        block.word += block.size / 8 + d() % 12 / 11;
    }
}

// Parts in their order; in each, operations, then words, which may lie before those of the part before.
TEST(record, parts_and_operations_round_trip) {
    dice d(6);
    const std::string text(300, 'x');
    for (unsigned round = 0; round < 2000; round++) {
        bytes record;
        std::vector<record_operation> written;
        std::string order;
        std::vector<uint64_t> expected(64, 0), memory(64, 0), before;
        for (size_t part = 0, parts = d() % 5; part < parts; part++) {
            std::vector<record_operation> operations(d() % 4);
            for (record_operation &operation : operations)
                operation = make_operation(d, text);
            add_blocks_in_a_row(d, &operations);
            written.insert(written.end(), operations.begin(), operations.end());
            before = expected;
            bool words = d() % 2;
            uint64_t at = d() % 64;
            if (words)
                expected[at] += 1;
            word_range range = {at, 1, false, &before[at], &expected[at]};
            bytes more = encode({operations.data(), operations.size(), &range, 1}, part == 0);
            record.insert(record.end(), more.begin(), more.end());
            order += std::string(operations.size(), 'o') + (words ? "w" : "");
        }
        memory_sink sink{memory};
        ASSERT_EQ(decode(record, sink), TY_OK);
        EXPECT_EQ(memory, expected);
        EXPECT_EQ(sink.order, order);
        ASSERT_EQ(sink.operations.size(), written.size());
        for (size_t i = 0; i < written.size(); i++) {
            const record_operation &read = sink.operations[i], &wrote = written[i];
            EXPECT_EQ(read.kind, wrote.kind);
            EXPECT_EQ(read.word, wrote.word);
            EXPECT_EQ(read.size, wrote.size);
            EXPECT_EQ(read.procedure, wrote.procedure);
            EXPECT_EQ(read.null_address, wrote.null_address);
            EXPECT_EQ(sink.operation_bytes[i], text.substr(0, wrote.byte_count));
        }
    }
}

TEST(record, operations_are_small) {
    record_operation operations[] = {
        {operation_kind::alloc, 100'000'000, 64, 0, 0, false, nullptr, 0},
        {operation_kind::alloc, 100'000'008, 64, 0, 0, false, nullptr, 0},
        {operation_kind::free, 99'999'992, 0, 0, 0, false, nullptr, 0},
        {operation_kind::root, 100'000'000, 0, 0, 0, false, "name", 4},
        {operation_kind::procedure, 0, 0, 0, 3, false, "", 0},
    };
    EXPECT_EQ(encode({operations, 1, nullptr, 0}).size(), 6u);
    EXPECT_EQ(encode({operations, 2, nullptr, 0}).size(), 6u); // one right after the other
    operations[1].word++;
    EXPECT_EQ(encode({operations, 5, nullptr, 0}).size(), 6u + 3 + 2 + 7 + 3);
}

// Words and blocks out of the scope are damage, to the word.
TEST(record, the_scope_is_kept) {
    uint64_t before[20] = {}, now[20];
    std::fill_n(now, 20, UINT64_MAX);
    for (uint32_t count : {1u, 2u, 20u}) {
        for (bool clears : {false, true}) {
            bytes record =
                clears ? encode({{100, count, false, now, before}}) : encode({{100, count, false, before, now}});
            std::vector<uint64_t> memory(200);
            memory_sink sink{memory};
            EXPECT_EQ(decode(record, sink, {100, 100 + count}), TY_OK);
            EXPECT_EQ(decode(record, sink, {101, 200}), TY_E_DAMAGED);
            EXPECT_EQ(decode(record, sink, {0, 100 + count - 1}), TY_E_DAMAGED);
            EXPECT_EQ(decode(record, sink, {0, 0}), TY_E_DAMAGED);
        }
    }
    record_operation alloc = {operation_kind::alloc, 100, 80, 0, 0, false, nullptr, 0};
    record_operation root = {operation_kind::root, 100, 0, 0, 0, false, "n", 1};
    const record_operation row[] = {alloc, {operation_kind::alloc, 110, 80, 0, 0, false, nullptr, 0}};
    std::vector<uint64_t> memory;
    memory_sink sink{memory};
    for (const record_operation *operation : {&alloc, &root}) {
        bytes record = encode({operation, 1, nullptr, 0});
        uint64_t words = operation->size ? 10 : 1;
        EXPECT_EQ(decode(record, sink, {100, 100 + words}), TY_OK);
        EXPECT_EQ(decode(record, sink, {101, 200}), TY_E_DAMAGED);
        EXPECT_EQ(decode(record, sink, {0, 100 + words - 1}), TY_E_DAMAGED);
    }
    const bytes two = encode({row, 2, nullptr, 0});
    sink.order.clear();
    EXPECT_EQ(decode(two, sink, {100, 119}), TY_E_DAMAGED);
    EXPECT_EQ(sink.order, "");
    EXPECT_EQ(decode(two, sink, {100, 120}), TY_OK);
    EXPECT_EQ(sink.order, "oo");
}

// A sink's refusal ends the reading, and is what the reading gives.
TEST(record, a_sinks_status_is_handed_on) {
    struct {
        unsigned calls = 0;
        ty_status operation(const record_operation &) { return refuse(); }
        ty_status word(uint64_t, uint64_t, uint64_t) { return refuse(); }
        ty_status words(uint64_t, uint64_t, const uint8_t *) { return refuse(); }
        ty_status zeros(uint64_t, uint64_t) { return refuse(); }
        ty_status refuse() {
            calls++;
            return TY_E_NOT_FOUND;
        }
    } sink;
    dice d(7);
    for (unsigned how = 1; how < change_count; how++) {
        bytes record = encode(make_transaction(d, 3000, 100, static_cast<change>(how), 100).ranges);
        sink.calls = 0;
        EXPECT_EQ(record_decode(record.data(), record.size(), anywhere, sink), TY_E_NOT_FOUND);
        EXPECT_EQ(sink.calls, 1u);
    }
}

// Accepts words within its scope only, and counts them.
struct counting_sink {
    record_scope scope;
    const bytes *record;
    uint64_t words_seen = 0;

    ty_status operation(const record_operation &operation) {
        bool removed = operation.kind == operation_kind::root && operation.null_address;
        if (operation.kind != operation_kind::procedure && !removed) {
            EXPECT_GE(operation.word, scope.first);
            EXPECT_LE(operation.word + (operation.size + 7) / 8, scope.end);
        }
        const auto *from = static_cast<const uint8_t *>(operation.bytes);
        uint64_t sum = 0;
        for (uint32_t i = 0; i < operation.byte_count; i++)
            sum += from[i]; // the sanitizer's to judge
        EXPECT_LE(sum, uint64_t{255} * operation.byte_count);
        return TY_OK;
    }
    ty_status word(uint64_t word, uint64_t mask, uint64_t value) {
        EXPECT_EQ(value & ~mask, 0u);
        return take(word, 1);
    }
    ty_status words(uint64_t first, uint64_t count, const uint8_t *from) {
        EXPECT_TRUE(from >= record->data() && from + count * 8 <= record->data() + record->size());
        return take(first, count);
    }
    ty_status zeros(uint64_t first, uint64_t count) { return take(first, count); }
    ty_status take(uint64_t first, uint64_t count) {
        EXPECT_GE(first, scope.first);
        EXPECT_LE(first, scope.end);
        EXPECT_LE(count, scope.end - first);
        words_seen += count;
        return TY_OK;
    }
};

void expect_sound_or_refused(const bytes &record, record_scope scope, unsigned *refused) {
    counting_sink sink{scope, &record};
    ty_status status = record_decode(record.data(), record.size(), scope, sink);
    EXPECT_TRUE(status == TY_OK || status == TY_E_DAMAGED) << status;
    EXPECT_LE(sink.words_seen, record.size() * record_zero_words_max);
    if (status == TY_OK)
        return;
    ty_error error{};
    ty_error_detail(&error);
    EXPECT_LT(error.offset, record.size());
    ++*refused;
}

std::vector<bytes> good_records(dice &d) {
    std::vector<bytes> records;
    const std::string text(20, 'x');
    for (unsigned round = 0; round < 120; round++) {
        transaction t = make_transaction(d, 20 + d() % 400, round % 3 ? 3 : 60,
                                         static_cast<change>(round % change_count), round % 2 ? 100 : 20);
        std::vector<record_operation> operations(d() % 3);
        for (record_operation &operation : operations)
            operation = make_operation(d, text);
        add_blocks_in_a_row(d, &operations);
        bytes record = encode({operations.data(), operations.size(), t.ranges.data(), t.ranges.size()});
        if (round % 5 == 0) {
            bytes more = encode({operations.data(), operations.size(), t.ranges.data(), t.ranges.size()}, false);
            record.insert(record.end(), more.begin(), more.end());
        }
        records.push_back(record);
    }
    return records;
}

TEST(record, every_truncation_is_refused_or_sound) {
    dice d(8);
    unsigned refused = 0;
    for (const bytes &record : good_records(d))
        for (size_t size = 0; size < record.size(); size++) {
            bytes cut(record.begin(), record.begin() + static_cast<ptrdiff_t>(size));
            expect_sound_or_refused(cut, anywhere, &refused);
            ASSERT_FALSE(HasFailure());
        }
    EXPECT_GT(refused, 1000u);
}

TEST(record, flips_are_refused_or_sound) {
    dice d(9);
    unsigned refused = 0;
    for (const bytes &record : good_records(d))
        for (unsigned flip = 0; flip < 400 && !record.empty(); flip++) {
            bytes flipped = record;
            size_t reach = flip % 2 ? record.size() : std::min<size_t>(record.size(), 12); // heads are at the front
            for (unsigned n = 1 + flip % 3; n; n--)
                flipped[d() % reach] ^= static_cast<uint8_t>(flip % 4 ? 1u << d() % 8 : 1 + d() % 255);
            expect_sound_or_refused(flipped, flip % 5 ? anywhere : record_scope{1000, heap_words}, &refused);
            ASSERT_FALSE(HasFailure());
        }
    EXPECT_GT(refused, 1000u);
}

// What a sound record never has, each alone in a record that would be sound without it.
TEST(record, odd_forms_are_refused) {
    const bytes odd[] = {
        {0xd1},                                                             // unknown items
        {0xe1},                                                             //
        {0xf7, 0, 0, 0},                                                    // an unknown operation
        {0x10, 0, 0},                                                       // no words
        {0xb0, 0},                                                          //
        {0xc0, 0},                                                          //
        {0xc1, 0x09},                                                       // a distance without its byte
        {0xc1, 0x06, 1, 2, 3, 4, 5},                                        //
        {0xfa, 20, 0},                                                      // blocks in a row, of nothing
        {0xfa, 20, 9},                                                      // and between words
        {0x00, 0x40, 0x81, 0x20, 0},                                        // more zeros than an item may have
        {0x11, 0xc0, 5, 1},                                                 // an unknown bit
        {0x11, 57, 0, 0, 0, 0, 0, 0, 0, 0, 1},                              // too wide a distance
        {0x91, 0x40, 0x00, 5, 1},                                           // an empty mask
        {0xa1, 0x40, 5, 0x00, 1},                                           //
        {0xb1, 0x0d, 0x00},                                                 //
        {0x11, 0x40, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 1}, // a number of 65 bits
        {0x11, 0x40, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1, 1}, // a word number of 57 bits
    };
    std::vector<uint64_t> memory(100);
    for (const bytes &record : odd) {
        memory_sink sink{memory};
        EXPECT_EQ(decode(record, sink), TY_E_DAMAGED) << ::testing::PrintToString(record);
    }
    const bytes sound[] = {{0x11, 0x40, 5, 1},
                           {0x91, 0x40, 0x02, 5, 1},
                           {0xa1, 0x40, 5, 0x02, 1},
                           {0xb1, 0x0d, 0x02, 1},
                           {0xc1, 0x09, 1},
                           {0xfa, 20, 8},
                           {0x11, 56, 5, 0, 0, 0, 0, 0, 0, 1},
                           {0x01, 0x40, 5}};
    for (const bytes &record : sound) {
        memory_sink sink{memory};
        EXPECT_EQ(decode(record, sink), TY_OK) << ::testing::PrintToString(record);
    }
}

} // namespace
