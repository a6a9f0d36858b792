// Goal: a transaction manager that knows XA drives heaps: work, prepare, commit, roll back, recover after a kill; and
// what it does wrong is refused as the specification says. Method: the switch's functions alone, called as such a
// manager calls them, by threads and by processes that are killed.
#include "tests/os/temporary_folder.hpp"
#include "tests/store/image/support.hpp"

#include <csignal>
#include <functional>
#include <sys/wait.h>
#include <taiyen/xa.h>
#include <thread>
#include <unistd.h>

namespace taiyen::test {
namespace {

XID xid_of(const std::string &global, const std::string &branch = "b") {
    XID made{};
    made.formatID = 7;
    made.gtrid_length = long(global.size());
    made.bqual_length = long(branch.size());
    memcpy(made.data, (global + branch).data(), global.size() + branch.size());
    return made;
}
std::string text_of(const XID &xid) {
    return std::string(xid.data, size_t(xid.gtrid_length + xid.bqual_length));
}

const xa_switch_t &rm = ty_xa_switch;
constexpr int number = 3;

class xa_test : public testing::Test {
protected:
    void SetUp() override {
        path_ = folder_.file("a.ty");
        make(path_);
    }
    void TearDown() override {
        if (ty_xa_heap(number)) {
            EXPECT_EQ(XA_OK, close());
        }
    }

    static void make(const std::string &path) {
        ty_open_options options = options_of(TY_TRANSACTIONAL);
        ty_heap *heap = nullptr;
        ty_txn *txn = nullptr;
        ASSERT_OK(ty_open(path.c_str(), &options, &heap, nullptr));
        ASSERT_OK(ty_begin(heap, nullptr, &txn));
        ASSERT_OK(ty_txn_root_set(txn, "value", ty_txn_alloc(txn, 8)));
        ASSERT_OK(ty_commit(txn));
        ASSERT_OK(ty_close(heap));
    }
    int open() { return rm.xa_open_entry(path_.data(), number, TMNOFLAGS); }
    static int close() {
        char info[] = "";
        return rm.xa_close_entry(info, number, TMNOFLAGS);
    }
    static int start(XID xid, long flags = TMNOFLAGS) { return rm.xa_start_entry(&xid, number, flags); }
    static int end(XID xid, long flags = TMSUCCESS) { return rm.xa_end_entry(&xid, number, flags); }
    static int prepare(XID xid) { return rm.xa_prepare_entry(&xid, number, TMNOFLAGS); }
    static int commit(XID xid, long flags = TMNOFLAGS) { return rm.xa_commit_entry(&xid, number, flags); }
    static int rollback(XID xid) { return rm.xa_rollback_entry(&xid, number, TMNOFLAGS); }
    static std::vector<std::string> recover() {
        XID found[4];
        const int count = rm.xa_recover_entry(found, 4, number, TMSTARTRSCAN | TMENDRSCAN);
        EXPECT_GE(count, 0);
        std::vector<std::string> texts;
        for (int n = 0; n < count; ++n)
            texts.push_back(text_of(found[n]));
        return texts;
    }
    static uint64_t *place() { return static_cast<uint64_t *>(ty_root(ty_xa_heap(number), "value")); }
    static void set(uint64_t value) {
        ASSERT_NE(nullptr, ty_xa_txn(number));
        ASSERT_OK(ty_declare(ty_xa_txn(number), place(), 8));
        *place() = value;
    }
    static void work(const XID &xid, uint64_t value) {
        ASSERT_EQ(XA_OK, start(xid)) << ty_error_text();
        set(value);
        ASSERT_EQ(XA_OK, end(xid));
    }
    // In a process that dies by a signal afterwards. None of the parent's heaps is open.
    void in_killed(const std::function<void()> &what) {
        const pid_t child = fork();
        if (child == 0) {
            if (open() == XA_OK)
                what();
            kill(getpid(), HasFailure() ? SIGABRT : SIGKILL);
        }
        int status = 0;
        ASSERT_EQ(child, waitpid(child, &status, 0));
        ASSERT_EQ(SIGKILL, WTERMSIG(status));
    }

    temporary_folder folder_;
    std::string path_;
};

TEST_F(xa_test, commits_in_two_phases) {
    EXPECT_EQ(0, rm.version);
    EXPECT_EQ(TMNOMIGRATE, rm.flags);
    EXPECT_STREQ("Taiyen", rm.name);
    ASSERT_EQ(XA_OK, open());
    work(xid_of("one"), 1);
    EXPECT_EQ(nullptr, ty_xa_txn(number));
    EXPECT_EQ(XA_OK, prepare(xid_of("one")));
    EXPECT_EQ(std::vector<std::string>{"oneb"}, recover());
    EXPECT_EQ(XA_OK, commit(xid_of("one")));
    EXPECT_EQ(std::vector<std::string>{}, recover());
    EXPECT_EQ(XAER_NOTA, commit(xid_of("one")));
    work(xid_of("two"), 2);
    EXPECT_EQ(XA_OK, prepare(xid_of("two")));
    EXPECT_EQ(XA_OK, rollback(xid_of("two")));
    EXPECT_EQ(1u, *place());
    ASSERT_EQ(XA_OK, close());
    EXPECT_EQ(XA_OK, close()); // it is already
    ASSERT_EQ(XA_OK, open());
    EXPECT_EQ(1u, *place());
}

TEST_F(xa_test, commits_in_one_phase_and_takes_back) {
    ASSERT_EQ(XA_OK, open());
    work(xid_of("one"), 1);
    EXPECT_EQ(XA_OK, commit(xid_of("one"), TMONEPHASE));
    work(xid_of("two"), 2);
    EXPECT_EQ(XA_OK, rollback(xid_of("two")));
    EXPECT_EQ(1u, *place());
    ASSERT_EQ(XA_OK, start(xid_of("reads")));
    EXPECT_EQ(XA_OK, end(xid_of("reads")));
    EXPECT_EQ(XA_RDONLY, prepare(xid_of("reads"))); // and that is its end
    EXPECT_EQ(XAER_NOTA, commit(xid_of("reads")));
    for (const bool in_one : {false, true}) {
        ASSERT_EQ(XA_OK, start(xid_of("fails")));
        set(3);
        EXPECT_EQ(XA_OK, end(xid_of("fails"), TMFAIL));
        EXPECT_EQ(XA_RBROLLBACK, start(xid_of("fails"), TMJOIN));
        EXPECT_EQ(XA_RBROLLBACK, in_one ? commit(xid_of("fails"), TMONEPHASE) : prepare(xid_of("fails")));
        EXPECT_EQ(1u, *place());
    }
}

TEST_F(xa_test, suspends_resumes_and_joins) {
    ASSERT_EQ(XA_OK, open());
    const XID one = xid_of("one");
    ASSERT_EQ(XA_OK, start(one));
    set(1);
    EXPECT_EQ(XA_OK, end(one, TMSUSPEND));
    EXPECT_EQ(nullptr, ty_xa_txn(number));
    EXPECT_EQ(XAER_PROTO, start(one, TMJOIN));
    EXPECT_EQ(XA_OK, start(one, TMRESUME));
    set(2);
    EXPECT_EQ(XA_OK, end(one));
    EXPECT_EQ(XA_OK, start(one, TMJOIN));
    set(3);
    EXPECT_EQ(XA_OK, end(one, TMSUSPEND));
    EXPECT_EQ(XA_OK, end(one)); // from there, too
    EXPECT_EQ(XA_NOMIGRATE, end(one, TMSUSPEND | TMMIGRATE));
    EXPECT_EQ(XA_OK, prepare(one));
    EXPECT_EQ(XA_OK, commit(one));
    EXPECT_EQ(3u, *place());
}

TEST_F(xa_test, refuses_what_is_not_the_protocol) {
    char info[] = "x", empty[] = "";
    XID one = xid_of("one"), none = xid_of("none"), bad = one;
    std::string missing = folder_.file("missing.ty");
    EXPECT_EQ(XAER_INVAL, rm.xa_open_entry(nullptr, number, TMNOFLAGS));
    EXPECT_EQ(XAER_INVAL, rm.xa_open_entry(empty, number, TMNOFLAGS));
    EXPECT_EQ(XAER_INVAL, rm.xa_open_entry(missing.data(), number, TMNOFLAGS));
    EXPECT_EQ(XAER_ASYNC, rm.xa_open_entry(path_.data(), number, TMASYNC));
    EXPECT_EQ(XAER_PROTO, start(one)) << "it is not open";
    EXPECT_EQ(XAER_PROTO, commit(one));
    EXPECT_EQ(XAER_PROTO, rm.xa_recover_entry(nullptr, 0, number, TMSTARTRSCAN));
    ASSERT_EQ(XA_OK, open());
    EXPECT_EQ(XA_OK, open()); // once more: no matter
    EXPECT_EQ(XAER_INVAL, rm.xa_open_entry(info, number, TMNOFLAGS)) << "another heap under the number";
    bad.formatID = -1;
    EXPECT_EQ(XAER_INVAL, start(bad));
    bad = one;
    for (const long wrong : {0L, -1L, 65L, 1000000L}) {
        bad.gtrid_length = wrong;
        EXPECT_EQ(XAER_INVAL, start(bad));
    }
    bad = one;
    bad.bqual_length = -5;
    EXPECT_EQ(XAER_INVAL, start(bad));
    EXPECT_EQ(XAER_INVAL, rm.xa_start_entry(nullptr, number, TMNOFLAGS));
    EXPECT_EQ(XAER_INVAL, start(one, TMJOIN | TMRESUME));
    EXPECT_EQ(XAER_INVAL, start(one, TMONEPHASE));
    EXPECT_EQ(XAER_ASYNC, start(one, TMASYNC));
    EXPECT_EQ(XAER_NOTA, start(one, TMJOIN));
    EXPECT_EQ(XAER_NOTA, end(none));
    EXPECT_EQ(XAER_NOTA, prepare(none));
    EXPECT_EQ(XAER_NOTA, rollback(none));
    EXPECT_EQ(XAER_NOTA, rm.xa_forget_entry(&none, number, TMNOFLAGS));
    ASSERT_EQ(XA_OK, start(one));
    EXPECT_EQ(XAER_PROTO, start(xid_of("two"))) << "the thread works for another branch";
    EXPECT_EQ(XAER_PROTO, prepare(one)) << "it is not ended";
    EXPECT_EQ(XAER_PROTO, commit(one, TMONEPHASE));
    EXPECT_EQ(XAER_PROTO, rollback(one));
    EXPECT_EQ(XAER_PROTO, close());
    EXPECT_EQ(XAER_INVAL, end(one, TMNOFLAGS));
    set(1);
    EXPECT_EQ(XA_OK, end(one));
    EXPECT_EQ(XAER_DUPID, start(one));
    EXPECT_EQ(XAER_RMERR, start(xid_of("two"))) << "the thread has the heap";
    EXPECT_EQ(XAER_PROTO, commit(one)) << "it is not prepared";
    EXPECT_EQ(XA_OK, prepare(one));
    EXPECT_EQ(XAER_PROTO, prepare(one));
    EXPECT_EQ(XAER_PROTO, commit(one, TMONEPHASE));
    EXPECT_EQ(XAER_PROTO, rm.xa_forget_entry(&one, number, TMNOFLAGS));
    EXPECT_EQ(XAER_PROTO, close());
    EXPECT_EQ(XA_OK, commit(one));
    ty_txn *own = nullptr;
    ASSERT_OK(ty_begin(ty_xa_heap(number), nullptr, &own));
    EXPECT_EQ(XAER_OUTSIDE, start(one));
    ASSERT_OK(ty_rollback(own));
    EXPECT_EQ(XAER_INVAL, rm.xa_complete_entry(nullptr, nullptr, number, TMNOFLAGS));
}

TEST_F(xa_test, lists_in_parts) {
    ASSERT_EQ(XA_OK, open());
    XID found[2];
    EXPECT_EQ(XAER_INVAL, rm.xa_recover_entry(found, 2, number, TMNOFLAGS)) << "no scan was begun";
    EXPECT_EQ(XAER_INVAL, rm.xa_recover_entry(nullptr, 1, number, TMSTARTRSCAN));
    EXPECT_EQ(XAER_INVAL, rm.xa_recover_entry(found, -1, number, TMSTARTRSCAN));
    work(xid_of("one", ""), 1);
    EXPECT_EQ(XA_OK, prepare(xid_of("one", "")));
    EXPECT_EQ(0, rm.xa_recover_entry(found, 0, number, TMSTARTRSCAN));
    EXPECT_EQ(1, rm.xa_recover_entry(found, 2, number, TMNOFLAGS));
    EXPECT_EQ("one", text_of(found[0]));
    EXPECT_EQ(0, rm.xa_recover_entry(found, 2, number, TMENDRSCAN));
    EXPECT_EQ(XAER_INVAL, rm.xa_recover_entry(found, 2, number, TMNOFLAGS));
    EXPECT_EQ(XA_OK, rollback(xid_of("one", "")));
}

TEST_F(xa_test, lets_threads_wait_for_each_other) {
    ASSERT_EQ(XA_OK, open());
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([this, t] {
            EXPECT_EQ(XAER_PROTO, start(xid_of("early"))) << "this thread has not opened it";
            ASSERT_EQ(XA_OK, open());
            for (int n = 0; n < 25; ++n) {
                const XID xid = xid_of(std::to_string(t) + " " + std::to_string(n));
                ASSERT_EQ(XA_OK, start(xid));
                set(*place() + 1);
                ASSERT_EQ(XA_OK, end(xid));
                if (n % 2 == 0) {
                    ASSERT_EQ(XA_OK, commit(xid, TMONEPHASE));
                    continue;
                }
                ASSERT_EQ(XA_OK, prepare(xid));
                int ended = -1;
                std::thread([&] { ended = commit(xid); }).join(); // any thread may
                ASSERT_EQ(XA_OK, ended);
            }
            EXPECT_EQ(XA_OK, close());
        });
    for (std::thread &each : threads)
        each.join();
    EXPECT_EQ(100u, *place());
    work(xid_of("held"), 1);
    std::thread([this] {
        ASSERT_EQ(XA_OK, open());
        EXPECT_EQ(XA_RETRY, start(xid_of("other"), TMNOWAIT));
        EXPECT_EQ(XAER_PROTO, prepare(xid_of("held"))) << "another thread's";
        EXPECT_EQ(XA_OK, close());
    }).join();
    EXPECT_EQ(XA_OK, rollback(xid_of("held")));
}

// XA1.
TEST_F(xa_test, recovers_what_a_killed_process_has_prepared) {
    uint64_t value = 0;
    for (const bool commits : {true, false, false, true}) {
        const XID xid = xid_of("killed");
        in_killed([&] {
            work(xid, value + 1);
            EXPECT_EQ(XA_OK, prepare(xid));
        });
        in_killed(
            [&] { EXPECT_EQ(std::vector<std::string>{"killedb"}, recover()); }); // nobody has reported the outcome
        ASSERT_EQ(XA_OK, open());
        EXPECT_EQ(nullptr, ty_xa_heap(number));
        EXPECT_EQ(XAER_RMERR, start(xid_of("early")));
        EXPECT_EQ(XAER_DUPID, start(xid));
        EXPECT_EQ(XAER_NOTA, commit(xid_of("other")));
        EXPECT_EQ(XAER_PROTO, commit(xid, TMONEPHASE));
        EXPECT_EQ(XA_OK, close()); // and that is no outcome
        ASSERT_EQ(XA_OK, open());
        EXPECT_EQ(std::vector<std::string>{"killedb"}, recover());
        ASSERT_EQ(XA_OK, commits ? commit(xid) : rollback(xid));
        EXPECT_EQ(std::vector<std::string>{}, recover());
        value += commits;
        EXPECT_EQ(value, *place());
        expect_sound(ty_xa_heap(number));
        ASSERT_EQ(XA_OK, close());
    }
    in_killed([&] { work(xid_of("active"), 77); });
    ASSERT_EQ(XA_OK, open());
    EXPECT_EQ(std::vector<std::string>{}, recover());
    EXPECT_EQ(value, *place());
}

// What is in doubt and has no XID is not XA's to end.
TEST_F(xa_test, leaves_others_doubts_alone) {
    in_killed([&] {
        ty_txn *txn = nullptr;
        ASSERT_OK(ty_begin(ty_xa_heap(number), nullptr, &txn));
        ASSERT_OK(ty_declare(txn, place(), 8));
        *place() = 5;
        ASSERT_OK(ty_prepare(txn, "TyXA and no more", 16));
    });
    EXPECT_EQ(XAER_RMERR, open());
    EXPECT_EQ(nullptr, ty_xa_heap(number));
}

} // namespace
} // namespace taiyen::test
