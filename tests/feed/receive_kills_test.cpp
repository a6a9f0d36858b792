// Goal: a replica that is killed goes on from its own LSN, and readers beside it see whole transactions only
// (LK6). Method: real files; a child that receives until it is killed, again and again, and says how far all was
// durable; reader threads that compare counters which each transaction changes together.
#include "support.hpp"
#include "tests/os/temporary_folder.hpp"
#include "tests/stats.hpp"

#include <algorithm>
#include <atomic>
#include <csignal>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace taiyen;
using namespace taiyen::test;

namespace {

constexpr uint64_t pair_of(uint64_t n) {
    return 1 + n % 2000;
}

// All records of a heap whose transactions add to two counters each, the same; and a copy of its files.
struct source {
    explicit source(const std::string &path, const std::string &copy, int count) {
        ty_open_options options = options_of(TY_TRANSACTIONAL);
        options.log_bytes = size_t{16} << 20;
        ty_heap *heap = open_heap(options, path.c_str());
        EXPECT_OK(ty_close(heap));
        for (const char *part : {"", "-journal", "-log"})
            copy_file(path + part, copy + part);
        const feed_owner feed = follow(options, nullptr, path.c_str());
        ty_feed_position place = first = base_of(feed.get());
        heap = open_heap(options, path.c_str());
        EXPECT_OK(change(heap, 0));
        uint64_t *block = block_of(heap);
        for (int n = 1; n < count; ++n) {
            ty_txn *txn = nullptr;
            EXPECT_OK(ty_begin(heap, nullptr, &txn));
            for (uint64_t at : {pair_of(uint64_t(n)), pair_of(uint64_t(n)) + 2000, uint64_t{4001}, uint64_t{4002}}) {
                EXPECT_OK(ty_declare(txn, block + at, sizeof *block));
                block[at] = block[at] + 1;
            }
            EXPECT_OK(ty_commit_async(txn, nullptr));
        }
        EXPECT_OK(ty_durable(heap, 0, true, nullptr));
        EXPECT_OK(ty_feed_read(
            feed.get(), &place,
            [](const ty_feed_record *record, void *context) {
                auto &self = *static_cast<source *>(context);
                self.bytes.emplace_back(static_cast<const char *>(record->bytes), record->size_bytes);
                self.records.push_back(*record);
                return true;
            },
            this, nullptr));
        for (size_t i = 0; i < records.size(); ++i)
            records[i].bytes = bytes[i].data();
        EXPECT_OK(ty_close(heap));
    }
    static void copy_file(const std::string &from, const std::string &to) {
        FILE *in = fopen(from.c_str(), "rb"), *out = in ? fopen(to.c_str(), "wb") : nullptr;
        std::vector<char> buffer(1 << 16);
        for (size_t n; out && (n = fread(buffer.data(), 1, buffer.size(), in)) > 0;)
            EXPECT_EQ(n, fwrite(buffer.data(), 1, n, out));
        if (in)
            fclose(in);
        if (out)
            fclose(out);
    }

    ty_feed_position first{};
    std::vector<std::string> bytes;
    std::vector<ty_feed_record> records;
};

ty_status receive_some(ty_replica *replica, const source &from, uint64_t *next, uint64_t count) {
    count = std::min<uint64_t>(count, from.records.size() - *next);
    const ty_status status = ty_replica_apply(replica, from.records.data() + *next, count);
    *next += count;
    return status;
}

struct received_lsns {
    std::atomic<uint64_t> begun; // LSNs
    std::atomic<uint64_t> durable;
    std::atomic<bool> failed;
};

[[noreturn]] void receive_until_killed(const std::string &path, const source &from, received_lsns &with, bool unlogged,
                                       uint64_t seed) {
    ty_open_options options = options_of(TY_TRANSACTIONAL);
    ty_heap *heap = nullptr;
    ty_replica *replica = nullptr;
    ty_replica_options how = TY_REPLICA_OPTIONS_INIT;
    how.unlogged = unlogged;
    std::mt19937_64 random(seed);
    uint64_t next = 0;
    bool good =
        !ty_open(path.c_str(), &options, &heap, nullptr) && !ty_replica_begin(heap, &from.first, &how, &replica);
    while (good) {
        with.begun = std::max<uint64_t>(with.begun, std::min<uint64_t>(next + 40, from.records.size()));
        good = !receive_some(replica, from, &next, 1 + random() % 40);
        if (good && random() % 8 == 0) {
            good = !ty_replica_make_durable(replica, nullptr);
            if (good)
                with.durable = std::max<uint64_t>(with.durable, next);
        }
    }
    fprintf(stderr, "%s\n", ty_error_text());
    with.failed = true;
    _exit(1);
}

void check(const std::string &path, const received_lsns &with) {
    ty_open_options options = options_of(TY_TRANSACTIONAL);
    ty_report report{};
    report.struct_size = sizeof report;
    ty_heap *heap = nullptr;
    ASSERT_OK(ty_open(path.c_str(), &options, &heap, &report));
    const ty_txn_stats stats = txn_stats_of(heap);
    EXPECT_LE(with.durable, stats.lsn);
    EXPECT_GE(with.begun, stats.lsn);
    if (stats.lsn > 0) {
        std::vector<uint64_t> counts(4096);
        for (uint64_t n = 1; n < stats.lsn; ++n)
            for (uint64_t at : {pair_of(n), pair_of(n) + 2000, uint64_t{4001}, uint64_t{4002}})
                counts[at] += 1;
        const uint64_t *block = block_of(heap);
        for (size_t i = 2; i < 4096; ++i) // the first transaction set 0 and 1
            ASSERT_EQ(counts[i], block[i]) << i << " after " << stats.lsn;
    }
    ASSERT_OK(ty_close(heap));
}

void run_kills(bool unlogged) {
    temporary_folder folder;
    const std::string path = folder.file("copy");
    const source from(folder.file("source"), path, 4000);
    void *memory = mmap(nullptr, sizeof(received_lsns), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(MAP_FAILED, memory);
    received_lsns &with = *new (memory) received_lsns{};
    std::mt19937_64 random(9);
    for (uint64_t round = 0; round < 20 && !testing::Test::HasFailure(); ++round) {
        const uint64_t until = std::min<uint64_t>(with.begun + random() % 300, from.records.size() - 40);
        const pid_t child = fork();
        if (child == 0)
            receive_until_killed(path, from, with, unlogged, round);
        while (with.begun < until && !with.failed)
            std::this_thread::yield();
        kill(child, SIGKILL);
        int status = 0;
        ASSERT_EQ(child, waitpid(child, &status, 0));
        ASSERT_FALSE(with.failed);
        check(path, with);
    }
    munmap(memory, sizeof(received_lsns));
}

TEST(receive_kills, whole_transactions_are_left) {
    run_kills(false);
}

TEST(receive_kills, whole_transactions_are_left_without_a_log) {
    run_kills(true);
}

void read_atomically(ty_heap *heap, const uint64_t *block) {
    struct view {
        const uint64_t *block;
        uint64_t counts[2];
    } seen{block, {}};
    ty_atomic_options reads = TY_ATOMIC_OPTIONS_INIT;
    reads.reads_only = true;
    ASSERT_OK(ty_atomically(
        heap, &reads,
        [](ty_atomic_txn *txn, void *context) {
            view &v = *static_cast<view *>(context);
            for (int i = 0; i < 2; ++i)
                if (ty_status status = ty_atomic_load(txn, v.block + 4001 + i, v.counts + i, 8))
                    return status;
            return TY_OK;
        },
        &seen, nullptr));
    ASSERT_EQ(seen.counts[0], seen.counts[1]);
}

TEST(receive_readers, see_whole_transactions) {
    for (bool concurrent : {false, true}) {
        temporary_folder folder;
        const std::string path = folder.file("copy");
        const source from(folder.file("source"), path, 3000);
        ty_open_options options = options_of(TY_TRANSACTIONAL);
        options.background = TY_BACKGROUND_THREAD;
        options.concurrent = concurrent;
        ty_heap *heap = open_heap(options, path.c_str());
        ty_replica *replica = nullptr;
        ASSERT_OK(ty_replica_begin(heap, &from.first, nullptr, &replica));
        uint64_t next = 0;
        ASSERT_OK(receive_some(replica, from, &next, 1)); // so that there is a block
        const uint64_t *block = block_of(heap);
        ASSERT_TRUE(block);
        std::atomic<bool> ended{false};
        std::vector<std::thread> readers;
        for (int t = 0; t < 2; ++t)
            readers.emplace_back([&, t] {
                while (!ended) {
                    if (concurrent && t) {
                        read_atomically(heap, block);
                    } else {
                        ASSERT_OK(ty_read_begin(heap));
                        for (uint64_t at = 2; at < 2000; ++at)
                            ASSERT_EQ(block[at], block[at + 2000]);
                        ASSERT_EQ(block[4001], block[4002]);
                        ty_read_end(heap);
                    }
                }
            });
        std::thread forker([&] { // nobody is left waiting, on either side
            while (!ended) {
                const pid_t child = fork();
                if (child == 0)
                    _exit(0);
                int status = 0;
                ASSERT_EQ(child, waitpid(child, &status, 0));
            }
        });
        for (uint64_t n = 1; next < from.records.size(); ++n) {
            ASSERT_OK(receive_some(replica, from, &next, 1 + n % 20));
            if (n % 50 == 0) {
                ASSERT_OK(ty_snapshot(heap));
            }
        }
        ended = true;
        forker.join();
        for (std::thread &one : readers)
            one.join();
        ASSERT_OK(ty_replica_make_durable(replica, nullptr));
        ty_replica_end(replica);
        ASSERT_OK(ty_close(heap));
    }
}

} // namespace
