#include "commands.hpp"
#include "text.hpp"

#include <cstdio>
#include <cstring>
#include <utility>

namespace cli {

ty_open_options heap_files::options() const {
    ty_open_options options = TY_OPEN_OPTIONS_INIT;
    options.mode = TY_OPEN_READ_ONLY;
    options.journal_path = journal_path.empty() ? nullptr : journal_path.c_str();
    options.log_path = log_path.empty() ? nullptr : log_path.c_str();
    return options;
}

std::string as_options(std::string text) {
    for (const auto &[name, option] :
         {std::pair{"with journal_path", "with --journal"}, {"with log_path", "with --log"}})
        if (const size_t at = text.find(name); at != std::string::npos)
            text.replace(at, std::strlen(name), option);
    return text;
}

int complain(ty_status status) {
    std::fflush(stdout);
    std::fprintf(stderr, "taiyen: %s\n", text::printable(as_options(ty_error_text())).c_str());
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
