// Goal: what is reported about a snapshot that the heap takes by itself and that fails.
// Method: commits fill the log while the journal's writes fail; then the disk is good again.
#include "../files.hpp"

using namespace taiyen;
using namespace taiyen::test;

namespace {

class automatic_snapshots_test : public testing::Test {
protected:
    void SetUp() override {
        ty_open_options options = with_log(files);
        ASSERT_OK(ty_open(heap_path, &options, &heap, nullptr));
        // Each snapshot from here on fails.
        os::sim_set_fault(files.get(), {os::sim_op_write, 0, true, TY_E_IO});
        for (int i = 0; i < 200; ++i)
            ASSERT_OK(book.run(heap));
        os::sim_set_fault(files.get(), {});
    }
    void TearDown() override { ASSERT_OK(ty_close(heap)); }

    disk files;
    ledger book{5};
    ty_heap *heap = nullptr;
};

TEST_F(automatic_snapshots_test, a_failure_is_reported_by_work) {
    os::sim_set_fault(files.get(), {os::sim_op_write, 0, true, TY_E_IO});
    EXPECT_EQ(TY_E_IO, ty_run_background_work(heap));
    os::sim_set_fault(files.get(), {});
    EXPECT_OK(ty_run_background_work(heap));
}

TEST_F(automatic_snapshots_test, a_failure_is_reported_until_one_succeeds) {
    for (int i = 0; i < 2; ++i)
        EXPECT_EQ(TY_E_IO, ty_background_work_status(heap));
    os::sim_set_fault(files.get(), {os::sim_op_write, 0, true, TY_E_IO});
    EXPECT_EQ(TY_E_IO, ty_run_background_work(heap));
    EXPECT_EQ(TY_E_IO, ty_background_work_status(heap)) << "one report does not make it good";
    os::sim_set_fault(files.get(), {});
    EXPECT_OK(ty_run_background_work(heap));
    EXPECT_OK(ty_background_work_status(heap));
}

TEST_F(automatic_snapshots_test, a_failure_is_over_when_a_later_snapshot_is_durable) {
    ASSERT_OK(ty_snapshot(heap));
    EXPECT_OK(ty_background_work_status(heap));
    EXPECT_OK(ty_run_background_work(heap));
}

} // namespace
