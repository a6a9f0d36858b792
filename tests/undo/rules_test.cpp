// Goal: each rule of undo.h, one by one.
#include "src/undo/undo_layout.hpp"
#include "tests/undo/support.hpp"

#include <sys/wait.h>
#include <unistd.h>

namespace taiyen::test {
namespace {

ty_undo_options small_buffers(bool fixed, size_t undo_bytes = 4096, size_t entries = 20) {
    ty_undo_options options = TY_UNDO_OPTIONS_INIT;
    options.undo_bytes = undo_bytes;
    options.entries = entries;
    options.fixed = fixed;
    return options;
}

TEST(undo, bytes_come_back_and_go_again) {
    undo_heap heap;
    char *block = heap.block(100, 1);
    ASSERT_OK(ty_undo_attach(heap, nullptr));
    heap.change(block, 50, 2);
    heap.change(block + 20, 80, 3);
    ASSERT_OK(ty_undo(heap));
    EXPECT_TRUE(all_are(block, 50, 2) && all_are(block + 50, 50, 1));
    ASSERT_OK(ty_undo(heap));
    EXPECT_TRUE(all_are(block, 100, 1));
    EXPECT_EQ(ty_undo(heap), TY_E_NOT_FOUND);
    ASSERT_OK(ty_redo(heap));
    ASSERT_OK(ty_redo(heap));
    EXPECT_TRUE(all_are(block, 20, 2) && all_are(block + 20, 80, 3));
    EXPECT_EQ(ty_redo(heap), TY_E_NOT_FOUND);
    ASSERT_OK(ty_undo(heap)); // what was redone can be undone again
    EXPECT_TRUE(all_are(block, 50, 2) && all_are(block + 50, 50, 1));
}

TEST(undo, overlapping_records_of_one_transaction_give_the_oldest_bytes) {
    undo_heap heap;
    char *block = heap.block(64, 1);
    ASSERT_OK(ty_undo_attach(heap, nullptr));
    ASSERT_OK(ty_undo_begin(heap, nullptr));
    heap.write(block, 64, 2);
    heap.write(block + 8, 16, 3);
    heap.write(block, 32, 4);
    ASSERT_OK(ty_undo_end(heap));
    ASSERT_OK(ty_undo(heap));
    EXPECT_TRUE(all_are(block, 64, 1));
}

TEST(undo, an_exit_locks_in_what_was_done) {
    undo_heap heap;
    char *block = heap.block(8, 1);
    ASSERT_OK(ty_undo_attach(heap, nullptr));
    heap.change(block, 8, 2);
    heap.change(block, 8, 3);
    ASSERT_OK(ty_undo(heap));
    ASSERT_OK(ty_undo_exit(heap));
    EXPECT_EQ(ty_redo(heap), TY_E_NOT_FOUND);
    EXPECT_TRUE(all_are(block, 8, 2));
    EXPECT_EQ(stats_of(heap).undoable, 1u);
    heap.change(block, 8, 4);
    ASSERT_OK(ty_undo(heap));
    ASSERT_OK(ty_undo(heap));
    EXPECT_TRUE(all_are(block, 8, 1));
    ASSERT_OK(ty_undo_exit(heap));
    ASSERT_OK(ty_undo_exit(heap)); // outside of a cycle
}

// U8. A transaction that was cancelled, or had nothing to record, once took away what could be redone (in Python, each
// `with heap.step()` that failed).
TEST(undo, what_can_be_redone_stays_until_a_transaction_ends_with_entries) {
    undo_heap heap;
    char *block = heap.block(64, 1);
    ASSERT_OK(ty_undo_attach(heap, nullptr));
    for (int i = 2; i <= 4; ++i)
        heap.change(block, 8, i);
    ASSERT_OK(ty_undo(heap));
    ASSERT_OK(ty_undo(heap));
    ASSERT_OK(ty_undo_begin(heap, nullptr));
    ASSERT_OK(ty_undo_end(heap)); // nothing
    ASSERT_OK(ty_undo_begin(heap, "fails"));
    heap.write(block, 64, 9);
    void *made = ty_undo_alloc(heap, 5000);
    ASSERT_NE(nullptr, made);
    ASSERT_OK(ty_undo_free(heap, block));
    EXPECT_EQ(stats_of(heap).redoable, 2u);
    heap.close(); // in a transaction in a cycle
    heap.open();
    ASSERT_OK(ty_undo_attach(heap, nullptr));
    EXPECT_TRUE(stats_of(heap).open && stats_of(heap).cycle);
    EXPECT_EQ(stats_of(heap).redoable, 2u);
    ASSERT_OK(ty_undo_cancel(heap));
    EXPECT_TRUE(all_are(block, 8, 2) && all_are(block + 8, 56, 1));
    EXPECT_EQ(stats_of(heap).kept_blocks, 0u);
    ASSERT_OK(ty_redo(heap));
    ASSERT_OK(ty_redo(heap));
    EXPECT_TRUE(all_are(block, 8, 4));
    ASSERT_OK(ty_undo(heap));
    ASSERT_OK(ty_undo(heap));
    heap.change(block, 64, 7, "instead"); // without an exit
    EXPECT_FALSE(stats_of(heap).cycle);
    EXPECT_EQ(ty_redo(heap), TY_E_NOT_FOUND);
    EXPECT_EQ(stats_of(heap).undoable, 2u);
    heap.close();
    heap.open();
    ASSERT_OK(ty_undo_attach(heap, nullptr)); // where it lies now is sound
    ASSERT_OK(ty_undo(heap));
    EXPECT_TRUE(all_are(block, 8, 2) && all_are(block + 8, 56, 1));
    ASSERT_OK(ty_undo(heap));
    EXPECT_TRUE(all_are(block, 64, 1));
}

// U8. Where the buffer is too small for both, the oldest go first, then what can be redone; what is cancelled then has
// taken that with it.
TEST(undo, an_open_transaction_has_the_room_of_what_can_be_redone) {
    for (const bool fixed : {false, true}) {
        undo_heap heap;
        char *block = heap.block(4000, 1);
        ty_undo_options options = TY_UNDO_OPTIONS_INIT;
        options.undo_bytes = 4000;
        options.fixed = fixed;
        ASSERT_OK(ty_undo_attach(heap, &options));
        heap.change(block, 1000, 2);
        heap.change(block, 1000, 3);
        heap.change(block, 1000, 4);
        ASSERT_OK(ty_undo(heap));
        ASSERT_OK(ty_undo(heap));
        ASSERT_OK(ty_undo_begin(heap, nullptr));
        heap.write(block, 1000, 5);
        EXPECT_EQ(stats_of(heap).redoable, fixed ? 0u : 2u);
        EXPECT_EQ(stats_of(heap).undoable, fixed ? 1u : 0u);
        if (fixed) {
            heap.write(block + 1000, 500, 6);
        } else {
            heap.write(block + 1000, 2500, 6);
            EXPECT_EQ(stats_of(heap).redoable, 0u);
        }
        ASSERT_OK(ty_undo_end(heap));
        ASSERT_OK(ty_undo(heap));
        EXPECT_TRUE(all_are(block, 1000, 2) && all_are(block + 1000, 3000, 1));
        EXPECT_EQ(ty_undo(heap), fixed ? TY_OK : TY_E_NOT_FOUND);
    }
}

// U7. Python asks for the figures in each step.
TEST(undo, figures_are_those_of_the_entries) {
    undo_heap heap;
    char *block = heap.block(64, 1);
    ASSERT_OK(ty_undo_attach(heap, nullptr));
    const auto expect = [&](uint64_t undo_bytes, uint64_t undo_entries, uint64_t redo_bytes, uint64_t redo_entries) {
        const ty_undo_stats s = stats_of(heap);
        EXPECT_EQ(s.undo_bytes, undo_bytes);
        EXPECT_EQ(s.undo_entries, undo_entries);
        EXPECT_EQ(s.redo_bytes, redo_bytes);
        EXPECT_EQ(s.redo_entries, redo_entries);
    };
    heap.change(block, 8, 2);
    heap.change(block, 16, 3);
    expect(24, 2, 0, 0);
    ASSERT_OK(ty_undo(heap));
    expect(24, 2, 16, 1);
    ASSERT_OK(ty_undo_begin(heap, nullptr));
    heap.write(block, 5, 4);
    expect(29, 3, 16, 1);
    heap.close();
    heap.open();
    ASSERT_OK(ty_undo_attach(heap, nullptr));
    expect(29, 3, 16, 1);
    ASSERT_OK(ty_undo_cancel(heap));
    expect(24, 2, 16, 1);
    ASSERT_OK(ty_redo(heap));
    expect(24, 2, 0, 0);
    ASSERT_OK(ty_undo(heap));
    heap.change(block, 7, 5);
    expect(15, 2, 0, 0);
    ASSERT_OK(ty_undo_clear(heap));
    expect(0, 0, 0, 0);
}

// U7. A step of Python costs what it changes, not what the history holds: no entry of that is looked at.
TEST(undo, figures_and_transactions_do_not_look_at_the_history) {
    undo_heap heap;
    char *block = heap.block(8, 1);
    ASSERT_OK(ty_undo_attach(heap, nullptr));
    constexpr int count = 1000;
    for (int i = 0; i < count; ++i)
        heap.change(block, 8, i);
    const ty_undo_stats before = stats_of(heap);
    auto *entries = reinterpret_cast<undo_entry *>(static_cast<undo_control *>(heap_service_root(heap)) + 1);
    constexpr size_t bytes = 2 * (count - 1) * sizeof(undo_entry); // all but the newest transaction: it and its mark
    const std::string kept(reinterpret_cast<char *>(entries), bytes);
    memset(entries, 0xff, bytes);
    const ty_undo_stats now = stats_of(heap);
    EXPECT_EQ(now.undoable, before.undoable);
    EXPECT_EQ(now.undo_entries, before.undo_entries);
    EXPECT_EQ(now.undo_bytes, before.undo_bytes);
    heap.change(block, 8, 7);
    ASSERT_OK(ty_undo_begin(heap, nullptr));
    heap.write(block, 8, 8);
    ASSERT_OK(ty_undo_cancel(heap));
    EXPECT_TRUE(all_are(block, 8, 7));
    memcpy(entries, kept.data(), bytes);
    EXPECT_EQ(stats_of(heap).undoable, count + 1u);
}

TEST(undo, nothing_is_recorded_outside_of_a_transaction) {
    undo_heap heap;
    char *block = heap.block(8, 1);
    EXPECT_EQ(ty_undo_begin(heap, nullptr), TY_E_ARGUMENT); // not attached
    EXPECT_EQ(ty_undo_record(heap, block, 8), TY_E_ARGUMENT);
    EXPECT_EQ(ty_undo_alloc(heap, 8), nullptr);
    ASSERT_OK(ty_undo_attach(heap, nullptr));
    auto all_refused = [&] {
        EXPECT_EQ(ty_undo_record(heap, block, 8), TY_E_ARGUMENT);
        EXPECT_EQ(ty_undo_alloc(heap, 8), nullptr);
        EXPECT_EQ(ty_undo_free(heap, block), TY_E_ARGUMENT);
        EXPECT_EQ(ty_undo_resize(heap, block, 80), nullptr);
        EXPECT_EQ(ty_undo_end(heap), TY_E_ARGUMENT);
        EXPECT_EQ(ty_undo_cancel(heap), TY_E_ARGUMENT);
    };
    all_refused();
    heap.change(block, 8, 2);
    ASSERT_OK(ty_undo(heap));
    all_refused();
    ASSERT_OK(ty_undo_begin(heap, nullptr));
    EXPECT_EQ(ty_undo_begin(heap, nullptr), TY_E_ARGUMENT); // no nesting
    EXPECT_EQ(ty_undo(heap), TY_E_ARGUMENT);
    EXPECT_EQ(ty_redo(heap), TY_E_ARGUMENT);
    ASSERT_OK(ty_undo_end(heap));
    EXPECT_EQ(stats_of(heap).undoable, 0u); // one without entries leaves nothing
    EXPECT_TRUE(all_are(block, 8, 1));
}

TEST(undo, foreign_bytes_are_refused) {
    undo_heap heap;
    char *block = heap.block(8, 1);
    char outside[8];
    ASSERT_OK(ty_undo_attach(heap, nullptr));
    ASSERT_OK(ty_undo_begin(heap, nullptr));
    EXPECT_EQ(ty_undo_record(heap, outside, 8), TY_E_ARGUMENT);
    EXPECT_EQ(ty_undo_record(heap, ty_heap_base(heap), 8), TY_E_ARGUMENT);
    EXPECT_EQ(ty_undo_record(heap, block, small_limit), TY_E_ARGUMENT);
    EXPECT_EQ(ty_undo_record(heap, block, SIZE_MAX), TY_E_ARGUMENT);
    EXPECT_EQ(ty_undo_free(heap, outside), TY_E_ARGUMENT);
    EXPECT_EQ(ty_undo_free(heap, block + 1), TY_E_ARGUMENT);
    EXPECT_OK(ty_undo_free(heap, nullptr));
    EXPECT_OK(ty_undo_record(heap, block, 0));
    ty_heap_stats s{};
    s.struct_size = sizeof s;
    ty_block buffers{};
    ASSERT_OK(ty_each_block( // the buffers are the largest block there is
        heap,
        [](const ty_block *b, void *context) {
            auto *found = static_cast<ty_block *>(context);
            if (b->size_bytes > found->size_bytes)
                *found = *b;
            return true;
        },
        &buffers));
    EXPECT_EQ(ty_undo_record(heap, static_cast<char *>(buffers.address) + 5000, 8), TY_E_ARGUMENT);
    EXPECT_EQ(ty_undo_free(heap, buffers.address), TY_E_ARGUMENT);
    EXPECT_EQ(ty_undo_resize(heap, buffers.address, 8), nullptr);
    ASSERT_OK(ty_undo_end(heap));
    EXPECT_EQ(stats_of(heap).undoable, 0u);
}

TEST(undo, blocks_come_and_go_at_their_addresses) {
    undo_heap heap;
    char *old = heap.block(3000, 1), *large = heap.block(50000, 2);
    ASSERT_OK(ty_undo_attach(heap, nullptr));
    uint64_t live = live_blocks(heap);
    ASSERT_OK(ty_undo_begin(heap, nullptr));
    auto *made = static_cast<char *>(ty_undo_alloc(heap, 200));
    ASSERT_NE(made, nullptr);
    memset(made, 3, 200);
    ASSERT_OK(ty_undo_free(heap, old));
    ASSERT_OK(ty_undo_free(heap, large));
    EXPECT_EQ(ty_undo_free(heap, old), TY_E_ARGUMENT); // held
    EXPECT_EQ(ty_undo_record(heap, old + 10, 8), TY_E_ARGUMENT);
    EXPECT_EQ(ty_undo_record(heap, large + 30000, 8), TY_E_ARGUMENT);
    EXPECT_EQ(ty_undo_resize(heap, large, 8), nullptr);
    ASSERT_OK(ty_undo_end(heap));
    EXPECT_EQ(stats_of(heap).kept_blocks, 2u);
    for (int i = 0; i < 2; i++) {
        ASSERT_OK(ty_undo(heap));
        EXPECT_TRUE(all_are(old, 3000, 1) && all_are(large, 50000, 2));
        EXPECT_EQ(stats_of(heap).kept_blocks, 1u);
        ASSERT_OK(ty_redo(heap));
        EXPECT_TRUE(all_are(made, 200, 3));
        EXPECT_EQ(stats_of(heap).kept_blocks, 2u);
    }
    ASSERT_OK(ty_undo_clear(heap)); // what is kept is freed
    EXPECT_EQ(stats_of(heap).kept_blocks, 0u);
    EXPECT_EQ(live_blocks(heap), live + 1 - 2);
    EXPECT_OK(ty_free(made));
    expect_sound(heap);
}

TEST(undo, an_exit_frees_what_only_redo_kept) {
    undo_heap heap;
    ASSERT_OK(ty_undo_attach(heap, nullptr));
    uint64_t live = live_blocks(heap);
    ASSERT_OK(ty_undo_begin(heap, nullptr));
    ASSERT_NE(ty_undo_alloc(heap, 200), nullptr);
    ASSERT_NE(ty_undo_alloc(heap, 20000), nullptr);
    ASSERT_OK(ty_undo_end(heap));
    ASSERT_OK(ty_undo(heap));
    EXPECT_EQ(live_blocks(heap), live + 2);
    ASSERT_OK(ty_undo_exit(heap));
    EXPECT_EQ(live_blocks(heap), live);
}

TEST(undo, resizes_come_back) {
    constexpr size_t page = 4096;
    const size_t sizes[] = {100, 60, 104, 3 * page, 2 * page + 5, 2 * page + 900, 50, 8 * page, 200 * page, page};
    undo_heap heap;
    char *block = heap.block(sizes[0], 1);
    ASSERT_OK(ty_undo_attach(heap, nullptr));
    std::vector<std::pair<char *, std::string>> states{{block, std::string(block, sizes[0])}};
    for (size_t i = 1; i < std::size(sizes); i++) {
        ASSERT_OK(ty_undo_begin(heap, nullptr));
        block = static_cast<char *>(ty_undo_resize(heap, block, sizes[i]));
        ASSERT_NE(block, nullptr) << ty_error_text();
        ASSERT_EQ(memcmp(block, states.back().second.data(), std::min(sizes[i], sizes[i - 1])), 0);
        if (sizes[i] > sizes[i - 1]) // bytes that it grew by need no record
            memset(block + sizes[i - 1], int(i), sizes[i] - sizes[i - 1]);
        ASSERT_OK(ty_undo_record(heap, block, 10));
        memset(block, int(i + 50), 10);
        ASSERT_OK(ty_undo_end(heap));
        states.push_back({block, std::string(block, sizes[i])});
        expect_sound(heap);
    }
    auto check = [&](size_t i) {
        EXPECT_EQ(memcmp(states[i].first, states[i].second.data(), sizes[i]), 0) << i;
        EXPECT_GE(ty_usable_size(states[i].first), sizes[i]);
        expect_sound(heap);
    };
    for (int round = 0; round < 2; round++) {
        for (size_t i = std::size(sizes) - 1; i > 0; i--) {
            ASSERT_OK(ty_undo(heap));
            check(i - 1);
        }
        for (size_t i = 1; i < std::size(sizes); i++) {
            ASSERT_OK(ty_redo(heap));
            check(i);
        }
    }
    uint64_t kept = stats_of(heap).kept_blocks, live = live_blocks(heap);
    EXPECT_GT(kept, 0u);
    ASSERT_OK(ty_undo_clear(heap));
    EXPECT_EQ(live_blocks(heap), live - kept);
    expect_sound(heap);
}

TEST(undo, labels_times_and_figures_of_the_history) {
    undo_heap heap;
    char *block = heap.block(100, 1);
    ASSERT_OK(ty_undo_attach(heap, nullptr));
    heap.change(block, 100, 2, "first");
    heap.change(block, 10, 3, std::string(100, 'x').c_str());
    heap.change(block, 1, 4);
    ASSERT_OK(ty_undo(heap));
    std::vector<std::string> seen;
    ASSERT_OK(ty_undo_history(
        heap,
        [](const ty_undo_step *step, void *context) {
            auto *list = static_cast<std::vector<std::string> *>(context);
            EXPECT_GT(step->time_unix_ns, uint64_t{1600000000} * 1000000000);
            list->push_back(std::string(step->label) + " " + std::to_string(step->entries) + " " +
                            std::to_string(step->bytes) + (step->undone ? " undone" : ""));
            return true;
        },
        &seen));
    EXPECT_EQ(seen,
              (std::vector<std::string>{" 1 1 undone", std::string(TY_UNDO_LABEL_MAX, 'x') + " 1 10", "first 1 100"}));
    ty_undo_stats s = stats_of(heap);
    EXPECT_EQ(s.undoable, 2u);
    EXPECT_EQ(s.redoable, 1u);
    EXPECT_EQ(s.undo_entries, 3u);
    EXPECT_EQ(s.redo_entries, 1u);
    EXPECT_EQ(s.undo_bytes, 111u);
    EXPECT_EQ(s.redo_bytes, 1u);
    EXPECT_EQ(s.undo_size, size_t{16} << 20);
    EXPECT_TRUE(s.cycle && !s.open && !s.full && !s.off && !s.reattached && !s.lost_volatile);
}

TEST(undo, a_cancel_takes_back_all_of_the_transaction) {
    undo_heap heap;
    char *block = heap.block(100, 1), *other = heap.block(9000, 2);
    ASSERT_OK(ty_undo_attach(heap, nullptr));
    heap.change(block, 100, 5);
    uint64_t live = live_blocks(heap);
    ASSERT_OK(ty_undo_begin(heap, nullptr));
    heap.write(block, 100, 6);
    ASSERT_OK(ty_undo_free(heap, other));
    ASSERT_NE(ty_undo_alloc(heap, 77), nullptr);
    ASSERT_OK(ty_undo_cancel(heap));
    EXPECT_TRUE(all_are(block, 100, 5) && all_are(other, 9000, 2));
    EXPECT_EQ(live_blocks(heap), live);
    EXPECT_FALSE(stats_of(heap).open || stats_of(heap).cycle);
    EXPECT_EQ(ty_redo(heap), TY_E_NOT_FOUND);
    ASSERT_OK(ty_undo(heap));
    EXPECT_TRUE(all_are(block, 100, 1));
}

TEST(undo, a_circular_buffer_forgets_whole_transactions) {
    undo_heap heap;
    char *block = heap.block(4096, 0);
    ty_undo_options options = small_buffers(false);
    ASSERT_OK(ty_undo_attach(heap, &options));
    for (int i = 1; i <= 10; i++)
        heap.change(block, 1000, i);
    ty_undo_stats s = stats_of(heap);
    EXPECT_EQ(s.undoable + s.forgotten, 10u);
    EXPECT_GE(s.undoable, 3u);
    EXPECT_LE(s.undo_bytes, s.undo_size);
    for (uint64_t i = 0; i < s.undoable; i++)
        ASSERT_OK(ty_undo(heap));
    EXPECT_TRUE(all_are(block, 1000, int(10 - s.undoable)));
    EXPECT_EQ(ty_undo(heap), TY_E_NOT_FOUND);
}

TEST(undo, one_transaction_may_fill_the_buffer) {
    for (bool fixed : {false, true}) {
        undo_heap heap;
        char *block = heap.block(4096, 1);
        ty_undo_options options = small_buffers(fixed, 4096, 512);
        ASSERT_OK(ty_undo_attach(heap, &options));
        ASSERT_OK(ty_undo_begin(heap, nullptr));
        for (int i = 0; i < 512; i++)
            heap.write(block + i * 8, 8, 2);
        EXPECT_EQ(stats_of(heap).undo_bytes, 4096u);
        EXPECT_EQ(stats_of(heap).undo_entries, 512u);
        ASSERT_OK(ty_undo_end(heap));
        ASSERT_OK(ty_undo(heap));
        EXPECT_TRUE(all_are(block, 4096, 1));
        ASSERT_OK(ty_redo(heap));
        EXPECT_TRUE(all_are(block, 4096, 2));
    }
}

// What does not fit, in bytes, entries, or held bytes.
ty_status overfill(undo_heap &heap, char *block, int how) {
    if (how == 2) {
        char *large = heap.block(size_t{1} << 20, 9);
        return ty_undo_free(heap, large);
    }
    for (int i = 0; i < 100; i++)
        if (ty_status status = ty_undo_record(heap, block, how == 0 ? 1000 : 8))
            return status;
    return TY_OK;
}

TEST(undo, a_full_fixed_buffer_can_be_cancelled_or_given_up) {
    for (int how = 0; how < 3; how++) {
        SCOPED_TRACE(how);
        undo_heap heap;
        char *block = heap.block(4096, 1);
        ty_undo_options options = small_buffers(true);
        options.kept_bytes = 500000;
        ASSERT_OK(ty_undo_attach(heap, &options));
        heap.change(block, 8, 2);
        ASSERT_OK(ty_undo_begin(heap, nullptr));
        heap.write(block, 8, 3);
        ASSERT_EQ(overfill(heap, block, how), TY_E_SPACE);
        EXPECT_EQ(ty_undo_record(heap, block, 8), TY_E_SPACE); // nothing more
        EXPECT_EQ(ty_undo_alloc(heap, 8), nullptr);
        EXPECT_TRUE(stats_of(heap).full);
        ASSERT_OK(ty_undo_cancel(heap));
        EXPECT_FALSE(stats_of(heap).full);
        EXPECT_TRUE(all_are(block, 8, 2));
        EXPECT_EQ(stats_of(heap).undoable, 1u); // the history is as before

        ASSERT_OK(ty_undo_begin(heap, nullptr));
        ASSERT_EQ(overfill(heap, block, how), TY_E_SPACE);
        EXPECT_EQ(ty_undo_end(heap), TY_E_SPACE);
        EXPECT_EQ(stats_of(heap).undoable, 0u);
        EXPECT_TRUE(stats_of(heap).off);
        ASSERT_OK(ty_undo_begin(heap, nullptr)); // does nothing
        ASSERT_OK(ty_undo_record(heap, block, 8));
        void *made = ty_undo_alloc(heap, 8);
        ASSERT_NE(made, nullptr);
        ASSERT_NE(made = ty_undo_resize(heap, made, 800), nullptr);
        ASSERT_OK(ty_undo_free(heap, made));
        EXPECT_EQ(stats_of(heap).kept_blocks, 0u);
        ASSERT_OK(ty_undo_end(heap));
        EXPECT_EQ(ty_undo(heap), TY_E_NOT_FOUND);
        ASSERT_OK(ty_undo_clear(heap));
        EXPECT_FALSE(stats_of(heap).off);
        heap.change(block, 8, 4);
        EXPECT_EQ(stats_of(heap).undoable, 1u);
    }
}

TEST(undo, a_circular_buffer_that_one_transaction_overflows) {
    for (int how = 0; how < 3; how++) {
        SCOPED_TRACE(how);
        undo_heap heap;
        char *block = heap.block(4096, 1);
        ty_undo_options options = small_buffers(false);
        options.kept_bytes = 500000;
        ASSERT_OK(ty_undo_attach(heap, &options));
        ASSERT_OK(ty_undo_begin(heap, nullptr));
        heap.write(block, 8, 3);
        ASSERT_EQ(overfill(heap, block, how), TY_E_SPACE);
        ASSERT_OK(ty_undo_cancel(heap));
        EXPECT_TRUE(all_are(block, 8, 1));
        ASSERT_OK(ty_undo_begin(heap, nullptr));
        ASSERT_EQ(overfill(heap, block, how), TY_E_SPACE);
        EXPECT_EQ(ty_undo_end(heap), TY_E_SPACE);
        EXPECT_FALSE(stats_of(heap).off);
        heap.change(block, 8, 4);
        EXPECT_EQ(stats_of(heap).undoable, 1u);
    }
}

TEST(undo, a_full_heap_takes_what_old_transactions_hold) {
    constexpr size_t size = size_t{9} << 20;
    for (bool fixed : {false, true}) {
        undo_heap heap;
        ty_undo_options options = small_buffers(fixed);
        options.kept_bytes = small_limit;
        ASSERT_OK(ty_undo_attach(heap, &options));
        int made = 0;
        for (; made < 12; made++) {
            ASSERT_OK(ty_undo_begin(heap, nullptr));
            void *block = ty_undo_alloc(heap, size);
            if (block == nullptr)
                break;
            ASSERT_OK(ty_undo_free(heap, block));
            ASSERT_OK(ty_undo_end(heap));
        }
        EXPECT_EQ(made, fixed ? 6 : 12);
        EXPECT_EQ(stats_of(heap).forgotten, fixed ? 0u : 6u);
        expect_sound(heap);
    }
}

TEST(undo, a_small_redo_buffer_holds_what_it_can) {
    for (bool fixed : {false, true}) {
        SCOPED_TRACE(fixed);
        undo_heap heap;
        char *block = heap.block(4096, 0);
        ty_undo_options options = small_buffers(fixed, 40000, 40);
        options.redo_bytes = 2500;
        ASSERT_OK(ty_undo_attach(heap, &options));
        for (int i = 1; i <= 6; i++)
            heap.change(block, 1000, i);
        ASSERT_OK(ty_undo_begin(heap, nullptr));
        void *made = ty_undo_alloc(heap, 5000);
        ASSERT_NE(made, nullptr);
        ASSERT_OK(ty_undo_end(heap));
        for (int i = 0; i < 5; i++) // an undo always succeeds
            ASSERT_OK(ty_undo(heap));
        EXPECT_TRUE(all_are(block, 1000, 2));
        EXPECT_EQ(stats_of(heap).redoable, fixed ? 0u : 2u);
        EXPECT_EQ(stats_of(heap).kept_blocks, 0u); // redo held the block, and lost it
        if (!fixed) {
            ASSERT_OK(ty_redo(heap));
            ASSERT_OK(ty_redo(heap));
            EXPECT_TRUE(all_are(block, 1000, 4));
        }
        EXPECT_EQ(ty_redo(heap), TY_E_NOT_FOUND);
        ASSERT_OK(ty_undo_exit(heap));
        heap.change(block, 1000, 9);
        ASSERT_OK(ty_undo(heap));
        ASSERT_OK(ty_redo(heap)); // again, in a new cycle
        EXPECT_TRUE(all_are(block, 1000, 9));
        expect_sound(heap);
    }
}

// What redo has no room for is freed at once, and not held by nothing (U2).
TEST(undo, a_block_that_a_lost_redo_would_hold_is_freed) {
    undo_heap heap;
    char *block = heap.block(4096, 0);
    ty_undo_options options = small_buffers(true, 40000, 40);
    options.redo_bytes = 2500;
    ASSERT_OK(ty_undo_attach(heap, &options));
    ASSERT_OK(ty_undo_begin(heap, nullptr));
    char *made = static_cast<char *>(ty_undo_alloc(heap, 5000));
    ASSERT_NE(made, nullptr);
    ASSERT_OK(ty_undo_end(heap));
    for (int i = 1; i <= 4; i++)
        heap.change(block, 1000, i);
    for (int i = 0; i < 5; i++)
        ASSERT_OK(ty_undo(heap));
    EXPECT_EQ(stats_of(heap).redoable, 0u);
    EXPECT_EQ(stats_of(heap).kept_blocks, 0u);
    EXPECT_EQ(ty_usable_size(made), 0u);
    expect_sound(heap);
}

// A block of another size at the place of a held one is not the one that was held (U3).
TEST(undo, a_kept_block_that_others_replaced_is_not_taken_for_it) {
    undo_heap heap;
    char *block = heap.block(5 * 4096, 1);
    ASSERT_OK(ty_undo_attach(heap, nullptr));
    ASSERT_OK(ty_undo_begin(heap, nullptr));
    ASSERT_OK(ty_undo_free(heap, block));
    ASSERT_OK(ty_undo_end(heap));
    ASSERT_OK(ty_free(block)); // the heap knows nothing of kept blocks
    ASSERT_EQ(ty_alloc_at(heap, block, 4 * 4096), TY_OK) << ty_error_text();
    EXPECT_EQ(ty_undo(heap), TY_E_DAMAGED);
    ASSERT_OK(ty_undo_clear(heap));
    expect_sound(heap);
}

TEST(undo, what_others_did_to_recorded_blocks_is_found_before_anything_changes) {
    undo_heap heap;
    char *a = heap.block(3000, 1), *b = heap.block(3000, 1);
    ASSERT_OK(ty_undo_attach(heap, nullptr));
    ASSERT_OK(ty_undo_begin(heap, nullptr));
    heap.write(a, 8, 2);
    heap.write(b, 8, 2);
    ASSERT_OK(ty_undo_end(heap));
    ASSERT_OK(ty_free(a));
    EXPECT_EQ(ty_undo(heap), TY_E_DAMAGED);
    EXPECT_TRUE(all_are(b, 8, 2));
    EXPECT_FALSE(stats_of(heap).cycle);
    ASSERT_OK(ty_undo_clear(heap));

    ASSERT_OK(ty_undo_begin(heap, nullptr));
    ASSERT_OK(ty_undo_free(heap, b));
    char *c = heap.block(3000, 1);
    heap.write(c, 8, 5);
    ASSERT_OK(ty_undo_end(heap));
    ASSERT_OK(ty_free(b)); // the heap knows nothing of kept blocks
    EXPECT_EQ(ty_undo(heap), TY_E_DAMAGED);
    EXPECT_TRUE(all_are(c, 8, 5)); // it was put back, and put forth again
    EXPECT_EQ(stats_of(heap).undoable, 1u);
    ASSERT_OK(ty_undo_clear(heap));
    EXPECT_OK(ty_free(c));
    expect_sound(heap);
}

TEST(undo, a_child_process_may_not) {
    undo_heap heap;
    char *block = heap.block(8, 1);
    ASSERT_OK(ty_undo_attach(heap, nullptr));
    heap.change(block, 8, 2);
    pid_t child = fork();
    if (child == 0) {
        bool refused = ty_undo(heap) == TY_E_FORKED && ty_undo_begin(heap, nullptr) == TY_E_FORKED &&
                       ty_undo_detach(heap, true) == TY_E_FORKED && ty_undo_clear(heap) == TY_E_FORKED &&
                       all_are(block, 8, 2);
        _exit(refused && ty_discard(heap) == TY_OK ? 0 : 1);
    }
    int state = -1;
    ASSERT_EQ(waitpid(child, &state, 0), child);
    EXPECT_EQ(state, 0);
    ASSERT_OK(ty_undo(heap));
}

} // namespace
} // namespace taiyen::test
