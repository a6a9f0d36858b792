// taiyen create, resize, convert: creates heaps, raises their limit, changes their kind.
#include "common/numbers.hpp"
#include "common/text.hpp"
#include "look/reading.hpp"
#include "move/making.hpp"

#include <cstdio>
#include <nlohmann/json.hpp>

namespace cli {

namespace {

constexpr uint64_t limit_step_bytes = uint64_t{64} << 20; // the library rounds a limit up to a multiple

int complain_of(const char *what, const char *about) {
    std::fprintf(stderr, "taiyen: %s; see taiyen help %s\n", what, about);
    return exit_cannot;
}

bool read_log_options(const request &given, ty_open_options *options) {
    uint64_t bytes = 0;
    int64_t streams = 0;
    if (!given.log_size.empty() && (!read_size(given.log_size, &bytes) || bytes == 0))
        return refuse_value("log-size", given.log_size, "a number of bytes, such as 64M or 1G");
    if (!given.streams.empty() && !read_whole(given.streams, 1, TY_LOG_STREAMS_MAX, &streams))
        return refuse_value("log-streams", given.streams, "1 to 8");
    options->log_bytes = bytes;
    options->log_streams = static_cast<uint32_t>(streams);
    if (options->kind == TY_TRANSACTIONAL || (bytes == 0 && streams == 0))
        return true;
    std::fprintf(stderr, "taiyen: --log-size and --log-streams are of a heap with a log: give --kind transactional\n");
    return false;
}

// Opens the heap for writing, and closes it.
ty_status open_and_close(const std::string &path, const ty_open_options &options) {
    ty_heap *heap = nullptr;
    if (ty_status status = ty_open(path.c_str(), &options, &heap, nullptr))
        return status;
    const ty_status status = ty_close(heap);
    if (status != TY_OK)
        static_cast<void>(ty_discard(heap)); // what was durable stays so
    return status;
}

} // namespace

ty_open_options writing_options(const heap_files &files) {
    ty_open_options options = files.options();
    options.mode = TY_OPEN_EXISTING;
    return options;
}

// The kinds on the way to the wanted one; each step is one open.
ty_status change_kind(const heap_files &files, ty_kind from, const ty_open_options &wanted) {
    if (from == TY_ARCHIVE && wanted.kind == TY_TRANSACTIONAL) {
        ty_open_options first = writing_options(files);
        first.kind = TY_SNAPSHOT;
        if (ty_status status = open_and_close(files.path, first))
            return status;
    }
    return open_and_close(files.path, wanted);
}

namespace {

ty_status read_info(const heap_files &files, ty_info *info) {
    const ty_open_options options = files.options();
    *info = {};
    info->struct_size = sizeof *info;
    return ty_read_info(files.path.c_str(), &options, info);
}

int report(const heap_files &files, const request &given) {
    ty_info info;
    if (ty_status status = read_info(files, &info))
        return refuse(files, given, status);
    if (given.json)
        json::print(document_of(files.path, info));
    else
        print_info(files, info);
    return exit_fine;
}

int convert_in_place(const request &given, ty_kind kind) {
    const heap_files files{given.paths[0], given.journal_path, given.log_path};
    ty_info info;
    if (ty_status status = read_info(files, &info))
        return refuse(files, given, status);
    if (kind == TY_ARCHIVE && info.kind != TY_ARCHIVE)
        return refuse(files, given,
                      ty_error_set(TY_E_UNSUPPORTED, 0, "make an archive heap of another one in place",
                                   files.path.c_str(), UINT64_MAX,
                                   "make a copy: taiyen convert FILE COPY --kind archive"));
    ty_open_options options = writing_options(files);
    options.kind = kind;
    if (!read_log_options(given, &options))
        return exit_cannot;
    if (kind != info.kind)
        if (ty_status status = change_kind(files, info.kind, options))
            return refuse(files, given, status);
    return report(files, given);
}

} // namespace

int create(const request &given) {
    const heap_files files{given.paths[0], given.journal_path, given.log_path};
    ty_open_options options = files.options();
    options.mode = TY_CREATE_NEW;
    options.code = TY_CODE_DEFAULT;
    uint64_t limit = 0, base = 0;
    if (!read_kind(given, &options.kind) || !read_class_table(given, &options.classes) ||
        !read_log_options(given, &options))
        return exit_cannot;
    if (!given.limit.empty() && (!read_size(given.limit, &limit) || limit == 0))
        refuse_value("limit", given.limit, "a number of bytes, such as 500M or 64G");
    else if (!given.base.empty() && !read_address(given.base, &base))
        refuse_value("base", given.base, "an address, such as 0x420000000000");
    else {
        options.limit_bytes = limit;
        options.base = reinterpret_cast<void *>(base);
        const ty_status status = open_and_close(files.path, options);
        return status != TY_OK ? refuse(files, given, status) : report(files, given);
    }
    return exit_cannot;
}

int resize(const request &given) {
    const heap_files files{given.paths[0], given.journal_path, given.log_path};
    uint64_t limit = 0;
    if (given.limit.empty())
        return complain_of("'resize' needs --limit SIZE", "resize");
    if (!read_size(given.limit, &limit) || limit == 0 || limit > UINT64_MAX - limit_step_bytes) {
        refuse_value("limit", given.limit, "a number of bytes, such as 500M or 64G");
        return exit_cannot;
    }
    ty_info info;
    if (ty_status status = read_info(files, &info))
        return refuse(files, given, status);
    const uint64_t rounded = (limit + limit_step_bytes - 1) / limit_step_bytes * limit_step_bytes;
    if (rounded < info.limit_bytes)
        return refuse(files, given,
                      ty_error_set(TY_E_UNSUPPORTED, 0, "give a heap a smaller limit in place", files.path.c_str(),
                                   UINT64_MAX, "make a smaller copy: taiyen copy FILE COPY --limit SIZE"));
    ty_open_options options = writing_options(files);
    options.limit_bytes = limit;
    if (rounded > info.limit_bytes)
        if (ty_status status = open_and_close(files.path, options))
            return refuse(files, given, status);
    return report(files, given);
}

int convert(const request &given) {
    ty_kind kind = TY_KIND_DEFAULT;
    if (given.kind.empty())
        return complain_of("'convert' needs --kind KIND", "convert");
    if (!read_kind(given, &kind))
        return exit_cannot;
    if (given.in_place && given.paths.size() == 2)
        return complain_of("'convert' takes a COPY or --in-place, and was given both", "convert");
    if (!given.in_place && given.paths.size() == 1)
        return complain_of("'convert' needs a COPY, or --in-place", "convert");
    if (given.in_place)
        return convert_in_place(given, kind);
    if (!given.log_size.empty() || !given.streams.empty())
        return complain_of("--log-size and --log-streams of 'convert' need --in-place", "convert");
    return copy(given);
}

} // namespace cli
