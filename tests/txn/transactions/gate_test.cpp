// Goal: a writer is alone; readers are together; nobody waits for ever, whoever barges in.
// Method: threads that write and read a pair of words under the gate, each a fixed number of times: the pair is always
// equal under it, and every thread gets to its end.
#include "src/txn/transactions/gate.hpp"
#include "tests/os/given_time.hpp"

#include <gtest/gtest.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace taiyen::test {
namespace {

struct pair {
    txn_gate gate;
    uint64_t first = 0;
    uint64_t second = 0;
};

TEST(gate, writers_are_alone_and_readers_see_whole_changes) {
    constexpr int times = 20000;
    pair p;
    std::vector<std::thread> threads;
    std::atomic<uint64_t> torn{0};
    for (int t = 0; t < 3; t++)
        threads.emplace_back([&] {
            for (int i = 0; i < times; i++) {
                p.gate.lock();
                p.first++;
                p.second++;
                p.gate.unlock();
            }
        });
    for (int t = 0; t < 3; t++)
        threads.emplace_back([&] {
            for (int i = 0; i < times; i++) {
                p.gate.lock_shared();
                torn += p.first != p.second;
                p.gate.unlock_shared();
            }
        });
    for (std::thread &thread : threads)
        thread.join();
    EXPECT_EQ(torn, 0u);
    EXPECT_EQ(p.first, 3u * times);
    EXPECT_EQ(p.second, 3u * times);
    EXPECT_TRUE(p.gate.try_lock()); // nobody is left in the counts
    p.gate.unlock();
}

TEST(gate, what_excludes_what) {
    txn_gate gate;
    gate.lock();
    EXPECT_FALSE(gate.try_lock());
    EXPECT_FALSE(gate.try_lock_shared());
    gate.unlock();
    gate.lock_shared();
    EXPECT_TRUE(gate.try_lock_shared());
    EXPECT_FALSE(gate.try_lock());
    gate.unlock_shared();
    EXPECT_FALSE(gate.try_lock());
    gate.unlock_shared();
    EXPECT_TRUE(gate.try_lock());
    gate.unlock();
}

// A writer that waits for a reader holds the next reader up, and is served before it.
TEST(gate, a_waiting_writer_goes_before_new_readers) {
    txn_gate gate;
    std::atomic<bool> written{false};
    gate.lock_shared();
    std::thread writer([&] {
        gate.lock();
        written = true;
        gate.unlock();
    });
    while (gate.try_lock_shared()) // until the writer has said that it waits
        gate.unlock_shared();
    bool seen = false;
    std::thread reader([&] {
        gate.lock_shared();
        seen = written;
        gate.unlock_shared();
    });
    gate.unlock_shared();
    writer.join();
    reader.join();
    EXPECT_TRUE(seen);
}

// A reader and a writer wait for a writer: the reader is next (X10).
TEST(gate, readers_that_waited_go_before_the_next_writer) {
    for (int round = 0; round < 20; round++) {
        txn_gate gate;
        std::atomic<bool> read{false};
        bool seen = false;
        std::atomic<int> reader_id{0}, writer_id{0};
        gate.lock();
        std::thread reader([&] {
            reader_id = gettid();
            gate.lock_shared();
            read = true;
            gate.unlock_shared();
        });
        std::thread writer([&] {
            writer_id = gettid();
            gate.lock();
            seen = read;
            gate.unlock();
        });
        while (!os::waits_for_a_word(reader_id) || !os::waits_for_a_word(writer_id))
            std::this_thread::yield();
        gate.unlock();
        reader.join();
        writer.join();
        ASSERT_TRUE(seen) << round;
    }
}

} // namespace
} // namespace taiyen::test
