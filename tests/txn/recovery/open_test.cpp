// Goal: each state that a transactional heap's files can be in is distinguished; an open gives all that was
// acknowledged, or a refusal that changes nothing. Method: make the state on a simulated disk, open, look at report,
// content, and the files' bytes.
#include "../files.hpp"
#include "tests/files_on.hpp"
#include "tests/stats.hpp"

using namespace taiyen;
using namespace taiyen::test;

namespace {

class open_test : public testing::Test {
protected:
    void open(const disk &files, ty_kind kind = TY_TRANSACTIONAL) {
        ty_open_options options = with_log(files, kind);
        ASSERT_OK(ty_open(heap_path, &options, &heap, &report));
        book.forget_others(heap);
    }
    void run(int transactions) {
        for (int i = 0; i < transactions; ++i)
            ASSERT_OK(book.run(heap));
    }
    void expect_refused(const disk &files, ty_status status, const ty_open_options &options) {
        std::string bytes[3];
        const char *paths[3] = {heap_path, journal_path, log_path};
        for (int i = 0; i < 3; ++i)
            bytes[i] = files.read_file(paths[i]);
        const uint64_t events = os::sim_event_count(files.get());
        ty_heap *refused = nullptr;
        EXPECT_EQ(status, ty_open(heap_path, &options, &refused, nullptr)) << ty_error_text();
        EXPECT_EQ(nullptr, refused);
        EXPECT_EQ(events, os::sim_event_count(files.get())) << "something was written";
        for (int i = 0; i < 3; ++i)
            EXPECT_TRUE(bytes[i] == files.read_file(paths[i])) << paths[i] << " was changed";
    }

    ledger book{3};
    ty_heap *heap = nullptr;
    ty_report report{};
};

TEST_F(open_test, created_closed_and_opened_again) {
    disk files;
    open(files);
    EXPECT_TRUE(report.created);
    EXPECT_EQ(TY_TRANSACTIONAL, report.kind);
    EXPECT_EQ(TY_TRANSACTIONAL, ty_heap_kind(heap));
    run(20);
    ASSERT_OK(ty_close(heap));
    open(files, TY_KIND_DEFAULT);
    EXPECT_EQ(TY_TRANSACTIONAL, report.kind);
    EXPECT_EQ(TY_RECOVERY_CLOSED, report.found);
    EXPECT_EQ(0u, report.replayed_transactions);
    EXPECT_EQ(20u, report.lsn);
    book.check(heap, 20);
    run(1);
    ASSERT_OK(ty_close(heap));
}

TEST_F(open_test, discarded_and_replayed) {
    disk files;
    open(files);
    run(30);
    ASSERT_OK(ty_discard(heap));
    open(files);
    EXPECT_EQ(30u, report.replayed_transactions);
    EXPECT_EQ(30u, report.lsn);
    EXPECT_GT(report.replayed_bytes, 0u);
    book.check(heap, 30);
    run(5);
    ASSERT_OK(ty_snapshot(heap));
    run(7);
    ASSERT_OK(ty_discard(heap));
    open(files);
    EXPECT_EQ(7u, report.replayed_transactions);
    book.check(heap, 42);
    ASSERT_OK(ty_close(heap));
}

TEST_F(open_test, read_only_is_replayed_in_memory) {
    disk files;
    open(files);
    run(30);
    ASSERT_OK(ty_discard(heap));
    std::string image = files.read_file(heap_path), log = files.read_file(log_path);
    ty_open_options options = with_log(files, TY_KIND_DEFAULT);
    options.mode = TY_OPEN_READ_ONLY;
    options.limit_bytes = 0;
    ASSERT_OK(ty_open(heap_path, &options, &heap, &report));
    EXPECT_EQ(30u, report.replayed_transactions);
    book.check(heap, 30);
    ty_txn *txn = nullptr;
    EXPECT_EQ(TY_E_PERMISSION, ty_begin(heap, nullptr, &txn));
    ASSERT_OK(ty_close(heap));
    EXPECT_TRUE(image == files.read_file(heap_path) && log == files.read_file(log_path));
}

TEST_F(open_test, attached_and_detached) {
    disk files;
    open(files, TY_SNAPSHOT);
    EXPECT_EQ("(none)", files.read_file(log_path));
    ASSERT_OK(ty_close(heap));
    open(files);
    EXPECT_TRUE(report.log_attached);
    EXPECT_EQ(TY_TRANSACTIONAL, report.kind);
    run(10);
    ASSERT_OK(ty_discard(heap));
    open(files, TY_SNAPSHOT);
    EXPECT_TRUE(report.log_detached);
    EXPECT_EQ(TY_SNAPSHOT, report.kind);
    EXPECT_EQ(TY_SNAPSHOT, ty_heap_kind(heap));
    EXPECT_EQ(10u, report.replayed_transactions);
    EXPECT_EQ("(none)", files.read_file(log_path));
    book.check(heap, 10);
    void *block = ty_alloc(heap, 100); // an ordinary snapshot heap
    ASSERT_NE(nullptr, block);
    ASSERT_OK(ty_free(block));
    ASSERT_OK(ty_close(heap));
    open(files);
    EXPECT_TRUE(report.log_attached);
    book.check(heap, 10);
    run(3);
    ASSERT_OK(ty_discard(heap));
    open(files);
    book.check(heap, 13);
    ASSERT_OK(ty_close(heap));
}

TEST_F(open_test, missing_log_of_a_heap_closed_in_order) {
    disk files;
    open(files);
    run(10);
    ASSERT_OK(ty_close(heap));
    files.remove(log_path);
    ty_open_options options = with_log(files);
    options.mode = TY_OPEN_READ_ONLY;
    ASSERT_OK(ty_open(heap_path, &options, &heap, &report));
    book.check(heap, 10);
    ASSERT_OK(ty_close(heap));
    open(files);
    EXPECT_TRUE(report.log_recreated);
    EXPECT_EQ(10u, report.lsn);
    book.check(heap, 10);
    run(4);
    ASSERT_OK(ty_discard(heap));
    open(files);
    EXPECT_EQ(14u, report.lsn);
    book.check(heap, 14);
    ASSERT_OK(ty_close(heap));
}

TEST_F(open_test, missing_log_otherwise) {
    disk files;
    open(files);
    run(10);
    ASSERT_OK(ty_discard(heap)); // in order for image and journal, not for the log
    files.rename(log_path, "away");
    expect_refused(files, TY_E_NOT_FOUND, with_log(files));
    ty_open_options elsewhere = with_log(files);
    elsewhere.log_path = "away";
    ASSERT_OK(ty_open(heap_path, &elsewhere, &heap, &report));
    book.check(heap, 10);
    ASSERT_OK(ty_close(heap));
}

TEST_F(open_test, logs_that_do_not_belong) {
    disk files;
    open(files);
    run(10);
    ASSERT_OK(ty_close(heap));
    files.rename(log_path, "first");
    open(files); // makes another log of this heap
    ASSERT_TRUE(report.log_recreated);
    run(5);
    ASSERT_OK(ty_discard(heap));
    files.rename(log_path, "second");
    files.rename("first", log_path);
    expect_refused(files, TY_E_MISMATCH, with_log(files));
    ty_open_options other = with_log(files);
    other.log_path = "other.ty-log";
    ty_heap *other_heap = nullptr;
    ASSERT_OK(ty_open("other.ty", &other, &other_heap, nullptr));
    ASSERT_OK(ty_close(other_heap));
    files.rename(log_path, "first");
    files.rename("other.ty-log", log_path);
    expect_refused(files, TY_E_MISMATCH, with_log(files));
    files.remove(log_path);
    files.rename("second", log_path);
    open(files);
    book.check(heap, 15);
    ASSERT_OK(ty_close(heap));
}

// The process dies anywhere in a detach, and another heap's log comes into the place of the log: whatever the headers
// say, an open that would make one is refused, and finishes nothing.
TEST_F(open_test, a_stranger_after_a_detach_that_was_cut_off) {
    disk files;
    open(files);
    run(4);
    ASSERT_OK(ty_discard(heap));
    ty_open_options other = with_log(files);
    ASSERT_OK(ty_open("other.ty", &other, &heap, nullptr));
    ASSERT_OK(ledger(3).run(heap));
    ASSERT_OK(ty_discard(heap));
    uint64_t before = os::sim_event_count(files.get());
    open(files, TY_SNAPSHOT);
    uint64_t after = os::sim_event_count(files.get());
    ASSERT_OK(ty_discard(heap));
    ASSERT_LT(before, after);
    for (uint64_t event = before; event <= after; ++event) {
        SCOPED_TRACE(event);
        disk once(os::sim_power_cut(files.get(), event, os::sim_cut::process_death, event));
        once.rename("other.ty-log", log_path);
        expect_refused(once, TY_E_MISMATCH, with_log(once));
    }
}

// A log that another heap may need, or a file that is no log, is never written over.
TEST_F(open_test, strangers_are_not_replaced) {
    disk files;
    open(files);
    run(5);
    ASSERT_OK(ty_discard(heap));
    ty_open_options thief = with_log(files);
    thief.log_path = log_path;
    std::string log = files.read_file(log_path);
    ty_heap *other = nullptr;
    EXPECT_EQ(TY_E_MISMATCH, ty_open("other.ty", &thief, &other, nullptr));
    thief.log_path = journal_path;
    EXPECT_EQ(TY_E_MISMATCH, ty_open("other.ty", &thief, &other, nullptr));
    EXPECT_EQ("(none)", files.read_file("other.ty"));
    EXPECT_TRUE(log == files.read_file(log_path));
    open(files);
    book.check(heap, 5);
    ASSERT_OK(ty_close(heap));
}

TEST_F(open_test, a_log_cut_short_is_refused) {
    disk files;
    open(files);
    run(10);
    ASSERT_OK(ty_discard(heap));
    files.resize(log_path, small_log / 2);
    expect_refused(files, TY_E_DAMAGED, with_log(files));
}

TEST_F(open_test, on_a_sink_of_the_program) {
    disk files;
    alignas(4096) static char memory[small_log];
    memset(memory, 0, sizeof memory);
    ty_log_sink *sink = nullptr;
    ASSERT_OK(ty_memory_log_create(memory, sizeof memory, nullptr, &sink));
    ty_open_options options = with_log(files);
    options.log = sink;
    ASSERT_OK(ty_open(heap_path, &options, &heap, &report));
    run(10);
    ASSERT_OK(ty_discard(heap));
    expect_refused(files, TY_E_NOT_FOUND, with_log(files)); // it is not in a file
    ASSERT_OK(ty_open(heap_path, &options, &heap, &report));
    EXPECT_EQ(10u, report.replayed_transactions);
    book.check(heap, 10);
    ASSERT_OK(ty_close(heap));
    memset(memory, 0, sizeof memory); // closed in order: it is made anew
    ASSERT_OK(ty_open(heap_path, &options, &heap, &report));
    EXPECT_TRUE(report.log_recreated);
    run(3);
    options.kind = TY_SNAPSHOT;
    ASSERT_OK(ty_rebuild(&heap, &options, &report));
    EXPECT_TRUE(report.log_detached);
    book.check(heap, 13);
    ASSERT_OK(ty_close(heap));
    ty_log_sink_destroy(sink);
}

TEST_F(open_test, rebuilt) {
    disk files;
    open(files);
    run(10);
    ASSERT_OK(book.run(heap, false)); // not durable yet
    for (auto &[address, bytes] : content_of(heap))
        memset(address, 0xee, bytes.size());
    ty_txn *txn = nullptr;
    ASSERT_OK(ty_begin(heap, nullptr, &txn)); // is lost
    ty_open_options options = with_log(files);
    ASSERT_OK(ty_rebuild(&heap, &options, &report));
    book.check(heap, 11);
    run(2);
    ASSERT_OK(ty_close(heap));
    open(files);
    book.check(heap, 13);
    ASSERT_OK(ty_discard(heap));
}

TEST_F(open_test, with_a_larger_limit) {
    disk files;
    open(files);
    run(10);
    ASSERT_OK(ty_discard(heap));
    ty_open_options options = with_log(files);
    options.limit_bytes = 2 * small_limit;
    ASSERT_OK(ty_open(heap_path, &options, &heap, &report));
    EXPECT_TRUE(report.grown);
    EXPECT_EQ(10u, report.replayed_transactions);
    const ty_heap_stats stats = heap_stats_of(heap);
    EXPECT_EQ(2 * small_limit, stats.limit_bytes);
    book.check(heap, 10);
    ASSERT_OK(ty_close(heap));
}

TEST_F(open_test, close_and_snapshot_refuse_amid_a_transaction) {
    disk files;
    open(files);
    run(3);
    ty_txn *txn = nullptr;
    ASSERT_OK(ty_begin(heap, nullptr, &txn));
    EXPECT_EQ(TY_E_BUSY, ty_close(heap));
    EXPECT_EQ(TY_E_ARGUMENT, ty_snapshot(heap));
    ASSERT_OK(ty_rollback(txn));
    ASSERT_OK(ty_read_begin(heap));
    EXPECT_EQ(TY_E_BUSY, ty_close(heap));
    ASSERT_OK(ty_snapshot(heap)); // as a reader
    ty_read_end(heap);
    run(1);
    ASSERT_OK(ty_close(heap));
}

TEST_F(open_test, what_the_log_says) {
    disk files;
    open(files);
    run(4);
    ASSERT_OK(ty_snapshot(heap));
    run(6);
    ASSERT_OK(ty_discard(heap));
    ty_log_info info{};
    info.struct_size = sizeof info;
    struct counts {
        uint64_t transactions = 0, data = 0, first = 0;
    } seen;
    auto count = [](const ty_log_entry *entry, void *context) {
        auto &c = *static_cast<counts *>(context);
        c.transactions += entry->kind == TY_LOG_TRANSACTION;
        c.data += entry->kind == TY_LOG_DATA;
        c.first = c.first ? c.first : entry->lsn;
        return true;
    };
    ASSERT_OK(ty_log_read(heap_path, files_on(files.storage()), &info, count, &seen));
    EXPECT_TRUE(info.of_heap);
    EXPECT_EQ(6u, info.transactions);
    EXPECT_EQ(5u, info.first_lsn);
    EXPECT_EQ(6u, seen.transactions);
    EXPECT_EQ(5u, seen.first);
    EXPECT_EQ(seen.data, info.data_entries);
    EXPECT_GT(info.record_bytes, 0u);
    ASSERT_OK(ty_log_read(nullptr, files_on(files.storage(), log_path), &info, nullptr, nullptr));
    EXPECT_FALSE(info.of_heap);
    EXPECT_NE(0u, info.log_identity);
}

} // namespace
