// Goal: limits hold by the pages that blocks lie in, truthfully; the soft one reports once each time that it is passed;
// statistics by class and by thread add up to those of the heap.
// Method: allocate up to the limits with blocks of all kinds; compare with what iteration and verify count.
#include "fixture.hpp"

#include <atomic>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

using namespace api_test;

namespace {

class plain_heap {
public:
    plain_heap() { EXPECT_EQ(ty_heap_create(nullptr, &heap), TY_OK) << ty_error_text(); }
    ~plain_heap() { EXPECT_EQ(ty_heap_destroy(heap), TY_OK); }
    plain_heap(const plain_heap &) = delete;
    plain_heap &operator=(const plain_heap &) = delete;
    ty_heap_stats stats() {
        ty_heap_stats all{};
        all.struct_size = sizeof all;
        EXPECT_EQ(ty_heap_get_stats(heap, &all), TY_OK) << ty_error_text();
        return all;
    }
    void set(size_t soft, size_t hard) {
        ty_heap_limits limits = TY_HEAP_LIMITS_INIT;
        limits.soft_bytes = soft;
        limits.hard_bytes = hard;
        limits.reached = [](ty_heap *, size_t used, void *self) {
            static_cast<plain_heap *>(self)->reported.push_back(used);
        };
        limits.context = this;
        EXPECT_EQ(ty_heap_set_limits(heap, &limits), TY_OK) << ty_error_text();
    }
    ty_heap *heap = nullptr;
    std::vector<size_t> reported;
};

} // namespace

TEST(limits, the_hard_limit_holds_for_small_and_large_blocks_and_resizes) {
    for (size_t size : {size_t{16}, size_t{700}, size_t{10'000}, size_t{300'000}}) {
        plain_heap heap;
        constexpr size_t limit = size_t{4} << 20;
        heap.set(0, limit);
        std::vector<void *> blocks;
        while (void *block = ty_alloc(heap.heap, size))
            blocks.push_back(block);
        EXPECT_NE(strstr(ty_error_text(), "hard limit"), nullptr) << ty_error_text();
        ty_error detail;
        ty_error_detail(&detail);
        EXPECT_EQ(detail.status, TY_E_MEMORY);
        ty_heap_stats stats = heap.stats();
        EXPECT_LE(stats.used_bytes, limit);
        EXPECT_GT(stats.used_bytes + size + 16 * 4096, limit) << "all of it can be had";
        EXPECT_GE(stats.used_bytes, stats.live_bytes);
        EXPECT_EQ(ty_heap_verify(heap.heap, nullptr, nullptr), TY_OK) << ty_error_text();
        EXPECT_EQ(ty_resize(blocks[0], limit), nullptr);
        for (void *block : blocks)
            EXPECT_EQ(ty_free(block), TY_OK);
        EXPECT_EQ(heap.stats().used_bytes, 0u);
        EXPECT_EQ(ty_heap_verify(heap.heap, nullptr, nullptr), TY_OK) << ty_error_text();
        void *all = ty_alloc(heap.heap, limit);
        ASSERT_NE(all, nullptr) << ty_error_text();
        EXPECT_EQ(ty_resize_in_place(all, limit + 1), TY_E_MEMORY);
        EXPECT_EQ(ty_resize_in_place(all, limit / 2), TY_OK);
        EXPECT_EQ(heap.stats().used_bytes, limit / 2);
        EXPECT_EQ(ty_resize_in_place(all, limit), TY_OK) << ty_error_text();
        EXPECT_EQ(ty_heap_verify(heap.heap, nullptr, nullptr), TY_OK) << ty_error_text();
        EXPECT_EQ(ty_free(all), TY_OK);
    }
}

TEST(limits, the_soft_limit_reports_each_time_that_it_is_passed) {
    plain_heap heap;
    heap.set(1 << 20, 0);
    void *below = ty_alloc(heap.heap, 512 << 10);
    EXPECT_TRUE(heap.reported.empty());
    void *beyond = ty_alloc(heap.heap, 600 << 10);
    ASSERT_EQ(heap.reported.size(), 1u);
    EXPECT_EQ(heap.reported[0], heap.stats().used_bytes);
    EXPECT_EQ(ty_free(ty_alloc(heap.heap, 1 << 20)), TY_OK);
    EXPECT_EQ(heap.reported.size(), 1u) << "it is beyond it all the time";
    EXPECT_EQ(ty_free(beyond), TY_OK);
    std::vector<void *> small;
    while (heap.reported.size() == 1 && small.size() < 100'000)
        small.push_back(ty_alloc(heap.heap, 100));
    EXPECT_EQ(heap.reported.size(), 2u);
    heap.set(4096, 0);
    EXPECT_EQ(heap.reported.size(), 3u) << "at once, when it is passed already";
    for (void *block : small)
        EXPECT_EQ(ty_free(block), TY_OK);
    EXPECT_NE(ty_resize(below, 2 << 20), nullptr);
    EXPECT_EQ(heap.reported.size(), 3u);
}

TEST(limits, a_resize_can_pass_the_soft_limit) {
    plain_heap heap;
    void *block = ty_alloc(heap.heap, 100'000);
    heap.set(1 << 20, 0);
    EXPECT_NE(ty_resize(block, 3 << 20), nullptr);
    EXPECT_EQ(heap.reported.size(), 1u);
}

TEST(limits, classes_and_threads_add_up) {
    plain_heap heap;
    std::vector<void *> blocks;
    for (size_t size = 1; size < 100'000; size += size / 3 + 1)
        for (int i = 0; i < 5; i++)
            blocks.push_back(ty_alloc(heap.heap, size));
    std::mutex lock;
    std::condition_variable changed;
    int stage = 0;
    std::thread other([&] {
        for (int i = 0; i < 300; i++)
            EXPECT_NE(ty_alloc(heap.heap, 48), nullptr);
        std::unique_lock guard(lock);
        stage = 1;
        changed.notify_all();
        changed.wait(guard, [&] { return stage == 2; });
    });
    {
        std::unique_lock guard(lock);
        changed.wait(guard, [&] { return stage == 1; });
    }
    struct sums {
        ty_class_stats all{};
        size_t last = 0;
        size_t classes = 0;
    } seen;
    EXPECT_EQ(ty_each_class(
                  heap.heap,
                  [](const ty_class_stats *one, void *context) {
                      auto &into = *static_cast<sums *>(context);
                      EXPECT_TRUE(one->block_bytes > into.last || one->block_bytes == 0);
                      EXPECT_LE(one->live_blocks, one->block_count);
                      into.last = one->block_bytes;
                      into.classes++;
                      into.all.span_bytes += one->span_bytes;
                      into.all.live_blocks += one->live_blocks;
                      into.all.live_bytes += one->live_bytes;
                      return true;
                  },
                  &seen),
              TY_OK);
    ty_heap_stats stats = heap.stats();
    EXPECT_GT(seen.classes, 10u);
    EXPECT_EQ(seen.last, 0u) << "blocks of pages come last";
    EXPECT_EQ(seen.all.span_bytes, stats.used_bytes);
    EXPECT_EQ(seen.all.live_blocks, stats.live_blocks);
    EXPECT_EQ(seen.all.live_blocks, blocks.size() + 300);
    EXPECT_EQ(seen.all.live_bytes, stats.live_bytes);

    std::vector<ty_thread_stats> threads;
    EXPECT_EQ(ty_each_thread(
                  heap.heap,
                  [](const ty_thread_stats *one, void *all) {
                      static_cast<std::vector<ty_thread_stats> *>(all)->push_back(*one);
                      return true;
                  },
                  &threads),
              TY_OK);
    ASSERT_EQ(threads.size(), 2u);
    EXPECT_NE(threads[0].thread, threads[1].thread);
    const ty_thread_stats &less = threads[0].spans < threads[1].spans ? threads[0] : threads[1];
    EXPECT_GE(less.span_bytes, 300 * 48u);
    EXPECT_EQ(less.span_bytes / 48 * 48 >= less.free_bytes + 300 * 48, true);
    {
        std::lock_guard guard(lock);
        stage = 2;
        changed.notify_all();
    }
    other.join();
    for (void *block : blocks)
        EXPECT_EQ(ty_free(block), TY_OK);
}
