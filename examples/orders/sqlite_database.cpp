// Invoices in SQLite, which is the last agent of the shop's distributed transactions.
#include "database.hpp"
#include "heap_file.hpp"
#include "sqlite_agent.hpp"
#include <filesystem>

namespace orders {
namespace {

struct connection_end {
    void operator()(sqlite3 *connection) const { sqlite3_close(connection); }
};
struct statement_end {
    void operator()(sqlite3_stmt *statement) const { sqlite3_finalize(statement); }
};
using connection = std::unique_ptr<sqlite3, connection_end>;
using statement = std::unique_ptr<sqlite3_stmt, statement_end>;

void run(sqlite3 *on, const char *sql) {
    if (sqlite3_exec(on, sql, nullptr, nullptr, nullptr) != SQLITE_OK)
        throw demo::failure(std::string("SQLite, ") + sql + ": " + sqlite3_errmsg(on));
}

connection connect(const std::string &path) {
    sqlite3 *made = nullptr;
    const int status = sqlite3_open(path.c_str(), &made);
    connection owner(made);
    if (status != SQLITE_OK)
        throw demo::failure("cannot open " + path + ": " + sqlite3_errstr(status));
    sqlite3_busy_timeout(made, 10000);
    run(made, "PRAGMA journal_mode = WAL");
    run(made, "PRAGMA synchronous = FULL");
    return owner;
}

statement prepare(sqlite3 *on, const char *sql) {
    sqlite3_stmt *made = nullptr;
    if (sqlite3_prepare_v2(on, sql, -1, &made, nullptr) != SQLITE_OK)
        throw demo::failure(std::string("SQLite, ") + sql + ": " + sqlite3_errmsg(on));
    return statement(made);
}

class sqlite_database : public database {
public:
    explicit sqlite_database(const std::string &path)
        : connection_(connect(path)), agent_(connection_.get(), "invoices"), described_(agent_.described()),
          add_(prepare(connection_.get(), "INSERT INTO invoices VALUES (?, ?, ?, ?, ?)")) {
        demo::check(ty_register_last_agent(&described_));
    }

    void join(ty_group_options &options) override { options.agent = &described_; }

    void add(const invoice &one) override {
        run(connection_.get(), "BEGIN IMMEDIATE");
        sqlite3_bind_int64(add_.get(), 1, static_cast<sqlite3_int64>(one.number));
        sqlite3_bind_int64(add_.get(), 2, one.customer);
        sqlite3_bind_int64(add_.get(), 3, one.product);
        sqlite3_bind_int64(add_.get(), 4, one.count);
        sqlite3_bind_int64(add_.get(), 5, one.cents);
        const int status = sqlite3_step(add_.get());
        sqlite3_reset(add_.get());
        if (status != SQLITE_DONE)
            throw demo::failure(std::string("cannot add an invoice: ") + sqlite3_errmsg(connection_.get()));
    }

    void commit_apart() override { run(connection_.get(), "COMMIT"); }
    void abandon() override { described_.rollback(described_.context); }

    invoice_sums sums() override {
        invoice_sums found;
        statement whole = prepare(connection_.get(), "SELECT count(*), max(number) FROM invoices");
        if (sqlite3_step(whole.get()) == SQLITE_ROW) {
            found.count = static_cast<uint64_t>(sqlite3_column_int64(whole.get(), 0));
            found.last = static_cast<uint64_t>(sqlite3_column_int64(whole.get(), 1));
        }
        statement each = prepare(connection_.get(), "SELECT customer, sum(cents) FROM invoices GROUP BY customer");
        while (sqlite3_step(each.get()) == SQLITE_ROW)
            found.cents[static_cast<uint32_t>(sqlite3_column_int64(each.get(), 0))] =
                sqlite3_column_int64(each.get(), 1);
        return found;
    }

    uint64_t prepared() override { return 0; }

private:
    connection connection_;
    sqlite_agent agent_;
    ty_last_agent described_;
    statement add_;
};

} // namespace

std::unique_ptr<database> open_sqlite(const std::string &where) {
    return std::make_unique<sqlite_database>(where);
}

void found_sqlite(const std::string &where) {
    for (const char *ending : {"", "-wal", "-shm"})
        std::filesystem::remove(where + ending);
    run(connect(where).get(), "CREATE TABLE invoices (number INTEGER PRIMARY KEY, customer INTEGER NOT NULL, "
                              "product INTEGER NOT NULL, count INTEGER NOT NULL, cents INTEGER NOT NULL)");
}

} // namespace orders
