// taiyen types: type descriptors of a program's types, from its debug information.
#include "commands.hpp"
#include "common/numbers.hpp"
#include "common/text.hpp"
#include "types/dwarf_descriptors.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace cli {

namespace {

int refuse_with(const std::string &why) {
    std::fflush(stdout);
    std::fprintf(stderr, "taiyen: %s\n", why.c_str());
    return exit_cannot;
}

// NAME=TYPE, NAME=TYPE[], NAME=TYPE[8], NAME=-
struct typed_root {
    std::string name;
    std::string type;
    std::string count; // as in the text
};

bool read_root(const std::string &given, typed_root *one) {
    const size_t equals = given.find('=');
    if (equals == 0 || equals == std::string::npos || equals + 1 == given.size())
        return refuse_value("root", given, "NAME=TYPE, such as atlas=demo::atlas");
    one->name = given.substr(0, equals);
    one->type = given.substr(equals + 1);
    const size_t bracket = one->type.rfind('[');
    if (!one->type.ends_with("]") || bracket == std::string::npos)
        return true;
    const std::string number = one->type.substr(bracket + 1, one->type.size() - bracket - 2);
    int64_t count = 0;
    if (!number.empty() && !read_whole(number, 1, INT64_C(1) << 40, &count))
        return refuse_value("root", given, "a number, or nothing, between the brackets");
    one->count = number.empty() ? "block" : std::to_string(count);
    one->type.erase(bracket);
    return true;
}

bool read_roots(const request &given, std::vector<typed_root> *roots) {
    for (const std::string &text : given.roots) {
        typed_root one;
        if (!read_root(text, &one))
            return false;
        if (std::any_of(roots->begin(), roots->end(), [&](const typed_root &other) { return other.name == one.name; }))
            return refuse_value("root", text, "each root once");
        roots->push_back(one);
    }
    std::sort(roots->begin(), roots->end(), [](const typed_root &a, const typed_root &b) { return a.name < b.name; });
    return true;
}

bool read_hints(const request &given, dwarf::hints *hints) {
    if (!given.hints_path.empty() && !hints->read_file(given.hints_path))
        return false;
    return std::all_of(given.hints.begin(), given.hints.end(),
                       [&](const std::string &line) { return hints->add(line, "--hint"); });
}

std::string unknown_type(const std::string &name, const std::vector<std::string> &several, dwarf::types &types) {
    if (several.empty()) {
        const std::string near = dwarf::nearest(name, types.from().names());
        return "the program has no type '" + name + "'" + (near.empty() ? "" : "; the nearest is '" + near + "'");
    }
    std::string names;
    for (const std::string &one : several)
        names += (names.empty() ? "'" : ", '") + one + "'";
    return "the program has several types '" + name + "': say which of " + names;
}

// A root's line in the text. False: the failure has the reason.
bool describe_root(const typed_root &one, dwarf::descriptor_maker &maker, std::string *line) {
    std::string descriptor;
    std::string count = one.count;
    if (one.type != "-") {
        std::vector<std::string> several;
        const dwarf::type *type = maker.all().find(one.type, &several);
        if (!type)
            return maker.refuse(text::printable(unknown_type(one.type, several, maker.all())));
        uint64_t number = 1;
        if (!maker.descriptor_of_named(type, &descriptor, &number))
            return maker.refuse("the type " + text::printable(one.type) + " is only declared in the program");
        if (count.empty() && number != 1)
            count = number == 0 ? "block" : std::to_string(number);
    }
    *line = "root " + dwarf::quoted_name(one.name) + " " + (descriptor.empty() ? "-" : dwarf::quoted_name(descriptor)) +
            (count.empty() ? "" : " there " + count) + "\n";
    return true;
}

int print(const dwarf::descriptor_maker &made, const std::vector<std::string> &lines, const std::string &path) {
    const std::string text = dwarf::text_of(made, lines, name_of(path));
    if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
        return refuse_with("the text cannot be written");
    if (made.open_notes() == 0)
        return exit_fine;
    std::fprintf(stderr, "taiyen: %s: not complete: %s left to do, each after '# !' in the text\n",
                 text::printable(path).c_str(), text::counted(made.open_notes(), "thing").c_str());
    return exit_problems;
}

int describe(const request &given) {
    const std::string &path = given.paths[0];
    std::vector<typed_root> roots;
    dwarf::hints hints;
    if (given.roots.empty())
        return refuse_with("'types' needs a --root NAME=TYPE; see taiyen help types");
    if (!read_roots(given, &roots))
        return exit_cannot;
    if (!read_hints(given, &hints))
        return refuse_with(hints.failure());
    dwarf::program program;
    if (!program.open(path))
        return refuse_with(program.failure());
    dwarf::types types(program);
    dwarf::descriptor_maker maker(types, hints);
    std::vector<std::string> lines(roots.size());
    for (size_t n = 0; n < roots.size(); ++n)
        if (!describe_root(roots[n], maker, &lines[n]))
            return refuse_with(text::printable(path) + ": " + maker.failure());
    if (!maker.run())
        return refuse_with(text::printable(path) + ": " + text::printable(maker.failure()));
    return print(maker, lines, path);
}

constexpr rlim_t seconds_max = 1800;

[[noreturn]] void run_child(const request &given) {
    const rlimit no_core{0, 0};
    const rlimit time{seconds_max, seconds_max};
    setrlimit(RLIMIT_CORE, &no_core);
    setrlimit(RLIMIT_CPU, &time);
    const int code = describe(given);
    std::fflush(nullptr);
    _exit(code);
}

// Ends this program by the signal that ended the child, unless the reader crashed by itself: that is reported.
int report_end(const std::string &path, int signal) {
    for (const int mine : {SIGPIPE, SIGINT, SIGTERM, SIGHUP, SIGQUIT})
        if (signal == mine) {
            std::signal(mine, SIG_DFL);
            std::raise(mine);
        }
    return refuse_with(text::printable(path) +
                       ": its debug information cannot be read, and is perhaps damaged: libdw " +
                       "ended with the signal " + std::to_string(signal) + " (" + strsignal(signal) + ")");
}

} // namespace

// In a child process: libdw has assertions that damaged files violate.
int descriptors(const request &given) {
    std::fflush(nullptr);
    const pid_t child = fork();
    if (child == 0)
        run_child(given);
    int status = 0;
    while (child > 0 && waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return refuse_with(std::string("the reader was lost: ") + std::strerror(errno));
    if (child < 0)
        return refuse_with(std::string("there is no process for the reader: ") + std::strerror(errno));
    return WIFSIGNALED(status) ? report_end(given.paths[0], WTERMSIG(status)) : WEXITSTATUS(status);
}

} // namespace cli
