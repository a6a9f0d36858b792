// Goal: threads that hold blocks (the drop-in malloc's heap) neither lose one nor give it to two; what they hold is
// free for all who look; a wrong free is reported, at once or when the block is let go. Method: the calls that malloc
// and free make, a shadow of what is live, pauses, and threads that end. Meant to run under ThreadSanitizer too.
#include "../heap_fixture.hpp"
#include "src/heap/blocks/remote_batches.hpp"
#include "src/heap/spans/spans.hpp"
#include <algorithm>
#include <atomic>
#include <functional>
#include <latch>
#include <map>
#include <memory>
#include <mutex>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace taiyen::test {
namespace {

std::mutex wrong_lock;
std::vector<const void *> wrong_blocks;

void note_wrong_free(const void *block) {
    std::lock_guard guard(wrong_lock);
    wrong_blocks.push_back(block);
}

class heap_cached : public testing::Test {
protected:
    heap_cached() {
        wrong_blocks.clear();
        EXPECT_EQ(use_magazines(memory.heap, note_wrong_free), TY_OK) << ty_error_text();
    }

    char *allocate(size_t size) {
        void *block = try_alloc_cached(size);
        return static_cast<char *>(block != nullptr ? block : alloc_cached_slowly(memory.heap, size));
    }
    static ty_status release(void *block) {
        const magazine *stack;
        tried_free tried = try_free_cached(block, &stack);
        if (tried == tried_free::elsewhere)
            return free_cached_elsewhere(block, stack);
        return tried == tried_free::done ? TY_OK : free_cached_slowly(block);
    }

    ty_heap_stats stats() {
        ty_heap_stats found{};
        EXPECT_EQ(heap_get_stats(memory.heap, &found), TY_OK);
        return found;
    }
    void expect_empty() {
        EXPECT_EQ(stats().live_blocks, 0u);
        EXPECT_EQ(stats().free_extents, 1u);
        EXPECT_EQ(problems_of(memory.heap), "");
        EXPECT_EQ(wrong_blocks.size(), 0u);
    }

    keeping_heap memory; // as the drop-in malloc's
};

TEST_F(heap_cached, what_is_cached_is_free_for_all_who_look) {
    std::vector<char *> blocks;
    for (size_t size = 1; size < 20'000; size += size / 8 + 1)
        for (int i = 0; i < 700; i++)
            blocks.push_back(allocate(size));
    EXPECT_EQ(stats().live_blocks, blocks.size());
    for (char *block : blocks)
        ASSERT_EQ(release(block), TY_OK);
    expect_empty();
}

TEST_F(heap_cached, no_block_is_given_to_two) {
    std::map<char *, size_t> live;
    random_source random{1};
    for (int i = 0; i < 300'000; i++) {
        if (random.below(1000) == 0) {
            ASSERT_EQ(stats().live_blocks, live.size());
        }
        if (live.size() > random.below(6000)) {
            auto gone =
                std::next(live.begin(), static_cast<ptrdiff_t>(random.below(std::min<size_t>(live.size(), 50))));
            ASSERT_EQ(release(gone->first), TY_OK);
            live.erase(gone);
            continue;
        }
        size_t size = 1 + random.below(uint64_t{1} << random.below(14));
        char *block = allocate(size);
        auto [place, fresh] = live.emplace(block, size);
        ASSERT_TRUE(fresh);
        auto next = std::next(place);
        ASSERT_TRUE(next == live.end() || block + size <= next->first);
        ASSERT_TRUE(place == live.begin() || std::prev(place)->first + std::prev(place)->second <= block);
    }
    EXPECT_EQ(problems_of(memory.heap), "");
    for (auto [block, size] : live)
        ASSERT_EQ(release(block), TY_OK);
    expect_empty();
}

class heap_cached_stacks : public heap_cached {
protected:
    size_t room(size_t bytes) const {
        const magazine &held = magazine_cache->cached[memory.heap->class_of[bytes / 8]];
        return static_cast<size_t>(held.end - held.bottom) - 1;
    }
    void loop(size_t bytes, size_t count) {
        std::vector<char *> blocks;
        for (size_t i = 0; i < count; i++) {
            blocks.push_back(allocate(bytes));
            memset(blocks.back(), static_cast<int>(i), bytes);
        }
        for (size_t i = 0; i < count; i++) {
            EXPECT_TRUE(blocks[i][0] == static_cast<char>(i) && blocks[i][bytes - 1] == static_cast<char>(i));
            EXPECT_EQ(release(blocks[i]), TY_OK);
        }
    }
    static constexpr size_t first = 64, more = 1024; // blocks of 1 KiB
};

// Stacks of blocks up to 1 KiB do; those of larger ones would hold too much.
TEST_F(heap_cached_stacks, what_takes_again_what_it_let_go_gets_larger) {
    size_t bytes = 1024, large = 2048;
    loop(bytes, 1200);
    EXPECT_EQ(room(bytes), first) << "what was let go is not wanted again yet";
    loop(bytes, 1200);
    EXPECT_EQ(room(bytes), more);
    for (int i = 0; i < 20; i++)
        loop(bytes, 3000);
    EXPECT_EQ(room(bytes), more);
    expect_empty();
    for (int i = 0; i < 20; i++)
        loop(large, 3000);
    EXPECT_EQ(room(large), first * bytes / large);
    expect_empty();
}

// So that a thread holds no more than some megabytes.
TEST_F(heap_cached_stacks, few_are_larger_at_once) {
    memory.heap->memory.period_ns = UINT64_MAX;
    size_t larger = 0;
    for (size_t bytes = 512; bytes <= 1024; bytes += 32) { // 17 classes
        loop(bytes, 3000);
        loop(bytes, 3000);
        larger += room(bytes) > 65'536 / bytes;
    }
    EXPECT_EQ(larger, 8u);
    expect_empty();
    std::vector<std::thread> others;
    std::latch all(5); // a thread that ended would leave its stacks to the next one
    for (int i = 0; i < 5; i++)
        others.emplace_back([&] {
            for (size_t bytes = 512; bytes <= 1024; bytes += 32) {
                loop(bytes, 3000);
                loop(bytes, 3000);
            }
            all.arrive_and_wait();
        });
    for (std::thread &other : others)
        other.join();
    EXPECT_EQ(memory.heap->enlarged.load(), 32u) << "of six threads";
    expect_empty();
}

TEST_F(heap_cached_stacks, they_become_small_again_before_another_class_gets_a_span) {
    memory.heap->memory.period_ns = 0;
    for (int i = 0; i < 12; i++) { // more often than some may be larger at once
        loop(1024, 1200);
        loop(1024, 1200);
        EXPECT_EQ(room(1024), more);
        uint64_t top = memory.heap->top.load();
        loop(200, 3000);
        EXPECT_EQ(room(1024), first);
        EXPECT_LE(memory.heap->enlarged.load(), 1u) << "that of the other class";
        EXPECT_EQ(memory.heap->top.load(), top) << "what was held is there for it";
        loop(1024, first);
    }
    expect_empty();
}

// With neighbours that are as full.
TEST_F(heap_cached, larger_stacks_do_not_overlap) {
    std::vector<char *> blocks;
    for (int round = 0; round < 4; round++) {
        for (size_t size = 16; size < 1100; size += size / 16 / 16 * 16 + 16)
            for (size_t held = 0; held < 1'300'000; held += size) {
                blocks.push_back(allocate(size));
                *blocks.back() = 1;
            }
        std::vector<char *> sorted = blocks;
        std::sort(sorted.begin(), sorted.end());
        EXPECT_EQ(std::adjacent_find(sorted.begin(), sorted.end()), sorted.end());
        for (char *block : blocks)
            ASSERT_EQ(release(block), TY_OK);
        blocks.clear();
    }
    expect_empty();
}

TEST_F(heap_cached, blocks_of_9_bytes_and_more_start_at_multiples_of_16) {
    for (size_t size = 9; size < 40'000; size += 1 + size / 100)
        for (int i = 0; i < 3; i++) {
            char *block = allocate(size);
            EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % 16, 0u) << size;
            EXPECT_GE(heap_usable_size(block), size);
        }
}

TEST_F(heap_cached, usable_bytes_are_known_without_a_look_at_the_metadata) {
    for (size_t size : {1, 9, 100, 4000, 10'000}) {
        char *block = allocate(size);
        size_t bytes = cached_usable_size(block);
        EXPECT_EQ(bytes, heap_usable_size(block));
        EXPECT_GE(bytes, size);
        EXPECT_EQ(cached_usable_size(block + 4), 0u);
        std::thread([&] {
            EXPECT_EQ(cached_usable_size(block), 0u) << "a thread that has no cache asks the heap";
            char *own = allocate(size);
            EXPECT_EQ(cached_usable_size(block), bytes);
            EXPECT_EQ(cached_usable_size(block + 4), 0u);
            EXPECT_EQ(release(own), TY_OK);
        }).join();
        EXPECT_EQ(release(block), TY_OK);
        EXPECT_EQ(cached_usable_size(block), 0u) << "the last one freed";
    }
    char *run = allocate(1'000'000);
    EXPECT_EQ(cached_usable_size(run), heap_usable_size(run));
    EXPECT_EQ(cached_usable_size(run + page_bytes), 0u);
    EXPECT_EQ(cached_usable_size(run + 8), 0u);
    EXPECT_EQ(release(run), TY_OK);
    EXPECT_EQ(cached_usable_size(run), 0u);
    EXPECT_EQ(cached_usable_size(memory.base + memory.limit / 2), 0u) << "never used";
    EXPECT_EQ(cached_usable_size(memory.base), 0u);
    EXPECT_EQ(cached_usable_size(&memory), 0u);
    EXPECT_EQ(cached_usable_size(nullptr), 0u);
}

TEST_F(heap_cached, wrong_frees_are_reported_at_once_where_that_costs_nothing) {
    char *block = allocate(100);
    EXPECT_EQ(release(block + 8), TY_E_ARGUMENT);
    EXPECT_EQ(release(block), TY_OK);
    EXPECT_EQ(release(block), TY_E_ARGUMENT) << "the last one freed";
    EXPECT_EQ(heap_usable_size(block), 0u);
    EXPECT_EQ(release(memory.base), TY_E_ARGUMENT);
    EXPECT_EQ(release(&block), TY_E_ARGUMENT);
    expect_empty();
}

TEST_F(heap_cached, aligned_blocks_are_taken_from_stacks) {
    for (size_t alignment = 1; alignment <= 8192; alignment *= 2)
        for (size_t size : {0, 1, 60, 100, 1000, 5000, 20'000, 100'000}) {
            size_t whole = (size + alignment - 1) & ~(alignment - 1);
            std::vector<char *> likely; // on the stack that is looked at, at all places of a page
            for (int i = 0; i < 20; i++)
                likely.push_back(allocate(whole));
            for (char *block : likely)
                ASSERT_EQ(release(block), TY_OK);
            char *first = static_cast<char *>(heap_alloc(memory.heap, size, alignment, false));
            ASSERT_EQ(reinterpret_cast<uintptr_t>(first) % alignment, 0u);
            ASSERT_EQ(release(first), TY_OK);
            char *block = static_cast<char *>(try_alloc_cached_aligned(size, alignment));
            if (alignment <= 64 && size > 0 && size <= 1000) {
                EXPECT_EQ(block, first) << size << " aligned to " << alignment;
            }
            if (block == nullptr)
                continue;
            EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % alignment, 0u) << size;
            EXPECT_GE(heap_usable_size(block), size);
            EXPECT_EQ(release(block), TY_OK);
        }
    EXPECT_EQ(try_alloc_cached_aligned(SIZE_MAX, 64), nullptr);
    EXPECT_EQ(try_alloc_cached_aligned(64, size_t{1} << 63), nullptr);
    expect_empty();
}

TEST_F(heap_cached, wrong_frees_anywhere_in_the_span_are_reported) {
    EXPECT_EQ(release(allocate(100)), TY_OK);
    size_t limit = heap_limit(memory.heap);
    for (size_t offset = 0; offset < limit; offset += limit / 64)
        for (size_t within : {0, 8})
            EXPECT_EQ(release(memory.base + offset + within), TY_E_ARGUMENT) << offset;
    expect_empty();
}

TEST_F(heap_cached, short_runs_come_and_go_like_small_blocks) {
    char *run = allocate(40'000);
    EXPECT_EQ(release(run), TY_OK);
    EXPECT_EQ(release(run), TY_E_ARGUMENT) << "kept, not live";
    EXPECT_EQ(allocate(40'000), run);
    for (size_t inside : {size_t{8}, page_bytes})
        EXPECT_EQ(release(run + inside), TY_E_ARGUMENT);
    EXPECT_EQ(release(run), TY_OK);
    EXPECT_EQ(allocate(40'000), run) << "and only that was kept";
    std::thread([&] { EXPECT_EQ(release(run), TY_OK); }).join();
    expect_empty();
}

TEST_F(heap_cached, a_second_free_is_reported_when_the_block_is_let_go) {
    char *first = allocate(100), *second = allocate(100);
    EXPECT_EQ(release(first), TY_OK);
    EXPECT_EQ(release(second), TY_OK);
    EXPECT_EQ(release(first), TY_OK) << "not known yet";
    EXPECT_EQ(stats().live_blocks, 0u);
    ASSERT_EQ(wrong_blocks.size(), 1u);
    EXPECT_EQ(wrong_blocks[0], first);
}

TEST_F(heap_cached, a_second_free_by_another_thread_is_reported) {
    char *block = allocate(100);
    std::thread([&] {
        EXPECT_EQ(release(block), TY_OK);
        EXPECT_EQ(release(block), TY_OK) << "not known yet";
        EXPECT_EQ(stats().live_blocks, 0u);
    }).join();
    ASSERT_EQ(wrong_blocks.size(), 1u);
}

TEST_F(heap_cached, another_threads_blocks_go_back_to_it) {
    std::vector<char *> blocks;
    for (int i = 0; i < 2000; i++)
        blocks.push_back(allocate(static_cast<size_t>(16 + i % 3000)));
    std::thread([&] {
        for (char *block : blocks)
            ASSERT_EQ(release(block), TY_OK);
        EXPECT_EQ(stats().live_blocks, 0u) << "those too that it has not sent yet";
    }).join();
    expect_empty();
}

TEST_F(heap_cached, what_was_not_sent_yet_is_free_for_all_who_look) {
    std::atomic<char *> block{nullptr};
    std::atomic<bool> done{false};
    release(allocate(100)); // this thread's cache is the older one
    std::thread owner([&] {
        block = allocate(100);
        block.notify_one();
        done.wait(false);
    });
    block.wait(nullptr);
    EXPECT_EQ(release(block), TY_OK);
    EXPECT_EQ(stats().live_blocks, 0u);
    done = true;
    done.notify_one();
    owner.join();
    expect_empty();
}

// R4: all of a pause see what is in a remote-free batch that its replica has not opened.
TEST_F(heap_cached, what_is_on_its_way_is_free_for_all_who_look) {
    std::vector<char *> blocks;
    for (size_t i = 0; i < 1000; i++)
        blocks.push_back(allocate(16 + i % 500));
    std::thread([&] {
        for (char *block : blocks)
            ASSERT_EQ(release(block), TY_OK);
        for (int i = 0; i < 3; i++) // the second time nothing is on its way, and the blocks are where they were
            EXPECT_EQ(stats().live_blocks, 0u);
    }).join();
    expect_empty();
}

TEST_F(heap_cached, a_wrong_free_of_another_threads_block_is_reported_at_once) {
    char *block = allocate(100);
    std::thread([&] { EXPECT_EQ(release(block + 8), TY_E_ARGUMENT); }).join();
    EXPECT_EQ(release(block), TY_OK);
    expect_empty();
}

// What remote-free batches are made of comes back to a thread that never allocates, and the blocks to the one that
// never frees.
TEST_F(heap_cached, threads_that_only_allocate_or_only_free_need_no_more_with_time) {
    constexpr size_t batch = 500;
    std::vector<char *> blocks(batch);
    std::atomic<int> turn{0};
    auto pass_turn = [&](int mine, auto work) {
        for (int i = 0; i < 500; i++) {
            for (int now = turn; now != mine; now = turn)
                turn.wait(now);
            work();
            turn = 1 - mine;
            turn.notify_one();
        }
    };
    std::thread consumer(pass_turn, 1, [&] {
        for (char *block : blocks)
            ASSERT_EQ(release(block), TY_OK);
    });
    uint64_t touched = 0;
    int rounds = 0;
    pass_turn(0, [&] {
        for (size_t i = 0; i < batch; i++)
            blocks[i] = allocate(16 + i * 3);
        if (++rounds == 50) // nobody looks with a pause: that would bring all back
            touched = memory.heap->top.load();
    });
    consumer.join();
    EXPECT_EQ(memory.heap->top.load(), touched);
    expect_empty();
}

TEST_F(heap_cached, what_a_thread_cached_is_free_when_it_ends) {
    std::vector<char *> kept;
    for (int round = 0; round < 20; round++)
        std::thread([&] {
            std::vector<char *> blocks;
            for (int i = 0; i < 1000; i++)
                blocks.push_back(allocate(static_cast<size_t>(16 + i)));
            for (size_t i = 0; i < blocks.size(); i++)
                if (i % 10 == 0) {
                    kept.push_back(blocks[i]);
                } else {
                    ASSERT_EQ(release(blocks[i]), TY_OK);
                }
        }).join();
    EXPECT_EQ(stats().live_blocks, kept.size());
    EXPECT_EQ(problems_of(memory.heap), "");
    for (char *block : kept)
        ASSERT_EQ(release(block), TY_OK);
    expect_empty();
}

// R5: the next thread has the blocks that the one before held.
TEST_F(heap_cached, a_thread_takes_over_from_one_that_ended) {
    std::vector<char *> blocks;
    auto live = [&] {
        std::vector<char *> own;
        for (int i = 0; i < 500; i++) // less than a stack holds
            own.push_back(allocate(100));
        for (char *block : own)
            ASSERT_EQ(release(block), TY_OK);
        blocks.insert(blocks.end(), own.begin(), own.end());
    };
    std::thread(live).join();
    EXPECT_EQ(memory.heap->resting_count.load(), 1u);
    uint64_t top = memory.heap->top.load();
    for (int i = 0; i < 20; i++)
        std::thread(live).join();
    EXPECT_EQ(memory.heap->resting_count.load(), 1u);
    EXPECT_EQ(memory.heap->idle_caches, nullptr) << "none had to give up anything";
    EXPECT_EQ(memory.heap->top.load(), top);
    std::sort(blocks.begin(), blocks.end());
    blocks.erase(std::unique(blocks.begin(), blocks.end()), blocks.end());
    EXPECT_EQ(blocks.size(), 500u);
    expect_empty();
}

// R5: what a cache holds that rests is there for the threads that need it: what it has of a class, or all.
class heap_cached_resting : public heap_cached {
protected:
    static constexpr size_t count = 3000;
    static constexpr size_t sizes[] = {100, 200};

    // A cache rests that holds count blocks of both sizes.
    heap_cached_resting() {
        memory.heap->memory.period_ns = UINT64_MAX;
        release(allocate(sizeof(remote_batch))); // this thread's cache is another one
        std::vector<char *> blocks;
        std::thread([&] {
            for (size_t size : sizes)
                for (size_t i = 0; i < count; i++)
                    blocks.push_back(allocate(size));
        }).join();
        live = blocks.front();
        for (size_t i = 1; i < blocks.size(); i++) // they go to the cache that rests, and stay with it
            EXPECT_EQ(release(blocks[i]), TY_OK);
        EXPECT_EQ(memory.heap->resting_count.load(), 1u);
        kept.push_back(live);
        resting = memory.heap->resting_caches;
    }
    // How many pages the heap grows by for what rests.
    uint64_t growth_for(size_t size) {
        uint64_t top = memory.heap->top.load();
        for (size_t i = 0; i < count; i++)
            kept.push_back(allocate(size));
        return memory.heap->top.load() - top;
    }
    bool rests_with(size_t size) const { return resting->classes[memory.heap->class_of[(size + 7) / 8]].owned != 0; }
    void expect_sound() {
        EXPECT_EQ(stats().live_blocks, kept.size());
        for (char *block : kept)
            EXPECT_EQ(release(block), TY_OK);
        expect_empty();
    }

    thread_cache *resting;
    char *live; // of the first size, and the resting cache's
    std::vector<char *> kept;
};

TEST_F(heap_cached_resting, gives_up_the_class_that_is_needed_and_keeps_the_others) {
    EXPECT_LE(growth_for(sizes[0]), span_pages_max);
    EXPECT_FALSE(rests_with(sizes[0]));
    EXPECT_TRUE(rests_with(sizes[1]));
    EXPECT_EQ(memory.heap->resting_count.load(), 1u);
    EXPECT_LE(growth_for(sizes[1]), span_pages_max);
    EXPECT_FALSE(rests_with(sizes[1]));
    expect_sound();
}

TEST_F(heap_cached_resting, gives_up_all_classes_now_and_then) {
    memory.heap->memory.period_ns = 0;
    EXPECT_LE(growth_for(sizes[0]), span_pages_max);
    EXPECT_FALSE(rests_with(sizes[1]));
    EXPECT_LE(growth_for(sizes[1]), span_pages_max);
    expect_sound();
}

// Their blocks then come back to it, and not one by one to the persistent metadata.
TEST_F(heap_cached_resting, keeps_spans_without_room) {
    std::vector<char *> full;
    std::thread([&] {
        for (size_t i = 0; i < count; i++)
            full.push_back(allocate(sizes[0]));
    }).join();
    memory.heap->memory.period_ns = 0;
    growth_for(sizes[0]);
    EXPECT_TRUE(rests_with(sizes[0]));
    for (char *block : full)
        EXPECT_EQ(release(block), TY_OK);
    EXPECT_GT(reinterpret_cast<uintptr_t>(resting->remote_queue.load()), 1u) << "nothing came, or it is shut";
    expect_sound();
}

// R2: somebody frees a block of a span that is just given up: it has been counted, and is seen only then.
TEST_F(heap_cached_resting, a_block_freed_meanwhile_is_not_lost) {
    const ty_heap *heap = memory.heap;
    uint32_t size_class = heap->class_of[(sizes[0] + 7) / 8];
    small_block block = small_block_at(heap, size_class, static_cast<uint64_t>(live - heap->base));
    uint32_t number = number_of(heap, block.head);
    span_state &state = heap->states[number];
    ASSERT_EQ(state.owner.load(), resting);
    state.pending.fetch_add(1);
    resting->remote[size_class].store(number);
    // It sets its bit when the queue is taken over, or at the end: a later give-up would take it from there.
    std::atomic<bool> over{false}, queued{false};
    std::thread other([&] {
        while (state.owner.load() == resting)
            std::this_thread::yield();
        for (int empty = 0; empty < 1000 && !over; ++empty) // a give-up that comes again empties it for a moment
            if (resting->remote[size_class].load() != 0)
                empty = 0;
        queued = resting->remote[size_class].load() != 0;
        remote_of(heap, block.head)[block.index / 64].fetch_or(uint64_t{1} << block.index % 64);
    });
    kept.clear();
    growth_for(sizes[0]);
    over = true;
    other.join();
    EXPECT_FALSE(queued) << "a cache that gave up its spans has one of them in its queue";
    EXPECT_EQ(state.pending.load(), 0u);
    expect_sound();
}

// R5: what rests stays within a bound, and what others free there is free for all who look.
TEST_F(heap_cached, many_threads_that_end_at_once) {
    std::atomic<char *> blocks[2 * resting_max] = {};
    std::atomic<size_t> arrived{0};
    std::vector<std::thread> threads;
    for (auto &block : blocks)
        threads.emplace_back([&] {
            block = allocate(200);
            arrived++;
            while (arrived != std::size(blocks)) // so that none of them has another one's cache
                std::this_thread::yield();
        });
    for (std::thread &each : threads)
        each.join();
    EXPECT_EQ(memory.heap->resting_count.load(), resting_max);
    for (auto &block : blocks)
        ASSERT_EQ(release(block), TY_OK);
    expect_empty();
}

// As many caches rest as may: that of the next thread that ends gives up what it has, and shuts its remote-free queue
// (R3).
class heap_cached_full : public heap_cached {
protected:
    // Each has a cache before the others rest, and waits for its turn: so none takes another's over.
    struct worker {
        explicit worker(heap_cached_full &test)
            : thread([this, &test] {
                  test.release(test.allocate(100));
                  started.count_down();
                  turn.wait();
                  work();
              }) {
            started.wait();
        }
        void end(const std::function<void()> &what) {
            work = what;
            turn.count_down();
            thread.join();
        }
        std::function<void()> work;
        std::latch started{1}, turn{1};
        std::thread thread;
    };

    heap_cached_full() { release(allocate(100)); }
    void let_others_rest() {
        std::vector<std::unique_ptr<worker>> others;
        for (uint32_t i = 0; i < resting_max; i++)
            others.push_back(std::make_unique<worker>(*this));
        for (auto &other : others)
            other->end([] {});
        ASSERT_EQ(memory.heap->resting_count.load(), resting_max);
    }
};

TEST_F(heap_cached_full, what_came_to_a_thread_that_ends_is_free) {
    worker owner(*this), other(*this);
    let_others_rest();
    std::vector<char *> blocks;
    std::latch allocated{1}, freed{1};
    std::thread sender([&] {
        allocated.wait();
        other.end([&] {
            for (char *block : blocks)
                EXPECT_EQ(release(block), TY_OK);
        });
        freed.count_down();
    });
    owner.end([&] {
        for (int i = 0; i < 500; i++)
            blocks.push_back(allocate(100));
        allocated.count_down();
        freed.wait();
    });
    sender.join();
    expect_empty();
}

TEST_F(heap_cached_full, what_is_sent_to_a_thread_that_ended_is_free) {
    worker owner(*this), other(*this);
    let_others_rest();
    std::vector<char *> blocks;
    std::latch allocated{1}, gathered{1}, owner_ended{1};
    std::thread sender([&] {
        other.end([&] {
            allocated.wait();
            for (char *block : blocks)
                EXPECT_EQ(release(block), TY_OK);
            gathered.count_down();
            owner_ended.wait(); // what is gathered is sent when this thread ends
        });
    });
    owner.end([&] {
        for (int i = 0; i < 10; i++)
            blocks.push_back(allocate(100));
        allocated.count_down();
        gathered.wait();
    });
    owner_ended.count_down();
    sender.join();
    expect_empty();
}

#if !defined(__SANITIZE_THREAD__) // does not follow a fork of one of several threads
// R5: in a forked child a cache that rested gives up what it has, as those of other threads do.
TEST_F(heap_cached, nothing_rests_in_a_forked_child) {
    std::thread([&] { release(allocate(100)); }).join();
    ASSERT_EQ(memory.heap->resting_count.load(), 1u);
    pid_t child = fork();
    if (child == 0) {
        bool none = memory.heap->resting_caches == nullptr && memory.heap->resting_count.load() == 0;
        _exit(none && release(allocate(100)) == TY_OK && problems_of(memory.heap).empty() ? 0 : 1);
    }
    int result = -1;
    ASSERT_EQ(waitpid(child, &result, 0), child);
    EXPECT_EQ(result, 0);
    expect_empty();
}
#endif

// Threads end while others free their blocks: what finds an remote-free queue shut goes to the persistent metadata
// (R3), where whoever queues a span with one that ends looks after it (R2).
TEST_F(heap_cached, threads_that_end_while_others_free) {
    struct alignas(64) slot {
        std::atomic<char *> block{nullptr};
    };
    std::vector<slot> slots(256);
#if defined(__SANITIZE_THREAD__)
    constexpr int lives = 60;
#else
    constexpr int lives = 300;
#endif
    auto live_once = [&](uint64_t seed) {
        random_source random{seed};
        for (int i = 0; i < 2000; i++) {
            size_t size = 16 + random.below(400);
            char *block = allocate(size);
            ASSERT_NE(block, nullptr);
            memset(block, static_cast<int>(size), size);
            block = slots[random.below(slots.size())].block.exchange(block, std::memory_order_acq_rel);
            if (block != nullptr) {
                ASSERT_EQ(release(block), TY_OK) << ty_error_text();
            }
        }
    };
    auto live_often = [&](uint64_t seed) {
        for (int i = 0; i < lives; i++)
            std::thread(live_once, seed * 1000 + static_cast<uint64_t>(i)).join();
    };
    std::thread first(live_often, 1), second(live_often, 2), third(live_often, 3);
    for (int i = 0; i < 20; i++)
        EXPECT_EQ(problems_of(memory.heap), "");
    first.join();
    second.join();
    third.join();
    for (slot &each : slots)
        if (char *block = each.block.load()) {
            ASSERT_EQ(release(block), TY_OK);
        }
    expect_empty();
}

TEST_F(heap_cached, one_heap_a_process) {
    memory_heap other(TY_CLASSES_DENSE);
    EXPECT_EQ(use_magazines(other.heap, note_wrong_free), TY_E_BUSY);
    void *block = heap_alloc(other.heap, 100);
    EXPECT_EQ(heap_free(block), TY_OK) << "it works as before";
    // A block of the one is no block of the other.
    char *held = allocate(100);
    EXPECT_EQ(heap_free(held), TY_OK) << "the library's own call";
    EXPECT_EQ(stats().live_blocks, 0u);
}

} // namespace
} // namespace taiyen::test
