// Goal: the audit of the branch, on which the proof of the tellers relies, finds every kind of damage; and transfers do
// what they say.
// Method: a small branch; then its structures are changed after its back, one thing at a time.
#include "common/heap_file.hpp"
#include "ledger/branch.hpp"
#include "temporary_folder.hpp"
#include <functional>

namespace {

using demo::check;
using namespace ledger;

class branch_test : public testing::Test {
protected:
    void SetUp() override {
        ty_open_options options = TY_OPEN_OPTIONS_INIT;
        options.kind = TY_TRANSACTIONAL;
        options.concurrent = true;
        options.limit_bytes = size_t{64} << 20;
        options.log_bytes = TY_LOG_BYTES_MIN;
        ASSERT_EQ(ty_open(folder_.file("branch.ty").c_str(), &options, &heap_, nullptr), TY_OK) << ty_error_text();
        branch_ = found_branch(heap_, 4, 1000, 2);
        for (uint32_t i = 0; i < 2 * teller::slips_kept; ++i)
            EXPECT_TRUE(moves(i % 2, i % 4, (i + 1) % 4, 10, i % 3 ? "note" : ""));
    }
    void TearDown() override { ty_discard(heap_); }

    bool moves(uint64_t by, uint32_t from, uint32_t to, int64_t cents, std::string_view note) {
        return taiyen::heap_view(heap_).atomically([&](const taiyen::atomic_txn &txn) {
            return transfer(txn, *branch_, branch_->tellers[by], from, to, cents, note);
        });
    }
    std::string problem() {
        uint64_t blocks = 0;
        return audit(branch_, &blocks);
    }

    temporary_folder folder_;
    ty_heap *heap_ = nullptr;
    branch *branch_ = nullptr;
};

TEST_F(branch_test, is_sound) {
    EXPECT_EQ(problem(), "");
    EXPECT_EQ(branch_->tellers[0].done, teller::slips_kept);
    EXPECT_TRUE(moves(0, 0, 1, 5, "one more, so that the first one is filed away"));
    EXPECT_EQ(problem(), "");
    EXPECT_NE(branch_->accounts[0].opening_cents, 1000);
    EXPECT_FALSE(moves(0, 0, 1, 1000000, "a house"));
    EXPECT_EQ(problem(), "");
    EXPECT_EQ(4000, taiyen::heap_view(heap_).atomically(
                        [&](const taiyen::atomic_txn &txn) { return sum_of_balances(txn, *branch_); }));
}

TEST_F(branch_test, audit_finds_each_damage) {
    slip *&place = branch_->tellers[1].slips[7];
    slip &one = *place;
    const auto damaged = [&](auto &field, auto value) {
        const auto before = field;
        field = value;
        EXPECT_NE(problem(), "");
        field = before;
        EXPECT_EQ(problem(), "");
    };
    damaged(branch_->accounts[1].cents, branch_->accounts[1].cents + 1);
    damaged(branch_->accounts[1].opening_cents, branch_->accounts[1].opening_cents - 1);
    damaged(branch_->total_cents, int64_t{1});
    damaged(branch_->tellers[0].done, branch_->tellers[0].done - 1);
    damaged(branch_->tellers[0].done, branch_->tellers[0].done + 1);
    damaged(place, static_cast<slip *>(nullptr));
    damaged(one.number, one.number + 1);
    damaged(one.cents, one.cents + 1);
    damaged(one.to, one.from);
    damaged(one.from, uint32_t{4});
}

} // namespace
