// What the log tests share: a log on a simulated disk or in memory, and what is read back from it.
#pragma once

#include "src/store/log/frames/frame.hpp"
#include "tests/simulated_disk/storage_sim.hpp"

#include <atomic>
#include <cstring>
#include <functional>
#include <gtest/gtest.h>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace taiyen::test {

#define ASSERT_OK(call) ASSERT_EQ(TY_OK, call) << ty_error_text()
#define EXPECT_OK(call) EXPECT_EQ(TY_OK, call) << ty_error_text()

inline constexpr const char *log_path = "test.ty-log";
inline constexpr uint64_t small_log = TY_LOG_BYTES_MIN;
inline const log_identity test_identity = {{1, 2, 3}, 4711};

// What a scan gives: by LSN, from `from` on.
struct reading {
    ty_status status = TY_OK;
    log_contents contents{};
    uint64_t first_lsn = 0;           // after it
    std::vector<std::string> records; // [i] has LSN first_lsn + 1 + i
};

inline reading read_log(const ty_log_sink &sink, log_positions from = {}, log_identity identity = test_identity,
                        bool ahead = false) {
    reading result;
    result.first_lsn = from.lsn;
    log_reader reader{&result,
                      [](void *context, const log_record &record) {
                          auto &to = *static_cast<reading *>(context);
                          to.records.emplace_back(reinterpret_cast<const char *>(record.bytes), record.size);
                          EXPECT_EQ(to.first_lsn + to.records.size(), record.lsn); // L5: no gaps
                          return TY_OK;
                      },
                      nullptr, ahead};
    result.status = log_scan(sink, log_path, identity, from, reader, &result.contents);
    return result;
}

// A record that holds its number and cannot be mistaken for another.
inline std::string record_of(uint64_t number, size_t size = 40) {
    std::mt19937_64 random(number * 1000003 + size);
    std::string bytes = std::to_string(number) + ":";
    while (bytes.size() < size)
        bytes.push_back(static_cast<char>(random()));
    bytes.resize(size);
    return bytes;
}

inline ty_status append(log *l, const std::string &record, uint64_t *lsn = nullptr, size_t slack = 0) {
    uint8_t *place = nullptr;
    if (ty_status status = log_append_begin(l, record.size() + slack, &place))
        return status;
    memcpy(place, record.data(), record.size());
    uint64_t given = log_append_end(l, record.size());
    if (lsn)
        *lsn = given;
    return TY_OK;
}

inline log *start_log(const ty_log_sink *sink, log_positions start = {}, log_positions end = {},
                      log_positions tail = {}, bool thread = false) {
    log *l = nullptr;
    EXPECT_OK(log_start({sink, log_path, test_identity, start, end, tail, thread}, &l));
    return l;
}
// Goes on after what was read.
inline log *start_after(const ty_log_sink *sink, log_positions start, const reading &read, bool thread = false) {
    return start_log(sink, start, read.contents.end, read.contents.tail, thread);
}

struct sink_end {
    void operator()(ty_log_sink *sink) const { sink_destroy(sink); }
};
using sink_owner = std::unique_ptr<ty_log_sink, sink_end>;
struct log_end {
    void operator()(log *l) const { log_stop(l); }
};
using log_owner = std::unique_ptr<log, log_end>;

struct disk_end {
    void operator()(os::sim_disk *disk) const { os::sim_destroy(disk); }
};
using disk_owner = std::unique_ptr<os::sim_disk, disk_end>;

inline sink_owner create_log(os::sim_disk *disk, uint64_t bytes = small_log) {
    ty_log_sink *sink = nullptr;
    EXPECT_OK(file_sink_create(log_path, bytes, *os::sim_storage(disk), &sink));
    EXPECT_OK(log_format(*sink, test_identity));
    return sink_owner(sink);
}
inline sink_owner open_log(os::sim_disk *disk, bool writable = true) {
    ty_log_sink *sink = nullptr;
    EXPECT_OK(file_sink_open(log_path, writable, *os::sim_storage(disk), &sink));
    return sink_owner(sink);
}

// Memory that a sink lies in.
class memory_log {
public:
    explicit memory_log(uint64_t bytes = small_log) : memory_(bytes + 64) {
        void *at = memory_.data();
        size_t room = memory_.size();
        data_ = static_cast<char *>(std::align(64, bytes, at, room));
        ty_log_sink *made = nullptr;
        EXPECT_OK(memory_sink_create(data_, bytes, false, 0, &made));
        sink_.reset(made);
        EXPECT_OK(log_format(*made, test_identity));
    }
    const ty_log_sink *sink() const { return sink_.get(); }
    char *data() const { return data_; }
    size_t size() const { return memory_.size() - 64; }
    void copy_from(const memory_log &other) { memcpy(data_, other.data_, size()); }

private:
    std::vector<char> memory_;
    char *data_ = nullptr;
    sink_owner sink_;
};

// A sink that runs something at the begin of each write, in the thread that writes.
struct watched_sink {
    explicit watched_sink(const ty_log_sink *wrapped) : table(*wrapped), below(wrapped) {
        table.context = this;
        table.read = [](void *context, uint64_t offset, void *buffer, size_t bytes) {
            const ty_log_sink *over = static_cast<watched_sink *>(context)->below;
            return over->read(over->context, offset, buffer, bytes);
        };
        table.write = [](void *context, uint64_t offset, const void *buffer, size_t bytes) {
            auto &self = *static_cast<watched_sink *>(context);
            unsigned number = self.writes++;
            if (self.at_write)
                if (ty_status status = self.at_write(number))
                    return status;
            return self.below->write(self.below->context, offset, buffer, bytes);
        };
    }
    ty_log_sink table;
    const ty_log_sink *below;
    std::function<ty_status(unsigned number)> at_write;
    std::atomic<unsigned> writes{0};
};

} // namespace taiyen::test
