// Goal: threads that use one domain get on: who loses again and again runs alone (Q4), who reads much reads old values
// (Q5), who waits is woken (Q6), who stops all others has the memory to itself, and freed memory can be known to be
// nobody's any more.
// Method: the promise of each is an invariant of the memory (a sum, an order) that is looked at in every transaction,
// while others change the memory as fast as they can.
#include "support.hpp"

#include <atomic>
#include <numeric>

namespace taiyen::test {
namespace {

// Pairs of words whose sum stays the same.
class sums : public testing::Test {
protected:
    void SetUp() override { perturb_one_in(1000); }
    void TearDown() override { perturb_one_in(0); }

    static constexpr size_t count = 20000;
    static constexpr uint64_t each = 1000;

    void move(transaction &own, dice &dice) {
        const size_t from = dice.below(count), to = dice.below(count);
        ASSERT_EQ(TY_OK, run(own, [&](transaction &txn) {
                      store(txn, words[from], load(txn, words[from]) - 1);
                      store(txn, words[to], load(txn, words[to]) + 1);
                      return verdict::commit;
                  }));
    }
    uint64_t sum_in(transaction &txn) {
        uint64_t sum = 0;
        for (const uint64_t &word : words)
            sum += load(txn, word);
        return sum;
    }
    // A row of sums by one reader, in whose first attempts others commit much meanwhile; the most attempts of one.
    void sum_again_and_again(domain_of_test &domain, transaction &own, unsigned *most) {
        for (int i = 0; i < 5; i++) {
            unsigned attempts = 0;
            auto body = [&](transaction &txn) {
                attempts += 1;
                uint64_t sum = load(txn, words[0]);
                for (size_t n = 1; n < count; n++) {
                    for (const uint64_t now = domain->now();
                         attempts <= 3 && n % 1000 == 0 && domain->now() < now + 200;)
                        os::yield();
                    sum += load(txn, words[n]);
                }
                EXPECT_TRUE(sum == each * count || txn.aborted() != TY_OK);
                return verdict::commit;
            };
            ASSERT_EQ(TY_OK, run(own, body, kind::reads));
            *most = attempts > *most ? attempts : *most;
        }
    }
    // One thread does something now and then, while others move.
    template <class Body>
    void among_movers(domain_of_test &domain, unsigned movers, Body body) {
        std::atomic<bool> over{false};
        domain.threads(movers + 1, [&](transaction &own, unsigned number) {
            dice dice(number);
            if (number != 0) {
                while (!over.load(std::memory_order_relaxed))
                    move(own, dice);
                return;
            }
            body(own);
            over.store(true, std::memory_order_relaxed);
        });
        EXPECT_EQ(std::accumulate(words.begin(), words.end(), uint64_t{0}), each * count);
    }

    std::vector<uint64_t> words = std::vector<uint64_t>(count, each);
};

TEST_F(sums, a_long_reader_finishes_and_sees_one_state) {
    domain_of_test domain({20, size_t{512} << 20}); // more than others can change meanwhile
    unsigned attempts = 0;
    among_movers(domain, 2, [&](transaction &own) { sum_again_and_again(domain, own, &attempts); });
    EXPECT_EQ(attempts, 3u);
    EXPECT_GE(domain->count().old_readers, 5u);
}

TEST_F(sums, a_long_reader_for_whose_old_values_there_is_no_room_finishes_alone) {
    domain_of_test domain({20, 32 * 50});
    unsigned attempts = 0;
    among_movers(domain, 2, [&](transaction &own) { sum_again_and_again(domain, own, &attempts); });
    EXPECT_EQ(attempts, 4u);
    EXPECT_GT(domain->count().conflicts[static_cast<size_t>(stm::conflict::evicted)], 0u);
    EXPECT_GT(domain->count().serial, 0u);
}

TEST_F(sums, a_long_writer_finishes_after_some_losses) {
    domain_of_test domain;
    unsigned attempts = 0, most = 0;
    among_movers(domain, 2, [&](transaction &own) {
        for (int i = 0; i < 10; i++) {
            attempts = 0;
            ASSERT_EQ(TY_OK, run(own, [&](transaction &txn) { // every word, and back in the next round
                          attempts += 1;
                          const uint64_t sum = sum_in(txn);
                          for (const uint64_t now = domain->now(); attempts <= 8 && domain->now() < now + 50;)
                              os::yield();
                          EXPECT_TRUE(sum == each * count || txn.aborted() != TY_OK);
                          const uint64_t change = i % 2 == 0 ? 1 : UINT64_MAX;
                          for (size_t n = 0; n < count; n += 2) {
                              store(txn, words[n], load(txn, words[n]) + change);
                              store(txn, words[n + 1], load(txn, words[n + 1]) - change);
                          }
                          return verdict::commit;
                      }));
            most = attempts > most ? attempts : most;
        }
    });
    EXPECT_LE(most, 9u);
    EXPECT_GT(domain->count().serial, 0u);
}

TEST_F(sums, who_stops_the_others_may_store_directly) {
    domain_of_test domain;
    std::atomic<bool> over{false};
    std::thread reader([&] { // in each manner
        transaction &own = domain.join();
        for (unsigned n = 0; !over; n++) {
            own.begin(kind::reads, static_cast<manner>(n % 3));
            const uint64_t sum = sum_in(own);
            EXPECT_TRUE(sum == each * count || own.aborted() != TY_OK);
            static_cast<void>(own.commit());
        }
    });
    among_movers(domain, 2, [&](transaction &) {
        for (int i = 0; i < 50; i++) {
            domain->stop();
            EXPECT_EQ(std::accumulate(words.begin(), words.end(), uint64_t{0}), each * count);
            words[i] += 5;
            os::yield();
            words[i + 1] -= 5;
            domain->go_on();
        }
        over = true;
    });
    reader.join();
}

TEST_F(sums, what_is_older_than_all_that_run_is_nobodys_any_more) {
    // A node is taken out of its place, and becomes another's memory once nobody who runs may have seen it there.
    struct node {
        uint64_t content;
    };
    std::vector<node> nodes(64);
    node *place = &nodes[0];
    place->content = 1;
    domain_of_test domain;
    std::atomic<bool> over{false};
    std::atomic<uint64_t> looks{0};
    domain.threads(3, [&](transaction &own, unsigned number) {
        if (number == 0) {
            while (looks == 0)
                os::yield();
            for (size_t i = 1; i < 2000; i++) {
                node *next = &nodes[i % nodes.size()], *last = nullptr;
                next->content = 1;
                ASSERT_EQ(TY_OK, run(own, [&](transaction &txn) {
                              last = load(txn, place);
                              store(txn, place, next);
                              return verdict::commit;
                          }));
                while (domain->oldest() < own.timestamp())
                    os::yield();
                last->content = 0; // directly
            }
            over = true;
            return;
        }
        while (!over)
            ASSERT_EQ(TY_OK, run(own, [&](transaction &txn) {
                          const node *found = load(txn, place);
                          if (txn.aborted() != TY_OK)
                              return verdict::commit;
                          os::yield();
                          const uint64_t content = load(txn, found->content);
                          EXPECT_TRUE(content == 1 || txn.aborted() != TY_OK);
                          looks += 1;
                          return verdict::commit;
                      }));
    });
}

// Numbers go through a place for one, in both directions of waiting.
TEST(stm_waiting, is_over_when_what_was_read_has_changed) {
    perturb_one_in(20);
    domain_of_test domain;
    uint64_t full = 0, content = 0, taken[2] = {};
    constexpr uint64_t items = 3000;
    domain.threads(4, [&](transaction &own, unsigned number) {
        for (uint64_t i = 1; i <= items; i++)
            ASSERT_EQ(TY_OK, run(own, [&](transaction &txn) {
                          if ((load(txn, full) != 0) == (number < 2))
                              return verdict::retry;
                          store(txn, full, uint64_t{number < 2});
                          if (number < 2)
                              store(txn, content, i);
                          else
                              store(txn, taken[number - 2], load(txn, taken[number - 2]) + load(txn, content));
                          return verdict::commit;
                      }));
    });
    perturb_one_in(0);
    EXPECT_EQ(taken[0] + taken[1], items * (items + 1));
}

TEST(stm_waiting, is_over_when_somebody_has_stored_directly) {
    domain_of_test domain;
    uint64_t go = 0;
    std::atomic<bool> has_looked{false};
    domain.threads(2, [&](transaction &own, unsigned number) {
        if (number == 0) {
            ASSERT_EQ(TY_OK, run(own, [&](transaction &txn) {
                          const bool goes = load(txn, go) != 0;
                          has_looked = true;
                          return goes ? verdict::commit : verdict::retry;
                      }));
            return;
        }
        while (!has_looked)
            os::yield();
        domain->stop();
        go = 1;
        domain->go_on();
    });
}

} // namespace
} // namespace taiyen::test
