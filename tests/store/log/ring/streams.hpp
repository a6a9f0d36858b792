// A log of several log streams in memory, and what is read back from it.
#pragma once

#include "../support.hpp"

namespace taiyen::test {

struct multi_stream_reading {
    struct record {
        uint64_t lsn;
        uint32_t stream;
        bool independent;
        std::string bytes;
    };
    ty_status status = TY_OK;
    log_contents contents{};
    std::vector<record> records;

    std::vector<uint64_t> lsns() const {
        std::vector<uint64_t> all;
        for (const record &one : records)
            all.push_back(one.lsn);
        return all;
    }
};

inline multi_stream_reading read_streams(const ty_log_sink &sink, const log_positions &from) {
    multi_stream_reading result;
    log_reader reader{&result, [](void *context, const log_record &record) {
                          static_cast<multi_stream_reading *>(context)->records.push_back(
                              {record.lsn, record.stream, record.independent,
                               std::string(reinterpret_cast<const char *>(record.bytes), record.size)});
                          return TY_OK;
                      }};
    result.status = log_scan(sink, log_path, test_identity, from, reader, &result.contents);
    return result;
}

inline void append_to(log *l, uint32_t stream, uint64_t lsn, bool independent = false, size_t size = 40) {
    const std::string record = record_of(lsn, size);
    uint8_t *place = nullptr;
    ASSERT_OK(log_append_begin(l, stream, record.size(), &place));
    memcpy(place, record.data(), record.size());
    log_append_end(l, stream, record.size(), lsn, independent);
}

class multi_stream_log {
public:
    explicit multi_stream_log(uint32_t streams, bool threads = false, uint64_t bytes = uint64_t{8} << 20)
        : memory_(bytes), watched_(memory_.sink()) {
        EXPECT_OK(log_format(*memory_.sink(), test_identity, {}, streams));
        EXPECT_OK(log_check(*memory_.sink(), log_path, nullptr, &header_));
        watched_.at_write = [this](unsigned) { return fails_ ? TY_E_IO : TY_OK; };
        start(log_positions{0, streams}, {}, threads);
    }
    log *get() { return log_.get(); }
    memory_log &memory() { return memory_; }
    const log_header &header() const { return header_; }
    uint64_t writes() const { return watched_.writes; }
    void fail_writes(bool fails) { fails_ = fails; }

    void append(uint32_t stream, uint64_t lsn, bool independent = false, size_t size = 40) {
        append_to(get(), stream, lsn, independent, size);
    }
    multi_stream_reading read(const log_positions &from) { return read_streams(*memory_.sink(), from); }
    multi_stream_reading read() { return read(log_positions{0, header_.streams}); }

    // As a process that opens what another one left.
    void start(const log_positions &from, const log_contents &contents, bool threads = false) {
        log_options options{};
        options.sink = &watched_.table;
        options.name = log_path;
        options.identity = test_identity;
        options.start = options.end = options.tail = from;
        if (contents.end.count > 1) {
            options.end = contents.end;
            options.tail = contents.tail;
            options.highest = contents.highest;
        }
        options.thread = threads;
        log_.reset();
        log *l = nullptr;
        ASSERT_OK(log_start(options, &l));
        log_.reset(l);
    }

    char *ring(uint32_t stream) { return memory_.data() + geometry_of(header_, stream).offset; }
    // Flips a bit in a block of a ring.
    void damage(uint32_t stream, uint64_t block) { ring(stream)[block * header_.block_bytes + 20] ^= 1; }
    void copy_ring(uint32_t from, uint32_t to) { memcpy(ring(to), ring(from), geometry_of(header_).bytes); }

private:
    memory_log memory_;
    watched_sink watched_;
    log_header header_{};
    std::atomic<bool> fails_{false};
    log_owner log_;
};

} // namespace taiyen::test
