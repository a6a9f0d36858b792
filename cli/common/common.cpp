#include "commands.hpp"
#include "common/json.hpp"
#include "common/numbers.hpp"
#include "common/text.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <taiyen/detail/fault.hpp>
#include <unistd.h>
#include <utility>

namespace cli {

// CL1: a command that reads changes no file.
ty_open_options heap_files::options() const {
    ty_open_options options = TY_OPEN_OPTIONS_INIT;
    options.mode = taiyen::detail::fault("look_opens_for_writing") ? TY_OPEN_EXISTING : TY_OPEN_COPY;
    options.code = TY_CODE_IGNORED;
    options.journal_path = journal_path.empty() ? nullptr : journal_path.c_str();
    options.log_path = log_path.empty() ? nullptr : log_path.c_str();
    options.mark = mark.empty() ? nullptr : mark.c_str();
    return options;
}

heap_files files_at_mark(const request &given, size_t operand) {
    heap_files files{given.paths[operand], given.journal_path, given.log_path, ""};
    const std::string &words = given.paths[operand];
    for (size_t at = words.rfind('@'); at != std::string::npos && at != 0 && access(files.path.c_str(), F_OK) != 0;
         at = words.rfind('@', at - 1))
        if (access(words.substr(0, at).c_str(), F_OK) == 0 && at + 1 < words.size()) {
            files.path = words.substr(0, at);
            files.mark = words.substr(at + 1);
        }
    return files;
}

// CL3: scripts rely on exit codes.
int each_heap(const request &given, int (*look)(const heap_files &files, const request &given)) {
    int worst = exit_fine;
    for (const std::string &path : given.paths)
        worst = std::max(worst, look({path, given.journal_path, given.log_path}, given));
    return worst;
}

std::string as_options(std::string text) {
    for (const auto &[name, option] : {std::pair{" journal_path", " --journal"},
                                       {" log_path", " --log"},
                                       {"TY_PLACE_EITHER", "--elsewhere"},
                                       {"ty_each_mark lists a heap's marks", "taiyen marks FILE lists them"},
                                       {"register it with ty_register_procedure before the heap is opened",
                                        "open it with its program, which has the procedure, and take a snapshot"}})
        for (size_t at = 0; (at = text.find(name, at)) != std::string::npos; at += std::strlen(option))
            text.replace(at, std::strlen(name), option);
    return text;
}

// CL3: scripts rely on exit codes.
int complain(ty_status status) {
    std::fflush(stdout);
    std::fprintf(stderr, "taiyen: %s\n", text::printable(as_options(ty_error_text())).c_str());
    const bool of_heap = status == TY_E_DAMAGED || status == TY_E_MISMATCH || status == TY_E_IN_DOUBT;
    return of_heap ? exit_problems : exit_cannot;
}

// CL4: with --json, a file that cannot be read has a document, too.
int refuse(const heap_files &files, const request &given, ty_status status) {
    if (given.json)
        json::print({{"path", files.path}, {"error", json::error(status)}});
    return complain(status);
}

int refuse(const request &given, ty_status status) {
    return refuse({given.paths[0], "", ""}, given, status);
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

bool read_kind(const request &given, ty_kind *kind) {
    for (const ty_kind one : {TY_ARCHIVE, TY_SNAPSHOT, TY_TRANSACTIONAL}) {
        if (given.kind != kind_name(one))
            continue;
        *kind = one;
        return true;
    }
    return given.kind.empty() || refuse_value("kind", given.kind, "archive, snapshot or transactional");
}

bool read_class_table(const request &given, ty_class_table *classes) {
    if (given.class_table == "dense")
        *classes = TY_CLASSES_DENSE;
    else if (!given.class_table.empty() && given.class_table != "cache-line")
        return refuse_value("class-table", given.class_table, "cache-line or dense");
    return true;
}

std::vector<ty_class_stats> classes_of(ty_heap *heap, ty_status *status) {
    std::vector<ty_class_stats> classes;
    auto keep = [](const ty_class_stats *one, void *all) {
        static_cast<std::vector<ty_class_stats> *>(all)->push_back(*one);
        return true;
    };
    *status = ty_each_class(heap, keep, &classes);
    return classes;
}

} // namespace cli
