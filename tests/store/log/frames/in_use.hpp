// A log that is read while it is written: memory that both may touch at once, and copies of what was read.
#pragma once

#include "../support.hpp"

namespace taiyen::test {

// Reads and writes of the same block may be under way at the same time, and then mix, a word at a time.
class shared_memory {
public:
    explicit shared_memory(uint64_t bytes, uint32_t streams) : words_(bytes / 8) {
        table_ = {sizeof table_, this, 64, bytes, read, write, nullptr};
        EXPECT_OK(log_format(table_, test_identity, {}, streams));
        EXPECT_OK(log_check(table_, log_path, nullptr, &header_));
    }
    shared_memory(const shared_memory &) = delete;
    shared_memory &operator=(const shared_memory &) = delete;

    const ty_log_sink *sink() const { return &table_; }
    uint32_t streams() const { return header_.streams; }
    ring_geometry ring(uint32_t stream) const { return geometry_of(header_, stream); }
    // Runs before each piece of a read, by its number.
    std::function<void(unsigned)> at_read;

    // Of each ring what lies between the redo points, and nothing else.
    std::unique_ptr<shared_memory> copy(const log_positions &from, const log_positions &end) const {
        auto other = std::make_unique<shared_memory>(table_.size_bytes, streams());
        for (uint32_t p = 0; p < streams(); ++p) {
            const ring_geometry one = ring(p);
            for (uint64_t at = from.at[p].offset; at < end.at[p].offset; at += 8) {
                const uint64_t word = (one.offset + at % one.bytes) / 8;
                other->words_[word].store(words_[word].load(std::memory_order_relaxed), std::memory_order_relaxed);
            }
        }
        return other;
    }
    void flip_bit(uint32_t stream, uint64_t position) {
        const ring_geometry one = ring(stream);
        words_[(one.offset + position % one.bytes) / 8].fetch_xor(1);
    }

private:
    static constexpr size_t piece_bytes = 65536;

    static ty_status read(void *context, uint64_t offset, void *buffer, size_t bytes) {
        auto &self = *static_cast<shared_memory *>(context);
        for (size_t i = 0; i < bytes; i += 8) {
            if (i % piece_bytes == 0 && self.at_read)
                self.at_read(self.pieces_++);
            const uint64_t word = self.words_[(offset + i) / 8].load(std::memory_order_relaxed);
            memcpy(static_cast<char *>(buffer) + i, &word, 8);
        }
        return TY_OK;
    }
    static ty_status write(void *context, uint64_t offset, const void *buffer, size_t bytes) {
        auto &self = *static_cast<shared_memory *>(context);
        for (size_t i = 0; i < bytes; i += 8) {
            uint64_t word;
            memcpy(&word, static_cast<const char *>(buffer) + i, 8);
            self.words_[(offset + i) / 8].store(word, std::memory_order_relaxed);
        }
        return TY_OK;
    }

    std::vector<std::atomic<uint64_t>> words_;
    unsigned pieces_ = 0;
    ty_log_sink table_;
    log_header header_{};
};

struct reported_record {
    uint64_t lsn;
    bool independent;
    std::string bytes;
    bool operator==(const reported_record &) const = default;
};
struct live_reading {
    ty_status status = TY_OK;
    log_contents contents{};
    std::vector<reported_record> records;
};
inline live_reading read_beside(const ty_log_sink *sink, const log_positions &from, bool in_use = true) {
    live_reading result;
    log_reader reader{&result, [](void *context, const log_record &record) {
                          static_cast<live_reading *>(context)->records.push_back(
                              {record.lsn, record.independent,
                               std::string(reinterpret_cast<const char *>(record.bytes), record.size)});
                          return TY_OK;
                      }};
    reader.in_use = in_use;
    result.status = log_scan(*sink, log_path, test_identity, from, reader, &result.contents);
    return result;
}

// What was read is what a copy of just that gives (L13).
inline void expect_in_copy(const shared_memory &memory, const log_positions &from, const live_reading &read) {
    const auto copied = memory.copy(from, read.contents.end);
    const live_reading again = read_beside(copied->sink(), from, false);
    ASSERT_OK(again.status);
    EXPECT_TRUE(read.records == again.records);
    EXPECT_EQ(read.contents.end.lsn, again.contents.end.lsn);
    EXPECT_EQ(read.contents.left_out, again.contents.left_out);
    for (uint32_t p = 0; p < from.count; ++p)
        EXPECT_EQ(read.contents.end.at[p].offset, again.contents.end.at[p].offset);
}

inline log *start_log_beside(const shared_memory &memory, bool thread) {
    log_options options{};
    options.sink = memory.sink();
    options.name = log_path;
    options.identity = test_identity;
    options.start = options.end = options.tail = log_positions{0, memory.streams()};
    options.thread = thread;
    log *l = nullptr;
    EXPECT_OK(log_start(options, &l));
    return l;
}

inline void append_at(log *l, uint32_t stream, uint64_t lsn, size_t size, bool independent = false) {
    const std::string record = record_of(lsn, size);
    uint8_t *place = nullptr;
    ASSERT_OK(log_append_begin(l, stream, size, &place));
    memcpy(place, record.data(), size);
    log_append_end(l, stream, size, lsn, independent);
}

} // namespace taiyen::test
