#include "preload.hpp"
#include "process.hpp"

#include <cmath>
#include <filesystem>
#include <sstream>

namespace bench {

namespace {

constexpr int not_preloaded = 77; // the exit code of taiyen-bench-cases when malloc is not the expected one
constexpr const char *glibc = "glibc";
constexpr const char *peer_names[] = {"jemalloc", "tcmalloc", "mimalloc2", "mimalloc3", "snmalloc", "rpmalloc"};

// An allocator that has spent so long on a case, and has had so many turns, gets no more.
constexpr double further_turns_ms = 10000;
constexpr size_t turns_min = 5;

program_end run_case(const session &session, const allocator_library &which, const char *case_name) {
    const settings &options = session.options();
    return run_program({TAIYEN_BENCH_CASES, case_name, which.library, options.quick ? "quick" : "full",
                        std::to_string(options.divisor)},
                       which.preloaded ? which.library : "");
}

// A peer that is missing, or cannot run a case, is left out of it; ours must run all of them.
void measure(session &session, const allocator_library &which, const char *case_name) {
    if (which.library.empty())
        throw unavailable("a build with sanitizers has no drop-in");
    if (which.library.find('/') != std::string::npos && !std::filesystem::exists(which.library))
        throw unavailable("there is no " + which.library + " (scripts/build_peers)");
    program_end end = run_case(session, which, case_name);
    if (end.exit_code != 0) {
        std::string text = end.exit_code == not_preloaded ? which.library + " could not be preloaded"
                                                          : std::string("the case ") + case_name + " failed with it";
        if (which.name == self)
            throw std::runtime_error(text);
        throw unavailable(text);
    }
    std::istringstream lines(end.output);
    std::string metric, unit;
    double value = 0;
    while (lines >> metric >> unit >> value)
        session.out().add(case_name, which.name, metric, unit, value);
}

} // namespace

std::string default_peers() {
    return TAIYEN_BENCH_PEER_FOLDER;
}

std::vector<allocator_library> allocator_libraries(const settings &options) {
    std::vector<allocator_library> all = {
        {self, TAIYEN_BENCH_MALLOC},
        {glibc, "libc.so.6", false},
        {peer_names[0], "libjemalloc.so.2"},
        {peer_names[1], "libtcmalloc_minimal.so.4"},
        {peer_names[2], options.peers + "/libmimalloc2.so"},
        {peer_names[3], options.peers + "/libmimalloc3.so"},
        {peer_names[4], options.peers + "/libsnmallocshim.so"},
        {peer_names[5], options.peers + "/librpmalloc.so"},
    };
    for (const std::string &each : options.also) {
        size_t sign = each.find('=');
        if (sign == std::string::npos)
            throw std::runtime_error("--also wants NAME=LIBRARY");
        all.push_back({each.substr(0, sign), each.substr(sign + 1)});
    }
    return all;
}

void interleave_allocators(session &session, const std::vector<allocator_library> &libraries, const char *case_name,
                           size_t times) {
    std::vector<session::subject> subjects;
    for (const allocator_library &each : libraries)
        subjects.push_back(
            {each.name.c_str(), [&session, &each, case_name, turns = size_t{0}, spent_ms = 0.0]() mutable {
                 if (turns++ >= turns_min && spent_ms > further_turns_ms)
                     return;
                 stopwatch watch;
                 measure(session, each, case_name);
                 spent_ms += watch.ms();
             }});
    session.interleave(case_name, session.options().quick ? 3 : times, subjects);
}

double best_peer(const results &out, const std::string &case_name, const std::string &metric, peers which) {
    double best = which == peers::all ? out.median(case_name, glibc, metric) : std::nan("");
    for (const char *peer : peer_names)
        best = std::fmin(best, out.median(case_name, peer, metric)); // fmin prefers a number to NaN
    return best;
}

void add_means(results &out, const std::string &metric, const std::string &unit) {
    std::vector<std::pair<std::string, double>> means; // computed before any is added, since a mean is a case as well
    for (const std::string &subject : out.subjects())
        means.emplace_back(subject, out.mean_over_cases(subject, metric));
    for (const auto &[subject, mean] : means)
        if (!std::isnan(mean))
            out.add(mean_case, subject, metric, unit, mean);
}

} // namespace bench
