// Goal: with several writes in flight, that end in any order or fail, no record is acknowledged too early, a reader
// finds a prefix whatever subset arrived, and damage before what was acknowledged is distinguished from a crash (L2,
// L3, L6). Method: a sink that holds every write until the test lets it end.
#include "../support.hpp"
#include "tests/os/given_time.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <unistd.h>

using namespace taiyen;
using namespace taiyen::test;

namespace {

class held_sink {
public:
    explicit held_sink(memory_log &over) : over_(over) {
        table = *over.sink();
        table.context = this;
        table.write = [](void *context, uint64_t offset, const void *buffer, size_t bytes) {
            return static_cast<held_sink *>(context)->write(offset, buffer, bytes);
        };
        table.read = [](void *context, uint64_t offset, void *buffer, size_t bytes) {
            const ty_log_sink *below = static_cast<held_sink *>(context)->over_.sink();
            return below->read(below->context, offset, buffer, bytes);
        };
    }

    struct held_write {
        uint64_t offset;
        std::string bytes;
        ty_status result = TY_OK;
        bool ended = false;
    };
    // Waits until so many writes have begun in all.
    void wait_for_begun(size_t count) {
        std::unique_lock guard(mutex_);
        changed_.wait(guard, [&] { return writes_.size() >= count; });
    }
    size_t begun() {
        std::lock_guard guard(mutex_);
        return writes_.size();
    }
    held_write get(size_t number) {
        std::lock_guard guard(mutex_);
        return *writes_[number];
    }
    void end(size_t number, ty_status result = TY_OK) {
        std::lock_guard guard(mutex_);
        held_write &one = *writes_[number];
        if (result == TY_OK)
            memcpy(over_.data() + one.offset, one.bytes.data(), one.bytes.size());
        one.result = result;
        one.ended = true;
        changed_.notify_all();
    }
    void wait_for_returned(size_t count) {
        std::unique_lock guard(mutex_);
        changed_.wait(guard, [&] { return returned_ >= count; });
    }
    void let_all_pass() { pass(true); }
    void hold_again() {
        pass(false);
        writes_.clear();
    }

    ty_log_sink table;

private:
    void pass(bool all) {
        std::lock_guard guard(mutex_);
        pass_ = all;
        changed_.notify_all();
    }
    ty_status write(uint64_t offset, const void *buffer, size_t bytes) {
        std::unique_lock guard(mutex_);
        auto one = std::make_shared<held_write>();
        one->offset = offset;
        one->bytes.assign(static_cast<const char *>(buffer), bytes);
        writes_.push_back(one);
        changed_.notify_all();
        changed_.wait(guard, [&] { return one->ended || pass_; });
        if (!one->ended)
            memcpy(over_.data() + offset, one->bytes.data(), bytes);
        ++returned_;
        changed_.notify_all();
        return one->result;
    }

    memory_log &over_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<std::shared_ptr<held_write>> writes_;
    size_t returned_ = 0;
    bool pass_ = false;
};

// Threads that each append records and wait for them, one thread after the other having begun its write.
class flight {
public:
    // left: so many bytes before the ring's end; 0: at its front, with the generation's start as the first write.
    explicit flight(size_t frames, uint64_t left = 0, size_t size = 100, size_t records_each = 1)
        : sink(memory), log_(start_log(&sink.table)) {
        if (left)
            fill(left);
        memory_before.copy_from(memory);
        for (size_t i = 0; i < frames; ++i) {
            for (size_t n = 0; n < records_each; ++n) {
                records.push_back(record_of(records.size(), size));
                EXPECT_OK(append(log_.get(), records.back()));
            }
            if (i < frames_unstable)
                log_positions_now(log_.get()); // seals: only a frame that takes no more is written beside another
            threads_.emplace_back([this, i, last = log_last(log_.get())] {
                ids_[i] = gettid();
                status[i] = log_wait(log_.get(), last);
                done[i] = true;
            });
            sink.wait_for_begun(std::min<size_t>(i + 1, frames_unstable));
        }
    }
    ~flight() {
        sink.let_all_pass();
        join();
    }
    void join() {
        for (std::thread &one : threads_)
            if (one.joinable())
                one.join();
    }
    // Until each thread waits for something: what they had to do is done.
    void wait_until_all_sleep() {
        for (size_t quiet = 0; quiet < 3 * threads_.size();) {
            bool sleeps = os::waits_for_a_word(ids_[quiet % threads_.size()]);
            quiet = sleeps ? quiet + 1 : 0;
            std::this_thread::yield();
        }
    }
    taiyen::log *get() { return log_.get(); }
    // The log as a crash leaves it: of the writes in flight those arrive that the bits say.
    void crash(unsigned subset, memory_log &to) {
        to.copy_from(memory_before);
        for (size_t n = 0; n < sink.begun(); ++n)
            if (subset >> n & 1)
                put(n, sink.get(n).bytes, to);
    }
    // What an earlier process wrote is lost after all.
    void lose(size_t write, memory_log &from) {
        held_sink::held_write one = sink.get(write);
        put(write, std::string(memory_before.data() + one.offset, one.bytes.size()), from);
    }

    memory_log memory, memory_before;
    held_sink sink;
    log_positions start{};
    std::vector<std::string> records; // after start
    std::atomic<ty_status> status[16] = {};
    std::atomic<bool> done[16] = {};

private:
    void put(size_t write, const std::string &bytes, memory_log &to) {
        memcpy(to.data() + sink.get(write).offset, bytes.data(), bytes.size());
    }
    // One frame after the other until the next one lies there.
    void fill(uint64_t left) {
        sink.let_all_pass();
        log_header header;
        ASSERT_OK(log_check(*memory.sink(), log_path, nullptr, &header));
        const uint64_t end = header.ring_bytes - left;
        for (uint64_t at = header.block_bytes; at < end; at = start.at[0].offset) { // after the generation's start
            uint64_t frame = end - at > 60032 ? 30016 : end - at;
            size_t size = frame - sizeof(frame_header) - 3;
            ASSERT_OK(append(get(), std::string(size >= 16384 ? size : size + 1, 'f')));
            ASSERT_OK(log_wait(get(), log_last(get())));
            start = log_positions_now(get());
        }
        ASSERT_EQ(end, start.at[0].offset);
        log_release(get(), start);
        sink.hold_again();
    }

    log_owner log_;
    std::vector<std::thread> threads_;
    std::atomic<int> ids_[16] = {};
};

constexpr uint64_t lefts[] = {0, 64, 128, 192, 256, 320, 384, 448};

// The first write is the generation's start; the thread of the first record begins it, and waits.
TEST(flight_test, a_record_is_durable_only_with_all_before_it) { // L2
    flight f(4);
    // In flight: the start, by the thread of record 1, and the frames of others. Ended out of order, newest first.
    size_t begun = f.sink.begun();
    ASSERT_EQ(size_t{frames_unstable}, begun);
    for (size_t n = begun; n-- > 1;) {
        f.sink.end(n);
        f.sink.wait_for_returned(begun - n);
        f.wait_until_all_sleep();
        EXPECT_EQ(0u, log_durable(f.get()));
        for (bool reported : {f.done[0].load(), f.done[1].load(), f.done[2].load(), f.done[3].load()})
            EXPECT_FALSE(reported);
        reading read = read_log(*f.memory.sink());
        EXPECT_OK(read.status);
        EXPECT_EQ(0u, read.records.size());
    }
    f.sink.let_all_pass();
    f.join();
    EXPECT_EQ(4u, log_durable(f.get()));
    EXPECT_EQ(f.records, read_log(*f.memory.sink()).records);
}

TEST(flight_test, no_more_are_in_flight_than_a_reader_looks_for) { // L6
    flight f(9);
    EXPECT_EQ(size_t{frames_unstable}, f.sink.begun());
    for (size_t n = frames_unstable; n-- > 1;)
        f.sink.end(n); // they wait for the first, and still count
    std::this_thread::yield();
    EXPECT_EQ(size_t{frames_unstable}, f.sink.begun());
}

// Whatever subset of the writes in flight arrives, the reader finds those without a gap, and no damage. Whoever goes on
// from there is read, and nothing of what was left out; also when what was read and never acknowledged is lost (L4).
TEST(flight_test, any_subset_of_what_is_in_flight_may_arrive) { // L4, L6
    for (uint64_t left : lefts) {
        flight f(6, left);
        size_t begun = f.sink.begun();
        for (unsigned subset = 0; subset < 1u << begun; ++subset) {
            SCOPED_TRACE(testing::Message() << left << " left, subset " << subset);
            memory_log after;
            f.crash(subset, after);
            reading read = read_log(*after.sink(), f.start);
            ASSERT_OK(read.status);
            size_t whole = 0;
            while (subset >> whole & 1)
                ++whole;
            EXPECT_EQ(whole, read.contents.frames);
            std::vector<std::string> expected = read.records;
            log_owner next(start_after(after.sink(), f.start, read));
            for (uint64_t i = 0; i < 9; ++i) {
                expected.push_back(record_of(1000 + i, 40)); // a block
                ASSERT_OK(append(next.get(), expected.back()));
                ASSERT_OK(log_wait(next.get(), log_last(next.get())));
                memory_log cut;
                for (unsigned lost = 0; lost < 1u << whole; ++lost) {
                    cut.copy_from(after);
                    for (size_t n = 0; n < whole; ++n)
                        if (lost >> n & 1)
                            f.lose(n, cut);
                    reading again = read_log(*cut.sink(), f.start);
                    ASSERT_OK(again.status);
                    ASSERT_EQ(expected, again.records) << "lost " << lost << ", then " << i;
                }
            }
        }
    }
}

// L4. A process dies while it repeats what may not be durable, after any of its writes; the next one repeats it all.
TEST(flight_test, repeating_may_be_cut_short) {
    struct mortal_sink {
        const ty_log_sink *below;
        unsigned writes_left;
        static ty_status read(void *context, uint64_t offset, void *buffer, size_t bytes) {
            const ty_log_sink *below = static_cast<mortal_sink *>(context)->below;
            return below->read(below->context, offset, buffer, bytes);
        }
        static ty_status write(void *context, uint64_t offset, const void *buffer, size_t bytes) {
            auto &self = *static_cast<mortal_sink *>(context);
            if (self.writes_left == 0)
                return TY_OK; // the process is dead, and does not know it
            --self.writes_left;
            return self.below->write(self.below->context, offset, buffer, bytes);
        }
    };
    flight f(4, 448, 35000, 2); // four frames of two records each
    ASSERT_EQ(size_t{frames_unstable}, f.sink.begun());
    for (unsigned writes = 0; writes < 8; ++writes) {
        SCOPED_TRACE(writes);
        memory_log after;
        f.crash(0xf, after);
        mortal_sink context{after.sink(), writes};
        ty_log_sink mortal = *after.sink();
        mortal.context = &context;
        mortal.read = mortal_sink::read;
        mortal.write = mortal_sink::write;
        reading read = read_log(mortal, f.start);
        ASSERT_OK(read.status);
        log_owner second(start_after(&mortal, f.start, read));
        ASSERT_OK(append(second.get(), "second"));
        ASSERT_OK(log_wait(second.get(), log_last(second.get())));
        reading again = read_log(*after.sink(), f.start);
        ASSERT_OK(again.status);
        std::vector<std::string> expected = again.records;
        ASSERT_GE(expected.size(), read.records.size());
        log_owner third(start_after(after.sink(), f.start, again));
        expected.push_back("third");
        ASSERT_OK(append(third.get(), "third"));
        ASSERT_OK(log_wait(third.get(), log_last(third.get())));
        for (size_t n = 0; n <= f.sink.begun(); ++n) {
            reading last = read_log(*after.sink(), f.start);
            ASSERT_OK(last.status);
            ASSERT_EQ(expected, last.records) << n;
            if (n < f.sink.begun())
                f.lose(n, after);
        }
    }
}

TEST(flight_test, a_failed_write_breaks_the_log_for_it_and_all_after) {
    flight f(6);
    f.sink.end(0);
    f.sink.end(1, TY_E_SPACE);
    f.sink.let_all_pass();
    f.join();
    EXPECT_TRUE(log_broken(f.get()));
    uint64_t durable = log_durable(f.get());
    for (size_t i = 0; i < 6; ++i)
        EXPECT_EQ(i < durable ? TY_OK : TY_E_SPACE, f.status[i].load()) << i;
    EXPECT_LT(durable, 6u);
    EXPECT_EQ(TY_E_SPACE, append(f.get(), "more"));
    EXPECT_EQ(TY_E_SPACE, log_wait(f.get(), 6));
    log_positions redo_point = log_positions_now(f.get());
    EXPECT_EQ(6u, redo_point.lsn);
    log_continue(f.get(), redo_point);
    EXPECT_OK(log_wait(f.get(), 6));
    ASSERT_OK(append(f.get(), "after"));
    EXPECT_OK(log_wait(f.get(), 7));
    EXPECT_EQ(std::vector<std::string>{"after"}, read_log(*f.memory.sink(), redo_point).records);
}

// L6. Also where the frames that show it are as far away as they can be: the one after the damage was in flight with
// it.
TEST(flight_test, damage_is_reported_by_frames_of_the_largest_size) {
    flight f(4, 448, 60000, 2); // the start of a wrap, and four frames
    f.sink.end(0);
    f.sink.wait_for_begun(3); // the second frame, while the first is in flight
    f.sink.let_all_pass();
    f.join();
    ASSERT_EQ(log_last(f.get()), log_durable(f.get()));
    ASSERT_GT(f.sink.get(1).bytes.size(), 100000u);
    ASSERT_EQ(f.records, read_log(*f.memory.sink(), f.start).records);
    memory_log damaged;
    damaged.copy_from(f.memory);
    f.lose(1, damaged);
    EXPECT_EQ(TY_E_DAMAGED, read_log(*damaged.sink(), f.start).status);
}

// The start of a wrap arrived, and the frame before it, up to the ring's end, did not. The generation after it comes to
// the same place with what it repeats, and that old start is none of its own.
TEST(flight_test, a_wrap_of_a_dead_generation_is_not_read_after_another) {
    flight f(1, 192, 40);
    f.sink.end(0);
    f.join();
    std::vector<std::thread> waiting;
    for (size_t size : {100, 40}) { // two blocks, and what goes to the ring's front
        ASSERT_OK(append(f.get(), record_of(size, size)));
        log_positions_now(f.get());
        waiting.emplace_back([&f, last = log_last(f.get())] { EXPECT_OK(log_wait(f.get(), last)); });
        f.sink.wait_for_begun(waiting.size() + 1);
    }
    memory_log after;
    f.crash(0b101, after);
    f.sink.let_all_pass();
    for (std::thread &one : waiting)
        one.join();
    reading read = read_log(*after.sink(), f.start);
    ASSERT_OK(read.status);
    ASSERT_EQ(f.records, read.records);
    log_owner next(start_after(after.sink(), f.start, read));
    ASSERT_OK(log_wait(next.get(), log_last(next.get())));
    read = read_log(*after.sink(), f.start);
    ASSERT_OK(read.status);
    EXPECT_EQ(f.records, read.records);
    EXPECT_EQ(2u, read.contents.end.at[0].offset / 64 - (f.start.at[0].offset / 64 + 1))
        << "start and record, up to the end";
}

// L6. A frame that was acknowledged and is damaged is distinguished from one that never arrived, as soon as later ones
// show it.
TEST(flight_test, damage_is_distinguished_from_a_crash) {
    memory_log in;
    log_owner l(start_log(in.sink()));
    std::vector<uint64_t> ends{0};
    std::vector<std::string> model;
    for (int i = 0; i < 12; ++i) {
        model.push_back(record_of(i, 50 + i * 37));
        ASSERT_OK(append(l.get(), model.back()));
        ASSERT_OK(log_wait(l.get(), model.size()));
        ends.push_back(log_positions_now(l.get()).at[0].offset);
    }
    log_header header;
    ASSERT_OK(log_check(*in.sink(), log_path, nullptr, &header));
    for (size_t frame = 0; frame < model.size(); ++frame) {
        uint64_t end = frame == 0 ? 64 : ends[frame + 1]; // of frame 0 the generation's start
        for (uint64_t at = frame == 0 ? 0 : ends[frame]; at < end; at += 5) {
            memory_log copy;
            copy.copy_from(in);
            char &byte = copy.data()[header.ring_offset + at];
            byte = static_cast<char>(byte ^ 1 << at % 8);
            reading read = read_log(*copy.sink());
            if (read.status == TY_OK && read.records == model)
                continue; // a byte of padding
            bool last = frame + 1 == model.size();
            EXPECT_EQ(last ? TY_OK : TY_E_DAMAGED, read.status) << frame << " " << at;
            EXPECT_EQ(model.size() - 1, last ? read.records.size() : model.size() - 1);
        }
    }
}

} // namespace
