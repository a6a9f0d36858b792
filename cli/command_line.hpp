// The words after `taiyen`: its commands, as CLI11 parses them.
#pragma once

#include "request.hpp"

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace cli {

struct command_line {
    command_line(); // with all commands, in the order of the help
    command_line(const command_line &) = delete;
    CLI::App *find(const std::string &first_word); // NULL: no command begins with it

    CLI::App app{"Looks at heap files, checks them, draws them, packs and copies them. 'compact',\n"
                 "'resize', 'convert --in-place', and 'resolve' with an option, change one.",
                 "taiyen"};
    // Of the words that were parsed: the command's name, such as "log stat", and what it is to do.
    std::string name;
    int (*run)(const request &given) = nullptr;
    request given;
};

// Parses the words and runs the command. Returns the program's exit code. An error in the words is reported on stderr.
// help COMMAND is COMMAND --help.
int run_words(std::vector<std::string> words);

} // namespace cli
