// A PostgreSQL database as the last agent of distributed transactions (taiyen/distributed.h), by one row per
// distributed transaction: it needs no prepared transactions, and leaves none. The same works with any SQL database
// that makes an insert wait for another one of the same key. Copy it into a program, with postgres.hpp and its source.
// What sqlite_agent.hpp says of rows holds here.
#pragma once

#include "postgres.hpp"
#include <taiyen/distributed.h>
#include <taiyen/taiyen.h>

namespace orders {

// The program changes its tables through the same connection, between ty_dtxn_begin and ty_dtxn_commit, in a
// transaction that it begins. One distributed transaction at a time uses the connection.
class postgres_agent {
public:
    // Creates the table if it does not exist. Throws if the database cannot be used.
    postgres_agent(postgres &connection, const char *name);

    // For ty_register_last_agent, and ty_group_options. The object lives as long as the process may open heaps.
    ty_last_agent described();

private:
    ty_status commit(const char *id, const char *done);
    void rollback();
    ty_status resolve(const char *id, bool *committed);

    postgres &connection_;
    const char *name_;
};

} // namespace orders
