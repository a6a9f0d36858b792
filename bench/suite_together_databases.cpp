// The part of the suite together about databases: a transaction adds 1 to three counters and inserts a row.
//
// taiyen: counters and row, as a block, in a heap alone. taiyen-sqlite, taiyen-postgres: the counters in a heap, the
// row in a database that is the distributed transaction's last agent; taiyen-prepared: in PostgreSQL as a resource
// manager. sqlite, postgres: counters and row in the database alone. With PostgreSQL each thread has its own
// connection, so that the server can write several threads' commits at once; a distributed transaction has one
// connection.
//
// PostgreSQL is measured if TAIYEN_POSTGRES names a server: scripts/with_postgres taiyen-bench together.
#include "together.hpp"

#include <algorithm>
#include <cstdlib>
#include <mutex>
#ifdef ORDERS_SQLITE
#include "../examples/orders/sqlite_agent.hpp"
#endif
#ifdef ORDERS_POSTGRES
#include "../examples/orders/postgres_agent.hpp"
#include "../examples/orders/postgres_resource_manager.hpp"
#endif

namespace bench {

namespace {

constexpr struct {
    const char *name;
    size_t threads;
} cases[] = {{"database-1", 1}, {"database-16", 16}};
constexpr size_t turns = 5;
constexpr uint64_t rows = 1000; // of counters

// A heap with counters, and the other participants.
class heap_with {
public:
    heap_with(const std::string &path, const ty_last_agent *agent, const std::vector<ty_resource_manager> &others)
        : heap_(path), group_({heap_.get()}, agent, others) {}

    template <class PutRow>
    void work(random_source &random, PutRow &&put_row) const {
        ty_dtxn *dtxn = nullptr;
        check(ty_dtxn_begin(group_.get(), nullptr, &dtxn), "cannot begin a distributed transaction");
        heap_.add(ty_dtxn_txn(dtxn, 0), random, 3);
        put_row();
        check(ty_dtxn_commit(dtxn), "cannot commit a distributed transaction");
    }

private:
    counter_heap heap_;
    group_of group_;
};

preparation heap_alone(const std::string &path) {
    return [=] {
        auto heap = std::make_shared<counter_heap>(path);
        return [=](size_t) {
            return [=](random_source &random) {
                ty_txn *txn = nullptr;
                check(ty_begin(heap->get(), nullptr, &txn), "cannot begin");
                heap->add(txn, random, 3);
                if (!ty_txn_alloc(txn, 64))
                    throw std::runtime_error("cannot allocate");
                check(ty_commit(txn), "cannot commit");
            };
        };
    };
}

#ifdef ORDERS_SQLITE

class sqlite_table {
public:
    explicit sqlite_table(const std::string &path) {
        if (sqlite3_open(path.c_str(), &connection) != SQLITE_OK)
            throw std::runtime_error("cannot open a database of SQLite");
        for (const char *sql :
             {"PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL",
              "CREATE TABLE rows (number INTEGER PRIMARY KEY, text TEXT)",
              "CREATE TABLE counters (k INTEGER PRIMARY KEY, v INTEGER)",
              "WITH RECURSIVE n(k) AS (SELECT 0 UNION ALL SELECT k + 1 FROM n WHERE k < 999) INSERT INTO counters "
              "SELECT k, 0 FROM n"})
            run(sql);
        put_ = prepare("INSERT INTO rows (text) VALUES ('forty bytes of text that stand for a row')");
        add_ = prepare("UPDATE counters SET v = v + 1 WHERE k = ?");
    }
    ~sqlite_table() {
        sqlite3_finalize(put_);
        sqlite3_finalize(add_);
        sqlite3_close(connection);
    }
    sqlite_table(const sqlite_table &) = delete;
    sqlite_table &operator=(const sqlite_table &) = delete;

    void put_row() {
        run("BEGIN IMMEDIATE");
        step(put_);
    }
    void work(random_source &random) {
        std::lock_guard guard(lock_); // one connection: several would wait for each other by polling
        put_row();
        for (int n = 0; n < 3; n++) {
            sqlite3_bind_int64(add_, 1, static_cast<sqlite3_int64>(random.below(rows)));
            step(add_);
        }
        run("COMMIT");
    }
    sqlite3 *connection = nullptr;

private:
    void run(const char *sql) {
        if (sqlite3_exec(connection, sql, nullptr, nullptr, nullptr) != SQLITE_OK)
            throw std::runtime_error(std::string("sqlite: ") + sqlite3_errmsg(connection));
    }
    void step(sqlite3_stmt *statement) {
        sqlite3_step(statement);
        if (sqlite3_reset(statement) != SQLITE_OK)
            throw std::runtime_error(std::string("sqlite: ") + sqlite3_errmsg(connection));
    }
    sqlite3_stmt *prepare(const char *sql) {
        sqlite3_stmt *made = nullptr;
        if (sqlite3_prepare_v2(connection, sql, -1, &made, nullptr) != SQLITE_OK)
            throw std::runtime_error(std::string("sqlite: ") + sqlite3_errmsg(connection));
        return made;
    }
    std::mutex lock_;
    sqlite3_stmt *put_ = nullptr;
    sqlite3_stmt *add_ = nullptr;
};

void remove_database(const std::string &path) {
    for (const char *ending : {"", "-wal", "-shm"})
        std::remove((path + ending).c_str());
}

preparation sqlite_alone(const std::string &path) {
    return [=] {
        remove_database(path);
        auto table = std::make_shared<sqlite_table>(path);
        return [=](size_t) { return [=](random_source &random) { table->work(random); }; };
    };
}

struct heap_and_sqlite {
    sqlite_table table;
    orders::sqlite_agent agent;
    ty_last_agent described;
    std::unique_ptr<heap_with> heap;
    heap_and_sqlite(const std::string &path, const std::string &database)
        : table(database), agent(table.connection, "bench"), described(agent.described()) {
        check(ty_register_last_agent(&described), "cannot register an agent");
        heap = std::make_unique<heap_with>(path, &described, std::vector<ty_resource_manager>());
    }
};

preparation with_sqlite(const std::string &path, const std::string &database) {
    return [=] {
        remove_database(database);
        auto both = std::make_shared<heap_and_sqlite>(path, database);
        return [=](size_t) {
            return [=](random_source &random) { both->heap->work(random, [&] { both->table.put_row(); }); };
        };
    };
}

#endif
#ifdef ORDERS_POSTGRES

const char *server() {
    const char *where = std::getenv("TAIYEN_POSTGRES");
    if (!where)
        throw unavailable("TAIYEN_POSTGRES is not set: run this by scripts/with_postgres");
    return where;
}

void must(orders::postgres &on, const char *sql, const char *command, std::initializer_list<const char *> values = {}) {
    if (!orders::is_done(on.run(sql, values), command))
        throw std::runtime_error(std::string("postgres: ") + on.error());
}

void make_tables() {
    orders::postgres on(server());
    must(on, "DROP TABLE IF EXISTS bench_rows, bench_counters, dtxns", "DROP");
    must(on, "CREATE TABLE bench_rows (number bigserial PRIMARY KEY, text text)", "CREATE");
    must(on, "CREATE TABLE bench_counters (k bigint PRIMARY KEY, v bigint)", "CREATE");
    must(on, "INSERT INTO bench_counters SELECT k, 0 FROM generate_series(0, 999) k", "INSERT");
}

void put_row(orders::postgres &on) {
    must(on, "BEGIN", "BEGIN");
    must(on, "INSERT INTO bench_rows (text) VALUES ('forty bytes of text that stand for a row')", "INSERT");
}

preparation postgres_alone() {
    return [] {
        make_tables();
        return [](size_t) {
            auto on = std::make_shared<orders::postgres>(server());
            return [=](random_source &random) {
                uint64_t keys[3];
                for (uint64_t &key : keys)
                    key = random.below(rows);
                std::sort(std::begin(keys), std::end(keys)); // so that threads do not deadlock
                put_row(*on);
                for (uint64_t key : keys)
                    must(*on, "UPDATE bench_counters SET v = v + 1 WHERE k = $1", "UPDATE",
                         {std::to_string(key).c_str()});
                must(*on, "COMMIT", "COMMIT");
            };
        };
    };
}

struct heap_and_postgres {
    orders::postgres connection{server()};
    orders::postgres_agent agent{connection, "bench"};
    ty_last_agent described = agent.described();
    std::unique_ptr<heap_with> heap;
    explicit heap_and_postgres(const std::string &path) {
        check(ty_register_last_agent(&described), "cannot register an agent");
        heap = std::make_unique<heap_with>(path, &described, std::vector<ty_resource_manager>());
    }
    orders::postgres &work() { return connection; }
};

struct heap_and_prepared {
    orders::postgres_resource_manager resource_manager{server(), 8};
    std::unique_ptr<heap_with> heap;
    explicit heap_and_prepared(const std::string &path)
        : heap(std::make_unique<heap_with>(path, nullptr, std::vector{resource_manager.described()})) {}
    orders::postgres &work() { return resource_manager.work(); }
};

template <class Both>
preparation with_postgres(const std::string &path) {
    return [=] {
        make_tables();
        auto both = std::make_shared<Both>(path);
        return [=](size_t) {
            return [=](random_source &random) { both->heap->work(random, [&] { put_row(both->work()); }); };
        };
    };
}

#endif

[[maybe_unused]] preparation not_built() {
    throw unavailable("its library was missing when this program was built");
}

} // namespace

std::vector<std::string> database_case_names() {
    return names_of(cases);
}

void run_databases(session &session) {
    const std::string path = session.path("a.ty"), database = session.path("rows.db");
    for (const auto &which : cases) {
        std::vector<session::subject> subjects;
        auto add = [&](const char *name, const std::function<preparation()> &prepare) {
            subjects.push_back({name, [&session, &which, name, prepare] {
                                    measure_together(session, which.name, name, which.threads, prepare());
                                }});
        };
        add(self, [&] { return heap_alone(path); });
#ifdef ORDERS_SQLITE
        add("taiyen-sqlite", [&] { return with_sqlite(path, database); });
        add("sqlite", [&] { return sqlite_alone(database); });
#else
        add("sqlite", not_built);
#endif
#ifdef ORDERS_POSTGRES
        add("taiyen-postgres", [&] { return server(), with_postgres<heap_and_postgres>(path); });
        add("taiyen-prepared", [&] { return server(), with_postgres<heap_and_prepared>(path); });
        add("postgres", [&] { return server(), postgres_alone(); });
#else
        add("postgres", not_built);
#endif
        session.interleave(which.name, session.repetitions(turns), subjects);
    }
    std::remove(database.c_str());
}

void evaluate_databases(session &session) {
    results &out = session.out();
    for (const char *name : {"sqlite", "postgres"})
        out.bar_at_least(std::string("database-1: a heap with ") + name + " over " + name + " alone",
                         out.ratio("database-1", "txn_per_s", (std::string("taiyen-") + name).c_str(), name), 0.5);
}

} // namespace bench
