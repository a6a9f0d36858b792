// Goal: a thread that ends with something under way on a heap leaves the heap as if it had taken it back: transactions
// of each kind are rolled back, read sections and objects' locks end, and others go on (X9). Method: threads end by
// returning, by pthread_exit and by cancellation, with each of these under way; then another thread uses the heap,
// which must hold what was there before. The story: such a heap was blocked for good, and a thread that got the memory
// of the one that had ended was taken for it.
#include "write_faults_support.hpp"

#include <functional>
#include <pthread.h>
#include <semaphore.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace taiyen::test {
namespace {

constexpr uint64_t back_procedure = 0x7465737403;

enum class way { returns, exits, cancelled };

// Runs `what` in a thread, which then ends in that way.
struct ending_thread {
    std::function<void()> what;
    way how;
    sem_t done{};

    static void *main(void *context) {
        auto &self = *static_cast<ending_thread *>(context);
        self.what();
        if (self.how == way::exits)
            pthread_exit(nullptr);
        sem_post(&self.done);
        while (self.how == way::cancelled)
            pause(); // where it is cancelled
        return nullptr;
    }
    void run() {
        pthread_t thread;
        sem_init(&done, 0, 0);
        ASSERT_EQ(0, pthread_create(&thread, nullptr, main, this));
        if (how == way::cancelled) {
            sem_wait(&done);
            pthread_cancel(thread);
        }
        ASSERT_EQ(0, pthread_join(thread, nullptr));
        sem_destroy(&done);
    }
};

class thread_ends_test : public testing::TestWithParam<way> {
protected:
    void SetUp() override {
        block = h.block("block", 5000);
        before = content_of(h.heap);
    }
    void end_after(std::function<void()> what) { ending_thread{std::move(what), GetParam()}.run(); }
    // Others use the heap: a transaction, a section, an object, a close.
    void expect_usable() {
        ty_txn_options options = TY_TXN_OPTIONS_INIT;
        options.no_wait = true;
        ty_txn *txn = nullptr;
        ASSERT_OK(ty_begin(h.heap, &options, &txn));
        ASSERT_OK(ty_txn_lock_object(txn, block));
        ASSERT_OK(ty_declare(txn, block, 8));
        put(block, 7);
        ASSERT_OK(ty_commit(txn));
        ASSERT_OK(ty_read_begin(h.heap));
        ty_read_end(h.heap);
        ASSERT_OK(ty_snapshot(h.heap));
        expect_sound(h.heap);
        ASSERT_OK(ty_close(h.heap));
        h.open();
        EXPECT_EQ(7u, get(block));
    }

    write_faults_heap h;
    char *block = nullptr;
    content before;
};

void change(ty_heap *heap, ty_txn *txn, char *block, bool declares) {
    if (declares) {
        EXPECT_OK(ty_declare(txn, block, 5000));
    }
    memset(block, 0x55, 5000);
    EXPECT_NE(nullptr, ty_txn_alloc(txn, 100));
    EXPECT_OK(ty_txn_root_set(txn, "other", ty_txn_alloc(txn, 9000)));
    EXPECT_OK(ty_txn_lock_object(txn, heap));
}

TEST_P(thread_ends_test, in_a_declared_transaction) {
    end_after([this] { change(h.heap, h.begin_declared(), block, true); });
    EXPECT_EQ(before, content_of(h.heap));
    expect_usable();
}

TEST_P(thread_ends_test, in_an_write_faults_transaction) {
    end_after([this] { change(h.heap, h.begin(), block, false); });
    EXPECT_EQ(before, content_of(h.heap));
    expect_usable();
}

TEST_P(thread_ends_test, in_one_that_a_procedure_takes_back) {
    ASSERT_OK(ty_register_procedure(
        back_procedure, "back",
        [](ty_heap *heap, const void *, size_t, void *) {
            put(static_cast<char *>(ty_root(heap, "block")), 0x1111111111111111);
            return TY_OK;
        },
        nullptr));
    end_after([this] {
        ty_txn *txn = h.begin_declared();
        EXPECT_OK(ty_on_rollback_procedure(txn, back_procedure, nullptr, 0));
        put(block, 3);
    });
    EXPECT_EQ(before, content_of(h.heap));
    expect_usable();
    ASSERT_OK(ty_register_procedure(back_procedure, nullptr, nullptr, nullptr));
}

TEST_P(thread_ends_test, in_read_sections) {
    end_after([this] {
        EXPECT_OK(ty_read_begin(h.heap));
        EXPECT_OK(ty_read_begin(h.heap));
        EXPECT_OK(ty_object_read_begin(h.heap, block));
    });
    expect_usable();
}

TEST_P(thread_ends_test, in_an_objects_section) {
    end_after([this] { EXPECT_OK(ty_object_read_begin(h.heap, block)); });
    expect_usable();
}

TEST_P(thread_ends_test, on_several_heaps) {
    write_faults_heap other;
    char *more = other.block("block", 5000);
    content others = content_of(other.heap);
    end_after([&] {
        change(h.heap, h.begin_declared(), block, true);
        change(other.heap, other.begin(), more, false);
    });
    EXPECT_EQ(before, content_of(h.heap));
    EXPECT_EQ(others, content_of(other.heap));
    expect_usable();
}

// Of a heap that another thread has discarded meanwhile nothing is touched.
TEST_P(thread_ends_test, after_the_heap) {
    end_after([this] {
        change(h.heap, h.begin_declared(), block, true);
        std::thread([this] { EXPECT_OK(ty_discard(h.heap)); }).join();
        h.open();
    });
    EXPECT_EQ(before, content_of(h.heap));
    expect_usable();
}

// Each waits for the reader-writer lock until the one before has ended.
TEST_P(thread_ends_test, one_after_the_other) {
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; i++)
        threads.emplace_back([this] { end_after([this] { change(h.heap, h.begin_declared(), block, true); }); });
    for (std::thread &thread : threads)
        thread.join();
    EXPECT_EQ(before, content_of(h.heap));
    expect_usable();
}

#if defined(__SANITIZE_THREAD__) // which does not see what a thread does after a cancellation
const auto ways = testing::Values(way::returns, way::exits);
#else
const auto ways = testing::Values(way::returns, way::exits, way::cancelled);
#endif
INSTANTIATE_TEST_SUITE_P(, thread_ends_test, ways, [](const auto &how) {
    return how.param == way::returns ? "returns" : how.param == way::exits ? "exits" : "cancelled";
});

pthread_key_t user_key;
ty_status user_status;

// A program may commit in a destructor of its own thread-specific data.
TEST(thread_ends, after_the_programs_own_destructors) {
    write_faults_heap h;
    char *block = h.block("block", 64);
    ASSERT_EQ(0, pthread_key_create(&user_key, [](void *txn) { user_status = ty_commit(static_cast<ty_txn *>(txn)); }));
    std::thread([&] {
        ty_txn *txn = h.begin_declared();
        ASSERT_OK(ty_declare(txn, block, 8));
        put(block, 9);
        ASSERT_EQ(0, pthread_setspecific(user_key, txn));
    }).join();
    pthread_key_delete(user_key);
    EXPECT_EQ(TY_OK, user_status);
    EXPECT_EQ(9u, get(block));
    h.crash();
    EXPECT_EQ(9u, get(block));
}

// A child has a copy of the transaction that it was forked in, and nothing of the parent's other threads.
TEST(thread_ends, in_a_forked_child) {
    write_faults_heap h;
    char *block = h.block("block", 64);
    ty_txn *txn = h.begin_declared();
    ASSERT_OK(ty_declare(txn, block, 8));
    put(block, 9);
    pid_t child = fork();
    if (child == 0) {
        int wrong = ty_discard(h.heap) != TY_OK;
        std::thread([] {}).join();
        _exit(wrong);
    }
    int status = -1;
    ASSERT_EQ(child, waitpid(child, &status, 0));
    EXPECT_EQ(0, status);
    ASSERT_OK(ty_commit(txn));
    EXPECT_EQ(9u, get(block));
}

// What the thread had open on a heap that it discarded is not open on the next one, which may lie at the same place.
TEST(sections, end_with_a_heap_that_is_discarded) {
    disk files;
    ty_open_options options = files.options();
    options.kind = TY_TRANSACTIONAL;
    options.log_bytes = size_t{1} << 20;
    for (int i = 0; i < 40; i++) { // more than a thread may have open
        SCOPED_TRACE(i);
        ty_heap *heap = nullptr;
        ASSERT_OK(ty_open(heap_path, &options, &heap, nullptr));
        ty_txn *txn = nullptr;
        ASSERT_OK(ty_begin(heap, nullptr, &txn)) << "a section of another heap counts";
        ASSERT_OK(ty_rollback(txn));
        ASSERT_OK(ty_read_begin(heap));
        std::thread([&] {
            ty_txn_options at_once = TY_TXN_OPTIONS_INIT;
            at_once.no_wait = true;
            ty_txn *other = nullptr;
            EXPECT_EQ(TY_E_BUSY, ty_begin(heap, &at_once, &other)) << "the section keeps nobody out";
            EXPECT_OK(ty_rollback(other));
        }).join();
        if (i % 2 != 0) {
            ASSERT_OK(ty_rebuild(&heap, &options, nullptr));
        }
        ASSERT_OK(ty_discard(heap));
    }
}

} // namespace
} // namespace taiyen::test
