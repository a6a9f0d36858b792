// Goal: sinks keep their contract, a log's file is whole or not there, and a file that is foreign, cut, damaged or on a
// failing disk gives a status. Method: each sink by itself; each operation of a simulated disk fails once; every byte
// of a log's header and records flips.
#include "../support.hpp"

using namespace taiyen;
using namespace taiyen::test;

namespace {

TEST(sink_test, memory_and_tee_keep_what_is_written) {
    alignas(64) static char memory[2][small_log];
    for (bool write_back : {false, true}) {
        if (write_back && !os::can_write_back_cache())
            continue;
        ty_log_sink *one = nullptr, *two = nullptr, *tee = nullptr;
        ASSERT_OK(memory_sink_create(memory[0], small_log, write_back, 1000, &one));
        ASSERT_OK(memory_sink_create(memory[1], small_log, write_back, 0, &two));
        ASSERT_OK(tee_sink_create(one, two, &tee));
        sink_owner first(one), second(two), both(tee);
        ASSERT_OK(log_format(*tee, test_identity));
        std::vector<std::string> model;
        {
            log_owner l(start_log(tee));
            for (int i = 0; i < 100; ++i) {
                model.push_back(record_of(i, 1 + i * 13));
                ASSERT_OK(append(l.get(), model.back()));
                ASSERT_OK(log_wait(l.get(), model.size()));
            }
        }
        for (const ty_log_sink *sink : {one, two, tee})
            EXPECT_EQ(model, read_log(*sink).records);
        one->read = [](void *, uint64_t, void *, size_t) { return TY_E_IO; };
        EXPECT_EQ(model, read_log(*tee).records);
        one->write = [](void *, uint64_t, const void *, size_t) { return TY_E_SPACE; };
        reading read = read_log(*tee);
        log_owner l(start_after(tee, {}, read));
        ASSERT_OK(append(l.get(), "x"));
        EXPECT_EQ(TY_E_SPACE, log_wait(l.get(), model.size() + 1));
    }
}

// L4. A crash left a record on the first of two sinks only. It was read, and so it must be on both before anything
// else.
TEST(sink_test, what_one_of_two_sinks_missed_is_written_again) {
    memory_log one, two;
    ty_log_sink *made = nullptr;
    ASSERT_OK(tee_sink_create(one.sink(), two.sink(), &made));
    sink_owner tee(made);
    ASSERT_OK(log_format(*tee, test_identity));
    std::vector<std::string> model{"first", "second"};
    log_owner l(start_log(tee.get()));
    ASSERT_OK(append(l.get(), model[0]));
    ASSERT_OK(log_wait(l.get(), 1));
    std::string before(two.data(), two.size());
    ASSERT_OK(append(l.get(), model[1]));
    ASSERT_OK(log_wait(l.get(), 2));
    memcpy(two.data(), before.data(), before.size());
    reading read = read_log(*tee);
    ASSERT_EQ(model, read.records);
    l.reset(start_after(tee.get(), {}, read));
    EXPECT_EQ(1u, log_durable(l.get()));
    ASSERT_OK(log_wait(l.get(), 2)); // an open that wants it so
    EXPECT_EQ(model, read_log(*two.sink()).records);
    model.push_back("third");
    ASSERT_OK(append(l.get(), model[2]));
    ASSERT_OK(log_wait(l.get(), 3));
    for (const ty_log_sink *sink : {one.sink(), two.sink(), static_cast<const ty_log_sink *>(tee.get())}) {
        reading again = read_log(*sink);
        EXPECT_OK(again.status);
        EXPECT_EQ(model, again.records);
    }
}

TEST(sink_test, a_log_file_is_whole_or_not_there) {
    uint64_t failures = 0;
    for (uint64_t after = 0; after < 40; ++after) {
        disk_owner disk(os::sim_create());
        const ty_storage &storage = *os::sim_storage(disk.get());
        os::sim_set_fault(disk.get(), {os::sim_op_any, after, false, TY_E_IO});
        ty_log_sink *sink = nullptr;
        ty_status status = file_sink_create(log_path, small_log, storage, &sink);
        failures += status != TY_OK;
        os::sim_set_fault(disk.get(), {});
        sink_owner owner(sink);
        owner.reset();
        for (uint64_t event = 0; event <= os::sim_event_count(disk.get()); ++event) {
            disk_owner cut(os::sim_power_cut(disk.get(), event, os::sim_cut::random, event));
            ty_log_sink *found = nullptr;
            ty_status opened = file_sink_open(log_path, true, *os::sim_storage(cut.get()), &found);
            sink_owner found_owner(found);
            ASSERT_TRUE(opened == TY_OK || opened == TY_E_NOT_FOUND);
            if (opened == TY_OK) {
                EXPECT_EQ(small_log, found->size_bytes);
            }
        }
        ASSERT_OK(file_sink_create(log_path, small_log, storage, &sink)); // whatever was left
        sink_destroy(sink);
    }
    EXPECT_GT(failures, 5u);
}

TEST(sink_test, a_full_disk_is_reported_when_the_file_is_made) {
    disk_owner disk(os::sim_create());
    os::sim_set_capacity(disk.get(), small_log / 2);
    ty_log_sink *sink = nullptr;
    EXPECT_EQ(TY_E_SPACE, file_sink_create(log_path, small_log, *os::sim_storage(disk.get()), &sink));
    EXPECT_EQ(TY_E_NOT_FOUND, file_sink_open(log_path, true, *os::sim_storage(disk.get()), &sink));
}

TEST(sink_test, a_file_is_open_for_writing_once) {
    disk_owner disk(os::sim_create());
    sink_owner sink = create_log(disk.get());
    ty_log_sink *second = nullptr;
    EXPECT_EQ(TY_E_BUSY, file_sink_open(log_path, true, *os::sim_storage(disk.get()), &second));
    EXPECT_TRUE(open_log(disk.get(), false));
}

TEST(sink_test, foreign_cut_and_unknown_logs_are_refused) {
    memory_log in;
    log_identity other_log = test_identity, other_heap = test_identity;
    other_log.log += 1;
    other_heap.heap[5] ^= 1;
    EXPECT_EQ(TY_E_MISMATCH, read_log(*in.sink(), {}, other_log).status);
    EXPECT_EQ(TY_E_MISMATCH, read_log(*in.sink(), {}, other_heap).status);
    EXPECT_OK(log_check(*in.sink(), log_path, nullptr, nullptr));
    ty_log_sink cut = *in.sink();
    cut.size_bytes = small_log / 2;
    EXPECT_EQ(TY_E_DAMAGED, read_log(cut).status);
    cut.size_bytes = 0;
    EXPECT_EQ(TY_E_DAMAGED, read_log(cut).status);
    ty_log_sink coarse = *in.sink();
    coarse.block_bytes = 4096;
    EXPECT_EQ(TY_E_MISMATCH, read_log(coarse).status);
    EXPECT_EQ(TY_E_DAMAGED, read_log(*in.sink(), positions_of_one({3, 0, 0})).status);
    for (size_t at = 0; at < sizeof(log_header); ++at) {
        memory_log copy;
        copy.copy_from(in);
        copy.data()[at] ^= 4;
        EXPECT_EQ(TY_OK, read_log(*copy.sink()).status) << at; // the other header serves
        copy.data()[sizeof(log_header) + at] ^= 4;
        ty_status status = read_log(*copy.sink()).status;
        EXPECT_TRUE(status == TY_E_DAMAGED || status == TY_E_FORMAT) << at;
    }
}

// A hostile header: its checksum is right. A fuzzer found a ring that began before the sink's front.
TEST(sink_test, a_ring_outside_of_the_sink_is_refused) {
    memory_log in;
    log_header sound;
    memcpy(&sound, in.data(), sizeof sound);
    for (uint64_t wrong : {uint64_t{0}, uint64_t{64}, UINT64_MAX, UINT64_MAX - 65535, uint64_t{1} << 63, small_log})
        for (uint64_t log_header::*field : {&log_header::ring_offset, &log_header::ring_bytes}) {
            log_header header = sound;
            header.*field = wrong;
            header.checksum = checksum(&header, offsetof(log_header, checksum));
            for (size_t slot = 0; slot < header_slots; ++slot)
                memcpy(in.data() + slot * sizeof header, &header, sizeof header);
            EXPECT_EQ(TY_E_DAMAGED, read_log(*in.sink()).status) << wrong;
        }
}

TEST(sink_test, a_failing_read_is_reported) {
    disk_owner disk(os::sim_create());
    sink_owner sink = create_log(disk.get());
    log_owner l(start_log(sink.get()));
    ASSERT_OK(append(l.get(), "one"));
    ASSERT_OK(log_wait(l.get(), 1));
    uint64_t failures = 0;
    for (uint64_t after = 0; after < 6; ++after) {
        os::sim_set_fault(disk.get(), {os::sim_op_read, after, false, TY_E_IO});
        reading read = read_log(*sink);
        EXPECT_TRUE(read.status == TY_E_IO || (read.status == TY_OK && read.records.size() == 1)) << after;
        failures += read.status != TY_OK;
    }
    EXPECT_GE(failures, 2u);
    os::sim_set_fault(disk.get(), {});
}

} // namespace
