// Goal: a side record of a heap is read as it was written last, whatever a power cut or a torn write takes by anybody,
// while the heap is open, and is none in another heap's file; of those who write it at once none takes back what
// another one has written; one that is damaged is not taken for none (I25). Method: real files whose bytes are
// changed; threads that count in one side record.
#include "support.hpp"

#include "tests/os/temporary_folder.hpp"
#include <fcntl.h>
#include <gtest/gtest.h>
#include <taiyen/side_record.h>
#include <thread>
#include <unistd.h>

using namespace taiyen::test;

namespace {

class side_record_test : public testing::Test {
protected:
    void SetUp() override {
        ty_open_options options = TY_OPEN_OPTIONS_INIT;
        options.kind = TY_TRANSACTIONAL;
        options.limit_bytes = size_t{16} << 20;
        ASSERT_EQ(TY_OK, ty_open(path.c_str(), &options, &heap, nullptr));
        ASSERT_EQ(TY_OK, ty_side_records_open(path.c_str(), nullptr, &side_records));
    }
    void TearDown() override {
        ty_side_records_close(side_records);
        EXPECT_EQ(TY_OK, ty_close(heap));
    }
    std::string read(uint32_t side_record = 0) {
        char bytes[TY_SIDE_RECORD_BYTES_MAX];
        size_t size = 0;
        ty_side_records *fresh = nullptr;
        EXPECT_EQ(TY_OK, ty_side_records_open(path.c_str(), nullptr, &fresh));
        EXPECT_EQ(TY_OK, ty_side_records_read(fresh, side_record, bytes, sizeof bytes, &size)) << ty_error_text();
        ty_side_records_close(fresh);
        return std::string(bytes, size);
    }
    void write(const std::string &text, bool durable, uint32_t side_record = 0) {
        EXPECT_EQ(TY_OK, ty_side_records_write(side_records, side_record, text.data(), text.size(), durable))
            << ty_error_text();
    }
    void reopen() { // as after a power cut
        ty_side_records_close(side_records);
        ASSERT_EQ(TY_OK, ty_side_records_open(path.c_str(), nullptr, &side_records));
    }
    // Tears a slot of side record 0.
    void tear(off_t slot) {
        const int fd = open(path.c_str(), O_WRONLY);
        EXPECT_EQ(4, pwrite(fd, "torn", 4, (2 + slot) * 4096 + 100));
        ::close(fd);
    }

    temporary_folder folder;
    std::string path = folder.file("heap.ty");
    ty_heap *heap = nullptr;
    ty_side_records *side_records = nullptr;
};

TEST_F(side_record_test, is_read_as_it_was_written) {
    EXPECT_EQ("", read());
    write("first", true);
    write("other", true, 1);
    EXPECT_EQ("first", read());
    for (int n = 0; n < 20; ++n) {
        write("now " + std::to_string(n), n % 3 == 0);
        EXPECT_EQ("now " + std::to_string(n), read());
        EXPECT_EQ("other", read(1));
    }
    ASSERT_EQ(TY_OK, ty_snapshot(heap));
    EXPECT_EQ("now 19", read());
    EXPECT_EQ(TY_E_ARGUMENT, ty_side_records_write(side_records, 2, "x", 1, true));
    EXPECT_EQ(TY_E_ARGUMENT, ty_side_records_write(side_records, 0, "x", 0, true));
    EXPECT_EQ(TY_E_ARGUMENT, ty_side_records_open(nullptr, nullptr, &side_records));
}

// Those in doubt all went to one slot.
TEST_F(side_record_test, what_was_durable_stays) {
    write("durable", true);
    for (int n = 0; n < 7; ++n)
        write("in doubt", false);
    EXPECT_EQ("in doubt", read());
    tear(1);
    EXPECT_EQ("durable", read());
    reopen();
    write("again", true);
    tear(0);
    EXPECT_EQ("again", read());
}

// I25: the first write goes to both slots; it may itself be torn.
TEST_F(side_record_test, what_is_damaged_is_not_none) {
    char bytes[TY_SIDE_RECORD_BYTES_MAX];
    size_t size = 0;
    tear(1);
    EXPECT_EQ("", read());
    write("mine", false);
    for (int slot = 0; slot < 2; ++slot) {
        tear(slot);
        if (slot == 0) {
            EXPECT_EQ("mine", read());
        }
    }
    reopen();
    EXPECT_EQ(TY_E_DAMAGED, ty_side_records_read(side_records, 0, bytes, sizeof bytes, &size));
    EXPECT_EQ(TY_E_DAMAGED, ty_side_records_write(side_records, 0, "x", 1, true));
    EXPECT_NE(nullptr, strstr(ty_error_text(), "keep the file")) << ty_error_text();
    EXPECT_EQ(TY_OK, ty_side_records_read(side_records, 1, bytes, sizeof bytes, &size)) << ty_error_text();
}

// Also I25.
TEST_F(side_record_test, of_two_that_write_at_once_one_is_refused) {
    ty_side_records *other = nullptr;
    char bytes[TY_SIDE_RECORD_BYTES_MAX];
    size_t size = 0;
    write("first", true);
    ASSERT_EQ(TY_OK, ty_side_records_open(path.c_str(), nullptr, &other));
    for (bool durable : {true, false}) {
        ASSERT_EQ(TY_OK, ty_side_records_read(other, 0, bytes, sizeof bytes, &size));
        write("mine", durable);
        EXPECT_EQ(TY_E_BUSY, ty_side_records_write(other, 0, "other", 5, durable));
        EXPECT_EQ(TY_E_BUSY, ty_side_records_write(other, 0, "other", 5, durable));
        EXPECT_EQ("mine", read());
        ASSERT_EQ(TY_OK, ty_side_records_read(other, 0, bytes, sizeof bytes, &size));
        EXPECT_EQ(TY_OK, ty_side_records_write(other, 0, "other", 5, durable)) << ty_error_text();
        EXPECT_EQ("other", read());
        EXPECT_EQ(TY_E_BUSY, ty_side_records_write(side_records, 0, "mine", 4, durable));
        ASSERT_EQ(TY_OK, ty_side_records_read(side_records, 0, bytes, sizeof bytes, &size));
    }
    ty_side_records_close(other);
}

TEST_F(side_record_test, none_takes_back_what_another_one_has_written) {
    constexpr int threads = 4, times = 300;
    const auto count_up = [this] {
        ty_side_records *mine = nullptr;
        ASSERT_EQ(TY_OK, ty_side_records_open(path.c_str(), nullptr, &mine));
        for (int n = 0; n < times;) {
            uint64_t count = 0;
            size_t size = 0;
            ASSERT_EQ(TY_OK, ty_side_records_read(mine, 0, &count, sizeof count, &size)) << ty_error_text();
            ++count;
            const ty_status status = ty_side_records_write(mine, 0, &count, sizeof count, n % 100 == 0);
            ASSERT_TRUE(status == TY_OK || status == TY_E_BUSY) << ty_error_text();
            n += status == TY_OK;
        }
        ty_side_records_close(mine);
    };
    std::vector<std::thread> all;
    for (int n = 0; n < threads; ++n)
        all.emplace_back(count_up);
    for (std::thread &one : all)
        one.join();
    uint64_t count = 0;
    const std::string bytes = read();
    ASSERT_EQ(sizeof count, bytes.size());
    memcpy(&count, bytes.data(), sizeof count);
    EXPECT_EQ(uint64_t(threads * times), count);
}

TEST_F(side_record_test, is_none_in_another_heap) {
    write("mine", true);
    char slots[4 * 4096];
    const int from = open(path.c_str(), O_RDONLY);
    ASSERT_EQ(ssize_t(sizeof slots), pread(from, slots, sizeof slots, 2 * 4096));
    ::close(from);
    ty_side_records_close(side_records);
    ASSERT_EQ(TY_OK, ty_close(heap));
    path = folder.file("other.ty");
    SetUp();
    const int to = open(path.c_str(), O_WRONLY);
    ASSERT_EQ(ssize_t(sizeof slots), pwrite(to, slots, sizeof slots, 2 * 4096));
    ::close(to);
    EXPECT_EQ("", read());
}

} // namespace
