// durable-lua FILE.ty: Lua, line by line. All that a line has done is durable before the next one is asked for.
#include "session.hpp"
#include <CLI/CLI.hpp>
#include <charconv>
#include <csignal>
#include <fstream>
#include <iostream>
#include <sstream>
#include <unistd.h>

namespace {

using demo::failure;
using lua::outcome;
using lua::session;

constexpr const char *help = "  a line of Lua, or several; what an expression is, is printed\n"
                             "  save()      makes durable what a long line has done so far; killed, it goes on there\n"
                             "  :undo [N]   takes the last line back, or N of them\n"
                             "  :redo [N]   does again what was undone last, or N of it\n"
                             "  :quit       leaves; so does the end of the input\n"
                             "Ctrl-C stops a line. A second one ends the program, and the line never was.\n";

bool print(const outcome &how) {
    std::fflush(stdout);
    if (how.what != outcome::kind::done)
        std::cerr << how.text << "\n";
    if (!how.can_be_undone)
        std::cerr << "this line cannot be undone: it has changed more than the history has room for\n";
    return how.what == outcome::kind::done;
}

uint64_t number_of(std::string_view text) {
    uint64_t number = 1;
    if (text.empty())
        return number;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error != std::errc() || end != text.data() + text.size() ? 0 : number;
}

// A line that begins with a colon. False: it is not a known command, or there was less to do than it asked for.
bool command(session &s, const std::string &line) {
    const std::string word = line.substr(0, line.find(' '));
    const uint64_t count = number_of(line.size() > word.size() ? line.substr(word.size() + 1) : "");
    if (word == ":help") {
        std::cout << help << std::flush;
        return true;
    }
    if ((word != ":undo" && word != ":redo") || count == 0) {
        std::cerr << "there is no command \"" << line << "\"; :help lists them\n";
        return false;
    }
    for (uint64_t i = 0; i < count; ++i)
        if (!(word == ":undo" ? s.undo() : s.redo())) {
            std::cerr << "there is nothing to " << word.substr(1) << "\n";
            return false;
        }
    std::cout << s.undoable() << " to undo, " << s.redoable() << " to redo\n" << std::flush;
    return true;
}

// Reads lines until the end of the input, or :quit. Returns how many of them failed.
unsigned run_lines(session &s, bool terminal) {
    unsigned failed = 0;
    std::string text;
    std::string line;
    for (;;) {
        if (terminal)
            std::cout << (text.empty() ? "> " : ">> ") << std::flush;
        if (!std::getline(std::cin, line))
            break;
        if (text.empty() && line == ":quit")
            return failed;
        if (text.empty() && (line.empty() || line[0] == ':')) {
            failed += !line.empty() && !command(s, line);
            continue;
        }
        text += (text.empty() ? "" : "\n") + line;
        outcome how = s.execute(text);
        if (how.what == outcome::kind::incomplete)
            continue;
        failed += !print(how);
        text.clear();
    }
    if (!text.empty()) {
        std::cerr << "the input ends within a line\n";
        ++failed;
    }
    return failed;
}

bool run_script(session &s, const std::string &path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream text;
    if (!file || !(text << file.rdbuf()))
        throw failure("cannot read " + path + ": " + std::strerror(errno));
    outcome how = s.execute(text.str(), "@" + path);
    how.what = how.what == outcome::kind::incomplete ? outcome::kind::failed : how.what;
    return print(how);
}

void greet(const session &s) {
    if (s.report().created)
        std::cout << "A new state. :help says what is special\n";
    else
        std::cout << "It goes on: " << s.undoable() << " to undo, " << s.redoable() << " to redo; "
                  << s.report().code_words << " addresses of code were repointed\n";
    std::cout << std::flush;
}

int run(int argc, char **argv) {
    CLI::App options(
        "Lua whose state lives in a heap, and outlives the process: variables, closures, coroutines. Lines\n"
        "come from the terminal or from standard input; each is durable before the next one.");
    std::string file;
    std::string script;
    std::vector<std::string> lines;
    lua::session_options how;
    options.add_option("FILE", file, "The state; made when there is none")->required();
    options.add_option("SCRIPT", script, "A file of Lua, run as one line instead of those of the input");
    options.add_option("-e,--execute", lines, "A line, run before; more than one can be given")
        ->expected(1)
        ->take_all();
    options.add_option("--limit", how.limit_bytes, "Bytes that the state may take (1GiB for a new one)")
        ->transform(CLI::AsSizeValue(false));
    options.add_option("--history", how.history_bytes, "Bytes on disk for undo and redo, of a new state; 0: none")
        ->transform(CLI::AsSizeValue(false))
        ->capture_default_str();
    CLI11_PARSE(options, argc, argv);

    session s(file, how);
    std::signal(SIGINT, lua::interrupt);
    const bool terminal = script.empty() && lines.empty() && isatty(STDIN_FILENO) != 0;
    if (terminal)
        greet(s);
    bool good = true;
    if (s.is_under_way()) {
        std::cerr << "the line that was under way goes on\n";
        good = print(s.go_on());
    }
    for (const std::string &line : lines)
        good = (line[0] == ':' ? command(s, line) : print(s.execute(line))) && good;
    if (!script.empty())
        good = run_script(s, script) && good;
    else if (lines.empty())
        good = run_lines(s, terminal) == 0 && good;
    s.close();
    return good ? 0 : 1;
}

} // namespace

int main(int argc, char **argv) {
    try {
        return run(argc, argv);
    } catch (const std::exception &error) {
        std::cout << std::flush;
        std::cerr << "durable-lua: " << error.what() << "\n";
        return 1;
    }
}
