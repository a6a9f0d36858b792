// A connection to PostgreSQL, for the agent, the resource manager and the shop.
#pragma once

#include <initializer_list>
#include <libpq-fe.h>
#include <memory>
#include <string>

namespace orders {

struct postgres_result_end {
    void operator()(PGresult *result) const { PQclear(result); }
};
using postgres_result = std::unique_ptr<PGresult, postgres_result_end>;

class postgres {
public:
    // Throws if there is no server. first: executed at the start of each connection.
    explicit postgres(std::string where, std::string first = "");
    ~postgres();
    postgres(const postgres &) = delete;
    postgres &operator=(const postgres &) = delete;

    postgres_result run(const char *sql, std::initializer_list<const char *> values = {});
    bool is_connected() const { return PQstatus(connection_) == CONNECTION_OK; }
    // Reconnects if the connection was lost. False: it cannot.
    bool reconnect();
    bool in_transaction() const;
    std::string quoted(const char *text) const;
    const char *error() const { return PQerrorMessage(connection_); }

private:
    std::string first_;
    PGconn *connection_;
};

// Whether the command succeeded, and its name in the server's answer is this one.
bool is_done(const postgres_result &result, const char *command);
// The error's SQLSTATE (five characters); empty: the connection was lost.
std::string state_of(const postgres_result &result);

} // namespace orders
