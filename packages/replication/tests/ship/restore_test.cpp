// Goal: what was shipped is restored to exactly any of the source's states, by transaction and by time, through merges,
// new bases and new timelines (SP1, SP5). Method: heaps of source_model whose states are known; folders; samples of
// transactions.
#include "support.hpp"
#include "tests/effort.hpp"

using namespace taiyen;
using namespace taiyen::test;

namespace {

void expect_restored(const source_model &source, const ty_destination *from, const std::string &path, uint64_t lsn) {
    ty_restore_report report{};
    report.struct_size = sizeof report;
    ASSERT_OK(restore(from, path, lsn, &report)) << lsn;
    EXPECT_EQ(lsn, report.lsn);
    EXPECT_LE(report.base_lsn, lsn);
    uint64_t there = 0;
    const std::string state = state_in(path, &there), &expected = source.states.at(lsn);
    EXPECT_TRUE(expected == state) << difference(expected, state) << lsn;
    EXPECT_EQ(lsn - source.prepared.count(lsn), there); // one that is prepared is done with its outcome
    remove_heap(path);
}

ty_open_options shipped_options(const disk &files, bool concurrent, uint32_t streams) {
    ty_open_options options = of_source(files, concurrent, streams);
    options.log_bytes = size_t{64} << 20;
    return options;
}

struct kind_of_run {
    bool concurrent;
    uint32_t streams;
    int transactions; // between ships
    int ships;
    int samples;
};

void run(const kind_of_run &kind) {
    disk files;
    temporary_folder folder;
    const std::string to = folder.file("shipped"), path = folder.file("restored");
    source_model source(41, files, shipped_options(files, kind.concurrent, kind.streams));
    ty_ship_options options = TY_SHIP_OPTIONS_INIT;
    options.merged = 3;
    options.base_bytes = 100 << 10;
    ty_ship_report all{};
    source.close();
    ship(source, to, options); // the empty heap
    source.open();
    for (int n = 0; n < kind.ships; ++n) {
        source.transactions(kind.transactions);
        source.close();
        const ty_ship_report report = ship(source, to, options);
        EXPECT_EQ(source.records.back()->record.lsn, report.lsn);
        all.bases += report.bases;
        all.merges += report.merges;
        all.gaps += report.gaps;
        source.open();
    }
    source.close();
    EXPECT_LT(0u, all.merges);
    EXPECT_LT(1u, all.bases);
    EXPECT_EQ(0u, all.gaps);
    const folder_owner from = open_folder(to, false);
    ty_status status;
    EXPECT_TRUE(problems_of(from.get(), &status).empty()) << ty_error_text();
    EXPECT_OK(status);
    std::mt19937_64 random(6);
    const uint64_t last = source.records.back()->record.lsn;
    for (int n = 0; n < kind.samples && !testing::Test::HasFailure(); ++n)
        expect_restored(source, from.get(), path, n == 0 ? last : 1 + random() % last);
    EXPECT_EQ(TY_E_NOT_FOUND, restore(from.get(), path, last + 1));
    EXPECT_NE(0, access(path.c_str(), F_OK));
}

TEST(restore_test, sampled_transactions_of_ten_thousand) {
    run({false, 1, 500, 20, effort(40)});
}

TEST(restore_test, of_a_concurrent_heap) {
    run({true, 1, 100, 12, 25});
}

TEST(restore_test, of_a_log_of_streams) {
    run({true, 3, 100, 12, 25});
}

TEST(restore_test, a_heap_is_never_replaced_and_goes_on) {
    disk files;
    temporary_folder folder;
    const std::string to = folder.file("shipped"), path = folder.file("restored");
    source_model source(5, files, shipped_options(files, false, 1));
    source.transactions(30);
    source.close();
    ship(source, to);
    const folder_owner from = open_folder(to, false);
    ASSERT_OK(restore(from.get(), path, 0));
    EXPECT_EQ(TY_E_EXISTS, restore(from.get(), path, 0));
    ty_heap *heap = nullptr;
    ty_open_options options = TY_OPEN_OPTIONS_INIT;
    ASSERT_OK(ty_open(path.c_str(), &options, &heap, nullptr));
    ASSERT_OK(change(heap, 1)); // it is a heap of its own
    ASSERT_OK(ty_close(heap));
    remove_heap(path);
    // As a standby it is not.
    ty_restore_options receives = TY_RESTORE_OPTIONS_INIT;
    receives.receives = true;
    ty_restore_report report{};
    report.struct_size = sizeof report;
    ASSERT_OK(ty_restore(from.get(), path.c_str(), &receives, &report));
    ASSERT_OK(ty_open(path.c_str(), &options, &heap, nullptr));
    EXPECT_EQ(TY_E_PERMISSION, change(heap, 1));
    ASSERT_OK(ty_close(heap));
    source.open();
    source.transactions(20);
    source.close();
    ASSERT_OK(ty_open(path.c_str(), &options, &heap, nullptr));
    ty_replica *replica = nullptr;
    ASSERT_OK(ty_replica_begin(heap, &report.position, nullptr, &replica));
    ASSERT_OK(ty_feed_read(
        follow(source.options()).get(), &report.position,
        [](const ty_feed_record *record, void *context) {
            EXPECT_OK(ty_replica_apply(static_cast<ty_replica *>(context), record, 1));
            return true;
        },
        replica, nullptr));
    ASSERT_OK(ty_replica_make_durable(replica, nullptr));
    ty_replica_end(replica);
    EXPECT_TRUE(source.states.at(source.records.back()->record.lsn) == state_of(heap));
    ASSERT_OK(ty_close(heap));
}

} // namespace
