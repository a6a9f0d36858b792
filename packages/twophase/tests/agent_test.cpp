// Goal: an agent that commits last decides on a distributed transaction, wherever power fails, also if it does not
// answer. Method: heaps on a simulated disk, and an agent that is a table with the disk's events as its times.
#include "dtxn_heaps.hpp"

#include <map>
#include <set>

using namespace taiyen;
using namespace taiyen::test;

namespace {

// A database whose transactions are durable at an event of the disk.
struct database {
    const disk *files = nullptr;
    std::map<std::string, uint64_t> committed; // identifiers, and when
    std::set<std::string> never;
    uint64_t until = UINT64_MAX; // what was committed later is not there
    ty_status answer = TY_OK;
    bool commits_all_the_same = false;
    ty_status resolves = TY_OK;
    int rollbacks = 0, forgotten = 0;

    ty_last_agent agent() { return {sizeof(ty_last_agent), "database", this, commit, rollback, resolve}; }
    static ty_status commit(void *context, const char *id, const char *done) {
        auto &self = *static_cast<database *>(context);
        if (self.answer == TY_OK || self.commits_all_the_same) {
            EXPECT_EQ(0u, self.never.count(id));
            self.committed[id] = os::sim_event_count(self.files->get());
            if (done)
                self.forgotten += 1;
        }
        return self.answer;
    }
    static void rollback(void *context) { static_cast<database *>(context)->rollbacks += 1; }
    static ty_status resolve(void *context, const char *id, bool *found) {
        auto &self = *static_cast<database *>(context);
        auto at = self.committed.find(id);
        *found = at != self.committed.end() && at->second <= self.until;
        if (!*found)
            self.never.insert(id);
        return self.resolves;
    }
};
database &the_database() {
    static database one;
    return one;
}

class agent_test : public testing::Test {
protected:
    agent_test() {
        database_ = database();
        database_.files = &files;
        const ty_last_agent agent = database_.agent();
        EXPECT_OK(ty_register_last_agent(&agent));
    }
    ty_status join(heaps &in) {
        const ty_last_agent agent = database_.agent();
        return in.join(&agent);
    }
    disk files;
    database &database_ = the_database();
};

TEST_F(agent_test, decides_wherever_power_fails) {
    heaps in(files);
    ASSERT_OK(in.open());
    ASSERT_OK(join(in));
    const uint64_t begun = os::sim_event_count(files.get());
    std::vector<acknowledged> all;
    for (uint64_t number = 1; number <= 8; ++number) {
        ASSERT_OK(commit(in, number));
        all.push_back({os::sim_event_count(files.get()), number});
        if (number == 5) {
            ASSERT_OK(ty_snapshot(in.heap[0]));
        }
    }
    EXPECT_GT(database_.forgotten, 4);
    const uint64_t end = os::sim_event_count(files.get());
    in.discard();
    int doubts = 0;
    for (const os::sim_cut how : {os::sim_cut::keep_all, os::sim_cut::drop_all, os::sim_cut::process_death}) {
        for (uint64_t event = begun; event <= end; ++event) {
            SCOPED_TRACE(event);
            disk cut(os::sim_power_cut(files.get(), event, how, event));
            database_.until = event;
            database_.never.clear();
            heaps after(cut);
            ty_report report{};
            report.struct_size = sizeof report;
            ASSERT_OK(after.open(0, &report));
            doubts += report.in_doubt != 0;
            ASSERT_OK(after.open(1, &report));
            doubts += report.in_doubt != 0;
            uint64_t number = 0; // the database's
            for (auto &one : database_.committed)
                number += one.second <= event;
            EXPECT_EQ(number, after.number(0));
            EXPECT_EQ(number, after.number(1));
            EXPECT_GE(number, newest(all, event));
            if (HasFailure())
                return;
        }
    }
    EXPECT_GT(doubts, 5);
}

TEST_F(agent_test, says_no) {
    heaps in(files);
    ASSERT_OK(in.open());
    ASSERT_OK(join(in));
    ASSERT_OK(commit(in, 1));
    database_.answer = TY_E_SPACE;
    EXPECT_EQ(TY_E_SPACE, commit(in, 2));
    EXPECT_EQ(1u, in.number(0));
    EXPECT_EQ(1u, in.number(1));
    EXPECT_EQ(1, database_.rollbacks);
    database_.answer = TY_OK;
    ASSERT_OK(commit(in, 3));
    in.discard();
    ASSERT_OK(in.open());
    EXPECT_EQ(3u, in.number(1));
}

TEST_F(agent_test, does_not_know) {
    for (const bool committed : {true, false}) {
        SCOPED_TRACE(committed);
        disk own;
        database_.files = &own;
        database_.answer = TY_OK;
        database_.resolves = TY_OK;
        heaps in(own);
        ASSERT_OK(in.open());
        ASSERT_OK(join(in));
        ASSERT_OK(commit(in, 1));
        database_.answer = TY_E_IN_DOUBT; // the connection broke
        database_.commits_all_the_same = committed;
        database_.resolves = TY_E_IO;
        ty_dtxn *dtxn = nullptr;
        ASSERT_OK(ty_dtxn_begin(in.group, nullptr, &dtxn));
        change(in, dtxn, 2);
        EXPECT_EQ(TY_E_IN_DOUBT, ty_dtxn_commit(dtxn));
        EXPECT_EQ(TY_E_IN_DOUBT, ty_dtxn_commit(dtxn));
        EXPECT_EQ(TY_E_IN_DOUBT, ty_dtxn_rollback(dtxn));
        EXPECT_EQ(TY_E_BUSY, ty_close(in.heap[0]));
        disk cut(own.cut(os::sim_cut::drop_all)); // the process may die now, too
        database_.resolves = TY_OK;
        EXPECT_EQ(committed ? TY_OK : TY_E_IO, ty_dtxn_commit(dtxn));
        EXPECT_EQ(committed ? 2u : 1u, in.number(0));
        EXPECT_EQ(committed ? 2u : 1u, in.number(1));
        in.discard();
        heaps after(cut);
        database_.resolves = TY_E_IO;
        EXPECT_EQ(TY_E_IN_DOUBT, after.open());
        EXPECT_NE(nullptr, strstr(ty_error_text(), "database")) << ty_error_text();
        database_.resolves = TY_OK;
        ASSERT_OK(after.open());
        EXPECT_EQ(committed ? 2u : 1u, after.number(0));
        EXPECT_EQ(committed ? 2u : 1u, after.number(1));
    }
}

} // namespace
