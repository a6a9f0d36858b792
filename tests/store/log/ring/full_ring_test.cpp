// Goal: a ring that is filled to its last block keeps all that no snapshot holds (L1), whatever is written there: a
// frame, the start of a generation, the start of a wrap. Method: frames of one block each, so that the ring can be
// filled exactly, from any place on; a sink that knows what may be written over; and the log read back.
#include "ring_guard.hpp"

using namespace taiyen;
using namespace taiyen::test;

namespace {

class full_ring_test : public testing::Test {
protected:
    void SetUp() override { l.reset(start_log(guard.sink())); }

    // A record whose frame is so many blocks long.
    std::string blocks(size_t count) const {
        size_t payload = count * guard.ring().block_bytes - sizeof(frame_header);
        return record_of(all.size(), payload - length_bytes(payload - length_bytes_max));
    }
    ty_status add(size_t count) {
        std::string record = blocks(count);
        if (ty_status status = append(l.get(), record))
            return status;
        all.push_back(record);
        return log_wait(l.get(), all.size());
    }
    // Leaves so many blocks free. Frames of 64 blocks, then of one.
    void fill(uint64_t free_blocks) {
        for (uint64_t left = free_bytes(); left > free_blocks * block(); left = free_bytes()) {
            uint64_t wrap = l_position() % ring_bytes();
            uint64_t room = std::min(left - free_blocks * block(), ring_bytes() - wrap);
            ASSERT_OK(add(room >= 128 * block() ? 64 : 1));
        }
        ASSERT_EQ(free_blocks * block(), free_bytes());
    }
    void release() {
        redo_point = log_positions_now(l.get());
        guard.release(redo_point);
        log_release(l.get(), redo_point);
    }
    void expect_all_there() {
        reading read = read_log(*guard.sink(), redo_point);
        ASSERT_OK(read.status);
        ASSERT_EQ(std::vector<std::string>(all.begin() + ptrdiff_t(redo_point.lsn), all.end()), read.records);
    }
    void reopen() {
        l.reset();
        reading read = read_log(*guard.sink(), redo_point);
        ASSERT_OK(read.status);
        l.reset(start_after(guard.sink(), redo_point, read));
    }
    uint64_t block() const { return guard.ring().block_bytes; }
    uint64_t ring_bytes() const { return guard.ring().bytes; }
    uint64_t free_bytes() const { return ring_bytes() - log_get_metrics(l.get()).used_bytes; }
    uint64_t l_position() const { return redo_point.at[0].offset + log_get_metrics(l.get()).used_bytes; }

    memory_log in;
    ring_guard guard{in.sink()};
    log_owner l;
    log_positions redo_point{};
    std::vector<std::string> all;
};

TEST_F(full_ring_test, it_is_filled_to_its_last_block_from_any_place_on) {
    for (size_t before : {0, 1, 2, 3, 100, 5000}) { // after the redo point that the ring is filled from
        SCOPED_TRACE(before);
        for (size_t i = 0; i < before; ++i)
            ASSERT_OK(add(1));
        release();
        ASSERT_NO_FATAL_FAILURE(fill(0));
        ASSERT_EQ(TY_E_SPACE, append(l.get(), "x"));
        ASSERT_NO_FATAL_FAILURE(expect_all_there());
        release();
        ASSERT_OK(add(1));
        ASSERT_NO_FATAL_FAILURE(expect_all_there());
    }
}

// What is larger than what is free is refused, and what is as large is not.
TEST_F(full_ring_test, what_fits_exactly_is_taken) {
    for (int before = 0; before < 20; ++before) // more than are to be free: frames do not lie across the ring's end
        ASSERT_OK(add(1));
    release();
    for (size_t size : {1, 2, 7}) {
        SCOPED_TRACE(size);
        ASSERT_NO_FATAL_FAILURE(fill(size + 1));
        ASSERT_OK(add(1));
        ASSERT_EQ(TY_E_SPACE, append(l.get(), blocks(size) + "x"));
        ASSERT_OK(add(size));
        ASSERT_EQ(0u, free_bytes());
        ASSERT_NO_FATAL_FAILURE(expect_all_there());
        release();
    }
}

// The start of a generation takes a block; what it repeats, more.
TEST_F(full_ring_test, an_open_of_a_full_ring_writes_over_nothing) {
    ASSERT_OK(add(3));
    release();
    ASSERT_NO_FATAL_FAILURE(fill(0));
    for (int time = 0; time < 3; ++time) {
        ASSERT_NO_FATAL_FAILURE(reopen());
        ASSERT_EQ(TY_E_SPACE, append(l.get(), "x"));
        ASSERT_NO_FATAL_FAILURE(expect_all_there());
    }
}

// After a snapshot in place of a log write nothing is repeated: the start alone must fit.
TEST_F(full_ring_test, a_generation_after_a_snapshot_needs_its_block) {
    for (uint64_t kept : {0, 1, 5}) { // blocks after the redo point that is durable
        SCOPED_TRACE(kept);
        ASSERT_OK(add(1));
        log_positions now = log_positions_now(l.get());
        log_continue(l.get(), now);
        guard.release(now);
        guard.go_on_from(now.at[0].offset);
        redo_point = now;
        for (uint64_t i = 0; i < kept; ++i)
            ASSERT_OK(add(1));
        ASSERT_NO_FATAL_FAILURE(fill(0));
        ASSERT_EQ(TY_E_SPACE, append(l.get(), "x"));
        ASSERT_NO_FATAL_FAILURE(expect_all_there());
        release();
    }
}

// A redo point frees what is before it and nothing of what was appended while its snapshot was written.
TEST_F(full_ring_test, appends_during_a_snapshot_stay) {
    for (uint64_t meanwhile : {1, 2, 300}) {
        SCOPED_TRACE(meanwhile);
        for (int i = 0; i < 50; ++i)
            ASSERT_OK(add(1));
        redo_point = log_positions_now(l.get());
        for (uint64_t i = 0; i < meanwhile; ++i)
            ASSERT_OK(add(1));
        guard.release(redo_point);
        log_release(l.get(), redo_point);
        EXPECT_GE(log_get_metrics(l.get()).used_bytes, meanwhile * block());
        ASSERT_NO_FATAL_FAILURE(fill(0));
        ASSERT_NO_FATAL_FAILURE(expect_all_there());
        release();
    }
}

// L6. The front of the ring shows each wrap, also where the one before ended exactly at the ring's end: else nothing
// would show a reader that knows only an earlier generation that all of its place was written over.
TEST_F(full_ring_test, an_older_snapshot_is_refused_after_wraps_that_end_at_the_rings_end) {
    ASSERT_OK(add(1));
    release();
    const log_positions old = redo_point;
    ASSERT_OK(add(1));
    ASSERT_NO_FATAL_FAILURE(reopen());
    for (int wrap = 0; wrap < 3; ++wrap) {
        ASSERT_NO_FATAL_FAILURE(fill(0)); // frames end there, as they do not lie across it
        release();
        if (wrap > 0) { // the first one goes up to the old mark's place
            EXPECT_EQ(TY_E_DAMAGED, read_log(*guard.sink(), old).status) << wrap;
        }
    }
}

} // namespace
