// Goal: resource managers that can be prepared commit what the first heap has, and nothing else. Method: heaps on a
// simulated disk, and resource managers that are sets of identifiers.
#include "dtxn_heaps.hpp"
#include "queue.hpp"

#include "packages/twophase/src/dtxn.hpp"

#include <thread>

using namespace taiyen;
using namespace taiyen::twophase;
using namespace taiyen::test;

namespace {

TEST(resource_managers, are_notified_of_the_outcome) {
    disk files;
    queue queues[2];
    const ty_resource_manager both[2] = {queues[0].resource_manager(), queues[1].resource_manager()};
    heaps in(files);
    ASSERT_OK(in.open());
    ASSERT_OK(in.join(nullptr, both, 2));
    ASSERT_OK(commit(in, 1));
    EXPECT_EQ(1u, queues[1].committed.size());
    queues[1].prepares_fail = 1;
    EXPECT_EQ(TY_E_SPACE, commit(in, 2)); // it cannot prepare
    EXPECT_EQ(1u, in.number(0));
    EXPECT_EQ(1u, in.number(1));
    EXPECT_EQ(0u, queues[0].prepared.size());
    ASSERT_OK(commit(in, 3));
    EXPECT_EQ(2u, queues[0].committed.size());
    EXPECT_EQ(2u, queues[1].committed.size());
}

TEST(resource_managers, one_that_cannot_be_notified_is_notified_later) {
    disk files;
    queue one;
    const ty_resource_manager resource_manager = one.resource_manager();
    heaps in(files, 1);
    ASSERT_OK(in.open());
    ASSERT_OK(in.join(nullptr, &resource_manager, 1));
    one.commits_fail = 2;
    ASSERT_OK(commit(in, 1)); // it is committed, and the queue does not know
    EXPECT_EQ(1u, one.prepared.size());
    EXPECT_EQ(TY_E_IN_DOUBT, commit(in, 2)) << "what it has prepared would be forgotten";
    EXPECT_EQ(1u, in.number(0));
    ASSERT_OK(commit(in, 2));
    EXPECT_EQ(2u, one.committed.size());
    one.commits_fail = 1;
    ASSERT_OK(commit(in, 3));
    EXPECT_EQ(1u, one.prepared.size());
    in.discard();
    ASSERT_OK(in.open());
    ASSERT_OK(in.join(nullptr, &resource_manager, 1)); // the next process notifies it
    EXPECT_EQ(0u, one.prepared.size());
    EXPECT_EQ(3u, one.committed.size());
}

// Wherever power fails: what resource managers have prepared is committed if and only if the first heap has it.
TEST(resource_managers, and_power_cuts) {
    disk files;
    queue one;
    struct moment {
        uint64_t event;
        std::set<std::string> prepared, committed;
    };
    std::vector<moment> moments;
    struct noting : queue {
        std::vector<moment> *to;
        const disk *files;
    } noted;
    noted.to = &moments;
    noted.files = &files;
    ty_resource_manager resource_manager = noted.resource_manager();
    resource_manager.context = &noted;
    resource_manager.prepare = [](void *context, const char *id) {
        auto &self = *static_cast<noting *>(context);
        self.prepared.insert(id);
        self.to->push_back({os::sim_event_count(self.files->get()), self.prepared, self.committed});
        return TY_OK;
    };
    resource_manager.commit = [](void *context, const char *id) {
        auto &self = *static_cast<noting *>(context);
        if (self.prepared.erase(id))
            self.committed.insert(id);
        self.to->push_back({os::sim_event_count(self.files->get()), self.prepared, self.committed});
        return TY_OK;
    };
    resource_manager.rollback = [](void *context, const char *id) {
        static_cast<noting *>(context)->prepared.erase(id);
        return TY_OK;
    };
    resource_manager.recover = [](void *context, const char *prefix, void (*callback)(const char *, void *), void *to) {
        return queue::recover(static_cast<queue *>(static_cast<noting *>(context)), prefix, callback, to);
    };
    joined_heaps in(files, 2, &resource_manager);
    const uint64_t begun = os::sim_event_count(files.get());
    for (uint64_t number = 1; number <= 8; ++number) {
        ASSERT_OK(commit(in, number));
        if (number == 4) {
            ASSERT_OK(ty_snapshot(in.heap[0]));
        }
    }
    const uint64_t end = os::sim_event_count(files.get());
    in.discard();
    for (const os::sim_cut how : {os::sim_cut::keep_all, os::sim_cut::drop_all, os::sim_cut::process_death}) {
        for (uint64_t event = begun; event <= end; ++event) {
            SCOPED_TRACE(event);
            disk cut(os::sim_power_cut(files.get(), event, how, event));
            noted.prepared.clear();
            noted.committed.clear();
            for (const moment &each : moments)
                if (each.event <= event) {
                    noted.prepared = each.prepared;
                    noted.committed = each.committed;
                }
            const std::vector<moment> kept = moments;
            heaps after(cut);
            if (event % 2) {
                ASSERT_OK(after.open(0)); // it is asked while it is open
            }
            ASSERT_OK(after.open(1));
            {
                disk at_once(cut.cut(os::sim_cut::drop_all));
                heaps other(at_once);
                const uint64_t reported = after.number(1);
                after.discard();
                ASSERT_OK(other.open());
                EXPECT_EQ(other.number(0), other.number(1)) << "what the first heap said was not durable";
                EXPECT_GE(other.number(1), reported - (reported > 0));
            }
            ASSERT_OK(after.open());
            ASSERT_OK(after.join(nullptr, &resource_manager, 1));
            moments = kept;
            EXPECT_EQ(0u, noted.prepared.size());
            EXPECT_EQ(noted.committed.size(), after.number(0));
            EXPECT_EQ(after.number(0), after.number(1));
            const uint64_t seen = after.number(0);
            disk second(cut.cut(os::sim_cut::drop_all));
            after.discard();
            heaps again(second);
            ASSERT_OK(again.open());
            EXPECT_EQ(seen, again.number(0)) << "the resource manager was notified";
            EXPECT_EQ(seen, again.number(1));
            if (HasFailure())
                return;
        }
    }
}

// What the attack found.

// A later distributed transaction that changes the first heap alone must not take the answer from one that a heap may
// still ask for.
TEST(resource_managers, each_dtxn_has_all_heaps) {
    disk files;
    queue one;
    const ty_resource_manager resource_manager = one.resource_manager();
    joined_heaps in(files, 2, &resource_manager);
    ASSERT_OK(commit(in, 1));
    ty_dtxn *dtxn = nullptr;
    ASSERT_OK(ty_dtxn_begin(in.group, nullptr, &dtxn));
    put(in.heap[0], ty_dtxn_txn(dtxn, 0), 2);
    ASSERT_OK(ty_dtxn_commit(dtxn));
    disk cut(files.cut(os::sim_cut::drop_all)); // the outcomes of both are not durable
    in.discard();
    heaps after(cut);
    ASSERT_OK(after.open(1));
    EXPECT_EQ(1u, after.number(1));
    ASSERT_OK(after.open(0));
    EXPECT_EQ(2u, after.number(0));
}

// The first heap's reader-writer lock opens before its commit is durable: the next distributed transaction, which
// begins then, must not notify it.
TEST(resource_managers, are_notified_of_what_is_durable) {
    struct watched : queue {
        std::atomic<bool> writing{false}, early{false}, begins{false};
        heaps *in = nullptr;
        std::thread next;
    } one;
    disk files;
    ty_resource_manager resource_manager = one.resource_manager();
    resource_manager.context = &one;
    resource_manager.commit = [](void *context, const char *id) {
        auto &self = *static_cast<watched *>(context);
        self.early = self.early || self.writing;
        return queue::commit(static_cast<queue *>(&self), id);
    };
    resource_manager.prepare = [](void *context, const char *id) {
        return queue::prepare(static_cast<queue *>(static_cast<watched *>(context)), id);
    };
    resource_manager.rollback = [](void *context, const char *id) {
        return queue::rollback(static_cast<queue *>(static_cast<watched *>(context)), id);
    };
    resource_manager.recover = [](void *context, const char *prefix, void (*callback)(const char *, void *), void *to) {
        return queue::recover(static_cast<queue *>(static_cast<watched *>(context)), prefix, callback, to);
    };
    heaps in(files, 1);
    one.in = &in;
    ASSERT_OK(in.open());
    ASSERT_OK(in.join(nullptr, &resource_manager, 1));
    ASSERT_OK(commit(in, 1));
    os::sim_set_write_hook(
        files.get(),
        [](void *context, bool done) {
            auto &self = *static_cast<watched *>(context);
            if (done || self.next.joinable())
                return;
            self.writing = true;
            self.next = std::thread([&self] {
                self.begins = true;
                EXPECT_OK(commit(*self.in, 3));
            });
            while (!self.begins)
                std::this_thread::yield();
            for (int i = 0; i < 5000 && !self.early; ++i) // time enough to notify it, if it does
                std::this_thread::yield();
            self.writing = false;
        },
        &one);
    ASSERT_OK(commit(in, 2));
    one.next.join();
    os::sim_set_write_hook(files.get(), nullptr, nullptr);
    EXPECT_FALSE(one.early) << "a resource manager has committed what a power cut could take from the heap";
    EXPECT_EQ(3u, one.committed.size());
}

TEST(resource_managers, a_group_is_there_once) {
    disk files;
    queue one;
    const ty_resource_manager resource_manager = one.resource_manager();
    joined_heaps in(files, 2, &resource_manager);
    ty_group *first = std::exchange(in.group, nullptr);
    EXPECT_EQ(TY_E_EXISTS, in.join(nullptr, &resource_manager, 1));
    ASSERT_OK(in.join()); // without resource managers it is another one
    ASSERT_OK(commit(in, 1));
    ty_group_close(first);
}

TEST(resource_managers, one_that_may_be_prepared_is_rolled_back) {
    disk files;
    queue one;
    ty_resource_manager resource_manager = one.resource_manager();
    resource_manager.prepare = [](void *context, const char *id) {
        static_cast<queue *>(context)->prepared.insert(id);
        return TY_E_IN_DOUBT;
    };
    joined_heaps in(files, 2, &resource_manager);
    EXPECT_EQ(TY_E_IO, commit(in, 1));
    EXPECT_EQ(0u, one.prepared.size());
    EXPECT_EQ(0u, in.number(0));
}

} // namespace
