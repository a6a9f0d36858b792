// Goal: on a concurrent heap everything else that a heap does works, or is refused with a text that says why. Method:
// each service beside running transactions, or within one; logs that are full, too small for a record, or broken;
// threads that end amid a body.
#include "support.hpp"

#include <map>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

namespace taiyen::test {
namespace {

class services_test : public testing::Test {
protected:
    uint64_t *words(ty_heap *heap, size_t count) {
        uint64_t *made = nullptr;
        EXPECT_OK(atomically(heap, [&](ty_atomic_txn *txn) {
            made = static_cast<uint64_t *>(ty_atomic_alloc(txn, count * sizeof *made));
            return made != nullptr ? ty_atomic_root_set(txn, "words", made) : TY_E_MEMORY;
        }));
        return made;
    }
    ty_status add(ty_heap *heap, uint64_t &word, const ty_atomic_options *options = nullptr) {
        return atomically(
            heap, [&](ty_atomic_txn *txn) { return add_to(txn, word, 1); }, options);
    }
};

TEST_F(services_test, within_a_body_what_would_wait_for_it_is_refused) {
    concurrent_test_heap files;
    ty_heap *heap = files.get();
    EXPECT_OK(atomically(heap, [&](ty_atomic_txn *) {
        ty_txn *txn = nullptr;
        uint64_t epoch = 0;
        EXPECT_EQ(TY_E_ARGUMENT, ty_begin(heap, nullptr, &txn));
        EXPECT_EQ(TY_E_ARGUMENT, ty_read_begin(heap));
        EXPECT_EQ(TY_E_ARGUMENT, ty_object_read_begin(heap, &epoch));
        EXPECT_EQ(TY_E_ARGUMENT, ty_snapshot(heap));
        EXPECT_EQ(TY_E_ARGUMENT, ty_snapshot_start(heap, &epoch));
        EXPECT_EQ(TY_E_ARGUMENT, ty_close(heap));
        EXPECT_EQ(TY_E_ARGUMENT, ty_discard(heap));
        return TY_OK;
    }));
    ty_txn *txn = nullptr;
    const auto nothing = [](ty_atomic_txn *) { return TY_OK; };
    ASSERT_OK(ty_begin(heap, nullptr, &txn));
    EXPECT_EQ(TY_E_ARGUMENT, atomically(heap, nothing));
    EXPECT_OK(ty_commit(txn));
    ASSERT_OK(ty_read_begin(heap));
    EXPECT_EQ(TY_E_ARGUMENT, atomically(heap, nothing));
    ty_read_end(heap);
    EXPECT_OK(atomically(heap, nothing));
}

TEST_F(services_test, other_heaps_refuse) {
    const auto nothing = [](ty_atomic_txn *) { return TY_OK; };
    ty_heap *plain = nullptr;
    ASSERT_OK(ty_heap_create(nullptr, &plain));
    EXPECT_EQ(TY_E_ARGUMENT, atomically(plain, nothing));
    EXPECT_OK(ty_heap_destroy(plain));
    disk files;
    ty_open_options options = files.options();
    options.concurrent = true;
    EXPECT_EQ(TY_E_ARGUMENT, ty_open(heap_path, &options, &plain, nullptr));
    options.kind = TY_SNAPSHOT;
    EXPECT_EQ(TY_E_ARGUMENT, ty_open(heap_path, &options, &plain, nullptr));
    options.kind = TY_TRANSACTIONAL;
    options.check_stores = true;
    EXPECT_EQ(TY_E_UNSUPPORTED, ty_open(heap_path, &options, &plain, nullptr));
    options.check_stores = options.concurrent = false;
    ASSERT_OK(ty_open(heap_path, &options, &plain, nullptr));
    EXPECT_EQ(TY_E_ARGUMENT, atomically(plain, nothing));
    EXPECT_OK(ty_close(plain));
}

TEST_F(services_test, undo_is_refused) {
    ty_heap *heap = nullptr;
    ty_heap_options options = TY_HEAP_OPTIONS_INIT;
    options.concurrent = true;
    ASSERT_OK(ty_heap_create(&options, &heap));
    EXPECT_EQ(TY_E_UNSUPPORTED, ty_undo_attach(heap, nullptr)); // also before the first transaction
    uint64_t *word = words(heap, 1);
    EXPECT_EQ(TY_E_UNSUPPORTED, ty_undo_attach(heap, nullptr));
    EXPECT_EQ(TY_E_NOT_FOUND, ty_undo_detach(heap, false));
    EXPECT_OK(add(heap, *word));
    EXPECT_OK(ty_heap_destroy(heap));
}

TEST_F(services_test, plain_stores_between_transactions_of_others) {
    concurrent_test_heap files;
    ty_heap *heap = files.get();
    uint64_t *word = words(heap, 1);
    const ty_atomic_options no_wait = async();
    in_threads(4, [&](unsigned number) {
        for (unsigned i = 0; i < 200; i++) {
            if (number != 0) {
                ASSERT_OK(add(heap, *word, &no_wait));
                continue;
            }
            ty_txn *txn = nullptr;
            ty_txn_options options = TY_TXN_OPTIONS_INIT;
            options.stores = i % 10 == 0 ? TY_STORES_TRACKED : TY_STORES_DECLARED;
            ASSERT_OK(ty_begin(heap, &options, &txn));
            ASSERT_OK(ty_declare(txn, word, sizeof *word));
            const uint64_t before = *word;
            ++*word;
            if (i % 3 == 0) {
                ASSERT_OK(ty_rollback(txn));
                ASSERT_OK(ty_read_begin(heap)); // nobody stores meanwhile
                const uint64_t seen = *static_cast<volatile uint64_t *>(word);
                EXPECT_LE(before, seen);
                EXPECT_EQ(seen, *static_cast<volatile uint64_t *>(word));
                ty_read_end(heap);
            } else {
                ASSERT_OK(ty_commit(txn));
            }
        }
    });
    const uint64_t expected = 600 + 200 - 67;
    EXPECT_EQ(expected, *word);
    files.die();
    files.open();
    EXPECT_GE(expected, *word);
    EXPECT_OK(ty_heap_verify(files.get(), nullptr, nullptr));
}

TEST_F(services_test, stamps_are_lsns) {
    concurrent_test_heap files;
    ty_heap *heap = files.get();
    uint64_t *word = words(heap, 1);
    ty_atomic_result reported = result();
    for (unsigned i = 0; i < 3; i++) {
        EXPECT_OK(atomically(
            heap, [&](ty_atomic_txn *txn) { return add_to(txn, *word, 1); }, nullptr, &reported));
        ty_txn *txn = nullptr;
        uint64_t lsn = 0;
        ASSERT_OK(ty_begin(heap, nullptr, &txn));
        ASSERT_OK(ty_declare(txn, word, sizeof *word));
        ++*word;
        ASSERT_OK(ty_commit_async(txn, &lsn));
        EXPECT_EQ(reported.lsn + 1, lsn);
        EXPECT_OK(atomically(
            heap, [&](ty_atomic_txn *next) { return add_to(next, *word, 1); }, nullptr, &reported));
        EXPECT_EQ(lsn + 1, reported.lsn);
        bool durable = false;
        EXPECT_OK(ty_durable(heap, reported.lsn, false, &durable));
        EXPECT_TRUE(durable);
    }
}

TEST_F(services_test, a_log_that_is_full_is_emptied) {
    for (ty_background background : {TY_BACKGROUND_THREAD, TY_BACKGROUND_CALLS}) {
        concurrent_test_heap files(background, size_t{2} << 20, 2);
        ty_heap *heap = files.get();
        uint64_t *all = words(heap, 4096);
        const ty_atomic_options no_wait = async();
        in_threads(4, [&](unsigned number) {
            dice random(number);
            for (uint64_t i = 1; i < 400; i++)
                ASSERT_OK(atomically(
                    heap,
                    [&](ty_atomic_txn *txn) -> ty_status {
                        for (unsigned k = 0; k < 1024; k++)
                            RETURN_IF(store(txn, all[number * 1024 + k], random.below(UINT32_MAX)));
                        return store(txn, all[number * 1024], i);
                    },
                    &no_wait));
        });
        EXPECT_OK(ty_durable(heap, 0, true, nullptr));
        files.die();
        files.open();
        for (unsigned number = 0; number < 4; number++)
            EXPECT_EQ(399u, all[number * 1024]);
    }
}

TEST_F(services_test, statistics_of_the_heap_count_all_transactions) {
    concurrent_test_heap files;
    ty_heap *heap = files.get();
    uint64_t *all = words(heap, 8);
    ty_txn_stats before{}, after{};
    before.struct_size = after.struct_size = sizeof before;
    ASSERT_OK(ty_get_txn_stats(heap, &before));
    for (int i = 0; i < 5; i++) {
        ASSERT_OK(add(heap, all[0]));
        ASSERT_EQ(TY_E_NOT_FOUND, atomically(heap, [&](ty_atomic_txn *txn) -> ty_status {
                      RETURN_IF(store(txn, all[1], uint64_t{1}));
                      return TY_E_NOT_FOUND;
                  }));
    }
    ty_txn *one = nullptr;
    ASSERT_OK(ty_begin(heap, nullptr, &one));
    ASSERT_OK(ty_declare(one, &all[2], sizeof all[2]));
    all[2] = 1;
    ASSERT_OK(ty_commit(one));
    ASSERT_OK(ty_get_txn_stats(heap, &after));
    EXPECT_EQ(6u, after.transactions - before.transactions);
    EXPECT_LT(before.record_bytes, after.record_bytes);
}

// X24. Only those wait that change the heap's blocks, and only for the tables.
TEST_F(services_test, waits_for_snapshots_are_counted) {
    concurrent_test_heap files(TY_BACKGROUND_THREAD, size_t{8} << 20, 2);
    ty_heap *heap = files.get();
    uint64_t *all = words(heap, 8);
    ty_atomic_stats stats{};
    stats.struct_size = sizeof stats;
    const ty_atomic_options no_wait = async();
    std::atomic<bool> done{false};
    std::thread words_alone([&] {
        while (!done.load())
            EXPECT_OK(add(heap, all[0], &no_wait));
    });
    for (int i = 0; i < 50; i++)
        ASSERT_OK(ty_snapshot(heap));
    ASSERT_OK(ty_get_atomic_stats(heap, &stats));
    EXPECT_EQ(0u, stats.snapshot_waits);
    EXPECT_EQ(0u, stats.longest_snapshot_wait_ns);
    std::thread blocks([&] {
        while (!done.load())
            EXPECT_OK(atomically(
                heap,
                [](ty_atomic_txn *txn) -> ty_status {
                    void *made = ty_atomic_alloc(txn, 64);
                    return made != nullptr ? ty_atomic_free(txn, made) : ty_atomic_status(txn);
                },
                &no_wait));
    });
    while (stats.snapshot_waits == 0) {
        ASSERT_OK(ty_snapshot(heap));
        ASSERT_OK(ty_get_atomic_stats(heap, &stats));
    }
    EXPECT_LT(0u, stats.longest_snapshot_wait_ns);
    done = true;
    words_alone.join();
    blocks.join();
}

TEST_F(services_test, what_no_record_holds_is_in_a_snapshot) {
    concurrent_test_heap files(TY_BACKGROUND_THREAD, size_t{2} << 20, 2);
    ty_heap *heap = files.get();
    constexpr size_t count = 100000;
    uint64_t *all = words(heap, count);
    const ty_atomic_options no_wait = async();
    std::atomic<bool> done{false};
    std::thread others([&] {
        while (!done.load())
            EXPECT_OK(add(heap, all[0], &no_wait));
    });
    void *freed = nullptr, *made = nullptr;
    EXPECT_OK(atomically(heap, [&](ty_atomic_txn *txn) {
        freed = ty_atomic_alloc(txn, 100);
        return TY_OK;
    }));
    for (uint64_t round = 1; round <= 3; round++) {
        EXPECT_OK(atomically(heap, [&](ty_atomic_txn *txn) -> ty_status {
            for (uint64_t i = 1; i < count; i++)
                RETURN_IF(store(txn, all[i], (i << 32 | i) * round));
            RETURN_IF(ty_atomic_free(txn, freed));
            made = ty_atomic_alloc(txn, 100);
            RETURN_IF(ty_atomic_root_set(txn, "made", made));
            return TY_OK;
        }));
        freed = made;
    }
    done = true;
    others.join();
    files.die();
    files.open();
    for (uint64_t i = 1; i < count; i++)
        ASSERT_EQ((i << 32 | i) * 3, all[i]);
    EXPECT_EQ(made, ty_root(files.get(), "made"));
    EXPECT_OK(atomically(files.get(), [&](ty_atomic_txn *txn) { return ty_atomic_free(txn, made); }));
    // A disk that is full: nothing of it is there, and others go on.
    heap = files.get();
    files.set_full(true);
    ty_atomic_result reported = result();
    EXPECT_EQ(TY_E_SPACE, atomically(
                              heap,
                              [&](ty_atomic_txn *txn) -> ty_status {
                                  for (uint64_t i = 1; i < count; i++)
                                      RETURN_IF(store(txn, all[i], ~(i << 32 | i)));
                                  return ty_atomic_root_set(txn, "never", all);
                              },
                              nullptr, &reported));
    EXPECT_FALSE(reported.committed);
    EXPECT_EQ(nullptr, ty_root(heap, "never"));
    for (uint64_t i = 1; i < count; i++)
        ASSERT_EQ((i << 32 | i) * 3, all[i]);
    files.set_full(false);
    const uint64_t before = all[0];
    EXPECT_OK(add(heap, all[0]));
    EXPECT_OK(add(heap, all[0]));
    files.die();
    files.open();
    EXPECT_EQ(before + 2, all[0]);
    for (uint64_t i = 1; i < count; i++)
        ASSERT_EQ((i << 32 | i) * 3, all[i]);
}

TEST_F(services_test, a_log_that_breaks_goes_on_with_a_snapshot) {
    concurrent_test_heap files;
    ty_heap *heap = files.get();
    uint64_t *all = words(heap, 64);
    std::atomic<unsigned> faults{0};
    in_threads(4, [&](unsigned number) {
        for (unsigned i = 0; i < 200; i++) {
            if (number == 0 && i % 20 == 10) {
                files.fail_one_log_write();
                faults++;
            }
            EXPECT_OK(add(heap, all[number * 8]));
        }
    });
    EXPECT_LT(0u, faults.load());
    files.die();
    files.open();
    for (unsigned number = 0; number < 4; number++)
        EXPECT_EQ(200u, all[number * 8]);
}

// A close takes the library's list out of the heap. Where it fails, blocks that commits get may lie where the list did,
// in the last snapshot.
TEST_F(services_test, a_close_that_fails_leaves_what_commits_need) {
    constexpr size_t bytes = 4000, count = 8; // as long as a block of the list
    concurrent_test_heap files;
    uint64_t *found = words(files.get(), count);
    void *reserved = ty_reserve(files.get(), 64);
    ASSERT_NE(nullptr, reserved);
    EXPECT_OK(ty_snapshot(files.get()));
    EXPECT_OK(ty_cancel(reserved));
    files.set_full(true);
    EXPECT_EQ(TY_E_SPACE, ty_close(files.get()));
    files.set_full(false);
    for (size_t i = 0; i < count; i++)
        EXPECT_OK(atomically(files.get(), [&](ty_atomic_txn *txn) {
            auto *made = static_cast<uint64_t *>(ty_atomic_alloc(txn, bytes));
            made[0] = i;
            return store(txn, found[i], reinterpret_cast<uint64_t>(made));
        }));
    files.die();
    files.open();
    ASSERT_NE(nullptr, files.get());
    for (size_t i = 0; i < count; i++)
        EXPECT_EQ(i, *reinterpret_cast<uint64_t *>(found[i]));
    EXPECT_OK(ty_heap_verify(files.get(), nullptr, nullptr));
}

// The child must not write to the parent's log.
TEST_F(services_test, a_fork_amid_a_body_commits_in_the_parent_alone) {
    concurrent_test_heap files;
    uint64_t *found = words(files.get(), 1);
    int child_status = -1;
    pid_t child = -1;
    const ty_status status = atomically(files.get(), [&](ty_atomic_txn *txn) -> ty_status {
        child = fork();
        return store(txn, found[0], uint64_t{child == 0 ? 1u : 2u});
    });
    if (child == 0)
        _exit(status == TY_E_FORKED ? 0 : 1);
    EXPECT_OK(status);
    EXPECT_EQ(child, waitpid(child, &child_status, 0));
    EXPECT_EQ(0, child_status);
    files.die();
    files.open();
    EXPECT_EQ(2u, found[0]);
}

// The same of a volatile heap.
TEST_F(services_test, a_fork_amid_a_body_on_a_volatile_heap) {
    ty_heap_options options = TY_HEAP_OPTIONS_INIT;
    options.concurrent = true;
    ty_heap *heap = nullptr;
    ASSERT_OK(ty_heap_create(&options, &heap));
    uint64_t *found = words(heap, 1);
    int child_status = -1;
    pid_t child = -1;
    const ty_status status = atomically(heap, [&](ty_atomic_txn *txn) -> ty_status {
        child = fork();
        return store(txn, found[0], uint64_t{2});
    });
    if (child == 0)
        _exit(status == TY_E_FORKED ? 0 : 1);
    EXPECT_OK(status);
    EXPECT_EQ(child, waitpid(child, &child_status, 0));
    EXPECT_EQ(0, child_status);
    EXPECT_EQ(2u, found[0]);
    EXPECT_OK(ty_heap_destroy(heap));
}

// A thread remembers the heaps that it has used last by their addresses (X35).
TEST_F(services_test, a_heap_in_the_place_of_another) {
    ty_heap_options options = TY_HEAP_OPTIONS_INIT;
    options.concurrent = true;
    const auto count = [&](ty_heap *heap) {
        uint64_t *found = words(heap, 1);
        EXPECT_OK(add(heap, *found));
        EXPECT_EQ(1u, *found);
    };
    ty_heap *first = nullptr, *next = nullptr;
    ASSERT_OK(ty_heap_create(&options, &first));
    count(first);
    EXPECT_OK(ty_heap_destroy(first));
    for (unsigned round = 0; round < 1000 && next != first; round++) { // handles are used again after 64 others
        if (next != nullptr) {
            EXPECT_OK(ty_heap_destroy(next));
        }
        ASSERT_OK(ty_heap_create(&options, &next));
    }
    ASSERT_EQ(first, next);
    count(next);
    EXPECT_OK(ty_heap_destroy(next));
}

// A call after a roll-back vouches for nothing of the next run.
TEST_F(services_test, calls_after_the_end_leave_the_commit_mode) {
    concurrent_test_heap files;
    struct given {
        ty_heap *heap;
        uint64_t *words;
    } all{files.get(), words(files.get(), 16)};
    unsigned runs = 0;
    ty_atomic_result reported = result();
    EXPECT_OK(atomically(
        all.heap,
        [&](ty_atomic_txn *txn) -> ty_status {
            RETURN_IF(ty_atomic_on_rollback(
                txn,
                [](void *context) {
                    const auto &to = *static_cast<given *>(context);
                    ty_atomic_options independent = TY_ATOMIC_OPTIONS_INIT;
                    independent.commit = TY_COMMIT_STREAM;
                    EXPECT_OK(atomically(
                        to.heap, [&to](ty_atomic_txn *own) { return add_to(own, to.words[8], 1); }, &independent));
                },
                &all));
            RETURN_IF(add_to(txn, all.words[0], 1));
            if (++runs == 1)
                std::thread([&] { EXPECT_OK(add(all.heap, all.words[0])); }).join();
            return TY_OK;
        },
        nullptr, &reported));
    EXPECT_EQ(2u, reported.runs);
    files.die();
    std::map<uint64_t, bool> independent; // by LSN
    EXPECT_OK(ty_log_read(
        heap_path, &files.options(), nullptr,
        [](const ty_log_entry *entry, void *context) {
            (*static_cast<std::map<uint64_t, bool> *>(context))[entry->lsn] = entry->independent;
            return true;
        },
        &independent));
    EXPECT_TRUE(independent.at(reported.lsn - 1));
    EXPECT_FALSE(independent.at(reported.lsn));
    files.open();
}

// A snapshot, or a transaction of the other sort, needs what an irrevocable body has for itself.
TEST_F(services_test, calls_after_an_irrevocable_body_have_the_heap) {
    concurrent_test_heap files;
    ty_heap *heap = files.get();
    uint64_t *found = words(heap, 1);
    ty_atomic_options options = TY_ATOMIC_OPTIONS_INIT;
    options.irrevocable = true;
    EXPECT_OK(atomically(
        heap,
        [&](ty_atomic_txn *txn) -> ty_status {
            RETURN_IF(ty_atomic_on_commit(
                txn,
                [](void *context) {
                    ty_txn *other = nullptr;
                    EXPECT_OK(ty_snapshot(static_cast<ty_heap *>(context)));
                    EXPECT_OK(ty_begin(static_cast<ty_heap *>(context), nullptr, &other));
                    EXPECT_OK(ty_commit(other));
                },
                heap));
            return add_to(txn, found[0], 1);
        },
        &options));
    EXPECT_EQ(1u, found[0]);
}

TEST_F(services_test, a_thread_ends_amid_a_body) {
    concurrent_test_heap files;
    ty_heap *heap = files.get();
    uint64_t *word = words(heap, 1);
    struct shared {
        ty_heap *heap;
        uint64_t *word;
    } given{heap, word};
    pthread_t thread;
    ASSERT_EQ(0, pthread_create(
                     &thread, nullptr,
                     [](void *argument) -> void * {
                         auto *from = static_cast<shared *>(argument);
                         static_cast<void>(atomically(from->heap, [&](ty_atomic_txn *txn) -> ty_status {
                             RETURN_IF(store(txn, *from->word, uint64_t{5}));
                             static_cast<void>(ty_atomic_alloc(txn, 50));
                             pthread_exit(nullptr);
                         }));
                         return nullptr;
                     },
                     &given));
    ASSERT_EQ(0, pthread_join(thread, nullptr));
    EXPECT_EQ(0u, *word);
    EXPECT_OK(add(heap, *word));
    EXPECT_OK(ty_snapshot(heap)); // nobody is waited for
    files.close();
    files.open();
    EXPECT_EQ(1u, *word);
    uint64_t blocks = 0;
    EXPECT_OK(ty_each_block(
        files.get(),
        [](const ty_block *block, void *context) {
            *static_cast<uint64_t *>(context) += block->size_bytes < 100 && block->size_bytes >= 50;
            return true;
        },
        &blocks));
    EXPECT_EQ(0u, blocks);
}

TEST_F(services_test, an_exception_takes_back_what_it_leaves) {
    concurrent_test_heap files;
    ty_heap *heap = files.get();
    uint64_t *word = words(heap, 1);
    ty_atomic_options alone = TY_ATOMIC_OPTIONS_INIT;
    for (bool irrevocable : {false, true}) {
        alone.irrevocable = irrevocable;
        EXPECT_THROW(static_cast<void>(atomically(
                         heap,
                         [&](ty_atomic_txn *txn) -> ty_status {
                             RETURN_IF(store(txn, *word, uint64_t{5}));
                             throw 1;
                         },
                         &alone)),
                     int);
        EXPECT_EQ(nullptr, ty_current_atomic_txn(heap));
        EXPECT_EQ(0u, *word);
    }
    EXPECT_OK(atomically(heap, [&](ty_atomic_txn *txn) -> ty_status {
        RETURN_IF(store(txn, *word, uint64_t{1}));
        EXPECT_THROW(static_cast<void>(atomically(heap,
                                                  [&](ty_atomic_txn *part) -> ty_status {
                                                      RETURN_IF(store(part, *word, uint64_t{9}));
                                                      throw 2;
                                                  })),
                     int);
        return TY_OK;
    }));
    EXPECT_EQ(1u, *word);
    std::thread([&] { EXPECT_OK(add(heap, *word, &alone)); }).join(); // nobody holds anything
    EXPECT_EQ(2u, *word);
}

TEST_F(services_test, a_thread_ends_amid_an_irrevocable_body) {
    concurrent_test_heap files;
    ty_heap *heap = files.get();
    uint64_t *word = words(heap, 1);
    ty_atomic_options alone = TY_ATOMIC_OPTIONS_INIT;
    alone.irrevocable = true;
    struct shared {
        ty_heap *heap;
        const ty_atomic_options *options;
    } given{heap, &alone};
    pthread_t thread;
    ASSERT_EQ(0, pthread_create(
                     &thread, nullptr,
                     [](void *argument) -> void * {
                         auto *from = static_cast<shared *>(argument);
                         static_cast<void>(atomically(
                             from->heap, [](ty_atomic_txn *) -> ty_status { pthread_exit(nullptr); }, from->options));
                         return nullptr;
                     },
                     &given));
    ASSERT_EQ(0, pthread_join(thread, nullptr));
    EXPECT_OK(add(heap, *word, &alone));
    EXPECT_EQ(1u, *word);
}

TEST_F(services_test, memory_that_was_never_used_is_refused) {
    concurrent_test_heap files;
    ty_heap_options options = TY_HEAP_OPTIONS_INIT;
    options.concurrent = true;
    ty_heap *plain = nullptr;
    ASSERT_OK(ty_heap_create(&options, &plain));
    for (ty_heap *heap : {plain, files.get()}) {
        auto *far = static_cast<uint64_t *>(ty_heap_base(heap)) + (heap_used_bytes(heap) + 65536) / 8;
        EXPECT_OK(atomically(heap, [&](ty_atomic_txn *txn) {
            uint64_t value = 0;
            EXPECT_EQ(TY_E_ARGUMENT, load(txn, *far, &value));
            EXPECT_EQ(TY_E_ARGUMENT, store(txn, *far, uint64_t{1}));
            return TY_OK;
        }));
    }
    EXPECT_OK(ty_heap_destroy(plain));
}

TEST_F(services_test, read_only_it_is_looked_at) {
    concurrent_test_heap files;
    uint64_t *word = words(files.get(), 1);
    EXPECT_OK(add(files.get(), *word));
    files.die();
    files.options().mode = TY_OPEN_READ_ONLY;
    files.open();
    EXPECT_EQ(1u, *word);
    EXPECT_EQ(TY_E_PERMISSION, atomically(files.get(), [](ty_atomic_txn *) { return TY_OK; }));
}

TEST_F(services_test, calls_come_after_the_end) {
    concurrent_test_heap files;
    ty_heap *heap = files.get();
    uint64_t *word = words(heap, 1);
    struct counts {
        ty_heap *heap;
        unsigned commits, rollbacks;
    } counted{heap, 0, 0};
    const auto note = [&](ty_atomic_txn *txn) -> ty_status {
        RETURN_IF(ty_atomic_on_commit(
            txn, [](void *context) { static_cast<counts *>(context)->commits++; }, &counted));
        return ty_atomic_on_rollback(
            txn,
            [](void *context) {
                auto *to = static_cast<counts *>(context);
                EXPECT_EQ(nullptr, ty_current_atomic_txn(to->heap));
                to->rollbacks++;
            },
            &counted);
    };
    EXPECT_EQ(TY_E_EXISTS, atomically(heap, [&](ty_atomic_txn *txn) -> ty_status {
                  RETURN_IF(note(txn));
                  return TY_E_EXISTS;
              }));
    EXPECT_EQ(0u, counted.commits);
    EXPECT_EQ(1u, counted.rollbacks);
    EXPECT_OK(atomically(heap, [&](ty_atomic_txn *txn) -> ty_status {
        RETURN_IF(note(txn));
        return store(txn, *word, uint64_t{1});
    }));
    EXPECT_EQ(1u, counted.commits);
    EXPECT_EQ(1u, counted.rollbacks);
}

} // namespace
} // namespace taiyen::test
