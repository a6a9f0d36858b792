// Goal: a write set holds what was put last, byte by byte, and takes parts back.
// Method: random operations against a plain map, with marks in between, sizes that make it grow, and many uses of one.
#include "src/txn/stm/write_set.hpp"
#include "support.hpp"

#include <map>

namespace taiyen::test {
namespace {

using stm::write_set;
using bytes_of_word = std::pair<uint64_t, uint64_t>; // value and mask
using model = std::map<uint64_t *, bytes_of_word>;

void expect_same(const write_set &set, const model &expected, uint64_t *words, size_t count) {
    ASSERT_EQ(set.count(), expected.size());
    for (size_t i = 0; i < count; i++) {
        const stm::written_word *found = set.find(words + i);
        auto wanted = expected.find(words + i);
        ASSERT_EQ(found != nullptr, wanted != expected.end());
        if (found != nullptr) {
            ASSERT_EQ(bytes_of_word(found->value, found->mask), wanted->second);
        }
    }
}

void put(write_set &set, model &expected, uint64_t *word, uint64_t value, uint64_t mask) {
    ASSERT_EQ(TY_OK, set.put(word, value, mask));
    auto &[old_value, old_mask] = expected[word];
    old_value = (old_value & ~mask) | (value & mask);
    old_mask |= mask;
}

TEST(write_set, agrees_with_a_model) {
    static uint64_t words[3000];
    write_set set;
    dice dice(1);
    for (int round = 0; round < 200; round++) {
        model now;
        std::vector<std::pair<write_set::writes_savepoint, model>> savepoints;
        const uint64_t reach = 1 + dice.below(round % 10 == 0 ? 3000 : 40);
        for (uint64_t i = 0; i < 2 * reach; i++) {
            const uint64_t what = dice.below(20);
            if (what == 0) {
                savepoints.emplace_back(set.savepoint(), now);
            } else if (what == 1 && !savepoints.empty()) {
                const size_t to = dice.below(savepoints.size());
                set.back_to(savepoints[to].first);
                now = savepoints[to].second;
                savepoints.resize(to);
            } else {
                const uint64_t mask = UINT64_MAX >> dice.below(57) << dice.below(8);
                put(set, now, words + dice.below(reach), dice.below(UINT32_MAX) * UINT32_MAX, mask);
            }
        }
        expect_same(set, now, words, reach);
        set.clear();
        expect_same(set, {}, words, reach);
    }
}

TEST(write_set, a_large_one_gives_its_memory_back_and_starts_anew) {
    std::vector<uint64_t> words(200000);
    write_set set;
    for (int round = 0; round < 2; round++) {
        for (uint64_t &word : words)
            ASSERT_EQ(TY_OK, set.put(&word, reinterpret_cast<uintptr_t>(&word), UINT64_MAX));
        for (uint64_t &word : words)
            ASSERT_EQ(set.find(&word)->value, reinterpret_cast<uintptr_t>(&word));
        set.clear();
        EXPECT_EQ(set.find(&words[0]), nullptr);
    }
}

} // namespace
} // namespace taiyen::test
