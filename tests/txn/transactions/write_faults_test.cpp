// Goal: the rules of txn.md, "Write-fault tracking", one by one: what is logged and what is rolled back, what system
// calls and other threads may do meanwhile, and that nothing of other threads is rolled back. Method: single cases,
// with both trackers.
#include "tests/txn/transactions/write_faults_support.hpp"

#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace taiyen::test {
namespace {

INSTANTIATE_FOR_EACH_TRACKER(write_faults);

TEST_P(write_faults, stores_are_logged_and_rolled_back) {
    write_faults_heap h(GetParam());
    char *block = h.block("b", 20000);
    ty_txn *txn = h.begin();
    put(block, 1);
    put(block + 8000, 2);
    put(block + 19992, 3);
    ASSERT_OK(ty_rollback(txn));
    EXPECT_EQ(0x1111111111111111u, get(block));
    EXPECT_EQ(0x1111111111111111u, get(block + 8000));
    txn = h.begin();
    put(block, 4);
    put(block + 19992, 5);
    ASSERT_OK(ty_commit(txn));
    txn = h.begin(); // the pages are protected again
    put(block, 6);
    ASSERT_OK(ty_commit(txn));
    h.crash();
    EXPECT_EQ(6u, get(block));
    EXPECT_EQ(0x1111111111111111u, get(block + 8000));
    EXPECT_EQ(5u, get(block + 19992));
}

TEST_P(write_faults, the_content_at_the_begin_counts_whenever_a_range_is_declared) {
    write_faults_heap h(GetParam());
    char *block = h.block("b", 64);
    for (bool declared_first : {true, false}) {
        ty_txn *txn = h.begin();
        if (declared_first) {
            ASSERT_OK(ty_declare(txn, block, 16));
        }
        put(block, 7);
        ASSERT_OK(ty_declare(txn, block, 16));
        put(block + 8, 8);
        ASSERT_OK(ty_rollback(txn));
        EXPECT_EQ(0x1111111111111111u, get(block));
        EXPECT_EQ(0x1111111111111111u, get(block + 8));
    }
}

TEST_P(write_faults, unchanged_content_is_not_logged) {
    write_faults_heap h(GetParam());
    char *block = h.block("b", 64);
    ty_txn_stats before{}, after{};
    before.struct_size = after.struct_size = sizeof before;
    ASSERT_OK(ty_get_txn_stats(h.heap, &before));
    ty_txn *txn = h.begin();
    put(block, 5);
    put(block, 0x1111111111111111u);
    ASSERT_OK(ty_commit(txn));
    ASSERT_OK(ty_get_txn_stats(h.heap, &after));
    EXPECT_EQ(before.lsn, after.lsn);
}

// Stores that no transaction did are neither logged nor taken back by the next one; what it changes beside them is.
TEST_P(write_faults, stores_outside_of_transactions_stay_outside) {
    write_faults_heap h(GetParam());
    char *block = h.block("b", 64);
    ASSERT_OK(ty_commit(h.begin())); // armed
    put(block, 70);
    ty_txn *txn = h.begin_declared();
    ASSERT_OK(ty_declare(txn, block + 16, 8));
    put(block + 16, 72);
    ASSERT_OK(ty_commit(txn));
    txn = h.begin();
    put(block + 8, 71);
    ASSERT_OK(ty_rollback(txn));
    EXPECT_EQ(70u, get(block));
    EXPECT_EQ(72u, get(block + 16));
    EXPECT_EQ(0x1111111111111111u, get(block + 8));
    txn = h.begin();
    put(block + 8, 73);
    ASSERT_OK(ty_commit(txn));
    h.crash();
    EXPECT_EQ(0x1111111111111111u, get(block));
    EXPECT_EQ(73u, get(block + 8));
    EXPECT_EQ(72u, get(block + 16));
}

// What was stored outside is logged when a transaction says so, though it differs from no before-image.
TEST_P(write_faults, log_data_goes_before_before_images) {
    write_faults_heap h(GetParam());
    char *block = h.block("b", 20000);
    ASSERT_OK(ty_commit(h.begin()));
    put(block, 80);
    ty_txn *txn = h.begin();
    put(block + 8, 81);
    ASSERT_OK(ty_log_data(txn, block, 8));
    ASSERT_OK(ty_commit(txn));
    put(block + 12000, 82);
    txn = h.begin();
    put(block + 24, 83);
    ASSERT_OK(ty_log_data(txn, block + 12000, 8)); // in a page after all that differ
    ASSERT_OK(ty_commit(txn));
    h.crash();
    EXPECT_EQ(80u, get(block));
    EXPECT_EQ(81u, get(block + 8));
    EXPECT_EQ(82u, get(block + 12000));
    EXPECT_EQ(83u, get(block + 24));
}

TEST_P(write_faults, is_the_default_where_the_open_says_so) {
    write_faults_heap h(GetParam(), false, true);
    char *block = h.block("b", 64);
    ty_txn *txn = nullptr;
    ASSERT_OK(ty_begin(h.heap, nullptr, &txn));
    put(block, 9);
    ASSERT_OK(ty_commit(txn));
    h.crash();
    EXPECT_EQ(9u, get(block));
}

TEST_P(write_faults, no_procedures) {
    write_faults_heap h(GetParam());
    ASSERT_OK(ty_register_procedure(
        7100, "nothing", [](ty_heap *, const void *, size_t, void *) { return TY_OK; }, nullptr));
    ty_txn *txn = h.begin();
    EXPECT_EQ(TY_E_UNSUPPORTED, ty_log_procedure(txn, 7100, nullptr, 0));
    EXPECT_OK(ty_rollback(txn));
    ASSERT_OK(ty_register_procedure(7100, nullptr, nullptr, nullptr));
}

// X6: what a failed commit leaves under way can go on, and be rolled back to its begin. The record is too long for the
// log, and the snapshot in its place fails.
TEST_P(write_faults, goes_on_after_a_failed_commit) {
    constexpr size_t size = size_t{3} << 20;
    for (bool commit : {false, true}) {
        write_faults_heap h(GetParam());
        char *block = h.block("b", size);
        std::mt19937_64 random(3);
        ty_txn *txn = h.begin();
        for (size_t at = 0; at < size; at += 8)
            put(block + at, random());
        os::sim_fault fault;
        fault.operations = os::sim_op_write | os::sim_op_write_durable | os::sim_op_map;
        fault.forever = true;
        os::sim_set_fault(h.files.get(), fault);
        ASSERT_NE(TY_OK, ty_commit(txn));
        ASSERT_EQ(txn, ty_current_txn(h.heap));
        os::sim_set_fault(h.files.get(), {});
        put(block + 8, 77);
        if (commit) {
            ASSERT_OK(ty_commit(txn));
            h.crash();
            EXPECT_EQ(77u, get(block + 8));
            continue;
        }
        ASSERT_OK(ty_rollback(txn));
        EXPECT_TRUE(std::string(block, size) == std::string(size, 0x11));
    }
}

// A system call does not fault; a declared range, and a block of the transaction, can be read into.
TEST_P(write_faults, system_calls_write_what_is_declared) {
    write_faults_heap h(GetParam());
    char *block = h.block("b", 20000);
    int ends[2];
    ASSERT_EQ(0, pipe(ends));
    std::string text(9000, 'x');
    ty_txn *txn = h.begin();
    ASSERT_EQ(ssize_t(text.size()), write(ends[1], text.data(), text.size()));
    EXPECT_EQ(-1, read(ends[0], block, text.size()));
    EXPECT_EQ(EFAULT, errno);
    ASSERT_OK(ty_declare(txn, block, text.size()));
    EXPECT_EQ(ssize_t(text.size()), read(ends[0], block, text.size()));
    char *own = static_cast<char *>(ty_txn_alloc(txn, 1 << 16));
    ASSERT_EQ(ssize_t(text.size()), write(ends[1], text.data(), text.size()));
    EXPECT_EQ(ssize_t(text.size()), read(ends[0], own + 5000, text.size()));
    ASSERT_OK(ty_txn_root_set(txn, "own", own));
    ASSERT_OK(ty_commit(txn));
    close(ends[0]);
    close(ends[1]);
    h.crash();
    EXPECT_EQ(text, std::string(block, text.size()));
    EXPECT_EQ(text, std::string(own + 5000, text.size()));
}

// Of a large block of the transaction itself no page needs a before-image, nor a fault; beyond what is kept,
// before-images go.
TEST_P(write_faults, large_transactions) {
    write_faults_heap h(GetParam());
    constexpr size_t size = size_t{24} << 20;
    char *block = h.block("b", size);
    for (bool commit : {false, true}) {
        ty_txn *txn = h.begin();
        memset(block, 0x22, size);
        char *own = static_cast<char *>(ty_txn_alloc(txn, size / 4));
        memset(own, 0x33, size / 4);
        ASSERT_OK(ty_txn_root_set(txn, "own", own));
        ASSERT_OK(commit ? ty_commit(txn) : ty_rollback(txn));
        if (!commit) {
            EXPECT_TRUE(std::string(block, size) == std::string(size, 0x11));
        }
    }
    h.crash();
    EXPECT_TRUE(std::string(block, size) == std::string(size, 0x22));
    EXPECT_TRUE(std::string(static_cast<char *>(ty_root(h.heap, "own")), size / 4) == std::string(size / 4, 0x33));
}

// Recovery has no memory where only cancelled reservations, or blocks freed at once, ever were: no record names it.
TEST_P(write_faults, free_memory_is_not_logged) {
    write_faults_heap h(GetParam());
    char *block = h.block("b", 64);
    ty_txn *txn = h.begin();
    put(block, 1);
    std::thread([&] {
        char *reserved = static_cast<char *>(ty_reserve(h.heap, 300000));
        memset(reserved, 0x44, 300000);
        EXPECT_OK(ty_cancel(reserved));
    }).join();
    char *own = static_cast<char *>(ty_txn_alloc(txn, 600000));
    memset(own, 0x55, 600000);
    ASSERT_OK(ty_txn_free(txn, own));
    ASSERT_OK(ty_commit(txn));
    ASSERT_OK(ty_discard(h.heap));
    h.open();
    ASSERT_NE(nullptr, h.heap);
    EXPECT_EQ(1u, get(block));
    expect_sound(h.heap);
}

// A3: what is filled in beside the transaction's words, in their page, is no part of it.
TEST_P(write_faults, a_rollback_leaves_reserved_blocks_alone) {
    write_faults_heap h(GetParam(), true);
    char *block = h.block("b", 64), *reserved = nullptr;
    const auto page_of = [](const char *at) { return reinterpret_cast<uintptr_t>(at) / os::page_bytes; };
    std::vector<char *> others;
    for (int i = 0; i < 200 && !reserved; i++) {
        char *one = static_cast<char *>(ty_reserve(h.heap, 64));
        ASSERT_NE(nullptr, one);
        page_of(one) == page_of(block) ? void(reserved = one) : others.push_back(one);
    }
    ASSERT_NE(nullptr, reserved);
    put(reserved, 1);
    ty_txn *txn = h.begin();
    put(block, 1);
    std::thread([&] { put(reserved, 2); }).join();
    ASSERT_OK(ty_rollback(txn));
    EXPECT_EQ(2u, get(reserved));
    others.push_back(reserved);
    for (char *one : others)
        ASSERT_OK(ty_cancel(one));
}

// Threads fill reserved blocks beside the transaction's words, in the same pages, all the time.
TEST_P(write_faults, other_threads_fill_reserved_blocks) {
    write_faults_heap h(GetParam(), true);
    char *block = h.block("b", 64);
    std::atomic<bool> done{false};
    constexpr int threads = 2;
    std::atomic<char *> handed[threads] = {};
    std::vector<std::thread> fillers;
    for (int t = 0; t < threads; t++)
        fillers.emplace_back([&, t] {
            for (uint64_t n = 1; !done; n++) {
                char *mine = static_cast<char *>(ty_reserve(h.heap, 64));
                ASSERT_NE(nullptr, mine) << ty_error_text();
                for (int i = 0; i < 64; i += 8)
                    put(mine + i, n);
                for (int i = 0; i < 64; i += 8) {
                    ASSERT_EQ(n, get(mine + i)) << "rolled back by another thread's transaction";
                }
                if (n % 2 != 0) {
                    ASSERT_OK(ty_cancel(mine));
                    continue;
                }
                char *none = nullptr;
                while (!handed[t].compare_exchange_weak(none, mine) && !done) {
                    none = nullptr;
                    std::this_thread::yield();
                }
            }
        });
    uint64_t last = 0x1111111111111111u;
    std::vector<std::pair<char *, uint64_t>> published;
    for (uint64_t i = 1; i <= 400 && !HasFatalFailure(); i++) {
        ty_txn *txn = h.begin();
        put(block + 8 * (i % 8), i);
        char *given = handed[i % threads].exchange(nullptr);
        uint64_t value = 0;
        if (given) {
            value = get(given);
            void *one[] = {given};
            ASSERT_OK(ty_publish(txn, one, 1));
        }
        if (i % 3 == 0) {
            put(given ? given : block, 12345);
            ASSERT_OK(ty_rollback(txn));
            if (given) {
                ASSERT_EQ(value, get(given));
                ASSERT_OK(ty_cancel(given));
            }
            continue;
        }
        last = i;
        ASSERT_OK(ty_commit(txn));
        if (given)
            published.push_back({given, value});
    }
    done = true;
    for (auto &filler : fillers)
        filler.join();
    EXPECT_EQ(last, get(block + 8 * (last % 8)));
    EXPECT_EQ(std::vector<undeclared_write>{}, h.take_undeclared());
    h.crash();
    EXPECT_EQ(last, get(block + 8 * (last % 8)));
    for (auto [address, value] : published)
        for (int i = 0; i < 64; i += 8) {
            ASSERT_EQ(value, get(address + i));
        }
    expect_sound(h.heap);
}

// A forked child has memory of its own, and goes its own way.
TEST_P(write_faults, a_forked_child_is_apart) {
    write_faults_heap h(GetParam());
    char *block = h.block("b", 64);
    ty_txn *txn = h.begin();
    put(block, 1);
    pid_t child = fork();
    if (child == 0) {
        put(block + 8, 2);
        ty_txn *second = nullptr;
        bool refused = ty_begin(h.heap, nullptr, &second) == TY_E_FORKED;
        _exit(refused && get(block + 8) == 2 && ty_discard(h.heap) == TY_OK ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(child, waitpid(child, &status, 0));
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    EXPECT_EQ(0x1111111111111111u, get(block + 8));
    ASSERT_OK(ty_commit(txn));
    h.crash();
    EXPECT_EQ(1u, get(block));
}

// Armed memory goes with the heap: closed, rebuilt, discarded amid a transaction.
TEST_P(write_faults, heaps_end_armed) {
    write_faults_heap h(GetParam());
    char *block = h.block("b", 64);
    ty_txn *txn = h.begin();
    put(block, 1);
    ASSERT_OK(ty_commit(txn));
    ASSERT_OK(ty_close(h.heap));
    h.open();
    EXPECT_EQ(1u, get(block));
    txn = h.begin();
    put(block, 2);
    ASSERT_OK(ty_commit(txn));
    put(block, 3);
    ASSERT_OK(ty_rebuild(&h.heap, &h.options, nullptr));
    EXPECT_EQ(2u, get(block));
    txn = h.begin();
    put(block, 4);
    h.crash();
    EXPECT_EQ(2u, get(block));
}

TEST_P(write_faults, snapshots_hold_what_was_stored) {
    write_faults_heap h(GetParam());
    char *block = h.block("b", 40000);
    for (uint64_t i = 1; i <= 20; i++) {
        ty_txn *txn = h.begin();
        for (size_t at = 0; at < 40000; at += 4000)
            put(block + at, i);
        ASSERT_OK(ty_commit(txn));
        if (i % 2 != 0) {
            ASSERT_OK(ty_snapshot(h.heap));
        }
    }
    ASSERT_OK(ty_snapshot(h.heap));
    h.crash();
    for (size_t at = 0; at < 40000; at += 4000) {
        EXPECT_EQ(20u, get(block + at));
    }
}

} // namespace
} // namespace taiyen::test
