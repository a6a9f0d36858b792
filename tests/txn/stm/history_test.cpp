// Goal: whatever threads do at once, each transaction, also one that is lost, has seen one state of the memory (Q1),
// and those that committed are as if they had run one after the other, in the order of their timestamps (Q2). Method:
// threads load and store a few words, with values that no other store has, and give way between accesses. Each
// attempt's loads are recorded. Afterwards the state at each timestamp is known, and every load is looked up in it.
#include "support.hpp"

#include <algorithm>
#include <map>
#include <numeric>

namespace taiyen::test {
namespace {

constexpr size_t word_count = 24;
constexpr uint64_t transactions = 2000; // of a thread

struct access {
    size_t word;
    uint64_t value;
};

// One attempt.
struct attempt {
    uint64_t start;
    uint64_t timestamp; // 0: it stored nothing, or was lost
    std::vector<access> loads;
    std::vector<access> stores;
};

struct mix {
    const char *name;
    unsigned threads;
    stm::options options;
    uint64_t words; // that are in use
    uint64_t accesses_max;
    uint64_t store_share;  // of ten accesses
    uint64_t reader_share; // of ten transactions
    uint64_t scans;        // of ten readers: all words
};

class history : public testing::TestWithParam<mix> {
protected:
    static constexpr uint64_t initial = 7;

    void record(transaction &own, unsigned number) {
        const mix &how = GetParam();
        dice dice(number + 100);
        uint64_t serial = 0;
        std::vector<attempt> all;
        for (uint64_t n = 0; n < transactions; n++) {
            const bool reads = dice.below(10) < how.reader_share;
            const bool scans = reads && dice.below(10) < how.scans;
            bool committed = false;
            const size_t first = all.size();
            auto body = [&](transaction &txn) {
                attempt now{};
                std::map<size_t, uint64_t> stored;
                const uint64_t accesses = scans ? how.words : 1 + dice.below(how.accesses_max);
                for (uint64_t i = 0; i < accesses && txn.aborted() == TY_OK; i++) {
                    const size_t word = scans ? i : dice.below(how.words);
                    uint64_t value = (uint64_t{number} + 1) << 40 | ++serial;
                    if (!reads && dice.below(10) < how.store_share) {
                        if (txn.store(&words[word], &value, sizeof value))
                            stored[word] = value;
                    } else if (txn.load(&words[word], &value, sizeof value)) {
                        auto own_store = stored.find(word);
                        if (own_store == stored.end())
                            now.loads.push_back({word, value});
                        EXPECT_EQ(value, own_store == stored.end() ? value : own_store->second);
                    }
                }
                for (auto &[word, value] : stored)
                    now.stores.push_back({word, value});
                now.start = txn.start();
                all.push_back(std::move(now));
                return verdict::commit;
            };
            ASSERT_EQ(TY_OK, run(own, body, reads ? kind::reads : kind::writes, &committed));
            ASSERT_TRUE(committed);
            ASSERT_GT(all.size(), first);
            if (!all.back().stores.empty())
                all.back().timestamp = own.timestamp();
        }
        os::lock_guard guard(lock);
        attempts.insert(attempts.end(), all.begin(), all.end());
    }

    // The word's value once all commits up to the timestamp were made.
    uint64_t state_at(size_t word, uint64_t timestamp) const {
        auto next = states[word].upper_bound(timestamp);
        return next == states[word].begin() ? initial : std::prev(next)->second;
    }
    void check() {
        for (const attempt &each : attempts)
            for (const access &stored : each.stores)
                EXPECT_TRUE(each.timestamp == 0 || states[stored.word].emplace(each.timestamp, stored.value).second);
        for (const attempt &each : attempts)
            for (const access &loaded : each.loads) {
                ASSERT_EQ(loaded.value, state_at(loaded.word, each.start)) << "seen amid a commit, or mixed";
                const uint64_t last = each.timestamp != 0 ? each.timestamp - 1 : each.start;
                ASSERT_EQ(loaded.value, state_at(loaded.word, last)) << "changed before its commit";
            }
        for (size_t word = 0; word < word_count; word++)
            EXPECT_EQ(words[word], state_at(word, UINT64_MAX));
    }

    uint64_t words[word_count];
    os::mutex lock{os::lock_rank::registry};
    std::vector<attempt> attempts;
    std::map<uint64_t, uint64_t> states[word_count];
};

TEST_P(history, is_one_of_transactions_that_ran_one_after_the_other) {
    perturb_one_in(20);
    std::fill(words, words + word_count, initial);
    const mix &how = GetParam();
    domain_of_test domain(how.options);
    unsigned rounds = 0;
    for (bool tried = false; !tried; rounds++) { // a round in which no two threads met has tried nothing
        domain.threads(how.threads, [&](transaction &own, unsigned number) { record(own, rounds * 100 + number); });
        const stm::metrics metrics = domain->count();
        const uint64_t conflicts =
            std::accumulate(std::begin(metrics.conflicts), std::end(metrics.conflicts), uint64_t{0});
        tried = conflicts != 0 && (metrics.old_readers != 0 || how.scans == 0);
    }
    perturb_one_in(0);
    check();
    EXPECT_EQ(domain->count().commits, transactions * how.threads * rounds);
}

constexpr stm::options few_orecs{2, size_t{1} << 20};
constexpr stm::options few_old_values{10, 64 * 32};

INSTANTIATE_TEST_SUITE_P(mixes, history,
                         testing::Values(mix{"short", 4, {}, 12, 4, 5, 0, 0}, //
                                         mix{"long", 4, {}, word_count, 30, 3, 2, 0},
                                         mix{"few_orecs", 3, few_orecs, word_count, 6, 4, 2, 0},
                                         mix{"lone_scans", 3, {}, 6, 3, 9, 2, 10},
                                         mix{"scans", 4, {}, word_count, 4, 6, 4, 10},
                                         mix{"forgotten", 4, few_old_values, word_count, 8, 8, 3, 10}),
                         [](const auto &of) { return of.param.name; });

} // namespace
} // namespace taiyen::test
