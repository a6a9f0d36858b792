// Goal: check_stores reports every store that no transaction knows of, and no other.
// Method: single cases of each kind of store, in transactions and outside, with both trackers.
#include "tests/txn/transactions/write_faults_support.hpp"

#include <algorithm>

namespace taiyen::test {
namespace {

class undeclared_writes : public write_faults {};
INSTANTIATE_FOR_EACH_TRACKER(undeclared_writes);

TEST_P(undeclared_writes, those_in_transactions_are_reported_exactly) {
    write_faults_heap h(GetParam(), true);
    char *first = h.block("a", 20000), *second = h.block("b", 100);
    EXPECT_EQ(std::vector<undeclared_write>{}, h.take_undeclared());
    ty_txn *txn = h.begin_declared();
    ASSERT_OK(ty_declare(txn, first + 8, 16));
    ASSERT_OK(ty_declare(txn, first + 100, 1)); // covers its word
    memset(first, 0x22, 40);                    // [0, 8) and [24, 40) are not declared
    first[103] = 1;
    first[9001] = 1;
    first[19999] = 1;
    second[50] = 1;
    char *own = static_cast<char *>(ty_txn_alloc(txn, 5000));
    memset(own, 0x66, 5000);
    ASSERT_OK(ty_txn_root_set(txn, "own", own));
    ASSERT_OK(ty_commit(txn));
    std::vector<undeclared_write> expected{{first, 8, true, first},
                                           {first + 24, 16, true, first},
                                           {first + 9001, 1, true, first},
                                           {first + 19999, 1, true, first},
                                           {second + 50, 1, true, second}};
    auto reported = h.take_undeclared();
    auto by_address = [](const undeclared_write &a, const undeclared_write &b) { return a.address < b.address; };
    std::sort(expected.begin(), expected.end(), by_address);
    EXPECT_EQ(expected, reported);
    txn = h.begin_declared(); // a rollback reports, too
    first[5000] = 2;
    ASSERT_OK(ty_rollback(txn));
    EXPECT_EQ((std::vector<undeclared_write>{{first + 5000, 1, true, first}}), h.take_undeclared());
}

TEST_P(undeclared_writes, known_stores_are_none) {
    write_faults_heap h(GetParam(), true);
    char *block = h.block("b", 20000);
    ty_txn *txn = h.begin_declared();
    memset(block, 0x22, 100);
    ASSERT_OK(ty_log_data(txn, block, 100));
    char *grown = static_cast<char *>(ty_txn_resize(txn, block, 40000));
    ASSERT_NE(nullptr, grown) << ty_error_text();
    memset(grown + 20480, 0x23, 19000);
    char *gone = static_cast<char *>(ty_txn_alloc(txn, 64));
    memset(gone, 1, 64);
    ASSERT_OK(ty_txn_free(txn, gone));
    ASSERT_OK(ty_txn_root_set(txn, "b", grown));
    ASSERT_OK(ty_commit(txn));
    txn = h.begin_declared(); // freed: nobody sees it
    memset(grown, 0x24, 64);
    ASSERT_OK(ty_txn_root_set(txn, "b", nullptr));
    ASSERT_OK(ty_txn_free(txn, grown));
    ASSERT_OK(ty_commit(txn));
    txn = h.begin(); // tracked: all is known
    char *made = static_cast<char *>(ty_txn_alloc(txn, 64));
    put(made, 1);
    ASSERT_OK(ty_commit(txn));
    EXPECT_EQ(std::vector<undeclared_write>{}, h.take_undeclared());
}

// What a procedure does it does by plain stores.
TEST_P(undeclared_writes, procedures_are_none) {
    write_faults_heap h(GetParam(), true);
    char *block = h.block("b", 64);
    auto set = [](ty_heap *, const void *arguments, size_t, void *) {
        char *place;
        memcpy(&place, arguments, sizeof place);
        put(place, 5);
        return TY_OK;
    };
    ASSERT_OK(ty_register_procedure(7101, "set", set, nullptr));
    ty_txn *txn = h.begin_declared();
    ASSERT_OK(ty_log_procedure(txn, 7101, &block, sizeof block));
    ASSERT_EQ(TY_OK, set(h.heap, &block, sizeof block, nullptr));
    ASSERT_OK(ty_commit(txn));
    EXPECT_EQ(std::vector<undeclared_write>{}, h.take_undeclared());
    h.crash();
    EXPECT_EQ(5u, get(block));
    ASSERT_OK(ty_register_procedure(7101, nullptr, nullptr, nullptr));
}

// Blocks that were reserved before memory was armed can be filled after.
TEST_P(undeclared_writes, blocks_reserved_before_are_none) {
    write_faults_heap h(GetParam(), true);
    char *reserved = static_cast<char *>(ty_reserve(h.heap, 9000));
    ASSERT_OK(ty_commit(h.begin_declared()));
    memset(reserved, 1, 9000);
    EXPECT_EQ(std::vector<undeclared_write>{}, h.take_undeclared());
    ASSERT_OK(ty_cancel(reserved));
    char *stale = reserved + 4096; // the page is nobody's now
    ASSERT_OK(ty_commit(h.begin_declared()));
    put(stale, 1);
    EXPECT_EQ((std::vector<undeclared_write>{{stale, 0, false, nullptr}}), h.take_undeclared());
}

TEST_P(undeclared_writes, those_outside_are_reported_once_a_page) {
    write_faults_heap h(GetParam(), true);
    char *block = h.block("b", 20000);
    char *page = block + (4096 - reinterpret_cast<uintptr_t>(block) % 4096);
    h.take_undeclared();
    put(page + 16, 1);
    put(page + 24, 2);
    put(page + 8192, 3);
    EXPECT_EQ((std::vector<undeclared_write>{{page + 16, 0, false, nullptr}, {page + 8192, 0, false, nullptr}}),
              h.take_undeclared());
#if defined(__x86_64__)
    EXPECT_NE(nullptr, h.instruction);
#endif
    ASSERT_OK(ty_commit(h.begin_declared()));
    put(page + 16, 3);
    EXPECT_EQ((std::vector<undeclared_write>{{page + 16, 0, false, nullptr}}), h.take_undeclared());
    char *reserved = static_cast<char *>(ty_reserve(h.heap, 100)); // and filling it is right
    memset(reserved, 1, 100);
    ASSERT_OK(ty_commit(h.begin_declared()));
    memset(reserved, 2, 100);
    ASSERT_OK(ty_cancel(reserved));
    EXPECT_EQ(std::vector<undeclared_write>{}, h.take_undeclared());
}

TEST_P(undeclared_writes, strays_without_a_callback_are_printed) {
    write_faults_heap h(GetParam(), true);
    ASSERT_OK(ty_close(h.heap));
    h.options.undeclared_write = nullptr;
    h.open();
    char *block = h.block("b", 64);
    testing::internal::CaptureStderr();
    ty_txn *txn = h.begin_declared();
    block[3] = 1;
    ASSERT_OK(ty_commit(txn));
    put(block, 1);
    std::string text = testing::internal::GetCapturedStderr();
    EXPECT_NE(std::string::npos, text.find("changed 1 byte and did not declare it")) << text;
    EXPECT_NE(std::string::npos, text.find("outside of any transaction")) << text;
}

} // namespace
} // namespace taiyen::test
