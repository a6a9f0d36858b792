// Goal: what ty_salvage_redo does of a damaged heap's log are whole transactions, in order, as a recovery does them;
// where it stops is reported. Method: a heap that dies with transactions in its log, of which a reference knows the
// content after each; the log is damaged in each of its blocks.
#include "../files.hpp"

#include <set>
#include <taiyen/salvage.h>

using namespace taiyen;
using namespace taiyen::test;

namespace {

constexpr const char *out_path = "out.ty";
constexpr int before = 20, after = 30;

ty_status add_one(ty_heap *, const void *place, size_t, void *) {
    ++**static_cast<uint64_t *const *>(place);
    return TY_OK;
}

class salvage_redo_test : public testing::Test {
protected:
    void SetUp() override {
        const ty_open_options options = with_log(files);
        ASSERT_OK(ty_open(heap_path, &options, &heap, nullptr));
        run(before);
        ASSERT_OK(ty_snapshot(heap));
    }
    void run(int transactions) {
        for (int i = 0; i < transactions; ++i)
            ASSERT_OK(book.run(heap));
    }
    void die() {
        ASSERT_OK(ty_discard(heap));
        heap = nullptr;
    }
    void TearDown() override {
        if (heap) {
            EXPECT_OK(ty_discard(heap));
        }
    }

    // What was made of the damaged heap, with its log's transactions up to `until`; `found` looks at it.
    template <class Look>
    void redo(uint64_t until, ty_status expected, ty_salvage_redone *report, Look look) {
        ty_heap *made = nullptr;
        make(&made);
        if (HasFatalFailure())
            return;
        const ty_open_options plain = damaged_options();
        *report = {};
        report->struct_size = sizeof *report;
        EXPECT_EQ(expected, ty_salvage_redo(made, heap_path, &plain, &salvaged, until, report)) << ty_error_text();
        ASSERT_OK(ty_discard(made)); // what it did is durable
        const ty_open_options options = with_log(files);
        ASSERT_OK(ty_open(out_path, &options, &made, nullptr));
        look(made);
        ty_txn *txn = nullptr;
        EXPECT_OK(ty_begin(made, nullptr, &txn)) << "it is a heap of its own";
        EXPECT_OK(ty_rollback(txn));
        ASSERT_OK(ty_close(made));
        remove_made();
    }
    ty_open_options damaged_options() const {
        ty_open_options options = files.options();
        options.log_path = log_name;
        return options;
    }
    // What was made of the damaged heap, without what its log holds.
    void make(ty_heap **made) {
        salvage();
        if (!HasFatalFailure())
            become_transactional(made);
    }
    void salvage() {
        const ty_open_options plain = files.options();
        salvaged.struct_size = sizeof salvaged;
        ASSERT_OK(ty_salvage(heap_path, &plain, out_path, nullptr, nullptr, nullptr, &salvaged));
    }
    void become_transactional(ty_heap **made) {
        for (const ty_kind kind : {TY_SNAPSHOT, TY_TRANSACTIONAL}) {
            const ty_open_options options = with_log(files, kind);
            ASSERT_OK(ty_open(out_path, &options, made, nullptr));
            if (kind == TY_SNAPSHOT) {
                ASSERT_OK(ty_close(*made));
            }
        }
    }
    void remove_made() {
        for (const char *path : {out_path, "out.ty-journal", "out.ty-log"})
            files.remove(path);
    }
    // It holds the first so many transactions.
    auto holds(uint64_t transactions) {
        return [this, transactions](ty_heap *made) {
            EXPECT_EQ(transactions, ledger::count(made));
            ASSERT_LT(transactions, book.history.size());
            EXPECT_TRUE(book.history[transactions] == ledger::blocks_of(made)) << transactions;
            EXPECT_OK(ty_heap_verify(made, nullptr, nullptr));
        };
    }
    // The log is reported as it is, and nothing of it is done.
    void expect_unused_log(const char *why) {
        ty_salvage_redone report;
        redo(UINT64_MAX, TY_OK, &report, holds(before));
        EXPECT_EQ(0u, report.transactions);
        EXPECT_TRUE(report.log_damaged);
        EXPECT_NE(nullptr, strstr(report.text, why)) << report.text;
    }

    disk files;
    ledger book{39};
    ty_salvage_report salvaged{};
    const char *log_name = nullptr; // of the damaged heap's log; NULL: beside it
    ty_heap *heap = nullptr;
};

} // namespace

// X30.
TEST_F(salvage_redo_test, does_what_a_recovery_does) {
    run(after);
    die();
    ty_salvage_redone report;
    redo(UINT64_MAX, TY_OK, &report, holds(before + after));
    EXPECT_EQ(uint64_t{after}, report.transactions);
    EXPECT_EQ(0u, report.stopped_at);
    EXPECT_EQ(0u, report.in_doubt);
    EXPECT_FALSE(report.log_damaged);
    EXPECT_STREQ("", report.text);
}

// X30.
TEST_F(salvage_redo_test, ends_where_the_caller_says) {
    run(after);
    die();
    for (const uint64_t until : {before + 0, before + 1, before + 17}) {
        ty_salvage_redone report;
        redo(until, TY_OK, &report, holds(until));
        EXPECT_EQ(until - before, report.transactions);
        EXPECT_EQ(until + 1, report.stopped_at);
    }
}

TEST_F(salvage_redo_test, ends_at_a_damaged_frame) {
    run(after);
    die();
    uint64_t least = after;
    for (uint64_t at = 2 * 4096; at < 256 * 1024; at += 4096) {
        char page[4096];
        ASSERT_TRUE(files.read(log_path, at, page));
        if (std::all_of(page, page + sizeof page, [](char byte) { return byte == 0; }))
            continue;
        files.flip(log_path, at + 100);
        ty_salvage_redone report;
        redo(UINT64_MAX, TY_OK, &report, [&](ty_heap *made) { holds(ledger::count(made))(made); });
        least = std::min(least, report.transactions);
        files.flip(log_path, at + 100);
    }
    EXPECT_LT(least, uint64_t{after});
}

TEST_F(salvage_redo_test, without_a_log) {
    run(after);
    die();
    files.remove(log_path);
    expect_unused_log(log_path);
}

// X30.
TEST_F(salvage_redo_test, a_log_of_an_earlier_open) {
    ASSERT_OK(ty_close(heap));
    const std::string old = files.read_file(log_path);
    for (int opens = 0; opens < 2; ++opens) { // for one more it names both
        const ty_open_options options = with_log(files);
        ASSERT_OK(ty_open(heap_path, &options, &heap, nullptr));
        run(after);
        die();
    }
    for (uint64_t at = 0; at < old.size(); at += 4096)
        files.patch(log_path, at, old.data() + at, 4096);
    expect_unused_log("older than its image");
}

TEST_F(salvage_redo_test, a_log_of_another_heap) {
    run(after);
    die();
    ty_open_options options = with_log(files);
    options.log_streams = 2;
    options.log_bytes *= 2;
    ASSERT_OK(ty_open("other.ty", &options, &heap, nullptr));
    die();
    log_name = "other.ty-log";
    expect_unused_log("of another heap");
}

TEST_F(salvage_redo_test, a_log_that_was_cut) {
    run(after);
    die();
    const std::string log = files.read_file(log_path);
    const uint64_t used = log.find_last_not_of('\0') / 4096 * 4096 + 4096;
    ASSERT_LT(used, log.size());
    for (const uint64_t bytes : {used, used - 4096}) {
        files.resize(log_path, bytes);
        ty_salvage_redone report;
        redo(UINT64_MAX, TY_OK, &report, [&](ty_heap *made) { holds(ledger::count(made))(made); });
        EXPECT_EQ(bytes == used, report.transactions == after) << report.transactions;
        EXPECT_TRUE(report.log_damaged);
        EXPECT_NE(nullptr, strstr(report.text, "was cut to")) << report.text;
    }
}

// X30: a program used the heap between the two calls.
TEST_F(salvage_redo_test, files_that_are_not_as_they_were) {
    run(after);
    die();
    salvage();
    ASSERT_FALSE(HasFatalFailure());
    const ty_open_options options = with_log(files), plain = files.options();
    ASSERT_OK(ty_open(heap_path, &options, &heap, nullptr));
    ASSERT_OK(ty_close(heap));
    heap = nullptr;
    ty_heap *made = nullptr;
    become_transactional(&made);
    ASSERT_FALSE(HasFatalFailure());
    ty_salvage_redone report{};
    report.struct_size = sizeof report;
    EXPECT_EQ(TY_E_BUSY, ty_salvage_redo(made, heap_path, &plain, &salvaged, UINT64_MAX, &report));
    EXPECT_EQ(uint64_t{before}, ledger::count(made));
    ASSERT_OK(ty_discard(made));
}

// X30: a log that another program opens while it is read.
TEST_F(salvage_redo_test, nobody_else_uses_the_heap_meanwhile) {
    run(after);
    die();
    ty_heap *made = nullptr;
    make(&made);
    ASSERT_FALSE(HasFatalFailure());
    struct opening_sink {
        const disk &files;
        ty_log_sink *log = nullptr;
        std::set<ty_status> opened;
        static ty_status read(void *context, uint64_t offset, void *buffer, size_t bytes) {
            auto &self = *static_cast<opening_sink *>(context);
            const ty_open_options options = with_log(self.files);
            ty_heap *other = nullptr;
            self.opened.insert(ty_open(heap_path, &options, &other, nullptr));
            return self.log->read(self.log->context, offset, buffer, bytes);
        }
    } sink{files, nullptr, {}};
    ASSERT_OK(ty_file_log_create(log_path, small_log, files.storage(), &sink.log));
    ty_log_sink table = *sink.log;
    table.context = &sink;
    table.read = opening_sink::read;
    ty_open_options options = files.options();
    options.log = &table;
    ty_salvage_redone report{};
    report.struct_size = sizeof report;
    EXPECT_OK(ty_salvage_redo(made, heap_path, &options, &salvaged, UINT64_MAX, &report));
    EXPECT_EQ(uint64_t{after}, report.transactions) << report.text;
    EXPECT_EQ(std::set<ty_status>{TY_E_BUSY}, sink.opened);
    ty_log_sink_destroy(sink.log);
    ASSERT_OK(ty_discard(made));
}

TEST_F(salvage_redo_test, ends_before_a_procedure_that_is_not_there) {
    constexpr uint64_t number = 77;
    run(3);
    ASSERT_OK(ty_register_procedure(number, "add", add_one, nullptr));
    uint64_t *head = static_cast<uint64_t *>(ty_root(heap, "head"));
    ty_txn *txn = nullptr;
    ASSERT_OK(ty_begin(heap, nullptr, &txn));
    ASSERT_OK(ty_log_procedure(txn, number, &head, sizeof head));
    ASSERT_OK(add_one(heap, &head, sizeof head, nullptr));
    ASSERT_OK(ty_commit(txn));
    die();
    ASSERT_OK(ty_register_procedure(number, "add", nullptr, nullptr));
    ty_salvage_redone report;
    redo(UINT64_MAX, TY_OK, &report, holds(before + 3));
    EXPECT_EQ(3u, report.transactions);
    EXPECT_EQ(uint64_t{before + 4}, report.stopped_at);
    EXPECT_NE(nullptr, strstr(report.text, "procedure 77")) << report.text;
}

TEST_F(salvage_redo_test, what_is_in_doubt_is_not_done) {
    run(2);
    ty_txn *txn = nullptr;
    ASSERT_OK(ty_begin(heap, nullptr, &txn));
    void *block = ty_txn_alloc(txn, 100);
    ASSERT_OK(ty_txn_root_set(txn, "in doubt", block));
    ASSERT_OK(ty_prepare(txn, "", 0));
    die();
    ty_salvage_redone report;
    redo(UINT64_MAX, TY_OK, &report, holds(before + 2));
    EXPECT_EQ(1u, report.in_doubt);
}

// X30: a block that a transaction frees was lost with the page of its bits.
TEST_F(salvage_redo_test, a_transaction_that_does_not_fit) {
    ty_txn *txn = nullptr;
    ASSERT_OK(ty_begin(heap, nullptr, &txn));
    auto *lost = static_cast<char *>(ty_txn_alloc(txn, 100));
    ASSERT_OK(ty_txn_root_set(txn, "lost", lost));
    ASSERT_OK(ty_commit(txn));
    ASSERT_OK(ty_snapshot(heap));
    ASSERT_OK(ty_run_background_work(heap));
    for (int i = 0; i < 3; ++i) {
        ASSERT_OK(ty_begin(heap, nullptr, &txn));
        if (i == 2) {
            ASSERT_OK(ty_txn_free(txn, lost));
        } else {
            ASSERT_OK(ty_txn_root_set(txn, i == 0 ? "first" : "second", ty_txn_alloc(txn, 5000)));
        }
        ASSERT_OK(ty_commit(txn));
    }
    const uint64_t page = static_cast<uint64_t>(lost - static_cast<char *>(ty_heap_base(heap))) / 4096;
    const heap_words words = heap_block_words(heap);
    die();
    // After the descriptors, of 16 bytes a page, come the bits, of 64 bytes a page.
    const uint64_t bits = words.end * 8 + small_limit / 4096 * 16 + page * 64;
    const char none[64] = {};
    files.patch(heap_path, image_pages_offset + bits, none, sizeof none);
    ty_heap *made = nullptr;
    make(&made);
    ASSERT_FALSE(HasFatalFailure());
    ty_salvage_redone report{};
    report.struct_size = sizeof report;
    const ty_open_options plain = files.options();
    EXPECT_EQ(TY_E_DAMAGED, ty_salvage_redo(made, heap_path, &plain, &salvaged, UINT64_MAX, &report))
        << ty_error_text();
    EXPECT_EQ(2u, report.transactions);
    EXPECT_NE(0u, report.stopped_at);
    ASSERT_OK(ty_discard(made));
    remove_made();
    redo(report.stopped_at - 1, TY_OK, &report, [](ty_heap *again) {
        EXPECT_NE(nullptr, ty_root(again, "first"));
        EXPECT_NE(nullptr, ty_root(again, "second"));
    });
    EXPECT_EQ(2u, report.transactions);
}

TEST_F(salvage_redo_test, refusals) {
    run(1);
    ty_salvage_redone report{};
    report.struct_size = sizeof report;
    const ty_open_options plain = files.options();
    EXPECT_NE(TY_OK, ty_salvage_redo(heap, heap_path, &plain, &salvaged, UINT64_MAX, &report)) << "the heap itself";
    EXPECT_EQ(TY_E_ARGUMENT, ty_salvage_redo(nullptr, heap_path, &plain, &salvaged, UINT64_MAX, &report));
}
