// What the tests of concurrent heaps in C++ share: a heap of each kind, threads, and bodies that meet a conflict.
#pragma once

#include "../threads.hpp"
#include "fixture.hpp"

#include <atomic>
#include <functional>
#include <memory>
#include <taiyen/taiyen.hpp>
#include <thread>
#include <vector>

namespace api_test {

using taiyen::test::dice;
using taiyen::test::in_threads;

enum class sort { volatile_heap, transactional };

inline std::string sort_name(const testing::TestParamInfo<sort> &tested) {
    return tested.param == sort::volatile_heap ? "volatile" : "transactional";
}

class concurrent_heap_test : public testing::TestWithParam<sort> {
protected:
    void SetUp() override { open(); }
    void TearDown() override {
        EXPECT_TRUE(heap->verify());
        EXPECT_TRUE(heap->close());
    }
    // The object at a root, made where there is none.
    template <class T>
    T &made(const char *name) {
        return heap->atomically([&](taiyen::atomic_txn &txn) -> T & { return txn.root<T>(name); });
    }
    bool lasts() const { return GetParam() == sort::transactional; }
    // What is durable is found again; of a volatile heap, what it holds.
    void close_and_open() {
        if (!lasts())
            return;
        ASSERT_TRUE(heap->close());
        open();
    }
    void die_and_open() {
        if (!lasts())
            return;
        ASSERT_TRUE(heap->discard());
        open();
    }
    void open() {
        if (!lasts()) {
            taiyen::heap_options options;
            options.limit_bytes = size_t{256} << 20;
            options.concurrent = true;
            heap = std::make_unique<taiyen::heap>(taiyen::heap::create(options).value());
            return;
        }
        taiyen::open_options options;
        options.limit_bytes = size_t{256} << 20;
        options.kind = TY_TRANSACTIONAL;
        options.concurrent = true;
        options.log_bytes = size_t{4} << 20;
        heap = std::make_unique<taiyen::heap>(taiyen::heap::open(files.path("heap.ty"), options).value());
    }
    size_t live_blocks() const { return heap->stats().value().live_blocks; }

    folder files;
    std::unique_ptr<taiyen::heap> heap;
};

// Once, in the first run of a body: another thread commits this.
class once_beside {
public:
    once_beside(taiyen::heap_view heap, std::function<void(taiyen::atomic_txn &)> change)
        : heap_(heap), change_(std::move(change)) {}
    void operator()() {
        if (!std::exchange(done_, true))
            std::thread([this] { heap_.atomically(change_, TY_COMMIT_ASYNC); }).join();
    }

private:
    taiyen::heap_view heap_;
    std::function<void(taiyen::atomic_txn &)> change_;
    bool done_ = false;
};

} // namespace api_test
