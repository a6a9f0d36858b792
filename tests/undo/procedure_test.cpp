// Goal: what a procedure of an undo may do, where its records go, and what happens when one fails.
#include "tests/undo/support.hpp"

namespace taiyen::test {
namespace {

// Procedures that do what the test says, and count their runs.
struct script {
    ty_status (*run)(ty_heap *, const void *, size_t) = nullptr;
    int runs = 0;
    char *block = nullptr;
    void *made = nullptr;
};
script scripts[4];

template <int N>
ty_status run_script(ty_heap *heap, const void *arguments, size_t size, void *context) {
    EXPECT_EQ(context, &scripts[N]);
    scripts[N].runs++;
    return scripts[N].run(heap, arguments, size);
}

constexpr uint64_t first_id = 8100;

class procedure : public testing::Test {
protected:
    void SetUp() override {
        for (script &s : scripts)
            s = {};
        ASSERT_OK(ty_register_procedure(first_id + 0, "zero", run_script<0>, &scripts[0]));
        ASSERT_OK(ty_register_procedure(first_id + 1, "one", run_script<1>, &scripts[1]));
        ASSERT_OK(ty_register_procedure(first_id + 2, "two", run_script<2>, &scripts[2]));
        ASSERT_OK(ty_undo_attach(heap, nullptr));
        for (script &s : scripts)
            s.block = block;
    }
    void TearDown() override {
        for (uint64_t i = 0; i < 4; i++)
            EXPECT_OK(ty_register_procedure(first_id + i, "none", nullptr, nullptr));
    }
    void record(int n, ty_status expected = TY_OK) {
        ASSERT_OK(ty_undo_record_procedure(heap, first_id + uint64_t(n), "args", 4, expected));
    }

    undo_heap heap;
    char *block = heap.block(64, 1);
};

ty_status set_by_record(ty_heap *heap, const void *arguments, size_t size) {
    EXPECT_EQ(std::string(static_cast<const char *>(arguments), size), "args");
    EXPECT_OK(ty_undo_record(heap, scripts[0].block, 8));
    memset(scripts[0].block, 1, 8);
    return TY_OK;
}

TEST_F(procedure, is_run_by_the_undo_and_what_it_records_is_the_redo) {
    scripts[0].run = set_by_record;
    ASSERT_OK(ty_undo_begin(heap, nullptr));
    record(0);
    memset(block, 2, 8);
    ASSERT_OK(ty_undo_end(heap));
    for (int i = 1; i <= 3; i++) {
        ASSERT_OK(ty_undo(heap));
        EXPECT_EQ(scripts[0].runs, i);
        EXPECT_TRUE(all_are(block, 64, 1));
        EXPECT_EQ(stats_of(heap).redo_bytes, 8u);
        ASSERT_OK(ty_redo(heap));
        EXPECT_EQ(scripts[0].runs, i);
        EXPECT_TRUE(all_are(block, 8, 2));
    }
}

// A procedure that is its own reversal: recorded by itself, run by undo and redo in turn.
ty_status flip(ty_heap *heap, const void *arguments, size_t size) {
    EXPECT_OK(ty_undo_record_procedure(heap, first_id, arguments, size, TY_E_BUSY));
    for (int i = 0; i < 64; i++)
        scripts[0].block[i] = char(~scripts[0].block[i]);
    return TY_E_BUSY;
}

TEST_F(procedure, that_reverses_itself_returns_what_is_expected) {
    scripts[0].run = flip;
    ASSERT_OK(ty_undo_begin(heap, nullptr));
    EXPECT_EQ(flip(heap, "args", 4), TY_E_BUSY);
    ASSERT_OK(ty_undo_end(heap));
    EXPECT_TRUE(all_are(block, 64, ~1));
    for (int i = 1; i <= 3; i++) {
        ASSERT_OK(ty_undo(heap));
        EXPECT_TRUE(all_are(block, 64, 1));
        ASSERT_OK(ty_redo(heap));
        EXPECT_TRUE(all_are(block, 64, ~1));
    }
    EXPECT_EQ(scripts[0].runs, 6);
    EXPECT_EQ(stats_of(heap).undo_entries, 1u);
}

ty_status work_on_blocks(ty_heap *heap, const void *, size_t) {
    script &s = scripts[0];
    s.made = ty_undo_alloc(heap, 5000);
    EXPECT_NE(s.made, nullptr);
    EXPECT_OK(ty_undo_free(heap, s.block));
    s.made = ty_undo_resize(heap, s.made, 50000);
    EXPECT_NE(s.made, nullptr);
    return TY_OK;
}

TEST_F(procedure, may_allocate_resize_and_free_in_an_undo) {
    scripts[0].run = work_on_blocks;
    uint64_t live = live_blocks(heap);
    ASSERT_OK(ty_undo_begin(heap, nullptr));
    record(0);
    ASSERT_OK(ty_undo_end(heap));
    for (int i = 0; i < 3; i++) {
        ASSERT_OK(ty_undo(heap));
        EXPECT_EQ(ty_undo_free(heap, block), TY_E_ARGUMENT);
        EXPECT_GE(ty_usable_size(scripts[0].made), 50000u);
        ASSERT_OK(ty_redo(heap));
        EXPECT_TRUE(all_are(block, 64, 1));
        EXPECT_EQ(live_blocks(heap), live);
        EXPECT_EQ(stats_of(heap).kept_blocks, 0u);
    }
    ASSERT_OK(ty_undo(heap));
    ASSERT_OK(ty_undo_exit(heap)); // the freed block goes
    EXPECT_EQ(live_blocks(heap), live - 1 + 1);
    EXPECT_OK(ty_free(scripts[0].made));
    expect_sound(heap);
}

ty_status all_calls_refused(ty_heap *heap, const void *, size_t) {
    EXPECT_EQ(ty_undo_begin(heap, nullptr), TY_E_ARGUMENT);
    EXPECT_EQ(ty_undo_end(heap), TY_E_ARGUMENT);
    EXPECT_EQ(ty_undo_cancel(heap), TY_E_ARGUMENT);
    EXPECT_EQ(ty_undo(heap), TY_E_ARGUMENT);
    EXPECT_EQ(ty_redo(heap), TY_E_ARGUMENT);
    EXPECT_EQ(ty_undo_exit(heap), TY_E_ARGUMENT);
    EXPECT_EQ(ty_undo_clear(heap), TY_E_ARGUMENT);
    EXPECT_EQ(ty_undo_detach(heap, true), TY_E_ARGUMENT);
    EXPECT_EQ(ty_discard(heap), TY_E_BUSY);
    EXPECT_EQ(ty_close(heap), TY_E_BUSY);
    EXPECT_OK(ty_undo_record_procedure(heap, first_id + 1, nullptr, 0, TY_OK));
    return TY_OK;
}

ty_status no_block_calls(ty_heap *heap, const void *, size_t) {
    EXPECT_EQ(ty_undo_alloc(heap, 8), nullptr);
    EXPECT_EQ(ty_undo_free(heap, scripts[1].block), TY_E_UNSUPPORTED);
    EXPECT_EQ(ty_undo_resize(heap, scripts[1].block, 8), nullptr);
    EXPECT_OK(ty_undo_record(heap, scripts[1].block, 8)); // goes nowhere
    return TY_OK;
}

TEST_F(procedure, may_not_use_the_calls_that_run_it) {
    scripts[0].run = all_calls_refused;
    scripts[1].run = no_block_calls;
    ASSERT_OK(ty_undo_begin(heap, nullptr));
    record(0);
    ASSERT_OK(ty_undo_end(heap));
    ASSERT_OK(ty_undo(heap));
    ASSERT_OK(ty_redo(heap));
    EXPECT_EQ(scripts[0].runs + scripts[1].runs, 2);
    EXPECT_EQ(stats_of(heap).undo_entries, 1u);
    EXPECT_EQ(stats_of(heap).redo_entries, 0u);
}

TEST_F(procedure, that_is_not_registered_is_refused_before_anything_changes) {
    ASSERT_OK(ty_undo_begin(heap, nullptr));
    EXPECT_EQ(ty_undo_record_procedure(heap, 0, nullptr, 0, TY_OK), TY_E_ARGUMENT);
    EXPECT_EQ(ty_undo_record_procedure(heap, 999999, nullptr, 0, TY_OK), TY_E_NOT_FOUND);
    record(1);
    heap.write(block, 8, 2);
    ASSERT_OK(ty_undo_end(heap));
    ASSERT_OK(ty_register_procedure(first_id + 1, "one", nullptr, nullptr));
    EXPECT_EQ(ty_undo(heap), TY_E_NOT_FOUND);
    EXPECT_NE(std::string(ty_error_text()).find("8101"), std::string::npos) << ty_error_text();
    EXPECT_TRUE(all_are(block, 8, 2));
    EXPECT_FALSE(stats_of(heap).cycle);
}

ty_status fail_after_changes(ty_heap *heap, const void *, size_t) {
    EXPECT_OK(ty_undo_record(heap, scripts[2].block + 40, 8));
    memset(scripts[2].block + 40, 9, 8);
    EXPECT_NE(ty_undo_alloc(heap, 3000), nullptr);
    return TY_E_IO;
}

TEST_F(procedure, that_fails_in_an_undo_leaves_everything_as_it_was) {
    scripts[2].run = fail_after_changes;
    scripts[0].run = flip;
    char *other = heap.block(9000, 3);
    uint64_t live = live_blocks(heap);
    ASSERT_OK(ty_undo_begin(heap, nullptr));
    record(2);
    heap.write(block, 8, 2);
    ASSERT_OK(ty_undo_free(heap, other));
    EXPECT_EQ(flip(heap, "args", 4), TY_E_BUSY);
    ASSERT_OK(ty_undo_end(heap));
    std::string before(block, 64);
    EXPECT_EQ(ty_undo(heap), TY_E_MISMATCH);
    EXPECT_NE(std::string(ty_error_text()).find("TY_E_IO"), std::string::npos) << ty_error_text();
    EXPECT_EQ(before, std::string(block, 64));
    EXPECT_EQ(scripts[0].runs, 2); // by the undo, and to take that back
    EXPECT_EQ(live_blocks(heap), live);
    EXPECT_EQ(stats_of(heap).kept_blocks, 1u);
    EXPECT_EQ(stats_of(heap).undoable, 1u);
    EXPECT_FALSE(stats_of(heap).cycle);
    scripts[2].run = [](ty_heap *, const void *, size_t) { return TY_OK; };
    ASSERT_OK(ty_undo(heap));
    EXPECT_TRUE(all_are(block, 64, 1));
}

TEST_F(procedure, that_fails_in_a_cancel_leaves_the_transaction_open) {
    scripts[2].run = fail_after_changes;
    ASSERT_OK(ty_undo_begin(heap, nullptr));
    record(2);
    heap.write(block, 8, 2);
    EXPECT_EQ(ty_undo_cancel(heap), TY_E_MISMATCH);
    EXPECT_TRUE(all_are(block, 8, 2) && all_are(block + 8, 56, 1));
    EXPECT_TRUE(stats_of(heap).open);
    heap.write(block + 8, 8, 4);
    scripts[2].run = [](ty_heap *, const void *, size_t) { return TY_OK; };
    ASSERT_OK(ty_undo_cancel(heap));
    EXPECT_TRUE(all_are(block, 64, 1));
}

ty_status reversed_by_one(ty_heap *heap, const void *, size_t) {
    EXPECT_OK(ty_undo_record_procedure(heap, first_id + 1, nullptr, 0, TY_OK));
    scripts[0].block[0]--;
    return TY_OK;
}

// In a redo the last procedure of the transaction fails; before it, data and a block are done, and maybe a procedure.
TEST_F(procedure, that_fails_in_a_redo) {
    for (bool after_another : {false, true}) {
        SCOPED_TRACE(after_another);
        scripts[0].run = reversed_by_one;
        scripts[1].run = [](ty_heap *, const void *, size_t) { return TY_E_IO; };
        scripts[2].run = [](ty_heap *where, const void *, size_t) {
            return ty_undo_record_procedure(where, first_id + 2, nullptr, 0, TY_OK);
        };
        char *other = heap.block(9000, 3);
        ASSERT_OK(ty_undo_begin(heap, nullptr));
        heap.write(block + 8, 8, 5);
        ASSERT_OK(ty_undo_free(heap, other));
        if (after_another)
            record(2);
        record(0);
        block[0]++;
        ASSERT_OK(ty_undo_end(heap));
        ASSERT_OK(ty_undo(heap));
        EXPECT_EQ(block[0], 1);
        uint64_t live = live_blocks(heap);
        if (!after_another) {
            EXPECT_EQ(ty_redo(heap), TY_E_MISMATCH);
            EXPECT_TRUE(all_are(block, 64, 1) && all_are(other, 9000, 3));
            EXPECT_EQ(live_blocks(heap), live);
            EXPECT_EQ(stats_of(heap).redoable, 1u);
            EXPECT_EQ(stats_of(heap).kept_blocks, 0u);
        } else {
            EXPECT_EQ(ty_redo(heap), TY_E_DAMAGED);
            EXPECT_EQ(stats_of(heap).undoable + stats_of(heap).redoable, 0u);
        }
        ASSERT_OK(ty_undo_clear(heap));
        memset(block, 1, 64);
        expect_sound(heap);
    }
}

} // namespace
} // namespace taiyen::test
