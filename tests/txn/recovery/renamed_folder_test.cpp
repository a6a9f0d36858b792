// Goal: an open heap goes on when the folder that its files lie in is renamed, and when the program changes its working
// directory: commits, snapshots, closing, and the next open under the new path. Method: files in a real folder, for
// each kind, of a heap just made and of one that was there; what happens to the folder comes before the first snapshot.
#include "tests/os/temporary_folder.hpp"

#include <filesystem>
#include <gtest/gtest.h>
#include <taiyen/taiyen.h>
#include <unistd.h>

namespace {

namespace fs = std::filesystem;

struct renamed_case {
    const char *name;
    ty_kind kind;
    bool existed;
    bool renamed; // else the working directory changes
};

class renamed_folder : public testing::TestWithParam<renamed_case> {
protected:
    void SetUp() override { fs::create_directory(before_); }
    void TearDown() override { fs::current_path(start_); }

    ty_status open(const fs::path &path, ty_heap **heap) const {
        ty_open_options options = TY_OPEN_OPTIONS_INIT;
        options.kind = GetParam().kind;
        options.limit_bytes = size_t{64} << 20;
        options.log_bytes = size_t{1} << 20;
        return ty_open(path.c_str(), &options, heap, nullptr);
    }
    static ty_status set_number(ty_heap *heap, int number) {
        if (ty_heap_kind(heap) != TY_TRANSACTIONAL) {
            auto *place = static_cast<int *>(ty_root(heap, "number"));
            if (!place &&
                (!(place = static_cast<int *>(ty_alloc(heap, sizeof(int)))) || ty_root_set(heap, "number", place)))
                return TY_E_MEMORY;
            *place = number;
            return TY_OK;
        }
        ty_txn *txn = nullptr;
        if (ty_status status = ty_begin(heap, nullptr, &txn))
            return status;
        int *place = static_cast<int *>(ty_txn_alloc(txn, sizeof(int)));
        *place = number;
        if (ty_status status = ty_txn_root_set(txn, "number", place))
            return status;
        return ty_commit(txn);
    }
    static int number_of(ty_heap *heap) {
        const auto *place = static_cast<int *>(ty_root(heap, "number"));
        return place ? *place : 0;
    }

    const fs::path start_ = fs::current_path();
    temporary_folder folder_;
    const fs::path before_ = folder_.file("before"), after_ = folder_.file("after");
};

TEST_P(renamed_folder, the_heap_goes_on) {
    const bool renamed = GetParam().renamed;
    ty_heap *heap = nullptr;
    fs::current_path(folder_.file("."));
    const fs::path path = renamed ? before_ / "heap.ty" : fs::path("before/heap.ty");
    if (GetParam().existed) {
        ASSERT_EQ(TY_OK, open(path, &heap)) << ty_error_text();
        ASSERT_EQ(TY_OK, ty_close(heap)) << ty_error_text();
    }
    ASSERT_EQ(TY_OK, open(path, &heap)) << ty_error_text();
    if (renamed)
        fs::rename(before_, after_);
    else
        fs::current_path("/");
    for (int number = 1; number <= 3; ++number) {
        EXPECT_EQ(TY_OK, set_number(heap, number)) << ty_error_text();
        EXPECT_EQ(TY_OK, ty_snapshot(heap)) << ty_error_text();
        EXPECT_EQ(TY_OK, ty_run_background_work(heap)) << ty_error_text();
    }
    ASSERT_EQ(TY_OK, ty_close(heap)) << ty_error_text();
    ASSERT_EQ(TY_OK, open((renamed ? after_ : before_) / "heap.ty", &heap)) << ty_error_text();
    EXPECT_EQ(3, number_of(heap));
    ASSERT_EQ(TY_OK, ty_close(heap));
}

// What takes the files by their path says so, and leaves the heap as it is.
TEST_P(renamed_folder, a_rebuild_is_refused) {
    if (GetParam().kind != TY_TRANSACTIONAL || !GetParam().renamed)
        return;
    ty_heap *heap = nullptr;
    ASSERT_EQ(TY_OK, open(before_ / "heap.ty", &heap)) << ty_error_text();
    fs::rename(before_, after_);
    ASSERT_EQ(TY_OK, set_number(heap, 1)) << ty_error_text();
    EXPECT_EQ(TY_E_NOT_FOUND, ty_rebuild(&heap, nullptr, nullptr));
    ASSERT_NE(nullptr, heap);
    EXPECT_EQ(1, number_of(heap));
    ASSERT_EQ(TY_OK, set_number(heap, 2)) << ty_error_text();
    ASSERT_EQ(TY_OK, ty_close(heap)) << ty_error_text();
}

INSTANTIATE_TEST_SUITE_P(kinds, renamed_folder,
                         testing::Values(renamed_case{"new_archive", TY_ARCHIVE, false, true},
                                         renamed_case{"archive", TY_ARCHIVE, true, true},
                                         renamed_case{"new_snapshot", TY_SNAPSHOT, false, true},
                                         renamed_case{"snapshot", TY_SNAPSHOT, true, true},
                                         renamed_case{"new_transactional", TY_TRANSACTIONAL, false, true},
                                         renamed_case{"transactional", TY_TRANSACTIONAL, true, true},
                                         renamed_case{"snapshot_elsewhere", TY_SNAPSHOT, true, false},
                                         renamed_case{"transactional_elsewhere", TY_TRANSACTIONAL, false, false}),
                         [](const auto &given) { return given.param.name; });

} // namespace
