// Goal: who alone waits for a frame has its processor kept awake, as far as trials go and the program lets the library
// have threads.
// Method: writes that take a while, as a disk's do; the run time of the only thread of the lowest class.
#include "../support.hpp"

#include <filesystem>
#include <fstream>
#include <poll.h>
#include <sched.h>

using namespace taiyen;
using namespace taiyen::test;

namespace {

// Of all threads of the lowest class.
uint64_t idle_class_run_ns(unsigned *threads) {
    uint64_t sum = 0;
    *threads = 0;
    for (const auto &each : std::filesystem::directory_iterator("/proc/self/task")) {
        if (sched_getscheduler(std::stoi(each.path().filename())) != SCHED_IDLE)
            continue;
        uint64_t ns = 0;
        std::ifstream(each.path() / "schedstat") >> ns;
        sum += ns;
        ++*threads;
    }
    return sum;
}

} // namespace

TEST(log_idle_poller_test, a_lone_committer_is_watched_over) {
    memory_log memory;
    watched_sink sink(memory.sink());
    sink.at_write = [](unsigned) {
        poll(nullptr, 0, 1); // what a disk takes, asleep
        return TY_OK;
    };
    log_owner l(start_log(&sink.table, {}, {}, {}, true));
    unsigned threads;
    uint64_t before = idle_class_run_ns(&threads);
    if (threads == 0)
        GTEST_SKIP() << "the kernel gives no thread the lowest class";
    ASSERT_EQ(threads, 1u);
    if (before == 0)
        GTEST_SKIP() << "this kernel does not report threads' run times";
    // Tests that run beside this one may leave that thread little time: so it commits until it has had some.
    for (unsigned i = 0; idle_class_run_ns(&threads) < before + 200000; ++i) {
        ASSERT_OK(append(l.get(), record_of(i)));
        ASSERT_OK(log_wait(l.get(), log_last(l.get())));
    }
}

TEST(log_idle_poller_test, there_is_none_without_the_librarys_threads) {
    memory_log memory;
    log_owner l(start_log(memory.sink()));
    unsigned threads;
    idle_class_run_ns(&threads);
    EXPECT_EQ(threads, 0u);
}
