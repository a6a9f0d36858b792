// Goal: distributed transactions of several threads that share a durable write are all there or none, wherever power
// fails, in all heaps of the group and in the order in which they ended; nothing that was acknowledged is lost; and no
// distributed transaction waits for another one's program. Method: threads whose distributed transactions wait for each
// other's turns, so that they are grouped, over heaps on a simulated disk that is cut at every event, or whose writes
// fail.
#include "dtxn_heaps.hpp"

#include "packages/twophase/src/group.hpp"
#include "tests/effort.hpp"
#include "tests/files_on.hpp"

#include <mutex>
#include <thread>

using namespace taiyen;
using namespace taiyen::twophase;
using namespace taiyen::test;

namespace {

size_t queued(ty_group *group) {
    const std::lock_guard guard(group->grouped.lock);
    size_t count = 0;
    const waiting_threads &queue = group->grouped.queue;
    if (queue.end)
        for (const waiting_thread *one = queue.first; one; one = one->next)
            ++count;
    return count;
}

// The numbers of all heaps, one more.
void add_one(heaps &in, ty_dtxn *dtxn) {
    change(in, dtxn, in.number(0) + 1);
}

struct reports {
    std::mutex lock;
    std::vector<acknowledged> all; // what each distributed transaction made of the number
    size_t in_doubt = 0, refused = 0;

    void note(ty_status status, uint64_t event, uint64_t number) {
        std::lock_guard guard(lock);
        if (!status)
            all.push_back({event, number});
        else if (status == TY_E_IN_DOUBT)
            ++in_doubt;
        else
            ++refused;
    }
    uint64_t newest(uint64_t event) const {
        uint64_t number = 0;
        for (const acknowledged &one : all)
            if (one.event <= event)
                number = std::max(number, one.number);
        return number;
    }
};

// While one batch is written, all other distributed transactions end in memory: so they are one batch, too.
void let_others_end(void *context, bool done) {
    group_commit &g = static_cast<ty_group *>(context)->grouped;
    for (bool others = !done; others; std::this_thread::yield()) {
        std::lock_guard guard(g.lock);
        others = g.flushing && (g.running || g.queue.end);
    }
}

// So many distributed transactions of as many threads, all of which wait before the first one ends.
void one_batch(const disk &files, heaps &in, size_t threads, reports &to, bool rolls_back = false) {
    ty_dtxn *first = nullptr;
    ASSERT_OK(ty_dtxn_begin(in.group, nullptr, &first));
    std::vector<std::thread> others;
    for (size_t t = 1; t < threads; ++t)
        others.emplace_back([&, t] {
            ty_dtxn *dtxn = nullptr;
            if (ty_status status = ty_dtxn_begin(in.group, nullptr, &dtxn)) {
                to.note(status, 0, 0);
                return;
            }
            if (rolls_back && t % 3 == 1) {
                change(in, dtxn, 1000000);
                EXPECT_OK(ty_dtxn_rollback(dtxn));
                return;
            }
            add_one(in, dtxn);
            const uint64_t number = in.number(0);
            const ty_status status = ty_dtxn_commit(dtxn);
            to.note(status, os::sim_event_count(files.get()), number);
        });
    while (queued(in.group) + 1 < threads)
        std::this_thread::yield();
    os::sim_set_write_hook(files.get(), let_others_end, in.group);
    add_one(in, first);
    const uint64_t number = in.number(0);
    const ty_status status = ty_dtxn_commit(first);
    to.note(status, os::sim_event_count(files.get()), number);
    for (std::thread &each : others)
        each.join();
    os::sim_set_write_hook(files.get(), nullptr, nullptr);
}

uint64_t pending_records(const disk &files, const char *path) {
    uint64_t pending = 0;
    EXPECT_OK(ty_log_read(
        path, files_on(files.storage()), nullptr,
        [](const ty_log_entry *entry, void *context) {
            *static_cast<uint64_t *>(context) += entry->kind == TY_LOG_PENDING;
            return true;
        },
        &pending));
    return pending;
}

class grouped : public testing::TestWithParam<size_t> {};

// X29, JO2, JO3, JO5.
TEST_P(grouped, dtxns_are_there_all_or_none) {
    const size_t count = GetParam();
    disk files;
    heaps in(files, count);
    reports to;
    ASSERT_OK(in.open_joined());
    const uint64_t begun = os::sim_event_count(files.get());
    for (size_t round = 0; round < 5 - count; ++round) {
        one_batch(files, in, 5, to, round == 1);
        if (round == 1) {
            ASSERT_OK(ty_snapshot(in.heap[0]));
        }
    }
    const uint64_t end = os::sim_event_count(files.get());
    EXPECT_LT(3u, pending_records(files, paths[count - 1]));
    EXPECT_EQ(0u, to.refused + to.in_doubt);
    EXPECT_EQ(to.all.size(), in.number(0));
    in.discard();
    uint64_t doubts = 0;
    for (const os::sim_cut how : {os::sim_cut::keep_all, os::sim_cut::drop_all, os::sim_cut::random, os::sim_cut::trash,
                                  os::sim_cut::process_death}) {
        for (uint64_t event = begun + uint64_t(how) % stride(3); event <= end; event += stride(3)) {
            SCOPED_TRACE(testing::Message() << "event " << event << ", cut " << int(how));
            disk cut(os::sim_power_cut(files.get(), event, how, event));
            heaps after(cut, count);
            for (size_t n = 0; n < count; ++n) {
                ty_report report{};
                report.struct_size = sizeof report;
                ASSERT_OK(after.open((event + n) % count, &report));
                doubts += report.in_doubt != 0;
            }
            for (size_t n = 1; n < count; ++n)
                EXPECT_EQ(after.number(0), after.number(n)) << "half of a distributed transaction";
            EXPECT_GE(after.number(0), to.newest(event));
            EXPECT_GT(1000u, after.number(0)) << "what was rolled back is there";
            for (size_t n = 0; n < count; ++n)
                expect_sound(after.heap[n]);
            ASSERT_OK(after.join());
            reports later;
            one_batch(cut, after, 3, later);
            EXPECT_EQ(3u, later.all.size());
            const uint64_t number = after.number(0);
            after.discard();
            ASSERT_OK(after.open());
            EXPECT_EQ(number, after.number(0));
            EXPECT_EQ(number, after.number(count - 1));
            if (HasFailure())
                return;
        }
    }
    EXPECT_GT(doubts, 30 / stride(3));
}
INSTANTIATE_TEST_SUITE_P(heaps, grouped, testing::Values(2, 3));

// A write that fails, at each place: what was acknowledged is there, what was refused is not, and nobody waits for
// ever.
TEST(group_commit_test, writes_that_fail) {
    size_t failed = 0;
    for (uint32_t n = 0; n < 24; ++n) {
        SCOPED_TRACE(n);
        disk files;
        heaps in(files);
        reports to;
        ASSERT_OK(in.open_joined());
        one_batch(files, in, 4, to);
        os::sim_set_fault(files.get(),
                          {os::sim_op_write | os::sim_op_flush | os::sim_op_write_durable, n / 2, n % 2 != 0});
        const size_t before = to.all.size();
        one_batch(files, in, 4, to);
        os::sim_set_fault(files.get(), {});
        const size_t came = to.all.size() - before;
        EXPECT_EQ(4u, came + to.in_doubt + to.refused);
        ty_dtxn *dtxn = nullptr;
        if (to.in_doubt) { // the heaps are of no use, and say so
            ++failed;
            ty_txn *txn = nullptr;
            EXPECT_EQ(TY_E_IN_DOUBT, ty_dtxn_begin(in.group, nullptr, &dtxn));
            EXPECT_EQ(TY_E_IN_DOUBT, ty_begin(in.heap[0], nullptr, &txn));
            EXPECT_EQ(TY_E_IN_DOUBT, ty_read_begin(in.heap[1]));
            EXPECT_EQ(TY_E_IN_DOUBT, ty_snapshot(in.heap[1]));
            EXPECT_EQ(TY_E_IN_DOUBT, ty_close(in.heap[0]));
        }
        in.discard();
        ASSERT_OK(in.open());
        EXPECT_EQ(in.number(0), in.number(1));
        EXPECT_GE(in.number(0), to.newest(UINT64_MAX));
        EXPECT_LE(in.number(0), to.all.size() + to.in_doubt);
        if (HasFailure())
            return;
    }
    EXPECT_GT(failed, 3u);
}

// X29: while distributed transactions that have ended are written, the reader-writer locks are held, though nobody is
// within a transaction.
TEST(group_commit_test, nobody_sees_what_is_not_durable) {
    static std::atomic<int> looked;
    static std::atomic<bool> read;
    static ty_heap *heap;
    static std::thread reader;
    disk files;
    heaps in(files);
    reports to;
    ASSERT_OK(in.open_joined());
    ASSERT_OK(commit(in, 1));
    looked = 0;
    read = false;
    heap = in.heap[0];
    ty_dtxn *first = nullptr;
    ASSERT_OK(ty_dtxn_begin(in.group, nullptr, &first));
    ASSERT_OK(ty_txn_lock_object(ty_dtxn_txn(first, 0), ty_root(heap, "number")));
    std::thread second([&] {
        ty_dtxn *dtxn = nullptr;
        ASSERT_OK(ty_dtxn_begin(in.group, nullptr, &dtxn));
        add_one(in, dtxn);
        ASSERT_OK(ty_dtxn_commit(dtxn));
    });
    while (!queued(in.group))
        std::this_thread::yield();
    os::sim_set_write_hook(
        files.get(),
        [](void *context, bool done) {
            let_others_end(context, done);
            if (done || ++looked > 1)
                return;
            std::thread other([] { // none of those that write
                ty_txn *txn = nullptr;
                ty_txn_options options = TY_TXN_OPTIONS_INIT;
                options.no_wait = true;
                EXPECT_EQ(TY_E_BUSY, ty_begin(heap, &options, &txn));
                EXPECT_OK(txn ? ty_rollback(txn) : TY_OK);
            });
            other.join();
            reader = std::thread([] {
                const void *object = ty_root(heap, "number");
                EXPECT_OK(ty_object_read_begin(heap, object));
                read = true;
                ty_object_read_end(heap, object);
            });
            for (int i = 0; i < 5000 && !read; ++i) // time enough to read, if it may
                std::this_thread::yield();
            EXPECT_FALSE(read);
        },
        in.group);
    add_one(in, first);
    ASSERT_OK(ty_dtxn_commit(first));
    second.join();
    os::sim_set_write_hook(files.get(), nullptr, nullptr);
    ASSERT_LT(0, looked);
    reader.join();
    ty_txn *txn = nullptr;
    ASSERT_OK(ty_begin(heap, nullptr, &txn));
    ASSERT_OK(ty_rollback(txn));
}

// X29: who waited at a reader-writer lock while a write failed is refused as well.
TEST(group_commit_test, those_that_wait_for_a_write_that_fails) {
    disk files;
    joined_heaps in(files);
    ASSERT_OK(commit(in, 7));
    ty_dtxn *first = nullptr;
    ASSERT_OK(ty_dtxn_begin(in.group, nullptr, &first));
    std::thread second([&] {
        ty_dtxn *dtxn = nullptr;
        ASSERT_OK(ty_dtxn_begin(in.group, nullptr, &dtxn));
        add_one(in, dtxn);
        EXPECT_NE(TY_OK, ty_dtxn_commit(dtxn));
    });
    while (!queued(in.group))
        std::this_thread::yield();
    std::atomic<int> asked{0};
    std::thread writer([&] {
        ty_txn *txn = nullptr;
        ++asked;
        EXPECT_EQ(TY_E_IN_DOUBT, ty_begin(in.heap[0], nullptr, &txn));
    });
    std::thread reader([&] {
        ++asked;
        EXPECT_EQ(TY_E_IN_DOUBT, ty_read_begin(in.heap[1]));
    });
    std::thread of_an_object([&] {
        ++asked;
        ty_status status = ty_object_read_begin(in.heap[1], ty_root(in.heap[1], "number"));
        if (!status) { // it came before the failure
            ty_object_read_end(in.heap[1], ty_root(in.heap[1], "number"));
        } else {
            EXPECT_EQ(TY_E_IN_DOUBT, status);
        }
    });
    while (asked < 3)
        std::this_thread::yield();
    os::sim_set_write_hook(files.get(), let_others_end, in.group);
    os::sim_set_fault(files.get(), {os::sim_op_write | os::sim_op_flush | os::sim_op_write_durable, 0, true});
    add_one(in, first);
    EXPECT_EQ(TY_E_IN_DOUBT, ty_dtxn_commit(first));
    for (std::thread *each : {&second, &writer, &reader, &of_an_object})
        each->join();
    os::sim_set_write_hook(files.get(), nullptr, nullptr);
    os::sim_set_fault(files.get(), {});
    in.discard();
    ASSERT_OK(in.open());
    EXPECT_EQ(in.number(0), in.number(1));
}

// JO5: a distributed transaction is written once, however late its thread comes to wait, by whoever does it.
TEST(group_commit_test, a_thread_that_ends_its_dtxn_late) {
    static std::atomic<ty_group *> group;
    static std::atomic<int> undeclared;
    static std::atomic<bool> writing;
    disk files;
    heaps in(files);
    ty_heap *heap = nullptr;
    ty_open_options options = with_log(files);
    options.check_stores = true; // its callback comes when the distributed transaction is kept, and has not ended
    options.undeclared_write = [](const ty_undeclared_write *, void *) {
        group_commit &g = group.load()->grouped;
        ++undeclared;
        for (bool writes = true; writes; std::this_thread::yield()) {
            std::lock_guard guard(g.lock);
            writes = g.flushing;
        }
    };
    ASSERT_OK(ty_open(paths[0], &options, &heap, nullptr));
    in.heap[0] = heap;
    ASSERT_OK(in.open(1));
    ASSERT_OK(in.join());
    group = in.group;
    ASSERT_OK(commit(in, 7));
    ty_txn *txn = nullptr;
    ASSERT_OK(ty_begin(heap, nullptr, &txn));
    ASSERT_OK(ty_txn_root_set(txn, "other", ty_txn_alloc(txn, 64)));
    ASSERT_OK(ty_commit(txn));
    // The first distributed transaction is written until the third is kept; then the second one's thread writes both of
    // the others.
    os::sim_set_write_hook(
        files.get(),
        [](void *, bool done) {
            writing = true;
            while (!done && undeclared == 0)
                std::this_thread::yield();
        },
        nullptr);
    for (int round = 0; round < 3; ++round) {
        undeclared = 0;
        writing = false;
        ty_dtxn *first = nullptr;
        ASSERT_OK(ty_dtxn_begin(in.group, nullptr, &first));
        std::vector<std::thread> others;
        for (size_t t = 0; t < 2; ++t) {
            others.emplace_back([&, t] {
                ty_dtxn *dtxn = nullptr;
                ASSERT_OK(ty_dtxn_begin(in.group, nullptr, &dtxn));
                add_one(in, dtxn);
                if (t == 1)
                    static_cast<uint64_t *>(ty_root(in.heap[0], "other"))[1] += 1; // undeclared
                while (!writing) // else it is kept with the first one, and the third writes for itself
                    std::this_thread::yield();
                ASSERT_OK(ty_dtxn_commit(dtxn));
            });
            while (queued(in.group) <= t)
                std::this_thread::yield();
        }
        add_one(in, first);
        ASSERT_OK(ty_dtxn_commit(first));
        for (std::thread &each : others)
            each.join();
        EXPECT_EQ(1, undeclared);
    }
    os::sim_set_write_hook(files.get(), nullptr, nullptr);
    const uint64_t number = in.number(1);
    in.discard();
    ASSERT_OK(in.open());
    EXPECT_EQ(number, in.number(0));
    EXPECT_EQ(number, in.number(1));
}

// Readers get in, though distributed transactions are rolled back without end.
TEST(group_commit_test, readers_get_in_beside_rollbacks) {
    disk files;
    joined_heaps in(files);
    ASSERT_OK(commit(in, 1));
    std::atomic<bool> stop{false}, waits{false};
    std::atomic<uint64_t> begun{0};
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 12; ++t)
        threads.emplace_back([&, t] {
            for (unsigned i = 0; !stop; ++i) {
                ty_dtxn *dtxn = nullptr;
                ASSERT_OK(ty_dtxn_begin(in.group, nullptr, &dtxn));
                if (waits && ++begun > 2000) // one reader waits meanwhile
                    stop = true;
                if ((i + t) % 1000 == 0) {
                    add_one(in, dtxn);
                    ASSERT_OK(ty_dtxn_commit(dtxn));
                } else {
                    ASSERT_OK(ty_dtxn_rollback(dtxn));
                }
            }
        });
    for (int i = 0; i < 200 && !stop; ++i) {
        begun = 0;
        waits = true;
        ASSERT_OK(ty_read_begin(in.heap[0]));
        waits = false;
        ty_read_end(in.heap[0]);
    }
    EXPECT_FALSE(stop) << "a reader waits without end";
    stop = true;
    for (std::thread &each : threads)
        each.join();
}

// JO5: the thread of an ended distributed transaction holds a lock of the program until it is acknowledged, and the
// next distributed transaction wants it.
TEST(group_commit_test, waits_for_no_other_dtxn) {
    disk files;
    joined_heaps in(files);
    std::mutex of_the_program;
    ty_dtxn *dtxn = nullptr;
    ASSERT_OK(ty_dtxn_begin(in.group, nullptr, &dtxn));
    std::thread next([&] {
        ty_dtxn *other = nullptr;
        ASSERT_OK(ty_dtxn_begin(in.group, nullptr, &other));
        std::lock_guard guard(of_the_program);
        add_one(in, other);
        ASSERT_OK(ty_dtxn_commit(other));
    });
    while (!queued(in.group))
        std::this_thread::yield();
    {
        std::lock_guard guard(of_the_program);
        add_one(in, dtxn);
        ASSERT_OK(ty_dtxn_commit(dtxn));
    }
    next.join();
    EXPECT_EQ(2u, in.number(0));
}

// X9: a distributed transaction whose thread ends is over, and those that wait go on.
TEST(group_commit_test, a_thread_that_ends) {
    disk files;
    heaps in(files);
    reports to;
    ASSERT_OK(in.open_joined());
    one_batch(files, in, 2, to);
    ty_dtxn *dtxn = nullptr;
    ASSERT_OK(ty_dtxn_begin(in.group, nullptr, &dtxn));
    std::thread leaves([&] {
        ty_dtxn *left = nullptr;
        ASSERT_OK(ty_dtxn_begin(in.group, nullptr, &left));
        change(in, left, 1000);
    });
    while (queued(in.group) < 1)
        std::this_thread::yield();
    std::thread stays([&] {
        ty_dtxn *one = nullptr;
        ASSERT_OK(ty_dtxn_begin(in.group, nullptr, &one));
        add_one(in, one);
        ASSERT_OK(ty_dtxn_commit(one));
    });
    while (queued(in.group) < 2)
        std::this_thread::yield();
    add_one(in, dtxn);
    ASSERT_OK(ty_dtxn_commit(dtxn));
    leaves.join();
    stays.join();
    EXPECT_EQ(4u, in.number(0));
    EXPECT_EQ(4u, in.number(1));
    std::vector<std::thread> leaving; // one after the other, each with a distributed transaction
    for (int t = 0; t < 4; ++t)
        leaving.emplace_back([&] {
            for (int i = 0; i < 50; ++i)
                std::thread([&] {
                    ty_dtxn *left = nullptr;
                    ASSERT_OK(ty_dtxn_begin(in.group, nullptr, &left));
                    change(in, left, 1000);
                }).join();
        });
    for (std::thread &each : leaving)
        each.join();
    in.discard();
    ASSERT_OK(in.open());
    EXPECT_EQ(4u, in.number(0));
    EXPECT_EQ(4u, in.number(1));
}

// More than the logs take at once, distributed transactions that change one heap or none, and such as are rolled back.
TEST(group_commit_test, dtxns_of_all_kinds) {
    disk files;
    joined_heaps in(files);
    std::vector<std::thread> threads;
    std::atomic<uint64_t> sum[2] = {};
    struct words {
        uint64_t sum;
        unsigned char bytes[20000];
    };
    for (size_t n = 0; n < 2; ++n) {
        ty_txn *txn = nullptr;
        ASSERT_OK(ty_begin(in.heap[n], nullptr, &txn));
        void *place = ty_txn_alloc(txn, sizeof(words));
        ASSERT_OK(ty_txn_root_set(txn, "words", place));
        ASSERT_OK(ty_commit(txn));
    }
    for (unsigned t = 0; t < 6; ++t)
        threads.emplace_back([&, t] {
            for (unsigned i = 0; i < 60; ++i) {
                ty_dtxn *dtxn = nullptr;
                ASSERT_OK(ty_dtxn_begin(in.group, nullptr, &dtxn));
                const unsigned kind = (t * 7 + i) % 8;
                for (size_t n = 0; n < 2 && kind != 0; ++n) {
                    if (kind == 1 + n)
                        continue;
                    auto *place = static_cast<words *>(ty_root(in.heap[n], "words"));
                    ASSERT_OK(ty_declare(ty_dtxn_txn(dtxn, n), place, kind == 3 ? sizeof *place : 8));
                    place->sum += 1;
                    if (kind == 3)
                        memset(place->bytes, int(i), sizeof place->bytes);
                }
                if (kind == 4) {
                    ASSERT_OK(ty_dtxn_rollback(dtxn));
                    continue;
                }
                ASSERT_OK(ty_dtxn_commit(dtxn));
                for (size_t n = 0; n < 2 && kind != 0; ++n)
                    sum[n] += kind != 1 + n;
            }
        });
    for (std::thread &each : threads)
        each.join();
    for (int opened = 0; opened < 2; ++opened) {
        for (size_t n = 0; n < 2; ++n)
            EXPECT_EQ(sum[n], static_cast<words *>(ty_root(in.heap[n], "words"))->sum);
        in.discard();
        ASSERT_OK(in.open());
    }
}

// LK6: a heap that receives holds all that has one outcome, or nothing of it, however the records come.
TEST(group_commit_test, records_are_received_whole) {
    disk files;
    heaps in(files);
    reports to;
    ASSERT_OK(in.open_joined());
    disk base(files.cut(os::sim_cut::keep_all));
    ty_feed *feed = nullptr;
    ty_feed_options source = TY_FEED_OPTIONS_INIT;
    ty_open_options options = with_log(files);
    source.open = &options;
    source.heap = in.heap[1];
    ASSERT_OK(ty_feed_open(paths[1], &source, &feed));
    ty_feed_position position{};
    ASSERT_OK(ty_feed_base(feed, &position, nullptr));
    for (int round = 0; round < 4; ++round)
        one_batch(files, in, 6, to, round % 2 != 0);
    ASSERT_OK(ty_durable(in.heap[1], 0, true, nullptr));
    struct record {
        ty_feed_record head;
        std::vector<char> bytes;
    };
    std::vector<record> records;
    ty_feed_position at = position;
    ASSERT_OK(ty_feed_read(
        feed, &at,
        [](const ty_feed_record *one, void *context) {
            const auto *bytes = static_cast<const char *>(one->bytes);
            static_cast<std::vector<record> *>(context)->push_back({*one, {bytes, bytes + one->size_bytes}});
            return true;
        },
        &records, nullptr));
    ty_feed_close(feed);
    std::vector<ty_feed_record> all;
    for (record &one : records) {
        one.head.bytes = one.bytes.data();
        all.push_back(one.head);
    }
    ASSERT_LT(20u, all.size());
    const uint64_t expected = in.number(1);
    in.discard();
    ty_heap *copy = nullptr;
    ty_feed_position copied{};
    options = with_log(base);
    options.mode = TY_OPEN_COPY;
    ASSERT_OK(ty_open(paths[1], &options, &copy, nullptr));
    ASSERT_OK(ty_feed_copied(copy, &copied));
    ASSERT_OK(ty_close(copy));
    options.mode = TY_OPEN_EXISTING;
    for (size_t piece = 1; piece <= 9; ++piece) {
        SCOPED_TRACE(piece);
        disk own(base.cut(os::sim_cut::keep_all));
        options.storage = own.storage();
        ASSERT_OK(ty_open(paths[1], &options, &copy, nullptr));
        ty_replica_options how = TY_REPLICA_OPTIONS_INIT;
        how.copied_lsn = copied.lsn;
        ty_replica *replica = nullptr;
        ty_feed_position from = position;
        ASSERT_OK(ty_replica_begin(copy, &from, &how, &replica));
        int restarts = 0;
        for (size_t done = 0, calls = 1; done < all.size(); ++calls) {
            const size_t some = std::min(piece, all.size() - done);
            ASSERT_OK(ty_replica_apply(replica, all.data() + done, some));
            done += some;
            if (calls % 3 != 0 || ++restarts > 4)
                continue;
            ASSERT_OK(ty_replica_make_durable(replica, &from)); // it goes on from what it holds
            ty_replica_end(replica);
            ASSERT_OK(ty_discard(copy));
            ASSERT_OK(ty_open(paths[1], &options, &copy, nullptr));
            ASSERT_OK(ty_replica_begin(copy, &from, &how, &replica));
            for (done = 0; done < all.size() && all[done].lsn <= from.lsn;)
                ++done;
        }
        ASSERT_OK(ty_replica_make_durable(replica, &from));
        ty_replica_end(replica);
        const auto *number = static_cast<const uint64_t *>(ty_root(copy, "number"));
        ASSERT_NE(nullptr, number);
        EXPECT_EQ(expected, *number);
        expect_sound(copy);
        ASSERT_OK(ty_discard(copy));
        if (HasFailure())
            return;
    }
}

TEST(group_commit_test, parts_are_ended_by_the_dtxn) {
    disk files;
    joined_heaps in(files);
    ty_dtxn *dtxn = nullptr;
    ASSERT_OK(ty_dtxn_begin(in.group, nullptr, &dtxn));
    change(in, dtxn, 1);
    ty_txn *part = ty_dtxn_txn(dtxn, 0);
    EXPECT_EQ(TY_E_ARGUMENT, ty_commit(part));
    EXPECT_EQ(TY_E_ARGUMENT, ty_commit_async(part, nullptr));
    EXPECT_EQ(TY_E_ARGUMENT, ty_rollback(part));
    EXPECT_EQ(TY_E_ARGUMENT, ty_prepare(part, "", 0));
    ty_dtxn *again = nullptr;
    EXPECT_EQ(TY_E_ARGUMENT, ty_dtxn_begin(in.group, nullptr, &again));
    ASSERT_OK(ty_dtxn_commit(dtxn));
    EXPECT_EQ(1u, in.number(1));
    ty_txn *own = nullptr;
    ASSERT_OK(ty_begin(in.heap[0], nullptr, &own)); // an ordinary one
    ASSERT_OK(ty_rollback(own));
}

} // namespace
