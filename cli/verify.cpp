// taiyen verify: checks the files' checksums, then the heap's structures top-down.
#include "commands.hpp"
#include "progress.hpp"
#include "text.hpp"

#include <cstdio>

namespace cli {

namespace {

struct findings {
    const heap_files &files;
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
    std::printf("%s: %s\n", text::printable(found.files.path).c_str(), as_options(problem).c_str());
    ++found.problems;
}

// A failure other than "problems were reported" ends the check.
int verify_heap(findings &found, ty_heap_stats &stats) {
    const ty_open_options options = found.files.options();
    ty_heap *heap = nullptr;
    if (ty_status status = ty_open(found.files.path.c_str(), &options, &heap, nullptr))
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

int verify(const heap_files &files, verify_part part) {
    findings found{files};
    const std::string path = text::printable(files.path);
    if (part != verify_part::structures) {
        const ty_open_options options = files.options();
        const ty_status status = ty_scrub_with(files.path.c_str(), &options, on_progress, on_problem, &found);
        found.progress.clear();
        if (status && (status != TY_E_DAMAGED || found.problems == 0))
            return complain(status);
    }
    ty_heap_stats stats{};
    if (part != verify_part::files)
        if (const int code = verify_heap(found, stats))
            return found.problems ? exit_problems : code;
    if (found.problems) {
        std::printf("%s: %s found\n", path.c_str(), text::counted(found.problems, "problem").c_str());
        return exit_problems;
    }
    std::string checked = part == verify_part::structures ? "" : text::size(found.checked_bytes) + " of files";
    if (part != verify_part::files)
        checked += (checked.empty() ? "the structures of " : " and the structures of ") +
                   text::counted(stats.live_blocks, "block");
    std::printf("%s: sound; checked %s\n", path.c_str(), checked.c_str());
    return exit_fine;
}

} // namespace cli
