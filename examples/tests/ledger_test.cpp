// Goal: the audit, on which the proof of the ledger's demo relies, finds every kind of damage; and a bank's
// transactions do what they say.
// Method: a small bank; then its structures are changed after its back, one thing at a time.
#include "common/heap_check.hpp"
#include "common/heap_file.hpp"
#include "ledger/ledger.hpp"
#include "temporary_folder.hpp"
#include <functional>

namespace {

using demo::check;
using namespace ledger;

class bank_test : public testing::Test {
protected:
    void SetUp() override {
        ty_open_options options = TY_OPEN_OPTIONS_INIT;
        options.kind = TY_TRANSACTIONAL;
        options.limit_bytes = size_t{64} << 20;
        options.log_bytes = TY_LOG_BYTES_MIN;
        ASSERT_EQ(ty_open(folder_.file("bank.ty").c_str(), &options, &heap_, nullptr), TY_OK) << ty_error_text();
        bank_ = found(heap_, 4, 1000);
        for (uint32_t i = 0; i < 10; ++i)
            in_transaction([&](ty_txn *txn) { post(txn, bank_, i % 4, (i + 1) % 4, 100 + i, i % 2 ? "note" : ""); });
        for (int i = 0; i < 6; ++i)
            in_transaction([&](ty_txn *txn) { EXPECT_EQ(settle(txn, bank_), settlement::done); });
    }
    void TearDown() override { ty_discard(heap_); }

    template <class Step>
    void in_transaction(Step &&step) {
        ty_txn *txn = nullptr;
        check(ty_begin(heap_, nullptr, &txn));
        step(txn);
        check(ty_commit(txn));
    }
    std::string problem() {
        uint64_t blocks = 0;
        std::string text = audit(bank_, &blocks);
        if (text.empty() && blocks != demo::live_blocks_of(heap_))
            text = "blocks";
        return text;
    }

    temporary_folder folder_;
    ty_heap *heap_ = nullptr;
    bank *bank_ = nullptr;
};

TEST_F(bank_test, is_sound) {
    EXPECT_EQ(problem(), "");
    EXPECT_EQ(bank_->posted, 10u);
    EXPECT_EQ(bank_->settled, 6u);
    in_transaction([&](ty_txn *txn) { archive(txn, bank_, 4); });
    EXPECT_EQ(problem(), "");
    EXPECT_EQ(bank_->archived, 4u);
    in_transaction([&](ty_txn *txn) { archive(txn, bank_, 100); });
    EXPECT_EQ(problem(), "");
    EXPECT_EQ(bank_->first_receipt, nullptr);
}

// As a process that was killed during a snapshot leaves one, until the next close.
TEST_F(bank_test, the_library_s_list_is_not_the_bank_s) {
    check(ty_cancel(ty_reserve(heap_, 100)));
    EXPECT_EQ(demo::library_blocks_of(heap_), 1u);
    EXPECT_EQ(problem(), "");
}

TEST_F(bank_test, refuses_what_cannot_be_paid) {
    for (int i = 0; i < 4; ++i)
        in_transaction([&](ty_txn *txn) { EXPECT_EQ(settle(txn, bank_), settlement::done); });
    in_transaction([&](ty_txn *txn) { EXPECT_EQ(settle(txn, bank_), settlement::nothing_to_do); });
    in_transaction([&](ty_txn *txn) { post(txn, bank_, 0, 1, 1000000, "a house"); });
    ty_txn *txn = nullptr;
    check(ty_begin(heap_, nullptr, &txn));
    EXPECT_EQ(settle(txn, bank_), settlement::no_money);
    EXPECT_NE(problem(), "");
    ty_rollback(txn);
    EXPECT_EQ(problem(), "");
    in_transaction([&](ty_txn *again) { refuse(again, bank_); });
    EXPECT_EQ(problem(), "");
    EXPECT_EQ(bank_->refused, 1u);
}

TEST_F(bank_test, audit_finds_each_damage) {
    const std::function<void()> damages[] = {
        [&] { bank_->accounts[1].cents += 1; },
        [&] {
            bank_->accounts[1].cents += 1;
            bank_->accounts[2].cents -= 1;
        },
        [&] { bank_->first_receipt->number += 1; },
        [&] { bank_->first_receipt->cents += 1; },
        [&] { bank_->first_receipt = bank_->first_receipt->next; },
        [&] { bank_->first_order = bank_->first_order->next; },
        [&] { bank_->first_order->number += 1; },
        [&] { bank_->settled += 1; },
        [&] { bank_->posted += 1; },
        [&] { bank_->last_order = nullptr; },
        [&] { bank_->last_receipt = nullptr; },
    };
    for (const auto &damage : damages) {
        ty_txn *txn = nullptr;
        check(ty_begin(heap_, nullptr, &txn));
        for (const void *place : {static_cast<void *>(bank_), static_cast<void *>(bank_->accounts),
                                  static_cast<void *>(bank_->first_receipt), static_cast<void *>(bank_->first_order)})
            check(ty_declare(txn, place, ty_usable_size(place)));
        damage();
        EXPECT_NE(problem(), "") << &damage - damages;
        ty_rollback(txn);
        EXPECT_EQ(problem(), "");
    }
}

} // namespace
