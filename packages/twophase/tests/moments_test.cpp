// Goal: heaps of a group that come from different moments are recognised, whichever of them it is and whatever is in
// doubt; a refusal changes nothing; and an open for reading holds what was acknowledged. Method: copies of files of a
// simulated disk, of heaps that were closed or died, put in place of others; files compared byte by byte.
#include "dtxn_heaps.hpp"

#include "packages/twophase/src/dtxn.hpp"

using namespace taiyen;
using namespace taiyen::twophase;
using namespace taiyen::test;

namespace {

// Heaps that were closed with so many distributed transactions, and a disk on which they went on with more, and died.
struct two_moments {
    disk files;
    disk_owner backup, died;
    size_t count;

    two_moments(size_t heap_count, uint64_t before, uint64_t after) : count(heap_count) {
        joined_heaps in(files, count);
        for (uint64_t number = 1; number <= before; ++number)
            EXPECT_OK(commit(in, number));
        ty_group_close(in.group);
        in.group = nullptr;
        for (size_t n = 0; n < count; ++n) {
            EXPECT_OK(ty_close(in.heap[n]));
            in.heap[n] = nullptr;
        }
        backup = copy_of(files);
        EXPECT_OK(in.open_joined());
        for (uint64_t number = before + 1; number <= before + after; ++number)
            EXPECT_OK(commit(in, number));
        died = copy_of(files);
    }
};

std::string all_files(const disk &of, size_t n) {
    std::string all;
    for (const char *suffix : {"", "-journal", "-log"})
        all += of.read_file((std::string(paths[n]) + suffix).c_str());
    return all;
}

// Any heap of two or three; also where it misses one distributed transaction alone. JO2, JO7.
TEST(moments_test, an_older_partner_is_refused_and_nothing_changes) {
    for (const size_t count : {2, 3})
        for (size_t old = 0; old < count; ++old)
            for (const uint64_t dtxns : {1, 3}) {
                SCOPED_TRACE(testing::Message() << count << " heaps, " << old << " older by " << dtxns);
                const two_moments of(count, 2, dtxns);
                const disk_owner mixed = copy_of(*of.died);
                copy_member(*of.backup, *mixed, old);
                heaps in(*mixed, count);
                std::string before[3];
                for (size_t n = 0; n < count; ++n)
                    before[n] = all_files(*mixed, n);
                for (size_t n = 0; n < count; ++n) {
                    if (n == old)
                        continue;
                    EXPECT_EQ(TY_E_IN_DOUBT, in.open(n));
                    EXPECT_NE(nullptr, strstr(ty_error_text(), paths[old])) << ty_error_text();
                    EXPECT_NE(nullptr, strstr(ty_error_text(), "another moment")) << ty_error_text();
                }
                for (size_t n = 0; n < count; ++n)
                    EXPECT_TRUE(before[n] == all_files(*mixed, n)) << "files of heap " << n << " are changed";
                copy_member(*of.died, *mixed, old);
                ASSERT_OK(in.open());
                for (size_t n = 0; n < count; ++n)
                    EXPECT_EQ(2 + dtxns, in.number(n));
            }
}

// One has the distributed transaction, and one that is resolved has not. All are asked.
TEST(moments_test, contradictory_answers_are_refused) {
    disk files;
    joined_heaps in(files, 3);
    ASSERT_OK(commit(in, 1));
    ty_txn *txn = nullptr;
    ASSERT_OK(ty_begin(in.heap[2], nullptr, &txn));
    put(in.heap[2], txn, 1);
    ASSERT_OK(ty_commit(txn)); // with it the distributed transaction's outcome is durable: it is resolved
    const disk_owner before = copy_of(files);
    ASSERT_OK(commit(in, 2));
    const disk_owner mixed = copy_of(files), resolved = copy_of(files);
    in.discard();
    {
        heaps after(*resolved, 3);
        ASSERT_OK(after.open());
    }
    copy_member(*resolved, *mixed, 1);
    copy_member(*before, *mixed, 2);
    heaps after(*mixed, 3);
    EXPECT_EQ(TY_E_IN_DOUBT, after.open(0));
    EXPECT_NE(nullptr, strstr(ty_error_text(), paths[2])) << ty_error_text();
}

// Nothing is in doubt. JO6.
TEST(moments_test, a_group_of_different_moments_is_refused) {
    for (size_t old = 0; old < 2; ++old) {
        const two_moments of(2, 2, 3);
        const disk_owner mixed = copy_of(*of.died);
        {
            heaps resolves(*mixed);
            ASSERT_OK(resolves.open());
        }
        copy_member(*of.backup, *mixed, old);
        heaps in(*mixed);
        ASSERT_OK(in.open());
        EXPECT_EQ(TY_E_MISMATCH, in.join());
        ty_error error;
        ty_error_detail(&error);
        EXPECT_STREQ(paths[old], error.path);
        EXPECT_NE(nullptr, strstr(error.remedy, paths[1 - old])) << error.remedy;
        // In another order, and with an agent or not, they are the same heaps.
        ty_heap *turned[] = {in.heap[1], in.heap[0]};
        ty_group_options options = TY_GROUP_OPTIONS_INIT;
        options.heaps = turned;
        options.heap_count = 2;
        EXPECT_EQ(TY_E_MISMATCH, ty_group_open(&options, &in.group));
        ty_resource_manager nobody{sizeof nobody,
                                   nullptr,
                                   [](void *, const char *) { return TY_OK; },
                                   [](void *, const char *) { return TY_OK; },
                                   [](void *, const char *) { return TY_OK; },
                                   [](void *, const char *, void (*)(const char *, void *), void *) { return TY_OK; }};
        EXPECT_EQ(TY_E_MISMATCH, in.join(nullptr, &nobody, 1));
        // On purpose they go on, and are one group from then on.
        options.heaps = in.heap;
        options.restored = true;
        ASSERT_OK(ty_group_open(&options, &in.group));
        ASSERT_OK(commit(in, 9));
        in.discard();
        ASSERT_OK(in.open_joined());
        EXPECT_EQ(9u, in.number(0));
        EXPECT_EQ(9u, in.number(1));
        in.discard();
        copy_member(*of.backup, *mixed, 1 - old);
        ASSERT_OK(in.open());
        EXPECT_EQ(TY_E_MISMATCH, in.join());
    }
}

// A heap that was no member yet, or whose number went with an older state. JO6.
TEST(moments_test, a_member_from_before_the_group_is_refused) {
    disk files;
    heaps in(files);
    ASSERT_OK(in.open());
    const disk_owner before = copy_of(files);
    ASSERT_OK(in.join());
    ASSERT_OK(commit(in, 1));
    in.discard();
    ASSERT_OK(in.open());
    in.discard();
    copy_member(*before, files, 1);
    ASSERT_OK(in.open());
    EXPECT_EQ(TY_E_MISMATCH, in.join());
    in.discard();
    copy_member(*before, files, 0); // both are: nothing is known of a group
    ASSERT_OK(in.open_joined());
}

// Of several groups each has a number of its own, and a larger group's is looked at as well. JO6.
TEST(moments_test, heaps_of_several_groups) {
    disk files;
    joined_heaps in(files, 3);
    const disk_owner before = copy_of(files);
    ASSERT_OK(commit(in, 1));
    in.discard();
    ASSERT_OK(in.open());
    in.discard();
    copy_member(*before, files, 1);
    ASSERT_OK(in.open());
    ty_group_options options = TY_GROUP_OPTIONS_INIT;
    options.heaps = in.heap;
    options.heap_count = 2;
    EXPECT_EQ(TY_E_MISMATCH, ty_group_open(&options, &in.group)) << "a group of two of them";
    ty_heap *others[] = {in.heap[0], in.heap[2]};
    options.heaps = others;
    EXPECT_OK(ty_group_open(&options, &in.group));
}

// ---- Opens for reading

ty_status open_to_read(const disk &files, size_t n, ty_open_mode mode, ty_heap **heap, ty_report *report = nullptr) {
    ty_open_options options = with_log(files);
    options.mode = mode;
    return ty_open(paths[n], &options, heap, report);
}
uint64_t number_in(ty_heap *heap) {
    const auto *place = static_cast<const uint64_t *>(ty_root(heap, "number"));
    return place ? *place : 0;
}

// X33.
TEST(moments_test, a_reader_holds_what_was_acknowledged) {
    for (const ty_open_mode mode : {TY_OPEN_READ_ONLY, TY_OPEN_COPY}) {
        const two_moments of(3, 1, 2);
        std::string before[3];
        ty_heap *open[3] = {};
        for (size_t n = 0; n < 3; ++n)
            before[n] = all_files(*of.died, n);
        for (size_t n = 0; n < 3; ++n) { // one alone, and beside others
            ty_report report{};
            report.struct_size = sizeof report;
            ASSERT_OK(open_to_read(*of.died, n, mode, &open[n], &report));
            EXPECT_NE(0u, report.in_doubt);
            EXPECT_EQ(TY_OUTCOME_COMMIT, report.outcome);
            EXPECT_EQ(3u, number_in(open[n]));
            expect_sound(open[n]);
        }
        for (ty_heap *&each : open)
            EXPECT_OK(ty_close(each));
        for (size_t n = 0; n < 3; ++n)
            EXPECT_TRUE(before[n] == all_files(*of.died, n)) << "files of heap " << n << " are changed";
        copy_member(*of.backup, *of.died, 2);
        EXPECT_EQ(TY_E_IN_DOUBT, open_to_read(*of.died, 0, mode, &open[0]));
        EXPECT_NE(nullptr, strstr(ty_error_text(), "another moment")) << ty_error_text();
        of.died->rename(paths[2], "away");
        EXPECT_EQ(TY_E_IN_DOUBT, open_to_read(*of.died, 0, mode, &open[0]));
        EXPECT_NE(nullptr, strstr(ty_error_text(), paths[2])) << ty_error_text();
    }
}

// Its partner died before it was prepared there: that distributed transaction never counted.
TEST(moments_test, a_reader_leaves_out_what_was_not_prepared_everywhere) {
    disk files;
    const auto [begun, end] = events_of_second_dtxn(files);
    uint64_t seen[3] = {};
    for (uint64_t event = begun; event <= end; ++event) {
        const disk_owner died = cut_at(files, event, os::sim_cut::drop_all, 1);
        ty_heap *open[2] = {};
        for (size_t n = 0; n < 2; ++n)
            ASSERT_OK(open_to_read(*died, n, TY_OPEN_READ_ONLY, &open[n]));
        const uint64_t number = number_in(open[0]);
        EXPECT_EQ(number, number_in(open[1]));
        for (ty_heap *each : open)
            EXPECT_OK(ty_close(each));
        heaps after(*died);
        ASSERT_OK(after.open());
        EXPECT_EQ(number, after.number(0)) << "a reader and a writer differ";
        ++seen[number];
    }
    EXPECT_GT(seen[1], 0u);
    EXPECT_GT(seen[2], 0u);
}

} // namespace
