// Goal: one transaction by itself does what it says: bytes anywhere, its own stores seen, nothing stored before the
// commit, parts taken back, calls after its end.
// Method: small uses of each, in memory that is looked at from outside.
#include "support.hpp"

#include <cstring>
#include <numeric>
#include <string>

namespace taiyen::test {
namespace {

class transaction_test : public testing::Test {
protected:
    domain_of_test domain;
    transaction *own = &domain.join();
};

TEST_F(transaction_test, loads_and_stores_any_bytes) {
    alignas(8) unsigned char memory[200], expected[200];
    std::iota(memory, memory + sizeof memory, 0);
    memcpy(expected, memory, sizeof memory);
    dice dice(3);
    for (int round = 0; round < 1000; round++) {
        bool committed = false;
        ASSERT_EQ(TY_OK, run(
                             *own,
                             [&](transaction &txn) {
                                 for (int i = 0; i < 10; i++) {
                                     unsigned char bytes[64];
                                     const size_t count = 1 + dice.below(64), at = dice.below(200 - count);
                                     EXPECT_TRUE(txn.load(memory + at, bytes, count));
                                     EXPECT_EQ(0, memcmp(bytes, expected + at, count));
                                     for (size_t n = 0; n < count; n++)
                                         bytes[n] = static_cast<unsigned char>(dice.below(256));
                                     EXPECT_TRUE(txn.store(memory + at, bytes, count));
                                     memcpy(expected + at, bytes, count);
                                 }
                                 return verdict::commit;
                             },
                             kind::writes, &committed));
        EXPECT_TRUE(committed);
        ASSERT_EQ(0, memcmp(memory, expected, sizeof memory));
    }
}

TEST_F(transaction_test, stores_nothing_before_it_commits_and_nothing_when_it_is_rolled_back) {
    uint64_t words[2] = {1, 2};
    bool committed = true;
    ASSERT_EQ(TY_OK, run(
                         *own,
                         [&](transaction &txn) {
                             store(txn, words[0], uint64_t{10});
                             EXPECT_EQ(words[0], 1u);
                             EXPECT_EQ(load(txn, words[0]), 10u);
                             return verdict::roll_back;
                         },
                         kind::writes, &committed));
    EXPECT_FALSE(committed);
    EXPECT_EQ(words[0], 1u);
    ASSERT_EQ(TY_OK, run(*own, [&](transaction &txn) {
                  EXPECT_EQ(load(txn, words[0]), 1u);
                  store(txn, words[1], uint64_t{20});
                  return verdict::commit;
              }));
    EXPECT_EQ(words[1], 20u);
}

TEST_F(transaction_test, a_part_is_rolled_back_alone) {
    uint64_t words[3] = {1, 2, 3};
    ASSERT_EQ(TY_OK, run(*own, [&](transaction &txn) {
                  store(txn, words[0], uint64_t{10});
                  EXPECT_FALSE(run_part(txn, [&](transaction &within) {
                      store(within, words[0], uint64_t{11});
                      store(within, words[1], uint64_t{21});
                      return verdict::roll_back;
                  }));
                  EXPECT_EQ(load(txn, words[0]), 10u);
                  EXPECT_EQ(load(txn, words[1]), 2u);
                  EXPECT_TRUE(run_part(txn, [&](transaction &within) {
                      store(within, words[2], uint64_t{31});
                      return verdict::commit;
                  }));
                  return verdict::commit;
              }));
    EXPECT_EQ(words[0], 10u);
    EXPECT_EQ(words[1], 2u);
    EXPECT_EQ(words[2], 31u);
}

TEST_F(transaction_test, a_reader_is_refused_a_store) {
    uint64_t word = 1;
    EXPECT_EQ(TY_E_ARGUMENT, run(
                                 *own,
                                 [&](transaction &txn) {
                                     EXPECT_EQ(load(txn, word), 1u);
                                     EXPECT_FALSE(txn.store(&word, &word, sizeof word));
                                     EXPECT_FALSE(txn.load(&word, &word, sizeof word));
                                     return verdict::commit;
                                 },
                                 kind::reads));
    EXPECT_EQ(word, 1u);
}

TEST_F(transaction_test, calls_what_waits_for_its_end_which_may_begin_another) {
    struct reports {
        transaction *own;
        uint64_t words[2];
        int commits, roll_backs;
    } seen{own, {}, 0, 0};
    auto note = [&](verdict wanted) {
        ASSERT_EQ(TY_OK, run(*own, [&](transaction &txn) {
                      store(txn, seen.words[0], uint64_t{1});
                      EXPECT_EQ(TY_OK, txn.call_after_commit(
                                           [](void *context) {
                                               reports &all = *static_cast<reports *>(context);
                                               all.commits += 1;
                                               EXPECT_EQ(all.words[0], 1u);
                                               run(*all.own, [&](transaction &next) {
                                                   store(next, all.words[1], uint64_t{2});
                                                   EXPECT_EQ(TY_OK, next.call_after_commit([](void *) {}, nullptr));
                                                   return verdict::commit;
                                               });
                                           },
                                           &seen));
                      EXPECT_EQ(TY_OK,
                                txn.call_after_roll_back(
                                    [](void *context) { static_cast<reports *>(context)->roll_backs += 1; }, &seen));
                      return wanted;
                  }));
    };
    note(verdict::roll_back);
    EXPECT_EQ(seen.roll_backs, 1);
    EXPECT_EQ(seen.commits, 0);
    note(verdict::commit);
    EXPECT_EQ(seen.roll_backs, 1);
    EXPECT_EQ(seen.commits, 1);
    EXPECT_EQ(seen.words[1], 2u);
}

// A part that is rolled back takes its calls for the commit with it, and its own roll-back is reported at the end.
TEST_F(transaction_test, a_part_that_is_rolled_back_is_notified) {
    std::string reported;
    const auto note = [&](transaction &txn, const char *what) {
        struct one {
            std::string *reported;
            const char *what;
        };
        const auto report = [](void *context) {
            const auto *each = static_cast<one *>(context);
            *each->reported += each->what;
            delete each;
        };
        EXPECT_EQ(TY_OK, what[0] == 'c' ? txn.call_after_commit(report, new one{&reported, what})
                                        : txn.call_after_roll_back(report, new one{&reported, what}));
    };
    ASSERT_EQ(TY_OK, run(*own, [&](transaction &txn) {
                  note(txn, "c1 ");
                  for (const verdict outcome : {verdict::roll_back, verdict::commit})
                      EXPECT_EQ(outcome == verdict::commit, run_part(txn, [&](transaction &within) {
                                    if (outcome == verdict::roll_back)
                                        note(within, "r2 ");
                                    else
                                        note(within, "c3 ");
                                    return outcome;
                                }));
                  static int never_called = 0;
                  EXPECT_FALSE(run_part(txn, [&](transaction &within) {
                      EXPECT_EQ(TY_OK, within.call_after_commit(
                                           [](void *context) { *static_cast<int *>(context) += 1; }, &never_called));
                      return verdict::roll_back;
                  }));
                  EXPECT_EQ(TY_OK, txn.call_after_commit([](void *of) { EXPECT_EQ(*static_cast<int *>(of), 0); },
                                                         &never_called));
                  EXPECT_EQ(reported, "");
                  return verdict::commit;
              }));
    EXPECT_EQ(reported, "c1 r2 c3 ");
}

TEST_F(transaction_test, what_has_read_nothing_does_not_wait) {
    EXPECT_EQ(TY_E_ARGUMENT, run(*own, [](transaction &) { return verdict::retry; }));
}

} // namespace
} // namespace taiyen::test
