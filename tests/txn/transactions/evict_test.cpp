// Goal: a transactional heap gives private copies back, and takes snapshots in time for it; what others may write at
// any moment keeps its copies. Method: heaps on a simulated disk with a small bound; the kernel says which pages are
// private.
#include "../files.hpp"
#include "src/store/image/snapshots/evict.hpp"
#include "src/txn/transactions/memory_pressure.hpp"
#include "tests/stats.hpp"
#include "tests/store/image/private_pages.hpp"

using namespace taiyen;
using namespace taiyen::test;

namespace {

constexpr size_t block_bytes = size_t{64} << 10;

class txn_evict_test : public testing::Test {
protected:
    txn_evict_test() {
        private_copies::piece_pages_min = 16;
        memory_pressure::look_ns = 0;
        options = with_log(files);
        options.memory_bytes = size_t{4} << 20;
        options.log_bytes = size_t{64} << 20;
    }
    ~txn_evict_test() override {
        EXPECT_OK(ty_discard(heap));
        private_copies::piece_pages_min = piece;
        memory_pressure::look_ns = look;
    }
    void open() { ASSERT_OK(ty_open(heap_path, &options, &heap, &report)); }
    char *make(size_t bytes) {
        ty_txn *txn = nullptr;
        EXPECT_OK(ty_begin(heap, nullptr, &txn));
        auto *block = static_cast<char *>(ty_txn_alloc(txn, bytes));
        EXPECT_NE(nullptr, block) << ty_error_text();
        EXPECT_OK(ty_txn_root_set(txn, "block", block));
        EXPECT_OK(ty_commit(txn));
        return block;
    }
    // One word in each page of the block, 16 pages a transaction.
    void set_words(char *block, size_t bytes, uint64_t value, bool in_two_phases = false) {
        for (size_t at = 0; at < bytes; at += 16 * 4096) {
            ty_txn *txn = nullptr;
            ASSERT_OK(ty_begin(heap, nullptr, &txn));
            for (size_t page = at; page < at + 16 * 4096; page += 4096) {
                auto *word = reinterpret_cast<uint64_t *>(block + page);
                ASSERT_OK(ty_declare(txn, word, sizeof *word));
                *word = value + page;
            }
            if (in_two_phases) {
                ASSERT_OK(ty_prepare(txn, nullptr, 0));
            }
            ASSERT_OK(ty_commit(txn));
        }
    }
    void expect_words(const char *block, size_t bytes, uint64_t value) {
        for (size_t page = 0; page < bytes; page += 4096) {
            uint64_t word = 0;
            memcpy(&word, block + page, sizeof word);
            ASSERT_EQ(value + page, word) << "page " << page / 4096;
        }
    }

    const uint64_t piece = private_copies::piece_pages_min;
    const uint64_t look = memory_pressure::look_ns;
    disk files;
    ty_open_options options;
    ty_heap *heap = nullptr;
    ty_report report{};
};

// X20: a block that somebody may be filling right now is left alone.
TEST_F(txn_evict_test, reserved_blocks_keep_their_copies) {
    for (bool reopened : {false, true}) {
        open();
        char *other = make(size_t{8} << 20);
        memset(other, 1, size_t{8} << 20);
        if (reopened) { // the memory is the file's
            ASSERT_OK(ty_close(heap));
            open();
        }
        auto *reserved = static_cast<char *>(ty_reserve(heap, 4 * block_bytes));
        ASSERT_NE(nullptr, reserved) << ty_error_text();
        memset(reserved, 9, 4 * block_bytes);
        if (reopened)
            set_words(other, size_t{8} << 20, 1);
        for (int round = 0; round < 10; ++round)
            ASSERT_OK(ty_snapshot(heap));
        EXPECT_LT(private_pages(other, size_t{8} << 20), 1024u);
        EXPECT_EQ(4 * block_bytes / 4096, private_pages(reserved, 4 * block_bytes));
        EXPECT_EQ(std::string(4 * block_bytes, 9), std::string(reserved, 4 * block_bytes));
        ASSERT_OK(ty_discard(heap));
        heap = nullptr;
    }
}

// Words scattered over the heap take little of the log and much memory.
TEST_F(txn_evict_test, a_snapshot_is_taken_for_want_of_memory) {
    for (ty_background background : {TY_BACKGROUND_CALLS, TY_BACKGROUND_THREAD}) {
        options.background = background;
        constexpr size_t bytes = size_t{32} << 20;
        open();
        char *block = background == TY_BACKGROUND_CALLS ? make(bytes) : static_cast<char *>(ty_root(heap, "block"));
        for (uint64_t round = 1; round < 4; ++round) {
            set_words(block, bytes, round << 40);
            expect_words(block, bytes, round << 40);
        }
        const ty_txn_stats stats = txn_stats_of(heap);
        EXPECT_GE(stats.automatic_snapshots, 3u);
        ASSERT_OK(ty_discard(heap)); // the log has the rest
        open();
        expect_words(block, bytes, uint64_t{3} << 40);
        expect_sound(heap);
        ASSERT_OK(ty_close(heap));
        heap = nullptr;
    }
}

// Stores are found by the guard's protection, which a new mapping must have, too.
TEST_F(txn_evict_test, write_faults_stores_are_found_all_the_same) {
    options.track_stores = true;
    constexpr size_t bytes = size_t{8} << 20;
    open();
    char *block = make(bytes);
    for (uint64_t round = 1; round < 6; ++round) {
        for (size_t at = 0; at < bytes; at += 64 * 4096) {
            ty_txn *txn = nullptr;
            ASSERT_OK(ty_begin(heap, nullptr, &txn));
            for (size_t page = at; page < at + 64 * 4096; page += 4096)
                *reinterpret_cast<uint64_t *>(block + page) = (round << 40) + page;
            ASSERT_OK(ty_commit(txn));
        }
        ASSERT_OK(ty_snapshot(heap));
    }
    const ty_snapshot_stats stats = snapshot_stats_of(heap);
    EXPECT_GT(stats.pages_evicted, 0u);
    ty_txn *txn = nullptr;
    ASSERT_OK(ty_begin(heap, nullptr, &txn));
    for (size_t page = 0; page < bytes; page += 4096)
        *reinterpret_cast<uint64_t *>(block + page) = (uint64_t{9} << 40) + page;
    ASSERT_OK(ty_commit(txn));
    ASSERT_OK(ty_discard(heap));
    open();
    expect_words(block, bytes, uint64_t{9} << 40);
    ASSERT_OK(ty_close(heap));
    heap = nullptr;
}

// What the log writes to is eight times what memory may hold.
TEST_F(txn_evict_test, a_log_that_writes_to_more_than_memory_is_replayed_in_stages) {
    constexpr size_t bytes = size_t{32} << 20;
    const size_t bound = options.memory_bytes;
    options.memory_bytes = 0; // so that no snapshot is taken
    open();
    char *block = make(bytes);
    ASSERT_OK(ty_close(heap));
    open();
    set_words(block, bytes, uint64_t{1} << 40);
    set_words(block, bytes / 2, uint64_t{2} << 40);
    ASSERT_OK(ty_discard(heap));
    options.memory_bytes = bound;
    for (int round = 0; round < 2; ++round) { // the second has what the last snapshot of the first left
        open();
        EXPECT_EQ(round == 0, report.replayed_transactions == 3 * bytes / 2 / 16 / 4096);
        EXPECT_LE(private_pages(block, bytes) * 4096, 2 * bound);
        expect_words(block, bytes / 2, uint64_t{2} << 40);
        expect_sound(heap);
        set_words(block + bytes / 2, 16 * 4096, uint64_t{3} << 40);
        ASSERT_OK(ty_discard(heap));
    }
    EXPECT_LT(report.replayed_transactions, bytes / 16 / 4096);
    options.memory_bytes = 0;
    open();
    expect_words(block, bytes / 2, uint64_t{2} << 40);
    for (size_t at = bytes / 2; at < bytes; at += 4096)
        ASSERT_EQ((at < bytes / 2 + 16 * 4096 ? uint64_t{3} << 40 : (uint64_t{1} << 40) + bytes / 2) + at - bytes / 2,
                  *reinterpret_cast<uint64_t *>(block + at));
    ASSERT_OK(ty_close(heap));
    heap = nullptr;
}

// A snapshot between a prepared transaction and its outcome would leave an outcome of nothing after it (X27).
TEST_F(txn_evict_test, stages_do_not_part_a_prepared_transaction_from_its_outcome) {
    constexpr size_t bytes = size_t{8} << 20;
    const size_t bound = options.memory_bytes;
    options.memory_bytes = 0; // so that no snapshot is taken
    open();
    char *block = make(bytes);
    ASSERT_OK(ty_close(heap));
    open();
    set_words(block, bytes, uint64_t{1} << 40, true);
    ASSERT_OK(ty_discard(heap));
    options.memory_bytes = bound;
    for (int round = 0; round < 3; ++round) {
        open();
        EXPECT_EQ(round == 0, report.replayed_transactions == 2 * bytes / 16 / 4096);
        expect_words(block, bytes, uint64_t{1} << 40);
        ASSERT_OK(ty_discard(heap));
    }
    open();
}

// It cannot take snapshots: what the log writes to stays in memory.
TEST_F(txn_evict_test, a_reader_is_refused_where_memory_has_no_room_for_what_the_log_writes_to) {
    constexpr size_t bytes = size_t{4} << 20;
    options.memory_bytes = 0;
    open();
    char *block = make(bytes);
    ASSERT_OK(ty_snapshot(heap));
    set_words(block, bytes, 5);
    ASSERT_OK(ty_discard(heap));
    heap = nullptr;
    options.mode = TY_OPEN_READ_ONLY;
    private_copies::memory_bytes = bytes;
    const ty_status status = ty_open(heap_path, &options, &heap, &report);
    private_copies::memory_bytes = 0;
    EXPECT_EQ(TY_E_MEMORY, status) << ty_error_text();
    open();
    expect_words(block, bytes, 5);
}

} // namespace
