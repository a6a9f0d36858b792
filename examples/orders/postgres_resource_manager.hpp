// A PostgreSQL database as a resource manager of distributed transactions (taiyen/distributed.h): it prepares its part,
// and the group's first heap decides. So several databases can take part in one distributed transaction. The server
// must allow prepared transactions. Copy it into a program, with postgres.hpp and its source.
#pragma once

#include "postgres.hpp"
#include <mutex>
#include <taiyen/distributed.h>
#include <taiyen/taiyen.h>

namespace orders {

// The program changes its tables through `work()`, between ty_dtxn_begin and ty_dtxn_commit, in a transaction that it
// begins; if the distributed transaction is not committed, the program rolls that back itself, as a resource manager
// that was not asked to prepare is not called.
class postgres_resource_manager {
public:
    // key: a number for the program's group, different for each group. It keeps two processes from the same part of the
    // database, also if one of them is dead and its server has not noticed yet: otherwise that session could prepare a
    // transaction after the next process has listed the prepared ones, or be committing one that the next process is to
    // end. Throws if the database cannot be used.
    postgres_resource_manager(const std::string &where, int key);

    postgres &work() { return work_; }
    // For ty_group_options. The object lives as long as the group.
    ty_resource_manager described();

private:
    ty_status prepare(const char *id);
    ty_status end(const char *command, const char *id);
    ty_status recover(const char *prefix, void (*callback)(const char *id, void *context), void *context);

    postgres work_;
    std::mutex resolver_lock_; // one distributed transaction may be committed while the next one prepares
    postgres resolver_;
};

} // namespace orders
