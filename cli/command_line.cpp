#include "command_line.hpp"

#include "commands.hpp"
#include "common/text.hpp"
#include <algorithm>
#include <cstdio>
#include <utility>

namespace cli {

namespace {

// Commands that this build lacks, and the package that it was built without.
constexpr std::pair<const char *, const char *> left_out[] = {
#if !TAIYEN_HAS_STANDBY
    {"publish", "libnats (Debian: libnats-dev) or librdkafka (Debian: librdkafka-dev)"},
    {"standby", "libnats (Debian: libnats-dev) or librdkafka (Debian: librdkafka-dev)"},
    {"promote", "libnats (Debian: libnats-dev) or librdkafka (Debian: librdkafka-dev)"},
#endif
#if !TAIYEN_HAS_LIVE
    {"live", "libmicrohttpd (Debian: libmicrohttpd-dev)"},
#endif
    {"", ""}};

std::string quoted(const std::string &word) {
    return "'" + text::printable(word) + "'";
}

int complain_of(const std::string &what, const std::string &about) {
    std::fprintf(stderr, "taiyen: %s; see taiyen help%s\n", what.c_str(), about.c_str());
    return exit_cannot;
}

int complain_of_command(const std::string &word) {
    for (const auto &[name, package] : left_out)
        if (word == name)
            return complain_of(quoted(word) + " is not in this build of taiyen, for want of " + package +
                                   ": install that, and build again",
                               "");
    return complain_of("there is no command " + quoted(word), "");
}

// The commands that were parsed, each after a space: " log stat".
std::string parsed(const CLI::App &app) {
    const std::vector<CLI::App *> next = app.get_subcommands();
    return next.empty() ? "" : " " + next.front()->get_name() + parsed(*next.front());
}

} // namespace

CLI::App *command_line::find(const std::string &first_word) {
    const std::vector<CLI::App *> found =
        app.get_subcommands([&first_word](const CLI::App *one) { return one->get_name() == first_word; });
    return found.empty() ? nullptr : found.front();
}

int run_words(std::vector<std::string> words) {
    if (!words.empty() && words[0] == "help") {
        words.erase(words.begin());
        words.emplace_back("--help");
    }
    for (std::string &word : words)
        if (word.starts_with("[") && word.ends_with("]")) // CLI11 would take it for a list of paths
            word.insert(0, "./");
    command_line line;
    if (!words.empty() && !words[0].starts_with("-") && !line.find(words[0]))
        return complain_of_command(words[0]);
    try {
        std::reverse(words.begin(), words.end()); // as CLI11 takes them
        line.app.parse(std::move(words));
    } catch (const CLI::Success &what) { // help, version
        return line.app.exit(what);
    } catch (const CLI::ParseError &error) {
        return complain_of(text::printable(error.what()), parsed(line.app));
    }
    try {
        return line.run(line.given);
    } catch (const std::bad_alloc &) {
        return refuse(line.given,
                      ty_error_set(TY_E_MEMORY, 0, line.name.c_str(), nullptr, UINT64_MAX,
                                   "give it more memory: see ulimit -v and -d, or the control group's limit"));
    }
}

} // namespace cli
