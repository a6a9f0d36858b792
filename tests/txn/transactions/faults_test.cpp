// Goal: whatever operation of the disk fails, once or for ever, and when the disk is full: a status, the heap stays
// usable, and nothing that was acknowledged is missing. Method: a life of a heap is lived again and again on a
// simulated disk, each time with another operation failing; what a later open finds is held against the reference.
#include "../files.hpp"

#include <algorithm>

using namespace taiyen;
using namespace taiyen::test;

namespace {

// Lives as far as the disk lets it; returns how many transactions were acknowledged.
uint64_t live(const disk &files, ledger &book, ty_heap **left_open) {
    ty_heap *heap = nullptr;
    ty_open_options options = with_log(files);
    uint64_t acknowledged = 0;
    auto note = [&](ty_status status) {
        if (!status)
            acknowledged = ledger::count(heap);
    };
    if (ty_open(heap_path, &options, &heap, nullptr))
        return 0;
    book.forget_others(heap);
    for (int i = 0; i < 12; ++i) {
        note(book.run(heap));
        if (i == 4)
            note(ty_snapshot(heap));
        if (i == 6 && ty_run_background_work(heap)) // acknowledges nothing
            continue;
        if (i == 8) {
            (void)!book.run(heap, false); // acknowledged by ty_durable
            bool durable = false;
            EXPECT_TRUE(ty_durable(heap, 0, true, &durable) != TY_OK || durable);
            note(durable ? TY_OK : TY_E_IO);
        }
    }
    if (ty_close(heap))
        *left_open = heap;
    return acknowledged;
}

void expect_all_there(const disk &files, ledger &book, uint64_t least) {
    ty_open_options options = with_log(files);
    ty_heap *heap = nullptr;
    ASSERT_OK(ty_open(heap_path, &options, &heap, nullptr));
    book.check(heap, least);
    book.forget_others(heap);
    book.history.resize(ledger::count(heap) + 1);
    ASSERT_OK(book.run(heap));
    ASSERT_OK(ty_close(heap));
}

class each_operation : public testing::TestWithParam<bool> {};

TEST_P(each_operation, fails) {
    uint64_t operations = 0;
    {
        disk files;
        ledger book(9);
        ty_heap *heap = nullptr;
        live(files, book, &heap);
        operations = os::sim_operation_count(files.get(), os::sim_op_any);
    }
    ASSERT_GT(operations, 50u);
    for (uint64_t n = 0; n < operations; ++n) {
        SCOPED_TRACE(testing::Message() << "operation " << n << " of " << operations);
        disk files;
        ledger book(9);
        ty_heap *heap = nullptr;
        os::sim_set_fault(files.get(), {os::sim_op_any, n, GetParam(), TY_E_IO});
        uint64_t acknowledged = live(files, book, &heap);
        disk copy(files.cut(os::sim_cut::drop_all));
        os::sim_set_fault(files.get(), {});
        if (heap) { // still usable
            EXPECT_OK(book.run(heap));
            acknowledged = ledger::count(heap);
            EXPECT_OK(ty_discard(heap));
            expect_all_there(files, book, acknowledged);
        } else {
            expect_all_there(files, book, acknowledged);
        }
        if (HasFailure())
            return;
    }
}
INSTANTIATE_TEST_SUITE_P(faults, each_operation, testing::Values(false, true),
                         [](const auto &how) { return how.param ? "for_ever" : "once"; });

// Power fails after the fault: what was acknowledged in spite of it must be there.
TEST(faults_test, a_power_cut_follows) {
    for (uint64_t n = 0; n < 400; ++n) {
        SCOPED_TRACE(testing::Message() << "operation " << n);
        disk files;
        ledger book(9);
        ty_heap *heap = nullptr;
        os::sim_set_fault(files.get(), {os::sim_op_any, n, n % 2 == 1, TY_E_IO});
        uint64_t acknowledged = live(files, book, &heap);
        os::sim_cut how = n % 3 == 0 ? os::sim_cut::drop_all : n % 3 == 1 ? os::sim_cut::random : os::sim_cut::keep_all;
        disk copy(files.cut(how, n + 1));
        os::sim_set_fault(files.get(), {});
        if (heap) {
            EXPECT_OK(ty_discard(heap));
        }
        if (acknowledged)
            expect_all_there(copy, book, acknowledged);
        if (HasFailure())
            return;
    }
}

// A transaction too long for the log, whose snapshot fails, may stand in the journal whole. What is acknowledged after
// it must not be in the log after it (X7).
class long_transaction : public testing::TestWithParam<bool> {};

TEST_P(long_transaction, fails) {
    for (uint64_t seed = 0; seed < 60; ++seed) {
        SCOPED_TRACE(testing::Message() << "seed " << seed);
        disk files;
        ledger book(seed);
        ty_heap *heap = nullptr;
        ty_open_options options = with_log(files);
        ASSERT_OK(ty_open(heap_path, &options, &heap, nullptr));
        ASSERT_OK(ty_cancel(ty_reserve(heap, 64))); // the list of these is a block, too,
        ASSERT_OK(ty_snapshot(heap));               // and stays
        ty_txn *txn = nullptr;
        ASSERT_OK(ty_begin(heap, nullptr, &txn));
        auto *words = static_cast<uint64_t *>(ty_txn_alloc(txn, small_log));
        ASSERT_NE(nullptr, words);
        ASSERT_OK(ty_commit(txn));
        for (int i = 0; i < 3; ++i)
            ASSERT_OK(book.run(heap));
        ASSERT_OK(ty_begin(heap, nullptr, &txn));
        ASSERT_OK(ty_declare(txn, words, small_log));
        std::generate_n(words, small_log / 8, std::mt19937_64(seed));
        os::sim_set_fault(files.get(), {os::sim_op_flush, 0, GetParam(), TY_E_IO});
        EXPECT_EQ(TY_E_IO, ty_commit(txn)) << ty_error_text();
        EXPECT_OK(ty_rollback(txn));

        bool acknowledged = book.run(heap) == TY_OK; // none of the log's operations fails
        EXPECT_NE(GetParam(), acknowledged) << "it takes a snapshot, too";
        uint64_t least = ledger::count(heap);
        disk copy(files.cut(seed % 2 ? os::sim_cut::prefix : os::sim_cut::random, seed));
        os::sim_set_fault(files.get(), {});
        EXPECT_OK(book.run(heap));
        disk later(files.cut(os::sim_cut::drop_all));
        uint64_t last = ledger::count(heap);
        EXPECT_OK(ty_discard(heap));
        for (auto &[found, count] : {std::pair{&copy, least}, {&later, last}, {&files, last}}) {
            if (found == &copy && !acknowledged)
                continue;
            options = with_log(*found);
            ASSERT_OK(ty_open(heap_path, &options, &heap, nullptr));
            book.check(heap, count);
            ASSERT_OK(ty_discard(heap));
        }
        if (HasFailure())
            return;
    }
}
INSTANTIATE_TEST_SUITE_P(faults, long_transaction, testing::Values(false, true),
                         [](const auto &how) { return how.param ? "for_ever" : "once"; });

// A full disk is reported before anything is published; with room again, all goes on.
TEST(faults_test, a_full_disk) {
    disk files;
    ledger book(4);
    ty_heap *heap = nullptr;
    ty_open_options options = with_log(files);
    ASSERT_OK(ty_open(heap_path, &options, &heap, nullptr));
    for (int i = 0; i < 5; ++i)
        ASSERT_OK(book.run(heap));
    ASSERT_OK(ty_snapshot(heap));
    os::sim_set_capacity(files.get(), 1);
    for (int i = 0; i < 100; ++i) // the log overwrites what it has
        ASSERT_OK(book.run(heap));
    uint64_t acknowledged = ledger::count(heap);
    content before = content_of(heap);
    ty_txn *txn = nullptr;
    ASSERT_OK(ty_begin(heap, nullptr, &txn));
    size_t bytes = size_t{4} << 20;
    auto *big = static_cast<uint64_t *>(ty_txn_alloc(txn, bytes));
    ASSERT_NE(nullptr, big);
    std::mt19937_64 random(1);
    for (size_t i = 0; i < bytes / 8; ++i)
        big[i] = random();
    for (int i = 0; i < 2; ++i) {
        EXPECT_EQ(TY_E_SPACE, ty_commit(txn)) << ty_error_text(); // too long for the log, and no room for a snapshot
        EXPECT_EQ(txn, ty_current_txn(heap)) << "it is still under way";
    }
    EXPECT_OK(ty_rollback(txn));
    EXPECT_TRUE(before == content_of(heap));
    ASSERT_OK(book.run(heap));
    disk copy(files.cut(os::sim_cut::drop_all));
    os::sim_set_capacity(copy.get(), UINT64_MAX);
    EXPECT_EQ(TY_E_SPACE, ty_close(heap));
    ASSERT_OK(book.run(heap)); // open and usable
    os::sim_set_capacity(files.get(), UINT64_MAX);
    ASSERT_OK(book.run(heap));
    ASSERT_OK(ty_close(heap));
    ledger same = book;
    expect_all_there(copy, same, acknowledged + 1);
    expect_all_there(files, book, acknowledged + 3);
}

} // namespace
