// Goal: written pages are found, all of them (T1), only them (T2), also when writes race with collecting (T3), by each
// method, over private file mappings and over anonymous memory; also those that the kernel writes for the program.
// Method: random writes and reads against a set of pages; racing writers against a copy that is kept up to date from
// the collected pages alone, as a snapshot is.
#include "src/os/calls/syscalls.hpp"
#include "src/os/os.hpp"
#include "src/os/tracking/fault_handler.hpp"
#include "tests/os/given_time.hpp"
#include "tests/os/tracked_memory.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <gtest/gtest.h>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace taiyen::os;

namespace {

struct setup {
    tracker_method method;
    backing kind;
};

std::vector<setup> every_setup() {
    std::vector<setup> all;
    for (tracker_method method : {tracker_method::kernel, tracker_method::signal, tracker_method::content})
        for (backing kind : {backing::file, backing::anonymous, backing::mixed})
            all.push_back({method, kind});
    return all;
}

const char *name_of(tracker_method method) {
    return method == tracker_method::kernel ? "kernel" : method == tracker_method::signal ? "signal" : "content";
}

class tracking : public testing::TestWithParam<setup> {
protected:
    void begin(uint64_t pages) {
        memory = std::make_unique<region>(GetParam().kind, pages);
        ASSERT_EQ(found.create(pages), TY_OK);
    }
    // False: this kernel has not got the method.
    bool start() {
        ty_status status = dirty.start(memory->base, memory->page_count, GetParam().method);
        if (status != TY_E_UNSUPPORTED) {
            EXPECT_EQ(status, TY_OK) << ty_error_text();
            EXPECT_EQ(dirty.method(), GetParam().method);
        }
        return status == TY_OK;
    }
    std::set<uint64_t> collect() {
        found.clear();
        EXPECT_EQ(dirty.collect(found), TY_OK) << ty_error_text();
        return members(found);
    }
    std::set<uint64_t> query() {
        found.clear();
        EXPECT_EQ(dirty.query(found), TY_OK) << ty_error_text();
        return members(found);
    }
    void TearDown() override {
        dirty.stop();
        found.destroy();
        memory.reset();
    }
    bool by_signal() const { return GetParam().method == tracker_method::signal; }
    // Content: pages of zeros that were only read look like copies.
    bool finds_pages_of_zeros() const {
        return GetParam().method == tracker_method::content && GetParam().kind != backing::file;
    }

    std::unique_ptr<region> memory;
    tracker dirty;
    page_set found;
};

#define SKIP_UNLESS_RACES_ARE_SEEN()                                                                                   \
    if (!dirty.sees_racing_writes())                                                                                   \
    GTEST_SKIP() << "nobody may write while it collects"

#define START_OR_SKIP()                                                                                                \
    if (!start())                                                                                                      \
    GTEST_SKIP() << ty_error_text()

} // namespace

TEST_P(tracking, exactly_the_written_pages_are_found) {
    constexpr uint64_t pages = 5000;
    begin(pages);
    std::mt19937_64 random(3);
    for (int i = 0; i < 100; i++) // before the start
        memory->touch(random() % pages);
    if (finds_pages_of_zeros())
        for (uint64_t page = 0; page < pages; page++)
            memory->touch(page);
    START_OR_SKIP();
    EXPECT_EQ(query().size(), 0u);
    std::set<uint64_t> model;
    for (int round = 0; round < 40; round++) {
        for (int step = 0; step < 100; step++) {
            uint64_t page = random() % pages;
            if (random() % 3 == 0) {
                memory->read(page, random() % page_bytes);
            } else if (random() % 20 == 0) {
                uint64_t end = std::min(pages, page + random() % 300);
                for (; page < end; page++) {
                    memory->touch(page);
                    model.insert(page);
                }
            } else {
                volatile char &byte = memory->at(page, random() % page_bytes);
                byte = static_cast<char>(byte + 1);
                model.insert(page);
            }
        }
        ASSERT_EQ(query(), model);
        ASSERT_EQ(collect(), model);
        ASSERT_EQ(query().size(), 0u);
        model.clear();
    }
}

// A part that is collected is reported; what is outside is reported with it, or by the next collect.
TEST_P(tracking, a_part_is_collected_and_the_rest_is_not_lost) {
    begin(300);
    START_OR_SKIP();
    const std::set<uint64_t> inside{100, 149}, outside{0, 99, 150, 299};
    for (const std::set<uint64_t> &pages : {inside, outside})
        for (uint64_t page : pages)
            memory->touch(page);
    found.clear();
    ASSERT_EQ(dirty.collect_part({100, 50}, found), TY_OK) << ty_error_text();
    std::set<uint64_t> first = members(found);
    memory->touch(120);
    std::set<uint64_t> second = collect();
    for (uint64_t page : inside) {
        EXPECT_TRUE(first.contains(page)) << page;
        EXPECT_FALSE(second.contains(page)) << page;
    }
    for (uint64_t page : outside)
        EXPECT_TRUE(first.contains(page) != second.contains(page)) << page;
    EXPECT_TRUE(second.contains(120));
    if (GetParam().method == tracker_method::kernel) {
        EXPECT_EQ(first, inside);
    }
    EXPECT_EQ(collect().size(), 0u);
}

TEST_P(tracking, the_first_and_the_last_page_count) {
    for (uint64_t pages : {1u, 64u, 65u, 4097u}) {
        begin(pages);
        START_OR_SKIP();
        memory->touch(0);
        memory->touch(pages - 1);
        EXPECT_EQ(collect(), (std::set<uint64_t>{0, pages - 1}));
        memory->touch(pages - 1);
        EXPECT_EQ(collect(), std::set<uint64_t>{pages - 1});
        TearDown();
    }
    begin(1);
}

TEST_P(tracking, stopped_memory_is_plain_and_can_be_tracked_again) {
    begin(100);
    START_OR_SKIP();
    memory->touch(1);
    collect();
    dirty.stop();
    memory->touch(1);
    memory->touch(2);
    ASSERT_TRUE(start());
    memory->touch(3);
    EXPECT_EQ(collect(), std::set<uint64_t>{3});
    EXPECT_EQ(mappings_within(*memory), memory->anonymous.empty() ? 1u : 4u);
}

TEST_P(tracking, several_ranges_do_not_mix) {
    begin(100);
    START_OR_SKIP();
    region other(GetParam().kind, 100);
    tracker other_dirty;
    page_set other_found;
    ASSERT_EQ(other_found.create(100), TY_OK);
    ASSERT_EQ(other_dirty.start(other.base, 100, GetParam().method), TY_OK);
    memory->touch(5);
    other.touch(6);
    EXPECT_EQ(collect(), std::set<uint64_t>{5});
    ASSERT_EQ(other_dirty.collect(other_found), TY_OK);
    EXPECT_EQ(members(other_found), std::set<uint64_t>{6});
    other_dirty.stop();
    other_found.destroy();
    memory->touch(7);
    EXPECT_EQ(collect(), std::set<uint64_t>{7});
}

// A copy is kept up to date from the collected pages alone, while three threads write. At the end it must be equal.
TEST_P(tracking, a_copy_made_from_collected_pages_misses_no_racing_write) {
    constexpr uint64_t pages = 600;
    constexpr size_t words = page_bytes / sizeof(uint64_t);
    begin(pages);
    START_OR_SKIP();
    SKIP_UNLESS_RACES_ARE_SEEN();
    std::vector<uint64_t> copy(pages * words, 0);
    auto update = [&] {
        for (uint64_t page : collect())
            for (size_t i = 0; i < words; i++)
                copy[page * words + i] = memory->word(page, i).load(std::memory_order_relaxed);
    };
    std::atomic<int> running{3};
    std::vector<std::thread> writers;
    for (uint64_t seed = 0; seed < 3; seed++)
        writers.emplace_back([&, seed] {
            std::mt19937_64 random(seed);
            for (uint64_t i = 1; i <= 20000; i++)
                memory->word(random() % pages, random() % words).store(i << 2 | seed, std::memory_order_relaxed);
            running--;
        });
    int rounds = 0;
    for (; running.load() != 0; rounds++)
        update();
    for (std::thread &writer : writers)
        writer.join();
    update();
    EXPECT_EQ(collect().size(), 0u);
    size_t missed = 0;
    for (size_t i = 0; i < copy.size(); i++)
        missed += copy[i] != memory->word(0, i).load(std::memory_order_relaxed);
    EXPECT_EQ(missed, 0u) << "after " << rounds << " rounds";
}

// A page is written before each system call that a collection makes, by who collects: this collection reports it, or
// the next one (T3).
TEST_P(tracking, a_write_between_the_steps_of_a_collection_is_not_lost) {
    if (by_signal())
        GTEST_SKIP() << "the faults are held: it would wait for itself";
    constexpr uint64_t pages = 100;
    static region *written;
    static uint64_t next;
    begin(pages);
    START_OR_SKIP();
    SKIP_UNLESS_RACES_ARE_SEEN();
    written = memory.get();
    next = 0;
    std::vector<int> copy(pages, 0);
    for (int round = 0; round < 10; round++) {
        memory->touch(50);
        sys::hook = [](sys::call) {
            written->touch(next++ % pages);
            return 0;
        };
        std::set<uint64_t> pages_found = collect();
        sys::hook = nullptr;
        for (uint64_t page : pages_found)
            copy[page] = memory->at(page);
    }
    EXPECT_GT(next, 0u);
    for (uint64_t page : collect())
        copy[page] = memory->at(page);
    for (uint64_t page = 0; page < pages; page++)
        ASSERT_EQ(copy[page], memory->at(page)) << page;
}

TEST_P(tracking, two_threads_that_write_one_page_at_once_both_succeed) {
    constexpr uint64_t pages = 400;
    begin(pages);
    START_OR_SKIP();
    std::atomic<uint64_t> turn[2] = {};
    uint64_t round = 0;
    auto write_all = [&](size_t self) {
        for (uint64_t page = 0; page < pages; page++) {
            turn[self] = page + 1;
            while (turn[1 - self] < page + 1)
                std::this_thread::yield();
            memory->word(page, self).store(round + page + 1, std::memory_order_relaxed);
        }
    };
    for (; round < 3; round++) {
        turn[0] = turn[1] = 0;
        std::thread second(write_all, 1);
        write_all(0);
        second.join();
        EXPECT_EQ(collect().size(), pages);
        for (uint64_t page = 0; page < pages; page++)
            ASSERT_EQ(memory->word(page, 0) + memory->word(page, 1), 2 * (round + page + 1));
    }
}

TEST_P(tracking, a_forked_child_may_use_its_copy_and_the_parent_does_not_notice) {
    begin(100);
    START_OR_SKIP();
    memory->touch(1);
    collect();
    pid_t child = fork();
    if (child == 0) {
        bool right = memory->at(1) == 1 && memory->at(50) == 0;
        memory->touch(1);
        memory->touch(60);
        _exit(right && memory->at(60) == 1 ? 0 : 1);
    }
    int status = 1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(collect().size(), 0u);
    memory->touch(2);
    EXPECT_EQ(collect(), std::set<uint64_t>{2});
    EXPECT_EQ(memory->at(60), 0);
}

TEST_P(tracking, a_terabyte_costs_what_is_written) {
    constexpr uint64_t pages = uint64_t{1} << 28;
    if (persistent_zone().high - persistent_zone().low < pages * page_bytes)
        GTEST_SKIP() << "this build has no terabyte of address space";
    begin(pages);
    size_t before = page_table_kb();
    ty_status status = dirty.start(memory->base, pages, GetParam().method, {nullptr, 0});
    if (status == TY_E_UNSUPPORTED)
        GTEST_SKIP() << ty_error_text();
    ASSERT_EQ(status, TY_OK) << ty_error_text();
    std::set<uint64_t> model;
    std::vector<page_range> used; // content looks at each page where the caller says
    for (uint64_t i = 0; i < 1000; i++) {
        uint64_t page = i * (pages / 1000) + i % 512;
        used.push_back({page, 2});
        memory->touch(page);
        model.insert(page);
        if (!finds_pages_of_zeros())
            memory->read(page + 1);
    }
    for (const std::set<uint64_t> &expected : {model, std::set<uint64_t>()}) {
        found.clear();
        ASSERT_EQ(dirty.collect({used.data(), used.size()}, found), TY_OK) << ty_error_text();
        EXPECT_EQ(members(found), expected);
    }
    // Three tables a page, and what a sanitizer notes of them; marking every hole would be 2 GB.
    EXPECT_LT(page_table_kb() - before, 64u << 10);
}

// A part of the range becomes a mapping of the file, with a private copy in it: the rest is tracked as before, writes
// to the part are found, and reads of it are not.
TEST_P(tracking, what_is_mapped_anew_is_tracked_again) {
    begin(1024);
    if (memory->fd < 0)
        GTEST_SKIP() << "there is no file";
    START_OR_SKIP();
    for (uint64_t page : {5, 200, 300})
        memory->touch(page);
    collect();
    bool read_only = false;
    ASSERT_EQ(dirty.needs_protection(192, 64, &read_only), TY_OK);
    EXPECT_EQ(read_only, GetParam().method == tracker_method::signal);
    const size_t bytes = 64 * page_bytes;
    void *beside =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, memory->fd, static_cast<off_t>(192 * page_bytes));
    ASSERT_NE(beside, MAP_FAILED);
    static_cast<char *>(beside)[8 * page_bytes] = memory->at(200);
    ASSERT_EQ(protect(beside, bytes, !read_only), TY_OK);
    ASSERT_EQ(move_mapping(beside, memory->base + 192 * page_bytes, bytes), TY_OK) << ty_error_text();
    ASSERT_EQ(dirty.track_again(192, 64), TY_OK) << ty_error_text();
    EXPECT_EQ(memory->at(200), 1);
    collect(); // the copy may be reported
    memory->read(210);
    memory->touch(220);
    memory->touch(300);
    EXPECT_EQ(collect(), (std::set<uint64_t>{220, 300}));
}

TEST_P(tracking, copies_that_were_not_written_since_are_listed_and_can_be_dropped) {
    if (finds_pages_of_zeros())
        GTEST_SKIP() << "what is dropped shows zeros: a change of content";
    begin(2000);
    START_OR_SKIP();
    std::set<uint64_t> model;
    for (uint64_t page = 3; page < 2000; page += 7) {
        memory->touch(page);
        model.insert(page);
    }
    memory->read(1);
    collect();
    for (uint64_t page = 3; page < 2000; page += 21) {
        memory->touch(page);
        model.erase(page);
    }
    std::set<uint64_t> listed;
    uint64_t batch[50], next = 2;
    size_t count = 0;
    for (int calls = 0; next < 2000 && calls < 100; calls++) {
        ASSERT_EQ(dirty.unwritten_copies(next, 2000 - next, batch, 50, &count, &next), TY_OK) << ty_error_text();
        ASSERT_LE(count, 50u);
        listed.insert(batch, batch + count);
    }
    EXPECT_EQ(next, 2000u);
    if (by_signal()) {
        EXPECT_EQ(listed.size(), 0u);
        return;
    }
    EXPECT_EQ(listed, model);
    for (uint64_t page : listed)
        ASSERT_EQ(madvise(memory->base + page * page_bytes, page_bytes, MADV_DONTNEED), 0);
    for (uint64_t page : listed)
        ASSERT_EQ(memory->at(page), 0);
    std::set<uint64_t> rest = collect();
    for (uint64_t page : listed)
        ASSERT_FALSE(rest.contains(page));
    memory->at(*listed.begin()) = 77;
    EXPECT_EQ(collect(), std::set<uint64_t>{*listed.begin()});
}

INSTANTIATE_TEST_SUITE_P(methods, tracking, testing::ValuesIn(every_setup()),
                         [](const testing::TestParamInfo<setup> &tested) {
                             return std::string(name_of(tested.param.method)) +
                                    (tested.param.kind == backing::file        ? "_file"
                                     : tested.param.kind == backing::anonymous ? "_anonymous"
                                                                               : "_mixed");
                         });

TEST(tracker_choice, is_the_first_that_works) {
    region memory(backing::file, 10);
    tracker asked, automatic;
    ty_status status = asked.start(memory.base, 10, tracker_method::kernel);
    asked.stop();
    ASSERT_EQ(automatic.start(memory.base, 10, tracker_method::automatic), TY_OK) << ty_error_text();
    EXPECT_EQ(automatic.method(), status == TY_OK ? tracker_method::kernel : tracker_method::content);
    automatic.stop();
}

// Somebody maps other memory into the range: its writes cannot be seen, and collect must say so rather than miss them.
TEST(tracker_kernel, a_range_that_was_mapped_anew_is_an_error_and_no_write_is_forgotten) {
    region memory(backing::file, 1000);
    tracker dirty;
    page_set found;
    ASSERT_EQ(found.create(1000), TY_OK);
    if (dirty.start(memory.base, 1000, tracker_method::kernel) != TY_OK)
        GTEST_SKIP() << ty_error_text();
    memory.touch(3);
    memory.touch(700);
    void *replaced = memory.base + 500 * page_bytes;
    ASSERT_EQ(mmap(replaced, page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED | MAP_ANONYMOUS, -1, 0),
              replaced);
    EXPECT_EQ(dirty.collect(found), TY_E_IO);
    EXPECT_NE(std::string(ty_error_text()).find("mapped anew"), std::string::npos) << ty_error_text();
    page_set now;
    ASSERT_EQ(now.create(1000), TY_OK);
    EXPECT_EQ(dirty.query(now), TY_OK) << ty_error_text();
    now.merge(found);
    EXPECT_TRUE(now.contains(3));
    EXPECT_TRUE(now.contains(700));
    dirty.stop();
    found.destroy();
    now.destroy();
}

// A handler has noted a page, and is about to make it writable: a collection waits for it (W2), or the write that comes
// then would belong to none (T3).
TEST(tracker_signal, a_collection_waits_for_a_handler_that_is_inside) {
    static std::atomic<bool> inside, collected;
    static thread_local bool writes;
    static pthread_t collects;
    collects = pthread_self();
    inside = collected = false;
    region memory(backing::anonymous, 64);
    tracker dirty;
    page_set found;
    ASSERT_EQ(found.create(64), TY_OK);
    ASSERT_EQ(dirty.start(memory.base, 64, tracker_method::signal), TY_OK);
    sys::hook = [](sys::call which) {
        if (!writes || which != sys::call::mprotect)
            return 0;
        inside = true;
        give_time_to(collects, [] { return collected.load(); });
        return 0;
    };
    std::thread writer([&] {
        writes = true;
        memory.word(7, 0).store(1, std::memory_order_relaxed);
    });
    while (!inside)
        std::this_thread::yield();
    ASSERT_EQ(dirty.collect(found), TY_OK);
    uint64_t seen = memory.word(7, 0).load(std::memory_order_relaxed);
    collected = true;
    writer.join();
    sys::hook = nullptr;
    found.clear();
    ASSERT_EQ(dirty.collect(found), TY_OK);
    EXPECT_TRUE(seen == 1 || found.contains(7));
    dirty.stop();
    found.destroy();
}

// Pieces get coarser as the budget of mappings is used up: nothing is missed, and the mappings stay within bounds.
TEST(tracker_signal, pieces_get_coarser_before_mappings_run_out) {
    constexpr uint64_t pages = 1 << 17, budget = 64;
    faults::set_run_budget(budget);
    region memory(backing::anonymous, pages);
    tracker dirty;
    page_set found;
    ASSERT_EQ(found.create(pages), TY_OK);
    ASSERT_EQ(dirty.start(memory.base, pages, tracker_method::signal), TY_OK);
    for (int round = 0; round < 2; round++) {
        std::set<uint64_t> model;
        for (uint64_t i = 0; i < budget / 2; i++) {
            memory.touch(i * 1000);
            model.insert(i * 1000);
        }
        found.clear();
        ASSERT_EQ(dirty.query(found), TY_OK);
        EXPECT_EQ(members(found), model); // exact at first
        memory.touch(100001);
        found.clear();
        ASSERT_EQ(dirty.query(found), TY_OK);
        EXPECT_EQ(found.count(), budget / 2 + 16);
        size_t most = 0;
        for (uint64_t i = 0; i < 2000; i++) {
            uint64_t page = i * 65 % pages;
            memory.touch(page);
            model.insert(page);
            if (i % 50 == 0)
                most = std::max(most, mappings_within(memory));
        }
        EXPECT_LE(most, 2 * budget + 1);
        found.clear();
        ASSERT_EQ(dirty.collect(found), TY_OK);
        for (uint64_t page : model)
            ASSERT_TRUE(found.contains(page)) << page;
        EXPECT_EQ(mappings_within(memory), 1u);
    }
    dirty.stop();
    found.destroy();
    faults::set_run_budget(0);
}

// The death tests run in a process of their own, where the handler is installed anew.
class tracker_signal_chain : public testing::Test {
protected:
    void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
    void TearDown() override { GTEST_FLAG_SET(death_test_style, "fast"); }

    // Uses a tracked range once, so that the handler stands and works.
    static void track_something() {
        static region memory(backing::anonymous, 10);
        static tracker dirty;
        if (dirty.start(memory.base, 10, tracker_method::signal) != TY_OK)
            _exit(9);
        memory.touch(4);
        if (memory.at(4) != 1)
            _exit(9);
    }
    static void fault() { *reinterpret_cast<volatile char *>(persistent_zone().high - page_bytes) = 1; }
    static void exit_with_42(int) { _exit(42); }
    static void exit_with_fault_address(int, siginfo_t *info, void *) {
        _exit(info->si_addr == reinterpret_cast<void *>(persistent_zone().high - page_bytes) ? 43 : 1);
    }
    static void do_nothing(int) {}
};

TEST_F(tracker_signal_chain, a_real_fault_still_kills) {
    EXPECT_EXIT(
        {
            signal(SIGSEGV, SIG_DFL);
            track_something();
            fault();
        },
        testing::KilledBySignal(SIGSEGV), "");
    EXPECT_EXIT(
        {
            signal(SIGSEGV, SIG_IGN);
            track_something();
            raise(SIGSEGV);
            fault();
        },
        testing::KilledBySignal(SIGSEGV), "");
    EXPECT_EXIT(
        {
            signal(SIGSEGV, SIG_DFL);
            track_something();
            raise(SIGSEGV);
            _exit(0);
        },
        testing::KilledBySignal(SIGSEGV), "");
}

TEST_F(tracker_signal_chain, the_handler_before_gets_the_faults_that_are_not_ours) {
    EXPECT_EXIT(
        {
            signal(SIGSEGV, exit_with_42);
            track_something();
            fault();
        },
        testing::ExitedWithCode(42), "");
    EXPECT_EXIT(
        {
            struct sigaction action {};
            action.sa_sigaction = exit_with_fault_address;
            action.sa_flags = SA_SIGINFO;
            sigaction(SIGSEGV, &action, nullptr);
            track_something();
            fault();
        },
        testing::ExitedWithCode(43), "");
    EXPECT_EXIT(
        {
            struct sigaction action {};
            action.sa_handler = do_nothing;
            action.sa_flags = static_cast<int>(SA_RESETHAND);
            sigaction(SIGSEGV, &action, nullptr);
            track_something();
            fault();
        },
        testing::KilledBySignal(SIGSEGV), "");
}

// A range of addresses may be read, and its pages be protected by somebody else: not our faults.
TEST_F(tracker_signal_chain, a_read_fault_inside_the_range_is_not_ours) {
    EXPECT_EXIT(
        {
            signal(SIGSEGV, exit_with_42);
            region memory(backing::anonymous, 10);
            tracker dirty;
            if (dirty.start(memory.base, 10, tracker_method::signal) != TY_OK)
                _exit(9);
            mprotect(memory.base, page_bytes, PROT_NONE);
            memory.read(0);
            _exit(1);
        },
        testing::ExitedWithCode(42), "");
}
