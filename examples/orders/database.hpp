// The shop's invoices in an SQL database, which change together with its heaps: one class for each way in which a
// database can take part in a distributed transaction.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
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
    // Puts the database into a group's options. What is an agent is registered when the object is made.
    virtual void join(ty_group_options &options) = 0;
    // Within a distributed transaction; begins the database's part of it.
    virtual void add(const invoice &one) = 0;
    // Without the distributed transaction, for who wants to see what that is good for.
    virtual void commit_apart() = 0;
    // A distributed transaction was not committed: its part is rolled back.
    virtual void abandon() = 0;
    virtual invoice_sums sums() = 0;
    // Transactions that are prepared, and not over.
    virtual uint64_t prepared() = 0;
};

// kind: sqlite (where: a file), postgres, or postgres-prepared (where: as libpq takes it). Throws. One for a process.
std::unique_ptr<database> open_database(const std::string &kind, const std::string &where);
// A new table.
void found_database(const std::string &kind, const std::string &where);

// What they are made of, where the libraries were there: by sqlite_database.cpp, postgres_database.cpp.
std::unique_ptr<database> open_sqlite(const std::string &where);
void found_sqlite(const std::string &where);
std::unique_ptr<database> open_postgres(const std::string &where);
std::unique_ptr<database> open_postgres_prepared(const std::string &where);
void found_postgres(const std::string &where);

} // namespace orders
