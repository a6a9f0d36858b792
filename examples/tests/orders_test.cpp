// Goal: whatever of the shop's processes is killed, each order is done once in heaps and database; and the agents keep
// what taiyen/distributed.h requires of them: above all, that an answer lasts.
// Method: the demo's own proof, with each database; the agents' functions called as a distributed transaction calls
// them, by two connections. TAIYEN_ORDERS_KILLS: kills of each process. Tests of PostgreSQL run beside a server
// (scripts/with_postgres).
#include "temporary_folder.hpp"
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#ifdef ORDERS_SQLITE
#include "orders/sqlite_agent.hpp"
#endif
#ifdef ORDERS_POSTGRES
#include "orders/postgres_agent.hpp"
#include "orders/postgres_resource_manager.hpp"
#endif

namespace {

// Its exit code: 0 if all was proven.
int run_demo(const std::string &options) {
    temporary_folder folder;
    const int status = std::system((ORDERS_DEMO " --folder " + folder.file("demo") + " --database " + options).c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// Calls an agent as a distributed transaction does.
struct agent_calls {
    ty_last_agent agent;
    ty_status commit(const char *id, const char *done = nullptr) { return agent.commit(agent.context, id, done); }
    void rollback() { agent.rollback(agent.context); }
    bool is_committed(const char *id) {
        bool committed = false;
        EXPECT_EQ(TY_OK, agent.resolve(agent.context, id, &committed));
        return committed;
    }
};

// begin: of a transaction of the agent's program.
template <class Begin>
void expect_answers_that_last(agent_calls one, agent_calls other, Begin &&begin) {
    begin();
    EXPECT_EQ(TY_OK, one.commit("ty-1"));
    EXPECT_TRUE(other.is_committed("ty-1"));
    EXPECT_TRUE(one.is_committed("ty-1"));
    EXPECT_FALSE(other.is_committed("ty-2"));
    begin();
    EXPECT_EQ(TY_E_IO, one.commit("ty-2")) << "it was said that it is not committed";
    EXPECT_FALSE(one.is_committed("ty-2"));
    begin();
    one.rollback();
    EXPECT_EQ(TY_OK, one.commit("ty-3", "ty-1")); // without a transaction of the program's
    EXPECT_FALSE(one.is_committed("ty-1")) << "nobody asks for it any more";
    EXPECT_TRUE(other.is_committed("ty-3"));
}

// A query while another connection is about to commit gets an answer that stays true.
template <class Begin>
void expect_answers_beside_commits(agent_calls one, agent_calls other, Begin &&begin) {
    unsigned committed = 0;
    for (int round = 0; round < 200; ++round) {
        const std::string id = "ty-round-" + std::to_string(round);
        ty_status status = TY_OK;
        if (round % 2 != 0)
            begin();
        bool answer = false;
        const auto commit = [&] { status = one.commit(id.c_str()); };
        const auto ask = [&] { answer = other.is_committed(id.c_str()); };
        std::thread beside(round % 4 < 2 ? std::function<void()>(commit) : ask); // which of the two starts later
        if (round % 4 < 2)
            ask();
        else
            commit();
        beside.join();
        ASSERT_EQ(answer, status == TY_OK) << id;
        committed += answer;
    }
    std::printf("%u of 200 were committed\n", committed);
}

#ifdef ORDERS_SQLITE

struct sqlite_connection {
    sqlite3 *get = nullptr;
    explicit sqlite_connection(const std::string &path) {
        EXPECT_EQ(SQLITE_OK, sqlite3_open(path.c_str(), &get));
        sqlite3_busy_timeout(get, 10000);
        run("PRAGMA journal_mode = WAL");
    }
    ~sqlite_connection() { sqlite3_close(get); }
    int run(const char *sql) { return sqlite3_exec(get, sql, nullptr, nullptr, nullptr); }
};

TEST(sqlite_agent, gives_answers_that_last) {
    temporary_folder folder;
    sqlite_connection a(folder.file("a.db")), b(folder.file("a.db"));
    orders::sqlite_agent one(a.get, "one"), other(b.get, "other");
    expect_answers_that_last({one.described()}, {other.described()},
                             [&] { EXPECT_EQ(SQLITE_OK, a.run("BEGIN IMMEDIATE")); });
    expect_answers_beside_commits({one.described()}, {other.described()}, [&] { a.run("BEGIN IMMEDIATE"); });
}

TEST(sqlite_agent, commits_the_program_s_changes_or_none) {
    temporary_folder folder;
    sqlite_connection a(folder.file("a.db")), b(folder.file("a.db"));
    orders::sqlite_agent one(a.get, "one"), other(b.get, "other");
    agent_calls calls{one.described()}, others{other.described()};
    ASSERT_EQ(SQLITE_OK, a.run("CREATE TABLE t (n INTEGER PRIMARY KEY)"));
    EXPECT_FALSE(others.is_committed("ty-late"));
    for (const char *id : {"ty-good", "ty-late"}) {
        a.run("BEGIN IMMEDIATE");
        EXPECT_EQ(SQLITE_OK, a.run("INSERT INTO t SELECT count(*) FROM t"));
        calls.commit(id);
    }
    EXPECT_EQ(SQLITE_OK, b.run("INSERT INTO t VALUES (1)")) << "the second one was taken back";
    EXPECT_EQ(SQLITE_CONSTRAINT, b.run("INSERT INTO t VALUES (0)"));
}

TEST(sqlite_shop, does_each_order_once) {
    EXPECT_EQ(0, run_demo("sqlite"));
}

// The canary: the proof finds what it is to find.
TEST(sqlite_shop, is_refuted_where_heaps_and_database_commit_apart) {
    EXPECT_EQ(1, run_demo("sqlite --kill worker --rounds 300 --check-every 5 --apart"));
}

#endif
#ifdef ORDERS_POSTGRES

const char *server() {
    const char *where = std::getenv("TAIYEN_POSTGRES");
    EXPECT_NE(nullptr, where) << "run it by scripts/with_postgres";
    return where == nullptr ? "" : where;
}

// Waits until a session of the server waits like this, or is_over.
void wait_until(orders::postgres &look, const std::string &wait, const std::atomic<bool> &is_over) {
    const std::string waiting = "SELECT count(*) FROM pg_stat_activity WHERE " + wait;
    while (!is_over && PQgetvalue(look.run(waiting.c_str()).get(), 0, 0)[0] == '0')
        std::this_thread::yield();
}

TEST(postgres_agent, gives_answers_that_last) {
    orders::postgres a(server()), b(server());
    a.run("DROP TABLE IF EXISTS dtxns");
    orders::postgres_agent one(a, "one"), other(b, "other");
    expect_answers_that_last({one.described()}, {other.described()}, [&] { a.run("BEGIN"); });
    expect_answers_beside_commits({one.described()}, {other.described()}, [&] { a.run("BEGIN"); });
}

TEST(postgres_agent, is_made_while_another_one_makes_the_table) {
    orders::postgres a(server()), look(server());
    look.run("DROP TABLE IF EXISTS dtxns");
    a.run("BEGIN");
    orders::postgres_agent one(a, "one");
    std::atomic<bool> is_over = false;
    std::thread next([&] {
        orders::postgres b(server());
        EXPECT_NO_THROW(orders::postgres_agent(b, "other"));
        is_over = true;
    });
    wait_until(look, "wait_event_type = 'Lock'", is_over);
    a.run("COMMIT");
    next.join();
}

// As when a process dies: its session ends, and what it was about to commit is not committed.
TEST(postgres_agent, asks_anew_when_the_connection_is_lost) {
    orders::postgres a(server()), b(server());
    orders::postgres_agent one(a, "one");
    agent_calls calls{one.described()};
    a.run("BEGIN");
    b.run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE state = 'idle in transaction'");
    EXPECT_NE(TY_OK, calls.commit("ty-lost"));
    EXPECT_FALSE(calls.is_committed("ty-lost"));
    EXPECT_EQ(TY_OK, calls.commit("ty-found"));
}

TEST(postgres_resource_manager, prepares_and_is_notified) {
    orders::postgres look(server());
    orders::postgres_resource_manager one(server(), 7);
    const ty_resource_manager calls = one.described();
    look.run("DROP TABLE IF EXISTS t");
    look.run("CREATE TABLE t (n integer PRIMARY KEY)");
    auto prepare = [&](const char *id, const char *number) {
        one.work().run("BEGIN");
        one.work().run("INSERT INTO t VALUES ($1)", {number});
        return calls.prepare(calls.context, id);
    };
    auto count = [&] { return std::string(PQgetvalue(look.run("SELECT count(*) FROM t").get(), 0, 0)); };
    EXPECT_EQ(TY_OK, prepare("ty-a-1", "1"));
    EXPECT_EQ("0", count());
    EXPECT_EQ(TY_OK, calls.commit(calls.context, "ty-a-1"));
    EXPECT_EQ(TY_OK, calls.commit(calls.context, "ty-a-1")) << "once more";
    EXPECT_EQ("1", count());
    EXPECT_EQ(TY_E_IO, prepare("ty-a-2", "1")) << "the row is there already";
    one.work().run("BEGIN");
    look.run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE state = 'idle in transaction'");
    EXPECT_EQ(TY_E_IO, calls.prepare(calls.context, "ty-a-lost"));
    EXPECT_EQ(TY_OK, prepare("ty-a-3", "3"));
    EXPECT_EQ(TY_OK, prepare("ty-b%-4", "4"));
    std::set<std::string> found;
    EXPECT_EQ(TY_OK,
              calls.recover(
                  calls.context, "ty-a-",
                  [](const char *id, void *context) { static_cast<std::set<std::string> *>(context)->insert(id); },
                  &found));
    EXPECT_EQ((std::set<std::string>{"ty-a-3"}), found);
    for (const char *id : {"ty-a-3", "ty-b%-4", "ty-a-3"})
        EXPECT_EQ(TY_OK, calls.rollback(calls.context, id));
    EXPECT_EQ("1", count());
}

// A process dies while its server commits what was prepared: the next process finds that done, or still to be done, but
// not half done, which the server would refuse. The commit lasts here until a standby has it, and there is none.
TEST(postgres_resource_manager, waits_for_the_notification_of_a_dead_process) {
    orders::postgres look(server());
    std::atomic<bool> is_over = false;
    const pid_t child = fork();
    if (child == 0) { // until it waits: a moment later the server runs the ALTER SYSTEM below
        orders::postgres_resource_manager one(server(), 7);
        const ty_resource_manager calls = one.described();
        one.work().run("SET synchronous_commit = local");
        for (int n = 0;; ++n) {
            const std::string id = "ty-a-" + std::to_string(n);
            one.work().run("BEGIN");
            one.work().run("CREATE TABLE IF NOT EXISTS told (n integer)");
            if (calls.prepare(calls.context, id.c_str()) != TY_OK || calls.commit(calls.context, id.c_str()) != TY_OK)
                _exit(1);
        }
    }
    look.run("ALTER SYSTEM SET synchronous_standby_names = 'nobody'");
    look.run("SELECT pg_reload_conf()");
    wait_until(look, "wait_event = 'SyncRep'", is_over);
    ::kill(child, SIGKILL);
    ASSERT_EQ(child, waitpid(child, nullptr, 0));
    std::thread next([&] {
        orders::postgres_resource_manager other(server(), 7);
        const ty_resource_manager calls = other.described();
        std::set<std::string> found;
        const auto note = [](const char *id, void *to) { static_cast<std::set<std::string> *>(to)->insert(id); };
        EXPECT_EQ(TY_OK, calls.recover(calls.context, "ty-a-", note, &found));
        for (const std::string &id : found)
            EXPECT_EQ(TY_OK, calls.commit(calls.context, id.c_str()));
        is_over = true;
    });
    wait_until(look, "wait_event_type = 'Lock'", is_over);
    look.run("ALTER SYSTEM RESET synchronous_standby_names");
    look.run("SELECT pg_reload_conf()");
    next.join();
}

TEST(postgres_shop, does_each_order_once) {
    EXPECT_EQ(0, run_demo("postgres"));
}

TEST(postgres_shop, does_each_order_once_with_prepared_transactions) {
    EXPECT_EQ(0, run_demo("postgres-prepared"));
}

#endif

} // namespace
