// Goal: all of a joint counts, or nothing of it, wherever power fails, whichever heap is opened first, and whoever
// decides; and nothing that was acknowledged is lost. Method: joints that move amounts between heaps on a simulated
// disk, with a cut at every event, and agents and participants that are arrays with the disk's events as their times.
#include "tests/txn/files.hpp"

#include "src/link/joint.hpp"
#include <taiyen/taiyen.h>

#include <mutex>
#include <set>
#include <thread>

using namespace taiyen;
using namespace taiyen::test;

namespace {

constexpr const char *paths[] = {"a.ty", "b.ty", "c.ty"};

class heaps {
public:
    explicit heaps(const disk &files, size_t count = 2) : files_(&files), count_(count) {}
    ~heaps() { discard(); }

    ty_status open(size_t n, ty_report *report = nullptr) {
        ty_open_options options = with_log(*files_);
        return ty_open(paths[n], &options, &heap[n], report);
    }
    ty_status open() {
        for (size_t n = 0; n < count_; ++n)
            if (ty_status status = open(n))
                return status;
        return TY_OK;
    }
    ty_status join(const ty_agent *agent = nullptr, const ty_participant *participants = nullptr, size_t count = 0) {
        ty_group_options options = TY_GROUP_OPTIONS_INIT;
        options.heaps = heap;
        options.heap_count = count_;
        options.agent = agent;
        options.participants = participants;
        options.participant_count = count;
        return ty_group_open(&options, &group);
    }
    void discard() {
        ty_group_close(group);
        group = nullptr;
        for (ty_heap *&each : heap) {
            if (each) {
                EXPECT_OK(ty_discard(each));
            }
            each = nullptr;
        }
    }
    uint64_t number(size_t n) const {
        auto *place = static_cast<const uint64_t *>(ty_root(heap[n], "number"));
        return place ? *place : 0;
    }

    ty_heap *heap[3] = {};
    ty_group *group = nullptr;

private:
    const disk *files_;
    size_t count_;
};

void put(ty_heap *heap, ty_txn *txn, uint64_t number) {
    auto *place = static_cast<uint64_t *>(ty_root(heap, "number"));
    if (!place) {
        place = static_cast<uint64_t *>(ty_txn_alloc(txn, 8));
        ASSERT_NE(nullptr, place);
        ASSERT_OK(ty_txn_root_set(txn, "number", place));
    }
    ASSERT_OK(ty_declare(txn, place, 8));
    *place = number;
    void *other = ty_txn_alloc(txn, 64 + number % 200); // blocks come and go, too
    ASSERT_NE(nullptr, other);
    if (void *old = ty_root(heap, "block")) {
        ASSERT_OK(ty_txn_free(txn, old));
    }
    ASSERT_OK(ty_txn_root_set(txn, "block", other));
}

// The number in all of the group's heaps.
void change(heaps &in, ty_joint *joint, uint64_t number) {
    for (size_t n = 0; ty_joint_txn(joint, n); ++n)
        put(in.heap[n], ty_joint_txn(joint, n), number);
}
ty_status commit(heaps &in, uint64_t number) {
    ty_joint *joint = nullptr;
    if (ty_status status = ty_joint_begin(in.group, nullptr, &joint))
        return status;
    change(in, joint, number);
    return ty_joint_commit(joint);
}

struct acknowledged {
    uint64_t event;
    uint64_t number;
};

uint64_t newest(const std::vector<acknowledged> &all, uint64_t event) {
    uint64_t number = 0;
    for (const acknowledged &one : all)
        if (one.event <= event)
            number = one.number;
    return number;
}

TEST(joint_test, changes_all_heaps_or_none) {
    disk files;
    heaps in(files);
    ASSERT_OK(in.open());
    ASSERT_OK(in.join());
    ASSERT_OK(commit(in, 1));
    ty_joint *joint = nullptr;
    ASSERT_OK(ty_joint_begin(in.group, nullptr, &joint));
    change(in, joint, 2);
    EXPECT_EQ(nullptr, ty_joint_txn(joint, 2));
    ASSERT_OK(ty_joint_rollback(joint));
    EXPECT_EQ(1u, in.number(0));
    EXPECT_EQ(1u, in.number(1));
    ASSERT_OK(ty_joint_begin(in.group, nullptr, &joint));
    put(in.heap[1], ty_joint_txn(joint, 1), 3); // one alone
    ASSERT_OK(ty_joint_commit(joint));
    ASSERT_OK(ty_joint_begin(in.group, nullptr, &joint));
    ASSERT_OK(ty_joint_commit(joint)); // none
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
    ASSERT_OK(in.open());
    ASSERT_OK(in.join());
    const uint64_t begun = os::sim_event_count(files.get());
    for (uint64_t number = 1; number <= 10; ++number) {
        if (number % 4 == 0) {
            ty_joint *joint = nullptr;
            ASSERT_OK(ty_joint_begin(in.group, nullptr, &joint));
            change(in, joint, 1000);
            ASSERT_OK(ty_joint_rollback(joint));
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
        for (uint64_t event = begun; event <= end; ++event) {
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
                            EXPECT_EQ(seen, again.number(first)) << "what an open told is lost";
                        }
                    }
                    ASSERT_OK(after.open(first));
                }
            }
            for (size_t n = 1; n < count; ++n)
                EXPECT_EQ(after.number(0), after.number(n)) << "half of a joint";
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
    EXPECT_GT(doubts, 10u);
}
INSTANTIATE_TEST_SUITE_P(heaps, cuts, testing::Values(2, 3));

TEST(joint_test, cuts_within_the_opens_that_settle) {
    disk files;
    heaps in(files);
    ASSERT_OK(in.open());
    ASSERT_OK(in.join());
    ASSERT_OK(commit(in, 1));
    const uint64_t begun = os::sim_event_count(files.get());
    ASSERT_OK(commit(in, 2));
    const uint64_t end = os::sim_event_count(files.get());
    in.discard();
    for (const os::sim_cut how : {os::sim_cut::keep_all, os::sim_cut::process_death, os::sim_cut::random}) {
        for (uint64_t event = begun; event <= end; ++event) {
            disk died(os::sim_power_cut(files.get(), event, how, event));
            const uint64_t from = os::sim_event_count(died.get());
            uint64_t settled = 0;
            {
                heaps first(died);
                ASSERT_OK(first.open(event % 2));
                settled = first.number(event % 2);
            }
            const uint64_t to = os::sim_event_count(died.get());
            for (uint64_t cut = from; cut <= to; ++cut) {
                SCOPED_TRACE(testing::Message() << event << " " << cut << " " << int(how));
                disk again(os::sim_power_cut(died.get(), cut, os::sim_cut::drop_all, cut));
                heaps after(again);
                ASSERT_OK(after.open(0));
                ASSERT_OK(after.open(1));
                EXPECT_EQ(after.number(0), after.number(1));
                if (cut == to) {
                    EXPECT_EQ(settled, after.number(0));
                }
                if (HasFailure())
                    return;
            }
        }
    }
}

// The other heap is not there: nothing is lost, and it is settled once it is.
TEST(joint_test, waits_for_a_heap_that_is_missing) {
    disk files;
    heaps in(files);
    ASSERT_OK(in.open());
    ASSERT_OK(in.join());
    ASSERT_OK(commit(in, 1));
    const uint64_t begun = os::sim_event_count(files.get());
    ASSERT_OK(commit(in, 2));
    const uint64_t end = os::sim_event_count(files.get());
    in.discard();
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

// ---- Agents

// A database whose transactions are durable at an event of the disk.
struct database {
    const disk *files = nullptr;
    std::map<std::string, uint64_t> committed; // identifiers, and when
    std::set<std::string> never;
    uint64_t until = UINT64_MAX; // what was committed later is not there
    ty_status answer = TY_OK;
    bool commits_all_the_same = false;
    ty_status settles = TY_OK;
    int rollbacks = 0, forgotten = 0;

    ty_agent agent() { return {sizeof(ty_agent), "database", this, commit, rollback, settle}; }
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
    static ty_status settle(void *context, const char *id, bool *found) {
        auto &self = *static_cast<database *>(context);
        auto at = self.committed.find(id);
        *found = at != self.committed.end() && at->second <= self.until;
        if (!*found)
            self.never.insert(id);
        return self.settles;
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
        const ty_agent agent = database_.agent();
        EXPECT_OK(ty_register_agent(&agent));
    }
    ty_status join(heaps &in) {
        const ty_agent agent = database_.agent();
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
        database_.settles = TY_OK;
        heaps in(own);
        ASSERT_OK(in.open());
        ASSERT_OK(join(in));
        ASSERT_OK(commit(in, 1));
        database_.answer = TY_E_IN_DOUBT; // the connection broke
        database_.commits_all_the_same = committed;
        database_.settles = TY_E_IO;
        ty_joint *joint = nullptr;
        ASSERT_OK(ty_joint_begin(in.group, nullptr, &joint));
        change(in, joint, 2);
        EXPECT_EQ(TY_E_IN_DOUBT, ty_joint_commit(joint));
        EXPECT_EQ(TY_E_IN_DOUBT, ty_joint_commit(joint));
        EXPECT_EQ(TY_E_IN_DOUBT, ty_joint_rollback(joint));
        EXPECT_EQ(TY_E_BUSY, ty_close(in.heap[0]));
        disk cut(own.cut(os::sim_cut::drop_all)); // the process may die now, too
        database_.settles = TY_OK;
        EXPECT_EQ(committed ? TY_OK : TY_E_IO, ty_joint_commit(joint));
        EXPECT_EQ(committed ? 2u : 1u, in.number(0));
        EXPECT_EQ(committed ? 2u : 1u, in.number(1));
        in.discard();
        heaps after(cut);
        database_.settles = TY_E_IO;
        EXPECT_EQ(TY_E_IN_DOUBT, after.open());
        EXPECT_NE(nullptr, strstr(ty_error_text(), "database")) << ty_error_text();
        database_.settles = TY_OK;
        ASSERT_OK(after.open());
        EXPECT_EQ(committed ? 2u : 1u, after.number(0));
        EXPECT_EQ(committed ? 2u : 1u, after.number(1));
    }
}

// ---- Participants

struct queue {
    std::mutex lock; // one joint is told of while the next one prepares
    std::set<std::string> prepared, committed;
    int prepares_fail = 0, commits_fail = 0; // so many calls
    ty_participant participant() { return {sizeof(ty_participant), this, prepare, commit, rollback, recover}; }
    static ty_status prepare(void *context, const char *id) {
        auto &self = *static_cast<queue *>(context);
        std::lock_guard guard(self.lock);
        if (self.prepares_fail > 0 && self.prepares_fail-- > 0)
            return TY_E_SPACE;
        self.prepared.insert(id);
        return TY_OK;
    }
    static ty_status commit(void *context, const char *id) {
        auto &self = *static_cast<queue *>(context);
        std::lock_guard guard(self.lock);
        if (self.commits_fail > 0 && self.commits_fail-- > 0)
            return TY_E_IO;
        if (self.prepared.erase(id))
            self.committed.insert(id);
        return TY_OK;
    }
    static ty_status rollback(void *context, const char *id) {
        auto &self = *static_cast<queue *>(context);
        std::lock_guard guard(self.lock);
        self.prepared.erase(id);
        return TY_OK;
    }
    static ty_status recover(void *context, const char *prefix, void (*callback)(const char *, void *), void *to) {
        const std::set<std::string> all = static_cast<queue *>(context)->prepared;
        for (const std::string &id : all)
            if (id.starts_with(prefix))
                callback(id.c_str(), to);
        return TY_OK;
    }
};

TEST(participants, are_told_what_becomes_of_it) {
    disk files;
    queue queues[2];
    const ty_participant both[2] = {queues[0].participant(), queues[1].participant()};
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

TEST(participants, one_that_cannot_be_told_is_told_later) {
    disk files;
    queue one;
    const ty_participant participant = one.participant();
    heaps in(files, 1);
    ASSERT_OK(in.open());
    ASSERT_OK(in.join(nullptr, &participant, 1));
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
    ASSERT_OK(in.join(nullptr, &participant, 1)); // the next process tells it
    EXPECT_EQ(0u, one.prepared.size());
    EXPECT_EQ(3u, one.committed.size());
}

// Wherever power fails: what participants have prepared is committed if and only if the first heap has it.
TEST(participants, and_power_cuts) {
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
    ty_participant participant = noted.participant();
    participant.context = &noted;
    participant.prepare = [](void *context, const char *id) {
        auto &self = *static_cast<noting *>(context);
        self.prepared.insert(id);
        self.to->push_back({os::sim_event_count(self.files->get()), self.prepared, self.committed});
        return TY_OK;
    };
    participant.commit = [](void *context, const char *id) {
        auto &self = *static_cast<noting *>(context);
        if (self.prepared.erase(id))
            self.committed.insert(id);
        self.to->push_back({os::sim_event_count(self.files->get()), self.prepared, self.committed});
        return TY_OK;
    };
    participant.rollback = [](void *context, const char *id) {
        static_cast<noting *>(context)->prepared.erase(id);
        return TY_OK;
    };
    participant.recover = [](void *context, const char *prefix, void (*callback)(const char *, void *), void *to) {
        return queue::recover(static_cast<queue *>(static_cast<noting *>(context)), prefix, callback, to);
    };
    heaps in(files);
    ASSERT_OK(in.open());
    ASSERT_OK(in.join(nullptr, &participant, 1));
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
                const uint64_t told = after.number(1);
                after.discard();
                ASSERT_OK(other.open());
                EXPECT_EQ(other.number(0), other.number(1)) << "what the first heap said was not durable";
                EXPECT_GE(other.number(1), told - (told > 0));
            }
            ASSERT_OK(after.open());
            ASSERT_OK(after.join(nullptr, &participant, 1));
            moments = kept;
            EXPECT_EQ(0u, noted.prepared.size());
            EXPECT_EQ(noted.committed.size(), after.number(0));
            EXPECT_EQ(after.number(0), after.number(1));
            const uint64_t seen = after.number(0);
            disk second(cut.cut(os::sim_cut::drop_all));
            after.discard();
            heaps again(second);
            ASSERT_OK(again.open());
            EXPECT_EQ(seen, again.number(0)) << "the participant was told so";
            EXPECT_EQ(seen, again.number(1));
            if (HasFailure())
                return;
        }
    }
}

// What the attack found.

// A later joint that changes the first heap alone must not take the answer from one that a heap may still ask for.
TEST(participants, each_joint_has_all_heaps) {
    disk files;
    queue one;
    const ty_participant participant = one.participant();
    heaps in(files);
    ASSERT_OK(in.open());
    ASSERT_OK(in.join(nullptr, &participant, 1));
    ASSERT_OK(commit(in, 1));
    ty_joint *joint = nullptr;
    ASSERT_OK(ty_joint_begin(in.group, nullptr, &joint));
    put(in.heap[0], ty_joint_txn(joint, 0), 2);
    ASSERT_OK(ty_joint_commit(joint));
    disk cut(files.cut(os::sim_cut::drop_all)); // the outcomes of both are not durable
    in.discard();
    heaps after(cut);
    ASSERT_OK(after.open(1));
    EXPECT_EQ(1u, after.number(1));
    ASSERT_OK(after.open(0));
    EXPECT_EQ(2u, after.number(0));
}

// The first heap's gate opens before its commit is durable: the next joint, which begins then, must not tell of it.
TEST(participants, are_told_of_what_is_durable) {
    struct watched : queue {
        std::atomic<bool> writing{false}, early{false}, begins{false};
        heaps *in = nullptr;
        std::thread next;
    } one;
    disk files;
    ty_participant participant = one.participant();
    participant.context = &one;
    participant.commit = [](void *context, const char *id) {
        auto &self = *static_cast<watched *>(context);
        self.early = self.early || self.writing;
        return queue::commit(static_cast<queue *>(&self), id);
    };
    participant.prepare = [](void *context, const char *id) {
        return queue::prepare(static_cast<queue *>(static_cast<watched *>(context)), id);
    };
    participant.rollback = [](void *context, const char *id) {
        return queue::rollback(static_cast<queue *>(static_cast<watched *>(context)), id);
    };
    participant.recover = [](void *context, const char *prefix, void (*callback)(const char *, void *), void *to) {
        return queue::recover(static_cast<queue *>(static_cast<watched *>(context)), prefix, callback, to);
    };
    heaps in(files, 1);
    one.in = &in;
    ASSERT_OK(in.open());
    ASSERT_OK(in.join(nullptr, &participant, 1));
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
            for (int i = 0; i < 5000 && !self.early; ++i) // time enough to tell, if it does
                std::this_thread::yield();
            self.writing = false;
        },
        &one);
    ASSERT_OK(commit(in, 2));
    one.next.join();
    os::sim_set_write_hook(files.get(), nullptr, nullptr);
    EXPECT_FALSE(one.early) << "a participant has committed what a power cut could take from the heap";
    EXPECT_EQ(3u, one.committed.size());
}

TEST(participants, a_group_is_there_once) {
    disk files;
    queue one;
    const ty_participant participant = one.participant();
    heaps in(files);
    ASSERT_OK(in.open());
    ASSERT_OK(in.join(nullptr, &participant, 1));
    ty_group *first = std::exchange(in.group, nullptr);
    EXPECT_EQ(TY_E_EXISTS, in.join(nullptr, &participant, 1));
    ASSERT_OK(in.join()); // without participants it is another one
    ASSERT_OK(commit(in, 1));
    ty_group_close(first);
}

TEST(participants, one_that_may_be_prepared_is_rolled_back) {
    disk files;
    queue one;
    ty_participant participant = one.participant();
    participant.prepare = [](void *context, const char *id) {
        static_cast<queue *>(context)->prepared.insert(id);
        return TY_E_IN_DOUBT;
    };
    heaps in(files);
    ASSERT_OK(in.open());
    ASSERT_OK(in.join(nullptr, &participant, 1));
    EXPECT_EQ(TY_E_IO, commit(in, 1));
    EXPECT_EQ(0u, one.prepared.size());
    EXPECT_EQ(0u, in.number(0));
}

TEST(joint_test, is_its_threads) {
    disk files;
    heaps in(files);
    ASSERT_OK(in.open());
    ASSERT_OK(in.join());
    ty_joint *joint = nullptr;
    ASSERT_OK(ty_joint_begin(in.group, nullptr, &joint));
    change(in, joint, 1);
    std::thread([&] {
        EXPECT_EQ(TY_E_ARGUMENT, ty_joint_rollback(joint));
        EXPECT_EQ(TY_E_ARGUMENT, ty_joint_commit(joint));
    }).join();
    ASSERT_OK(ty_joint_commit(joint));
    EXPECT_EQ(1u, in.number(1));
}

// Opens that come to nothing leave the log as it is, and one with no room at all is settled by a snapshot.
TEST(joint_test, may_be_tried_for_long) {
    disk files;
    heaps in(files);
    ASSERT_OK(in.open());
    ASSERT_OK(in.join());
    ASSERT_OK(commit(in, 1));
    ASSERT_OK(commit(in, 2));
    disk cut(files.cut(os::sim_cut::drop_all));
    in.discard();
    const ty_storage *s = cut.storage();
    ASSERT_OK(s->rename(s->context, paths[1], "away"));
    heaps after(cut);
    for (int i = 0; i < 300; ++i)
        ASSERT_EQ(TY_E_IN_DOUBT, after.open(0));
    ASSERT_OK(s->rename(s->context, "away", paths[1]));
    ASSERT_OK(after.open());
    EXPECT_EQ(2u, after.number(0));
    EXPECT_EQ(2u, after.number(1));
}

// ---- Use

TEST(joint_test, wrong_use_is_refused) {
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
    ty_agent agent{};
    EXPECT_EQ(TY_E_ARGUMENT, ty_register_agent(&agent));
    options.heaps = in.heap;
    options.heap_count = 2;
    options.agent = &agent;
    EXPECT_EQ(TY_E_ARGUMENT, ty_group_open(&options, &group));
    ASSERT_OK(in.join());
    ty_txn *txn = nullptr;
    ty_joint *joint = nullptr;
    ASSERT_OK(ty_begin(in.heap[1], nullptr, &txn));
    EXPECT_EQ(TY_E_ARGUMENT, ty_joint_begin(in.group, nullptr, &joint));
    ASSERT_OK(ty_rollback(txn));
    ASSERT_OK(ty_begin(in.heap[0], nullptr, &txn)); // nothing of the other one is left under way
    ASSERT_OK(ty_rollback(txn));
    ASSERT_OK(commit(in, 1));
}

// Threads, over two groups that share heaps: none waits for ever, and nothing is half done.
TEST(joint_test, threads_and_groups_that_share_heaps) {
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
                ty_joint *joint = nullptr;
                const int g = (t + i) % 3;
                ASSERT_OK(ty_joint_begin(groups[g], nullptr, &joint));
                for (size_t n = 0; n < 2; ++n) {
                    auto *place = static_cast<uint64_t *>(ty_root(pairs[g][n], "number"));
                    ASSERT_OK(ty_declare(ty_joint_txn(joint, n), place, 8));
                    *place += n ? 1 : UINT64_MAX;
                }
                ASSERT_OK(i % 5 ? ty_joint_commit(joint) : ty_joint_rollback(joint));
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
