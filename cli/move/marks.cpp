// taiyen mark, marks, return and branch: durable marks of a heap, and what becomes of them.
#include "common/json.hpp"
#include "common/text.hpp"
#include "common/times.hpp"
#include "move/making.hpp"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace cli {

namespace {

struct mark_line {
    std::string name, parent; // "": none
    ty_mark_info figures;
};

ty_status list(ty_heap *heap, std::vector<mark_line> &all) {
    return ty_each_mark(
        heap,
        [](const ty_mark_info *info, void *context) {
            static_cast<std::vector<mark_line> *>(context)->push_back(
                {info->name, info->parent ? info->parent : "", *info});
            return true;
        },
        &all);
}

// The first failure is reported.
ty_status closed_after(ty_heap *heap, ty_status status) {
    if (status == TY_OK)
        return ty_close(heap);
    ty_error error;
    ty_error_detail(&error);
    static_cast<void>(ty_discard(heap));
    return ty_error_set(status, error.system_error, error.operation, error.path, error.offset, error.remedy);
}

void print(const heap_files &files, const request &given, const std::vector<mark_line> &all) {
    json::document marks = json::document::array();
    if (!given.json && all.empty())
        std::printf("%s: no durable marks\n", text::printable(files.path).c_str());
    for (const mark_line &mark : all) {
        const uint64_t bytes = mark.figures.changed_pages * 4096;
        if (given.json)
            marks.push_back(
                {{"name", text::utf8(mark.name)},
                 {"parent", mark.parent.empty() ? json::document() : json::document(text::utf8(mark.parent))},
                 {"unix_s", json::wide(mark.figures.time_ns / 1'000'000'000)},
                 {"changed_bytes", json::wide(bytes)},
                 {"file_bytes", json::wide(mark.figures.copied_bytes)},
                 {"current", mark.figures.current}});
        else
            std::printf("%s %s: %s%s, %s changed since\n", mark.figures.current ? "*" : " ",
                        text::printable(mark.name).c_str(), time_text(mark.figures.time_ns).c_str(),
                        mark.parent.empty() ? "" : (", after " + text::printable(mark.parent)).c_str(),
                        text::size(bytes).c_str());
    }
    if (given.json)
        json::print({{"path", files.path}, {"marks", marks}});
}

// The marks of the heap, whose files stay as they are; and `look`, called with it open for reading.
template <class Function>
ty_status read_marks(const heap_files &files, std::vector<mark_line> &all, Function &&look) {
    const ty_open_options options = files.options();
    ty_heap *heap = nullptr;
    if (ty_status status = ty_open(files.path.c_str(), &options, &heap, nullptr))
        return status;
    ty_status status = list(heap, all);
    if (status == TY_OK)
        status = look(heap);
    return closed_after(heap, status);
}

int show(const heap_files &files, const request &given) {
    std::vector<mark_line> all;
    if (ty_status status = read_marks(files, all, [](ty_heap *) { return TY_OK; }))
        return refuse(files, given, status);
    print(files, given, all);
    return exit_fine;
}

// Opens the heap for writing, calls change(), and closes it: durably, or not at all.
template <class Function>
int change_heap(const heap_files &files, const request &given, Function &&change) {
    const ty_open_options options = writing_options(files);
    ty_heap *heap = nullptr;
    if (ty_status status = ty_open(files.path.c_str(), &options, &heap, nullptr))
        return refuse(files, given, status);
    ty_status status = change(heap);
    if (status == TY_OK)
        status = ty_close(heap);
    if (status != TY_OK) {
        status = closed_after(heap, status);
        return refuse(files, given, status);
    }
    return show(files, given);
}

bool has(const std::vector<mark_line> &all, const std::string &name) {
    return std::any_of(all.begin(), all.end(), [&](const mark_line &mark) { return mark.name == name; });
}

// Before the files are opened for writing.
int must_be_there(const heap_files &files, const request &given, const std::string &name) {
    std::vector<mark_line> all;
    if (ty_status status = read_marks(files, all, [](ty_heap *) { return TY_OK; }))
        return refuse(files, given, status);
    if (has(all, name))
        return exit_fine;
    return refuse(files, given,
                  ty_error_set(TY_E_NOT_FOUND, 0, ("find the mark \"" + text::printable(name) + "\"").c_str(),
                               files.path.c_str(), UINT64_MAX, "taiyen marks FILE lists them"));
}

} // namespace

int marks(const request &given) {
    const heap_files files{given.paths[0], given.journal_path, given.log_path};
    if (given.drop.empty())
        return show(files, given);
    if (const int code = must_be_there(files, given, given.drop))
        return code;
    return change_heap(files, given, [&](ty_heap *heap) { return ty_drop_mark(heap, given.drop.c_str()); });
}

int mark(const request &given) {
    const heap_files files{given.paths[0], given.journal_path, given.log_path};
    const char *name = given.paths[1].c_str();
    ty_mark_options options = TY_MARK_OPTIONS_INIT;
    options.durable = true;
    std::vector<mark_line> all;
    // A heap that is read cannot be marked for that reason alone, unless there is another.
    const ty_status status = read_marks(files, all, [&](ty_heap *heap) {
        if (has(all, name))
            return ty_error_set(TY_E_EXISTS, 0, ("mark the heap \"" + text::printable(name) + "\"").c_str(),
                                files.path.c_str(), UINT64_MAX, "drop that mark first, or use another name");
        const ty_status refused = ty_mark(heap, name, &options);
        return refused == TY_E_PERMISSION ? TY_OK : refused;
    });
    if (status != TY_OK)
        return refuse(files, given, status);
    return change_heap(files, given, [&](ty_heap *heap) { return ty_mark(heap, name, &options); });
}

int branch(const request &given) {
    const heap_files files = files_at_mark(given);
    const std::string &made = given.paths[1];
    const ty_open_options options = files.options();
    ty_heap *heap = nullptr;
    if (ty_status status = ty_open(files.path.c_str(), &options, &heap, nullptr))
        return refuse(files, given, status);
    ty_heap_stats stats{};
    stats.struct_size = sizeof stats;
    ty_status status = ty_heap_get_stats(heap, &stats);
    if (status == TY_OK)
        status = ty_branch(heap, made.c_str());
    status = closed_after(heap, status);
    if (status)
        return refuse(files, given, status);
    if (given.json)
        json::print({{"path", made},
                     {"from", files.path},
                     {"mark", files.mark.empty() ? json::document() : json::document(text::utf8(files.mark))},
                     {"used_bytes", json::wide(stats.used_bytes)}});
    else
        std::printf("%s: a branch of %s%s, %s\n", text::printable(made).c_str(), text::printable(files.path).c_str(),
                    files.mark.empty() ? "" : (" at " + text::printable(files.mark)).c_str(),
                    text::size(stats.used_bytes).c_str());
    return exit_fine;
}

int return_to(const request &given) {
    const heap_files files{given.paths[0], given.journal_path, given.log_path};
    if (const int code = must_be_there(files, given, given.paths[1]))
        return code;
    return change_heap(files, given,
                       [&](ty_heap *heap) { return ty_return_to(heap, given.paths[1].c_str(), nullptr); });
}

} // namespace cli
