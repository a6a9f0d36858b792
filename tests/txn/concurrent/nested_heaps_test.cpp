// Goal: bodies that run transactions on other heaps get on, in whatever order the heaps come, and nobody waits for a
// thread that waits for him (X31); what cannot be had so is refused. Method: threads that nest heaps in all orders at
// once, beside plain transactions, readers and snapshots; what each outer one did is counted, and done once. And pairs
// of threads that meet where one would have waited for ever.
#include "support.hpp"

#include <atomic>
#include <functional>
#include <pthread.h>

namespace taiyen::test {
namespace {

enum class heap_sort { volatile_heap, transactional };

struct heap_with_words {
    ty_heap *heap = nullptr;
    std::unique_ptr<concurrent_test_heap> files;
    uint64_t *words = nullptr; // eight, in lines of their own

    explicit heap_with_words(heap_sort what, ty_background background = TY_BACKGROUND_THREAD,
                             size_t log = size_t{4} << 20) {
        if (what == heap_sort::transactional) {
            files = std::make_unique<concurrent_test_heap>(background, log, 2);
            heap = files->get();
        } else {
            ty_heap_options options = TY_HEAP_OPTIONS_INIT;
            options.concurrent = true;
            EXPECT_OK(ty_heap_create(&options, &heap));
        }
        EXPECT_OK(atomically(heap, [&](ty_atomic_txn *txn) {
            words = static_cast<uint64_t *>(ty_atomic_alloc(txn, 8 * 64));
            return ty_atomic_status(txn);
        }));
    }
    ~heap_with_words() {
        if (files == nullptr) {
            EXPECT_OK(ty_heap_destroy(heap));
        }
    }
    heap_with_words(const heap_with_words &) = delete;
    heap_with_words &operator=(const heap_with_words &) = delete;
    uint64_t &word(unsigned n) const { return words[n * 8]; }
};

ty_status add(heap_with_words &to, unsigned word) {
    const ty_atomic_options options = async();
    return atomically(
        to.heap, [&](ty_atomic_txn *txn) { return add_to(txn, to.word(word), 1); }, &options);
}

// A transaction on the first heap, within it one on the second, and so on. Word 0 is everybody's.
ty_status nest(heap_with_words *const *first, unsigned count, unsigned own_word) {
    const ty_atomic_options options = async();
    return atomically((*first)->heap,
                      [&](ty_atomic_txn *txn) -> ty_status {
                          RETURN_IF(add_to(txn, (*first)->word(0), 1));
                          os::yield();
                          if (count > 1)
                              RETURN_IF(nest(first + 1, count - 1, own_word));
                          os::yield();
                          return add_to(txn, (*first)->word(own_word), 1);
                      },
                      &options);
}

class nested_heaps_test : public testing::TestWithParam<std::tuple<heap_sort, heap_sort>> {
protected:
    heap_with_words one_{std::get<0>(GetParam())}, two_{std::get<1>(GetParam())};
};

TEST_P(nested_heaps_test, two_heaps_in_both_orders) {
    constexpr unsigned threads = 4;
    constexpr uint64_t each = 1500;
    in_threads(threads, [&](unsigned number) {
        heap_with_words *order[] = {number % 2 == 0 ? &one_ : &two_, number % 2 == 0 ? &two_ : &one_};
        for (uint64_t i = 0; i < each; i++)
            ASSERT_OK(nest(order, 2, 1 + number));
    });
    for (unsigned number = 0; number < threads; number++) {
        heap_with_words &outer = number % 2 == 0 ? one_ : two_, &inner = number % 2 == 0 ? two_ : one_;
        EXPECT_EQ(each, outer.word(1 + number)) << "an outer one counts once";
        EXPECT_LE(each, inner.word(1 + number)) << "an inner one stays, and may have run again";
    }
    EXPECT_EQ(one_.word(0), one_.word(1) + one_.word(2) + one_.word(3) + one_.word(4));
    EXPECT_EQ(two_.word(0), two_.word(1) + two_.word(2) + two_.word(3) + two_.word(4));
}

// What else has a heap to itself for a while: irrevocable bodies, and of transactional heaps plain transactions, read
// sections and snapshots.
TEST_P(nested_heaps_test, beside_all_that_has_a_heap_to_itself) {
    std::atomic<unsigned> done{0};
    in_threads(6, [&](unsigned number) {
        if (number < 4) {
            heap_with_words *order[] = {number % 2 == 0 ? &one_ : &two_, number % 2 == 0 ? &two_ : &one_};
            for (unsigned i = 0; i < 100; i++)
                ASSERT_OK(nest(order, 2, 1 + number));
            done++;
            return;
        }
        heap_with_words &own = number == 4 ? one_ : two_, &other = number == 4 ? two_ : one_;
        ty_atomic_options alone = async();
        alone.irrevocable = true;
        while (done != 4) {
            ASSERT_OK(atomically(
                own.heap, [&](ty_atomic_txn *txn) { return add_to(txn, own.word(5), 1); }, &alone));
            if (own.files == nullptr)
                continue;
            ty_txn *txn = nullptr;
            ASSERT_OK(ty_begin(own.heap, nullptr, &txn));
            if (number == 4) { // as with locks, one order of those that do wait
                ASSERT_OK(add(other, 6));
            }
            ASSERT_OK(ty_rollback(txn));
            ASSERT_OK(ty_read_begin(own.heap));
            ty_read_end(own.heap);
            ASSERT_OK(ty_snapshot(own.heap));
        }
    });
    EXPECT_EQ(200u, one_.word(1) + one_.word(3));
    EXPECT_EQ(200u, two_.word(2) + two_.word(4));
}

INSTANTIATE_TEST_SUITE_P(all, nested_heaps_test,
                         testing::Combine(testing::Values(heap_sort::volatile_heap, heap_sort::transactional),
                                          testing::Values(heap_sort::volatile_heap, heap_sort::transactional)),
                         [](const auto &each) {
                             const auto name = [](heap_sort what) {
                                 return what == heap_sort::transactional ? "transactional" : "volatile";
                             };
                             return std::string(name(std::get<0>(each.param))) + "_and_" +
                                    name(std::get<1>(each.param));
                         });

TEST(nested_heaps, three_heaps_in_a_ring) {
    heap_with_words heaps[] = {heap_with_words(heap_sort::volatile_heap), heap_with_words(heap_sort::transactional),
                               heap_with_words(heap_sort::volatile_heap)};
    constexpr uint64_t each = 500;
    in_threads(6, [&](unsigned number) {
        heap_with_words *order[] = {&heaps[number % 3], &heaps[(number + 1) % 3], &heaps[(number + 2) % 3]};
        for (uint64_t i = 0; i < each; i++)
            ASSERT_OK(nest(order, 3, 1 + number));
    });
    for (unsigned number = 0; number < 6; number++)
        EXPECT_EQ(each, heaps[number % 3].word(1 + number));
}

// Parts of the outer transaction within the inner one, and the same heap thrice.
TEST(nested_heaps, a_heap_within_another_within_itself) {
    heap_with_words one(heap_sort::volatile_heap), two(heap_sort::volatile_heap);
    in_threads(4, [&](unsigned number) {
        heap_with_words *outer = number % 2 == 0 ? &one : &two, *inner = number % 2 == 0 ? &two : &one;
        heap_with_words *order[] = {outer, inner, outer, inner};
        for (unsigned i = 0; i < 500; i++)
            ASSERT_OK(nest(order, 4, 1 + number));
    });
    for (unsigned number = 0; number < 4; number++)
        EXPECT_EQ(1000u, (number % 2 == 0 ? one : two).word(1 + number));
}

// Each thread is alone on its outer heap, by a body that restarts itself: losses count also where no conflict comes.
TEST(nested_heaps, both_are_alone_on_their_outer_heap) {
    heap_with_words heaps[] = {heap_with_words(heap_sort::volatile_heap), heap_with_words(heap_sort::volatile_heap)};
    std::atomic<unsigned> alone{0};
    in_threads(2, [&](unsigned number) {
        heap_with_words &outer = heaps[number], &inner = heaps[1 - number];
        unsigned runs = 0;
        ASSERT_OK(atomically(outer.heap, [&](ty_atomic_txn *txn) -> ty_status {
            RETURN_IF(add_to(txn, outer.word(0), 1));
            if (++runs <= 8)
                return ty_atomic_restart(txn);
            alone += runs == 9;
            while (alone != 2)
                os::yield();
            RETURN_IF(add(inner, 1 + number));
            return TY_OK;
        }));
    });
    EXPECT_EQ(1u, heaps[0].word(0));
    EXPECT_EQ(1u, heaps[1].word(0));
}

// One thread has a plain transaction on a heap, and wants the heap of the body of another, which wants that one's.
template <class Hold, class Let>
void meet(ty_heap *held, heap_with_words &outer, Hold hold, Let let, const std::function<ty_status()> &within) {
    std::atomic<bool> is_held{false}, in_body{false};
    std::thread holder([&] {
        hold(held);
        is_held = true;
        while (!in_body)
            os::yield();
        ty_txn *txn = nullptr;
        EXPECT_OK(ty_begin(outer.heap, nullptr, &txn)); // waits for the body
        EXPECT_OK(ty_commit(txn));
        let(held);
    });
    while (!is_held)
        os::yield();
    EXPECT_OK(atomically(outer.heap, [&](ty_atomic_txn *txn) -> ty_status {
        RETURN_IF(add_to(txn, outer.word(0), 1));
        in_body = true;
        return within();
    }));
    holder.join();
    EXPECT_EQ(1u, outer.word(0));
}

class nested_heaps_meets : public testing::TestWithParam<bool> {}; // whether the one that is held is concurrent

TEST_P(nested_heaps_meets, a_plain_transaction_or_reader) {
    heap_with_words outer(heap_sort::transactional);
    heap_with_words concurrent(heap_sort::transactional);
    disk files;
    ty_open_options options = files.options();
    options.kind = TY_TRANSACTIONAL;
    ty_heap *plain = nullptr;
    ASSERT_OK(ty_open(heap_path, &options, &plain, nullptr));
    ty_heap *held = GetParam() ? concurrent.heap : plain;
    const auto within = [&]() -> ty_status {
        if (GetParam())
            return add(concurrent, 1);
        ty_txn *txn = nullptr;
        RETURN_IF(ty_begin(plain, nullptr, &txn));
        return ty_commit(txn);
    };
    const auto within_read = [&]() -> ty_status {
        if (GetParam())
            return add(concurrent, 1);
        RETURN_IF(ty_read_begin(plain));
        ty_read_end(plain);
        return TY_OK;
    };
    static thread_local ty_txn *under_way;
    const auto begin = [](ty_heap *heap) { EXPECT_OK(ty_begin(heap, nullptr, &under_way)); };
    const auto commit = [](ty_heap *) { EXPECT_OK(ty_commit(under_way)); };
    meet(held, outer, begin, commit, within);
    EXPECT_OK(atomically(outer.heap, [&](ty_atomic_txn *txn) { return store(txn, outer.word(0), uint64_t{0}); }));
    meet(held, outer, begin, commit, within_read);
    EXPECT_OK(atomically(outer.heap, [&](ty_atomic_txn *txn) { return store(txn, outer.word(0), uint64_t{0}); }));
    meet(
        held, outer, [](ty_heap *heap) { EXPECT_OK(ty_read_begin(heap)); }, [](ty_heap *heap) { ty_read_end(heap); },
        within);
    EXPECT_OK(ty_close(plain));
}

INSTANTIATE_TEST_SUITE_P(all, nested_heaps_meets, testing::Bool(),
                         [](const auto &each) { return each.param ? "concurrent" : "plain"; });

// The log of the inner heap fills up, and nobody but the bodies can take the snapshot that makes room.
TEST(nested_heaps, the_inner_log_fills_up) {
    heap_with_words one(heap_sort::transactional, TY_BACKGROUND_CALLS, size_t{2} << 20),
        two(heap_sort::transactional, TY_BACKGROUND_CALLS, size_t{2} << 20);
    constexpr size_t words = 4000;
    heap_with_words *heaps[] = {&one, &two};
    uint64_t *many[2];
    for (unsigned i = 0; i < 2; i++)
        EXPECT_OK(atomically(heaps[i]->heap, [&](ty_atomic_txn *txn) {
            many[i] = static_cast<uint64_t *>(ty_atomic_alloc(txn, words * 8));
            return ty_atomic_root_set(txn, "many", many[i]);
        }));
    std::atomic<uint64_t> value{1};
    in_threads(2, [&](unsigned number) {
        const ty_atomic_options options = async();
        for (unsigned round = 0; round < 100; round++)
            ASSERT_OK(atomically(
                heaps[number]->heap,
                [&](ty_atomic_txn *txn) -> ty_status {
                    RETURN_IF(add_to(txn, heaps[number]->word(0), 1));
                    return atomically(
                        heaps[1 - number]->heap,
                        [&](ty_atomic_txn *inner) -> ty_status {
                            for (size_t i = 0; i < words; i++)
                                RETURN_IF(store(inner, many[1 - number][i], value++ * 0x9e3779b97f4a7c15));
                            return TY_OK;
                        },
                        &options);
                },
                &options));
    });
    for (heap_with_words *each : heaps)
        EXPECT_EQ(100u, each->word(0));
}

// No record of the inner heap's log holds it.
TEST(nested_heaps, an_inner_one_that_no_record_holds) {
    heap_with_words one(heap_sort::transactional, TY_BACKGROUND_THREAD, size_t{2} << 20),
        two(heap_sort::transactional, TY_BACKGROUND_THREAD, size_t{2} << 20);
    constexpr size_t words = 50000;
    heap_with_words *heaps[] = {&one, &two};
    in_threads(2, [&](unsigned number) {
        for (unsigned round = 1; round < 4; round++)
            ASSERT_OK(atomically(heaps[number]->heap, [&](ty_atomic_txn *txn) -> ty_status {
                RETURN_IF(add_to(txn, heaps[number]->word(0), 1));
                uint64_t *made = nullptr;
                return atomically(heaps[1 - number]->heap, [&](ty_atomic_txn *inner) -> ty_status {
                    made = static_cast<uint64_t *>(ty_atomic_alloc(inner, words * 8));
                    if (made == nullptr)
                        return ty_atomic_status(inner) != TY_OK ? ty_atomic_status(inner) : TY_E_MEMORY;
                    for (size_t i = 0; i < words; i++)
                        RETURN_IF(store(inner, made[i], i * 0x9e3779b97f4a7c15 * round));
                    return ty_atomic_free(inner, made);
                });
            }));
    });
    for (heap_with_words *each : heaps)
        EXPECT_EQ(3u, each->word(0));
}

// A thread commits by a snapshot, as no record holds its transaction and it has the heap to itself: its next commits
// have records again.
TEST(nested_heaps, a_snapshot_in_place_of_a_record_is_for_one_commit) {
    constexpr size_t words = 400000;
    concurrent_test_heap inner(TY_BACKGROUND_THREAD, size_t{1} << 20, 1);
    heap_with_words outer(heap_sort::volatile_heap);
    uint64_t *table = nullptr;
    EXPECT_OK(atomically(inner.get(), [&](ty_atomic_txn *txn) {
        table = static_cast<uint64_t *>(ty_atomic_alloc(txn, words * sizeof *table));
        return table != nullptr ? TY_OK : TY_E_MEMORY;
    }));
    const auto forced = [&] {
        ty_txn_stats stats{};
        stats.struct_size = sizeof stats;
        EXPECT_OK(ty_get_txn_stats(inner.get(), &stats));
        return stats.forced_snapshots;
    };
    std::atomic<bool> runs{false}, met{false};
    std::thread holds([&] {
        ty_atomic_options irrevocable = TY_ATOMIC_OPTIONS_INIT;
        irrevocable.irrevocable = true;
        EXPECT_OK(atomically(
            inner.get(),
            [&](ty_atomic_txn *) {
                runs = true;
                while (!met)
                    std::this_thread::yield();
                return TY_OK;
            },
            &irrevocable));
    });
    while (!runs)
        std::this_thread::yield();
    EXPECT_OK(atomically(outer.heap, [&](ty_atomic_txn *) {
        const ty_status status = atomically(inner.get(), [&](ty_atomic_txn *txn) -> ty_status {
            for (size_t i = 0; i < words; i++)
                RETURN_IF(store(txn, table[i], (i + 1) * 0x9e3779b97f4a7c15));
            return TY_OK;
        });
        met = true;
        return status;
    }));
    const uint64_t before = forced();
    EXPECT_GT(before, 0u);
    for (int i = 0; i < 10; i++)
        EXPECT_OK(atomically(inner.get(), [&](ty_atomic_txn *txn) { return add_to(txn, table[0], 1); }));
    EXPECT_EQ(before, forced());
    holds.join();
}

// Threads that go to sleep wait for the commits under way, while such a commit waits for those before it, and other
// threads use the heap for the first time (Q8).
TEST(nested_heaps, commits_by_snapshots_beside_threads_that_go_to_sleep) {
    constexpr size_t words = 200000;
    constexpr uint64_t rounds = 8;
    concurrent_test_heap heap(TY_BACKGROUND_THREAD, size_t{1} << 20, 1);
    uint64_t *table = nullptr;
    EXPECT_OK(atomically(heap.get(), [&](ty_atomic_txn *txn) {
        table = static_cast<uint64_t *>(ty_atomic_alloc(txn, (words + 8) * sizeof *table));
        return table != nullptr ? TY_OK : TY_E_MEMORY;
    }));
    const auto value_of = [](uint64_t round, size_t i) { return (i + round) * 0x9e3779b97f4a7c15; };
    uint64_t &awake = table[words + 7]; // of an orec that the long ones do not lock
    std::vector<std::thread> sleepers;
    const auto sleep_from = [&](uint64_t round) {
        for (; round <= rounds; round++) {
            while (__atomic_load_n(&table[0], __ATOMIC_ACQUIRE) != value_of(round, 0)) // the commit's first store
                os::give_way();
            EXPECT_OK(atomically(heap.get(), [&](ty_atomic_txn *txn) -> ty_status {
                uint64_t seen = 0;
                RETURN_IF(load(txn, awake, &seen));
                return seen < round ? ty_atomic_retry(txn) : TY_OK;
            }));
        }
    };
    for (uint64_t round = 1; round <= rounds; round++) {
        for (int i = 0; i < 2; i++)
            sleepers.emplace_back(sleep_from, round);
        unsigned runs = 0;
        EXPECT_OK(atomically(heap.get(), [&](ty_atomic_txn *txn) -> ty_status {
            for (size_t i = 0; i < words; i++)
                RETURN_IF(store(txn, table[i], value_of(round, i)));
            runs++;
            return TY_OK;
        }));
        EXPECT_EQ(2u, runs) << "a record can hold it";
        EXPECT_OK(atomically(heap.get(), [&](ty_atomic_txn *txn) { return store(txn, awake, round); }));
    }
    for (std::thread &each : sleepers)
        each.join();
}

TEST(nested_heaps, what_would_wait_is_refused) {
    heap_with_words one(heap_sort::transactional), two(heap_sort::transactional);
    ty_atomic_options alone = TY_ATOMIC_OPTIONS_INIT;
    alone.irrevocable = true;
    const auto nothing = [](ty_atomic_txn *) { return TY_OK; };
    EXPECT_OK(atomically(one.heap, [&](ty_atomic_txn *) {
        ty_txn *txn = nullptr;
        uint64_t epoch = 0;
        EXPECT_EQ(TY_E_ARGUMENT, ty_begin(two.heap, nullptr, &txn));
        EXPECT_EQ(TY_E_ARGUMENT, ty_read_begin(two.heap));
        EXPECT_EQ(TY_E_ARGUMENT, ty_object_read_begin(two.heap, &epoch));
        EXPECT_EQ(TY_E_ARGUMENT, ty_snapshot(two.heap));
        EXPECT_EQ(TY_E_ARGUMENT, ty_close(two.heap));
        EXPECT_EQ(TY_E_ARGUMENT, ty_atomic_quiesce(one.heap));
        EXPECT_EQ(TY_E_ARGUMENT, ty_atomic_quiesce(two.heap));
        EXPECT_EQ(TY_E_ARGUMENT, atomically(two.heap, nothing, &alone));
        EXPECT_EQ(TY_E_ARGUMENT, atomically(two.heap, [&](ty_atomic_txn *inner) -> ty_status {
                      uint64_t value = 0;
                      RETURN_IF(load(inner, two.word(0), &value));
                      return ty_atomic_retry(inner);
                  }));
        EXPECT_OK(atomically(two.heap, nothing)); // these were of each call alone
        return TY_OK;
    }));
    EXPECT_OK(atomically(
        one.heap,
        [&](ty_atomic_txn *txn) {
            EXPECT_EQ(TY_E_ARGUMENT, atomically(two.heap, nothing));
            EXPECT_EQ(TY_E_ARGUMENT, ty_atomic_restart(txn));
            EXPECT_OK(ty_atomic_status(txn));
            return TY_OK;
        },
        &alone));
}

// A body that has lost does nothing more on other heaps: its loads gave zeros.
TEST(nested_heaps, an_outer_one_that_is_lost_begins_none) {
    heap_with_words one(heap_sort::volatile_heap), two(heap_sort::volatile_heap);
    unsigned runs = 0;
    EXPECT_OK(atomically(one.heap, [&](ty_atomic_txn *txn) -> ty_status {
        uint64_t value = 0;
        RETURN_IF(load(txn, one.word(0), &value));
        if (++runs == 1) {
            EXPECT_EQ(TY_E_BUSY, ty_atomic_restart(txn));
            EXPECT_EQ(TY_E_BUSY, add(two, 0));
            return TY_OK;
        }
        return add(two, 0);
    }));
    EXPECT_EQ(2u, runs);
    EXPECT_EQ(1u, two.word(0));
}

// What it has to itself goes with it.
TEST(nested_heaps, a_thread_ends_within_both) {
    heap_with_words one(heap_sort::transactional), two(heap_sort::volatile_heap);
    struct both {
        heap_with_words &one, &two;
    } all{one, two};
    pthread_t thread;
    ASSERT_EQ(0, pthread_create(
                     &thread, nullptr,
                     [](void *argument) -> void * {
                         auto &in = *static_cast<both *>(argument);
                         unsigned runs = 0;
                         static_cast<void>(atomically(in.one.heap, [&](ty_atomic_txn *txn) -> ty_status {
                             if (++runs <= 8)
                                 return ty_atomic_restart(txn);
                             return atomically(in.two.heap,
                                               [](ty_atomic_txn *) -> ty_status { pthread_exit(nullptr); });
                         }));
                         return nullptr;
                     },
                     &all));
    ASSERT_EQ(0, pthread_join(thread, nullptr));
    EXPECT_OK(add(one, 0));
    EXPECT_OK(add(two, 0));
    EXPECT_OK(ty_snapshot(one.heap));
}

} // namespace
} // namespace taiyen::test
