// Goal: a log that a thread reads ahead reads as it does without one, whatever reads fail. Method: records that fill
// most of a ring of 32 MB, from before its end to after its front, on a sink whose n-th read fails, once or for ever;
// and rows of reads of the ring's bytes with jumps between.
#include "../support.hpp"

#include "src/store/log/frames/ring_view.hpp"

#include <atomic>

using namespace taiyen;
using namespace taiyen::test;

namespace {

constexpr uint64_t ring_bytes = uint64_t{32} << 20;

class failing_sink {
public:
    explicit failing_sink(const ty_log_sink *below) : below_(below), table_(*below) {
        table_.context = this;
        table_.read = [](void *context, uint64_t offset, void *buffer, size_t bytes) {
            auto &self = *static_cast<failing_sink *>(context);
            EXPECT_EQ(0u, self.under_way.fetch_add(1)); // one at a time
            uint64_t number = self.reads.fetch_add(1);
            bool fails = number >= self.fails_from && number < self.fails_until;
            ty_status status = fails ? ty_error_set(TY_E_IO, 5, "read a failing sink", nullptr, UINT64_MAX, nullptr)
                                     : self.below_->read(self.below_->context, offset, buffer, bytes);
            self.under_way.fetch_sub(1);
            return status;
        };
    }
    const ty_log_sink &table() const { return table_; }
    void fail(uint64_t from, uint64_t until) {
        reads = 0;
        fails_from = from;
        fails_until = until;
    }

    std::atomic<uint64_t> reads{0};
    std::atomic<uint64_t> under_way{0};
    uint64_t fails_from = UINT64_MAX;
    uint64_t fails_until = UINT64_MAX;

private:
    const ty_log_sink *below_;
    ty_log_sink table_;
};

class read_ahead_test : public testing::Test {
protected:
    read_ahead_test() {
        log_owner l(start_log(memory.sink()));
        for (uint64_t n = 1; n <= 520; ++n) { // one and a half turns
            std::string record = record_of(n, 60000 + n * 97 % 50000);
            EXPECT_OK(append(l.get(), record));
            if (n == 200) {
                EXPECT_OK(log_wait(l.get(), n));
                start = log_positions_now(l.get());
                log_release(l.get(), start);
            }
            if (n > start.lsn && start.lsn)
                records.push_back(record);
        }
        EXPECT_OK(log_wait(l.get(), 520));
    }
    reading read(bool ahead) { return read_log(sink.table(), start, test_identity, ahead); }

    memory_log memory{ring_bytes};
    failing_sink sink{memory.sink()};
    log_positions start{};
    std::vector<std::string> records;
};

TEST_F(read_ahead_test, gives_the_same) {
    for (bool ahead : {false, true}) {
        sink.fail(UINT64_MAX, UINT64_MAX);
        reading got = read(ahead);
        EXPECT_OK(got.status);
        EXPECT_TRUE(records == got.records) << got.records.size() << " of " << records.size();
        EXPECT_LT(got.contents.end.at[0].offset % ring_bytes, start.at[0].offset % ring_bytes)
            << "it does not cross the end";
    }
}

TEST_F(read_ahead_test, reports_reads_that_fail_for_ever) {
    sink.fail(UINT64_MAX, UINT64_MAX);
    EXPECT_OK(read(true).status);
    for (uint64_t n = 0; n < sink.reads; ++n) {
        SCOPED_TRACE(n);
        uint64_t all = sink.reads;
        sink.fail(n, UINT64_MAX);
        reading got = read(true);
        ty_error error;
        ty_error_detail(&error);
        if (got.status) { // else what failed was read ahead, and not wanted
            EXPECT_EQ(TY_E_IO, got.status);
            EXPECT_STREQ("read a failing sink", error.operation);
        }
        EXPECT_TRUE(got.status || got.records == records);
        EXPECT_TRUE(got.status || n + 2 >= all);
        sink.reads = all;
    }
}

// One that was read ahead is read again by who wants it.
TEST_F(read_ahead_test, gives_all_or_reports_where_one_read_fails) {
    sink.fail(UINT64_MAX, UINT64_MAX);
    EXPECT_OK(read(true).status);
    const uint64_t all = sink.reads;
    uint64_t reported = 0;
    for (uint64_t n = 0; n < all; ++n) {
        SCOPED_TRACE(n);
        sink.fail(n, n + 1);
        reading got = read(true);
        reported += got.status != TY_OK;
        EXPECT_TRUE(got.status == TY_E_IO || got.records == records);
    }
    EXPECT_GT(reported, 0u);
    EXPECT_LT(reported, all);
}

// Where the reader goes elsewhere, it gets what is there, and not what was read ahead for another place.
TEST_F(read_ahead_test, gives_what_is_at_a_place) {
    log_header header;
    ASSERT_OK(log_check(sink.table(), log_path, &test_identity, &header));
    const ring_geometry ring = geometry_of(header);
    ring_view view(sink.table(), ring, true);
    ASSERT_OK(view.create());
    std::mt19937_64 random(5);
    for (int row = 0; row < 100; ++row) {
        uint64_t place = random() % (ring.bytes / ring.block_bytes) * ring.block_bytes;
        for (uint64_t steps = random() % 12; steps && place < ring.bytes; --steps) {
            uint64_t bytes = std::min<uint64_t>(1 + random() % ring.frame_bytes_max, ring.bytes - place);
            const uint8_t *found = nullptr;
            bytes = (bytes + ring.block_bytes - 1) / ring.block_bytes * ring.block_bytes;
            ASSERT_OK(view.get(place, bytes, &found));
            ASSERT_EQ(0, memcmp(memory.data() + ring.offset + place, found, bytes)) << row << " at " << place;
            place += bytes;
        }
    }
}

} // namespace
