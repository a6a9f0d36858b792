#include "commands.hpp"

#include <cstdio>

namespace cli {

int complain(ty_status status) {
    std::fflush(stdout);
    std::fprintf(stderr, "taiyen: %s\n", ty_error_text());
    return status == TY_E_DAMAGED || status == TY_E_MISMATCH ? exit_problems : exit_cannot;
}

std::string name_of(const std::string &path) {
    return path.substr(path.rfind('/') + 1);
}

const char *kind_name(ty_kind kind) {
    switch (kind) {
    case TY_VOLATILE:
        return "volatile";
    case TY_ARCHIVE:
        return "archive";
    case TY_SNAPSHOT:
        return "snapshot";
    case TY_TRANSACTIONAL:
        return "transactional";
    case TY_KIND_DEFAULT:
        break;
    }
    return "unknown";
}

} // namespace cli
