// taiyen verify: checks the files' checksums, then the heap's structures top-down.
#include "commands.hpp"
#include "progress.hpp"
#include "text.hpp"

#include <cstdio>

namespace cli {

namespace {

struct findings {
    const std::string &path;
    cli::progress progress{"checking the files"};
    uint64_t problems = 0;
    uint64_t checked_bytes = 0;
};

bool on_progress(uint64_t done_bytes, uint64_t total_bytes, void *context) {
    auto &found = *static_cast<findings *>(context);
    found.progress.show(done_bytes, total_bytes);
    found.checked_bytes = done_bytes;
    return true;
}

void on_problem(const char *problem, void *context) {
    auto &found = *static_cast<findings *>(context);
    found.progress.clear();
    std::printf("%s: %s\n", found.path.c_str(), problem);
    ++found.problems;
}

// A failure other than "problems were reported" ends the check.
int verify_heap(findings &found, ty_heap_stats &stats) {
    ty_open_options options = TY_OPEN_OPTIONS_INIT;
    options.mode = TY_OPEN_READ_ONLY;
    ty_heap *heap = nullptr;
    if (ty_status status = ty_open(found.path.c_str(), &options, &heap, nullptr))
        return complain(status);
    const uint64_t before = found.problems;
    const ty_status verified = ty_heap_verify(heap, on_problem, &found);
    int code = exit_fine;
    if (verified && (verified != TY_E_DAMAGED || found.problems == before))
        code = complain(verified);
    stats.struct_size = sizeof stats;
    if (!verified)
        if (ty_status status = ty_heap_get_stats(heap, &stats))
            code = complain(status);
    if (ty_status status = ty_close(heap))
        code = complain(status);
    return code;
}

} // namespace

int verify(const std::string &path, bool quick) {
    findings found{path};
    if (!quick) {
        const ty_status status = ty_scrub(path.c_str(), nullptr, on_progress, on_problem, &found);
        found.progress.clear();
        if (status && (status != TY_E_DAMAGED || found.problems == 0))
            return complain(status);
    }
    ty_heap_stats stats{};
    if (const int code = verify_heap(found, stats))
        return found.problems ? exit_problems : code;
    if (found.problems) {
        std::printf("%s: %s found\n", path.c_str(), text::counted(found.problems, "problem").c_str());
        return exit_problems;
    }
    const std::string files = quick ? "" : text::size(found.checked_bytes) + " of files and ";
    std::printf("%s: sound; checked %sthe structures of %s\n", path.c_str(), files.c_str(),
                text::counted(stats.live_blocks, "block").c_str());
    return exit_fine;
}

} // namespace cli
