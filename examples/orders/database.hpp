// The shop's invoices in an SQL database, which change together with its heaps: one class for each way in which a
// database can take part in a distributed transaction.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <taiyen/distributed.h>
#include <taiyen/taiyen.h>

namespace orders {

struct invoice {
    uint64_t number; // of the order
    uint32_t customer;
    uint32_t product;
    uint32_t count;
    int64_t cents; // 0: the order was refused
};

struct invoice_sums {
    uint64_t count = 0;
    uint64_t last = 0;
    std::map<uint32_t, int64_t> cents; // by customer
};

class database {
public:
    virtual ~database() = default;
    // Adds the database to a group's options. A last agent is registered when the object is made.
    virtual void join(ty_group_options &options) = 0;
    // Within a distributed transaction; begins the database's part of it.
    virtual void add(const invoice &one) = 0;
    // Without the distributed transaction, to show what that is needed for.
    virtual void commit_apart() = 0;
    // The distributed transaction was not committed: rolls back this part.
    virtual void abandon() = 0;
    virtual invoice_sums sums() = 0;
    // Transactions that are prepared, and have no outcome yet.
    virtual uint64_t prepared() = 0;
};

// kind: sqlite (where: a file), postgres, or postgres-prepared (where: a connection string of libpq). Throws. One per
// process.
std::unique_ptr<database> open_database(const std::string &kind, const std::string &where);
// Creates a new table.
void found_database(const std::string &kind, const std::string &where);

// The implementations, where their libraries were found: in sqlite_database.cpp, postgres_database.cpp.
std::unique_ptr<database> open_sqlite(const std::string &where);
void found_sqlite(const std::string &where);
std::unique_ptr<database> open_postgres(const std::string &where);
std::unique_ptr<database> open_postgres_prepared(const std::string &where);
void found_postgres(const std::string &where);

} // namespace orders
