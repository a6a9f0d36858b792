#include "postgres_resource_manager.hpp"
#include <cstring>
#include <vector>

namespace orders {

namespace {

// A lock that a session holds until it ends, on the server's side.
std::string lock_of(int key, int which) {
    return "SELECT pg_advisory_lock(" + std::to_string(key) + ", " + std::to_string(which) + ")";
}

} // namespace

postgres_resource_manager::postgres_resource_manager(const std::string &where, int key)
    : work_(where, lock_of(key, 0)), resolver_(where, lock_of(key, 1)) {}

ty_resource_manager postgres_resource_manager::described() {
    using self_type = postgres_resource_manager;
    return {sizeof(ty_resource_manager),
            this,
            [](void *self, const char *id) { return static_cast<self_type *>(self)->prepare(id); },
            [](void *self, const char *id) { return static_cast<self_type *>(self)->end("COMMIT PREPARED", id); },
            [](void *self, const char *id) { return static_cast<self_type *>(self)->end("ROLLBACK PREPARED", id); },
            [](void *self, const char *prefix, void (*callback)(const char *, void *), void *context) {
                return static_cast<self_type *>(self)->recover(prefix, callback, context);
            }};
}

ty_status postgres_resource_manager::prepare(const char *id) {
    if (!work_.in_transaction() && !is_done(work_.run("BEGIN"), "BEGIN"))
        return TY_E_IO;
    const std::string command = "PREPARE TRANSACTION " + work_.quoted(id);
    if (is_done(work_.run(command.c_str()), "PREPARE TRANSACTION"))
        return TY_OK;
    if (!work_.is_connected()) // it may be prepared, or will be; once we have the lock, the old session has ended, and
                               // the outcome is known
        return work_.reconnect() && end("ROLLBACK PREPARED", id) == TY_OK ? TY_E_IO : TY_E_IN_DOUBT;
    if (work_.in_transaction())
        work_.run("ROLLBACK");
    return TY_E_IO;
}

ty_status postgres_resource_manager::end(const char *command, const char *id) {
    constexpr const char *no_such_transaction = "42704";
    std::lock_guard guard(resolver_lock_);
    if (!resolver_.reconnect())
        return TY_E_IO;
    const postgres_result result = resolver_.run((std::string(command) + " " + resolver_.quoted(id)).c_str());
    return is_done(result, command) || state_of(result) == no_such_transaction ? TY_OK : TY_E_IO;
}

ty_status postgres_resource_manager::recover(const char *prefix, void (*callback)(const char *id, void *context),
                                             void *context) {
    std::vector<std::string> all;
    if (!work_.reconnect()) // with the lock: no other session prepares any more
        return TY_E_IO;
    {
        std::lock_guard guard(resolver_lock_);
        if (!resolver_.reconnect())
            return TY_E_IO;
        const postgres_result found =
            resolver_.run("SELECT gid FROM pg_prepared_xacts WHERE database = current_database() "
                          "AND left(gid, length($1)) = $1",
                          {prefix});
        if (PQresultStatus(found.get()) != PGRES_TUPLES_OK)
            return TY_E_IO;
        for (int row = 0; row < PQntuples(found.get()); ++row)
            all.emplace_back(PQgetvalue(found.get(), row, 0));
    }
    for (const std::string &id : all)
        callback(id.c_str(), context);
    return TY_OK;
}

} // namespace orders
