#include "sqlite_agent.hpp"
#include <stdexcept>
#include <string>

namespace orders {

sqlite_agent::sqlite_agent(sqlite3 *connection, const char *name) : connection_(connection), name_(name) {
    auto prepare = [&](const char *sql, sqlite3_stmt **statement) {
        return sqlite3_prepare_v3(connection_, sql, -1, SQLITE_PREPARE_PERSISTENT, statement, nullptr) == SQLITE_OK;
    };
    if (!run("CREATE TABLE IF NOT EXISTS dtxns (id TEXT PRIMARY KEY, committed INTEGER NOT NULL) "
             "WITHOUT ROWID") ||
        !prepare("INSERT INTO dtxns VALUES (?, 1)", &note_) ||
        !prepare("INSERT INTO dtxns VALUES (?, 0) ON CONFLICT DO NOTHING", &refuse_) ||
        !prepare("DELETE FROM dtxns WHERE id = ?", &forget_) ||
        !prepare("SELECT committed FROM dtxns WHERE id = ?", &look_))
        throw std::runtime_error(std::string("cannot use the table dtxns: ") + sqlite3_errmsg(connection_));
}

sqlite_agent::~sqlite_agent() {
    for (sqlite3_stmt *each : {note_, refuse_, forget_, look_})
        sqlite3_finalize(each);
}

ty_last_agent sqlite_agent::described() {
    return {sizeof(ty_last_agent),
            name_,
            this,
            [](void *self, const char *id, const char *done) {
                return static_cast<sqlite_agent *>(self)->commit(id, done);
            },
            [](void *self) { static_cast<sqlite_agent *>(self)->rollback(); },
            [](void *self, const char *id, bool *committed) {
                return static_cast<sqlite_agent *>(self)->resolve(id, committed);
            }};
}

ty_status sqlite_agent::commit(const char *id, const char *done) {
    const bool is_noted = (!sqlite3_get_autocommit(connection_) || run("BEGIN IMMEDIATE")) && run_with(note_, id) &&
                          (done == nullptr || run_with(forget_, done));
    if (is_noted && run("COMMIT"))
        return TY_OK;
    if (is_noted && sqlite3_get_autocommit(connection_)) // the transaction is over, with an unknown outcome
        return TY_E_IN_DOUBT;
    rollback();
    return TY_E_IO;
}

void sqlite_agent::rollback() {
    if (!sqlite3_get_autocommit(connection_))
        run("ROLLBACK");
}

// A connection that could still commit the identifier holds the database's lock: this waits for it. Then the row is
// there, or is inserted as rolled back, and a later insert fails, as the key is unique.
ty_status sqlite_agent::resolve(const char *id, bool *committed) {
    rollback();
    if (!run("BEGIN IMMEDIATE"))
        return TY_E_BUSY;
    if (!run_with(refuse_, id) || !run("COMMIT")) {
        rollback();
        return TY_E_IO;
    }
    sqlite3_bind_text(look_, 1, id, -1, SQLITE_STATIC);
    const bool is_found = sqlite3_step(look_) == SQLITE_ROW;
    *committed = is_found && sqlite3_column_int(look_, 0) != 0;
    sqlite3_reset(look_);
    return is_found ? TY_OK : TY_E_IO;
}

bool sqlite_agent::run(const char *sql) {
    return sqlite3_exec(connection_, sql, nullptr, nullptr, nullptr) == SQLITE_OK;
}

bool sqlite_agent::run_with(sqlite3_stmt *statement, const char *id) {
    const bool is_done =
        sqlite3_bind_text(statement, 1, id, -1, SQLITE_STATIC) == SQLITE_OK && sqlite3_step(statement) == SQLITE_DONE;
    return sqlite3_reset(statement) == SQLITE_OK && is_done;
}

} // namespace orders
