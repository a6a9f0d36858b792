// Goal: the pages that were noted become private copies, and no others; those that may be copied early are copied
// before the end, by a thread that is gone when the copier has stopped. Method: a mapped file whose pages the kernel
// tracks: it shows which ones were copied.
#include "src/txn/recovery/page_copier.hpp"
#include "tests/os/tracked_memory.hpp"

#include <random>

using namespace taiyen;
using os::members;
using os::page_set;
using os::region;

namespace {

constexpr uint64_t page_count = 5000;
constexpr uint64_t early_count = 3000;

class page_copier_test : public testing::Test {
protected:
    page_copier_test() {
        page_copier::early_min_pages = 16;
        page_copier::copied_min_pages = 32;
    }
    ~page_copier_test() override {
        tracker_.stop();
        copied_.destroy();
        page_copier::early_min_pages = early_min_;
        page_copier::copied_min_pages = copied_min_;
    }
    void SetUp() override {
        ty_status status = tracker_.start(memory_.base, page_count, os::tracker_method::kernel);
        if (status == TY_E_UNSUPPORTED)
            GTEST_SKIP() << "the kernel does not track pages";
        ASSERT_EQ(TY_OK, status);
        ASSERT_EQ(TY_OK, copied_.create(page_count));
    }
    void note(page_copier &copier, uint64_t page) {
        copier.note(page);
        noted_.insert(page);
    }
    void note_some(page_copier &copier, size_t count, uint64_t end) {
        for (size_t i = 0; i < count; ++i)
            note(copier, random_() % end);
    }
    std::set<uint64_t> copied() {
        copied_.clear();
        EXPECT_EQ(TY_OK, tracker_.query(copied_));
        return members(copied_);
    }

    const uint64_t early_min_ = page_copier::early_min_pages;
    const uint64_t copied_min_ = page_copier::copied_min_pages;
    region memory_{os::backing::file, page_count};
    os::tracker tracker_;
    page_set copied_;
    std::set<uint64_t> noted_;
    std::mt19937_64 random_{5};
};

TEST_F(page_copier_test, copies_what_was_noted_and_nothing_else) {
    for (bool threads : {false, true}) {
        page_copier copier;
        ASSERT_EQ(TY_OK, copier.create(page_count, threads, memory_.base, early_count));
        for (int round = 0; round < 50; ++round) {
            note_some(copier, 20, page_count);
            for (uint64_t page = random_() % (page_count - 40), end = page + 40; page < end; ++page)
                note(copier, page);
        }
        copier.stop();
        copier.finish(memory_.base);
        EXPECT_EQ(noted_, copied());
    }
}

TEST_F(page_copier_test, copies_early_only_where_it_may) {
    page_copier copier;
    ASSERT_EQ(TY_OK, copier.create(page_count, true, memory_.base, early_count));
    for (uint64_t page = 0; page < 40; ++page)
        note(copier, page_count - 1 - page);
    for (uint64_t page = 0; page < 16; ++page) // so many make the thread start
        note(copier, early_count - 1 - page);
    while (copied().size() < 16) // the thread copies them while nobody waits for it
        sched_yield();
    EXPECT_EQ(16u, copied().size());
    EXPECT_EQ(early_count - 16, *copied().begin());
    EXPECT_EQ(early_count - 1, *copied().rbegin());
    copier.finish(memory_.base);
    EXPECT_EQ(noted_, copied());
}

TEST_F(page_copier_test, nothing_is_early_without_memory_or_threads) {
    for (bool threads : {false, true}) {
        page_copier copier;
        ASSERT_EQ(TY_OK,
                  copier.create(page_count, threads, threads ? nullptr : memory_.base, threads ? 0 : early_count));
        note_some(copier, 500, page_count);
        copier.stop();
        EXPECT_EQ(0u, copied().size());
    }
}

TEST_F(page_copier_test, a_few_pages_are_left_to_whoever_writes_them) {
    page_copier copier;
    ASSERT_EQ(TY_OK, copier.create(page_count, true, nullptr, 0));
    for (uint64_t page = 0; page < 31; ++page)
        note(copier, page);
    copier.finish(memory_.base);
    EXPECT_EQ(0u, copied().size());
}

// The thread has more to do than is copied before the stop, or has just ended, or has not begun.
TEST_F(page_copier_test, stopped_it_works_no_more_and_nothing_is_forgotten) {
    page_copier::copied_min_pages = 0;
    for (int round = 0; round < 100; ++round) {
        noted_.clear();
        page_copier copier;
        ASSERT_EQ(TY_OK, copier.create(page_count, true, memory_.base, early_count));
        note_some(copier, random_() % 1000, early_count);
        copier.stop();
        std::set<uint64_t> before = copied();
        for (uint64_t page : before)
            EXPECT_EQ(1u, noted_.count(page));
        for (int i = 0; i < 3; ++i)
            sched_yield();
        EXPECT_EQ(before.size(), copied().size());
        copier.finish(memory_.base);
        EXPECT_EQ(noted_, copied());
        ASSERT_EQ(TY_OK, os::decommit(memory_.base, memory_.bytes()));
    }
}

} // namespace
