// draw FILE.ty: a small drawing program. Commands come from -c, from scripts, or from the terminal.
#include "invert.hpp"
#include "session.hpp"
#include <CLI/CLI.hpp>
#include <fstream>
#include <iostream>
#include <sstream>
#include <unistd.h>

namespace {

using demo::failure;
using draw::session;

// Line by line, so that an error can name the line. The first error ends it.
void run_lines(session &s, std::istream &from, const std::string &name) {
    std::string line;
    for (uint64_t number = 1; !s.is_ended() && std::getline(from, line); ++number) {
        try {
            s.execute(line, std::cout);
        } catch (const failure &error) {
            throw failure(name + ":" + std::to_string(number) + ": " + error.what() +
                          "; what was not saved before is not kept");
        }
    }
    if (from.bad())
        throw failure("cannot read " + name);
}

// Prints an error, and asks for the next command.
void run_terminal(session &s) {
    std::cout << "help lists the commands; quit saves and leaves\n";
    std::string line;
    while (!s.is_ended() && std::cout << "draw> " << std::flush && std::getline(std::cin, line)) {
        try {
            s.execute(line, std::cout);
        } catch (const failure &error) {
            std::cout << error.what() << "\n";
        }
    }
}

int run(int argc, char **argv) {
    CLI::App options("A small drawing program. The drawing lives in a heap, with its undo history; without -c and -s,\n"
                     "commands are read from the terminal or from standard input; the command help lists them.");
    std::string file;
    std::string commands;
    std::string script;
    options.add_option("FILE", file, "The drawing; made when there is none")->required();
    auto *commands_option = options.add_option("-c,--command", commands, "Commands, separated by ;");
    options.add_option("-s,--script", script, "A file of commands, done after those of -c; - is standard input");
    CLI11_PARSE(options, argc, argv);

    draw::register_procedures();
    session s(file);
    if (commands_option->count() > 0) {
        std::istringstream text(commands);
        run_lines(s, text, "-c");
    }
    if (!script.empty() && script != "-") {
        std::ifstream text(script);
        if (!text)
            throw failure("cannot open " + script + ": " + std::strerror(errno));
        run_lines(s, text, script);
    } else if (script == "-" || (commands_option->count() == 0 && isatty(STDIN_FILENO) == 0)) {
        run_lines(s, std::cin, "standard input");
    } else if (commands_option->count() == 0) {
        run_terminal(s);
    }
    s.close();
    return 0;
}

} // namespace

int main(int argc, char **argv) {
    try {
        return run(argc, argv);
    } catch (const std::exception &error) {
        std::cout << std::flush;
        std::cerr << "draw: " << error.what() << "\n";
        return 1;
    }
}
