// Goal: what is published is each transaction once, in order, whatever the network does (ST3), and a standby becomes
// exactly the source, message by message (ST2, ST7). Method: heaps of source_model whose states are known; a simulated
// engine that loses, delays and refuses.
#include "support.hpp"
#include "tests/effort.hpp"

using namespace taiyen;
using namespace taiyen::test;
using standby::message_kind;

namespace {

// The records in the engine: each once, in order, from the timeline's begin on.
void expect_each_once(const sim_store &store, const source_model &source) {
    ty_feed_position position{};
    uint64_t number = 0, lsns = 0, begin = 0;
    std::string part;
    standby::tail last{};
    for (const sim_message &one : store.logs[TY_ENGINE_RECORDS]) {
        const standby::message read = message_in(one);
        bool counts = false;
        ASSERT_OK(standby::classify(read, &last, &counts));
        if (!counts)
            continue;
        ASSERT_EQ(++number, read.header.number);
        const auto kind = static_cast<message_kind>(read.header.kind);
        std::vector<ty_feed_record> records;
        if (kind == message_kind::timeline || number == 1)
            position = read.header.position;
        if (kind == message_kind::timeline)
            begin = position.lsn;
        if (kind == message_kind::part) {
            part.resize(read.header.offset);
            part.append(reinterpret_cast<const char *>(read.payload), read.header.payload_bytes);
            if (part.size() == read.header.record_bytes)
                records.push_back({position.lsn + 1, position.hash, read.header.record_hash, part.data(), part.size()});
        } else if (kind == message_kind::records) {
            ty_feed_position walks = position;
            ASSERT_OK(standby::take_apart(read, &walks, &records));
        }
        for (const ty_feed_record &record : records) {
            ASSERT_OK(ty_feed_check(&position, &record));
            ++lsns;
        }
        EXPECT_TRUE(standby::same_position(position, read.header.position));
    }
    EXPECT_EQ(source.records.back()->record.lsn, position.lsn);
    EXPECT_EQ(position.lsn, begin + lsns);
}

// Up to which transaction the engine has records that count.
uint64_t lsn_in(sim_store &store) {
    const std::lock_guard<std::mutex> with(store.lock);
    standby::tail last{};
    uint64_t lsn = 0;
    for (const sim_message &one : store.logs[TY_ENGINE_RECORDS]) {
        const standby::message read = message_in(one);
        bool counts = false;
        EXPECT_OK(standby::classify(read, &last, &counts));
        lsn = counts ? read.header.position.lsn : lsn;
    }
    return lsn;
}

struct kind_of_run {
    bool concurrent;
    uint32_t streams;
    int transactions;
    int rounds;
    size_t message_bytes;
    sim_faults faults;
};

void run(const kind_of_run &kind) {
    disk files;
    temporary_folder folder;
    sim_store store;
    sim_engine engine(store, 3, kind.faults, kind.message_bytes), calm(store);
    source_model source(41, files, published_options(files, kind.concurrent, kind.streams));
    standby_of standby(folder.file("standby"), calm.table());
    source.transactions(10);
    source.close();
    {
        const publisher_owner publisher = open_publisher(source.options(), engine.table());
        put_base(source, store, calm.table());
    }
    ASSERT_OK(standby.make());
    uint64_t steps = 0, next = 3;
    for (int n = 0; n < kind.rounds && !testing::Test::HasFailure(); ++n) {
        source.open();
        source.transactions(kind.transactions);
        source.close();
        publish(source, engine.table());
        standby.open();
        calm.read_most = n % 2 ? SIZE_MAX : 1;
        do {
            ASSERT_OK(standby.step());
            if (!source.prepared.count(standby.last()))
                standby.expect_like(source);
            if (kind.message_bytes < 8192 && ++steps == next) { // also within a record that comes in parts
                next += next + 1; // it begins with the record again: so it needs more steps each time
                standby.close();
                standby.open();
            }
        } while (!standby.report.caught_up && !testing::Test::HasFailure());
        EXPECT_EQ(source.records.back()->record.lsn, standby.report.lsn);
        n % 3 ? standby.close() : standby.discard();
    }
    expect_each_once(store, source);
    if (kind.faults.lost) {
        EXPECT_GT(engine.cuts, unsigned(kind.rounds) / 3);
    }
}

TEST(publish_test, a_standby_becomes_the_source) {
    run({false, 1, 60, 6, 64 << 10, {}});
}
TEST(publish_test, also_of_a_concurrent_heap) {
    run({true, 2, 60, 6, 64 << 10, {}});
}
TEST(publish_test, records_longer_than_messages) {
    run({false, 1, 60, 6, 4096, {}});
}
TEST(publish_test, each_once_over_a_network_that_fails) {
    run({false, 1, 60, std::max(3, effort(6)), 4096, {60, 60, 60, 30}});
}
TEST(publish_test, each_once_over_one_that_also_keeps_what_it_refuses) {
    run({false, 1, 60, std::max(3, effort(6)), 4096, {60, 60, 60, 30, true}});
}

namespace {

// What only a snapshot has.
void commit_what_is_too_long_for_the_log(source_model &source) {
    ty_txn *txn = nullptr;
    char *block = nullptr;
    ASSERT_OK(ty_begin(source.heap(), nullptr, &txn));
    ASSERT_NE(nullptr, block = static_cast<char *>(ty_txn_alloc(txn, 2 << 20)));
    std::mt19937_64 random(1);
    for (size_t i = 0; i < size_t{2} << 20; i += 8) {
        const uint64_t word = random();
        memcpy(block + i, &word, 8);
    }
    ASSERT_OK(ty_declare(txn, block, 2 << 20));
    ASSERT_OK(ty_commit(txn));
}
void go_back(source_model &source) { // X36
    source.go_back(0);
}

void expect_a_gap(void (*leave_one)(source_model &source)) {
    disk files;
    temporary_folder folder;
    sim_store store;
    sim_engine engine(store);
    ty_open_options options = published_options(files, false, 1);
    options.log_bytes = size_t{1} << 20;
    source_model source(42, files, options);
    source.transactions(5);
    source.close();
    const publisher_owner first = open_publisher(source.options(), engine.table());
    EXPECT_EQ(TY_E_BUSY, ty_publisher_wait(first.get(), 1, 50));
    put_base(source, store, engine.table());
    EXPECT_OK(ty_publisher_wait(first.get(), source.records.back()->record.lsn, timeout_ms));
    standby_of standby(folder.file("standby"), engine.table());
    ASSERT_OK(standby.make());
    standby.open();
    standby.catch_up();
    standby.close();
    const uint64_t seen = report_of(first.get()).lsn;
    ty_publisher_report report = report_of(first.get());
    EXPECT_EQ(0u, report.gaps);
    source.open();
    leave_one(source);
    const uint64_t large = source.last();
    for (uint64_t n = 0; n < 3; ++n)
        ASSERT_OK(change(source.heap(), n));
    const uint64_t last = source.last();
    source.close();
    EXPECT_EQ(TY_E_BUSY, ty_publisher_wait(first.get(), large, 300));
    report = report_of(first.get());
    EXPECT_LT(0u, report.gaps);
    EXPECT_FALSE(report.based);
    EXPECT_EQ(seen, report.lsn);
    standby.open();
    ty_status status;
    do
        status = standby.step();
    while (!status && !standby.report.caught_up);
    EXPECT_EQ(TY_E_NOT_FOUND, status) << ty_error_text();
    standby.close();
    ASSERT_OK(ty_publish_base(heap_path, engine.table(), &source.options(), nullptr));
    EXPECT_OK(ty_publisher_wait(first.get(), last, timeout_ms));
    standby_of anew(folder.file("anew"), engine.table());
    ASSERT_OK(anew.make());
    anew.open();
    anew.catch_up();
    EXPECT_EQ(last, anew.last());
}

} // namespace

// Where the publisher fell behind, a new timeline begins, and a thread that waits is not notified that a standby has it
// before a base is there (ST4).
TEST(publish_test, a_gap_is_reported) {
    expect_a_gap(commit_what_is_too_long_for_the_log);
}
TEST(publish_test, a_return_to_a_mark_is_a_gap) {
    expect_a_gap(go_back);
}

// What comes before the base before is trimmed, and a standby that is too far behind is notified.
TEST(publish_test, old_messages_are_trimmed) {
    disk files;
    temporary_folder folder;
    sim_store store;
    sim_engine engine(store);
    source_model source(43, files, published_options(files, false, 1));
    source.transactions(5);
    source.close();
    standby_of slow(folder.file("slow"), engine.table()), newer(folder.file("newer"), engine.table());
    for (int n = 0; n < 4; ++n) {
        {
            const publisher_owner publisher = open_publisher(source.options(), engine.table());
            put_base(source, store, engine.table());
        }
        if (n == 0) {
            ASSERT_OK(slow.make());
        }
        source.open();
        source.transactions(20);
        source.close();
        publish(source, engine.table());
    }
    EXPECT_LT(1u, message_in(store.logs[TY_ENGINE_RECORDS].front()).header.number);
    EXPECT_EQ(uint32_t(message_kind::base_begin),
              message_in(store.logs[TY_ENGINE_BASES].front(), TY_ENGINE_BASES).header.kind);
    slow.open();
    EXPECT_EQ(TY_E_NOT_FOUND, slow.step()) << ty_error_text();
    slow.close();
    ASSERT_OK(newer.make());
    newer.open();
    newer.catch_up();
    newer.expect_like(source);
}

TEST(publish_test, synchronous_commits_by_many_threads) {
    temporary_folder folder;
    sim_store store;
    sim_engine engine(store, 5, {20, 20, 20, 0});
    const std::string path = folder.file("heap");
    ty_open_options open = TY_OPEN_OPTIONS_INIT;
    open.kind = TY_TRANSACTIONAL;
    open.limit_bytes = size_t{256} << 20;
    ty_heap *heap = nullptr;
    ASSERT_OK(ty_open(path.c_str(), &open, &heap, nullptr));
    ASSERT_OK(change(heap, 1));
    ASSERT_OK(ty_close(heap));
    {
        const publisher_owner beside = open_publisher(open, engine.table(), path.c_str());
        store.wait_for(TY_ENGINE_RECORDS, 2);
        ty_status status = TY_E_IO;
        while (status == TY_E_IO) // the network fails
            status = ty_publish_base(path.c_str(), engine.table(), &open, nullptr);
        ASSERT_OK(status);
    }
    ASSERT_OK(ty_open(path.c_str(), &open, &heap, nullptr));
    ty_publisher_options options = TY_PUBLISHER_OPTIONS_INIT;
    options.heap = heap;
    publisher_owner publisher = open_publisher(open, engine.table(), path.c_str(), options);
    std::vector<std::thread> threads;
    for (uint64_t t = 0; t < 4; ++t)
        threads.emplace_back([&, t] {
            for (uint64_t n = 0; n < 50; ++n) {
                ty_txn *txn = nullptr;
                ASSERT_OK(ty_begin(heap, nullptr, &txn));
                ASSERT_OK(ty_declare(txn, block_of(heap) + t, 8));
                block_of(heap)[t] += 1;
                ty_txn_stats stats{};
                stats.struct_size = sizeof stats;
                ASSERT_OK(ty_get_txn_stats(heap, &stats)); // nobody else is in a transaction
                ASSERT_OK(ty_publisher_commit(publisher.get(), txn));
                EXPECT_LT(stats.lsn, lsn_in(store));
            }
        });
    for (std::thread &thread : threads)
        thread.join();
    EXPECT_EQ(201u, lsn_in(store));
    ty_txn *txn = nullptr;
    EXPECT_EQ(TY_E_ARGUMENT, ty_publisher_commit(nullptr, txn));
    publisher.reset();
    ASSERT_OK(ty_close(heap));
}

} // namespace
