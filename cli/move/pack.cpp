// taiyen pack: a heap as one compressed file.
#include "commands.hpp"
#include "common/json.hpp"
#include "common/numbers.hpp"
#include "common/progress.hpp"
#include "common/text.hpp"

#include <cstdio>
#include <nlohmann/json.hpp>
#include <taiyen/pack.h>
#include <unistd.h>

namespace cli {

namespace {

bool read_options(const request &given, ty_pack_options *options) {
    if (given.codec == "zstd")
        options->codec = TY_CODEC_ZSTD;
    else if (given.codec == "none")
        options->codec = TY_CODEC_NONE;
    else if (!given.codec.empty() && given.codec != "lz4")
        return refuse_value("codec", given.codec, "lz4, zstd or none");
    int64_t level = 0;
    uint64_t threads = 0;
    if (!given.level.empty() && !read_whole(given.level, -131072, 22, &level))
        return refuse_value("level", given.level, "a whole number: 3 to 12 for lz4, 1 to 22 for zstd");
    if (!given.threads.empty() && (!read_size(given.threads, &threads) || threads == 0 || threads > 256))
        return refuse_value("threads", given.threads, "1 to 256");
    options->level = static_cast<int>(level);
    options->threads = static_cast<uint32_t>(threads);
    return true;
}

void print_result(const request &given, const ty_pack_report &report) {
    if (given.json) {
        json::print({{"path", given.paths[0]},
                     {"packed", given.paths[1]},
                     {"live_blocks", json::wide(report.live_blocks)},
                     {"live_bytes", json::wide(report.live_bytes)},
                     {"packed_bytes", json::wide(report.packed_bytes)},
                     {"duration_ns", json::wide(report.duration_ns)}});
        return;
    }
    std::printf("%s: %s of %s packed into %s\n", text::printable(given.paths[0]).c_str(),
                text::counted(report.live_blocks, "block").c_str(), text::size(report.live_bytes).c_str(),
                text::size(report.packed_bytes).c_str());
}

} // namespace

int pack(const request &given) {
    const heap_files files = files_at_mark(given);
    const bool to_output = given.paths[1] == "-";
    ty_pack_options options = TY_PACK_OPTIONS_INIT;
    if (!read_options(given, &options))
        return exit_cannot;
    if (to_output && isatty(STDOUT_FILENO) == 1) {
        std::fprintf(stderr, "taiyen: a packed heap is not for a terminal: name a file, or lead the output to one\n");
        return exit_cannot;
    }
    progress shown("packing");
    options.progress = progress::report;
    options.progress_context = &shown;
    ty_pack_report report{};
    report.struct_size = sizeof report;
    const ty_open_options open = files.options();
    ty_heap *heap = nullptr;
    if (ty_status status = ty_open(files.path.c_str(), &open, &heap, nullptr))
        return refuse(files, given, status);
    ty_status status = to_output ? ty_pack_descriptor(heap, STDOUT_FILENO, &options, &report)
                                 : ty_pack_file(heap, given.paths[1].c_str(), &options, &report);
    shown.clear();
    const int code = status == TY_OK ? int(exit_fine) : refuse(files, given, status);
    const ty_status closed = ty_close(heap);
    if (status == TY_OK && !to_output)
        print_result(given, report);
    return closed == TY_OK || code != exit_fine ? code : complain(closed);
}

} // namespace cli
