// taiyen unpack and copy: make heaps from packed ones, and from other heaps.
#include "commands.hpp"
#include "common/json.hpp"
#include "common/numbers.hpp"
#include "common/progress.hpp"
#include "common/text.hpp"
#include "types/descriptors_file.hpp"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <taiyen/pack.h>
#include <unistd.h>

namespace cli {

namespace {

bool read_layout(const request &given, ty_unpack_options *options) {
    if (given.defragment)
        options->layout = TY_LAYOUT_DEFRAGMENT;
    if (given.class_table == "cache-line")
        options->layout = TY_LAYOUT_LINE;
    else if (given.class_table == "dense")
        options->layout = TY_LAYOUT_PACKED;
    else if (!given.class_table.empty())
        return refuse_value("class-table", given.class_table, "cache-line or dense");
    return true;
}

bool read_options(const request &given, ty_unpack_options *options) {
    uint64_t limit = 0, base = 0, threads = 0;
    if (!given.limit.empty() && !read_size(given.limit, &limit))
        return refuse_value("limit", given.limit, "a number of bytes, such as 500M or 64G");
    if (!given.base.empty() && !read_address(given.base, &base))
        return refuse_value("base", given.base, "an address, such as 0x420000000000");
    if (!given.threads.empty() && (!read_size(given.threads, &threads) || threads == 0 || threads > 256))
        return refuse_value("threads", given.threads, "1 to 256");
    if (given.paths[1] == "-") {
        std::fprintf(stderr, "taiyen: a heap is made in files, and cannot be the output: name a file ('./-' for one of "
                             "that name)\n");
        return false;
    }
    options->limit_bytes = limit;
    options->base = reinterpret_cast<void *>(base);
    options->threads = static_cast<uint32_t>(threads);
    if (given.elsewhere || base != 0)
        options->place = TY_PLACE_OTHER;
    options->force = given.force;
    return read_kind(given, &options->kind) && read_layout(given, options);
}

void print_result(const request &given, const ty_unpack_report &report) {
    if (!given.json) {
        std::printf("%s: %s\n", text::printable(given.paths[1]).c_str(), report.text);
        return;
    }
    json::print({{"path", given.paths[1]},
                 {"kind", kind_name(report.kind)},
                 {"moved", report.moved},
                 {"old_base", text::hex(report.old_base)},
                 {"base", text::hex(report.base)},
                 {"live_blocks", json::wide(report.live_blocks)},
                 {"live_bytes", json::wide(report.live_bytes)},
                 {"moved_blocks", json::wide(report.moved_blocks)},
                 {"old_used_bytes", json::wide(report.old_used_bytes)},
                 {"used_bytes", json::wide(report.used_bytes)},
                 {"fixed_pointers", json::wide(report.fixed_pointers)},
                 {"packed_bytes", json::wide(report.packed_bytes)},
                 {"lost_roots", json::wide(report.lost_roots)},
                 {"duration_ns", json::wide(report.duration_ns)}});
}

ty_status unpack_from(int descriptor, const std::string &packed, const request &given, ty_unpack_options options,
                      ty_unpack_report *report) {
    described_descriptors descriptors;
    if (ty_status status = descriptors.read(given.types_path))
        return status;
    progress shown("unpacking");
    options.progress = progress::report;
    options.progress_context = &shown;
    options.types = descriptors.get();
    options.path = given.paths[1].c_str();
    *report = {};
    report->struct_size = sizeof *report;
    return descriptor >= 0 ? ty_unpack_descriptor(descriptor, &options, nullptr, nullptr, report)
                           : ty_unpack_file(packed.c_str(), &options, nullptr, nullptr, report);
}

// A second process makes the copy, and returns the result through a pipe: the copied heap is at the address that the
// copy has, so one process can't have both open.
struct copy_result {
    ty_status status;
    ty_unpack_report report;
    char error[1024];
};

// The copy must not be readable for anybody who could not read the heap.
void keep_rights_of(const std::string &path) {
    struct stat heap;
    if (stat(path.c_str(), &heap) == 0)
        umask(static_cast<mode_t>(~(heap.st_mode | 0600) & 0777)); // the process that makes it opens it for writing
}

[[noreturn]] void make_copy(int stream, int results, const request &given, const ty_unpack_options &options) {
    copy_result result{};
    result.status = unpack_from(stream, "", given, options, &result.report);
    if (result.status != TY_OK)
        std::strncpy(result.error, as_options(ty_error_text()).c_str(), sizeof result.error - 1);
    const auto done = write(results, &result, sizeof result);
    _exit(done == static_cast<ssize_t>(sizeof result) ? 0 : 1);
}

// Packs the heap into the pipe to the other process, with the library's errors.
ty_status send_heap(const heap_files &files, int stream) {
    const ty_open_options open = files.options();
    ty_heap *heap = nullptr;
    if (ty_status status = ty_open(files.path.c_str(), &open, &heap, nullptr))
        return status;
    ty_pack_options options = TY_PACK_OPTIONS_INIT;
    options.codec = TY_CODEC_NONE;
    const ty_status status = ty_pack_descriptor(heap, stream, &options, nullptr);
    const ty_status closed = ty_close(heap);
    return status != TY_OK ? status : closed;
}

bool is_broken_pipe() {
    ty_error error;
    ty_error_detail(&error);
    return error.system_error == EPIPE;
}

bool read_result(int results, copy_result *result) {
    size_t got = 0;
    for (;;) {
        const ssize_t some = read(results, reinterpret_cast<char *>(result) + got, sizeof *result - got);
        if (some > 0)
            got += static_cast<size_t>(some);
        else if (some == 0 || errno != EINTR)
            return got == sizeof *result;
    }
}

int complain_of_system(const char *what) {
    std::fprintf(stderr, "taiyen: cannot %s: %s\n", what, std::strerror(errno));
    return exit_cannot;
}

} // namespace

int unpack(const request &given) {
    ty_unpack_options options = TY_UNPACK_OPTIONS_INIT;
    if (!read_options(given, &options))
        return exit_cannot;
    ty_unpack_report report;
    const int descriptor = given.paths[0] == "-" ? STDIN_FILENO : -1;
    if (ty_status status = unpack_from(descriptor, given.paths[0], given, options, &report))
        return refuse(given, status);
    print_result(given, report);
    return exit_fine;
}

int copy(const request &given) {
    ty_unpack_options options = TY_UNPACK_OPTIONS_INIT;
    if (!read_options(given, &options))
        return exit_cannot;
    int stream[2], results[2];
    if (pipe(stream) != 0 || pipe(results) != 0)
        return complain_of_system("make a pipe");
    std::fflush(nullptr);
    const pid_t parent = getpid();
    const pid_t maker = fork();
    if (maker < 0)
        return complain_of_system("start a process");
    if (maker == 0) {
        close(stream[1]);
        close(results[0]);
        prctl(PR_SET_PDEATHSIG, SIGTERM); // so that it ends when nobody waits for the copy
        if (getppid() != parent)
            _exit(1);
        keep_rights_of(given.paths[0]);
        make_copy(stream[0], results[1], given, options);
    }
    close(stream[0]);
    close(results[1]);
    std::signal(SIGPIPE, SIG_IGN);
    const ty_status sent = send_heap(files_at_mark(given), stream[1]);
    const bool local_failure = sent != TY_OK && !is_broken_pipe();
    const int code = local_failure ? refuse(given, sent) : int(exit_fine);
    close(stream[1]);
    copy_result result{};
    const bool complete = read_result(results[0], &result);
    int ended;
    while (waitpid(maker, &ended, 0) < 0 && errno == EINTR)
        continue;
    if (local_failure)
        return code;
    if (!complete || result.status != TY_OK) {
        const std::string why = complete ? result.error : "the process that made the copy died";
        if (given.json)
            json::print({{"path", given.paths[0]},
                         {"error", {{"status", ty_status_name(complete ? result.status : TY_E_IO)}, {"text", why}}}});
        std::fprintf(stderr, "taiyen: %s\n", text::printable(why).c_str());
        return exit_cannot;
    }
    print_result(given, result.report);
    return exit_fine;
}

} // namespace cli
