// Goal: all of a distributed transaction counts, or nothing of it, wherever power fails, and whichever heap is opened
// first; and nothing that was acknowledged is lost. Method: distributed transactions over heaps on a simulated disk,
// with a cut at every event.
#include "dtxn_heaps.hpp"

#include "packages/twophase/src/dtxn.hpp"
#include "tests/effort.hpp"

#include <thread>

using namespace taiyen;
using namespace taiyen::twophase;
using namespace taiyen::test;

namespace {

TEST(dtxn_test, changes_all_heaps_or_none) {
    disk files;
    joined_heaps in(files);
    ASSERT_OK(commit(in, 1));
    ty_dtxn *dtxn = nullptr;
    ASSERT_OK(ty_dtxn_begin(in.group, nullptr, &dtxn));
    change(in, dtxn, 2);
    EXPECT_EQ(nullptr, ty_dtxn_txn(dtxn, 2));
    ASSERT_OK(ty_dtxn_rollback(dtxn));
    EXPECT_EQ(1u, in.number(0));
    EXPECT_EQ(1u, in.number(1));
    ASSERT_OK(ty_dtxn_begin(in.group, nullptr, &dtxn));
    put(in.heap[1], ty_dtxn_txn(dtxn, 1), 3); // one alone
    ASSERT_OK(ty_dtxn_commit(dtxn));
    ASSERT_OK(ty_dtxn_begin(in.group, nullptr, &dtxn));
    ASSERT_OK(ty_dtxn_commit(dtxn)); // none
    in.discard();
    ASSERT_OK(in.open());
    EXPECT_EQ(1u, in.number(0));
    EXPECT_EQ(3u, in.number(1));
    ASSERT_OK(in.join());
    ASSERT_OK(commit(in, 4));
    for (int i = 0; i < 2; ++i) {
        ASSERT_OK(ty_close(in.heap[i]));
        in.heap[i] = nullptr;
    }
    ASSERT_OK(in.open());
    EXPECT_EQ(4u, in.number(0));
    EXPECT_EQ(4u, in.number(1));
    expect_sound(in.heap[0]);
    expect_sound(in.heap[1]);
}

class cuts : public testing::TestWithParam<size_t> {};

// JO1, JO2, JO3.
TEST_P(cuts, leave_all_or_nothing) {
    const size_t count = GetParam();
    disk files;
    heaps in(files, count);
    std::vector<acknowledged> all;
    ASSERT_OK(in.open_joined());
    const uint64_t begun = os::sim_event_count(files.get());
    for (uint64_t number = 1; number <= 10; ++number) {
        if (number % 4 == 0) {
            ty_dtxn *dtxn = nullptr;
            ASSERT_OK(ty_dtxn_begin(in.group, nullptr, &dtxn));
            change(in, dtxn, 1000);
            ASSERT_OK(ty_dtxn_rollback(dtxn));
        }
        ASSERT_OK(commit(in, number));
        all.push_back({os::sim_event_count(files.get()), number});
        if (number % 3 == 0) {
            ASSERT_OK(ty_snapshot(in.heap[number % count]));
        }
    }
    const uint64_t end = os::sim_event_count(files.get());
    in.discard();
    uint64_t doubts = 0;
    for (const os::sim_cut how : {os::sim_cut::keep_all, os::sim_cut::drop_all, os::sim_cut::random, os::sim_cut::trash,
                                  os::sim_cut::process_death}) {
        for (uint64_t event = begun + uint64_t(how) % stride(3); event <= end; event += stride(3)) {
            SCOPED_TRACE(testing::Message() << "event " << event << ", cut " << int(how));
            disk cut(os::sim_power_cut(files.get(), event, how, event));
            heaps after(cut, count);
            const size_t first = event % count; // any may be the first to be opened
            for (size_t n = 0; n < count; ++n) {
                ty_report report{};
                report.struct_size = sizeof report;
                ASSERT_OK(after.open((first + n) % count, &report));
                doubts += report.in_doubt != 0;
                if (n == 0 && event % 3 == 0) { // and power fails again when it is open
                    const uint64_t seen = after.number(first);
                    after.discard();
                    disk second(cut.cut(os::sim_cut::drop_all));
                    {
                        heaps again(second, count);
                        ASSERT_OK(again.open());
                        EXPECT_EQ(again.number(0), again.number(count - 1));
                        EXPECT_LE(newest(all, event), again.number(0));
                        if (report.in_doubt) {
                            EXPECT_EQ(seen, again.number(first)) << "what an open reported is lost";
                        }
                    }
                    ASSERT_OK(after.open(first));
                }
            }
            for (size_t n = 1; n < count; ++n)
                EXPECT_EQ(after.number(0), after.number(n)) << "half of a distributed transaction";
            EXPECT_GE(after.number(0), newest(all, event));
            EXPECT_LE(after.number(0), newest(all, event) + 1);
            for (size_t n = 0; n < count; ++n)
                expect_sound(after.heap[n]);
            ASSERT_OK(after.join());
            ASSERT_OK(commit(after, 77));
            if (HasFailure())
                return;
        }
    }
    EXPECT_GT(doubts, 30 / stride(3));
}
INSTANTIATE_TEST_SUITE_P(heaps, cuts, testing::Values(2, 3));

TEST(dtxn_test, cuts_within_the_opens_that_resolve) {
    disk files;
    const auto [begun, end] = events_of_second_dtxn(files);
    for (const os::sim_cut how : {os::sim_cut::keep_all, os::sim_cut::process_death, os::sim_cut::random}) {
        for (uint64_t event = begun; event <= end; ++event) {
            disk died(os::sim_power_cut(files.get(), event, how, event));
            const uint64_t from = os::sim_event_count(died.get());
            uint64_t resolved = 0;
            {
                heaps first(died);
                ASSERT_OK(first.open(event % 2));
                resolved = first.number(event % 2);
            }
            const uint64_t to = os::sim_event_count(died.get());
            for (uint64_t cut = from; cut <= to; ++cut) {
                if (cut != to && (cut + event) % stride(3))
                    continue;
                SCOPED_TRACE(testing::Message() << event << " " << cut << " " << int(how));
                disk again(os::sim_power_cut(died.get(), cut, os::sim_cut::drop_all, cut));
                heaps after(again);
                ASSERT_OK(after.open(0));
                ASSERT_OK(after.open(1));
                EXPECT_EQ(after.number(0), after.number(1));
                if (cut == to) {
                    EXPECT_EQ(resolved, after.number(0));
                }
                if (HasFailure())
                    return;
            }
        }
    }
}

// The other heap is not there: nothing is lost, and it is resolved once it is.
TEST(dtxn_test, waits_for_a_heap_that_is_missing) {
    disk files;
    const auto [begun, end] = events_of_second_dtxn(files);
    int waited = 0;
    for (uint64_t event = begun; event <= end; ++event) {
        disk cut(os::sim_power_cut(files.get(), event, os::sim_cut::keep_all, 1));
        const ty_storage *s = cut.storage();
        for (const char *suffix : {"", "-log", "-journal"})
            static_cast<void>(s->rename(s->context, (std::string(paths[1]) + suffix).c_str(),
                                        (std::string("away") + suffix).c_str()));
        heaps after(cut);
        const ty_status status = after.open(0);
        if (status == TY_E_IN_DOUBT) {
            ++waited;
            EXPECT_NE(nullptr, strstr(ty_error_text(), paths[1])) << ty_error_text();
        }
        for (const char *suffix : {"", "-log", "-journal"})
            static_cast<void>(s->rename(s->context, (std::string("away") + suffix).c_str(),
                                        (std::string(paths[1]) + suffix).c_str()));
        ASSERT_OK(status == TY_E_IN_DOUBT ? after.open(0) : status);
        ASSERT_OK(after.open(1));
        EXPECT_EQ(after.number(0), after.number(1));
    }
    EXPECT_GT(waited, 0);
}

// A heap that is asked can be read, but not opened: what asks it says so. (It ended the process.)
TEST(dtxn_test, asks_a_heap_that_cannot_be_opened) {
    static ty_status (*open_any)(void *context, const char *path, uint32_t flags, ty_file **file);
    disk files;
    const auto [begun, end] = events_of_second_dtxn(files);
    int refused = 0;
    for (uint64_t event = begun; event <= end; ++event) {
        SCOPED_TRACE(event);
        disk cut(os::sim_power_cut(files.get(), event, os::sim_cut::keep_all, 1));
        ty_storage guarded = *cut.storage();
        open_any = guarded.open;
        guarded.open = [](void *context, const char *path, uint32_t flags, ty_file **file) {
            const bool writes = (flags & TY_FILE_WRITE) && strncmp(path, paths[1], strlen(paths[1])) == 0;
            return writes ? TY_E_PERMISSION : open_any(context, path, flags, file);
        };
        ty_open_options options = with_log(cut);
        options.storage = &guarded;
        ty_heap *heap = nullptr;
        const ty_status status = ty_open(paths[0], &options, &heap, nullptr);
        EXPECT_TRUE(status == TY_OK || status == TY_E_IN_DOUBT) << ty_error_text();
        refused += status == TY_E_IN_DOUBT;
        if (heap) {
            EXPECT_OK(ty_discard(heap));
        }
        heaps after(cut);
        ASSERT_OK(after.open());
        EXPECT_EQ(after.number(0), after.number(1));
    }
    EXPECT_GT(refused, 0);
}

TEST(dtxn_test, is_its_threads) {
    disk files;
    joined_heaps in(files);
    ty_dtxn *dtxn = nullptr;
    ASSERT_OK(ty_dtxn_begin(in.group, nullptr, &dtxn));
    change(in, dtxn, 1);
    std::thread([&] {
        EXPECT_EQ(TY_E_ARGUMENT, ty_dtxn_rollback(dtxn));
        EXPECT_EQ(TY_E_ARGUMENT, ty_dtxn_commit(dtxn));
    }).join();
    ASSERT_OK(ty_dtxn_commit(dtxn));
    EXPECT_EQ(1u, in.number(1));
}

// Opens that come to nothing leave the log as it is, and one with no room at all is resolved by a snapshot.
TEST(dtxn_test, may_be_tried_for_long) {
    disk files;
    joined_heaps in(files);
    ASSERT_OK(commit(in, 1));
    ASSERT_OK(commit(in, 2));
    disk cut(files.cut(os::sim_cut::drop_all));
    in.discard();
    cut.rename(paths[1], "away");
    heaps after(cut);
    for (int i = 0; i < 300; ++i)
        ASSERT_EQ(TY_E_IN_DOUBT, after.open(0));
    cut.rename("away", paths[1]);
    ASSERT_OK(after.open());
    EXPECT_EQ(2u, after.number(0));
    EXPECT_EQ(2u, after.number(1));
}

// ---- Use

TEST(dtxn_test, wrong_use_is_refused) {
    disk files;
    heaps in(files);
    ASSERT_OK(in.open());
    ty_group_options options = TY_GROUP_OPTIONS_INIT;
    ty_group *group = nullptr;
    EXPECT_EQ(TY_E_ARGUMENT, ty_group_open(nullptr, &group));
    EXPECT_EQ(TY_E_ARGUMENT, ty_group_open(&options, &group));
    ty_heap *twice[] = {in.heap[0], in.heap[0]};
    options.heaps = twice;
    options.heap_count = 2;
    EXPECT_EQ(TY_E_ARGUMENT, ty_group_open(&options, &group));
    options.heap_count = TY_GROUP_HEAPS_MAX + 1;
    EXPECT_EQ(TY_E_ARGUMENT, ty_group_open(&options, &group));
    ty_last_agent agent{};
    EXPECT_EQ(TY_E_ARGUMENT, ty_register_last_agent(&agent));
    options.heaps = in.heap;
    options.heap_count = 2;
    options.agent = &agent;
    EXPECT_EQ(TY_E_ARGUMENT, ty_group_open(&options, &group));
    ASSERT_OK(in.join());
    ty_txn *txn = nullptr;
    ty_dtxn *dtxn = nullptr;
    ASSERT_OK(ty_begin(in.heap[1], nullptr, &txn));
    EXPECT_EQ(TY_E_ARGUMENT, ty_dtxn_begin(in.group, nullptr, &dtxn));
    ASSERT_OK(ty_rollback(txn));
    ASSERT_OK(ty_dtxn_begin(in.group, nullptr, &dtxn));
    std::thread([&] { // before it waits for its turn
        ty_txn_options wrong = TY_TXN_OPTIONS_INIT;
        const int none = 99;
        memcpy(&wrong.stores, &none, sizeof none);
        wrong.no_wait = true;
        ty_dtxn *other = nullptr;
        EXPECT_EQ(TY_E_ARGUMENT, ty_dtxn_begin(in.group, &wrong, &other));
    })
        .join();
    ASSERT_OK(ty_dtxn_rollback(dtxn));
    ASSERT_OK(ty_begin(in.heap[0], nullptr, &txn)); // nothing of the other one is left under way
    ASSERT_OK(ty_rollback(txn));
    ASSERT_OK(commit(in, 1));
}

// Threads, over two groups that share heaps: none waits for ever, and nothing is half done.
TEST(dtxn_test, threads_and_groups_that_share_heaps) {
    disk files;
    heaps in(files, 3);
    ASSERT_OK(in.open());
    ty_group *groups[3] = {};
    ty_heap *pairs[3][2] = {{in.heap[0], in.heap[1]}, {in.heap[2], in.heap[1]}, {in.heap[2], in.heap[0]}};
    for (int g = 0; g < 3; ++g) {
        ty_group_options options = TY_GROUP_OPTIONS_INIT;
        options.heaps = pairs[g];
        options.heap_count = 2;
        ASSERT_OK(ty_group_open(&options, &groups[g]));
    }
    for (size_t n = 0; n < 3; ++n) {
        ty_txn *txn = nullptr;
        ASSERT_OK(ty_begin(in.heap[n], nullptr, &txn));
        put(in.heap[n], txn, 1000);
        ASSERT_OK(ty_commit(txn));
    }
    std::vector<std::thread> threads;
    for (int t = 0; t < 6; ++t)
        threads.emplace_back([&, t] {
            for (int i = 0; i < 40; ++i) {
                ty_dtxn *dtxn = nullptr;
                const int g = (t + i) % 3;
                ASSERT_OK(ty_dtxn_begin(groups[g], nullptr, &dtxn));
                for (size_t n = 0; n < 2; ++n) {
                    auto *place = static_cast<uint64_t *>(ty_root(pairs[g][n], "number"));
                    ASSERT_OK(ty_declare(ty_dtxn_txn(dtxn, n), place, 8));
                    *place += n ? 1 : UINT64_MAX;
                }
                ASSERT_OK(i % 5 ? ty_dtxn_commit(dtxn) : ty_dtxn_rollback(dtxn));
            }
        });
    for (std::thread &each : threads)
        each.join();
    EXPECT_EQ(3000u, in.number(0) + in.number(1) + in.number(2));
    for (ty_group *group : groups)
        ty_group_close(group);
    in.discard();
    ASSERT_OK(in.open());
    EXPECT_EQ(3000u, in.number(0) + in.number(1) + in.number(2));
}

} // namespace
