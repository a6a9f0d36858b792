// Goal: every planted misuse of a block is reported with the block, its size and where it was allocated and freed, on
// the kinds of checks that promise it, and what is no misuse is not reported.
// Method: plant each one on a heap whose findings are collected; and random work of several threads, model and all.
#include "fixture.hpp"

#include <atomic>
#include <csignal>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace api_test;

namespace {

struct reported {
    ty_finding finding;
    std::string text;
    std::vector<void *> allocated, freed;
};

std::vector<void *> frames_of(const ty_site &site) {
    return {site.frames, site.frames + site.frame_count};
}

class checked_heap {
public:
    explicit checked_heap(unsigned checks, size_t quarantine_bytes = 0) {
        ty_heap_options options = TY_HEAP_OPTIONS_INIT;
        options.classes = TY_CLASSES_DENSE;
        EXPECT_EQ(ty_heap_create(&options, &heap), TY_OK) << ty_error_text();
        ty_check_options wanted = TY_CHECK_OPTIONS_INIT;
        wanted.checks = checks;
        wanted.quarantine_bytes = quarantine_bytes;
        wanted.found = collect;
        wanted.found_context = this;
        EXPECT_EQ(ty_heap_start_checks(heap, &wanted), TY_OK) << ty_error_text();
    }
    ~checked_heap() { end(); }
    checked_heap(const checked_heap &) = delete;
    checked_heap &operator=(const checked_heap &) = delete;
    void end() {
        EXPECT_EQ(ty_heap_destroy(heap), TY_OK);
        heap = nullptr;
    }
    char *make(size_t size) {
        char *block = static_cast<char *>(ty_alloc(heap, size));
        EXPECT_NE(block, nullptr) << ty_error_text();
        memset(block, 'x', size);
        return block;
    }
    // The only finding since the last look.
    reported only() {
        EXPECT_EQ(found.size(), 1u);
        if (found.size() != 1)
            return {};
        reported one = found[0];
        found.clear();
        return one;
    }

    ty_heap *heap = nullptr;
    std::mutex lock;
    std::vector<reported> found;

private:
    static void collect(const ty_finding *finding, void *context) {
        auto &self = *static_cast<checked_heap *>(context);
        std::lock_guard guard(self.lock);
        self.found.push_back({*finding, finding->text, frames_of(finding->allocated), frames_of(finding->freed)});
    }
};

uint64_t own_thread() {
    return static_cast<uint64_t>(syscall(SYS_gettid));
}

[[gnu::noinline]] char *site_one(checked_heap &heap, size_t size) {
    char *block = heap.make(size);
    asm volatile("" ::: "memory"); // a frame of its own
    return block;
}

bool in_function(const std::vector<void *> &frames, char *(*function)(checked_heap &, size_t)) {
    uintptr_t start = reinterpret_cast<uintptr_t>(function);
    for (void *frame : frames)
        if (reinterpret_cast<uintptr_t>(frame) - start < 400)
            return true;
    return false;
}

void expect_block(const reported &one, ty_finding_kind kind, const char *block, size_t size) {
    EXPECT_EQ(one.finding.kind, kind) << one.text;
    EXPECT_EQ(one.finding.block, block) << one.text;
    EXPECT_EQ(one.finding.size_bytes, size) << one.text;
    char words[64];
    snprintf(words, sizeof words, "block at %p of %zu byte%s", static_cast<const void *>(block), size,
             size == 1 ? "" : "s");
    EXPECT_NE(one.text.find(words), std::string::npos) << one.text;
}

constexpr size_t sizes[] = {1, 7, 8, 13, 16, 100, 1000, 4096, 5000, 20'000, 100'000};

void expect_overruns(unsigned checks) {
    for (size_t size : sizes) {
        checked_heap heap(checks | TY_CHECK_SITES);
        char *block = site_one(heap, size);
        block[size] = 0;
        EXPECT_EQ(ty_free(block), TY_OK);
        reported after = heap.only();
        expect_block(after, TY_FINDING_WRITE_BEHIND, block, size);
        EXPECT_EQ(after.finding.address, block + size);
        EXPECT_EQ(after.finding.allocated.thread, own_thread());
        EXPECT_TRUE(in_function(after.allocated, site_one)) << after.text;
        block = site_one(heap, size);
        block[-1] = 0;
        EXPECT_EQ(ty_free(block), TY_OK);
        reported before = heap.only();
        expect_block(before, TY_FINDING_WRITE_BEFORE, block, size);
        EXPECT_EQ(before.finding.address, block - 1);
        EXPECT_TRUE(in_function(before.allocated, site_one)) << before.text;
    }
}

} // namespace

TEST(checks, writes_past_either_end_are_found_when_the_block_is_freed) {
    expect_overruns(TY_CHECK_BOUNDS);
}

TEST(checks, writes_past_the_ends_are_found_by_resize_verify_and_the_heaps_end) {
    checked_heap heap(TY_CHECK_BOUNDS);
    char *block = heap.make(50);
    block[50] = 1;
    char *moved = static_cast<char *>(ty_resize(block, 80));
    expect_block(heap.only(), TY_FINDING_WRITE_BEHIND, block, 50);
    EXPECT_NE(moved, block);
    EXPECT_EQ(std::string(moved, 50), std::string(50, 'x'));
    EXPECT_EQ(ty_heap_verify(heap.heap, nullptr, nullptr), TY_OK) << ty_error_text();
    moved[-3] = 1;
    std::string problems;
    EXPECT_EQ(ty_heap_verify(
                  heap.heap, [](const char *text, void *all) { *static_cast<std::string *>(all) += text; }, &problems),
              TY_E_DAMAGED);
    EXPECT_NE(problems.find("before the block at"), std::string::npos) << problems;
    EXPECT_TRUE(heap.found.empty());
    heap.end();
    reported last = heap.only();
    expect_block(last, TY_FINDING_WRITE_BEFORE, moved, 80);
    EXPECT_EQ(last.finding.address, moved - 3);
}

TEST(checks, a_shrunk_block_has_bounds_at_its_new_end) {
    checked_heap heap(TY_CHECK_BOUNDS);
    char *block = heap.make(200);
    EXPECT_EQ(ty_resize(block, 20), block);
    EXPECT_EQ(ty_usable_size(block), 20u);
    EXPECT_EQ(ty_resize_in_place(block, 5000), TY_E_MEMORY);
    block[20] = 0;
    EXPECT_EQ(ty_free(block), TY_OK);
    expect_block(heap.only(), TY_FINDING_WRITE_BEHIND, block, 20);
}

TEST(checks, frees_of_what_is_no_live_block) {
    for (int other : {0, int{TY_CHECK_FREED}, int{TY_CHECK_BOUNDS}, int{TY_CHECK_GUARD_PAGES}})
        for (size_t size : {size_t{24}, size_t{3000}, size_t{30'000}}) {
            checked_heap heap(static_cast<unsigned>(other) | TY_CHECK_SITES);
            char *block = site_one(heap, size);
            EXPECT_EQ(ty_free(block + 8), TY_E_ARGUMENT);
            reported interior = heap.only();
            expect_block(interior, TY_FINDING_INTERIOR_FREE, block, size);
            EXPECT_EQ(interior.finding.address, block + 8);
            EXPECT_TRUE(in_function(interior.allocated, site_one)) << interior.text;
            EXPECT_EQ(ty_resize(block + 8, 10), nullptr);
            EXPECT_EQ(heap.only().finding.kind, TY_FINDING_INTERIOR_FREE);

            EXPECT_EQ(ty_free(block), TY_OK);
            EXPECT_TRUE(heap.found.empty());
            EXPECT_EQ(ty_free(block), TY_E_ARGUMENT);
            EXPECT_NE(strstr(ty_error_text(), "freed already"), nullptr) << ty_error_text();
            reported twice = heap.only();
            expect_block(twice, TY_FINDING_FREED_TWICE, block, size);
            EXPECT_TRUE(in_function(twice.allocated, site_one)) << twice.text;
            EXPECT_FALSE(twice.freed.empty());
            EXPECT_EQ(twice.finding.freed.thread, own_thread());
            EXPECT_EQ(ty_usable_size(block), 0u);

            void *wild = static_cast<char *>(ty_heap_base(heap.heap)) + (size_t{1} << 34);
            EXPECT_EQ(ty_free(wild), TY_E_ARGUMENT);
            reported nowhere = heap.only();
            EXPECT_EQ(nowhere.finding.kind, TY_FINDING_WILD_FREE);
            EXPECT_EQ(nowhere.finding.address, wild);
            EXPECT_EQ(nowhere.finding.block, nullptr);
        }
}

TEST(checks, writes_into_freed_blocks) {
    checked_heap heap(TY_CHECK_FREED | TY_CHECK_SITES, 64 << 10);
    char *block = site_one(heap, 100);
    EXPECT_EQ(ty_free(block), TY_OK);
    block[42] = 1;
    EXPECT_EQ(ty_heap_verify(heap.heap, nullptr, nullptr), TY_E_DAMAGED);
    for (int i = 0; i < 1000 && heap.found.empty(); i++)
        EXPECT_EQ(ty_free(heap.make(200)), TY_OK);
    reported one = heap.only();
    expect_block(one, TY_FINDING_WRITE_FREED, block, 100);
    EXPECT_EQ(one.finding.address, block + 42);
    EXPECT_TRUE(in_function(one.allocated, site_one)) << one.text;
    EXPECT_FALSE(one.freed.empty());

    block = site_one(heap, 100); // and at the heap's end
    EXPECT_EQ(ty_free(block), TY_OK);
    block[0] = 1;
    heap.end();
    expect_block(heap.only(), TY_FINDING_WRITE_FREED, block, 100);
}

TEST(checks, leaks_of_four_threads_by_site_and_bytes) {
    checked_heap heap(TY_CHECK_LEAKS);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; t++)
        threads.emplace_back([&] {
            static_cast<void>(site_one(heap, 100));
            EXPECT_EQ(ty_free(heap.make(77)), TY_OK);
        });
    for (std::thread &thread : threads)
        thread.join();
    char *own = heap.make(10);

    struct uses {
        std::vector<ty_site_use> all;
        std::vector<std::vector<void *>> frames;
    } seen;
    EXPECT_EQ(ty_each_site(
                  heap.heap,
                  [](const ty_site_use *use, void *context) {
                      auto &into = *static_cast<uses *>(context);
                      into.all.push_back(*use);
                      into.frames.push_back(frames_of(use->site));
                      return true;
                  },
                  &seen),
              TY_OK)
        << ty_error_text();
    ASSERT_EQ(seen.all.size(), 2u);
    EXPECT_EQ(seen.all[0].block_count, 4u);
    EXPECT_EQ(seen.all[0].total_bytes, 400u);
    EXPECT_EQ(seen.all[0].site.thread, 0u) << "several threads";
    EXPECT_TRUE(in_function(seen.frames[0], site_one));
    EXPECT_EQ(seen.all[1].block, own);
    EXPECT_EQ(seen.all[1].site.thread, own_thread());

    heap.end();
    ASSERT_EQ(heap.found.size(), 2u);
    const reported &leak = heap.found[0];
    EXPECT_EQ(leak.finding.kind, TY_FINDING_LEAK);
    EXPECT_EQ(leak.finding.block_count, 4u);
    EXPECT_EQ(leak.finding.total_bytes, 400u);
    EXPECT_EQ(leak.finding.size_bytes, 100u);
    EXPECT_TRUE(in_function(leak.allocated, site_one)) << leak.text;
    EXPECT_NE(leak.text.find("4 blocks of 400 bytes in all were not freed"), std::string::npos) << leak.text;
}

TEST(checks, what_is_freed_is_no_leak_and_the_heap_is_one_free_run_again) {
    checked_heap heap(TY_CHECK_LEAKS | TY_CHECK_BOUNDS | TY_CHECK_FREED);
    std::vector<char *> blocks;
    for (size_t size : sizes)
        blocks.push_back(heap.make(size));
    for (char *block : blocks)
        EXPECT_EQ(ty_free(block), TY_OK);
    ty_heap_stats stats{};
    stats.struct_size = sizeof stats;
    ASSERT_EQ(ty_heap_get_stats(heap.heap, &stats), TY_OK);
    EXPECT_EQ(stats.live_blocks, 0u) << "the quarantine is not live";
    EXPECT_EQ(stats.live_bytes, 0u);
    heap.end();
    EXPECT_TRUE(heap.found.empty()) << heap.found[0].text;
}

// A block that the quarantine has no room for is freed at once, and its record with it (C1): nobody takes the next
// block at its place for the one before.
TEST(checks, what_is_too_large_for_the_quarantine_is_gone_at_once) {
    checked_heap heap(TY_CHECK_LEAKS | TY_CHECK_BOUNDS, 16384);
    for (size_t size : {size_t{300'000}, size_t{200'000}, size_t{100}}) {
        char *block = heap.make(size);
        EXPECT_EQ(ty_usable_size(block), size);
        EXPECT_EQ(ty_free(block), TY_OK) << ty_error_text();
        EXPECT_EQ(ty_heap_verify(heap.heap, nullptr, nullptr), TY_OK) << ty_error_text();
    }
    heap.end();
    EXPECT_TRUE(heap.found.empty()) << heap.found[0].text;
}

TEST(checks, blocks_are_seen_as_they_were_asked_for) {
    for (unsigned checks : {unsigned{TY_CHECK_BOUNDS}, unsigned{TY_CHECK_GUARD_PAGES}, unsigned{TY_CHECK_FREED}}) {
        checked_heap heap(checks);
        std::map<void *, size_t> live;
        for (size_t size : sizes)
            live[heap.make(size)] = size;
        for (size_t alignment : {size_t{64}, size_t{4096}, size_t{1} << 21}) {
            void *block = ty_alloc_aligned(heap.heap, 100, alignment);
            EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % alignment, 0u);
            live[block] = 100;
        }
        void *zeroed = ty_alloc_zeroed(heap.heap, 5000);
        EXPECT_EQ(std::string(static_cast<char *>(zeroed), 5000), std::string(5000, '\0'));
        live[zeroed] = 5000;
        EXPECT_EQ(ty_free(heap.make(300)), TY_OK);
        std::map<void *, size_t> seen;
        EXPECT_EQ(ty_each_block(
                      heap.heap,
                      [](const ty_block *block, void *all) {
                          (*static_cast<std::map<void *, size_t> *>(all))[block->address] = block->size_bytes;
                          return true;
                      },
                      &seen),
                  TY_OK);
        EXPECT_EQ(seen, live);
        for (auto [address, size] : live) {
            EXPECT_EQ(reinterpret_cast<uintptr_t>(address) % 16, 0u);
            EXPECT_EQ(ty_usable_size(address), size);
            ty_block block;
            EXPECT_EQ(ty_block_of(static_cast<char *>(address) + size - 1, &block), TY_OK);
            EXPECT_EQ(block.address, address);
            EXPECT_EQ(ty_free(address), TY_OK);
        }
        EXPECT_TRUE(heap.found.empty()) << heap.found[0].text;
    }
}

TEST(checks, what_a_checked_heap_has_not) {
    checked_heap heap(TY_CHECK_BOUNDS);
    expect_refusal(ty_alloc_at(heap.heap, static_cast<char *>(ty_heap_base(heap.heap)) + 65536, 100), TY_E_UNSUPPORTED,
                   "it is checked");
    expect_refusal(ty_undo_attach(heap.heap, nullptr), TY_E_UNSUPPORTED, "it is checked");
    auto none = [](const ty_site_use *, void *) { return true; };
    expect_refusal(ty_each_site(heap.heap, none, nullptr), TY_E_UNSUPPORTED, "TY_CHECK_SITES");
    ty_check_options options = TY_CHECK_OPTIONS_INIT;
    expect_refusal(ty_heap_start_checks(heap.heap, &options), TY_E_BUSY, "in use");
    options.checks = 1u << 20;
    expect_refusal(ty_heap_start_checks(heap.heap, &options), TY_E_ARGUMENT, "0x100000");
}

#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__) // they have handlers of their own for faults
namespace {

// Runs a function that is to die of SIGSEGV, and gives what it reported on standard error before.
template <class Function>
void expect_fault(Function plant, const char *words) {
    EXPECT_EXIT(
        {
            plant();
            _exit(0);
        },
        testing::KilledBySignal(SIGSEGV), words);
}

void with_guards(void (*misuse)(char *block)) {
    ty_check_options options = TY_CHECK_OPTIONS_INIT;
    options.checks = TY_CHECK_GUARD_PAGES | TY_CHECK_SITES;
    ty_heap *heap;
    if (ty_heap_create(nullptr, &heap) == TY_OK && ty_heap_start_checks(heap, &options) == TY_OK)
        misuse(static_cast<char *>(ty_alloc(heap, 4000)));
}

volatile char sink;

} // namespace

TEST(checks_death, accesses_to_guard_pages_and_freed_blocks) {
    expect_fault([] { with_guards([](char *block) { block[4000] = 1; }); },
                 "a write at 0x[0-9a-f]+, 1 byte after the end of the block at 0x[0-9a-f]+ of 4000 bytes"
                 "(.|\n)*allocated by thread");
    expect_fault([] { with_guards([](char *block) { sink = block[4100]; }); }, "a read at .*101 bytes after the end");
    expect_fault(
        [] {
            with_guards([](char *block) {
                static_cast<void>(ty_free(block));
                sink = block[17];
            });
        },
        "a read at 0x[0-9a-f]+ after the free, at byte 17 of the block at(.|\n)*allocated by(.|\n)*freed by thread");
}

TEST(checks_death, without_a_callback_the_text_goes_to_standard_error) {
    ty_check_options options = TY_CHECK_OPTIONS_INIT;
    options.checks = TY_CHECK_BOUNDS;
    ty_heap *heap;
    ASSERT_EQ(ty_heap_create(nullptr, &heap), TY_OK);
    ASSERT_EQ(ty_heap_start_checks(heap, &options), TY_OK) << ty_error_text();
    char *block = static_cast<char *>(ty_alloc(heap, 30));
    EXPECT_DEATH(
        {
            block[30] = 0;
            static_cast<void>(ty_free(block));
        },
        "taiyen: a write at 0x[0-9a-f]+, 1 byte after the end of the block at 0x[0-9a-f]+ of 30 bytes, noticed by "
        "its free");
    EXPECT_EQ(ty_heap_destroy(heap), TY_OK);
}
#endif

TEST(checks, guard_pages_find_writes_before_the_block_when_it_is_freed) {
    for (size_t size : sizes) {
        checked_heap heap(TY_CHECK_GUARD_PAGES | TY_CHECK_SITES);
        char *block = site_one(heap, size);
        block[-1] = 0;
        EXPECT_EQ(ty_free(block), TY_OK);
        expect_block(heap.only(), TY_FINDING_WRITE_BEFORE, block, size);
        if (size % 16 == 0)
            continue;
        block = site_one(heap, size); // what alignment leaves before the page
        block[size] = 0;
        EXPECT_EQ(ty_free(block), TY_OK);
        expect_block(heap.only(), TY_FINDING_WRITE_BEHIND, block, size);
    }
}

TEST(checks, random_work_of_threads_finds_nothing) {
    for (unsigned checks : {0u | TY_CHECK_BOUNDS | TY_CHECK_FREED | TY_CHECK_LEAKS, 0u | TY_CHECK_GUARD_PAGES}) {
        checked_heap heap(checks, 1 << 20);
        std::mutex lock;
        std::vector<std::pair<char *, size_t>> shared;
        auto work = [&](unsigned seed) {
            for (int i = 0; i < 2000; i++) {
                seed = seed * 1664525 + 1013904223;
                size_t size = seed >> 8 & (seed & 0x80 ? 0xffff : 0xff);
                char *block = heap.make(size);
                if (seed >> 30 == 0) {
                    block = static_cast<char *>(ty_resize(block, size * 2 + 1));
                    size = size * 2 + 1;
                    memset(block, 'y', size);
                }
                std::lock_guard guard(lock);
                shared.push_back({block, size});
                size_t other = seed % shared.size();
                EXPECT_EQ(ty_usable_size(shared[other].first), shared[other].second ? shared[other].second : 1);
                if (seed & 0x10000 || shared.size() > 300) {
                    EXPECT_EQ(ty_free(shared[other].first), TY_OK) << ty_error_text();
                    shared[other] = shared.back();
                    shared.pop_back();
                }
            }
        };
        std::vector<std::thread> threads;
        for (unsigned t = 0; t < 3; t++)
            threads.emplace_back(work, t * 7919 + 1);
        for (int i = 0; i < 5; i++)
            EXPECT_EQ(ty_heap_verify(heap.heap, nullptr, nullptr), TY_OK) << ty_error_text();
        for (std::thread &thread : threads)
            thread.join();
        EXPECT_EQ(ty_heap_verify(heap.heap, nullptr, nullptr), TY_OK) << ty_error_text();
        for (auto [block, size] : shared)
            EXPECT_EQ(ty_free(block), TY_OK) << ty_error_text();
        heap.end();
        EXPECT_TRUE(heap.found.empty()) << heap.found[0].text;
    }
}
