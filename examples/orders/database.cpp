#include "database.hpp"
#include "heap_file.hpp"

namespace orders {
namespace {

[[noreturn]] void refuse(const std::string &kind) {
    throw demo::failure("there is no database " + kind +
                        " here: know sqlite, postgres and postgres-prepared, as far as "
                        "their libraries were there when this program was built");
}

} // namespace

std::unique_ptr<database> open_database([[maybe_unused]] const std::string &kind,
                                        [[maybe_unused]] const std::string &where) {
#ifdef ORDERS_SQLITE
    if (kind == "sqlite")
        return open_sqlite(where);
#endif
#ifdef ORDERS_POSTGRES
    if (kind == "postgres")
        return open_postgres(where);
    if (kind == "postgres-prepared")
        return open_postgres_prepared(where);
#endif
    refuse(kind);
}

void found_database([[maybe_unused]] const std::string &kind, [[maybe_unused]] const std::string &where) {
#ifdef ORDERS_SQLITE
    if (kind == "sqlite")
        return found_sqlite(where);
#endif
#ifdef ORDERS_POSTGRES
    if (kind == "postgres" || kind == "postgres-prepared")
        return found_postgres(where);
#endif
    refuse(kind);
}

} // namespace orders
