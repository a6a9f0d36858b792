// taiyen-bench: measures this library, its peers, and the machine's limits, side by side.
#include "harness.hpp"
#include "preload.hpp"
#include "process.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <unistd.h>

namespace {

struct command {
    std::string suite;
    std::string json;
    bench::settings settings;
};

void list_suites() {
    for (const bench::suite *each : bench::suites())
        std::printf("%-10s %s\n", each->name, each->purpose);
    std::printf("%-10s %s\n", "all", "all of these");
}

bool write_json(const nlohmann::ordered_json &array, const std::string &path) {
    FILE *to = path == "-" ? stdout : std::fopen(path.c_str(), "w");
    if (!to) {
        std::fprintf(stderr, "taiyen-bench: cannot write %s\n", path.c_str());
        return false;
    }
    std::string text = array.dump(1) + "\n";
    bool written = std::fwrite(text.data(), 1, text.size(), to) == text.size();
    written = (to == stdout ? std::fflush(to) : std::fclose(to)) == 0 && written;
    if (!written)
        std::fprintf(stderr, "taiyen-bench: cannot write %s\n", path.c_str());
    return written;
}

// Figures that were measured are reported even if a suite fails later; the exit code shows the failure.
bool run_suite(const bench::suite &suite, const bench::settings &settings, nlohmann::ordered_json &array, FILE *table,
               std::set<std::string> &subjects) {
    bench::session session(settings, suite);
    bool whole = true;
    try {
        suite.run(session);
    } catch (const std::exception &reason) {
        std::fprintf(stderr, "taiyen-bench: %s: %s\n", suite.name, reason.what());
        whole = false;
    }
    suite.evaluate(session);
    session.out().append_json(array);
    std::fprintf(table, "%s: %s%s\n", suite.name, suite.purpose,
                 settings.divisor > 1 ? " (sizes divided: the figures mean nothing)"
                 : settings.quick     ? " (quick: few repetitions)"
                                      : "");
    session.out().print(table);
    subjects.insert(session.subjects().begin(), session.subjects().end());
    return whole;
}

// The subjects depend on the case, so they are known only after the cases have run.
bool are_subjects_known(const std::vector<std::string> &chosen, const std::set<std::string> &subjects) {
    std::string text;
    for (const std::string &name : subjects)
        text += (text.empty() ? "" : ", ") + name;
    bool known = true;
    for (const std::string &name : chosen)
        if (!subjects.contains(name)) {
            std::fprintf(stderr, "taiyen-bench: there is no subject %s; there are %s\n", name.c_str(), text.c_str());
            known = false;
        }
    return known;
}

std::vector<const bench::suite *> chosen_suites(const command &command) {
    std::vector<const bench::suite *> chosen;
    for (const bench::suite *each : bench::suites())
        if (command.suite == "all" || command.suite == each->name)
            chosen.push_back(each);
    return chosen;
}

bool are_suite_and_cases_known(const command &command) {
    std::vector<const bench::suite *> suites = chosen_suites(command);
    if (suites.empty()) {
        std::fprintf(stderr, "taiyen-bench: there is no suite %s; 'taiyen-bench list' shows them\n",
                     command.suite.c_str());
        return false;
    }
    std::vector<std::string> names;
    std::string text;
    for (const bench::suite *suite : suites)
        for (const std::string &name : suite->cases()) {
            names.push_back(name);
            text += (text.empty() ? "" : ", ") + name;
        }
    for (const std::string &chosen : command.settings.cases)
        if (std::none_of(names.begin(), names.end(),
                         [&chosen](const std::string &name) { return bench::stands_for(chosen, name); })) {
            std::fprintf(stderr, "taiyen-bench: %s has no case %s; there are %s\n", command.suite.c_str(),
                         chosen.c_str(), text.c_str());
            return false;
        }
    return true;
}

int run_command(const command &command) {
    FILE *table = command.json == "-" ? stderr : stdout;
    nlohmann::ordered_json array = nlohmann::ordered_json::array();
    bool whole = true;
    std::set<std::string> subjects;
    for (const bench::suite *each : chosen_suites(command))
        whole = run_suite(*each, command.settings, array, table, subjects) && whole;
    if (!command.json.empty())
        whole = write_json(array, command.json) && whole;
    if (!are_subjects_known(command.settings.subjects, subjects))
        return 2;
    return whole ? 0 : 1;
}

} // namespace

int main(int argc, char **argv) {
    command command;
    std::string parent = ".";
    command.settings.peers = bench::default_peers();
    CLI::App app("Measures taiyen, its peers and the limits it is held against. Subjects run in turn; medians are "
                 "reported.",
                 "taiyen-bench");
    app.add_option("SUITE", command.suite, "a suite, 'all', or 'list' to see them")->required();
    app.add_flag("--quick", command.settings.quick, "few repetitions");
    app.add_option("--json", command.json, "write all figures to this file ('-': standard output)");
    app.add_option("--dir", parent, "folder on the disk to measure; files are removed afterwards")
        ->capture_default_str();
    app.add_option("--divide", command.settings.divisor, "divide all sizes, to test this program itself")
        ->check(CLI::PositiveNumber);
    app.add_option("--case", command.settings.cases,
                   "only these cases, by the names of the table's rows, with commas between; 'small' stands for all "
                   "whose names begin with 'small-'")
        ->delimiter(',')
        ->allow_extra_args(false);
    app.add_option("--subject", command.settings.subjects,
                   "only these subjects, by the names of the table's columns, with commas between")
        ->delimiter(',')
        ->allow_extra_args(false);
    app.add_option("--peers", command.settings.peers,
                   "folder of the allocators that scripts/build_peers has built, for the suites malloc and dynamic")
        ->capture_default_str();
    app.add_option("--also", command.settings.also,
                   "NAME=LIBRARY: a further allocator to preload in these suites, such as an earlier build of ours")
        ->allow_extra_args(false);
    CLI11_PARSE(app, argc, argv);

    if (command.suite == "list") {
        list_suites();
        return 0;
    }
    if (!are_suite_and_cases_known(command))
        return 2;
    command.settings.folder = parent + "/taiyen-bench-" + std::to_string(getpid());
    std::error_code error;
    if (!std::filesystem::create_directory(command.settings.folder, error)) {
        std::fprintf(stderr, "taiyen-bench: cannot make a folder in %s: %s\n", parent.c_str(), error.message().c_str());
        return 1;
    }
    return bench::supervise(command.settings.folder, [&command] { return run_command(command); });
}
