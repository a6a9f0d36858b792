// Invoices in PostgreSQL, which is the last agent of the shop's distributed transactions, or a resource manager.
#include "database.hpp"
#include "heap_file.hpp"
#include "postgres_agent.hpp"
#include "postgres_resource_manager.hpp"

namespace orders {
namespace {

constexpr int group_key = 0x54790001; // of this program's group; see postgres_resource_manager

void require(bool is_good, postgres &on, const char *what) {
    if (!is_good)
        throw demo::failure(std::string("PostgreSQL cannot ") + what + ": " + on.error());
}

void add_to(postgres &on, const invoice &one) {
    const std::string number = std::to_string(one.number), customer = std::to_string(one.customer),
                      product = std::to_string(one.product), count = std::to_string(one.count),
                      cents = std::to_string(one.cents);
    require(is_done(on.run("BEGIN"), "BEGIN"), on, "begin a transaction");
    require(is_done(on.run("INSERT INTO invoices VALUES ($1, $2, $3, $4, $5)",
                           {number.c_str(), customer.c_str(), product.c_str(), count.c_str(), cents.c_str()}),
                    "INSERT"),
            on, "add an invoice");
}

uint64_t number_at(const postgres_result &result, int row, int column) {
    return std::strtoull(PQgetvalue(result.get(), row, column), nullptr, 10);
}

invoice_sums sums_of(postgres &on) {
    invoice_sums found;
    const postgres_result whole = on.run("SELECT count(*), coalesce(max(number), 0) FROM invoices");
    require(PQntuples(whole.get()) == 1, on, "count invoices");
    found.count = number_at(whole, 0, 0);
    found.last = number_at(whole, 0, 1);
    const postgres_result each = on.run("SELECT customer, sum(cents) FROM invoices GROUP BY customer");
    require(PQresultStatus(each.get()) == PGRES_TUPLES_OK, on, "sum invoices up");
    for (int row = 0; row < PQntuples(each.get()); ++row)
        found.cents[static_cast<uint32_t>(number_at(each, row, 0))] = static_cast<int64_t>(number_at(each, row, 1));
    return found;
}

uint64_t prepared_in(postgres &on) {
    const postgres_result found = on.run("SELECT count(*) FROM pg_prepared_xacts WHERE database = current_database()");
    require(PQntuples(found.get()) == 1, on, "count prepared transactions");
    return number_at(found, 0, 0);
}

class postgres_database : public database {
public:
    explicit postgres_database(const std::string &where)
        : connection_(where), agent_(connection_, "invoices"), described_(agent_.described()) {
        demo::check(ty_register_last_agent(&described_));
    }
    void join(ty_group_options &options) override { options.agent = &described_; }
    void add(const invoice &one) override { add_to(connection_, one); }
    void commit_apart() override { require(is_done(connection_.run("COMMIT"), "COMMIT"), connection_, "commit"); }
    void abandon() override { described_.rollback(described_.context); }
    invoice_sums sums() override { return sums_of(connection_); }
    uint64_t prepared() override { return prepared_in(connection_); }

private:
    postgres connection_;
    postgres_agent agent_;
    ty_last_agent described_;
};

class postgres_prepared : public database {
public:
    explicit postgres_prepared(const std::string &where)
        : resource_manager_(where, group_key), described_(resource_manager_.described()) {}
    void join(ty_group_options &options) override {
        options.resource_managers = &described_;
        options.resource_manager_count = 1;
    }
    void add(const invoice &one) override { add_to(resource_manager_.work(), one); }
    void commit_apart() override {
        require(is_done(resource_manager_.work().run("COMMIT"), "COMMIT"), resource_manager_.work(), "commit");
    }
    void abandon() override {
        if (resource_manager_.work().in_transaction())
            resource_manager_.work().run("ROLLBACK");
    }
    invoice_sums sums() override { return sums_of(resource_manager_.work()); }
    uint64_t prepared() override { return prepared_in(resource_manager_.work()); }

private:
    postgres_resource_manager resource_manager_;
    ty_resource_manager described_;
};

} // namespace

std::unique_ptr<database> open_postgres(const std::string &where) {
    return std::make_unique<postgres_database>(where);
}

std::unique_ptr<database> open_postgres_prepared(const std::string &where) {
    return std::make_unique<postgres_prepared>(where);
}

void found_postgres(const std::string &where) {
    postgres on(where);
    on.run("DROP TABLE IF EXISTS invoices, dtxns");
    require(
        is_done(on.run("CREATE TABLE invoices (number bigint PRIMARY KEY, customer integer NOT NULL, product integer "
                       "NOT NULL, count integer NOT NULL, cents bigint NOT NULL)"),
                "CREATE"),
        on, "make the table invoices");
}

} // namespace orders
