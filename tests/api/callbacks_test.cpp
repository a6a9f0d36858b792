// Goal: an exception that a program's callback throws comes out of the call of C that called back, and nothing of a
// heap is locked after it (Y6). A procedure that throws fails, as one that returns a failure does. Method: each call
// that calls back, with a callback that throws at once; then another thread uses the heap.
#include "fixture.hpp"
#include "tests/stats.hpp"
#include "tests/thread_end.hpp"

#include <atomic>
#include <stdexcept>
#include <thread>

using namespace api_test;

namespace {

constexpr const char *what = "from the callback";

template <class Result, class... Arguments>
Result throws(Arguments...) {
    throw std::runtime_error(what);
}

struct case_of_call {
    const char *name;
    std::function<ty_status(ty_heap *heap, const std::string &path)> call;
};

std::ostream &operator<<(std::ostream &out, const case_of_call &c) {
    return out << c.name;
}

// Allocating, freeing and pausing wait for whoever has the heap paused or locked.
void use_in_another_thread(ty_heap *heap) {
    std::thread other([heap] {
        if (ty_heap_kind(heap) == TY_TRANSACTIONAL) {
            ty_txn *txn = nullptr;
            ASSERT_EQ(ty_begin(heap, nullptr, &txn), TY_OK) << ty_error_text();
            EXPECT_NE(ty_txn_alloc(txn, 100), nullptr) << ty_error_text();
            EXPECT_EQ(ty_commit(txn), TY_OK) << ty_error_text();
            return;
        }
        void *block = ty_alloc(heap, 100'000);
        EXPECT_NE(block, nullptr);
        EXPECT_EQ(ty_free(block), TY_OK);
        EXPECT_EQ(ty_heap_verify(heap, nullptr, nullptr), TY_OK);
        if (ty_heap_kind(heap) != TY_VOLATILE) {
            EXPECT_EQ(ty_snapshot(heap), TY_OK);
        }
    });
    other.join();
}

void expect_it_thrown(const std::function<ty_status()> &call) {
    try {
        ty_status status = call();
        ADD_FAILURE() << "it returned " << ty_status_name(status);
    } catch (const std::runtime_error &error) {
        EXPECT_STREQ(error.what(), what);
    }
    int before = -1;
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &before);
    EXPECT_EQ(before, PTHREAD_CANCEL_ENABLE) << "the thread can be cancelled no more";
}

const case_of_call calls[] = {
    {"each_block", [](ty_heap *heap, auto &) { return ty_each_block(heap, throws<bool>, nullptr); }},
    {"each_extent", [](ty_heap *heap, auto &) { return ty_each_extent(heap, throws<bool>, nullptr); }},
    {"each_class", [](ty_heap *heap, auto &) { return ty_each_class(heap, throws<bool>, nullptr); }},
    {"each_thread", [](ty_heap *heap, auto &) { return ty_each_thread(heap, throws<bool>, nullptr); }},
    {"each_internal_block", [](ty_heap *heap, auto &) { return ty_each_internal_block(heap, throws<bool>, nullptr); }},
    {"each_root", [](ty_heap *heap, auto &) { return ty_each_root(heap, throws<bool>, nullptr); }},
    {"undo_history", [](ty_heap *heap, auto &) { return ty_undo_history(heap, throws<bool>, nullptr); }},
};

class callbacks : public testing::TestWithParam<case_of_call> {};

} // namespace

TEST_P(callbacks, that_throw_leave_nothing_locked) {
    folder files;
    const std::string path = files.path("a.ty");
    ty_open_options options = small_options();
    ty_heap *heap = nullptr;
    ASSERT_EQ(ty_open(path.c_str(), &options, &heap, nullptr), TY_OK) << ty_error_text();
    ty_undo_options undo = TY_UNDO_OPTIONS_INIT;
    ASSERT_EQ(ty_undo_attach(heap, &undo), TY_OK) << ty_error_text();
    ASSERT_EQ(ty_undo_begin(heap, "a step"), TY_OK) << ty_error_text();
    void *block = ty_undo_alloc(heap, 100);
    ASSERT_EQ(ty_undo_end(heap), TY_OK) << ty_error_text();
    ASSERT_EQ(ty_root_set(heap, "a", block), TY_OK);
    for (int i = 0; i < 2; ++i)
        expect_it_thrown([&] { return GetParam().call(heap, path); });
    use_in_another_thread(heap);
    EXPECT_EQ(ty_undo(heap), TY_OK) << ty_error_text();
    EXPECT_EQ(ty_close(heap), TY_OK) << ty_error_text();
}

INSTANTIATE_TEST_SUITE_P(calls, callbacks, testing::ValuesIn(calls), [](const auto &c) { return c.param.name; });

class callbacks_in : public testing::TestWithParam<ty_kind> {};

// Each call that changes nothing, by the thread that is called back: also while another one has a transaction under
// way, which cannot end before the walk does.
TEST_P(callbacks_in, a_walk_may_look_at_the_heap) {
    folder files;
    const bool transactions = GetParam() == TY_TRANSACTIONAL;
    ty_open_options options = small_options();
    options.kind = GetParam();
    ty_heap *heap = nullptr;
    ASSERT_EQ(ty_open(files.path("a.ty").c_str(), &options, &heap, nullptr), TY_OK) << ty_error_text();
    ty_txn *txn = nullptr;
    EXPECT_TRUE(!transactions || ty_begin(heap, nullptr, &txn) == TY_OK) << ty_error_text();
    EXPECT_NE(transactions ? ty_txn_alloc(txn, 5000) : ty_alloc(heap, 5000), nullptr) << ty_error_text();
    EXPECT_TRUE(!transactions || ty_commit(txn) == TY_OK) << ty_error_text();
    const auto look = [](const ty_block *block, void *context) {
        auto *of = static_cast<ty_heap *>(context);
        ty_block found;
        EXPECT_EQ(ty_block_of(block->address, &found), TY_OK) << ty_error_text();
        EXPECT_EQ(ty_usable_size(block->address), block->size_bytes);
        EXPECT_EQ(ty_heap_of(block->address), of);
        EXPECT_EQ(ty_heap_verify(of, nullptr, nullptr), TY_OK) << ty_error_text();
        EXPECT_EQ(ty_root(of, "none"), nullptr);
        EXPECT_EQ(ty_current_txn(of), nullptr);
        EXPECT_EQ(ty_heap_epoch(of), 0u);
        taiyen::test::heap_stats_of(of);
        uint64_t dirty = 0;
        EXPECT_EQ(ty_dirty_count(of, &dirty), ty_heap_kind(of) == TY_ARCHIVE ? TY_E_UNSUPPORTED : TY_OK);
        taiyen::test::snapshot_stats_of(of);
        if (ty_heap_kind(of) == TY_TRANSACTIONAL) {
            ty_txn_stats txns = taiyen::test::txn_stats_of(of);
            EXPECT_EQ(txns.transactions, 1u);
        }
        return true;
    };
    EXPECT_EQ(ty_each_block(heap, look, heap), TY_OK);
    struct walk {
        ty_heap *heap;
        std::atomic<bool> begun{false};
        std::thread other;
    } walk{heap, {}, {}};
    const auto look_beside = [](const ty_block *, void *context) {
        auto &self = *static_cast<struct walk *>(context);
        self.other = std::thread([&self] {
            ty_txn *waits = nullptr;
            EXPECT_EQ(ty_begin(self.heap, nullptr, &waits), TY_OK) << ty_error_text();
            self.begun = true;
            EXPECT_NE(ty_txn_alloc(waits, 5000), nullptr) << ty_error_text(); // for the walk
            EXPECT_EQ(ty_commit(waits), TY_OK) << ty_error_text();
        });
        while (!self.begun)
            std::this_thread::yield();
        taiyen::test::txn_stats_of(self.heap);
        return false;
    };
    if (transactions) {
        EXPECT_EQ(ty_each_block(heap, look_beside, &walk), TY_OK);
        walk.other.join();
    }
    EXPECT_EQ(ty_close(heap), TY_OK) << ty_error_text();
}

INSTANTIATE_TEST_SUITE_P(kinds, callbacks_in, testing::Values(TY_ARCHIVE, TY_SNAPSHOT, TY_TRANSACTIONAL),
                         [](const auto &kind) { return std::to_string(kind.param); });

// A cancellation that waits takes place after the call.
TEST(callbacks_of_files, are_not_cancelled) {
    folder files;
    const std::string path = files.path("a.ty");
    ty_open_options options = small_options();
    ty_heap *heap = nullptr;
    ASSERT_EQ(ty_open(path.c_str(), &options, &heap, nullptr), TY_OK) << ty_error_text();
    ASSERT_EQ(ty_close(heap), TY_OK) << ty_error_text();
    static std::atomic<int> returned;
    returned = 0;
    pthread_t thread;
    const auto body = [](void *argument) -> void * {
        ty_progress_callback *const test = [](uint64_t, uint64_t, void *) {
            pthread_testcancel();
            return true;
        };
        pthread_cancel(pthread_self());
        if (ty_scrub(static_cast<const char *>(argument), nullptr, test, nullptr, nullptr) == TY_OK)
            ++returned;
        taiyen::test::end_if_cancelled();
        return nullptr;
    };
    ASSERT_EQ(pthread_create(&thread, nullptr, body, const_cast<char *>(path.c_str())), 0);
    void *result = nullptr;
    pthread_join(thread, &result);
    EXPECT_EQ(returned, 1);
    EXPECT_EQ(result, PTHREAD_CANCELED);
    ASSERT_EQ(ty_open(path.c_str(), &options, &heap, nullptr), TY_OK) << ty_error_text();
    EXPECT_EQ(ty_close(heap), TY_OK) << ty_error_text();
}

// The first of two undeclared writes of each transaction is reported; the transaction ends as it would have.
TEST(callbacks_of_transactions, that_throw_change_nothing_of_their_end) {
    folder files;
    const std::string path = files.path("a.ty");
    ty_open_options options = small_options();
    options.kind = TY_TRANSACTIONAL;
    options.check_stores = true;
    options.undeclared_write = throws<void>;
    ty_heap *heap = nullptr;
    ASSERT_EQ(ty_open(path.c_str(), &options, &heap, nullptr), TY_OK) << ty_error_text();
    ty_txn *txn = nullptr;
    ASSERT_EQ(ty_begin(heap, nullptr, &txn), TY_OK) << ty_error_text();
    auto *block = static_cast<char *>(ty_txn_alloc(txn, 50'000));
    ASSERT_EQ(ty_txn_root_set(txn, "a", block), TY_OK);
    ASSERT_EQ(ty_commit(txn), TY_OK) << ty_error_text();
    const std::function<ty_status(ty_txn *)> ends[] = {
        ty_commit, [](ty_txn *its) { return ty_commit_async(its, nullptr); }, ty_rollback};
    for (int i = 0; i < 3; i++) {
        ASSERT_EQ(ty_begin(heap, nullptr, &txn), TY_OK) << ty_error_text();
        ASSERT_EQ(ty_declare(txn, block + i, 1), TY_OK) << ty_error_text();
        block[i] = 7;
        block[20'000] = block[40'000] = static_cast<char>(i + 1);
        expect_it_thrown([&] { return ends[i](txn); });
        EXPECT_EQ(ty_current_txn(heap), nullptr);
        use_in_another_thread(heap);
    }
    ASSERT_EQ(ty_discard(heap), TY_OK);
    options.check_stores = false;
    ASSERT_EQ(ty_open(path.c_str(), &options, &heap, nullptr), TY_OK) << ty_error_text();
    block = static_cast<char *>(ty_root(heap, "a"));
    EXPECT_EQ(block[0], 7);
    EXPECT_EQ(block[1], 7);
    EXPECT_EQ(block[2], 0);
    EXPECT_EQ(ty_close(heap), TY_OK) << ty_error_text();
}

TEST(callbacks_of_files, that_throw_leave_no_lock_and_no_descriptor) {
    folder files;
    const std::string path = files.path("a.ty");
    ty_open_options options = small_options();
    options.kind = TY_TRANSACTIONAL;
    ty_heap *heap = nullptr;
    ASSERT_EQ(ty_open(path.c_str(), &options, &heap, nullptr), TY_OK) << ty_error_text();
    ASSERT_EQ(ty_close(heap), TY_OK) << ty_error_text();
    auto descriptors = [] {
        namespace fs = std::filesystem;
        return std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator());
    };
    const auto before = descriptors();
    expect_it_thrown([&] { return ty_scrub(path.c_str(), nullptr, throws<bool>, nullptr, nullptr); });
    EXPECT_EQ(descriptors(), before);
    flip_bit(path, 5, 1); // one of the two headers
    expect_it_thrown([&] { return ty_scrub(path.c_str(), nullptr, nullptr, throws<void>, nullptr); });
    EXPECT_EQ(descriptors(), before);
    flip_bit(path, 5, 1);
    ASSERT_EQ(ty_open(path.c_str(), &options, &heap, nullptr), TY_OK) << ty_error_text();
    ty_txn *txn = nullptr;
    ASSERT_EQ(ty_begin(heap, nullptr, &txn), TY_OK) << ty_error_text();
    ASSERT_NE(ty_txn_alloc(txn, 100), nullptr);
    ASSERT_EQ(ty_commit(txn), TY_OK) << ty_error_text();
    ASSERT_EQ(ty_discard(heap), TY_OK);
    expect_it_thrown([&] { return ty_log_read(path.c_str(), nullptr, nullptr, throws<bool>, nullptr); });
    EXPECT_EQ(descriptors(), before);
    ASSERT_EQ(ty_open(path.c_str(), &options, &heap, nullptr), TY_OK) << ty_error_text();
    EXPECT_EQ(ty_close(heap), TY_OK) << ty_error_text();
}

TEST(callbacks_of_files, that_throw_in_a_rollback_make_it_fail_and_end) {
    folder files;
    ty_open_options options = small_options();
    options.kind = TY_TRANSACTIONAL;
    constexpr uint64_t id = 0xca11bac;
    ASSERT_EQ(ty_register_procedure(id, "it throws", throws<ty_status>, nullptr), TY_OK) << ty_error_text();
    ty_heap *heap = nullptr;
    ASSERT_EQ(ty_open(files.path("a.ty").c_str(), &options, &heap, nullptr), TY_OK) << ty_error_text();
    ty_txn_options declared = TY_TXN_OPTIONS_INIT;
    declared.stores = TY_STORES_DECLARED;
    ty_txn *txn = nullptr;
    ASSERT_EQ(ty_begin(heap, &declared, &txn), TY_OK) << ty_error_text();
    ASSERT_EQ(ty_on_rollback_procedure(txn, id, nullptr, 0), TY_OK) << ty_error_text();
    EXPECT_EQ(ty_rollback(txn), TY_E_DAMAGED);
    EXPECT_EQ(ty_current_txn(heap), nullptr);
    ASSERT_EQ(ty_rebuild(&heap, nullptr, nullptr), TY_OK) << ty_error_text();
    use_in_another_thread(heap);
    EXPECT_EQ(ty_close(heap), TY_OK) << ty_error_text();
}

TEST(callbacks_of_checks, that_throw_leave_nothing_locked) {
    ty_heap *heap = nullptr;
    ASSERT_EQ(ty_heap_create(nullptr, &heap), TY_OK);
    ty_check_options checks = TY_CHECK_OPTIONS_INIT;
    checks.checks = TY_CHECK_SITES;
    ASSERT_EQ(ty_heap_start_checks(heap, &checks), TY_OK) << ty_error_text();
    void *block = ty_alloc(heap, 100);
    expect_it_thrown([&] { return ty_each_site(heap, throws<bool>, nullptr); });
    use_in_another_thread(heap);
    EXPECT_EQ(ty_free(block), TY_OK);
    EXPECT_EQ(ty_heap_destroy(heap), TY_OK);
}
