// Goal: a thread that is cancelled (pthread_cancel) is not ended within a function of the program's storage or log, as
// the library holds locks meanwhile (Y5). Method: each function of the tables is a cancellation point, and the thread
// is cancelled before its first call.
#include "fixture.hpp"
#include "tests/thread_end.hpp"

#include <memory>
#include <pthread.h>
#include <vector>

using namespace api_test;

namespace {

template <class Table>
const Table *real_table;

// A function of the table, as a cancellation point.
template <auto member, class Function>
struct point;
template <class Table, class Result, class... Takes, Result (*Table::*member)(void *, Takes...)>
struct point<member, Result (*)(void *, Takes...)> {
    static Result call(void *, Takes... given) {
        pthread_testcancel();
        const Table *real = real_table<Table>;
        return (real->*member)(real->context, given...);
    }
};
template <auto member, class Table>
void make_point(Table &table) {
    if (table.*member != nullptr)
        table.*member = point<member, std::remove_reference_t<decltype(table.*member)>>::call;
}
template <auto... members, class Table>
void make_points(Table &table, const Table *real) {
    real_table<Table> = real;
    table = *real;
    (make_point<members>(table), ...);
}

ty_storage points_of_storage() {
    using s = ty_storage;
    s table;
    make_points<&s::open, &s::close, &s::read, &s::write, &s::flush, &s::get_size, &s::set_size, &s::allocate,
                &s::punch, &s::next_data, &s::map, &s::unmap, &s::write_back, &s::lock, &s::rename, &s::remove,
                &s::flush_directory, &s::write_many, &s::write_durable, &s::check, &s::protect, &s::resolve>(
        table, ty_storage_default());
    return table;
}
ty_log_sink points_of_log(const ty_log_sink *real) {
    using s = ty_log_sink;
    s table;
    make_points<&s::read, &s::write, &s::close>(table, real);
    return table;
}

// Twice what a heap goes through: made, changed, closed; opened, changed, left as by a crash; opened.
void live(const char *path, const ty_open_options *options) {
    for (int turn = 0; turn < 5; turn++) {
        ty_heap *heap = nullptr;
        ASSERT_EQ(ty_open(path, options, &heap, nullptr), TY_OK) << ty_error_text();
        if (options->kind == TY_TRANSACTIONAL) {
            ty_txn *txn = nullptr;
            ASSERT_EQ(ty_begin(heap, nullptr, &txn), TY_OK) << ty_error_text();
            ASSERT_NE(ty_txn_alloc(txn, 5000), nullptr) << ty_error_text();
            ASSERT_EQ(ty_commit(txn), TY_OK) << ty_error_text();
        } else {
            ASSERT_NE(ty_alloc(heap, 5000), nullptr) << ty_error_text();
        }
        ASSERT_EQ(ty_snapshot(heap), TY_OK) << ty_error_text();
        ASSERT_EQ(turn % 2 == 1 && options->kind != TY_ARCHIVE ? ty_discard(heap) : ty_close(heap), TY_OK)
            << ty_error_text();
    }
    ASSERT_EQ(ty_scrub(path, options, nullptr, nullptr, nullptr), TY_OK) << ty_error_text();
}

struct life {
    std::string path;
    ty_open_options options;
    bool over;
};

// Whether the thread came to the end of the life, and was cancelled only then.
void expect_whole_life(const ty_open_options &options) {
    folder files;
    life one{files.path("a.ty"), options, false};
    pthread_t thread;
    const auto body = [](void *argument) -> void * {
        auto *its = static_cast<life *>(argument);
        pthread_cancel(pthread_self());
        live(its->path.c_str(), &its->options);
        its->over = true;
        taiyen::test::end_if_cancelled();
        return nullptr;
    };
    ASSERT_EQ(pthread_create(&thread, nullptr, body, &one), 0);
    void *result = nullptr;
    ASSERT_EQ(pthread_join(thread, &result), 0);
    EXPECT_TRUE(one.over);
    EXPECT_EQ(result, PTHREAD_CANCELED);
}

struct cancelled_storage : testing::TestWithParam<ty_kind> {};

TEST_P(cancelled_storage, ends_no_thread) {
    const ty_storage storage = points_of_storage();
    ty_open_options options = small_options();
    options.kind = GetParam();
    options.storage = &storage;
    options.background = TY_BACKGROUND_CALLS; // so that all is done by the thread itself
    expect_whole_life(options);
}

INSTANTIATE_TEST_SUITE_P(kinds, cancelled_storage, testing::Values(TY_ARCHIVE, TY_SNAPSHOT, TY_TRANSACTIONAL));

TEST(cancelled_log, ends_no_thread) {
    constexpr size_t bytes = size_t{4} << 20;
    const std::unique_ptr<char, decltype(&free)> memory(static_cast<char *>(aligned_alloc(4096, bytes)), free);
    std::fill_n(memory.get(), bytes, 0);
    ty_log_sink *sink = nullptr;
    ASSERT_EQ(ty_memory_log_create(memory.get(), bytes, nullptr, &sink), TY_OK) << ty_error_text();
    const ty_log_sink log = points_of_log(sink);
    ty_open_options options = small_options();
    options.kind = TY_TRANSACTIONAL;
    options.log = &log;
    options.background = TY_BACKGROUND_CALLS;
    expect_whole_life(options);
    ty_log_sink_destroy(sink);
}

} // namespace
