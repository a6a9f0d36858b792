// Goal: undo of the C++ face: a transaction is ended once, and taken back on every way out that is not an end; undo,
// redo and the history say what the C API says.
// Method: through taiyen.hpp alone, on a snapshot heap; what is left is looked at in memory and in the history.
#include "fixture.hpp"

#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <taiyen/taiyen.hpp>
#include <vector>

using namespace api_test;

namespace {

struct wall {
    double x;
    double length;
    char *note;
};

class cpp_undo : public testing::Test {
protected:
    void SetUp() override {
        open();
        the() = {1, 10, nullptr};
        ASSERT_TRUE(undo().attach());
    }
    void open() {
        taiyen::open_options options;
        options.limit_bytes = size_t{64} << 20;
        options.kind = TY_SNAPSHOT;
        heap = std::make_unique<taiyen::heap>(taiyen::heap::open(files.path("plan.ty"), options).value());
    }
    taiyen::undo_view undo() const { return taiyen::undo_view(*heap); }
    wall &the() const { return heap->root<wall>("wall"); }
    taiyen::result<void> move_to(taiyen::undo_transaction &to, double x) const {
        if (auto recorded = to.record(the().x); !recorded)
            return recorded;
        the().x = x;
        return {};
    }
    std::vector<std::string> labels() const {
        std::vector<std::string> found;
        EXPECT_TRUE(undo().history([&](const ty_undo_step &step) { found.push_back(step.label); }));
        return found;
    }
    // Nothing is open, and nothing is left of what was tried.
    void expect_untouched() const {
        EXPECT_EQ(the().x, 1);
        EXPECT_FALSE(undo().stats().value().open);
        EXPECT_EQ(labels(), std::vector<std::string>());
    }

    folder files;
    std::unique_ptr<taiyen::heap> heap;
};

} // namespace

TEST_F(cpp_undo, transact_ends) {
    // The three kinds of functions: void, bool, result.
    EXPECT_TRUE(undo().transact("one", [&](taiyen::undo_transaction &to) { move_to(to, 2).value(); }));
    EXPECT_TRUE(undo().transact("two", [&](taiyen::undo_transaction &to) { return bool(move_to(to, 3)); }));
    EXPECT_TRUE(undo().transact("three", [&](taiyen::undo_transaction &to) { return move_to(to, 4); }));
    EXPECT_EQ(labels(), (std::vector<std::string>{"three", "two", "one"}));
    EXPECT_TRUE(undo().undo());
    EXPECT_TRUE(undo().undo());
    EXPECT_EQ(the().x, 2);
    EXPECT_TRUE(undo().redo());
    EXPECT_EQ(the().x, 3);
    const ty_undo_stats stats = undo().stats().value();
    EXPECT_EQ(stats.undoable, 2u);
    EXPECT_EQ(stats.redoable, 1u);
    EXPECT_TRUE(stats.cycle);
    EXPECT_THROW(static_cast<void>(undo().transact("four",
                                                   [&](taiyen::undo_transaction &to) {
                                                       move_to(to, 5).value();
                                                       throw std::runtime_error("the wall is in the way");
                                                   })),
                 std::runtime_error);
    EXPECT_EQ(the().x, 3);
    EXPECT_EQ(undo().stats().value().redoable, 1u) << "what was cancelled leaves it";
    EXPECT_TRUE(undo().exit());
    EXPECT_EQ(undo().redo().status(), TY_E_NOT_FOUND);
    EXPECT_TRUE(undo().clear());
    EXPECT_EQ(undo().undo().status(), TY_E_NOT_FOUND);
    EXPECT_EQ(the().x, 3);
}

TEST_F(cpp_undo, transact_takes_back_when_an_exception_leaves_it) {
    const auto fail = [&](taiyen::undo_transaction &to) {
        move_to(to, 2).value();
        throw std::runtime_error("the wall is in the way");
    };
    EXPECT_THROW(static_cast<void>(undo().transact("move", fail)), std::runtime_error);
    expect_untouched();
}

TEST_F(cpp_undo, transact_takes_back_at_an_early_exit) {
    auto outcome = undo().transact("move", [&](taiyen::undo_transaction &to) {
        move_to(to, 2).value();
        return false;
    });
    EXPECT_TRUE(outcome) << "a wish is no error";
    expect_untouched();
    outcome = undo().transact("move", [&](taiyen::undo_transaction &to) -> taiyen::result<void> {
        move_to(to, 2).value();
        return taiyen::error(TY_E_BUSY, "somebody else moves it");
    });
    EXPECT_EQ(outcome.status(), TY_E_BUSY);
    EXPECT_EQ(outcome.error().text(), "somebody else moves it");
    expect_untouched();
}

TEST_F(cpp_undo, transact_goes_by_what_the_function_ended_itself) {
    EXPECT_TRUE(undo().transact("cancelled", [&](taiyen::undo_transaction &to) {
        move_to(to, 2).value();
        to.cancel().value();
        EXPECT_FALSE(to);
    }));
    expect_untouched();
    EXPECT_TRUE(undo().transact("ended", [&](taiyen::undo_transaction &to) {
        move_to(to, 3).value();
        to.end().value();
        return false;
    }));
    EXPECT_EQ(the().x, 3);
    EXPECT_EQ(labels(), std::vector<std::string>{"ended"});
}

TEST_F(cpp_undo, the_destructor_takes_back) {
    {
        taiyen::undo_transaction open = undo().begin("move").value();
        ASSERT_TRUE(move_to(open, 2));
        taiyen::undo_transaction moved = std::move(open);
        EXPECT_FALSE(open);
        EXPECT_TRUE(moved);
        EXPECT_EQ(the().x, 2) << "the one that was moved from ended nothing";
        EXPECT_EQ(undo().begin().status(), TY_E_ARGUMENT) << "they do not nest";
    }
    expect_untouched();
    taiyen::undo_transaction first = undo().begin("first").value();
    ASSERT_TRUE(move_to(first, 2));
    ASSERT_TRUE(first.end());
    first = undo().begin("second").value();
    ASSERT_TRUE(move_to(first, 3));
    ASSERT_TRUE(first.end());
    EXPECT_EQ(labels(), (std::vector<std::string>{"second", "first"}));
}

TEST_F(cpp_undo, blocks_come_and_go_with_it) {
    const size_t before = heap->stats().value().live_blocks;
    EXPECT_TRUE(undo().transact("note", [&](taiyen::undo_transaction &to) {
        to.record(the().note).value();
        auto *block = static_cast<char *>(to.alloc(40, 64).value());
        EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % 64, 0u);
        the().note = std::strcpy(block, "not load-bearing");
    }));
    char *const note = the().note;
    EXPECT_TRUE(undo().transact("longer", [&](taiyen::undo_transaction &to) {
        to.record(the().note).value();
        the().note = static_cast<char *>(to.resize(note, 5000).value());
    }));
    EXPECT_NE(the().note, note);
    EXPECT_STREQ(the().note, "not load-bearing");
    EXPECT_TRUE(undo().transact("no note", [&](taiyen::undo_transaction &to) {
        to.record(the().note).value();
        to.free(the().note).value();
        EXPECT_EQ(to.free(the().note).status(), TY_E_ARGUMENT);
        the().note = nullptr;
    }));
    for (int i = 0; i < 2; ++i)
        ASSERT_TRUE(undo().undo());
    EXPECT_EQ(the().note, note) << "the same block";
    EXPECT_STREQ(note, "not load-bearing");
    ASSERT_TRUE(undo().undo());
    EXPECT_EQ(the().note, nullptr);
    ASSERT_TRUE(undo().exit());
    ASSERT_TRUE(undo().detach(false));
    EXPECT_EQ(heap->stats().value().live_blocks, before - 1) << "undo's own buffers";
    EXPECT_TRUE(heap->verify());
}

TEST_F(cpp_undo, procedures_are_run) {
    constexpr uint64_t id = 0x6d6972726f72;
    struct arguments {
        wall *which;
    };
    const auto mirror = [](ty_heap *of, const void *bytes, size_t, void *) -> ty_status {
        arguments a;
        std::memcpy(&a, bytes, sizeof a);
        if (ty_status status = ty_undo_record_procedure(of, id, bytes, sizeof a, TY_OK))
            return status;
        a.which->x = -a.which->x;
        return TY_OK;
    };
    ASSERT_EQ(ty_register_procedure(id, "mirror", mirror, nullptr), TY_OK);
    EXPECT_TRUE(undo().transact("mirror", [&](taiyen::undo_transaction &to) {
        EXPECT_EQ(to.record_procedure(id + 1, 0).status(), TY_E_NOT_FOUND);
        to.record_procedure(id, arguments{&the()}).value();
        the().x = -the().x;
    }));
    EXPECT_EQ(the().x, -1);
    EXPECT_TRUE(undo().undo());
    EXPECT_EQ(the().x, 1);
    EXPECT_TRUE(undo().redo());
    EXPECT_EQ(the().x, -1);
}

TEST_F(cpp_undo, errors_leave_it_open) {
    taiyen::undo_transaction open = undo().begin("move").value();
    const double outside = 0;
    EXPECT_EQ(open.record(outside).status(), TY_E_ARGUMENT);
    EXPECT_EQ(open.record(the().x, outside).status(), TY_E_ARGUMENT) << "the second one";
    EXPECT_EQ(undo().undo().status(), TY_E_ARGUMENT) << "a transaction is open";
    EXPECT_TRUE(open);
    the().x = 2; // the first one was recorded
    ASSERT_TRUE(open.cancel());
    expect_untouched();
}

TEST_F(cpp_undo, the_end_of_one_that_did_not_fit_ends_it) {
    ASSERT_TRUE(undo().detach(false));
    taiyen::undo_options options;
    options.undo_bytes = 4096;
    ASSERT_TRUE(undo().attach(options));
    auto *block = static_cast<char *>(ty_alloc(heap->get(), 100000));
    taiyen::undo_transaction open = undo().begin("much").value();
    EXPECT_EQ(open.record_bytes(block, 100000).status(), TY_E_SPACE);
    EXPECT_TRUE(open);
    EXPECT_EQ(open.end().status(), TY_E_SPACE);
    EXPECT_FALSE(open);
    expect_untouched();
}

TEST_F(cpp_undo, the_history_is_there_in_the_next_session) {
    EXPECT_TRUE(undo().transact("move", [&](taiyen::undo_transaction &to) { return move_to(to, 2); }));
    ASSERT_TRUE(heap->close());
    open();
    ASSERT_TRUE(undo().attach());
    EXPECT_TRUE(undo().stats().value().reattached);
    EXPECT_EQ(labels(), std::vector<std::string>{"move"});
    EXPECT_TRUE(undo().undo());
    EXPECT_EQ(the().x, 1);
}

TEST_F(cpp_undo, a_walk_of_the_history_ends_early) {
    for (double x : {2., 3., 4.})
        ASSERT_TRUE(undo().transact("move", [&](taiyen::undo_transaction &to) { return move_to(to, x); }));
    int seen = 0;
    EXPECT_TRUE(undo().history([&](const ty_undo_step &) { return ++seen < 2; }));
    EXPECT_EQ(seen, 2);
    const auto fail = [](const ty_undo_step &) { throw std::runtime_error("no menu"); };
    EXPECT_THROW(static_cast<void>(undo().history(fail)), std::runtime_error);
    EXPECT_EQ(undo().stats().value().undoable, 3u);
}
