// Goal: of heaps that many threads change at once, with logs of several log streams and small ones that are written
// over, change feeds deliver every transaction in the order of its stamp, none before it is durable (LK1, LK2, LK3).
// Method: threads that commit in all modes; snapshots; a change feed that waits within the process and one that reads
// the files, each with a mirror that must be like the heap in the end.
#include "support.hpp"

#include <atomic>
#include <thread>

using namespace taiyen;
using namespace taiyen::test;

namespace {

struct work {
    uint64_t *block;
    uint64_t seed;
};

ty_status add(ty_atomic_txn *txn, void *context) {
    const work &w = *static_cast<const work *>(context);
    for (uint64_t at : {w.seed % counters, w.seed * 7 % counters, w.seed * 31 % counters}) {
        uint64_t value = 0;
        if (ty_status status = ty_atomic_load(txn, w.block + at, &value, sizeof value))
            return status;
        value += w.seed;
        if (ty_status status = ty_atomic_store(txn, w.block + at, &value, sizeof value))
            return status;
    }
    return TY_OK;
}

struct outcome {
    uint64_t first = 0; // LSNs: of the base,
    uint64_t last = 0;  // and of what was delivered last
    uint64_t taken = 0;
    uint64_t bases = 0;
};

// Goes on until all is delivered that was committed when `ended` was set.
outcome follow_to_the_end(ty_heap *heap, const ty_open_options &options, bool within, const std::atomic<bool> &ended) {
    const feed_owner feed = follow(options, within ? heap : nullptr);
    ty_feed_position place = base_of(feed.get());
    auto to = std::make_unique<mirror>(place);
    outcome all;
    all.first = place.lsn;
    for (bool last = false; !last && !testing::Test::HasFailure();) {
        last = ended;
        bool more = false;
        EXPECT_OK(ty_feed_wait(feed.get(), &place, 20, &more));
        if (!more)
            continue;
        ty_feed_position base{};
        to->most = 1 + all.taken % 300;
        const uint64_t taken = to->taken;
        const ty_status status = read_into(*to, feed.get(), &place, &base);
        EXPECT_TRUE(status == TY_OK || status == TY_E_NOT_FOUND) << ty_error_text();
        if (status == TY_E_NOT_FOUND) {
            EXPECT_LE(place.lsn, base.lsn);
            place = base;
            to = std::make_unique<mirror>(place);
            all.bases += 1;
            last = false;
            continue;
        }
        all.taken += to->taken - taken;
        last = last && to->taken == taken;
    }
    all.last = place.lsn;
    if (to->taken)
        to->expect_like(heap);
    return all;
}

// large: the log holds all of it.
void run(uint32_t streams, bool large) {
    constexpr uint64_t each = 1500;
    disk files;
    ty_open_options options = transactional(files, streams);
    options.concurrent = true;
    options.background = TY_BACKGROUND_THREAD;
    if (large)
        options.log_bytes = size_t{64} << 20;
    ty_heap *heap = open_heap(options);
    ASSERT_OK(change(heap, 1));
    uint64_t *block = block_of(heap);
    std::atomic<bool> ended{false};
    std::vector<std::thread> writers;
    for (uint64_t t = 0; t < 3; ++t)
        writers.emplace_back([&, t] {
            ty_atomic_options modes[3] = {TY_ATOMIC_OPTIONS_INIT, TY_ATOMIC_OPTIONS_INIT, TY_ATOMIC_OPTIONS_INIT};
            modes[1].commit = TY_COMMIT_ASYNC;
            modes[2].commit = TY_COMMIT_STREAM;
            for (uint64_t i = 0; i < each; ++i) {
                work w{block, 1 + t + i * 3};
                ASSERT_OK(ty_atomically(heap, &modes[i % 3], add, &w, nullptr));
                if (t == 0 && i % 400 == 399) {
                    ASSERT_OK(ty_snapshot(heap));
                }
            }
        });
    outcome found[2];
    std::thread within([&] { found[0] = follow_to_the_end(heap, options, true, ended); });
    std::thread beside([&] { found[1] = follow_to_the_end(heap, options, false, ended); });
    for (std::thread &one : writers)
        one.join();
    ASSERT_OK(ty_snapshot(heap)); // all is durable
    ended = true;
    within.join();
    beside.join();
    const uint64_t newest = base_of(follow(options).get()).lsn;
    for (const outcome &one : found) {
        EXPECT_EQ(newest, one.last);
        EXPECT_TRUE(!large || (one.bases == 0 && one.first + one.taken == one.last))
            << one.taken << " reported, begun again " << one.bases << " times";
    }
    ASSERT_OK(ty_close(heap));
}

TEST(concurrent_feed_test, one_stream) {
    run(1, true);
}

TEST(concurrent_feed_test, four_streams) {
    run(4, true);
}

TEST(concurrent_feed_test, one_stream_that_is_written_over) {
    run(1, false);
}

TEST(concurrent_feed_test, four_streams_that_are_written_over) {
    run(4, false);
}

} // namespace
