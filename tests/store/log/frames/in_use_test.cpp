// Goal: a log that is read while it is written yields what was acknowledged, calls nothing damaged that is merely being
// written, and says where to go on (L12 to L15). Method: memory whose reads run the writer,
// before or within every one of them in turn.
#include "in_use.hpp"
#include "tests/effort.hpp"

using namespace taiyen;
using namespace taiyen::test;

namespace {

constexpr uint64_t two_rings = uint64_t{2} << 20;

std::vector<uint64_t> lsns(const live_reading &read) {
    std::vector<uint64_t> all;
    for (const reported_record &one : read.records)
        all.push_back(one.lsn);
    return all;
}

std::vector<uint64_t> up_to(uint64_t last) {
    std::vector<uint64_t> all;
    for (uint64_t n = 1; n <= last; ++n)
        all.push_back(n);
    return all;
}

// One ring, filled to some place; before one piece of what is read four frames are written, one after the other.
struct interrupted {
    live_reading read;
    bool wrote = false;
};
interrupted interrupt_one_ring(uint64_t filled, size_t size, unsigned at, bool in_use) {
    shared_memory memory(small_log, 1);
    log_owner l(start_log_beside(memory, false));
    uint64_t last = 0;
    for (uint64_t bytes = 0; bytes < filled; bytes += 30000) {
        append_at(l.get(), 0, ++last, 30000);
        EXPECT_OK(log_wait(l.get(), last));
    }
    interrupted result;
    memory.at_read = [&](unsigned number) {
        if (number != at)
            return;
        result.wrote = true;
        for (int i = 0; i < 4; ++i) {
            append_at(l.get(), 0, ++last, size);
            append_at(l.get(), 0, ++last, size);
            EXPECT_OK(log_wait(l.get(), last));
        }
    };
    const uint64_t acknowledged = last;
    result.read = read_beside(memory.sink(), {}, in_use);
    memory.at_read = nullptr;
    if (result.read.status)
        return result;
    EXPECT_LE(acknowledged, result.read.contents.end.lsn);
    EXPECT_EQ(up_to(result.read.contents.end.lsn), lsns(result.read));
    if (in_use)
        expect_in_copy(memory, {}, result.read);
    const live_reading rest = read_beside(memory.sink(), result.read.contents.next);
    EXPECT_OK(rest.status);
    EXPECT_EQ(last, rest.contents.end.lsn);
    EXPECT_EQ(last - result.read.contents.end.lsn, rest.records.size());
    return result;
}

// L12.
TEST(in_use_test, what_is_written_while_its_place_is_read_is_not_damage) {
    unsigned damaged = 0;
    for (uint64_t filled : {30000, 420000})
        for (size_t size : {3000, 30000, 60000})
            for (unsigned at = 0;; at += stride(2)) {
                SCOPED_TRACE(testing::Message() << filled << " bytes, then of " << size << ", at piece " << at);
                const interrupted one = interrupt_one_ring(filled, size, at, true);
                ASSERT_OK(one.read.status);
                ASSERT_FALSE(HasFailure());
                damaged += interrupt_one_ring(filled, size, at, false).read.status == TY_E_DAMAGED;
                if (!one.wrote)
                    break;
            }
    EXPECT_LT(0u, damaged) << "nothing was written at a moment that counts";
}

interrupted interrupt_two_rings(unsigned at, bool in_use) {
    shared_memory memory(two_rings, 2);
    log_owner l(start_log_beside(memory, false));
    uint64_t last = 0;
    const auto write = [&](uint64_t count) {
        for (uint64_t end = last + count; last < end;) {
            ++last;
            append_at(l.get(), last % 2, last, 500 + last % 7 * 20);
            EXPECT_OK(log_wait(l.get(), last, last % 2));
        }
    };
    write(9);
    interrupted result;
    memory.at_read = [&](unsigned number) {
        if (number == at) {
            result.wrote = true;
            write(7);
        }
    };
    const log_positions from{0, 2};
    const uint64_t acknowledged = last;
    result.read = read_beside(memory.sink(), from, in_use);
    memory.at_read = nullptr;
    if (result.read.status)
        return result;
    EXPECT_LE(acknowledged, result.read.contents.end.lsn);
    EXPECT_EQ(up_to(result.read.contents.end.lsn), lsns(result.read));
    if (in_use)
        expect_in_copy(memory, from, result.read);
    const live_reading rest = read_beside(memory.sink(), result.read.contents.next);
    EXPECT_OK(rest.status);
    EXPECT_EQ(last - result.read.contents.end.lsn, rest.records.size());
    return result;
}

// L13.
TEST(in_use_test, what_is_claimed_of_a_ring_that_was_read_before_is_looked_for_again) {
    unsigned damaged = 0;
    for (unsigned at = 0;; ++at) {
        SCOPED_TRACE(testing::Message() << "at piece " << at);
        const interrupted one = interrupt_two_rings(at, true);
        ASSERT_OK(one.read.status);
        ASSERT_FALSE(HasFailure());
        damaged += interrupt_two_rings(at, false).read.status == TY_E_DAMAGED;
        if (!one.wrote)
            break;
    }
    EXPECT_LT(0u, damaged) << "nothing was written at a moment that counts";
}

// L12: what is damage stays damage.
TEST(in_use_test, damage_is_reported) {
    shared_memory memory(small_log, 1);
    log_owner l(start_log_beside(memory, false));
    std::vector<uint64_t> ends;
    for (uint64_t n = 1; n <= 6; ++n) {
        append_at(l.get(), 0, n, 3000);
        ASSERT_OK(log_wait(l.get(), n));
        ends.push_back(log_positions_now(l.get()).at[0].offset);
    }
    memory.flip_bit(0, ends[2]);
    const live_reading read = read_beside(memory.sink(), {});
    EXPECT_EQ(TY_E_DAMAGED, read.status);
    EXPECT_EQ(up_to(3), lsns(read));
}

// L14: the writer comes to the reader's place again, and past it.
TEST(in_use_test, what_was_overwritten_is_distinguished_from_damage_and_from_the_end) {
    for (uint64_t begin : {20000, 300000, 600000, 900000}) {
        shared_memory memory(small_log, 1);
        log_owner l(start_log_beside(memory, false));
        uint64_t last = 0;
        const auto write_to = [&](uint64_t position) {
            while (log_positions_now(l.get()).at[0].offset < position) {
                append_at(l.get(), 0, ++last, 9000);
                ASSERT_OK(log_wait(l.get(), last));
                log_release(l.get(), log_positions_now(l.get()));
            }
        };
        write_to(begin);
        const log_positions from = log_positions_now(l.get());
        const uint64_t reported = last;
        bool busy = false;
        for (uint64_t more = 10000; more < 3 * small_log; more += 25000) {
            SCOPED_TRACE(testing::Message() << "from " << begin << " on, " << more << " bytes later");
            write_to(begin + more);
            const live_reading read = read_beside(memory.sink(), from);
            const bool over = log_positions_now(l.get()).at[0].offset > from.at[0].offset + memory.ring(0).bytes;
            ASSERT_EQ(over ? TY_E_BUSY : TY_OK, read.status) << ty_error_text();
            busy |= over;
            ASSERT_EQ(over ? 0 : last - reported, read.records.size());
            ASSERT_EQ(0u, read_beside(memory.sink(), log_positions_now(l.get())).records.size());
        }
        ASSERT_TRUE(busy);
    }
}

// A snapshot was taken in place of a log write: it alone holds what comes next.
TEST(in_use_test, what_only_a_snapshot_holds_is_not_passed_over) {
    shared_memory memory(small_log, 1);
    log_owner l(start_log_beside(memory, false));
    append_at(l.get(), 0, 1, 100);
    ASSERT_OK(log_wait(l.get(), 1));
    const live_reading first = read_beside(memory.sink(), {});
    ASSERT_OK(first.status);
    log_positions redo_points = log_positions_now(l.get());
    redo_points.lsn += 1;
    log_continue(l.get(), redo_points);
    append_at(l.get(), 0, 3, 100);
    ASSERT_OK(log_wait(l.get(), 3));
    EXPECT_EQ(TY_E_BUSY, read_beside(memory.sink(), first.contents.next).status);
    const live_reading second = read_beside(memory.sink(), redo_points);
    ASSERT_OK(second.status);
    EXPECT_EQ(std::vector<uint64_t>{3}, lsns(second));
}

// The same of several rings: one that holds nothing begins anew after what another one holds.
TEST(in_use_test, a_ring_that_begins_anew_continues_records_of_others) {
    for (bool lost : {false, true}) {
        shared_memory memory(two_rings, 2);
        log_owner l(start_log_beside(memory, false));
        append_at(l.get(), 0, 1, 100);
        append_at(l.get(), 0, 2, 100);
        if (!lost) {
            ASSERT_OK(log_wait(l.get(), 2, 0));
        }
        log_continue(l.get(), log_positions_now(l.get()));
        append_at(l.get(), 1, 3, 100);
        ASSERT_OK(log_wait(l.get(), 3, 1));
        for (bool in_use : {true, false}) {
            const live_reading read = read_beside(memory.sink(), log_positions{0, 2}, in_use);
            EXPECT_EQ(lost ? TY_E_DAMAGED : TY_OK, read.status);
            EXPECT_EQ(lost ? std::vector<uint64_t>{} : up_to(3), lsns(read));
        }
    }
}

// L15.
TEST(in_use_test, what_is_after_a_gap_is_reported_again_when_it_is_closed) {
    shared_memory memory(two_rings, 2);
    log_owner l(start_log_beside(memory, false));
    append_at(l.get(), 0, 1, 100);
    ASSERT_OK(log_wait(l.get(), 1, 0));
    append_at(l.get(), 0, 2, 100); // is not written yet
    append_at(l.get(), 1, 3, 100);
    append_at(l.get(), 1, 4, 100, true);
    ASSERT_OK(log_wait_stream(l.get(), 1, 4));
    const log_positions from{0, 2};
    const live_reading first = read_beside(memory.sink(), from);
    ASSERT_OK(first.status);
    EXPECT_EQ((std::vector<uint64_t>{1, 4}), lsns(first));
    EXPECT_EQ(1u, first.contents.next.lsn);
    expect_in_copy(memory, from, first);
    append_at(l.get(), 1, 5, 100);
    ASSERT_OK(log_wait(l.get(), 5, 1));
    const live_reading second = read_beside(memory.sink(), first.contents.next);
    ASSERT_OK(second.status);
    EXPECT_EQ((std::vector<uint64_t>{2, 3, 4, 5}), lsns(second));
    expect_in_copy(memory, first.contents.next, second);
    log_positions next = second.contents.next;
    const live_reading third = read_beside(memory.sink(), next);
    ASSERT_OK(third.status);
    EXPECT_TRUE(third.records.empty());
    next.lsn -= 1;
    EXPECT_EQ(std::vector<uint64_t>{5}, lsns(read_beside(memory.sink(), next)));
}

} // namespace
