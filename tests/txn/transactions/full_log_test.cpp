// Goal: a log that is full to its last block loses nothing, whatever comes next: a power cut, an open, a wait.
// Method: a disk that has room in the log alone, so that no snapshot frees any of it; commits until one is refused.
#include "tests/txn/support.hpp"

namespace taiyen::test {
namespace {

constexpr size_t words = 8000;

class full_log_test : public testing::TestWithParam<uint64_t> {
protected:
    ~full_log_test() override { EXPECT_OK(ty_discard(heap)); }

    void open() {
        ty_open_options options = files->options();
        options.kind = TY_TRANSACTIONAL;
        options.log_bytes = TY_LOG_BYTES_MIN;
        heap = nullptr;
        ASSERT_OK(ty_open(heap_path, &options, &heap, nullptr));
        block = static_cast<uint64_t *>(ty_root(heap, "block"));
    }
    ty_status commit(uint64_t value, size_t changed) {
        ty_txn *txn = nullptr;
        EXPECT_OK(ty_begin(heap, nullptr, &txn));
        EXPECT_OK(ty_declare(txn, block, changed * 8));
        block[0] = value;
        for (size_t i = 1; i < changed; i++)
            block[i] = random();
        ty_status status = ty_commit(txn);
        if (status) {
            EXPECT_OK(ty_rollback(txn));
        }
        return status;
    }
    // The number of the last commit that was acknowledged.
    void fill() {
        os::sim_set_fault(files->get(), {os::sim_op_allocate | os::sim_op_write, 0, true, TY_E_SPACE});
        for (size_t most : {words, size_t{400}, size_t{1}}) // a few blocks, one at most, one
            while (commit(acknowledged + 1, 1 + random() % most) == TY_OK)
                acknowledged++;
        os::sim_set_fault(files->get(), {});
    }
    void cut_power() {
        auto after = std::make_unique<disk>(files->cut(os::sim_cut::drop_all));
        ASSERT_OK(ty_discard(heap));
        files = std::move(after);
        open();
        ASSERT_NE(nullptr, block);
        EXPECT_EQ(acknowledged, block[0]);
    }

    std::unique_ptr<disk> files = std::make_unique<disk>();
    std::mt19937_64 random{GetParam()};
    ty_heap *heap = nullptr;
    uint64_t *block = nullptr;
    uint64_t acknowledged = 0;
};

TEST_P(full_log_test, keeps_what_was_acknowledged) {
    open();
    ty_txn *txn = nullptr;
    ASSERT_OK(ty_begin(heap, nullptr, &txn));
    block = static_cast<uint64_t *>(ty_txn_alloc(txn, words * 8));
    ASSERT_OK(ty_txn_root_set(txn, "block", block));
    ASSERT_OK(ty_commit(txn));
    for (uint64_t i = 0; i < GetParam() * 3; i++)
        ASSERT_OK(commit(++acknowledged, 1));
    uint64_t epoch = 0;
    ASSERT_OK(ty_snapshot_start(heap, &epoch));
    for (uint64_t i = 0; i < GetParam() % 4 * 10; i++) // what was committed meanwhile the snapshot does not hold
        ASSERT_OK(commit(++acknowledged, 1));
    ASSERT_OK(ty_snapshot_wait(heap, epoch));
    fill();
    ASSERT_NO_FATAL_FAILURE(cut_power());
    // The open has no room to write again what it believed. Who waits for that gets it, by a snapshot.
    bool durable = false;
    ASSERT_OK(ty_durable(heap, 0, true, &durable));
    EXPECT_TRUE(durable);
    ASSERT_NO_FATAL_FAILURE(cut_power());
    ASSERT_OK(commit(++acknowledged, 1));
    fill();
    ASSERT_NO_FATAL_FAILURE(cut_power());
}

INSTANTIATE_TEST_SUITE_P(seeds, full_log_test, testing::Range<uint64_t>(1, 13));

} // namespace
} // namespace taiyen::test
