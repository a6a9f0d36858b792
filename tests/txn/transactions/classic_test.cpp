// Goal: classic entries and procedures are undone in the reverse order of what was done.
// Method: small transactions by hand, each the story of something that went wrong or could.
#include "tests/txn/support.hpp"

namespace taiyen::test {
namespace {

constexpr uint64_t add_id = 7002;

struct arguments {
    uint64_t *word;
    uint64_t value;
};

ty_status add_to_word(ty_heap *, const void *given, size_t, void *) {
    arguments a;
    memcpy(&a, given, sizeof a);
    *a.word += a.value;
    return TY_OK;
}

// ty_log_procedure once kept copies of what was pending, for a comparison; a rollback brought them back before it undid
// the procedure: the word then lost the value twice, and a rollback entry for one of its bytes could not repair that.
TEST(classic, a_procedure_is_undone_once) {
    ASSERT_OK(ty_register_procedure(add_id, "add", add_to_word, nullptr));
    test_heap heap(TY_CLASSES_CACHE_LINE);
    ty_txn *txn = nullptr;
    ASSERT_OK(ty_begin(heap.get(), nullptr, &txn));
    auto *word = static_cast<uint64_t *>(ty_txn_alloc(txn, 8));
    *word = 0x2760f940e0;
    ASSERT_OK(ty_commit(txn));

    ASSERT_OK(ty_begin(heap.get(), nullptr, &txn));
    auto *bytes = reinterpret_cast<char *>(word);
    ASSERT_OK(ty_on_rollback_data(txn, bytes + 6, bytes + 6, 1));
    bytes[6] = 'a';
    ASSERT_OK(ty_log_data(txn, bytes + 6, 1));
    arguments forth{word, 12345}, back{word, 0 - uint64_t{12345}};
    ASSERT_OK(ty_on_rollback_procedure(txn, add_id, &back, sizeof back));
    ASSERT_OK(ty_log_procedure(txn, add_id, &forth, sizeof forth));
    ASSERT_OK(add_to_word(heap.get(), &forth, sizeof forth, nullptr));
    ASSERT_OK(ty_rollback(txn));
    EXPECT_EQ(*word, 0x2760f940e0u);
}

} // namespace
} // namespace taiyen::test
