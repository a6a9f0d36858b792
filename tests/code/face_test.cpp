// Goal: the C++ face takes types with virtual functions at roots where the next run finds them again, and nowhere else.
// Method: one such type, heaps that know their code and heaps that don't.
#include <filesystem>
#include <gtest/gtest.h>
#include <taiyen/concurrent.hpp>
#include <taiyen/taiyen.hpp>

namespace {

struct shape {
    long width = 3;
    virtual long extent() const { return width * width; }
};

class faces : public testing::Test {
protected:
    void SetUp() override {
        folder_ = (std::filesystem::temp_directory_path() / "code-face-XXXXXX").string();
        ASSERT_NE(mkdtemp(folder_.data()), nullptr);
    }
    void TearDown() override { std::filesystem::remove_all(folder_); }
    taiyen::heap open(ty_kind kind, ty_code code, bool concurrent = false) {
        taiyen::open_options options;
        options.limit_bytes = std::size_t{64} << 20;
        options.log_bytes = std::size_t{1} << 20;
        options.kind = kind;
        options.code = code;
        options.concurrent = concurrent;
        return taiyen::heap::open(folder_ + "/heap.ty", options).value();
    }
    std::string folder_;
};

TEST_F(faces, take_virtual_functions_where_the_heap_knows_its_code) {
    for (ty_code code : {TY_CODE_MAPPED, TY_CODE_DEFAULT, TY_CODE_DEFAULT}) {
        taiyen::heap heap = open(TY_SNAPSHOT, code);
        EXPECT_EQ(heap.root<shape>("shape").extent(), 9);
        ASSERT_TRUE(heap.close());
    }
}

TEST_F(faces, refuse_virtual_functions_elsewhere) {
    taiyen::heap heap = open(TY_SNAPSHOT, TY_CODE_DEFAULT);
    const auto refused = heap.find_or_make_root<shape>("shape");
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().status(), TY_E_UNSUPPORTED);
    EXPECT_EQ(ty_root(heap.get(), "shape"), nullptr);
    ASSERT_TRUE(heap.close());
}

TEST_F(faces, take_virtual_functions_in_volatile_heaps) {
    taiyen::heap heap = taiyen::heap::create().value();
    EXPECT_EQ(heap.root<shape>("shape").extent(), 9);
}

TEST_F(faces, of_concurrent_heaps_do_the_same) {
    for (ty_code code : {TY_CODE_MAPPED, TY_CODE_DEFAULT}) {
        taiyen::heap heap = open(TY_TRANSACTIONAL, code, true);
        EXPECT_EQ(heap.atomically([](taiyen::atomic_txn &txn) { return txn.root<shape>("shape").width; }), 3);
        ASSERT_TRUE(heap.close());
    }
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directory(folder_);
    taiyen::heap heap = open(TY_TRANSACTIONAL, TY_CODE_DEFAULT, true);
    EXPECT_THROW(heap.atomically([](taiyen::atomic_txn &txn) { txn.root<shape>("shape"); }), taiyen::exception);
    EXPECT_EQ(ty_root(heap.get(), "shape"), nullptr);
    ASSERT_TRUE(heap.close());
}

} // namespace
