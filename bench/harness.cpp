#include "harness.hpp"
#include "kernel_probe.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <numeric>
#include <unistd.h>

namespace bench {

void check(ty_status status, const char *what) {
    if (status == TY_OK)
        return;
    std::string text = std::string(what) + ": " + ty_status_name(status) + ": " + ty_error_text();
    if (status == TY_E_UNSUPPORTED)
        throw unavailable(text);
    throw std::runtime_error(text);
}

void fail_system(const char *what) {
    throw std::runtime_error(std::string(what) + ": " + std::strerror(errno));
}

std::vector<uint32_t> random_pages(size_t count, size_t bound, uint64_t seed) {
    if (count > bound)
        throw std::runtime_error("more random pages asked for than there are");
    std::vector<uint32_t> all(bound);
    std::iota(all.begin(), all.end(), 0u);
    random_source random(seed);
    for (size_t i = 0; i < count; i++)
        std::swap(all[i], all[i + random.below(bound - i)]);
    all.resize(count);
    return all;
}

session::session(const settings &options, const suite &suite)
    : options_(options), results_(suite.name), suite_(suite) {}

void session::show_progress(const std::string &text) {
    if (!isatty(STDERR_FILENO))
        return;
    std::fprintf(stderr, "\r\033[K%s", text.c_str());
    std::fflush(stderr);
}

bool stands_for(const std::string &chosen, const std::string &case_name) {
    return case_name == chosen || case_name.starts_with(chosen + "-");
}

bool session::is_wanted(const std::string &case_name) const {
    std::vector<std::string> known = suite_.cases();
    if (std::find(known.begin(), known.end(), case_name) == known.end())
        throw std::logic_error("the suite does not list its case " + case_name);
    const std::vector<std::string> &wanted = options_.cases;
    return wanted.empty() || std::any_of(wanted.begin(), wanted.end(),
                                         [&case_name](const std::string &each) { return stands_for(each, case_name); });
}

bool session::is_wanted_subject(const std::string &name) const {
    const std::vector<std::string> &wanted = options_.subjects;
    return wanted.empty() || std::find(wanted.begin(), wanted.end(), name) != wanted.end();
}

void session::interleave(const std::vector<std::string> &case_names, size_t times, std::vector<subject> subjects) {
    if (std::none_of(case_names.begin(), case_names.end(), [this](const std::string &each) { return is_wanted(each); }))
        return;
    for (const subject &each : subjects)
        subjects_.insert(each.name);
    std::erase_if(subjects, [this](const subject &each) { return !is_wanted_subject(each.name); });
    std::vector<bool> left_out(subjects.size());
    for (size_t turn = 0; turn < times; turn++)
        for (size_t index = 0; index < subjects.size(); index++) {
            if (left_out[index])
                continue;
            show_progress(std::string(suite_.name) + ", " + case_names.front() + ": " + subjects[index].name + ", " +
                          std::to_string(turn + 1) + " of " + std::to_string(times));
            if (suite_.warm_bytes)
                mapping::touched_memory(scaled(suite_.warm_bytes));
            try {
                subjects[index].run();
            } catch (const unavailable &reason) {
                results_.missing(subjects[index].name, reason.what());
                left_out[index] = true;
            }
        }
    show_progress("");
}

} // namespace bench
