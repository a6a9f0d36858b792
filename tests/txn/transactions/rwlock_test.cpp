// Goal: a writer is alone; readers are together; nobody waits for ever, whoever barges in.
// Method: threads that write and read a pair of words under the reader-writer lock, each a fixed number of times: the
// pair is always equal under it, and every thread gets to its end.
#include "src/txn/transactions/rwlock.hpp"
#include "tests/os/given_time.hpp"

#include <gtest/gtest.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace taiyen::test {
namespace {

struct pair {
    fair_rwlock rwlock;
    uint64_t first = 0;
    uint64_t second = 0;
};

TEST(rwlock, writers_are_alone_and_readers_see_whole_changes) {
    constexpr int times = 20000;
    pair p;
    std::vector<std::thread> threads;
    std::atomic<uint64_t> torn{0};
    for (int t = 0; t < 3; t++)
        threads.emplace_back([&] {
            for (int i = 0; i < times; i++) {
                p.rwlock.lock();
                p.first++;
                p.second++;
                p.rwlock.unlock();
            }
        });
    for (int t = 0; t < 3; t++)
        threads.emplace_back([&] {
            for (int i = 0; i < times; i++) {
                p.rwlock.lock_shared();
                torn += p.first != p.second;
                p.rwlock.unlock_shared();
            }
        });
    for (std::thread &thread : threads)
        thread.join();
    EXPECT_EQ(torn, 0u);
    EXPECT_EQ(p.first, 3u * times);
    EXPECT_EQ(p.second, 3u * times);
    EXPECT_TRUE(p.rwlock.try_lock()); // nobody is left in the counts
    p.rwlock.unlock();
}

TEST(rwlock, what_excludes_what) {
    fair_rwlock rwlock;
    rwlock.lock();
    EXPECT_FALSE(rwlock.try_lock());
    EXPECT_FALSE(rwlock.try_lock_shared());
    rwlock.unlock();
    rwlock.lock_shared();
    EXPECT_TRUE(rwlock.try_lock_shared());
    EXPECT_FALSE(rwlock.try_lock());
    rwlock.unlock_shared();
    EXPECT_FALSE(rwlock.try_lock());
    rwlock.unlock_shared();
    EXPECT_TRUE(rwlock.try_lock());
    rwlock.unlock();
}

// A writer that waits for a reader holds the next reader up, and is served before it.
TEST(rwlock, a_waiting_writer_goes_before_new_readers) {
    fair_rwlock rwlock;
    std::atomic<bool> written{false};
    rwlock.lock_shared();
    std::thread writer([&] {
        rwlock.lock();
        written = true;
        rwlock.unlock();
    });
    while (rwlock.try_lock_shared()) // until the writer has said that it waits
        rwlock.unlock_shared();
    bool seen = false;
    std::thread reader([&] {
        rwlock.lock_shared();
        seen = written;
        rwlock.unlock_shared();
    });
    rwlock.unlock_shared();
    writer.join();
    reader.join();
    EXPECT_TRUE(seen);
}

// A reader and a writer wait for a writer: the reader is next (X10).
TEST(rwlock, readers_that_waited_go_before_the_next_writer) {
    for (int round = 0; round < 20; round++) {
        fair_rwlock rwlock;
        std::atomic<bool> read{false};
        bool seen = false;
        std::atomic<int> reader_id{0}, writer_id{0};
        rwlock.lock();
        std::thread reader([&] {
            reader_id = gettid();
            rwlock.lock_shared();
            read = true;
            rwlock.unlock_shared();
        });
        std::thread writer([&] {
            writer_id = gettid();
            rwlock.lock();
            seen = read;
            rwlock.unlock();
        });
        while (!os::waits_for_a_word(reader_id) || !os::waits_for_a_word(writer_id))
            std::this_thread::yield();
        rwlock.unlock();
        reader.join();
        writer.join();
        ASSERT_TRUE(seen) << round;
    }
}

} // namespace
} // namespace taiyen::test
