#include "postgres_agent.hpp"
#include <stdexcept>

namespace orders {

// IF NOT EXISTS fails if another session creates the table at the same moment, also one of a process that was killed.
postgres_agent::postgres_agent(postgres &connection, const char *name) : connection_(connection), name_(name) {
    constexpr const char *unique_violation = "23505", *duplicate_table = "42P07";
    const char *make = "CREATE TABLE IF NOT EXISTS dtxns (id text PRIMARY KEY, committed boolean NOT NULL)";
    postgres_result made = connection_.run(make);
    if (state_of(made) == unique_violation || state_of(made) == duplicate_table)
        made = connection_.run(make);
    if (!is_done(made, "CREATE"))
        throw std::runtime_error(std::string("cannot make the table dtxns: ") + connection_.error());
}

ty_last_agent postgres_agent::described() {
    return {sizeof(ty_last_agent),
            name_,
            this,
            [](void *self, const char *id, const char *done) {
                return static_cast<postgres_agent *>(self)->commit(id, done);
            },
            [](void *self) { static_cast<postgres_agent *>(self)->rollback(); },
            [](void *self, const char *id, bool *committed) {
                return static_cast<postgres_agent *>(self)->resolve(id, committed);
            }};
}

ty_status postgres_agent::commit(const char *id, const char *done) {
    const bool is_noted = (connection_.in_transaction() || is_done(connection_.run("BEGIN"), "BEGIN")) &&
                          is_done(connection_.run("INSERT INTO dtxns VALUES ($1, true)", {id}), "INSERT") &&
                          (!done || is_done(connection_.run("DELETE FROM dtxns WHERE id = $1", {done}), "DELETE"));
    if (!is_noted) {
        rollback();
        return TY_E_IO;
    }
    const postgres_result result = connection_.run("COMMIT");
    if (is_done(result, "COMMIT"))
        return TY_OK;
    if (!connection_.is_connected()) // the commit was sent, and the answer is lost
        return TY_E_IN_DOUBT;
    rollback();
    return TY_E_IO; // the server answered ROLLBACK, or an error
}

void postgres_agent::rollback() {
    if (connection_.in_transaction())
        connection_.run("ROLLBACK");
}

// The insert waits for a transaction that has inserted the identifier and has not ended: a server notices only a moment
// later that its client has died. Then the row is there, or is inserted as rolled back, and a later insert fails.
ty_status postgres_agent::resolve(const char *id, bool *committed) {
    if (!connection_.reconnect())
        return TY_E_IO;
    rollback();
    if (!is_done(connection_.run("INSERT INTO dtxns VALUES ($1, false) ON CONFLICT DO NOTHING", {id}), "INSERT"))
        return TY_E_IO;
    const postgres_result found = connection_.run("SELECT committed FROM dtxns WHERE id = $1", {id});
    if (PQresultStatus(found.get()) != PGRES_TUPLES_OK || PQntuples(found.get()) != 1)
        return TY_E_IO;
    *committed = PQgetvalue(found.get(), 0, 0)[0] == 't';
    return TY_OK;
}

} // namespace orders
