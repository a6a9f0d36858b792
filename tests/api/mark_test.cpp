// Goal: what the kernel's tracking of writes does not see is in the next snapshot once it is marked, in heaps of every
// kind; and what it does see is there without. Method: io_uring reads into a registered buffer in a block (skipped
// where the kernel does not allow it), direct reads and process_vm_writev; then a snapshot, a discard, and the content
// that the next open finds. The story: a page that io_uring had pinned was written and not dirty.
#include "fixture.hpp"
#include "tests/stats.hpp"

#include <atomic>
#include <cstring>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <thread>
#include <unistd.h>

using namespace api_test;

namespace {

constexpr size_t page = 4096;

// The least that reads into a registered buffer: one request at a time.
class ring {
public:
    bool start(void *buffer, size_t bytes) {
        io_uring_params p{};
        fd_ = int(syscall(__NR_io_uring_setup, 4, &p));
        if (fd_ < 0)
            return false;
        sq_ = map(p.sq_off.array + p.sq_entries * sizeof(unsigned), IORING_OFF_SQ_RING);
        cq_ = map(p.cq_off.cqes + p.cq_entries * sizeof(io_uring_cqe), IORING_OFF_CQ_RING);
        entries_ = reinterpret_cast<io_uring_sqe *>(map(p.sq_entries * sizeof(io_uring_sqe), IORING_OFF_SQES));
        params_ = p;
        iovec range{buffer, bytes};
        return sq_ && cq_ && entries_ && syscall(__NR_io_uring_register, fd_, IORING_REGISTER_BUFFERS, &range, 1) == 0;
    }
    ~ring() {
        if (fd_ >= 0)
            close(fd_);
    }
    // Bytes read; negative: an error.
    int read(int file, void *address, unsigned bytes) {
        memset(entries_, 0, sizeof *entries_);
        entries_->opcode = IORING_OP_READ_FIXED;
        entries_->fd = file;
        entries_->addr = reinterpret_cast<uint64_t>(address);
        entries_->len = bytes;
        auto *tail = reinterpret_cast<unsigned *>(sq_ + params_.sq_off.tail);
        auto *mask = reinterpret_cast<unsigned *>(sq_ + params_.sq_off.ring_mask);
        reinterpret_cast<unsigned *>(sq_ + params_.sq_off.array)[*tail & *mask] = 0;
        __atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
        if (syscall(__NR_io_uring_enter, fd_, 1, 1, IORING_ENTER_GETEVENTS, nullptr, 0) < 0)
            return -1;
        auto *head = reinterpret_cast<unsigned *>(cq_ + params_.cq_off.head);
        auto *cq_mask = reinterpret_cast<unsigned *>(cq_ + params_.cq_off.ring_mask);
        int result = reinterpret_cast<io_uring_cqe *>(cq_ + params_.cq_off.cqes)[*head & *cq_mask].res;
        __atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
        return result;
    }

private:
    char *map(size_t bytes, off_t what) const {
        void *at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd_, what);
        return at == MAP_FAILED ? nullptr : static_cast<char *>(at);
    }
    int fd_ = -1;
    char *sq_ = nullptr, *cq_ = nullptr;
    io_uring_sqe *entries_ = nullptr;
    io_uring_params params_{};
};

class mark : public testing::TestWithParam<ty_kind> {
protected:
    void SetUp() override {
        options = small_options();
        options.kind = GetParam();
        options.log_bytes = size_t{1} << 20;
        open();
        ty_txn *txn = begin();
        block = static_cast<char *>(ty_alloc_aligned(heap, 4 * page, page));
        ASSERT_NE(nullptr, block) << ty_error_text();
        memset(block, 'a', 4 * page);
        ASSERT_EQ(TY_OK, ty_root_set(heap, "block", block));
        commit(txn);
        ASSERT_EQ(TY_OK, ty_snapshot(heap));
        source = ::open(files.path("source").c_str(), O_RDWR | O_CREAT, 0600);
        ASSERT_EQ(ssize_t(4 * page), pwrite(source, std::string(4 * page, 'B').data(), 4 * page, 0));
        ASSERT_EQ(0, fsync(source));
    }
    void TearDown() override {
        close(source);
        ty_discard(heap);
    }
    void open() { ASSERT_EQ(TY_OK, ty_open(files.path("h.ty").c_str(), &options, &heap, nullptr)) << ty_error_text(); }
    ty_txn *begin() const {
        ty_txn *txn = nullptr;
        if (GetParam() == TY_TRANSACTIONAL) {
            EXPECT_EQ(TY_OK, ty_begin(heap, nullptr, &txn)) << ty_error_text();
        }
        return txn;
    }
    static void commit(ty_txn *txn) {
        if (txn) {
            EXPECT_EQ(TY_OK, ty_commit(txn)) << ty_error_text();
        }
    }
    // What the snapshot that is taken now holds.
    std::string after_snapshot() {
        EXPECT_EQ(TY_OK, ty_snapshot(heap)) << ty_error_text();
        return found();
    }
    std::string found() {
        EXPECT_EQ(TY_OK, ty_discard(heap));
        open();
        return std::string(static_cast<char *>(ty_root(heap, "block")), 4 * page);
    }

    folder files;
    ty_open_options options{};
    ty_heap *heap = nullptr;
    char *block = nullptr;
    int source = -1;
};

TEST_P(mark, a_read_into_a_registered_buffer) {
    ring uring;
    if (!uring.start(block, 4 * page))
        GTEST_SKIP() << "no io_uring here: " << strerror(errno);
    ASSERT_EQ(TY_OK, ty_snapshot(heap));
    ASSERT_EQ(int(4 * page), uring.read(source, block, 4 * page));
    ASSERT_EQ(TY_OK, ty_mark_written(heap, block, 4 * page)) << ty_error_text();
    EXPECT_EQ(std::string(4 * page, 'B'), after_snapshot());
}

// A declaration before informs the log, the mark the snapshots: with the log's part lost to a snapshot, and not.
TEST_P(mark, a_read_into_a_registered_buffer_in_a_transaction) {
    ring uring;
    if (GetParam() != TY_TRANSACTIONAL || !uring.start(block, 4 * page))
        GTEST_SKIP() << "no transactions, or no io_uring here";
    for (bool snapshot : {false, true}) {
        ASSERT_EQ(TY_OK, ty_snapshot(heap));
        ty_txn *txn = begin();
        ASSERT_EQ(TY_OK, ty_declare(txn, block, 4 * page));
        ASSERT_EQ(int(4 * page), uring.read(source, block, 4 * page));
        ASSERT_EQ(TY_OK, ty_mark_written(heap, block, 4 * page)) << ty_error_text();
        commit(txn);
        if (snapshot) {
            ASSERT_EQ(TY_OK, ty_snapshot(heap));
        } else {
            // As a crash would leave it, without giving up the pinned memory: the log holds it.
            const ty_txn_stats stats = taiyen::test::txn_stats_of(heap);
            EXPECT_GT(stats.record_bytes, 0u);
            txn = begin();
            ASSERT_EQ(TY_OK, ty_declare(txn, block, 4 * page));
            memset(block, 'a', 4 * page);
            commit(txn);
        }
    }
    EXPECT_EQ(std::string(4 * page, 'B'), found());
}

TEST_P(mark, what_the_system_writes_by_itself) {
    std::string bytes(page, 'C');
    iovec from{bytes.data(), page};
    iovec to{block + page, page};
    ty_txn *txn = begin();
    if (txn) {
        ASSERT_EQ(TY_OK, ty_declare(txn, block, 4 * page));
    }
    ASSERT_EQ(ssize_t(page), process_vm_writev(getpid(), &from, 1, &to, 1, 0)) << strerror(errno);
    int direct = ::open(files.path("source").c_str(), O_RDONLY | O_DIRECT);
    if (direct >= 0) {
        ASSERT_EQ(ssize_t(page), pread(direct, block + 2 * page, page, 0)) << strerror(errno);
        close(direct);
    } else {
        memset(block + 2 * page, 'B', page);
    }
    commit(txn);
    std::string expected =
        std::string(page, 'a') + std::string(page, 'C') + std::string(page, 'B') + std::string(page, 'a');
    EXPECT_EQ(expected, after_snapshot());
}

// Each page of a range is dirty then, and no other.
TEST_P(mark, makes_pages_dirty) {
    if (GetParam() == TY_ARCHIVE)
        GTEST_SKIP() << "an archive heap's pages are the kernel's";
    uint64_t pages = 9;
    ASSERT_EQ(TY_OK, ty_snapshot(heap));
    ASSERT_EQ(TY_OK, ty_dirty_count(heap, &pages));
    EXPECT_EQ(0u, pages);
    ASSERT_EQ(TY_OK, ty_mark_written(heap, block + page - 1, page + 2));
    ASSERT_EQ(TY_OK, ty_dirty_count(heap, &pages));
    EXPECT_EQ(3u, pages);
    EXPECT_EQ(std::string(4 * page, 'a'), after_snapshot());
}

// Beside stores of other threads to the same bytes nothing of these is lost.
TEST_P(mark, beside_other_stores) {
    std::atomic<bool> stop{false};
    std::thread marker([&] {
        while (!stop)
            EXPECT_EQ(TY_OK, ty_mark_written(heap, block, 4 * page));
    });
    auto *words = reinterpret_cast<std::atomic<uint8_t> *>(block);
    bool lost = false;
    for (int i = 0; i < 200000; i++) {
        words[0].store(uint8_t(i), std::memory_order_relaxed);
        lost |= words[0].load(std::memory_order_relaxed) != uint8_t(i);
    }
    stop = true;
    marker.join();
    EXPECT_FALSE(lost);
}

TEST_P(mark, refusals) {
    int outside = 0;
    EXPECT_EQ(TY_E_ARGUMENT, ty_mark_written(heap, &outside, sizeof outside));
    EXPECT_EQ(TY_E_ARGUMENT, ty_mark_written(heap, nullptr, 1));
    EXPECT_EQ(TY_E_ARGUMENT, ty_mark_written(heap, ty_heap_base(heap), 1)); // the heap's own
    EXPECT_EQ(TY_E_ARGUMENT, ty_mark_written(heap, block, size_t{1} << 40));
    EXPECT_EQ(TY_E_ARGUMENT, ty_mark_written(heap, block, SIZE_MAX));
    EXPECT_EQ(TY_OK, ty_mark_written(heap, nullptr, 0));
    EXPECT_EQ(0, in_child([&] { return ty_mark_written(heap, block, 1) == TY_E_FORKED; }));
    ASSERT_EQ(TY_OK, ty_close(heap));
    options.mode = TY_OPEN_READ_ONLY;
    open();
    EXPECT_EQ(TY_E_PERMISSION, ty_mark_written(heap, block, 1));
    ty_heap *plain = nullptr;
    ASSERT_EQ(TY_OK, ty_heap_create(nullptr, &plain));
    void *own = ty_alloc(plain, 1);
    EXPECT_EQ(TY_E_ARGUMENT, ty_mark_written(plain, own, 1));
    ASSERT_EQ(TY_OK, ty_heap_destroy(plain));
}

INSTANTIATE_TEST_SUITE_P(, mark, testing::Values(TY_ARCHIVE, TY_SNAPSHOT, TY_TRANSACTIONAL), [](const auto &kind) {
    return kind.param == TY_ARCHIVE ? "archive" : kind.param == TY_SNAPSHOT ? "snapshot" : "transactional";
});

} // namespace
