// Goal: while somebody waits, a thread of the lowest class spins on the waiting core; only where trials say so.
// Method: what the kernel says of the thread; trials with waits that the test makes up.
#include "src/os/calls/syscalls.hpp"
#include "src/os/process/idle_poller.hpp"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sched.h>
#include <set>
#include <string>
#include <thread>

using namespace taiyen::os;

namespace {

std::set<pid_t> threads_now() {
    std::set<pid_t> threads;
    for (const auto &each : std::filesystem::directory_iterator("/proc/self/task"))
        threads.insert(std::stoi(each.path().filename()));
    return threads;
}

char state_of(pid_t thread) {
    std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
    std::string text;
    std::getline(file, text);
    return text.at(text.rfind(')') + 2);
}

// Time on a processor. 0: this kernel does not say, or it never ran.
uint64_t run_ns(pid_t thread) {
    uint64_t ns = 0;
    std::ifstream("/proc/self/task/" + std::to_string(thread) + "/schedstat") >> ns;
    return ns;
}

template <typename Condition>
void wait_until(Condition is_so) {
    while (!is_so())
        sched_yield();
}

int call_to_fail = -1;
int fail_it(sys::call which) {
    return static_cast<int>(which) == call_to_fail ? EPERM : 0;
}
void fail(sys::call which) {
    call_to_fail = static_cast<int>(which);
    sys::hook = fail_it;
}

class idle_poller_test : public testing::Test {
protected:
    void start() {
        std::thread([] {}).join(); // with the first one a sanitizer starts a thread of its own
        std::set<pid_t> before = threads_now(), after;
        ASSERT_EQ(one.start(), TY_OK);
        started = true;
        after = threads_now();
        std::erase_if(after, [&before](pid_t each) { return before.count(each) != 0; });
        if (!after.empty()) // it ends at once where it is refused
            thread = *after.begin();
    }
    ~idle_poller_test() override {
        sys::hook = nullptr;
        if (started)
            one.stop();
    }
    idle_poller one;
    pid_t thread = 0;
    bool started = false;
};

void pin_to(int core) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(core, &set);
    ASSERT_EQ(sched_setaffinity(0, sizeof set, &set), 0);
}

} // namespace

TEST_F(idle_poller_test, it_spins_at_the_lowest_class_as_long_as_somebody_waits) {
    start();
    ASSERT_EQ(sched_getscheduler(thread), SCHED_IDLE);
    if (run_ns(thread) == 0)
        GTEST_SKIP() << "this kernel does not report threads' run times";
    constexpr uint64_t clearly_ns = 2000000; // more than one wait's
    for (uint64_t before = run_ns(thread); run_ns(thread) < before + clearly_ns;) {
        ASSERT_TRUE(one.begin());
        for (int i = 0; i < 100; i++)
            sched_yield();
        one.end();
    }
    wait_until([this] { // it is counted as asleep a moment before its last run is
        uint64_t then = run_ns(thread);
        for (int i = 0; i < 1000; i++)
            sched_yield();
        return state_of(thread) == 'S' && run_ns(thread) == then;
    });
}

TEST_F(idle_poller_test, it_gives_up_a_wait_that_is_long) {
    start();
    if (run_ns(thread) == 0)
        GTEST_SKIP() << "this kernel does not report threads' run times";
    for (int i = 0; i < 2; i++) { // and keeps the next one
        wait_until([this] { return state_of(thread) == 'S'; });
        uint64_t before = run_ns(thread);
        ASSERT_TRUE(one.begin());
        wait_until([&] { return run_ns(thread) > before && state_of(thread) == 'S'; });
        one.end();
    }
}

TEST_F(idle_poller_test, it_is_where_the_waiting_thread_is) {
    cpu_set_t mine;
    ASSERT_EQ(sched_getaffinity(0, sizeof mine, &mine), 0);
    start();
    for (int core = 0; core < CPU_SETSIZE; core++) {
        if (!CPU_ISSET(core, &mine))
            continue;
        pin_to(core);
        ASSERT_TRUE(one.begin());
        one.end();
        cpu_set_t its;
        ASSERT_EQ(sched_getaffinity(thread, sizeof its, &its), 0);
        EXPECT_TRUE(CPU_ISSET(core, &its));
        EXPECT_EQ(CPU_COUNT(&its), 1);
    }
    ASSERT_EQ(sched_setaffinity(0, sizeof mine, &mine), 0);
}

TEST_F(idle_poller_test, it_does_without_what_the_kernel_refuses) {
    fail(sys::call::set_idle_class);
    start();
    EXPECT_FALSE(one.begin());
    sys::hook = nullptr;
    EXPECT_FALSE(one.begin());
}

TEST_F(idle_poller_test, a_wait_is_not_watched_where_its_core_is_not_known) {
    start();
    for (sys::call which : {sys::call::getcpu, sys::call::set_affinity}) {
        fail(which);
        EXPECT_FALSE(one.begin());
    }
    sys::hook = nullptr;
    EXPECT_TRUE(one.begin());
    one.end();
}

namespace {

constexpr uint64_t bare_ns = 100000;

// Waits that take so long, bare and watched over; how many were watched over.
unsigned count_watched(idle_poller_trial &trial, unsigned waits, uint64_t bare, uint64_t watched) {
    unsigned count = 0;
    for (unsigned i = 0; i < waits; i++) {
        count += trial.wants_poller();
        trial.note(trial.wants_poller() ? watched : bare);
    }
    return count;
}

constexpr unsigned trial_waits = 2 * idle_poller_trial::pairs;

} // namespace

TEST(idle_poller_trial_test, what_helps_is_done_until_the_next_trial) {
    idle_poller_trial trial;
    for (int i = 0; i < 3; i++) {
        EXPECT_EQ(count_watched(trial, trial_waits, bare_ns, bare_ns * 3 / 4), idle_poller_trial::pairs);
        unsigned others = idle_poller_trial::waits_when_won - trial_waits;
        EXPECT_EQ(count_watched(trial, others, bare_ns, bare_ns * 3 / 4), others);
    }
    EXPECT_EQ(count_watched(trial, trial_waits, bare_ns, bare_ns), idle_poller_trial::pairs) << "it may help no more";
    EXPECT_EQ(count_watched(trial, 100, bare_ns, bare_ns), 0u);
}

TEST(idle_poller_trial_test, what_does_not_help_clearly_is_not_done) {
    idle_poller_trial trial;
    for (int i = 0; i < 3; i++) {
        EXPECT_EQ(count_watched(trial, trial_waits, bare_ns, bare_ns * 19 / 20), idle_poller_trial::pairs);
        EXPECT_EQ(count_watched(trial, idle_poller_trial::waits_when_lost - trial_waits, bare_ns, bare_ns), 0u);
    }
    count_watched(trial, trial_waits, bare_ns, bare_ns / 2);
    EXPECT_EQ(count_watched(trial, 100, bare_ns, bare_ns / 2), 100u) << "it may help now";
}

// Now and then somebody else is in the way, of either kind of wait.
TEST(idle_poller_trial_test, a_few_long_waits_do_not_decide) {
    idle_poller_trial helps, does_not;
    for (unsigned i = 0; i < trial_waits; i++) {
        bool disturbed = i % 9 == 0;
        helps.note(disturbed ? 50 * bare_ns : helps.wants_poller() ? bare_ns / 2 : bare_ns);
        does_not.note(disturbed ? 50 * bare_ns : bare_ns);
    }
    EXPECT_TRUE(helps.wants_poller());
    EXPECT_FALSE(does_not.wants_poller());
}

TEST(idle_poller_trial_test, short_waits_are_left_alone) {
    idle_poller_trial trial;
    for (unsigned i = 0; i < 2000; i++) {
        EXPECT_FALSE(trial.wants_poller());
        trial.note(i % 2 == 0 ? idle_poller_trial::wait_ns_min - 1 : 1); // whatever they take
    }
}
