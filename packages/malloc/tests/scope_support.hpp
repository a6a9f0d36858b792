// What the tests of scopes share: a heap in files, and what is done in a scope of it.
#pragma once

#include "support.hpp"
#include <filesystem>
#include <string>
#include <taiyen/scope.hpp>

namespace taiyen::test {

class scopes : public ::testing::Test {
protected:
    void SetUp() override {
        char name[] = "/tmp/taiyen-scope-XXXXXX";
        ASSERT_NE(nullptr, mkdtemp(name));
        folder_ = name;
        path_ = (folder_ / "heap").string();
    }
    void TearDown() override {
        EXPECT_EQ(TY_OK, ty_discard(heap_));
        std::filesystem::remove_all(folder_);
    }
    void open(ty_kind kind = TY_SNAPSHOT, bool concurrent = false, ty_open_mode mode = TY_OPEN_OR_CREATE) {
        ty_open_options options = TY_OPEN_OPTIONS_INIT;
        options.kind = kind;
        options.concurrent = concurrent;
        options.mode = mode;
        ASSERT_EQ(TY_OK, ty_open(path_.c_str(), &options, &heap_, nullptr)) << ty_error_text();
    }
    void discard() {
        ASSERT_EQ(TY_OK, ty_discard(heap_));
        heap_ = nullptr;
    }
    size_t blocks() const {
        ty_heap_stats stats{};
        stats.struct_size = sizeof stats;
        EXPECT_EQ(TY_OK, ty_heap_get_stats(heap_, &stats));
        return stats.live_blocks;
    }
    bool is_in(const void *address) const { return ty_heap_of(address) == heap_; }
    // What is done in a scope; what is expected stands after it, as gtest allocates.
    template <class Function>
    void within(Function &&function) {
        ASSERT_EQ(TY_OK, ty_enter(heap_)) << ty_error_text();
        function();
        ASSERT_EQ(TY_OK, ty_leave());
    }

    std::filesystem::path folder_;
    std::string path_;
    ty_heap *heap_ = nullptr;
};

} // namespace taiyen::test
