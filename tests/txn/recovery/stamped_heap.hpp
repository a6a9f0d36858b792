// A heap whose log has several log streams, and records that a test appends to any of them, as transactions of many
// threads do.
#pragma once

#include "../files.hpp"

#include "src/store/log/frames/frames.hpp"
#include "src/txn/transactions/txn_runtime.hpp"

namespace taiyen::test {

inline constexpr size_t words = 4096 * 8; // of the block that records change

inline ty_open_options with_streams(const disk &files, uint32_t streams, ty_kind kind = TY_TRANSACTIONAL) {
    ty_open_options options = with_log(files, kind);
    options.log_bytes = size_t{3} << 20;
    options.log_streams = streams;
    return options;
}

// A heap with one block of words, changed past the transactions: a record is appended to some log stream.
class stamped_heap {
public:
    explicit stamped_heap(uint32_t streams) : streams_(streams) {
        open();
        ty_txn *txn = nullptr;
        EXPECT_OK(ty_begin(heap, nullptr, &txn));
        block = static_cast<uint64_t *>(ty_txn_alloc(txn, words * 8));
        EXPECT_NE(nullptr, block);
        EXPECT_OK(ty_txn_root_set(txn, "words", block));
        EXPECT_OK(ty_commit(txn));
        EXPECT_OK(ty_snapshot(heap));
        clock = log_last(log());
    }
    ~stamped_heap() {
        if (heap) {
            EXPECT_OK(ty_discard(heap));
        }
    }
    void open() {
        ty_open_options options = with_streams(files, streams_);
        options.memory_bytes = memory_bytes;
        options.background = background;
        ASSERT_OK(ty_open(heap_path, &options, &heap, &report));
        block = static_cast<uint64_t *>(ty_root(heap, "words"));
        clock = log_last(log());
    }
    void crash() {
        ASSERT_OK(ty_discard(heap));
        heap = nullptr;
        open();
    }
    taiyen::log *log() const { return runtime_of(heap)->log; }

    uint64_t store(uint32_t stream, uint64_t word, uint64_t value, bool independent = false) {
        block[word] = value;
        return append(stream, word, value, independent);
    }
    uint64_t append(uint32_t stream, uint64_t word, uint64_t value, bool independent = false) {
        const uint64_t first = (reinterpret_cast<uint64_t>(block) - reinterpret_cast<uint64_t>(ty_heap_base(heap))) / 8;
        const word_range range{first + word, 1, true, nullptr, &value};
        const record_part part{nullptr, 0, &range, 1};
        uint8_t *place = nullptr;
        EXPECT_OK(log_append_begin(log(), stream, record_bound(part) + 64, &place));
        const uint64_t lsn = ++clock;
        const size_t bytes = record_encode(part, true, place);
        log_append_end(log(), stream, bytes, lsn, independent);
        return lsn;
    }

    disk files;
    ty_heap *heap = nullptr;
    ty_report report{};
    uint64_t *block = nullptr;
    std::atomic<uint64_t> clock{0};
    size_t memory_bytes = 0;
    ty_background background = TY_BACKGROUND_CALLS;

private:
    uint32_t streams_;
};

} // namespace taiyen::test
