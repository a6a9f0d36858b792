// Goal: a thread that is cancelled amid whatever it does with a heap leaves it usable: no call of the library is a
// cancellation point.
// Method: threads that snapshot or commit in a loop are cancelled at some moment, and the next one goes on; the loop's
// own point is where they end.
#include "tests/thread_end.hpp"
#include "tests/txn/support.hpp"

#include <atomic>
#include <filesystem>
#include <pthread.h>
#include <unistd.h>

namespace taiyen::test {
namespace {

#if !defined(__SANITIZE_THREAD__) // which does not go on after a cancellation

struct heap_in_files {
    std::filesystem::path folder = std::filesystem::temp_directory_path() / ("cancelled-" + std::to_string(getpid()));
    ty_heap *heap = nullptr;
    ty_kind kind;
    std::atomic<int> failed{0};
    std::atomic<unsigned> rounds{0};

    explicit heap_in_files(ty_kind wanted) : kind(wanted) {
        std::filesystem::create_directory(folder);
        ty_open_options options = TY_OPEN_OPTIONS_INIT;
        options.kind = kind;
        options.limit_bytes = size_t{256} << 20;
        options.log_bytes = kind == TY_TRANSACTIONAL ? size_t{4} << 20 : 0;
        EXPECT_OK(ty_open((folder / "heap.ty").c_str(), &options, &heap, nullptr));
    }
    ~heap_in_files() {
        EXPECT_OK(ty_close(heap));
        std::filesystem::remove_all(folder);
    }
    bool once() {
        if (kind != TY_TRANSACTIONAL) {
            void *block = ty_alloc(heap, 20'000);
            return block && ty_free(block) == TY_OK && ty_snapshot(heap) == TY_OK;
        }
        ty_txn *txn = nullptr;
        if (ty_begin(heap, nullptr, &txn) != TY_OK)
            return false;
        void *block = ty_txn_alloc(txn, 3'000);
        return block && ty_txn_free(txn, block) == TY_OK && ty_commit(txn) == TY_OK;
    }
};

void *repeat(void *context) {
    auto &files = *static_cast<heap_in_files *>(context);
    for (;;) {
        files.failed += !files.once();
        files.rounds++;
        end_if_cancelled();
    }
    return nullptr;
}

class cancelled : public testing::TestWithParam<ty_kind> {};

TEST_P(cancelled, threads_leave_the_heap_usable) {
    heap_in_files files(GetParam());
    for (unsigned i = 0; i < 40; i++) {
        pthread_t thread;
        unsigned before = files.rounds;
        ASSERT_EQ(pthread_create(&thread, nullptr, repeat, &files), 0);
        while (files.rounds < before + i % 4)
            sched_yield();
        pthread_cancel(thread);
        void *result = nullptr;
        pthread_join(thread, &result);
        ASSERT_EQ(result, PTHREAD_CANCELED);
        ASSERT_TRUE(files.once());
    }
    EXPECT_EQ(files.failed, 0);
    EXPECT_OK(ty_heap_verify(files.heap, nullptr, nullptr));
}

INSTANTIATE_TEST_SUITE_P(kinds, cancelled, testing::Values(TY_ARCHIVE, TY_SNAPSHOT, TY_TRANSACTIONAL));

#endif

} // namespace
} // namespace taiyen::test
