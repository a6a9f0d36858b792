// Goal: whatever is killed, backed up and put back of a group's heaps, at any moment and crossed, each open is right or
// refused: an acknowledged distributed transaction is never gone with TY_OK, files of one moment always open, and after
// a refusal the right files still do. Method: random histories of groups of two and three heaps on a simulated disk:
// distributed transactions of one thread and of several, with a resource manager in every third one, closes, kills and
// power cuts at any event, copies of any moment in place of any members, opens for writing and reading, alone and
// together, groups. What cannot be recognised (distributed.h, "Backups") is worked out from the files
// beforehand, and nothing else may happen. TAIYEN_GROUP_SEED: of the first history.
#include "dtxn_heaps.hpp"
#include "queue.hpp"

#include "packages/twophase/src/dtxn.hpp"
#include "tests/effort.hpp"

#include <algorithm>
#include <deque>
#include <random>
#include <thread>

using namespace taiyen;
using namespace taiyen::twophase;
using namespace taiyen::test;

namespace {

// What the files of a heap say of the group.
struct content {
    uint64_t number = 0;   // of the last distributed transaction that is resolved
    uint64_t in_doubt = 0; // 0: none
};
content content_in(const disk &files, size_t n) {
    content found;
    ty_open_options options = with_log(files);
    options.mode = TY_OPEN_READ_ONLY;
    options.outcome = [](const ty_in_doubt_txn *doubt, void *context) {
        dtxn_description what;
        EXPECT_TRUE(dtxn_read(doubt->description, doubt->description_bytes, &what));
        static_cast<content *>(context)->in_doubt = what.number;
        return TY_OUTCOME_ROLLBACK;
    };
    options.outcome_context = &found;
    ty_heap *heap = nullptr;
    EXPECT_OK(ty_open(paths[n], &options, &heap, nullptr));
    const dtxn_entry *entry = nullptr, *end = nullptr;
    EXPECT_OK(dtxn_entries(heap, &entry, &end));
    found.number = entry != end ? entry->number : 0;
    EXPECT_OK(ty_close(heap));
    return found;
}

// Files of all heaps, of one moment.
struct moment {
    std::shared_ptr<disk> files;
    uint64_t acknowledged = 0; // then
    uint64_t session = 0;      // in which open of the group; 0: it was closed
};

// What a resource manager had, from an event on.
struct queue_state {
    uint64_t event;
    std::set<std::string> prepared, committed;
};

struct counts {
    uint64_t rounds, opens, refused, mismatches, unrecognised, doubts, copies_back;
};

class history {
public:
    history(uint64_t seed, counts &all) : random_(seed), all_(all), count_(2 + seed % 2), has_queue_(seed % 3 == 0) {
        now_.files = std::make_shared<disk>();
    }

    void round() {
        ++all_.rounds;
        run();
        if (!testing::Test::HasFailure() && !kept_.empty() && chance(3, 4))
            try_other_files();
    }

private:
    uint64_t upto(uint64_t most) { return random_() % (most + 1); }
    bool chance(uint64_t some, uint64_t of) { return random_() % of < some; }

    std::vector<size_t> any_order() {
        std::vector<size_t> order(count_);
        for (size_t n = 0; n < count_; ++n)
            order[n] = n;
        std::shuffle(order.begin(), order.end(), random_);
        return order;
    }

    // ---- A process: opens, distributed transactions, an end

    void run() {
        const disk &files = *now_.files;
        heaps in(files, count_);
        std::vector<acknowledged> all{{0, now_.acknowledged}};
        for (size_t n : any_order()) {
            ty_report report{};
            report.struct_size = sizeof report;
            ASSERT_OK(in.open(n, &report)) << "files of one moment";
            all_.doubts += report.in_doubt != 0;
        }
        value_ = in.number(0);
        for (size_t n = 1; n < count_; ++n)
            ASSERT_EQ(value_, in.number(n)) << "half of a distributed transaction";
        ASSERT_GE(value_, now_.acknowledged) << "an acknowledged distributed transaction is gone";
        const uint64_t opened = os::sim_event_count(files.get());
        all.push_back({opened, value_});
        queue reported;
        std::vector<queue_state> states;
        take(reported);
        states.push_back({0, reported.prepared, reported.committed});
        reported.changed = [&] {
            states.push_back({os::sim_event_count(files.get()), reported.prepared, reported.committed});
        };
        ASSERT_OK(join(in, reported));
        if (goes_on_)
            before_ = reported.committed.size() - value_;
        goes_on_ = false;
        check(reported, value_);
        const uint64_t session = ++sessions_;
        const uint64_t first_dtxn = os::sim_event_count(files.get());
        for (uint64_t dtxns = upto(3); dtxns > 0; --dtxns) {
            ASSERT_NO_FATAL_FAILURE(chance(1, 8) ? commit_many(files, in, all) : commit_one(files, in, all));
        }
        if (chance(1, 6)) {
            ASSERT_OK(ty_snapshot(in.heap[upto(count_ - 1)]));
        }
        const uint64_t ended = os::sim_event_count(files.get());
        const bool closes = chance(1, 3);
        if (closes) {
            ASSERT_NO_FATAL_FAILURE(close(in));
        }
        const uint64_t end = os::sim_event_count(files.get());
        const uint64_t last = closes ? end : opened + upto(ended - opened);
        if (!closes)
            in.discard();
        if (chance(1, 2)) {
            const uint64_t at = opened + upto(last - opened);
            keep(files, at, newest(all, at), at < ended ? session : 0);
        }
        if (closes && chance(1, 2))
            keep(files, end, value_, 0);
        static constexpr os::sim_cut ways[] = {os::sim_cut::keep_all, os::sim_cut::drop_all, os::sim_cut::random,
                                               os::sim_cut::prefix, os::sim_cut::process_death};
        const os::sim_cut how = ways[upto(4)];
        now_ = {cut_at(files, last, how, random_()), newest(all, last), closes ? 0 : session};
        opening_ = last < first_dtxn;
        for (const queue_state &each : states)
            if (each.event <= last)
                queue_ = each;
    }

    // ---- The resource manager: it has what the first heap has. JO4

    ty_status join(heaps &in, queue &reported) {
        const ty_resource_manager one = reported.resource_manager();
        return in.join(nullptr, has_queue_ ? &one : nullptr, has_queue_);
    }
    void take(queue &reported) const {
        reported.prepared = queue_.prepared;
        reported.committed = queue_.committed;
    }
    void check(const queue &reported, uint64_t number) const {
        EXPECT_TRUE(reported.prepared.empty());
        if (has_queue_) {
            EXPECT_EQ(before_ + number, reported.committed.size())
                << "the resource manager has other distributed transactions than the heaps";
        }
    }

    void commit_one(const disk &files, heaps &in, std::vector<acknowledged> &all) {
        if (chance(1, 10)) {
            ty_dtxn *dtxn = nullptr;
            ASSERT_OK(ty_dtxn_begin(in.group, nullptr, &dtxn));
            change(in, dtxn, 1'000'000);
            ASSERT_OK(ty_dtxn_rollback(dtxn));
        }
        ASSERT_OK(commit(in, ++value_));
        all.push_back({os::sim_event_count(files.get()), value_});
    }
    // Distributed transactions that are grouped, if they meet.
    void commit_many(const disk &files, heaps &in, std::vector<acknowledged> &all) {
        std::vector<std::thread> threads;
        std::mutex lock;
        for (int t = 0; t < 3; ++t)
            threads.emplace_back([&] {
                ty_dtxn *dtxn = nullptr;
                ASSERT_OK(ty_dtxn_begin(in.group, nullptr, &dtxn));
                const uint64_t own = in.number(0) + 1;
                change(in, dtxn, own);
                ASSERT_OK(ty_dtxn_commit(dtxn));
                std::lock_guard guard(lock);
                const uint64_t event = os::sim_event_count(files.get());
                value_ = std::max(value_, own);
                all.push_back({event, value_});
            });
        for (std::thread &each : threads)
            each.join();
    }
    void close(heaps &in) {
        ty_group_close(in.group);
        in.group = nullptr;
        for (size_t n : any_order()) {
            ASSERT_OK(ty_close(in.heap[n]));
            in.heap[n] = nullptr;
        }
    }
    void keep(const disk &files, uint64_t event, uint64_t value, uint64_t session) {
        kept_.push_back({cut_at(files, event, os::sim_cut::keep_all, 1), value, session});
        if (kept_.size() > 5)
            kept_.pop_front();
    }

    // ---- Other files in place of some

    void try_other_files() {
        const disk_owner trial = copy_of(*now_.files);
        const moment *of[3] = {&now_, &now_, &now_};
        const moment *one = &kept_[upto(kept_.size() - 1)];
        const bool all_of_one = chance(1, 5);
        for (size_t n = 0; n < count_; ++n)
            if (all_of_one || chance(1, 2))
                of[n] = all_of_one ? one : &kept_[upto(kept_.size() - 1)];
        bool same = true;
        for (size_t n = 0; n < count_; ++n) {
            if (of[n] != &now_) {
                ASSERT_NO_FATAL_FAILURE(copy_member(*of[n]->files, *trial, n));
            }
            same = same && of[n] == of[0];
        }
        bool unrecognised[3] = {};
        if (!same)
            find_unrecognised(*trial, of, unrecognised);
        const bool any = unrecognised[0] || unrecognised[1] || unrecognised[2];
        all_.unrecognised += any;
        queue reported;
        take(reported);
        if (chance(1, 3))
            read_all(*trial, of, same, unrecognised);
        const bool joined = write_all(*trial, of, same, unrecognised, reported);
        if (testing::Test::HasFailure())
            return;
        if (!joined && !same) {
            EXPECT_EQ(queue_.prepared, reported.prepared) << "what is refused has notified the resource manager";
        }
        if (!same && !any && !joined)
            come_back(*trial, of, reported);
        if (same && of[0] != &now_ && chance(1, 2)) { // it goes on from the backup
            now_ = {cut_at(*trial, os::sim_event_count(trial->get()), os::sim_cut::drop_all, 1), of[0]->acknowledged,
                    0};
            queue_ = {0, reported.prepared, reported.committed};
            goes_on_ = true;
        }
    }

    // A member in doubt, and another one whose files are a copy from within the same session, after the distributed
    // transaction before. What it has in doubt may be rolled back.
    void find_unrecognised(const disk &trial, const moment *const *of, bool *unrecognised) {
        content has[3];
        bool of_one_session = false;
        for (size_t n = 1; n < count_; ++n)
            for (size_t q = 0; q < n; ++q)
                of_one_session |= of[q] != of[n] && of[q]->session && of[q]->session == of[n]->session;
        if (!of_one_session)
            return;
        for (size_t n = 0; n < count_; ++n)
            has[n] = content_in(trial, n);
        for (size_t n = 0; n < count_; ++n)
            for (size_t q = 0; q < count_; ++q) {
                const bool before = has[q].number == has[n].number || has[q].in_doubt == has[n].number;
                if (has[n].in_doubt && has[n].number && of[q] != of[n] && of[q]->session &&
                    of[q]->session == of[n]->session && before && has[q].in_doubt != has[n].in_doubt)
                    for (size_t m = 0; m < count_; ++m)
                        unrecognised[m] = unrecognised[m] || has[m].in_doubt == has[n].in_doubt;
            }
    }

    void expect_right(ty_status status, ty_heap *heap, const moment &of, bool same, bool unrecognised) {
        ++all_.opens;
        if (status) {
            ++all_.refused;
            EXPECT_EQ(TY_E_IN_DOUBT, status) << ty_error_text();
            EXPECT_FALSE(same) << "files of one moment are refused: " << ty_error_text();
            return;
        }
        const auto *place = static_cast<const uint64_t *>(ty_root(heap, "number"));
        if (!unrecognised) {
            EXPECT_GE(place ? *place : 0, of.acknowledged) << "an acknowledged distributed transaction is gone";
        }
    }
    void read_all(const disk &trial, const moment *const *of, bool same, const bool *unrecognised) {
        const bool together = chance(1, 2);
        ty_heap *open[3] = {};
        for (size_t n : any_order()) {
            ty_open_options options = with_log(trial);
            options.mode = chance(1, 2) ? TY_OPEN_READ_ONLY : TY_OPEN_COPY;
            const ty_status status = ty_open(paths[n], &options, &open[n], nullptr);
            expect_right(status, open[n], *of[n], same, unrecognised[n]);
            if (!together && open[n]) {
                EXPECT_OK(ty_close(open[n]));
                open[n] = nullptr;
            }
        }
        for (ty_heap *each : open)
            EXPECT_OK(ty_close(each));
    }
    // Whether all of them are a group now.
    bool write_all(const disk &trial, const moment *const *of, bool same, const bool *unrecognised, queue &reported) {
        heaps in(trial, count_);
        const bool together = chance(3, 4);
        bool all = together;
        for (size_t n : any_order()) {
            const ty_status status = in.open(n);
            expect_right(status, in.heap[n], *of[n], same, unrecognised[n]);
            all = all && !status;
            if (!together)
                in.discard();
        }
        if (!all)
            return false;
        const ty_status status = join(in, reported);
        if (status) {
            ++all_.mismatches;
            EXPECT_EQ(TY_E_MISMATCH, status) << ty_error_text();
            EXPECT_FALSE(same) << "heaps of one moment are refused: " << ty_error_text();
            return false;
        }
        for (size_t n = 1; n < count_; ++n)
            EXPECT_EQ(in.number(0), in.number(n)) << "a group of different moments";
        if (!unrecognised[0]) {
            EXPECT_GE(in.number(0), of[0]->acknowledged);
        }
        EXPECT_TRUE(reported.prepared.empty());
        return true;
    }
    // What was refused has changed nothing: the right files open. (But where the group's open itself was in doubt, and
    // a closed backup from just before it says no: nothing is lost, and an open or the group may be refused.)
    void come_back(const disk &trial, const moment *const *of, queue &reported) {
        bool all = true;
        for (size_t n = 0; n < count_; ++n) {
            if (of[n] != &now_) {
                ASSERT_NO_FATAL_FAILURE(copy_member(*now_.files, trial, n));
            }
            all = all && of[n] != &now_;
        }
        ++all_.copies_back;
        heaps in(trial, count_);
        for (size_t n : any_order()) {
            const ty_status status = in.open(n);
            if (status == TY_E_IN_DOUBT && opening_) {
                ++all_.refused;
                return;
            }
            ASSERT_OK(status) << "the right files are back" << (all ? ", all of them" : "");
        }
        for (size_t n = 0; n < count_; ++n) {
            EXPECT_EQ(in.number(0), in.number(n)) << "half of a distributed transaction";
            EXPECT_GE(in.number(n), now_.acknowledged) << "an acknowledged distributed transaction is gone";
        }
        const ty_status status = join(in, reported);
        if (status == TY_E_MISMATCH && opening_) {
            ++all_.mismatches;
            return;
        }
        EXPECT_OK(status);
        check(reported, in.number(0));
    }

    std::mt19937_64 random_;
    counts &all_;
    const size_t count_;
    const bool has_queue_; // the first heap decides
    queue_state queue_{};  // now
    size_t before_ =
        0; // distributed transactions that the resource manager has, and the heaps, from a backup, have not
    bool goes_on_ = false; // from a backup
    moment now_;
    std::deque<moment> kept_;
    uint64_t value_ = 0;
    uint64_t sessions_ = 0;
    bool opening_ = false; // the process died while it opened the group
};

// JO2, JO6, JO7, X33.
TEST(moments_model, opens_are_right_or_refused) {
    constexpr uint64_t rounds_of_one = 40;
    const auto rounds = static_cast<uint64_t>(effort(150));
    const char *given = getenv("TAIYEN_GROUP_SEED");
    counts all{};
    for (uint64_t seed = given ? strtoull(given, nullptr, 10) : 1; all.rounds < rounds; ++seed) {
        history one(seed, all);
        for (uint64_t n = 0; n < rounds_of_one && all.rounds < rounds; ++n) {
            SCOPED_TRACE(testing::Message() << "TAIYEN_GROUP_SEED=" << seed << ", its round " << n);
            one.round();
            if (HasFailure())
                return;
        }
    }
    printf(
        "%llu rounds, %llu opens of other files, %llu refused, %llu groups of different moments, %llu that cannot be "
        "recognised, %llu in doubt\n",
        (unsigned long long)all.rounds, (unsigned long long)all.opens, (unsigned long long)all.refused,
        (unsigned long long)all.mismatches, (unsigned long long)all.unrecognised, (unsigned long long)all.doubts);
    EXPECT_GT(all.refused * 50, rounds);
    EXPECT_GT(all.mismatches * 50, rounds);
    EXPECT_GT(all.doubts * 20, rounds);
}

} // namespace
