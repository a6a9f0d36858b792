// An SQLite database as the last agent of distributed transactions (taiyen/distributed.h): it commits last, with the
// distributed transaction's identifier in a row of its own, and answers for it after a crash. Copy it into a program:
// it needs only SQLite and Taiyen. Rows of distributed transactions that were rolled back after a crash stay in the
// table dtxns: they can be deleted when no process that could still commit one of them lives.
#pragma once

#include <sqlite3.h>
#include <taiyen/distributed.h>
#include <taiyen/taiyen.h>

namespace orders {

// The program changes its tables through the same connection, between ty_dtxn_begin and ty_dtxn_commit, in a
// transaction that it begins with BEGIN IMMEDIATE. One distributed transaction at a time uses the connection, as a
// group runs one at a time.
class sqlite_agent {
public:
    // Creates the table if it does not exist. Throws if the database cannot be used. To survive power cuts, the
    // connection needs PRAGMA synchronous at FULL.
    sqlite_agent(sqlite3 *connection, const char *name);
    ~sqlite_agent();
    sqlite_agent(const sqlite_agent &) = delete;
    sqlite_agent &operator=(const sqlite_agent &) = delete;

    // For ty_register_last_agent, and ty_group_options. The object lives as long as the process may open heaps.
    ty_last_agent described();

private:
    ty_status commit(const char *id, const char *done);
    void rollback();
    ty_status resolve(const char *id, bool *committed);
    bool run(const char *sql);
    bool run_with(sqlite3_stmt *statement, const char *id);

    sqlite3 *connection_;
    const char *name_;
    sqlite3_stmt *note_ = nullptr;   // as committed
    sqlite3_stmt *refuse_ = nullptr; // as rolled back, if it is not there
    sqlite3_stmt *forget_ = nullptr;
    sqlite3_stmt *look_ = nullptr;
};

} // namespace orders
