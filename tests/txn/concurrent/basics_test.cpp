// Goal: transactions of many threads on a volatile and on a transactional heap: they commit or leave nothing, whatever
// they did to words, blocks and roots. Method: bodies that end in each way; a table changed by threads, whose nodes and
// blocks are counted afterwards.
#include "support.hpp"
#include "tests/stats.hpp"

#include <taiyen/concurrent_inline.h>

#include <algorithm>
#include <cstring>
#include <random>

namespace taiyen::test {
namespace {

enum class sort { volatile_heap, transactional };

class atomic_test : public testing::TestWithParam<sort> {
protected:
    void SetUp() override {
        if (GetParam() == sort::transactional) {
            files_ = std::make_unique<concurrent_test_heap>();
            heap_ = files_->get();
            return;
        }
        ty_heap_options options = TY_HEAP_OPTIONS_INIT;
        options.concurrent = true;
        options.limit_bytes = size_t{64} << 20;
        ASSERT_EQ(TY_OK, ty_heap_create(&options, &heap_));
    }
    void TearDown() override {
        if (files_ == nullptr) {
            EXPECT_EQ(TY_OK, ty_heap_destroy(heap_));
        }
    }
    uint64_t *word() {
        uint64_t *made = nullptr;
        EXPECT_OK(atomically(heap_, [&](ty_atomic_txn *txn) {
            made = static_cast<uint64_t *>(ty_atomic_alloc(txn, sizeof *made));
            return made != nullptr ? TY_OK : TY_E_MEMORY;
        }));
        return made;
    }
    uint64_t live_blocks() { return heap_stats_of(heap_).live_blocks; }
    // What was freed goes while other transactions free, but not while a snapshot is being collected.
    void free_until_less_than(uint64_t blocks) {
        while (live_blocks() >= blocks)
            ASSERT_OK(atomically(heap_, [](ty_atomic_txn *txn) -> ty_status {
                void *made = ty_atomic_alloc(txn, 64);
                return made != nullptr ? ty_atomic_free(txn, made) : TY_E_MEMORY;
            }));
    }

    std::unique_ptr<concurrent_test_heap> files_;
    ty_heap *heap_ = nullptr;
};

TEST_P(atomic_test, commits_or_leaves_nothing) {
    uint64_t *value = word();
    ty_atomic_result reported = result();
    EXPECT_OK(atomically(
        heap_, [&](ty_atomic_txn *txn) { return store(txn, *value, uint64_t{5}); }, nullptr, &reported));
    EXPECT_TRUE(reported.committed);
    EXPECT_EQ(1u, reported.runs);
    EXPECT_EQ(5u, *value);
    const uint64_t blocks = live_blocks();
    EXPECT_EQ(TY_E_EXISTS, atomically(
                               heap_,
                               [&](ty_atomic_txn *txn) -> ty_status {
                                   RETURN_IF(store(txn, *value, uint64_t{6}));
                                   EXPECT_NE(nullptr, ty_atomic_alloc(txn, 100));
                                   RETURN_IF(ty_atomic_root_set(txn, "root", value));
                                   return TY_E_EXISTS;
                               },
                               nullptr, &reported));
    EXPECT_FALSE(reported.committed);
    EXPECT_EQ(5u, *value);
    EXPECT_EQ(nullptr, ty_root(heap_, "root"));
    EXPECT_EQ(blocks, live_blocks());
}

TEST_P(atomic_test, a_part_is_rolled_back_alone) {
    uint64_t *value = word();
    void *kept = nullptr;
    const uint64_t blocks = live_blocks();
    EXPECT_OK(atomically(heap_, [&](ty_atomic_txn *txn) -> ty_status {
        RETURN_IF(store(txn, *value, uint64_t{1}));
        kept = ty_atomic_alloc(txn, 64);
        EXPECT_EQ(TY_E_NOT_FOUND, atomically(heap_, [&](ty_atomic_txn *part) -> ty_status {
                      RETURN_IF(store(part, *value, uint64_t{2}));
                      EXPECT_NE(nullptr, ty_atomic_alloc(part, 64));
                      RETURN_IF(ty_atomic_free(part, kept));
                      RETURN_IF(ty_atomic_root_set(part, "root", kept));
                      return TY_E_NOT_FOUND;
                  }));
        uint64_t seen = 0;
        RETURN_IF(load(txn, *value, &seen));
        EXPECT_EQ(1u, seen);
        return TY_OK;
    }));
    EXPECT_EQ(1u, *value);
    EXPECT_EQ(nullptr, ty_root(heap_, "root"));
    EXPECT_EQ(blocks + 1, live_blocks());
    EXPECT_EQ(heap_, ty_heap_of(kept));
}

TEST_P(atomic_test, roots_are_part_of_it) {
    uint64_t *value = word();
    EXPECT_OK(atomically(heap_, [&](ty_atomic_txn *txn) -> ty_status {
        void *found = value;
        RETURN_IF(ty_atomic_root(txn, "a", &found));
        EXPECT_EQ(nullptr, found);
        RETURN_IF(ty_atomic_root_set(txn, "a", value));
        RETURN_IF(ty_atomic_root(txn, "a", &found));
        EXPECT_EQ(value, found);
        RETURN_IF(ty_atomic_root_set(txn, "b", value));
        return ty_atomic_root_set(txn, "b", nullptr); // the last one counts
    }));
    EXPECT_EQ(value, ty_root(heap_, "a"));
    EXPECT_EQ(nullptr, ty_root(heap_, "b"));
    // All that there is room for, by a transaction that makes room at its end.
    EXPECT_OK(atomically(heap_, [&](ty_atomic_txn *txn) -> ty_status {
        for (unsigned i = 0; i < TY_ROOT_COUNT_MAX; i++) {
            char name[16];
            snprintf(name, sizeof name, "root %u", i);
            RETURN_IF(ty_atomic_root_set(txn, name, value));
        }
        return ty_atomic_root_set(txn, "a", nullptr);
    }));
    EXPECT_EQ(nullptr, ty_root(heap_, "a"));
    EXPECT_EQ(TY_E_MEMORY,
              atomically(heap_, [&](ty_atomic_txn *txn) { return ty_atomic_root_set(txn, "one more", value); }));
    EXPECT_EQ(nullptr, ty_root(heap_, "one more"));
    EXPECT_EQ(value, ty_root(heap_, "root 7"));
}

TEST_P(atomic_test, what_is_wrong_is_reported) {
    uint64_t *value = word();
    uint64_t outside = 0;
    ty_atomic_options reads = TY_ATOMIC_OPTIONS_INIT;
    reads.reads_only = true;
    EXPECT_OK(atomically(heap_, [&](ty_atomic_txn *txn) {
        uint64_t seen = 1;
        EXPECT_EQ(TY_E_ARGUMENT, load(txn, outside, &seen));
        EXPECT_EQ(0u, seen);
        EXPECT_EQ(TY_E_ARGUMENT, store(txn, outside, uint64_t{1}));
        const volatile size_t endless = SIZE_MAX; // no such place is zeroed
        EXPECT_EQ(TY_E_ARGUMENT, ty_atomic_load(txn, value, &seen, endless));
        EXPECT_EQ(TY_E_ARGUMENT, ty_atomic_store(txn, value, &seen, endless));
        EXPECT_EQ(TY_E_ARGUMENT, ty_atomic_free(txn, value + 1));
        EXPECT_EQ(TY_E_ARGUMENT, ty_atomic_free(txn, &outside));
        return TY_OK; // of these calls alone
    }));
    EXPECT_EQ(TY_E_ARGUMENT, atomically(
                                 heap_, [&](ty_atomic_txn *txn) { return store(txn, *value, uint64_t{1}); }, &reads));
    EXPECT_EQ(TY_E_ARGUMENT, atomically(heap_, [](ty_atomic_txn *txn) { return ty_atomic_retry(txn); }));
    EXPECT_EQ(nullptr, ty_current_atomic_txn(heap_));
    EXPECT_OK(atomically(heap_, [&](ty_atomic_txn *txn) {
        EXPECT_EQ(txn, ty_current_atomic_txn(heap_));
        return TY_OK;
    }));
    EXPECT_EQ(0u, *value);
}

TEST_P(atomic_test, a_block_is_freed_once) {
    uint64_t *value = word();
    EXPECT_OK(atomically(heap_, [&](ty_atomic_txn *txn) -> ty_status {
        RETURN_IF(ty_atomic_free(txn, value));
        EXPECT_EQ(TY_E_ARGUMENT, ty_atomic_free(txn, value));
        EXPECT_EQ(nullptr, ty_atomic_resize(txn, value, 1000));
        return TY_OK;
    }));
    EXPECT_EQ(TY_E_ARGUMENT, atomically(heap_, [&](ty_atomic_txn *txn) { return ty_atomic_free(txn, value); }));
}

// Which blocks a transaction has freed is looked up, where they are many; a part that is rolled back has freed none.
TEST_P(atomic_test, many_blocks_are_freed_once) {
    constexpr size_t many = 500, half = many / 2;
    const uint64_t before = live_blocks();
    std::vector<void *> blocks(many);
    EXPECT_OK(atomically(heap_, [&](ty_atomic_txn *txn) {
        for (void *&block : blocks)
            block = ty_atomic_alloc(txn, 64);
        return ty_atomic_status(txn);
    }));
    const auto free_some = [&](ty_atomic_txn *txn, size_t from, size_t end) -> ty_status {
        for (size_t i = from; i < end; i++)
            RETURN_IF(ty_atomic_free(txn, blocks[i]));
        return TY_OK;
    };
    for (unsigned run = 0; run < 2; run++) // the first one is rolled back
        EXPECT_EQ(run == 0 ? TY_E_NOT_FOUND : TY_OK, atomically(heap_, [&](ty_atomic_txn *txn) -> ty_status {
                      RETURN_IF(free_some(txn, 0, half));
                      EXPECT_EQ(TY_E_NOT_FOUND, atomically(heap_, [&](ty_atomic_txn *part) -> ty_status {
                                    RETURN_IF(free_some(part, half, many));
                                    EXPECT_EQ(TY_E_ARGUMENT, ty_atomic_free(part, blocks[many - 1]));
                                    return TY_E_NOT_FOUND;
                                }));
                      for (size_t i = many; i-- > half;) // in another order
                          RETURN_IF(ty_atomic_free(txn, blocks[i]));
                      for (void *block : blocks)
                          EXPECT_EQ(TY_E_ARGUMENT, ty_atomic_free(txn, block));
                      return run == 0 ? TY_E_NOT_FOUND : TY_OK;
                  }));
    free_until_less_than(before + many);
}

// A run that met a conflict frees a block that another thread has freed: the next run sees that.
TEST_P(atomic_test, a_block_that_another_frees_is_freed_once) {
    uint64_t *value = word();
    unsigned runs = 0;
    EXPECT_EQ(TY_E_ARGUMENT, atomically(heap_, [&](ty_atomic_txn *txn) -> ty_status {
                  ++runs;
                  RETURN_IF(ty_atomic_free(txn, value));
                  if (runs == 1)
                      std::thread([&] {
                          EXPECT_OK(
                              atomically(heap_, [&](ty_atomic_txn *other) { return ty_atomic_free(other, value); }));
                      }).join();
                  return TY_OK;
              }));
    EXPECT_EQ(2u, runs);
    EXPECT_EQ(TY_E_ARGUMENT, atomically(heap_, [&](ty_atomic_txn *txn) { return ty_atomic_free(txn, value); }));
}

// A block that was freed is refused at each call, also where it is given back, and is another one, before the commit.
TEST_P(atomic_test, a_freed_block_is_refused_at_once) {
    void *block = word();
    EXPECT_OK(atomically(heap_, [&](ty_atomic_txn *txn) { return ty_atomic_free(txn, block); }));
    unsigned runs = 0;
    EXPECT_EQ(TY_E_ARGUMENT, atomically(heap_, [&](ty_atomic_txn *txn) {
                  runs++;
                  EXPECT_EQ(nullptr, ty_atomic_resize(txn, block, 1000));
                  const ty_status refused = ty_atomic_free(txn, block);
                  return refused != TY_OK ? refused : TY_E_EXISTS;
              }));
    EXPECT_EQ(1u, runs);
    if (GetParam() == sort::volatile_heap)
        return;
    ty_txn *plain = nullptr; // one that has the heap to itself refuses it, too
    ASSERT_OK(ty_begin(heap_, nullptr, &plain));
    EXPECT_EQ(TY_E_ARGUMENT, ty_txn_free(plain, block));
    EXPECT_EQ(nullptr, ty_txn_resize(plain, block, 1000));
    ASSERT_OK(ty_commit(plain));
}

TEST_P(atomic_test, one_that_only_reads_allocates_nothing) {
    const uint64_t before = live_blocks();
    ty_atomic_options reads = TY_ATOMIC_OPTIONS_INIT;
    reads.reads_only = true;
    EXPECT_EQ(TY_E_ARGUMENT, atomically(
                                 heap_,
                                 [&](ty_atomic_txn *txn) {
                                     EXPECT_EQ(nullptr, ty_atomic_alloc(txn, 64));
                                     return ty_atomic_status(txn);
                                 },
                                 &reads));
    EXPECT_EQ(before, live_blocks());
}

// Bytes that lie in two blocks of its own are in both at once.
TEST_P(atomic_test, a_store_over_two_blocks_of_its_own) {
    EXPECT_OK(atomically(heap_, [&](ty_atomic_txn *txn) -> ty_status {
        char *blocks[64];
        for (char *&each : blocks)
            if ((each = static_cast<char *>(ty_atomic_alloc(txn, 64))) == nullptr)
                return ty_atomic_status(txn);
        std::sort(std::begin(blocks), std::end(blocks));
        char **pair = std::adjacent_find(std::begin(blocks), std::end(blocks),
                                         [](const char *first, const char *next) { return next == first + 64; });
        EXPECT_NE(std::end(blocks), pair);
        const char ones[20] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
        RETURN_IF(ty_atomic_store(txn, pair[1] - 12, ones, sizeof ones));
        EXPECT_EQ(1, pair[1][-12]);
        EXPECT_EQ(1, pair[1][7]);
        EXPECT_EQ(0, pair[1][8]);
        pair[1][0] = 2; // the last store counts
        return ty_atomic_root_set(txn, "pair", pair[1]);
    }));
    EXPECT_EQ(2, *static_cast<char *>(ty_root(heap_, "pair")));
}

// A body that sleeps keeps no block that its run has allocated.
TEST_P(atomic_test, a_body_that_waits_has_no_blocks) {
    uint64_t *value = word();
    const uint64_t before = live_blocks();
    std::atomic<bool> allocated{false};
    std::thread waits([&] {
        EXPECT_OK(atomically(heap_, [&](ty_atomic_txn *txn) -> ty_status {
            uint64_t seen = 0;
            RETURN_IF(load(txn, *value, &seen));
            if (seen != 0)
                return TY_OK;
            EXPECT_NE(nullptr, ty_atomic_alloc(txn, 64));
            allocated = true;
            return ty_atomic_retry(txn);
        }));
    });
    while (!allocated || live_blocks() != before)
        std::this_thread::yield();
    EXPECT_OK(atomically(heap_, [&](ty_atomic_txn *txn) { return store(txn, *value, uint64_t{1}); }));
    waits.join();
}

// They are long, or few: not only when they are many.
TEST_P(atomic_test, freed_blocks_are_given_back) {
    const ty_heap_stats stats = heap_stats_of(heap_);
    const size_t most = stats.limit_bytes;
    const auto make = [&](size_t bytes) {
        void *made = nullptr;
        EXPECT_OK(atomically(heap_, [&](ty_atomic_txn *txn) {
            made = ty_atomic_alloc(txn, bytes);
            return made != nullptr ? TY_OK : TY_E_MEMORY;
        }));
        return made;
    };
    const auto drop = [&](void *block) {
        EXPECT_OK(atomically(heap_, [&](ty_atomic_txn *txn) { return ty_atomic_free(txn, block); }));
    };
    void *long_one = make(most * 2 / 3);
    drop(long_one);
    drop(make(most * 2 / 3));
    const uint64_t before = live_blocks();
    constexpr int few = 20;
    const auto drop_some = [&] {
        for (int i = 0; i < few; i++)
            drop(make(64));
    };
    drop_some();
    std::thread(drop_some).join(); // and those of a thread that has ended
    uint64_t *value = word();
    for (unsigned i = 0; i < 100000 && live_blocks() > before + few / 2; i++) // not while a snapshot is being collected
        EXPECT_OK(atomically(heap_, [&](ty_atomic_txn *txn) { return add_to(txn, *value, 1); }));
    EXPECT_LE(live_blocks(), before + few / 2); // a snapshot may have made a list of blocks
}

// What calls after the end do changes nothing of the transaction that they came from.
TEST_P(atomic_test, calls_after_the_end_run_transactions) {
    struct given {
        ty_heap *heap;
        uint64_t *words;
        unsigned rolled_back = 0, committed = 0;
        uint64_t lsn = 0;
    } all{heap_, nullptr};
    EXPECT_OK(atomically(heap_, [&](ty_atomic_txn *txn) {
        all.words = static_cast<uint64_t *>(ty_atomic_alloc(txn, 3 * 64));
        return ty_atomic_status(txn);
    }));
    const auto add_within = [](given &to, unsigned word, ty_atomic_result *reported) {
        EXPECT_OK(atomically(
            to.heap, [&](ty_atomic_txn *txn) { return add_to(txn, to.words[word * 8], 1); }, nullptr, reported));
    };
    static const auto add = add_within;
    for (const bool alone : {false, true}) {
        ty_atomic_options options = TY_ATOMIC_OPTIONS_INIT;
        options.irrevocable = alone;
        ty_atomic_result reported = result();
        unsigned runs = 0;
        EXPECT_OK(atomically(
            heap_,
            [&](ty_atomic_txn *txn) -> ty_status {
                ++runs;
                RETURN_IF(ty_atomic_on_rollback(
                    txn,
                    [](void *context) {
                        auto &to = *static_cast<given *>(context);
                        to.rolled_back++;
                        add(to, 1, nullptr);
                    },
                    &all));
                RETURN_IF(ty_atomic_on_commit(
                    txn,
                    [](void *context) {
                        auto &to = *static_cast<given *>(context);
                        ty_atomic_result of_call = result();
                        to.committed++;
                        add(to, 1, &of_call);
                        to.lsn = of_call.lsn;
                    },
                    &all));
                RETURN_IF(add_to(txn, all.words[0], 1));
                if (runs == 1 && !alone)
                    std::thread([&] { add(all, 0, nullptr); }).join();
                return TY_OK;
            },
            &options, &reported));
        EXPECT_TRUE(reported.committed);
        EXPECT_EQ(alone ? 1u : 2u, reported.runs);
        EXPECT_EQ(all.lsn, reported.lsn + 1);
    }
    EXPECT_EQ(1u, all.rolled_back);
    EXPECT_EQ(2u, all.committed);
    EXPECT_EQ(3u, all.words[0]);
    EXPECT_EQ(3u, all.words[8]);
}

// X26: a run that is rolled back has freed its blocks before it calls anybody.
TEST_P(atomic_test, calls_after_a_rollback_find_its_blocks_free) {
    struct given {
        ty_heap *heap;
        uint64_t *words;
        unsigned rolled_back = 0;
    } all{heap_, nullptr};
    EXPECT_OK(atomically(heap_, [&](ty_atomic_txn *txn) {
        all.words = static_cast<uint64_t *>(ty_atomic_alloc(txn, 3 * 64));
        return ty_atomic_status(txn);
    }));
    const size_t before = live_blocks();
    unsigned runs = 0;
    EXPECT_OK(atomically(heap_, [&](ty_atomic_txn *txn) -> ty_status {
        const bool first = runs++ == 0;
        RETURN_IF(ty_atomic_on_rollback(
            txn,
            [](void *context) {
                auto &to = *static_cast<given *>(context);
                to.rolled_back++;
                EXPECT_OK(atomically(to.heap, [&](ty_atomic_txn *own) {
                    ty_atomic_alloc(own, 64);
                    return add_to(own, to.words[8], 1);
                }));
            },
            &all));
        RETURN_IF(add_to(txn, all.words[0], 1));
        if (!first)
            return TY_OK;
        ty_atomic_alloc(txn, 64);
        std::thread([&] {
            EXPECT_OK(atomically(heap_, [&](ty_atomic_txn *own) { return add_to(own, all.words[0], 1); }));
        }).join();
        return ty_atomic_status(txn);
    }));
    EXPECT_EQ(2u, runs);
    EXPECT_EQ(1u, all.rolled_back);
    EXPECT_EQ(2u, all.words[0]);
    EXPECT_EQ(before + 1, live_blocks());
}

TEST_P(atomic_test, a_freed_block_stays_while_it_may_be_read) {
    constexpr unsigned many = 1500; // so that blocks that nobody can read are given back
    uint64_t **places = nullptr;
    EXPECT_OK(atomically(heap_, [&](ty_atomic_txn *txn) {
        places = static_cast<uint64_t **>(ty_atomic_alloc(txn, many * sizeof *places));
        for (unsigned i = 0; i < many; i++)
            places[i] = static_cast<uint64_t *>(ty_atomic_alloc(txn, 64));
        return ty_atomic_status(txn);
    }));
    EXPECT_OK(atomically(heap_, [&](ty_atomic_txn *txn) -> ty_status {
        uint64_t *block = nullptr;
        RETURN_IF(load(txn, places[0], &block));
        std::thread([&] {
            for (unsigned i = 0; i < many; i++)
                EXPECT_OK(atomically(heap_, [&](ty_atomic_txn *other) -> ty_status {
                    uint64_t *gone = nullptr;
                    RETURN_IF(load(other, places[i], &gone));
                    RETURN_IF(store(other, places[i], static_cast<uint64_t *>(nullptr)));
                    return ty_atomic_free(other, gone);
                }));
        }).join();
        ty_block found{};
        EXPECT_EQ(TY_OK, ty_block_of(block, &found));
        return TY_OK;
    }));
    const uint64_t blocks = live_blocks();
    free_until_less_than(blocks);
}

// Threads free the same few blocks, and mostly fail to. No thread may see that its block is freed already.
TEST_P(atomic_test, threads_free_the_same_blocks) {
    constexpr unsigned slots = 2, hot_words = 4;
    uint64_t **places = nullptr, *hot = nullptr;
    EXPECT_OK(atomically(heap_, [&](ty_atomic_txn *txn) {
        places = static_cast<uint64_t **>(ty_atomic_alloc(txn, slots * sizeof *places));
        hot = static_cast<uint64_t *>(ty_atomic_alloc(txn, hot_words * 64));
        for (unsigned i = 0; i < slots; i++)
            places[i] = static_cast<uint64_t *>(ty_atomic_alloc(txn, 64));
        return ty_atomic_status(txn);
    }));
    in_threads(6, [&](unsigned number) {
        dice random(number);
        const ty_atomic_options options = async();
        for (unsigned i = 0; i < 3000; i++)
            EXPECT_OK(atomically(
                heap_,
                [&](ty_atomic_txn *txn) -> ty_status {
                    uint64_t *&place = places[random.below(slots)];
                    uint64_t *block = nullptr, seen = 0;
                    RETURN_IF(load(txn, hot[random.below(hot_words) * 8], &seen)); // what fails the validation
                    RETURN_IF(load(txn, place, &block));
                    RETURN_IF(add_to(txn, hot[random.below(hot_words) * 8], 1));
                    auto *made = static_cast<uint64_t *>(ty_atomic_alloc(txn, 64));
                    if (made == nullptr)
                        return ty_atomic_status(txn) != TY_OK ? ty_atomic_status(txn) : TY_E_MEMORY;
                    RETURN_IF(store(txn, place, made));
                    return ty_atomic_free(txn, block);
                },
                &options));
    });
}

TEST_P(atomic_test, a_resize_keeps_the_content) {
    uint64_t *value = word(), *larger = nullptr;
    const uint64_t blocks = live_blocks();
    EXPECT_OK(atomically(heap_, [&](ty_atomic_txn *txn) -> ty_status {
        RETURN_IF(store(txn, *value, uint64_t{77}));
        larger = static_cast<uint64_t *>(ty_atomic_resize(txn, value, 5000));
        uint64_t seen = 0;
        RETURN_IF(load(txn, *larger, &seen));
        EXPECT_EQ(77u, seen);
        return store(txn, larger[600], uint64_t{78});
    }));
    EXPECT_EQ(77u, larger[0]);
    EXPECT_EQ(78u, larger[600]);
    EXPECT_LE(blocks, live_blocks());
}

// The rest of the old block is copied at once, not at the commit.
TEST_P(atomic_test, what_is_stored_after_a_resize_stays) {
    char *block = nullptr;
    EXPECT_OK(atomically(heap_, [&](ty_atomic_txn *txn) -> ty_status {
        block = static_cast<char *>(ty_atomic_alloc(txn, 100));
        memset(block, 1, 100);
        return ty_atomic_status(txn);
    }));
    EXPECT_OK(atomically(heap_, [&](ty_atomic_txn *txn) -> ty_status {
        block = static_cast<char *>(ty_atomic_resize(txn, block, 3000));
        memset(block + 100, 2, 2900);
        return ty_atomic_status(txn);
    }));
    EXPECT_EQ(std::string(100, 1) + std::string(2900, 2), std::string(block, 3000));
}

// In a block of its own the last store counts, of whichever kind, and each is seen by the next load of whichever (X32).
TEST_P(atomic_test, stores_of_both_kinds_to_a_block_of_its_own) {
    constexpr size_t count = 64; // also where blocks are looked up
    for (const size_t blocks : {size_t{1}, count}) {
        std::vector<uint64_t *> made(blocks);
        EXPECT_OK(atomically(heap_, [&](ty_atomic_txn *txn) -> ty_status {
            for (uint64_t *&each : made)
                each = static_cast<uint64_t *>(ty_atomic_alloc(txn, 64));
            RETURN_IF(ty_atomic_status(txn));
            for (uint64_t *each : made) {
                uint64_t seen = 0;
                RETURN_IF(store(txn, each[0], uint64_t{1}));
                EXPECT_EQ(1u, each[0]);
                each[0] = 2;
                RETURN_IF(load(txn, each[0], &seen));
                EXPECT_EQ(2u, seen);
                each[1] = 3;
                RETURN_IF(store(txn, each[1], uint64_t{4}));
                RETURN_IF(store(txn, reinterpret_cast<uint16_t *>(each + 2)[1], uint16_t{5}));
                reinterpret_cast<uint16_t *>(each + 2)[0] = 6;
            }
            return TY_OK;
        }));
        for (const uint64_t *each : made) {
            EXPECT_EQ(2u, each[0]);
            EXPECT_EQ(4u, each[1]);
            EXPECT_EQ(uint64_t{5} << 16 | 6, each[2]);
        }
        if (files_ == nullptr)
            continue;
        files_->die(); // and so it is in the log
        files_->open();
        heap_ = files_->get();
        for (const uint64_t *each : made)
            EXPECT_EQ(2u, each[0]);
    }
}

// Likewise for each word of blocks of many sizes, in any order, with stores elsewhere in between (X32).
TEST_P(atomic_test, stores_to_each_word_of_blocks_of_its_own) {
    std::mt19937_64 dice(7);
    std::vector<uint64_t *> words, elsewhere(200);
    EXPECT_OK(atomically(heap_, [&](ty_atomic_txn *txn) -> ty_status {
        for (uint64_t *&each : elsewhere)
            each = static_cast<uint64_t *>(ty_atomic_alloc(txn, 16));
        return ty_atomic_status(txn);
    }));
    EXPECT_OK(atomically(heap_, [&](ty_atomic_txn *txn) -> ty_status {
        words.clear();
        for (const size_t bytes : {16, 48, 64, 80, 200, 1000, 5000}) {
            auto *made = static_cast<uint64_t *>(ty_atomic_alloc(txn, bytes));
            RETURN_IF(ty_atomic_status(txn));
            for (size_t i = 0; i < bytes / 8; i++)
                words.push_back(made + i);
            std::shuffle(words.begin(), words.end(), dice);
            for (size_t i = 0; i < words.size(); i++) {
                uint64_t *other = elsewhere[i % elsewhere.size()];
                RETURN_IF(store(txn, *words[i], i + bytes));
                RETURN_IF(store(txn, *other, i));
                EXPECT_EQ(i + bytes, *words[i]);
                EXPECT_EQ(0u, *other);
            }
        }
        return TY_OK;
    }));
    for (size_t i = 0; i < words.size(); i++)
        EXPECT_EQ(i + 5000, *words[i]);
}

TEST_P(atomic_test, a_part_takes_back_what_it_stored_to_a_block_of_the_whole) {
    uint64_t *made = nullptr;
    EXPECT_OK(atomically(heap_, [&](ty_atomic_txn *txn) -> ty_status {
        made = static_cast<uint64_t *>(ty_atomic_alloc(txn, 64));
        RETURN_IF(store(txn, made[0], uint64_t{1}));
        EXPECT_EQ(TY_E_EXISTS, atomically(heap_, [&](ty_atomic_txn *part) -> ty_status {
                      auto *own = static_cast<uint64_t *>(ty_atomic_alloc(part, 64));
                      RETURN_IF(store(part, own[0], uint64_t{9}));
                      RETURN_IF(store(part, made[0], uint64_t{2}));
                      RETURN_IF(store(part, made[0], uint64_t{3}));
                      RETURN_IF(store(part, reinterpret_cast<uint8_t *>(made)[11], uint8_t{4}));
                      return TY_E_EXISTS;
                  }));
        EXPECT_EQ(1u, made[0]);
        EXPECT_EQ(0u, made[1]);
        return atomically(heap_, [&](ty_atomic_txn *part) { return store(part, made[2], uint64_t{5}); });
    }));
    EXPECT_EQ(1u, made[0]);
    EXPECT_EQ(5u, made[2]);
}

// Halves of words, alone and with the other half, beside whole words and single bytes.
TEST_P(atomic_test, halves_of_words) {
    auto *halves = reinterpret_cast<uint32_t *>(word());
    EXPECT_OK(atomically(heap_, [&](ty_atomic_txn *txn) -> ty_status {
        uint32_t seen = 1;
        RETURN_IF(load(txn, halves[1], &seen));
        EXPECT_EQ(0u, seen);
        return store(txn, halves[1], uint32_t{0x11223344});
    }));
    EXPECT_EQ(0u, halves[0]);
    EXPECT_EQ(0x11223344u, halves[1]);
    EXPECT_OK(atomically(heap_, [&](ty_atomic_txn *txn) -> ty_status {
        uint32_t seen = 0;
        uint64_t whole = 0;
        RETURN_IF(store(txn, halves[0], uint32_t{0x55667788}));
        RETURN_IF(load(txn, halves[1], &seen));
        EXPECT_EQ(0x11223344u, seen);
        RETURN_IF(store(txn, reinterpret_cast<uint8_t *>(halves)[7], uint8_t{0x99}));
        RETURN_IF(load(txn, halves[1], &seen));
        EXPECT_EQ(0x99223344u, seen);
        RETURN_IF(load(txn, *reinterpret_cast<uint64_t *>(halves), &whole));
        EXPECT_EQ(0x9922334455667788u, whole);
        return TY_OK;
    }));
    EXPECT_EQ(0x9922334455667788u, *reinterpret_cast<uint64_t *>(halves));
    in_threads(4, [&](unsigned number) { // none overwrites its neighbour
        for (unsigned i = 0; i < 2000; i++)
            EXPECT_OK(atomically(heap_, [&](ty_atomic_txn *txn) -> ty_status {
                uint32_t seen = 0;
                RETURN_IF(load(txn, halves[number % 2], &seen));
                return store(txn, halves[number % 2], seen + 1);
            }));
    });
    EXPECT_EQ(0x55667788u + 4000, halves[0]);
    EXPECT_EQ(0x99223344u + 4000, halves[1]);
}

// Loads without a call: the same values and failures as by the call, also of what the transaction has stored, in parts
// of words, in pages that the heap got meanwhile, and after a conflict.
TEST_P(atomic_test, inline_loads) {
    uint64_t *value = nullptr;
    EXPECT_OK(atomically(heap_, [&](ty_atomic_txn *txn) {
        value = static_cast<uint64_t *>(ty_atomic_alloc(txn, 128));
        return ty_atomic_status(txn);
    }));
    const uint64_t *other = value + 8; // of another orec
    auto *halves = reinterpret_cast<uint32_t *>(value);
    const auto both = [&](ty_atomic_txn *txn, uint64_t expected) -> ty_status {
        uint64_t whole = 1;
        uint32_t low = 1, high = 1;
        RETURN_IF(ty_atomic_load_word(txn, value, &whole));
        RETURN_IF(ty_atomic_load_half(txn, halves, &low));
        RETURN_IF(ty_atomic_load_half(txn, halves + 1, &high));
        EXPECT_EQ(expected, whole);
        EXPECT_EQ(expected, uint64_t{high} << 32 | low);
        return TY_OK;
    };
    EXPECT_OK(atomically(heap_, [&](ty_atomic_txn *txn) -> ty_status {
        RETURN_IF(both(txn, 0));
        RETURN_IF(store(txn, halves[1], uint32_t{5}));
        RETURN_IF(both(txn, uint64_t{5} << 32));
        RETURN_IF(store(txn, *value, uint64_t{7}));
        return both(txn, 7);
    }));
    EXPECT_OK(atomically(heap_, [&](ty_atomic_txn *txn) -> ty_status { // the range that it began with is too short
        auto *made = static_cast<uint64_t *>(ty_atomic_alloc(txn, size_t{4} << 20));
        EXPECT_NE(nullptr, made);
        uint64_t seen = 1;
        RETURN_IF(ty_atomic_load_word(txn, made + 500000, &seen));
        EXPECT_EQ(0u, seen);
        return both(txn, 7);
    }));
    EXPECT_OK(atomically(heap_, [&](ty_atomic_txn *txn) {
        uint64_t whole = 1, outside = 3;
        uint32_t half = 1;
        EXPECT_EQ(TY_E_ARGUMENT, ty_atomic_load_word(txn, &outside, &whole));
        EXPECT_EQ(TY_E_ARGUMENT, ty_atomic_load_half(txn, reinterpret_cast<uint32_t *>(&outside), &half));
        EXPECT_EQ(0u, whole + half);
        return both(txn, 7);
    }));
    unsigned runs = 0;
    EXPECT_OK(atomically(heap_, [&](ty_atomic_txn *txn) -> ty_status {
        if (++runs == 2)
            return both(txn, 8);
        RETURN_IF(both(txn, 7));
        std::thread([&] {
            EXPECT_OK(atomically(heap_, [&](ty_atomic_txn *own) { return add_to(own, *value, 1); }));
        }).join();
        uint64_t whole = 1;
        const ty_status status = ty_atomic_load_word(txn, value, &whole);
        EXPECT_EQ(TY_E_BUSY, status);
        EXPECT_EQ(0u, whole);
        uint32_t half = 1;
        EXPECT_EQ(TY_E_BUSY, ty_atomic_load_half(txn, halves, &half));
        EXPECT_EQ(0u, half);
        whole = 1;
        EXPECT_EQ(TY_E_BUSY, ty_atomic_load_word(txn, other, &whole)); // which is as it was
        EXPECT_EQ(0u, whole);
        return status;
    }));
    EXPECT_EQ(2u, runs);
}

// A body that runs again because it says so: what it did is taken back, also from within a part; it gets its turn as
// one that meets conflicts does, and leaves the others theirs.
TEST_P(atomic_test, a_body_restarts_itself) {
    uint64_t *value = word(), *other = word();
    const uint64_t blocks = live_blocks();
    ty_atomic_result reported = result();
    unsigned runs = 0;
    EXPECT_OK(atomically(
        heap_,
        [&](ty_atomic_txn *txn) -> ty_status {
            EXPECT_EQ(0u, *value);
            RETURN_IF(store(txn, *value, uint64_t{1}));
            EXPECT_NE(nullptr, ty_atomic_alloc(txn, 64));
            if (++runs == 1)
                return ty_atomic_restart(txn);
            if (runs == 2) {
                EXPECT_EQ(TY_E_BUSY, atomically(heap_, [](ty_atomic_txn *part) { return ty_atomic_restart(part); }));
                return TY_OK; // it runs again all the same
            }
            return TY_OK;
        },
        nullptr, &reported));
    EXPECT_EQ(3u, reported.runs);
    EXPECT_EQ(1u, *value);
    EXPECT_EQ(blocks + 1, live_blocks());
    const ty_atomic_stats stats = atomic_stats_of(heap_);
    EXPECT_EQ(2u, stats.restarts);
    // While it restarts, others change what it looks at, until it is alone.
    std::atomic<bool> over{false};
    unsigned most = 0;
    in_threads(3, [&](unsigned number) {
        const ty_atomic_options options = async();
        if (number != 0) {
            while (!over)
                EXPECT_OK(atomically(
                    heap_, [&](ty_atomic_txn *txn) { return add_to(txn, *other, 1); }, &options));
            return;
        }
        for (unsigned i = 0; i < 20; i++) {
            unsigned tries = 0;
            EXPECT_OK(atomically(
                heap_,
                [&](ty_atomic_txn *txn) -> ty_status {
                    const uint64_t before = __atomic_load_n(other, __ATOMIC_ACQUIRE);
                    if (++tries > 8) {
                        for (unsigned n = 0; n < 200; n++)
                            os::yield();
                        EXPECT_EQ(before, __atomic_load_n(other, __ATOMIC_ACQUIRE)) << "it is not alone";
                        return TY_OK;
                    }
                    while (__atomic_load_n(other, __ATOMIC_ACQUIRE) == before)
                        os::yield();
                    return ty_atomic_restart(txn); // its own sign of a conflict
                },
                &options));
            most = std::max(most, tries);
        }
        over = true;
    });
    EXPECT_LE(most, 9u);
    // For one that others have to help, being alone would be no help.
    std::atomic<bool> help{false};
    runs = 0;
    in_threads(2, [&](unsigned number) {
        if (number == 0) {
            EXPECT_OK(atomically(heap_, [&](ty_atomic_txn *txn) -> ty_status {
                uint64_t seen = 0;
                help = ++runs > 20;
                RETURN_IF(load(txn, *value, &seen));
                return seen == 2 ? TY_OK : ty_atomic_restart(txn);
            }));
            return;
        }
        while (!help)
            os::yield();
        EXPECT_OK(atomically(heap_, [&](ty_atomic_txn *txn) { return store(txn, *value, uint64_t{2}); }));
    });
}

// What a thread has freed that does nothing any more is had by others, once nobody can read it: long blocks and many
// short ones, also of a thread that has ended. Where somebody can, the failure says so.
TEST_P(atomic_test, what_an_idle_thread_has_freed_is_had_by_others) {
    const ty_heap_stats stats = heap_stats_of(heap_);
    const size_t most = stats.limit_bytes * 2 / 3, few = most / 40;
    const auto make = [&](size_t bytes, size_t count, std::vector<void *> &made) {
        return atomically(heap_, [&](ty_atomic_txn *txn) -> ty_status {
            made.assign(count, nullptr);
            for (void *&each : made)
                if ((each = ty_atomic_alloc(txn, bytes)) == nullptr)
                    return ty_atomic_status(txn) != TY_OK ? ty_atomic_status(txn) : TY_E_MEMORY;
            return TY_OK;
        });
    };
    const auto drop = [&](const std::vector<void *> &blocks) {
        return atomically(heap_, [&](ty_atomic_txn *txn) -> ty_status {
            for (void *each : blocks)
                RETURN_IF(ty_atomic_free(txn, each));
            return TY_OK;
        });
    };
    uint64_t *value = word();
    for (const bool is_long : {true, false}) {
        for (const bool ends : {true, false}) {
            std::vector<void *> blocks;
            std::atomic<unsigned> step{0};
            ASSERT_OK(make(is_long ? most : few, is_long ? 1 : 40, blocks)) << ty_error_text();
            std::thread reader([&] { // so that the one who frees cannot give them back
                EXPECT_OK(atomically(heap_, [&](ty_atomic_txn *txn) -> ty_status {
                    uint64_t seen = 0;
                    RETURN_IF(load(txn, *value, &seen));
                    step = step == 0 ? 1 : step.load();
                    while (step < 3)
                        os::yield();
                    return TY_OK;
                }));
            });
            std::thread freer([&] {
                while (step < 1)
                    os::yield();
                EXPECT_OK(drop(blocks));
                step = 2;
                while (step < 4 && !ends)
                    os::yield();
            });
            while (step < 2)
                os::yield();
            std::vector<void *> again;
            EXPECT_EQ(TY_E_MEMORY, make(most, 1, again)); // the reader may read them
            EXPECT_NE(nullptr, strstr(ty_error_text(), "may still read")) << ty_error_text();
            step = 3;
            reader.join();
            if (ends)
                freer.join();
            if (files_ != nullptr) { // also by a plain transaction
                ty_txn *txn = nullptr;
                ASSERT_OK(ty_begin(heap_, nullptr, &txn));
                EXPECT_NE(nullptr, ty_alloc(heap_, most)) << ty_error_text();
                EXPECT_OK(ty_rollback(txn));
            }
            ASSERT_OK(make(most, 1, again)) << ty_error_text();
            EXPECT_OK(drop(again));
            step = 4;
            if (!ends)
                freer.join();
        }
    }
    // One that has begun before, and read nothing of it, need not end first.
    std::vector<void *> blocks;
    ASSERT_OK(make(most, 1, blocks));
    EXPECT_OK(atomically(heap_, [&](ty_atomic_txn *txn) -> ty_status {
        uint64_t seen = 0;
        RETURN_IF(load(txn, *value, &seen));
        if (!blocks.empty())
            std::thread([&] { EXPECT_OK(drop(blocks)); }).join();
        blocks.clear();
        void *made = ty_atomic_alloc(txn, most);
        EXPECT_NE(nullptr, made) << ty_error_text();
        return made != nullptr ? TY_OK : TY_E_MEMORY;
    }));
}

// A node that a commit has taken out of the others' reach is the thread's own after ty_atomic_quiesce: nobody sees what
// it stores there plainly, and nobody stores there.
TEST_P(atomic_test, a_block_is_private_after_quiesce) {
    constexpr uint64_t rounds = 60;
    struct place {
        uint64_t *node;
    };
    auto *own = reinterpret_cast<place *>(word());
    std::atomic<bool> over{false};
    const auto put = [&] { // a new node, which was stored to plainly
        EXPECT_OK(atomically(heap_, [&](ty_atomic_txn *txn) -> ty_status {
            auto *made = static_cast<uint64_t *>(ty_atomic_alloc(txn, 64));
            if (made == nullptr)
                return ty_atomic_status(txn) != TY_OK ? ty_atomic_status(txn) : TY_E_MEMORY;
            made[0] = made[4] = 1;
            return store(txn, own->node, made);
        }));
    };
    put();
    in_threads(4, [&](unsigned number) {
        const ty_atomic_options options = async();
        ty_atomic_options reads = TY_ATOMIC_OPTIONS_INIT;
        reads.reads_only = true;
        if (number == 0) {
            for (uint64_t i = 0; i < rounds; i++) {
                uint64_t *taken = nullptr;
                EXPECT_OK(atomically(
                    heap_,
                    [&](ty_atomic_txn *txn) -> ty_status {
                        RETURN_IF(load(txn, own->node, &taken));
                        return store(txn, own->node, static_cast<uint64_t *>(nullptr));
                    },
                    &options));
                ASSERT_OK(ty_atomic_quiesce(heap_));
                const uint64_t before = taken[0];
                EXPECT_EQ(before, taken[4]);
                taken[0] = 0; // where both would see a difference
                os::yield();
                EXPECT_EQ(before, taken[4]) << "somebody has stored to it";
                taken[4] = 7;
                EXPECT_OK(atomically(
                    heap_, [&](ty_atomic_txn *txn) { return ty_atomic_free(txn, taken); }, &options));
                put();
            }
            over = true;
            return;
        }
        while (!over)
            EXPECT_OK(atomically(
                heap_,
                [&](ty_atomic_txn *txn) -> ty_status {
                    uint64_t *node = nullptr, first = 0, second = 0;
                    RETURN_IF(load(txn, own->node, &node));
                    if (node == nullptr)
                        return TY_OK;
                    RETURN_IF(load(txn, node[0], &first));
                    os::yield();
                    RETURN_IF(load(txn, node[4], &second));
                    EXPECT_EQ(first, second);
                    if (number == 1)
                        return TY_OK;
                    RETURN_IF(store(txn, node[0], first + 1));
                    return store(txn, node[4], second + 1);
                },
                number == 1 ? &reads : &options));
    });
}

TEST_P(atomic_test, waits_for_a_change) {
    uint64_t *full = word(), *other = word();
    std::thread filler([&] {
        for (uint64_t i = 1; i <= 50; i++)
            EXPECT_OK(atomically(heap_, [&](ty_atomic_txn *txn) -> ty_status {
                uint64_t seen = 0;
                RETURN_IF(load(txn, *full, &seen));
                return seen != 0 ? ty_atomic_retry(txn) : store(txn, *full, i);
            }));
    });
    for (uint64_t i = 1; i <= 50; i++) {
        uint64_t taken = 0;
        EXPECT_OK(atomically(heap_, [&](ty_atomic_txn *txn) -> ty_status {
            RETURN_IF(load(txn, *full, &taken));
            if (taken == 0 && i % 2 == 0)
                return ty_atomic_retry(txn);
            if (taken == 0) // of a part is of the whole
                return atomically(heap_, [](ty_atomic_txn *part) { return ty_atomic_retry(part); });
            return store(txn, *full, uint64_t{0});
        }));
        EXPECT_EQ(i, taken);
    }
    filler.join();
    struct both {
        uint64_t *full, *other;
    } words{full, other};
    EXPECT_OK(atomically(heap_, [&](ty_atomic_txn *txn) {
        return ty_atomic_or_else(
            txn,
            [](ty_atomic_txn *within, void *context) -> ty_status {
                RETURN_IF(store(within, *static_cast<both *>(context)->full, uint64_t{9}));
                return ty_atomic_retry(within);
            },
            [](ty_atomic_txn *within, void *context) {
                return store(within, *static_cast<both *>(context)->other, uint64_t{8});
            },
            &words);
    }));
    EXPECT_EQ(0u, *full);
    EXPECT_EQ(8u, *other);
}

TEST_P(atomic_test, an_irrevocable_one_runs_once) {
    uint64_t *value = word();
    ty_atomic_options alone = TY_ATOMIC_OPTIONS_INIT;
    alone.irrevocable = true;
    std::atomic<uint64_t> runs{0};
    in_threads(4, [&](unsigned number) {
        for (unsigned i = 0; i < 100; i++)
            EXPECT_OK(atomically(
                heap_,
                [&](ty_atomic_txn *txn) {
                    runs += number == 0;
                    return add_to(txn, *value, 1);
                },
                number == 0 ? &alone : nullptr));
    });
    EXPECT_EQ(100u, runs.load());
    EXPECT_EQ(400u, *value);
}

TEST_P(atomic_test, threads_change_a_table) {
    constexpr uint64_t sum = 1000000;
    table *t = make_table(heap_, sum);
    const ty_atomic_options options = async();
    ty_atomic_options reads = TY_ATOMIC_OPTIONS_INIT;
    reads.reads_only = true;
    in_threads(4, [&](unsigned number) {
        dice random(number + 1);
        for (unsigned i = 0; i < 2000; i++) {
            const uint64_t from = random.below(table_keys), to = random.below(table_keys);
            const bool takes_in = random.below(2) != 0;
            EXPECT_OK(atomically(
                heap_, [&](ty_atomic_txn *txn) { return change_table(txn, t, from, to, takes_in); }, &options));
            if (i % 50 != 0)
                continue;
            uint64_t total = 0;
            EXPECT_OK(atomically(
                heap_,
                [&](ty_atomic_txn *txn) -> ty_status {
                    total = 0;
                    for (node *&slot : t->slots) {
                        node *each = nullptr;
                        RETURN_IF(load(txn, slot, &each));
                        while (each != nullptr) {
                            uint64_t value = 0;
                            RETURN_IF(load(txn, each->value, &value));
                            total += value;
                            RETURN_IF(load(txn, each->next, &each));
                        }
                    }
                    return TY_OK;
                },
                &reads));
            EXPECT_EQ(sum, total);
        }
    });
    if (files_ != nullptr) {
        files_->close();
        files_->open();
        heap_ = files_->get();
        expect_whole(heap_, sum);
    }
}

INSTANTIATE_TEST_SUITE_P(all, atomic_test, testing::Values(sort::volatile_heap, sort::transactional),
                         [](const auto &each) {
                             return each.param == sort::transactional ? "transactional" : "volatile";
                         });

} // namespace
} // namespace taiyen::test
