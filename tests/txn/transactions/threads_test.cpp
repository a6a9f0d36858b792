// Goal: many threads commit at the same time and nothing is lost; readers never see half a transaction; who uses a
// transaction wrongly gets an error and changes nothing.
// Method: threads that move amounts between accounts, each transfer a transaction, while readers add all accounts up;
// the sum is always the same, after a crash too.
#include "tests/os/given_time.hpp"
#include "tests/txn/support.hpp"

#include <thread>
#include <unistd.h>

namespace taiyen::test {
namespace {

constexpr size_t accounts = 64;
constexpr int64_t total = 6400;

struct bank {
    test_heap heap{TY_CLASSES_CACHE_LINE};
    int64_t *balances = nullptr;

    bank() {
        ty_txn *txn = nullptr;
        EXPECT_OK(ty_begin(heap.get(), nullptr, &txn));
        balances = static_cast<int64_t *>(ty_txn_alloc(txn, accounts * 8));
        for (size_t i = 0; i < accounts; i++)
            balances[i] = total / int64_t{accounts};
        EXPECT_OK(ty_txn_root_set(txn, "balances", balances));
        EXPECT_OK(ty_commit(txn));
    }

    void transfer(uint64_t random, bool wait) {
        ty_txn *txn = nullptr;
        ASSERT_OK(ty_begin(heap.get(), nullptr, &txn));
        int64_t *from = balances + random % accounts, *to = balances + random / accounts % accounts;
        ASSERT_OK(ty_declare(txn, from, 8));
        *from -= 1;
        ASSERT_OK(ty_declare(txn, to, 8)); // time for a reader to see half of it
        *to += 1;
        if (random % 7 == 0) {
            ASSERT_OK(ty_rollback(txn));
        } else {
            ASSERT_OK(wait ? ty_commit(txn) : ty_commit_async(txn, nullptr));
        }
    }
    int64_t sum() const {
        int64_t found = 0;
        for (size_t i = 0; i < accounts; i++)
            found += balances[i];
        return found;
    }
};

TEST(threads, commits_and_readers_at_the_same_time) {
    bank b;
    std::vector<std::thread> threads;
    std::atomic<int> wrong{0};
    for (uint64_t t = 0; t < 4; t++)
        threads.emplace_back([&b, t] {
            std::mt19937_64 random(t);
            for (int i = 0; i < 8000; i++)
                b.transfer(random() >> 8, t % 2 == 0);
        });
    for (int t = 0; t < 2; t++)
        threads.emplace_back([&b, &wrong] {
            for (int i = 0; i < 20000; i++) {
                wrong += ty_read_begin(b.heap.get()) != TY_OK;
                wrong += ty_read_begin(b.heap.get()) != TY_OK; // they nest
                ty_read_end(b.heap.get());
                wrong += b.sum() != total;
                ty_read_end(b.heap.get());
            }
        });
    threads.emplace_back([&b, &wrong] { // and reservations, and snapshots
        for (int i = 0; i < 3000; i++) {
            void *block = ty_reserve(b.heap.get(), 100);
            wrong += block == nullptr || ty_cancel(block) != TY_OK;
            if (i % 100 == 0)
                wrong += ty_snapshot(b.heap.get()) != TY_OK;
        }
    });
    for (std::thread &thread : threads)
        thread.join();
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(b.sum(), total);
    bool durable = false;
    EXPECT_OK(ty_durable(b.heap.get(), 0, true, &durable));
    EXPECT_TRUE(durable);
    std::vector<int64_t> before(b.balances, b.balances + accounts);
    b.heap.crash();
    b.balances = static_cast<int64_t *>(ty_root(b.heap.get(), "balances"));
    EXPECT_EQ(before, std::vector<int64_t>(b.balances, b.balances + accounts));
    expect_sound(b.heap.get());
}

// X1. Whatever time is left to it, a snapshot that is started amid another thread's transaction holds all of it or
// none.
TEST(threads, a_snapshot_waits_for_the_transaction_of_another_thread) {
    bank b;
    ty_txn *txn = nullptr;
    ASSERT_OK(ty_begin(b.heap.get(), nullptr, &txn));
    ASSERT_OK(ty_declare(txn, b.balances, 16));
    b.balances[0] -= 50;
    std::atomic<bool> done{false};
    std::atomic<int> waiting{0};
    std::thread other([&] {
        waiting = gettid();
        EXPECT_OK(ty_snapshot(b.heap.get()));
        done = true;
    });
    while (!done && !os::waits_for_a_word(waiting)) // for this thread; or for the snapshot's end, if it did not wait
        std::this_thread::yield();
    ASSERT_OK(ty_rollback(txn)); // a snapshot that held half of it would keep that
    other.join();
    b.heap.crash();
    b.balances = static_cast<int64_t *>(ty_root(b.heap.get(), "balances"));
    EXPECT_EQ(total, b.sum());
}

// Readers of an object that a transaction has locked wait; others go on.
TEST(threads, object_locks) {
    bank b;
    std::atomic<int> wrong{0};
    std::atomic<bool> done{false};
    std::atomic<int> reads{0};
    std::thread reader([&] {
        for (; !done; reads++) {
            wrong += ty_object_read_begin(b.heap.get(), b.balances) != TY_OK;
            wrong += b.balances[0] + b.balances[1] != 2 * total / int64_t{accounts};
            ty_object_read_end(b.heap.get(), b.balances);
        }
    });
    for (int i = 0; i < 20000 || reads < 20000; i++) {
        ty_txn *txn = nullptr;
        ASSERT_OK(ty_begin(b.heap.get(), nullptr, &txn));
        ASSERT_OK(ty_txn_lock_object(txn, b.balances));
        ASSERT_OK(ty_txn_lock_object(txn, b.balances));
        ASSERT_OK(ty_declare(txn, b.balances, 8));
        b.balances[0]++;
        ASSERT_OK(ty_declare(txn, b.balances + 1, 8)); // time for a reader to see half of it
        b.balances[1]--;
        ASSERT_OK(i % 3 == 0 ? ty_rollback(txn) : ty_commit_async(txn, nullptr));
    }
    done = true;
    reader.join();
    EXPECT_EQ(wrong, 0);
}

TEST(threads, wrong_use_is_reported) {
    bank b;
    ty_heap *heap = b.heap.get();
    ty_txn *txn = nullptr, *other = nullptr;
    EXPECT_EQ(ty_alloc(heap, 10), nullptr);
    EXPECT_EQ(ty_free(b.balances), TY_E_ARGUMENT);
    EXPECT_EQ(ty_root_set(heap, "x", b.balances), TY_E_ARGUMENT);
    ASSERT_OK(ty_begin(heap, nullptr, &txn));
    ASSERT_OK(ty_declare(txn, b.balances, 8));
    b.balances[0] = 1;
    char *base = static_cast<char *>(ty_heap_base(heap));
    EXPECT_EQ(ty_declare(txn, base, 8), TY_E_ARGUMENT); // X5
    EXPECT_EQ(ty_declare(txn, base + small_limit - 8, 8), TY_E_ARGUMENT);
    EXPECT_EQ(ty_log_data(txn, base + 4096, 100), TY_E_ARGUMENT);
    EXPECT_EQ(ty_begin(heap, nullptr, &other), TY_E_ARGUMENT);
    EXPECT_EQ(ty_read_begin(heap), TY_E_ARGUMENT);
    EXPECT_EQ(ty_object_read_begin(heap, b.balances), TY_E_ARGUMENT);
    EXPECT_EQ(ty_snapshot(heap), TY_E_ARGUMENT);
    std::thread([&] {
        ty_txn_options no_wait = TY_TXN_OPTIONS_INIT;
        no_wait.no_wait = true;
        ty_txn *mine = nullptr;
        EXPECT_EQ(ty_begin(heap, &no_wait, &mine), TY_E_BUSY);
        EXPECT_EQ(ty_current_txn(heap), nullptr);
        EXPECT_EQ(ty_declare(txn, b.balances, 8), TY_E_ARGUMENT);
        EXPECT_EQ(ty_commit(txn), TY_E_ARGUMENT);
        EXPECT_EQ(ty_rollback(txn), TY_E_ARGUMENT);
        EXPECT_EQ(ty_txn_alloc(txn, 8), nullptr);
    }).join();
    ASSERT_OK(ty_rollback(txn));
    EXPECT_EQ(b.sum(), total);
    EXPECT_EQ(ty_commit(txn), TY_E_ARGUMENT);
    EXPECT_EQ(ty_declare(txn, b.balances, 8), TY_E_ARGUMENT);
    ASSERT_OK(ty_object_read_begin(heap, b.balances));
    EXPECT_EQ(ty_begin(heap, nullptr, &txn), TY_E_ARGUMENT);
    EXPECT_EQ(ty_read_begin(heap), TY_E_ARGUMENT);
    ty_object_read_end(heap, b.balances);
    ASSERT_OK(ty_read_begin(heap));
    EXPECT_EQ(ty_begin(heap, nullptr, &txn), TY_E_ARGUMENT);
    ty_read_end(heap);
    bool durable;
    EXPECT_EQ(ty_durable(heap, 1u << 30, false, &durable), TY_E_ARGUMENT);
    EXPECT_EQ(ty_durable(heap, 0, false, nullptr), TY_E_ARGUMENT);
    EXPECT_OK(ty_durable(heap, 0, true, nullptr));
}

// A block that is to be freed later is gone for the program at once.
TEST(threads, freed_later_is_freed_once) {
    test_heap heap(TY_CLASSES_CACHE_LINE, TY_BACKGROUND_THREAD);
    ty_txn_options later = TY_TXN_OPTIONS_INIT;
    later.free_later = true;
    for (int i = 0; i < 200; i++) {
        ty_txn *txn = nullptr;
        ASSERT_OK(ty_begin(heap.get(), nullptr, &txn));
        void *block = ty_txn_alloc(txn, 100);
        ASSERT_OK(ty_commit_async(txn, nullptr));
        ASSERT_OK(ty_begin(heap.get(), &later, &txn));
        ASSERT_OK(ty_txn_free(txn, block));
        ASSERT_OK(ty_commit_async(txn, nullptr));
        ASSERT_OK(ty_begin(heap.get(), &later, &txn));
        ASSERT_EQ(ty_txn_free(txn, block), TY_E_ARGUMENT);
        ASSERT_OK(ty_rollback(txn));
    }
    ASSERT_OK(heap.snapshot());
    EXPECT_TRUE(content_of(heap.get()).empty());
    heap.crash();
    EXPECT_TRUE(content_of(heap.get()).empty());
}

} // namespace
} // namespace taiyen::test
