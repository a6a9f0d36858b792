#include "postgres.hpp"
#include <cstring>
#include <stdexcept>

namespace orders {

postgres::postgres(std::string where, std::string first)
    : first_(std::move(first)), connection_(PQconnectdb(where.c_str())) {
    if (is_connected())
        PQsetNoticeProcessor(
            connection_, [](void *, const char *) {}, nullptr);
    if (is_connected() && (first_.empty() || PQresultStatus(run(first_.c_str()).get()) == PGRES_TUPLES_OK))
        return;
    const std::string text = std::string("cannot use PostgreSQL: ") + error();
    PQfinish(connection_);
    throw std::runtime_error(text);
}

postgres::~postgres() {
    PQfinish(connection_);
}

postgres_result postgres::run(const char *sql, std::initializer_list<const char *> values) {
    return postgres_result(
        PQexecParams(connection_, sql, static_cast<int>(values.size()), nullptr, values.begin(), nullptr, nullptr, 0));
}

bool postgres::reconnect() {
    if (is_connected())
        return true;
    PQreset(connection_);
    return is_connected() && (first_.empty() || PQresultStatus(run(first_.c_str()).get()) == PGRES_TUPLES_OK);
}

bool postgres::in_transaction() const {
    return PQtransactionStatus(connection_) == PQTRANS_INTRANS || PQtransactionStatus(connection_) == PQTRANS_INERROR;
}

std::string postgres::quoted(const char *text) const {
    char *made = PQescapeLiteral(connection_, text, std::strlen(text));
    if (made == nullptr)
        throw std::runtime_error(error());
    std::string copy = made;
    PQfreemem(made);
    return copy;
}

bool is_done(const postgres_result &result, const char *command) {
    return PQresultStatus(result.get()) == PGRES_COMMAND_OK &&
           std::strncmp(PQcmdStatus(result.get()), command, std::strlen(command)) == 0;
}

std::string state_of(const postgres_result &result) {
    const char *state = PQresultErrorField(result.get(), PG_DIAG_SQLSTATE);
    return state == nullptr ? "" : state;
}

} // namespace orders
