// Goal: locks exclude, conditions wake, threads take no signals but their own faults, ranks are enforced.
// Method: small uses of each; a wrong order of locks must end a process in builds that check.
#include "src/os/process/thread.hpp"
#include "tests/thread_end.hpp"

#include <csignal>
#include <cstring>
#include <gtest/gtest.h>
#include <latch>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace taiyen::os;

namespace {

struct shared {
    mutex lock{lock_rank::pages};
    condition changed;
    uint64_t count = 0;
    unsigned turn = 0;
};

void *count_up(void *argument) {
    auto *state = static_cast<shared *>(argument);
    for (int i = 0; i < 10000; i++) {
        lock_guard guard(state->lock);
        state->count++;
    }
    return nullptr;
}

void *play_second(void *argument) {
    auto *state = static_cast<shared *>(argument);
    lock_guard guard(state->lock);
    for (unsigned i = 0; i < 100; i++) {
        while (state->turn % 2 == 0)
            state->changed.wait(state->lock);
        state->turn++;
        state->changed.notify_all();
    }
    return nullptr;
}

void *get_signal_mask(void *argument) {
    pthread_sigmask(SIG_SETMASK, nullptr, static_cast<sigset_t *>(argument));
    return nullptr;
}

} // namespace

TEST(thread, a_mutex_excludes) {
    shared state;
    thread threads[4];
    for (thread &t : threads)
        ASSERT_EQ(t.start(count_up, &state), TY_OK);
    for (thread &t : threads)
        t.join();
    EXPECT_EQ(state.count, 40000u);
}

TEST(thread, a_condition_wakes_who_waits) {
    shared state;
    thread second;
    ASSERT_EQ(second.start(play_second, &state), TY_OK);
    {
        lock_guard guard(state.lock);
        for (unsigned i = 0; i < 100; i++) {
            while (state.turn % 2 == 1)
                state.changed.wait(state.lock);
            state.turn++;
            state.changed.notify_all();
        }
    }
    second.join();
    EXPECT_EQ(state.turn, 200u);
}

TEST(thread, signals_go_to_the_program_but_faults_to_the_thread) {
    sigset_t mask;
    thread t;
    ASSERT_EQ(t.start(get_signal_mask, &mask), TY_OK);
    t.join();
    EXPECT_TRUE(sigismember(&mask, SIGTERM));
    EXPECT_TRUE(sigismember(&mask, SIGUSR1));
    EXPECT_TRUE(sigismember(&mask, SIGXFSZ));
    EXPECT_TRUE(sigismember(&mask, SIGABRT));
    EXPECT_FALSE(sigismember(&mask, SIGSEGV));
    EXPECT_FALSE(sigismember(&mask, SIGBUS));
    sigset_t own;
    pthread_sigmask(SIG_SETMASK, nullptr, &own);
    EXPECT_FALSE(sigismember(&own, SIGTERM));
}

TEST(thread, is_not_cancelable) {
    int state = PTHREAD_CANCEL_ENABLE;
    thread t;
    ASSERT_EQ(t.start(
                  [](void *argument) -> void * {
                      pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, static_cast<int *>(argument));
                      return nullptr;
                  },
                  &state),
              TY_OK);
    t.join();
    EXPECT_EQ(state, PTHREAD_CANCEL_DISABLE);
}

namespace {

// What a thread of a real-time class does: the number of its own sleeps; -1: it may not be one.
void *give_way_in_real_time(void *argument) {
    auto &sleeps = *static_cast<long *>(argument);
    sched_param first{};
    first.sched_priority = sched_get_priority_min(SCHED_FIFO);
    sleeps = -1;
    if (pthread_setschedparam(pthread_self(), SCHED_FIFO, &first) != 0)
        return nullptr;
    rusage before{}, after{};
    getrusage(RUSAGE_THREAD, &before);
    sleeps = 0;
    for (int calls = 0; calls < 100 && sleeps == 0; ++calls) { // a sleep may end before its thread has left
        give_way();
        getrusage(RUSAGE_THREAD, &after);
        sleeps = after.ru_nvcsw - before.ru_nvcsw;
    }
    return nullptr;
}

} // namespace

// As long as such a thread does not sleep, none of a lower priority runs on its processor.
TEST(thread, sleeps_in_a_wait_under_a_real_time_class) {
    long sleeps = 0;
    thread t;
    ASSERT_EQ(t.start(give_way_in_real_time, &sleeps), TY_OK);
    t.join();
    if (sleeps < 0)
        GTEST_SKIP() << "no permission for SCHED_FIFO";
    EXPECT_GE(sleeps, 1);
}

// What waits or locks here is no cancellation point; the program's own is.
TEST(thread, a_wait_is_no_cancellation_point) {
    shared state;
    pthread_t waiting;
    auto wait = [](void *argument) -> void * {
        auto &shared_state = *static_cast<shared *>(argument);
        {
            lock_guard guard(shared_state.lock);
            shared_state.turn = 1;
            while (shared_state.count == 0)
                shared_state.changed.wait(shared_state.lock);
            shared_state.turn = 2;
        }
        taiyen::test::end_if_cancelled();
        return nullptr;
    };
    ASSERT_EQ(pthread_create(&waiting, nullptr, wait, &state), 0);
    for (bool begun = false; !begun; give_way()) {
        lock_guard guard(state.lock); // with the lock, the thread has not begun, or waits
        begun = state.turn == 1;
    }
    pthread_cancel(waiting);
    {
        lock_guard guard(state.lock);
        state.count = 1;
        state.changed.notify_all();
    }
    void *result = nullptr;
    pthread_join(waiting, &result);
    EXPECT_EQ(result, PTHREAD_CANCELED);
    EXPECT_EQ(state.turn, 2u) << "it went on with the lock, and let go of it";
    lock_guard guard(state.lock);
}

// What a thread holds that the child has not got, nobody would ever let go of.
TEST(thread, in_a_child_the_locks_of_others_are_free) {
    mutex lock(lock_rank::pages);
    std::latch held(1), forked(1);
    std::thread holder([&] {
        lock_guard guard(lock);
        held.count_down();
        forked.wait();
    });
    held.wait();
    const pid_t child = fork();
    if (child == 0) {
        alarm(60);
        const bool was_held = !lock.try_lock();
        note_fork();
        lock.lock();
        const bool mine = !lock.try_lock();
        lock.unlock();
        const bool is_free = lock.try_lock();
        _exit(was_held && mine && is_free ? 0 : 1);
    }
    forked.count_down();
    holder.join();
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    lock_guard guard(lock); // free again in the parent
}

TEST(thread_death, locks_out_of_order_end_the_process) {
    if (!lock_ranks_checked())
        GTEST_SKIP() << "this build does not check ranks";
    auto wrong_order = [] {
        mutex pages(lock_rank::pages), gate(lock_rank::safepoint);
        lock_guard first(pages);
        lock_guard second(gate);
    };
    EXPECT_DEATH(wrong_order(), "out of the order of ranks");
    auto same_rank = [] {
        mutex one(lock_rank::span_class), two(lock_rank::span_class);
        lock_guard first(one);
        lock_guard second(two);
    };
    EXPECT_DEATH(same_rank(), "out of the order of ranks");
    auto wait_inside = [] {
        mutex gate(lock_rank::safepoint), pages(lock_rank::pages);
        condition changed;
        lock_guard first(gate);
        lock_guard second(pages);
        changed.wait(gate);
    };
    EXPECT_DEATH(wait_inside(), "out of the order of ranks");
    mutex gate(lock_rank::safepoint), pages(lock_rank::pages);
    lock_guard first(gate);
    lock_guard second(pages);
}

TEST(thread, clocks_run) {
    uint64_t before = now_ns();
    EXPECT_LE(before, now_ns());
    EXPECT_GT(unix_time_s(), 1'700'000'000u);
}

TEST(thread, the_process_barrier_works_where_it_is_said_to) {
    if (!process_barrier_available())
        GTEST_SKIP() << "this kernel has no membarrier";
    for (int i = 0; i < 100; i++)
        EXPECT_TRUE(process_barrier());
}

namespace {

// Two threads take turns on a word; a missed wake hangs the test.
struct turns {
    std::atomic<uint32_t> word{0};
    unsigned played = 0; // by whose turn it is
};

void play(turns &state, uint32_t me) {
    for (unsigned i = 0; i < 1000; i++) {
        for (uint32_t seen; (seen = state.word.load(std::memory_order_acquire)) % 2 != me;)
            wait_on(state.word, seen);
        state.played++;
        state.word.fetch_add(1, std::memory_order_release);
        me ? wake_one(state.word) : wake_all(state.word);
    }
}

} // namespace

TEST(thread, a_word_wakes_who_waits_for_it) {
    turns state;
    thread second;
    ASSERT_EQ(second.start(
                  [](void *argument) -> void * {
                      play(*static_cast<turns *>(argument), 1);
                      return nullptr;
                  },
                  &state),
              TY_OK);
    play(state, 0);
    second.join();
    EXPECT_EQ(state.played, 2000u);
    wait_on(state.word, 2000, 1); // ends without a wake
}
