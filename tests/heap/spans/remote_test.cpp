// Goal: a block that two threads free at the same instant is freed once: the other is refused, no count stays, and its
// owner goes on and ends.
// Method: a thread that has found the block live and is held there is played by calling what it calls next
// (free_remotely) after the other thread is done, or after the owner has gone on as well. And threads that do free
// blocks at the same instant, many times.
#include "../heap_fixture.hpp"
#include "../worker.hpp"
#include "src/heap/spans/spans.hpp"

namespace taiyen::test {
namespace {

struct place {
    thread_cache *owner;
    uint32_t number;
    word_blocks block;
};
place place_of(ty_heap *heap, const void *block) {
    uint64_t offset = static_cast<uint64_t>(static_cast<const char *>(block) - heap->base);
    small_block found = small_block_at(heap, heap->descriptors[offset / page_bytes].size_class, offset);
    uint32_t number = number_of(heap, found.head);
    return {heap->states[number].owner.load(), number, {found.head, found.index / 64, uint64_t{1} << found.index % 64}};
}
bool free_late(ty_heap *heap, const place &at) {
    return free_remotely(heap, at.owner, at.number, at.block).freed;
}

struct remote_free : testing::Test {
    memory_heap memory{TY_CLASSES_CACHE_LINE};
    ty_heap *heap = memory.heap;
    worker owner;
    void *block = nullptr;
    place at{};

    remote_free() {
        owner.run([this] {
            for (int i = 0; i < 10; i++)
                block = heap_alloc(heap, 64);
        });
        at = place_of(heap, block);
    }
    const span_state &state() const { return heap->states[at.number]; }
    // What its queue holds becomes part of the persistent metadata.
    void flush() {
        owner.run([this] { flush_remote(at.owner, state().size_class); });
    }
    void expect_sound(size_t live) {
        EXPECT_EQ(state().pending.load(), 0u);
        EXPECT_EQ(state().refused.load(), 0u);
        owner.end(); // does not wait for a count that never comes back
        ty_heap_stats stats{};
        ASSERT_EQ(heap_get_stats(heap, &stats), TY_OK);
        EXPECT_EQ(stats.live_blocks, live);
        EXPECT_EQ(problems_of(heap), "");
    }
};

TEST_F(remote_free, at_the_same_instant_as_another) {
    EXPECT_EQ(heap_free(block), TY_OK);
    EXPECT_FALSE(free_late(heap, at));
    EXPECT_EQ(heap_free(block), TY_E_ARGUMENT);
    flush();
    expect_sound(9);
}

TEST_F(remote_free, when_the_owner_has_flushed) {
    EXPECT_EQ(heap_free(block), TY_OK);
    flush();
    EXPECT_FALSE(free_late(heap, at));
    flush();
    expect_sound(9);
}

// The first to count is refused; it queues the span for who came while it counted.
TEST_F(remote_free, the_refused_one_queues_for_another) {
    EXPECT_EQ(heap_free(block), TY_OK);
    flush();
    EXPECT_FALSE(free_late(heap, at));
    EXPECT_EQ(heap_free(static_cast<char *>(block) - 64), TY_OK);
    EXPECT_EQ(state().pending.load(), 2u);
    flush();
    expect_sound(8);
}

TEST_F(remote_free, when_one_of_several_is_freed) {
    EXPECT_EQ(heap_free(block), TY_OK);
    place both = at;
    both.block.mask |= both.block.mask >> 1; // and its neighbour
    EXPECT_FALSE(free_late(heap, both));
    EXPECT_EQ(heap_free(static_cast<char *>(block) - 64), TY_E_ARGUMENT) << "it was freed all the same";
    flush();
    expect_sound(8);
}

TEST_F(remote_free, when_the_span_is_gone) {
    owner.end(); // gives it up
    for (int i = 1; i < 10; i++)
        EXPECT_EQ(heap_free(static_cast<char *>(block) - 64 * i), TY_OK);
    EXPECT_EQ(heap_free(block), TY_OK);
    EXPECT_EQ(state().head, 0u);
    EXPECT_FALSE(free_late(heap, at));
    EXPECT_EQ(state().pending.load(), pending_gone);
    EXPECT_EQ(problems_of(heap), "");
}

TEST_F(remote_free, when_the_number_is_another_spans) {
    owner.end();
    for (int i = 0; i < 10; i++)
        EXPECT_EQ(heap_free(static_cast<char *>(block) - 64 * i), TY_OK);
    worker next;
    char *others[64];
    next.run([&] {
        void *barred = heap_alloc(heap, 5 * page_bytes); // so that the span does not start where the one before did
        for (char *&other : others)
            other = static_cast<char *>(heap_alloc(heap, 256));
        EXPECT_EQ(heap_free(barred), TY_OK);
    });
    ASSERT_EQ(number_of(heap, static_cast<uint64_t>(others[0] - heap->base) / page_bytes), at.number);
    ASSERT_NE(state().head, at.block.head);
    EXPECT_FALSE(free_late(heap, at));
    for (const char *other : others)
        EXPECT_EQ(heap_usable_size(other), 256u);
    next.run([&] { flush_remote(state().owner.load(), state().size_class); });
    EXPECT_EQ(state().pending.load(), 0u);
    for (char *other : others)
        EXPECT_EQ(heap_free(other), TY_OK);
    next.end();
    EXPECT_EQ(problems_of(heap), "");
}

// Each pair of frees starts together. The owner sleeps, so that the block is not allocated again in between.
TEST_F(remote_free, by_two_threads_at_once_succeeds_once) {
    constexpr int rounds = 2'000;
    std::barrier start(2);
    std::atomic<int> succeeded{0};
    auto free_all = [&] {
        for (int round = 0; round < rounds; round++) {
            start.arrive_and_wait();
            succeeded += heap_free(block) == TY_OK;
            start.arrive_and_wait();
            start.arrive_and_wait();
        }
    };
    std::thread second(free_all);
    for (int round = 0; round < rounds; round++) {
        start.arrive_and_wait();
        succeeded += heap_free(block) == TY_OK;
        start.arrive_and_wait();
        ASSERT_EQ(succeeded, round + 1);
        owner.run([&] { block = heap_alloc(heap, 64); });
        start.arrive_and_wait();
    }
    second.join();
    flush();
    at = place_of(heap, block);
    expect_sound(10);
}

// The same of a span that has lost its owner.
TEST_F(remote_free, by_two_threads_at_once_of_an_unowned_span) {
    owner.end();
    std::atomic<int> succeeded{0};
    for (int i = 0; i < 10; i++) {
        std::barrier start(3);
        std::thread threads[3];
        for (std::thread &thread : threads)
            thread = std::thread([&] {
                start.arrive_and_wait();
                succeeded += heap_free(static_cast<char *>(block) - 64 * i) == TY_OK;
            });
        for (std::thread &thread : threads)
            thread.join();
        ASSERT_EQ(succeeded, i + 1);
    }
    EXPECT_EQ(problems_of(heap), "");
}

} // namespace
} // namespace taiyen::test
