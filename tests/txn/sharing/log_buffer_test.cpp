// Goal: the log buffer gives back what was appended, or says that it was overwritten (PR2); the writer lock has one
// owner, and no dead one (PR3). Method: without a heap; processes that are killed.
#include "src/txn/sharing/sharing.hpp"
#include "tests/os/temporary_folder.hpp"
#include "tests/txn/support.hpp"

#include <atomic>
#include <csignal>
#include <cstring>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace taiyen::test {
namespace {

class log_buffer_test : public testing::Test {
protected:
    void SetUp() override {
        image_.storage = ty_storage_default();
        path_ = folder_.file("heap");
        ASSERT_OK(image_.open(path_.c_str(), TY_FILE_WRITE | TY_FILE_CREATE));
        ASSERT_OK(buffer_.open(*ty_storage_default(), path_.c_str(), &image_));
        buffer_.format(identity, 0);
    }
    // So that others can open it.
    void be_log_writer() const { ASSERT_OK(buffer_.become_log_writer()); }
    void TearDown() override {
        buffer_.close();
        image_.close();
    }
    void append(uint64_t lsn, size_t bytes) {
        memset(buffer_.append_begin(bytes), static_cast<int>(lsn), bytes);
        buffer_.append_end(bytes, lsn);
    }

    static constexpr uint8_t identity[16] = {1};
    temporary_folder folder_;
    std::string path_;
    storage_file image_;
    log_buffer buffer_;
};

TEST_F(log_buffer_test, gives_back_what_was_appended_all_around_the_ring) {
    uint64_t read = 0, lsn = 0;
    for (uint64_t appended = 0; appended < 3 * log_buffer_bytes;) {
        const size_t bytes = 1 + lsn * 7919 % 100'000;
        append(++lsn, bytes);
        buffered_record record;
        ASSERT_OK(buffer_.look(&read, &record));
        EXPECT_EQ(lsn, record.lsn);
        ASSERT_EQ(bytes, record.bytes);
        const uint8_t *found = buffer_.bytes_at(read) + buffered_head_bytes;
        EXPECT_EQ(uint8_t(lsn), found[0]);
        EXPECT_EQ(uint8_t(lsn), found[bytes - 1]);
        read = after(read, record);
        EXPECT_EQ(TY_E_NOT_FOUND, buffer_.look(&read, &record));
        appended += bytes;
        buffer_.header().released.store(read);
    }
}

// PR2
TEST_F(log_buffer_test, a_reader_that_was_overtaken_knows) {
    append(1, 100);
    EXPECT_TRUE(buffer_.still_there(0));
    for (uint64_t lsn = 2; lsn < 3 + log_buffer_bytes / log_buffer_record_max; lsn++)
        append(lsn, log_buffer_record_max - 100);
    EXPECT_FALSE(buffer_.still_there(0));
}

TEST_F(log_buffer_test, an_append_that_is_given_up_leaves_nothing) {
    buffered_record record;
    uint64_t position = 0;
    (void)buffer_.append_begin(1000);
    EXPECT_EQ(TY_E_NOT_FOUND, buffer_.look(&position, &record));
    append(1, 10);
    ASSERT_OK(buffer_.look(&position, &record));
    EXPECT_EQ(1u, record.lsn);
}

// Whoever may write the file may write anything.
TEST_F(log_buffer_test, records_that_cannot_be_are_damage) {
    buffered_record record;
    const buffered_record wrong[] = {{0, buffered_kind(0), 1},
                                     {log_buffer_bytes, buffered_kind::record, 1},
                                     {UINT32_MAX, buffered_kind::record, 1},
                                     {100, buffered_kind::record, 1},
                                     {0, buffered_kind::to_the_front, 0}};
    for (const buffered_record &each : wrong) {
        uint64_t position = 0;
        (void)buffer_.append_begin(10);
        memcpy(const_cast<uint8_t *>(buffer_.bytes_at(0)), &each, sizeof each);
        buffer_.header().end.store(32);
        EXPECT_EQ(TY_E_DAMAGED, buffer_.look(&position, &record)) << each.bytes;
    }
}

TEST_F(log_buffer_test, knows_who_else_has_it) {
    bool others = true;
    ASSERT_OK(buffer_.others(&others));
    EXPECT_FALSE(others);
    log_buffer second;                                                                // as another process would
    EXPECT_EQ(TY_E_BUSY, second.open(*ty_storage_default(), path_.c_str(), nullptr)); // nobody writes the log
    ASSERT_OK(buffer_.become_log_writer());
    ASSERT_OK(second.open(*ty_storage_default(), path_.c_str(), nullptr));
    EXPECT_NE(buffer_.number(), second.number());
    ASSERT_OK(buffer_.others(&others));
    EXPECT_TRUE(others);
    EXPECT_TRUE(second.has_log_writer());
    buffer_.resign();
    EXPECT_FALSE(second.has_log_writer());
    second.close();
    ASSERT_OK(buffer_.others(&others));
    EXPECT_FALSE(others);
}

// PR2: what an append that was given up may have written over counts, too.
TEST_F(log_buffer_test, a_reader_knows_what_was_overwritten_by_an_append_that_was_given_up) {
    append(1, 100);
    for (uint64_t lsn = 2; lsn < 6; lsn++)
        append(lsn, log_buffer_record_max - 100);
    EXPECT_TRUE(buffer_.still_there(0));
    (void)buffer_.append_begin(log_buffer_record_max);
    EXPECT_FALSE(buffer_.still_there(0));
    (void)buffer_.append_begin(100);
    EXPECT_FALSE(buffer_.still_there(0));
}

// PR3: a number is not taken by another process between the look whether it is free and what follows from that.
TEST_F(log_buffer_test, nobody_gets_the_number_of_a_dead_process_meanwhile) {
    log_buffer second, third, fourth;
    be_log_writer();
    ASSERT_OK(second.open(*ty_storage_default(), path_.c_str(), nullptr));
    const uint32_t number = second.number();
    EXPECT_FALSE(buffer_.take_if_gone(number));
    second.close();
    ASSERT_TRUE(buffer_.take_if_gone(number));
    ASSERT_OK(third.open(*ty_storage_default(), path_.c_str(), nullptr));
    EXPECT_NE(number, third.number());
    buffer_.give_back(number);
    ASSERT_OK(fourth.open(*ty_storage_default(), path_.c_str(), nullptr));
    EXPECT_EQ(number, fourth.number());
    third.close();
    fourth.close();
}

// PR3
TEST_F(log_buffer_test, the_lock_of_a_dead_process_is_taken) {
    void *memory = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(MAP_FAILED, memory);
    auto &locked = *new (memory) std::atomic<bool>{false};
    be_log_writer();
    const pid_t child = fork();
    if (child == 0) {
        log_buffer own;
        if (own.open(*ty_storage_default(), path_.c_str(), nullptr) == TY_OK) {
            writer_lock lock(own);
            lock.lock();
            locked = true;
        }
        pause();
        _exit(1);
    }
    while (!locked)
        std::this_thread::yield();
    writer_lock lock(buffer_);
    EXPECT_FALSE(lock.try_lock_for(0));
    EXPECT_FALSE(lock.try_lock_for(2'000'000));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    lock.lock();
    lock.unlock();
    EXPECT_EQ(0u, buffer_.header().owner);
    munmap(memory, 4096);
}

// A process that has the number of one that died with the lock, or waiting for it.
TEST_F(log_buffer_test, the_lock_is_not_left_to_a_successor_that_does_not_know) {
    writer_lock lock(buffer_);
    buffer_.header().owner.store(buffer_.number());
    buffer_.header().heir.store(buffer_.number());
    lock.release_unwanted();
    EXPECT_EQ(0u, buffer_.header().owner);
    EXPECT_EQ(0u, buffer_.header().heir);
}

TEST_F(log_buffer_test, two_processes_count_with_the_lock) {
    constexpr uint64_t count = 20'000;
    auto *counted = static_cast<volatile uint64_t *>(
        mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(MAP_FAILED, counted);
    auto add = [&](const log_buffer &own) {
        writer_lock lock(own);
        for (uint64_t i = 0; i < count; i++) {
            lock.lock();
            *counted = *counted + 1;
            lock.unlock();
        }
    };
    be_log_writer();
    const pid_t child = fork();
    if (child == 0) {
        log_buffer own;
        if (own.open(*ty_storage_default(), path_.c_str(), nullptr) != TY_OK)
            _exit(1);
        add(own);
        _exit(0);
    }
    add(buffer_);
    int status = -1;
    EXPECT_EQ(child, waitpid(child, &status, 0));
    EXPECT_EQ(0, status);
    EXPECT_EQ(2 * count, *counted);
    munmap(const_cast<uint64_t *>(counted), 4096);
}

} // namespace
} // namespace taiyen::test
