// Goal: what marks promise beside the model: which heaps have them, errors that change nothing, threads that keep using
// the heap after a return, depth, and a disk that fails.
// Method: each rule by a heap of its own, on the simulated disk or volatile.
#include "tests/threads.hpp"
#include "tests/undo/support.hpp"

#include <barrier>
#include <sys/wait.h>
#include <unistd.h>

namespace taiyen::test {
namespace {

struct snapshot_heap {
    disk files;
    ty_heap *heap = nullptr;

    explicit snapshot_heap(ty_background background = TY_BACKGROUND_CALLS) {
        ty_open_options options = files.options();
        options.kind = TY_SNAPSHOT;
        options.background = background;
        EXPECT_OK(ty_open(heap_path, &options, &heap, nullptr));
    }
    ~snapshot_heap() { EXPECT_OK(ty_discard(heap)); }
};

struct volatile_heap {
    ty_heap *heap = nullptr;

    volatile_heap() { EXPECT_OK(ty_heap_create(nullptr, &heap)); }
    ~volatile_heap() { EXPECT_OK(ty_heap_destroy(heap)); }
};

char *filled(ty_heap *heap, size_t bytes, int value) {
    auto *made = static_cast<char *>(ty_alloc(heap, bytes));
    EXPECT_NE(nullptr, made) << ty_error_text();
    memset(made, value, bytes);
    return made;
}

} // namespace

TEST(marks, names_and_arguments) {
    volatile_heap own;
    EXPECT_EQ(TY_E_ARGUMENT, ty_mark(nullptr, "a", nullptr));
    EXPECT_EQ(TY_E_ARGUMENT, ty_mark(own.heap, nullptr, nullptr));
    EXPECT_EQ(TY_E_ARGUMENT, ty_mark(own.heap, "", nullptr));
    EXPECT_EQ(TY_E_ARGUMENT, ty_mark(own.heap, "a\nb", nullptr));
    EXPECT_EQ(TY_E_ARGUMENT, ty_mark(own.heap, std::string(TY_MARK_NAME_MAX + 1, 'x').c_str(), nullptr));
    EXPECT_EQ(TY_E_ARGUMENT, ty_each_mark(own.heap, nullptr, nullptr));
    EXPECT_EQ(TY_E_NOT_FOUND, ty_return_to(own.heap, "a", nullptr));
    EXPECT_EQ(TY_E_NOT_FOUND, ty_drop_mark(own.heap, "a"));
    const std::string longest(TY_MARK_NAME_MAX, 'x');
    EXPECT_OK(ty_mark(own.heap, longest.c_str(), nullptr));
    EXPECT_EQ(TY_E_EXISTS, ty_mark(own.heap, longest.c_str(), nullptr));
    EXPECT_EQ(TY_E_NOT_FOUND, ty_return_to(own.heap, "a", nullptr));
    EXPECT_OK(ty_return_to(own.heap, longest.c_str(), nullptr));
    EXPECT_EQ(TY_E_UNSUPPORTED, ty_revert(own.heap));
}

TEST(marks, heaps_that_have_none) {
    disk files;
    ty_open_options archive = files.options();
    archive.kind = TY_ARCHIVE;
    ty_heap *heap = nullptr;
    ASSERT_OK(ty_open("archive.ty", &archive, &heap, nullptr));
    EXPECT_EQ(TY_E_UNSUPPORTED, ty_mark(heap, "a", nullptr));
    EXPECT_EQ(TY_E_UNSUPPORTED, ty_return_to(heap, "a", nullptr));
    EXPECT_EQ(TY_E_UNSUPPORTED, ty_revert(heap));
    EXPECT_OK(ty_close(heap));
    {
        snapshot_heap own;
        EXPECT_OK(ty_snapshot(own.heap));
        ty_open_options options = own.files.options();
        ASSERT_OK(ty_close(own.heap));
        options.mode = TY_OPEN_READ_ONLY;
        ASSERT_OK(ty_open(heap_path, &options, &own.heap, nullptr));
        EXPECT_EQ(TY_E_PERMISSION, ty_mark(own.heap, "a", nullptr));
        EXPECT_EQ(TY_E_PERMISSION, ty_revert(own.heap));
    }
    ty_check_options checks = TY_CHECK_OPTIONS_INIT;
    volatile_heap checked;
    ASSERT_OK(ty_heap_start_checks(checked.heap, &checks));
    EXPECT_EQ(TY_E_UNSUPPORTED, ty_mark(checked.heap, "a", nullptr));
}

TEST(marks, a_forked_child_has_none) {
    volatile_heap own, other;
    snapshot_heap saved;
    EXPECT_OK(ty_mark(own.heap, "a", nullptr));
    EXPECT_OK(ty_mark(saved.heap, "a", nullptr));
    const pid_t child = fork();
    if (child == 0) {
        const bool refused =
            ty_return_to(own.heap, "a", nullptr) == TY_E_FORKED && ty_mark(own.heap, "b", nullptr) == TY_E_FORKED &&
            ty_drop_mark(own.heap, "a") == TY_E_FORKED && ty_return_to(saved.heap, "a", nullptr) == TY_E_FORKED &&
            ty_revert(saved.heap) == TY_E_FORKED;
        const bool made = ty_mark(other.heap, "a", nullptr) == TY_OK && ty_return_to(other.heap, "a", nullptr) == TY_OK;
        _exit(refused && made ? 0 : 1);
    }
    int result = 0;
    ASSERT_EQ(child, waitpid(child, &result, 0));
    EXPECT_EQ(0, result);
    EXPECT_OK(ty_return_to(own.heap, "a", nullptr));
}

// Each is a child of the one before.
TEST(marks, ten_thousand_deep) {
    constexpr int depth = 10000;
    volatile_heap own;
    auto *numbers = reinterpret_cast<int *>(filled(own.heap, 100 * 4096, 0));
    for (int i = 0; i < depth; i++) {
        numbers[i % 100 * 1024] = i;
        ASSERT_OK(ty_mark(own.heap, std::to_string(i).c_str(), nullptr));
    }
    for (const int i : {0, depth - 1, 500, 501, depth / 2, 0}) {
        ASSERT_OK(ty_return_to(own.heap, std::to_string(i).c_str(), nullptr));
        EXPECT_EQ(i, numbers[i % 100 * 1024]);
        if (i >= 100) {
            EXPECT_EQ(i - 99, numbers[(i + 1) % 100 * 1024]);
        }
    }
    for (int i = 0; i < depth; i += 2)
        ASSERT_OK(ty_drop_mark(own.heap, std::to_string(i).c_str()));
    ASSERT_OK(ty_return_to(own.heap, "5001", nullptr));
    EXPECT_EQ(5001, numbers[1 * 1024]);
    EXPECT_EQ(5000, numbers[0]);
    ASSERT_OK(ty_heap_verify(own.heap, nullptr, nullptr));
}

// A tree of a thousand branches from one mark: dropping the mark keeps what they need.
TEST(marks, a_thousand_branches) {
    volatile_heap own;
    auto *numbers = reinterpret_cast<int *>(filled(own.heap, 64 * 4096, 7));
    ASSERT_OK(ty_mark(own.heap, "root", nullptr));
    for (int i = 0; i < 1000; i++) {
        ASSERT_OK(ty_return_to(own.heap, "root", nullptr));
        numbers[i % 64 * 1024] = i;
        ASSERT_OK(ty_mark(own.heap, std::to_string(i).c_str(), nullptr));
    }
    ASSERT_OK(ty_drop_mark(own.heap, "root"));
    for (int i = 0; i < 1000; i++) {
        ASSERT_OK(ty_return_to(own.heap, std::to_string(i).c_str(), nullptr));
        ASSERT_EQ(i, numbers[i % 64 * 1024]);
        ASSERT_EQ(0x07070707, numbers[(i + 1) % 64 * 1024]);
    }
}

// Copies that no mark needs are freed.
TEST(marks, room_comes_back) {
    volatile_heap own;
    char *block = filled(own.heap, 1000 * 4096, 1);
    const auto copied = [&] {
        uint64_t bytes = 0;
        EXPECT_OK(ty_each_mark(
            own.heap,
            [](const ty_mark_info *info, void *context) {
                *static_cast<uint64_t *>(context) += info->copied_bytes;
                return true;
            },
            &bytes));
        return bytes;
    };
    ASSERT_OK(ty_mark(own.heap, "a", nullptr));
    const uint64_t first = copied();
    EXPECT_GE(first, 1000u * 4096);
    memset(block, 2, 1000 * 4096);
    ASSERT_OK(ty_mark(own.heap, "b", nullptr));
    memset(block, 3, 1000 * 4096);
    ASSERT_OK(ty_mark(own.heap, "c", nullptr));
    EXPECT_GE(copied(), 3000u * 4096);
    ASSERT_OK(ty_drop_mark(own.heap, "b")); // all its pages have changed again
    EXPECT_LE(copied(), first + 1100u * 4096);
    ASSERT_OK(ty_drop_mark(own.heap, "c")); // the current one
    EXPECT_EQ(first, copied());
    EXPECT_TRUE(all_are(block, 1000 * 4096, 3));
    ASSERT_OK(ty_return_to(own.heap, "a", nullptr));
    EXPECT_TRUE(all_are(block, 1000 * 4096, 1));
}

// Threads keep their caches of a heap that returns: spans that they own may be gone, or hold other blocks.
TEST(marks, threads_go_on_after_a_return) {
    constexpr unsigned count = 4;
    constexpr int rounds = 60;
    for (const bool in_files : {false, true}) {
        snapshot_heap saved;
        volatile_heap plain;
        ty_heap *heap = in_files ? saved.heap : plain.heap;
        std::barrier<> turn(count + 1);
        std::map<char *, size_t> own[count], marked[count];
        std::thread turns([&] {
            dice numbers(5);
            for (int round = 0; round < rounds; round++) {
                turn.arrive_and_wait(); // they have changed the heap
                if (round == 0 || numbers.below(3) == 0) {
                    if (round != 0) {
                        EXPECT_OK(ty_drop_mark(heap, "last"));
                    }
                    EXPECT_OK(ty_mark(heap, "last", nullptr));
                    for (unsigned i = 0; i < count; i++)
                        marked[i] = own[i];
                } else {
                    EXPECT_OK(ty_return_to(heap, "last", nullptr));
                    for (unsigned i = 0; i < count; i++)
                        own[i] = marked[i];
                }
                EXPECT_OK(ty_heap_verify(heap, nullptr, nullptr));
                turn.arrive_and_wait();
            }
        });
        in_threads(count, [&](unsigned me) {
            dice numbers(me);
            for (int round = 0; round < rounds; round++) {
                for (int i = 0; i < 200; i++) {
                    std::map<char *, size_t> &all = own[me];
                    if (all.size() < 50 || numbers.below(2) == 0) {
                        const size_t bytes = numbers.below(20) == 0 ? 9000 : 8 + numbers.below(300);
                        all[filled(heap, bytes, static_cast<int>(me + 1))] = bytes;
                    } else {
                        auto at = all.begin();
                        std::advance(at, static_cast<ptrdiff_t>(numbers.below(all.size())));
                        EXPECT_TRUE(all_are(at->first, at->second, static_cast<int>(me + 1)));
                        EXPECT_OK(ty_free(at->first));
                        all.erase(at);
                    }
                }
                turn.arrive_and_wait();
                turn.arrive_and_wait();
            }
        });
        turns.join();
    }
}

// MK4: a checkpoint beside marks, by the library's threads.
TEST(marks, checkpoints_keep_the_base) {
    snapshot_heap own(TY_BACKGROUND_THREAD);
    char *block = filled(own.heap, 500 * 4096, 1);
    ASSERT_OK(ty_snapshot(own.heap));
    ASSERT_OK(ty_run_background_work(own.heap)); // it is in the image alone
    ASSERT_OK(ty_mark(own.heap, "a", nullptr));
    for (int i = 2; i < 6; i++) {
        memset(block, i, 500 * 4096);
        ASSERT_OK(ty_snapshot(own.heap));
        ASSERT_OK(ty_run_background_work(own.heap));
        ASSERT_OK(ty_return_to(own.heap, "a", nullptr));
        ASSERT_TRUE(all_are(block, 500 * 4096, 1)) << i;
    }
    ASSERT_OK(ty_snapshot(own.heap));
    ASSERT_OK(ty_close(own.heap));
    ty_open_options options = own.files.options();
    ASSERT_OK(ty_open(heap_path, &options, &own.heap, nullptr));
    EXPECT_TRUE(all_are(block, 500 * 4096, 1));
}

// What fails changes nothing, and works once the disk does.
TEST(marks, a_disk_that_fails) {
    snapshot_heap own;
    char *block = filled(own.heap, 20 * 4096, 1);
    ASSERT_OK(ty_snapshot(own.heap));
    memset(block, 2, 20 * 4096);
    const content before = content_of(own.heap);
    os::sim_set_fault(own.files.get(), {os::sim_op_read, 0, true, TY_E_IO});
    EXPECT_EQ(TY_E_IO, ty_revert(own.heap));
    EXPECT_TRUE(content_of(own.heap) == before);
    os::sim_set_fault(own.files.get(), {});
    ASSERT_OK(ty_revert(own.heap));
    EXPECT_TRUE(all_are(block, 20 * 4096, 1));

    ASSERT_OK(ty_run_background_work(own.heap));
    os::sim_set_fault(own.files.get(), {os::sim_op_map, 0, true, TY_E_IO}); // so pages are read through the storage
    ASSERT_OK(ty_mark(own.heap, "a", nullptr));
    memset(block, 3, 20 * 4096);
    os::sim_set_fault(own.files.get(), {os::sim_op_read, 3, true, TY_E_IO});
    EXPECT_EQ(TY_E_IO, ty_return_to(own.heap, "a", nullptr));
    EXPECT_TRUE(all_are(block, 20 * 4096, 3));
    ASSERT_OK(ty_snapshot(own.heap));
    EXPECT_EQ(TY_E_IO, ty_run_background_work(own.heap)); // what it would overwrite cannot be kept
    os::sim_set_fault(own.files.get(), {});
    ASSERT_OK(ty_run_background_work(own.heap));
    ASSERT_OK(ty_return_to(own.heap, "a", nullptr));
    EXPECT_TRUE(all_are(block, 20 * 4096, 1));
}

// MK6: memory of freed pages that the heap has given back, by a purge or by itself, before and after the first mark.
TEST(marks, what_was_given_back_returns) {
    for (const bool saved_twice : {false, true})
        for (const bool checkpointed : {false, true})
            for (const bool by_mark : {false, true}) {
                snapshot_heap own;
                char *block = filled(own.heap, size_t{4} << 20, 1);
                ASSERT_OK(ty_snapshot(own.heap));
                if (saved_twice) {
                    memset(block, 2, size_t{4} << 20);
                    ASSERT_OK(ty_snapshot(own.heap));
                }
                if (checkpointed) {
                    ASSERT_OK(ty_run_background_work(own.heap));
                }
                if (by_mark) {
                    ASSERT_OK(ty_mark(own.heap, "a", nullptr));
                }
                ASSERT_OK(ty_free(block));
                ASSERT_OK(ty_heap_purge(own.heap, nullptr));
                char *other = filled(own.heap, size_t{1} << 20, 3);
                ASSERT_OK(by_mark ? ty_return_to(own.heap, "a", nullptr) : ty_revert(own.heap));
                EXPECT_TRUE(all_are(block, size_t{4} << 20, saved_twice ? 2 : 1)) << checkpointed << by_mark;
                EXPECT_EQ(0u, ty_usable_size(other == block ? block + 8 : other));
                ASSERT_OK(ty_heap_verify(own.heap, nullptr, nullptr));
                block[5] = 9;
                ASSERT_OK(ty_snapshot(own.heap));
                ASSERT_OK(ty_discard(own.heap));
                ty_open_options options = own.files.options();
                ASSERT_OK(ty_open(heap_path, &options, &own.heap, nullptr));
                EXPECT_TRUE(all_are(block + 6, (size_t{4} << 20) - 6, saved_twice ? 2 : 1));
            }
}

// A revert after an early write-back, and while a snapshot is under way.
TEST(marks, a_revert_waits_for_what_was_started) {
    snapshot_heap own;
    char *block = filled(own.heap, 50 * 4096, 1);
    ASSERT_OK(ty_snapshot(own.heap));
    memset(block, 2, 50 * 4096);
    ASSERT_OK(ty_write_back_early(own.heap, 10));
    ASSERT_OK(ty_revert(own.heap));
    EXPECT_TRUE(all_are(block, 50 * 4096, 1));
    memset(block, 3, 4096);
    uint64_t epoch = 0;
    ASSERT_OK(ty_snapshot_start(own.heap, &epoch));
    memset(block, 4, 50 * 4096);
    ASSERT_OK(ty_revert(own.heap));
    EXPECT_TRUE(all_are(block, 4096, 3));
    EXPECT_TRUE(all_are(block + 4096, 49 * 4096, 1));
    ASSERT_OK(ty_snapshot(own.heap));
    ASSERT_OK(ty_discard(own.heap));
    ty_open_options options = own.files.options();
    ASSERT_OK(ty_open(heap_path, &options, &own.heap, nullptr));
    EXPECT_TRUE(all_are(block, 4096, 3));
    EXPECT_TRUE(all_are(block + 4096, 49 * 4096, 1));
}

TEST(marks, undo_is_that_of_the_mark) {
    volatile_heap own;
    char *block = filled(own.heap, 64, 1);
    ASSERT_OK(ty_mark(own.heap, "without", nullptr));
    ASSERT_OK(ty_undo_attach(own.heap, nullptr));
    ASSERT_OK(ty_mark(own.heap, "empty", nullptr));
    ASSERT_OK(ty_undo_begin(own.heap, "two"));
    ASSERT_OK(ty_undo_record(own.heap, block, 64));
    memset(block, 2, 64);
    ASSERT_OK(ty_undo_end(own.heap));
    ASSERT_OK(ty_mark(own.heap, "one step", nullptr));
    ASSERT_OK(ty_return_to(own.heap, "empty", nullptr));
    EXPECT_EQ(TY_E_NOT_FOUND, ty_undo(own.heap));
    ASSERT_OK(ty_return_to(own.heap, "one step", nullptr));
    EXPECT_TRUE(all_are(block, 64, 2));
    ASSERT_OK(ty_undo(own.heap));
    EXPECT_TRUE(all_are(block, 64, 1));
    ASSERT_OK(ty_return_to(own.heap, "without", nullptr));
    EXPECT_EQ(TY_E_ARGUMENT, ty_undo(own.heap)); // it is detached
    ASSERT_OK(ty_return_to(own.heap, "one step", nullptr));
    ASSERT_OK(ty_undo_attach(own.heap, nullptr)); // with its history
    ASSERT_OK(ty_undo(own.heap));
    EXPECT_TRUE(all_are(block, 64, 1));
}

TEST(marks, undo_with_volatile_buffers_is_refused) {
    volatile_heap own;
    ty_undo_options options = TY_UNDO_OPTIONS_INIT;
    options.volatile_buffers = true;
    ASSERT_OK(ty_mark(own.heap, "a", nullptr));
    ASSERT_OK(ty_undo_attach(own.heap, &options));
    EXPECT_EQ(TY_E_UNSUPPORTED, ty_mark(own.heap, "b", nullptr));
    EXPECT_EQ(TY_E_UNSUPPORTED, ty_return_to(own.heap, "a", nullptr));
    ASSERT_OK(ty_undo_detach(own.heap, false));
    ASSERT_OK(ty_return_to(own.heap, "a", nullptr));
}

TEST(marks, a_heap_that_had_a_log_is_reverted) {
    const disk files;
    ty_open_options options = files.options();
    ty_heap *heap = nullptr;
    for (const ty_kind kind : {TY_TRANSACTIONAL, TY_SNAPSHOT}) {
        options.kind = kind;
        options.log_bytes = size_t{1} << 20;
        ASSERT_OK(ty_open(heap_path, &options, &heap, nullptr));
        if (kind == TY_TRANSACTIONAL) {
            ASSERT_OK(ty_close(heap));
        }
    }
    ASSERT_OK(ty_root_set(heap, "a", ty_alloc(heap, 100000)));
    ASSERT_OK(ty_free(ty_root(heap, "a")));
    ASSERT_OK(ty_revert(heap));
    EXPECT_EQ(nullptr, ty_root(heap, "a"));
    expect_sound(heap);
    ASSERT_OK(ty_discard(heap));
}

} // namespace taiyen::test
