// Goal: a procedure that changes bytes which the same transaction has declared is undone by a rollback and done once by
// a recovery, whether it is logged before or after the rollback is notified. Method: a procedure that undoes itself,
// over bytes declared and changed before and after it. The story: logging a procedure starts the comparison anew, with
// copies of what was declared. The rollback brought those copies back before it ran the procedure that was notified of
// earlier, which then undid what was not done any more.
#include "../files.hpp"

using namespace taiyen;
using namespace taiyen::test;

namespace {

constexpr uint64_t invert_id = 0x7465737401;
struct place {
    uint64_t offset;
    uint64_t words;
};

ty_status invert(ty_heap *heap, const void *arguments, size_t, void *) {
    place at{};
    memcpy(&at, arguments, sizeof at);
    auto *words = reinterpret_cast<uint64_t *>(static_cast<char *>(ty_heap_base(heap)) + at.offset);
    for (uint64_t i = 0; i < at.words; i++)
        words[i] = ~words[i];
    return TY_OK;
}

class procedure_test : public testing::TestWithParam<bool> {
protected:
    void SetUp() override {
        ASSERT_OK(ty_register_procedure(invert_id, "invert", invert, nullptr));
        open();
        ty_txn *txn = begin();
        words = static_cast<uint64_t *>(ty_txn_alloc(txn, 64));
        for (uint64_t i = 0; i < 8; i++)
            words[i] = i;
        ASSERT_OK(ty_txn_root_set(txn, "words", words));
        ASSERT_OK(ty_commit(txn));
    }
    void TearDown() override {
        ty_discard(heap);
        ASSERT_OK(ty_register_procedure(invert_id, nullptr, nullptr, nullptr));
    }
    void open() {
        ty_open_options options = with_log(files);
        ASSERT_OK(ty_open(heap_path, &options, &heap, nullptr));
    }
    ty_txn *begin() {
        ty_txn *txn = nullptr;
        EXPECT_EQ(TY_OK, ty_begin(heap, nullptr, &txn));
        return txn;
    }
    // Words 0 to 3 are declared, words 2 to 5 inverted, words 3 and 4 declared again.
    void change(ty_txn *txn) {
        place at{static_cast<uint64_t>(reinterpret_cast<char *>(words + 2) - static_cast<char *>(ty_heap_base(heap))),
                 4};
        ASSERT_OK(ty_declare(txn, words, 32));
        for (uint64_t i = 0; i < 4; i++)
            words[i] += 100;
        if (GetParam()) {
            ASSERT_OK(ty_log_procedure(txn, invert_id, &at, sizeof at));
        }
        ASSERT_OK(ty_on_rollback_procedure(txn, invert_id, &at, sizeof at));
        if (!GetParam()) {
            ASSERT_OK(ty_log_procedure(txn, invert_id, &at, sizeof at));
        }
        ASSERT_OK(invert(heap, &at, sizeof at, nullptr));
        ASSERT_OK(ty_declare(txn, words + 3, 16));
        words[3] += 1000;
        words[4] += 1000;
    }

    disk files;
    ty_heap *heap = nullptr;
    uint64_t *words = nullptr;
};

TEST_P(procedure_test, rolled_back) {
    ty_txn *txn = begin();
    change(txn);
    ASSERT_OK(ty_rollback(txn));
    for (uint64_t i = 0; i < 8; i++)
        EXPECT_EQ(i, words[i]);
}

TEST_P(procedure_test, done_once_by_a_recovery) {
    ty_txn *txn = begin();
    change(txn);
    ASSERT_OK(ty_commit(txn));
    std::vector<uint64_t> committed(words, words + 8);
    ASSERT_OK(ty_discard(heap));
    open();
    EXPECT_EQ(committed, std::vector<uint64_t>(words, words + 8));
    EXPECT_EQ((std::vector<uint64_t>{100, 101, ~uint64_t{102}, ~uint64_t{103} + 1000, ~uint64_t{4} + 1000, ~uint64_t{5},
                                     6, 7}),
              committed);
}

INSTANTIATE_TEST_SUITE_P(logged_first, procedure_test, testing::Bool());

} // namespace
