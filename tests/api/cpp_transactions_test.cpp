// Goal: transactions of the C++ face: committed once and rolled back on every way out that is not a commit (an
// exception, an early exit, an error, a transaction that goes out of scope), and sections that end with their owner.
// Method: through taiyen.hpp alone; what a commit or a rollback left is looked at in memory, and after the process has
// "died" (the heap is discarded and opened again).
#include "fixture.hpp"

#include <atomic>
#include <memory>
#include <stdexcept>
#include <taiyen/taiyen.hpp>
#include <thread>

using namespace api_test;

namespace {

struct account {
    uint64_t balance;
    uint64_t changes;
};

class cpp_transactions : public testing::Test {
protected:
    void SetUp() override {
        open();
        auto made = heap->transact([&](taiyen::transaction &txn) -> taiyen::result<void> {
            auto block = txn.alloc(sizeof(account));
            if (!block)
                return block.error();
            static_cast<account *>(block.value())->balance = 100;
            return txn.set_root("account", block.value());
        });
        ASSERT_TRUE(made) << made.error().text();
    }
    void open() {
        taiyen::open_options options;
        options.limit_bytes = size_t{64} << 20;
        options.kind = TY_TRANSACTIONAL;
        options.log_bytes = size_t{1} << 20;
        heap = std::make_unique<taiyen::heap>(taiyen::heap::open(files.path("bank.ty"), options).value());
    }
    // What is durable is found again.
    void die_and_open() {
        ASSERT_TRUE(heap->discard());
        open();
    }
    account &the() const { return *heap->find_root<account>("account").value(); }
    taiyen::result<void> declare_and_set(const taiyen::transaction &txn, uint64_t balance) const {
        account &a = the();
        if (auto declared = txn.declare(a.balance, a.changes); !declared)
            return declared;
        a.balance = balance;
        a.changes += 1;
        return {};
    }
    void expect(uint64_t balance, uint64_t changes) {
        EXPECT_EQ(ty_current_txn(heap->get()), nullptr) << "it is still under way";
        EXPECT_EQ(the().balance, balance);
        EXPECT_EQ(the().changes, changes);
        die_and_open();
        EXPECT_EQ(the().balance, balance);
        EXPECT_EQ(the().changes, changes);
        EXPECT_TRUE(heap->verify());
    }

    folder files;
    std::unique_ptr<taiyen::heap> heap;
};

} // namespace

TEST_F(cpp_transactions, transact_commits) {
    // The three kinds of functions: void, bool, result.
    auto outcome = heap->transact([&](taiyen::transaction &txn) { declare_and_set(txn, 90).value(); });
    EXPECT_TRUE(outcome) << outcome.error().text();
    EXPECT_TRUE(heap->transact([&](taiyen::transaction &txn) { return bool(declare_and_set(txn, 80)); }));
    EXPECT_TRUE(heap->transact([&](taiyen::transaction &txn) { return declare_and_set(txn, 70); }));
    expect(70, 3);
}

TEST_F(cpp_transactions, transact_rolls_back_when_an_exception_leaves_it) {
    const auto pay = [&](taiyen::transaction &txn) {
        declare_and_set(txn, 1).value();
        EXPECT_EQ(the().balance, 1u);
        throw std::runtime_error("no funds");
    };
    EXPECT_THROW(static_cast<void>(heap->transact(pay)), std::runtime_error);
    expect(100, 0);
}

TEST_F(cpp_transactions, transact_rolls_back_at_an_early_exit) {
    auto outcome = heap->transact([&](taiyen::transaction &txn) {
        declare_and_set(txn, 1).value();
        return false;
    });
    EXPECT_TRUE(outcome) << "a wish is no error";
    outcome = heap->transact([&](taiyen::transaction &txn) -> taiyen::result<void> {
        declare_and_set(txn, 2).value();
        return taiyen::error(TY_E_SPACE, "no room for it");
    });
    EXPECT_EQ(outcome.status(), TY_E_SPACE);
    EXPECT_EQ(outcome.error().text(), "no room for it");
    expect(100, 0);
}

TEST_F(cpp_transactions, transact_goes_by_what_the_function_ended_itself) {
    EXPECT_TRUE(heap->transact([&](taiyen::transaction &txn) {
        declare_and_set(txn, 60).value();
        txn.commit().value();
        EXPECT_FALSE(txn);
    }));
    EXPECT_TRUE(heap->transact([&](taiyen::transaction &txn) {
        declare_and_set(txn, 1).value();
        txn.rollback().value();
        return true;
    }));
    expect(60, 1);
}

TEST_F(cpp_transactions, the_destructor_rolls_back) {
    {
        taiyen::transaction txn = heap->begin().value();
        ASSERT_TRUE(declare_and_set(txn, 1));
        taiyen::transaction moved = std::move(txn);
        EXPECT_FALSE(txn);
        EXPECT_EQ(moved.get(), ty_current_txn(heap->get()));
        EXPECT_EQ(heap->begin().status(), TY_E_ARGUMENT) << "this thread has one under way";
    }
    expect(100, 0);
}

TEST_F(cpp_transactions, blocks_come_and_go_with_it) {
    const size_t before = heap->stats().value().live_blocks;
    {
        taiyen::transaction txn = heap->begin().value();
        auto *block = static_cast<uint64_t *>(txn.alloc(40, 64).value());
        EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % 64, 0u);
        EXPECT_EQ(*block, 0u);
        ASSERT_TRUE(txn.set_root("block", block));
        ASSERT_TRUE(txn.free(&the()));
    }
    EXPECT_EQ(heap->stats().value().live_blocks, before);
    EXPECT_EQ(heap->find_root<uint64_t>("block").value(), nullptr);
    taiyen::transaction txn = heap->begin().value();
    auto *block = static_cast<uint64_t *>(txn.alloc(40).value());
    block[4] = 7;
    block = static_cast<uint64_t *>(txn.resize(block, 4000).value());
    ASSERT_TRUE(txn.set_root("block", block));
    ASSERT_TRUE(txn.commit());
    die_and_open();
    EXPECT_EQ(heap->find_root<uint64_t>("block").value()[4], 7u);
    EXPECT_EQ(heap->stats().value().live_blocks, before + 1);
}

TEST_F(cpp_transactions, an_asynchronous_commit_can_be_waited_for) {
    taiyen::transaction txn = heap->begin().value();
    ASSERT_TRUE(declare_and_set(txn, 50));
    const uint64_t lsn = txn.commit_async().value();
    EXPECT_FALSE(txn);
    EXPECT_TRUE(heap->is_durable(lsn, true).value());
    EXPECT_EQ(heap->is_durable(lsn + 1).status(), TY_E_ARGUMENT);
    expect(50, 1);
}

// What is declared wrongly is an error, and the transaction goes on.
TEST_F(cpp_transactions, errors_leave_it_under_way) {
    taiyen::transaction txn = heap->begin().value();
    uint64_t outside = 0;
    EXPECT_EQ(txn.declare(outside).status(), TY_E_ARGUMENT);
    EXPECT_EQ(txn.declare(the().balance, outside).status(), TY_E_ARGUMENT) << "the second one";
    EXPECT_TRUE(txn);
    the().balance = 40; // the first one was declared
    ASSERT_TRUE(txn.commit());
    expect(40, 0);
}

TEST_F(cpp_transactions, automatic_ones_need_no_declaring) {
    taiyen::txn_options options;
    options.stores = TY_STORES_TRACKED;
    const auto add = [&](taiyen::transaction &) {
        the().balance += 5;
        the().changes += 1;
    };
    EXPECT_TRUE(heap->transact(add, options));
    expect(105, 1);
}

TEST_F(cpp_transactions, a_read_section_keeps_transactions_out_while_it_lives) {
    taiyen::txn_options at_once;
    at_once.no_wait = true;
    const auto try_to_begin = [&] {
        ty_status status = TY_OK;
        std::thread([&] { status = heap->begin(at_once).status(); }).join();
        return status;
    };
    {
        taiyen::read_section section = heap->read().value();
        EXPECT_EQ(try_to_begin(), TY_E_BUSY);
        taiyen::read_section nested = heap->read().value();
        taiyen::read_section moved = std::move(section);
        EXPECT_EQ(heap->begin().status(), TY_E_ARGUMENT) << "this thread would wait for itself";
    }
    EXPECT_EQ(try_to_begin(), TY_OK);
    taiyen::transaction txn = heap->begin().value();
    EXPECT_EQ(heap->read().status(), TY_E_ARGUMENT) << "within its own transaction";
}

TEST_F(cpp_transactions, readers_see_transactions_whole) {
    std::atomic<bool> done{false};
    std::thread reader([&] {
        for (uint64_t last = 0; !done;) {
            auto section = heap->read();
            ASSERT_TRUE(section) << section.error().text();
            EXPECT_EQ(the().balance, 100 + 3 * the().changes);
            EXPECT_GE(the().changes, last);
            last = the().changes;
        }
    });
    for (uint64_t i = 1; i <= 500; ++i)
        EXPECT_TRUE(heap->transact([&](taiyen::transaction &txn) { return declare_and_set(txn, 100 + 3 * i); }));
    done = true;
    reader.join();
    expect(1600, 500);
}
