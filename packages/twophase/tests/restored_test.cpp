// Goal: what comes back to a group from elsewhere, member by member: what was prepared by resource managers keeps its
// outcome, another heap in a member's place is seen, a `restored` that a kill interrupts leaves nothing half, and files
// that lie elsewhere, or were moved, are found. Method: files of a simulated disk put in place of others; power cuts at
// each event.
#include "dtxn_heaps.hpp"
#include "queue.hpp"

#include "packages/twophase/src/dtxn.hpp"

using namespace taiyen;
using namespace taiyen::twophase;
using namespace taiyen::test;

namespace {

ty_status join(std::vector<ty_heap *> heaps, ty_group **group, bool restored = false,
               const ty_resource_manager *resource_manager = nullptr) {
    ty_group_options options = TY_GROUP_OPTIONS_INIT;
    options.heaps = heaps.data();
    options.heap_count = heaps.size();
    options.resource_managers = resource_manager;
    options.resource_manager_count = resource_manager != nullptr;
    options.restored = restored;
    return ty_group_open(&options, group);
}

void close(heaps &in, size_t count = 2) {
    ty_group_close(in.group);
    in.group = nullptr;
    for (size_t n = 0; n < count; ++n) {
        EXPECT_OK(ty_close(in.heap[n]));
        in.heap[n] = nullptr;
    }
}

// The first heap has the distributed transaction, the queue has it prepared, and the other heap is from a backup.
// `restored` accepts what heaps miss; it does not take the distributed transaction from the queue. JO4.
TEST(restored_test, what_a_resource_manager_has_prepared_keeps_its_outcome) {
    for (const bool by_hand : {false, true}) { // taiyen resolve --restored: a group without resource managers, before
        disk files;
        queue one;
        const ty_resource_manager resource_manager = one.resource_manager();
        joined_heaps in(files, 2, &resource_manager);
        ASSERT_OK(commit(in, 1));
        close(in);
        const disk_owner backup = copy_of(files);
        ASSERT_OK(in.open());
        ASSERT_OK(in.join(nullptr, &resource_manager, 1));
        one.commits_fail = 1;
        ASSERT_OK(commit(in, 2));
        close(in);
        ASSERT_EQ(1u, one.prepared.size());
        copy_member(*backup, files, 1);
        ASSERT_OK(in.open());
        EXPECT_EQ(TY_E_MISMATCH, in.join(nullptr, &resource_manager, 1));
        if (by_hand) {
            ASSERT_OK(join({in.heap[0], in.heap[1]}, &in.group, true));
            close(in);
            ASSERT_OK(in.open());
        }
        ASSERT_OK(join({in.heap[0], in.heap[1]}, &in.group, !by_hand, &resource_manager));
        EXPECT_EQ(0u, one.prepared.size());
        EXPECT_EQ(2u, one.committed.size()) << "an acknowledged distributed transaction is taken from the queue";
        ASSERT_OK(commit(in, 3));
        EXPECT_EQ(3u, one.committed.size());
    }
}

// ---- A member's place

// Its disk is not there, and the program makes a heap anew; or the files of another group's member lie there.
TEST(restored_test, another_heap_in_a_members_place_is_refused) {
    for (const bool of_another_group : {false, true}) {
        disk files, others;
        heaps in(files), there(others);
        ASSERT_OK(in.open_joined());
        ASSERT_OK(commit(in, 1));
        close(in);
        ASSERT_OK(there.open());
        if (of_another_group) {
            ASSERT_OK(there.join());
            ASSERT_OK(commit(there, 7));
        }
        close(there);
        const disk_owner right = copy_of(files);
        copy_member(others, files, 1);
        ASSERT_OK(in.open());
        EXPECT_EQ(TY_E_MISMATCH, in.join());
        EXPECT_NE(nullptr, strstr(ty_error_text(), paths[1])) << ty_error_text();
        in.discard();
        copy_member(*right, files, 1);
        ASSERT_OK(in.open_joined());
        in.discard();
        copy_member(others, files, 1);
        ASSERT_OK(in.open());
        ASSERT_OK(join({in.heap[0], in.heap[1]}, &in.group, true));
        ASSERT_OK(commit(in, 2));
        close(in);
        ASSERT_OK(in.open_joined());
        close(in);
        copy_member(*right, files, 1); // the group has gone on without it
        ASSERT_OK(in.open());
        EXPECT_EQ(TY_E_MISMATCH, in.join());
    }
}

// A kill at any event of a `restored`: the heaps open, and a second one does it.
TEST(restored_test, cuts_within) {
    disk files;
    joined_heaps in(files, 3);
    ASSERT_OK(commit(in, 1));
    close(in, 3);
    const disk_owner backup = copy_of(files);
    ASSERT_OK(in.open_joined());
    ASSERT_OK(commit(in, 2));
    close(in, 3);
    copy_member(*backup, files, 1);
    ASSERT_OK(in.open());
    const uint64_t begun = os::sim_event_count(files.get());
    ASSERT_OK(join({in.heap[0], in.heap[1], in.heap[2]}, &in.group, true));
    const uint64_t end = os::sim_event_count(files.get());
    in.discard();
    uint64_t refused = 0;
    for (const os::sim_cut how : {os::sim_cut::drop_all, os::sim_cut::process_death, os::sim_cut::random})
        for (uint64_t event = begun; event <= end; ++event) {
            SCOPED_TRACE(event);
            const disk_owner cut = cut_at(files, event, how, event);
            heaps after(*cut, 3);
            ASSERT_OK(after.open());
            EXPECT_EQ(2u, after.number(0));
            EXPECT_EQ(1u, after.number(1));
            EXPECT_EQ(2u, after.number(2));
            if (const ty_status status = after.join()) {
                EXPECT_EQ(TY_E_MISMATCH, status) << ty_error_text();
                ++refused;
                ASSERT_OK(join({after.heap[0], after.heap[1], after.heap[2]}, &after.group, true));
            }
            ASSERT_OK(commit(after, 3));
            after.discard();
            ASSERT_OK(after.open_joined());
            EXPECT_EQ(3u, after.number(1));
        }
    EXPECT_GT(refused, 0u);
}

// ---- Files elsewhere

// A log or a journal that does not lie beside its heap.
TEST(restored_test, members_with_logs_elsewhere_are_asked) {
    disk files;
    heaps in(files);
    const char *logs[] = {"x.log", "y.log"};
    const auto open = [&](heaps &to, size_t n, const disk &where) {
        ty_open_options options = with_log(where);
        options.log_path = logs[n];
        options.journal_path = n ? "y.journal" : nullptr;
        return ty_open(paths[n], &options, &to.heap[n], nullptr);
    };
    ASSERT_OK(open(in, 0, files));
    ASSERT_OK(open(in, 1, files));
    ASSERT_OK(in.join());
    ASSERT_OK(commit(in, 1));
    ASSERT_OK(commit(in, 2));
    const disk_owner died = copy_of(files);
    in.discard();
    for (size_t first = 0; first < 2; ++first) {
        const disk_owner cut = copy_of(*died);
        heaps after(*cut);
        ASSERT_OK(open(after, first, *cut));
        ASSERT_OK(open(after, 1 - first, *cut));
        EXPECT_EQ(2u, after.number(0));
        EXPECT_EQ(2u, after.number(1));
        ASSERT_OK(after.join());
    }
}

// A tree of folders that was moved, and one whose heaps were put into one folder; each of them asks the other.
TEST(restored_test, members_of_several_folders_are_found_after_a_move) {
    struct place {
        const char *heaps[2];
        const char *log; // of the second one; NULL: beside it
    };
    static constexpr place old{{"/data/x/deep/a.ty", "/data/y/b.ty"}, "/data/y/logs/b.log"};
    static constexpr place moves[] = {{{"/mnt/old/x/deep/a.ty", "/mnt/old/y/b.ty"}, "/mnt/old/y/logs/b.log"},
                                      {{"/new/a.ty", "/new/b.ty"}, "/new/b.log"},
                                      {{"/data/x/deep/a.ty", "/data/y/b.ty"}, "/fast/b.log"}};
    const auto open = [](heaps &to, size_t n, const disk &where, const place &at) {
        ty_open_options options = with_log(where);
        options.log_path = n ? at.log : nullptr;
        return ty_open(at.heaps[n], &options, &to.heap[n], nullptr);
    };
    disk files;
    heaps in(files);
    for (size_t n = 0; n < 2; ++n)
        ASSERT_OK(open(in, n, files, old));
    ASSERT_OK(in.join());
    ASSERT_OK(commit(in, 1));
    const disk_owner died = copy_of(files);
    in.discard();
    for (const place &to : moves)
        for (size_t first = 0; first < 2; ++first) {
            SCOPED_TRACE(to.log);
            const disk moved;
            for (size_t n = 0; n < 2; ++n)
                for (const std::string suffix : {"", "-journal", "-log"})
                    copy_file(*died, moved, old.heaps[n] + suffix, to.heaps[n] + suffix);
            copy_file(*died, moved, old.log, to.log);
            heaps after(moved);
            if (first == 0 && strcmp(to.log, "/fast/b.log") == 0) { // nothing says where it is
                EXPECT_EQ(TY_E_IN_DOUBT, open(after, 0, moved, to));
                EXPECT_NE(nullptr, strstr(ty_error_text(), old.log)) << ty_error_text();
                continue;
            }
            ASSERT_OK(open(after, first, moved, to));
            ASSERT_OK(open(after, 1 - first, moved, to));
            EXPECT_EQ(1u, after.number(0));
            EXPECT_EQ(1u, after.number(1));
            ASSERT_OK(after.join());
        }
}

std::string placed(const char *other, const char *then, const char *now, placing how) {
    char *place = nullptr;
    EXPECT_OK(path_after_move(text_of(other), text_of(then), now, how, &place));
    const std::string found = place ? place : "(none)";
    free(place);
    return found;
}

TEST(restored_test, places_after_a_move) {
    for (const placing how : {placing::alike, placing::beside}) {
        EXPECT_EQ("/x/b", placed("/x/b", "/y/a", "/y/a", how)) << "it was not moved";
        EXPECT_EQ("/z/b", placed("/x/b", "/x/a", "/z/c", how));
        EXPECT_EQ("b", placed("b", "a", "c", how));
        EXPECT_EQ("b", placed("/x/b", "/x/a", "a", how));
    }
    EXPECT_EQ("/n/y/b", placed("/d/y/b", "/d/x/a", "/n/x/a", placing::alike));
    EXPECT_EQ("/n/x/b", placed("/d/y/b", "/d/x/a", "/n/x/a", placing::beside));
    EXPECT_EQ("/n/x/q/b", placed("/d/x/q/b", "/d/x/a", "/n/x/a", placing::alike));
    EXPECT_EQ("/y/b", placed("/d/y/b", "/d/x/a", "/x/a", placing::alike));
    EXPECT_EQ("(none)", placed("/d/y/b", "/d/x/a", "/a", placing::alike));
    EXPECT_EQ("(none)", placed("/d/y/b", "/d/x/a", "a", placing::alike));
    EXPECT_EQ("/xb", placed("/xb", "/xa", "/xc", placing::alike));
}

} // namespace
