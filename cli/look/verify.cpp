// taiyen verify: checks the files' checksums, then the heap's structures top-down.
#include "commands.hpp"
#include "common/json.hpp"
#include "common/progress.hpp"
#include "common/terminal.hpp"
#include "common/text.hpp"

#include <cstdio>
#include <nlohmann/json.hpp>

namespace cli {

namespace {

enum class scope { all, files, structures };

struct mismatches {
    const heap_files &files;
    const request &given;
    cli::progress progress{"checking the files"};
    std::vector<std::string> problems{}; // for --json
    uint64_t problem_count = 0;
    uint64_t checked_bytes = 0;
    uint64_t live_blocks = 0;
    std::vector<std::string> code_words{}; // the first ones that lead into code of a process that has ended
    uint64_t code_word_count = 0;
};

constexpr size_t code_words_shown = 8;

bool on_progress(uint64_t done_bytes, uint64_t total_bytes, void *context) {
    auto &found = *static_cast<mismatches *>(context);
    found.progress.show(done_bytes, total_bytes);
    found.checked_bytes = done_bytes;
    return true;
}

void on_problem(const char *problem, void *context) {
    auto &found = *static_cast<mismatches *>(context);
    found.progress.clear();
    ++found.problem_count;
    if (found.given.json)
        found.problems.push_back(as_options(problem));
    else
        std::printf("%s: %s\n", text::printable(found.files.path).c_str(), as_options(problem).c_str());
}

// What ended the check early; TY_OK if it completed, whatever it found.
ty_status check_files(mismatches &found) {
    const ty_open_options options = found.files.options();
    const ty_status status = ty_scrub(found.files.path.c_str(), &options, on_progress, on_problem, &found);
    found.progress.clear();
    return status == TY_E_DAMAGED && found.problem_count ? TY_OK : status;
}

bool on_code_word(const ty_code_word *word, void *context) {
    auto &found = *static_cast<mismatches *>(context);
    if (++found.code_word_count > code_words_shown)
        return true;
    char line[256];
    std::snprintf(line, sizeof line, "the word at %p, in the block of %zu bytes at %p, leads into %s, at 0x%llx",
                  word->address, word->block_bytes, word->block, word->object,
                  static_cast<unsigned long long>(word->value));
    found.code_words.push_back(line);
    return true;
}

ty_status check_structures(mismatches &found) {
    const ty_open_options options = found.files.options();
    ty_heap *heap = nullptr;
    if (ty_status status = ty_open(found.files.path.c_str(), &options, &heap, nullptr))
        return status;
    const uint64_t before = found.problem_count;
    ty_status status = ty_heap_verify(heap, on_problem, &found);
    ty_heap_stats stats{};
    stats.struct_size = sizeof stats;
    if (!status && !(status = ty_heap_get_stats(heap, &stats)))
        found.live_blocks = stats.live_blocks;
    if (status == TY_E_DAMAGED && found.problem_count > before)
        status = TY_OK;
    if (!status && found.problem_count == before && ty_heap_code(heap) == TY_CODE_DEFAULT)
        status = ty_each_code_word(heap, on_code_word, &found);
    const ty_status closed = ty_close(heap);
    return status ? status : closed;
}

void print_json(const mismatches &found, scope scope, ty_status status) {
    json::document one{{"path", found.files.path}};
    if (!status || found.problem_count) {
        one["sound"] = found.problem_count == 0;
        one["problems"] = found.problems;
    }
    if (!status && scope != scope::structures)
        one["checked_bytes"] = json::wide(found.checked_bytes);
    if (!status && scope != scope::files && found.problem_count == 0)
        one["live_blocks"] = json::wide(found.live_blocks);
    if (found.code_word_count)
        one["code_words"] = json::wide(found.code_word_count);
    if (status)
        one["error"] = json::error(status);
    json::print(one);
}

void print_words(const mismatches &found, scope scope) {
    const std::string path = text::printable(found.files.path);
    if (found.problem_count) {
        std::printf("%s: %s\n", path.c_str(),
                    in(ink::bad, text::counted(found.problem_count, "problem") + " found").c_str());
        return;
    }
    std::string checked = scope == scope::structures ? "" : text::size(found.checked_bytes) + " of files";
    if (scope != scope::files)
        checked += (checked.empty() ? "the structures of " : " and the structures of ") +
                   text::counted(found.live_blocks, "block");
    std::printf("%s: %s; checked %s\n", path.c_str(), in(ink::good, "sound").c_str(), checked.c_str());
    if (found.code_word_count == 0)
        return;
    for (const std::string &line : found.code_words)
        std::printf("%s: %s\n", path.c_str(), text::printable(line).c_str());
    std::printf(
        "%s: %s code of a process that had the heap open, which is not there in the next run; make the heap with the "
        "option code (taiyen/code.h)\n",
        path.c_str(),
        (text::counted(found.code_word_count, "word") + (found.code_word_count == 1 ? " leads into" : " lead into"))
            .c_str());
}

int check(const heap_files &files, const request &given, scope scope) {
    mismatches found{files, given};
    ty_status status = scope != scope::structures ? check_files(found) : TY_OK;
    if (!status && scope != scope::files)
        status = check_structures(found);
    if (given.json)
        print_json(found, scope, status);
    else if (!status)
        print_words(found, scope);
    const int code = status ? complain(status) : int(exit_fine);
    return found.problem_count || found.code_word_count ? int(exit_problems) : code;
}

int verify_one(const heap_files &files, const request &given) {
    return check(files, given, given.quick ? scope::structures : scope::all);
}

int scrub_one(const heap_files &files, const request &given) {
    return check(files, given, scope::files);
}

} // namespace

int verify(const request &given) {
    return each_heap(given, verify_one);
}

int scrub(const request &given) {
    return each_heap(given, scrub_one);
}

} // namespace cli
