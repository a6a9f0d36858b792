// Goal: the range cache brings back what was there first, and gives the comparison disjoint ranges in order, each with
// the content that was there when its words were declared first.
// Method: random declares of all sizes over a small memory, with stores in between, against a copy of the memory and a
// map of first contents; from fixed seeds, with so many declares that repeated ones are merged.
#include "src/txn/changes/ranges.hpp"

#include "src/store/log/records/record.hpp"

#include <gtest/gtest.h>
#include <map>
#include <random>
#include <vector>

namespace taiyen::test {
namespace {

constexpr uint64_t words = 2000;

struct cached {
    std::vector<uint64_t> memory = std::vector<uint64_t>(words);
    range_cache cache{};
    std::map<uint64_t, uint64_t> first; // by word: what it held when it was declared first
    std::mt19937_64 random;

    explicit cached(uint64_t seed) : random(seed) {
        for (uint64_t &word : memory)
            word = random();
        EXPECT_EQ(cache.create(reinterpret_cast<char *>(memory.data()), words), TY_OK);
        cache.set_bounds(0, words);
    }
    ~cached() { cache.destroy(); }

    void declare(uint64_t at, uint64_t count) {
        for (uint64_t i = at; i < at + count; i++)
            first.emplace(i, memory[i]);
        if (count != 1 || !cache.add_word(&memory[at], 8)) {
            ASSERT_EQ(cache.add(at, count), TY_OK);
        }
        for (uint64_t i = at; i < at + count; i++)
            memory[i] = random();
    }
    void declare_some(int times, uint64_t most) {
        for (int i = 0; i < times; i++) {
            uint64_t count = random() % 3 != 0 ? 1 : 1 + random() % most;
            declare(random() % (words - count), count);
        }
    }
    void check() {
        const range_entry *entries;
        size_t count;
        ASSERT_EQ(cache.merged(&entries, &count), TY_OK);
        uint64_t end = 0, total = 0;
        for (size_t i = 0; i < count; i++) {
            ASSERT_GE(entries[i].first(), end);
            end = entries[i].end();
            total += entries[i].count();
            for (uint64_t w = 0; w < entries[i].count(); w++)
                ASSERT_EQ(entries[i].before[w], first.at(entries[i].first() + w));
        }
        ASSERT_EQ(total, first.size());
    }
};

TEST(ranges, merged_and_restored_as_declared_first) {
    for (uint64_t seed = 1; seed <= 400; seed++) {
        SCOPED_TRACE(seed);
        cached c(seed);
        std::vector<uint64_t> before = c.memory;
        constexpr int sizes[] = {1, 6, 16, 17, 40, 41, 200, 3000};
        c.declare_some(sizes[seed % std::size(sizes)], seed % 2 != 0 ? 30 : 300);
        c.check();
        c.cache.restore(0, c.cache.count());
        ASSERT_EQ(c.memory, before);
        c.cache.reset();
        ASSERT_TRUE(c.cache.empty());
    }
}

// Of a few single words the same record comes out, whichever way it is made: words declared twice, among others or in a
// row, words that hold what they held, and none that changed.
TEST(ranges, few_words_are_recorded_as_ranges_are) {
    record_words changed;
    size_t declared;
    for (uint64_t seed = 1; seed <= 4000; seed++) {
        SCOPED_TRACE(seed);
        cached c(seed);
        const uint64_t among = seed % 3 == 0 ? 8 : words - 1;
        for (uint64_t i = 0; i <= seed % 16; i++) {
            uint64_t at = c.random() % among;
            uint64_t before = c.memory[at];
            c.declare(at, 1);
            if (c.random() % 4 == 0)
                c.memory[at] = c.random() % 2 ? before : c.first.at(at);
        }
        ASSERT_TRUE(c.cache.changed_words(&changed, &declared));
        EXPECT_EQ(declared, c.first.size());

        const range_entry *entries;
        size_t count;
        ASSERT_EQ(c.cache.merged(&entries, &count), TY_OK);
        std::vector<word_range> ranges;
        for (size_t i = 0; i < count; i++)
            ranges.push_back({entries[i].first(), static_cast<uint32_t>(entries[i].count()), false, entries[i].before,
                              &c.memory[entries[i].first()]});
        record_part part{nullptr, 0, ranges.data(), ranges.size()};
        std::vector<uint8_t> expected(record_bound(part)), record(record_words_bound(changed.count));
        expected.resize(record_encode(part, true, expected.data()));
        record.resize(changed.count != 0 ? record_encode_words(changed, record.data()) : 0);
        ASSERT_EQ(record, expected);
    }
}

TEST(ranges, what_is_not_a_few_words_is_reported) {
    record_words changed;
    size_t declared;
    cached c(10);
    EXPECT_FALSE(c.cache.changed_words(&changed, &declared));
    for (uint64_t i = 0; i < 16; i++)
        c.declare(2 * i, 1);
    EXPECT_TRUE(c.cache.changed_words(&changed, &declared));
    EXPECT_EQ(changed.count, 16u);
    c.declare(100, 1);
    EXPECT_FALSE(c.cache.changed_words(&changed, &declared));
    c.cache.reset();
    c.declare(100, 2);
    EXPECT_FALSE(c.cache.changed_words(&changed, &declared));
    c.cache.reset();
    c.declare(100, 1);
    ASSERT_EQ(c.cache.add_whole(200, 1), TY_OK);
    EXPECT_FALSE(c.cache.changed_words(&changed, &declared));
    c.cache.reset();
    c.declare(100, 1);
    c.cache.start_comparison(c.cache.put_barrier(), 0);
    c.declare(101, 1);
    EXPECT_FALSE(c.cache.changed_words(&changed, &declared));
    c.cache.reset();
    c.declare(100, 1);
    c.cache.start_comparison(1, 0);
    c.declare(101, 1);
    EXPECT_FALSE(c.cache.changed_words(&changed, &declared));
}

// Repeated declares are merged as often, and as much, as if it had just been made.
TEST(ranges, nothing_is_left_of_the_transaction_before) {
    constexpr uint64_t many = 100000, few = 3000;
    std::vector<uint64_t> memory(many);
    range_cache cache{};
    ASSERT_EQ(cache.create(reinterpret_cast<char *>(memory.data()), many), TY_OK);
    cache.set_bounds(0, many);
    auto declare = [&](uint64_t word) {
        if (!cache.add_word(&memory[word], 8)) {
            ASSERT_EQ(cache.add(word, 1), TY_OK);
        }
    };
    auto expect_merged = [&] {
        size_t least = SIZE_MAX, most = 0;
        for (int i = 0; i < 20000; i++) {
            declare(7);
            most = std::max(most, cache.count());
            least = i > 10000 ? std::min(least, cache.count()) : least;
        }
        EXPECT_LT(most, 10000u);
        EXPECT_LT(least, 10u);
        cache.reset();
    };
    expect_merged();
    for (uint64_t i = 0; i < many; i++) // limits grow
        declare(i);
    cache.reset();
    expect_merged();
    for (uint64_t i = 0; i < few; i++)
        declare(i);
    cache.put_barrier();
    cache.reset();
    expect_merged();
    cache.destroy();
}

TEST(ranges, repeated_declares_need_bounded_space) {
    cached c(7);
    std::vector<uint64_t> before = c.memory;
    for (int i = 0; i < 300000; i++)
        c.declare(c.random() % 100, 1);
    EXPECT_LE(c.cache.count(), 8192u);
    for (int i = 0; i < 2000; i++)
        c.declare(0, words - 1);
    EXPECT_LE(c.cache.count(), 8192u);
    c.check();
    c.cache.restore(0, c.cache.count());
    EXPECT_EQ(c.memory, before);
}

TEST(ranges, merging_stops_at_a_barrier) {
    cached c(8);
    c.declare(5, 1);
    uint64_t between = c.memory[5];
    size_t barrier = c.cache.put_barrier();
    for (int i = 0; i < 100000; i++)
        c.declare(5 + c.random() % 2, 1);
    c.cache.restore(barrier, c.cache.count());
    EXPECT_EQ(c.memory[5], between);
}

TEST(ranges, what_is_logged_whole_comes_first_in_the_comparison_and_brings_nothing_back) {
    cached c(9);
    std::vector<uint64_t> before = c.memory;
    c.declare(10, 10);
    ASSERT_EQ(c.cache.add_whole(15, 10), TY_OK);
    const range_entry *entries;
    size_t count;
    ASSERT_EQ(c.cache.merged(&entries, &count), TY_OK);
    ASSERT_EQ(count, 2u);
    EXPECT_EQ(entries[0].key, range_entry::pack(10, 5));
    EXPECT_EQ(entries[1].key, range_entry::pack(15, 10));
    EXPECT_EQ(entries[1].before, nullptr);
    c.cache.restore(0, c.cache.count());
    EXPECT_EQ(c.memory, before);
}

} // namespace
} // namespace taiyen::test
