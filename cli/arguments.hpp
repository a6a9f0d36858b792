// The words after `taiyen`: parsing and help are both driven by one table of commands and options.
#pragma once

#include <string>
#include <vector>

namespace cli {

// What the words ask for.
struct request {
    std::vector<std::string> paths; // of images
    std::string journal_path;
    std::string log_path;
    std::string picture_path;
    std::string width;
    std::string codec;
    std::string level;
    std::string threads;
    std::string kind;
    std::string limit;
    std::string drop;
    std::string base;
    std::string class_table;
    std::string types_path;
    std::string hints_path;
    std::string to;
    std::string keep;
    std::string base_age;
    std::string take_over_after;
    std::string wait;
    std::string interval;
    std::string seconds;
    std::string size;
    std::string load;
    std::string server;
    std::string credentials;
    std::string block;
    std::string shown;
    std::string log_size;
    std::string streams;
    std::string replicas;
    std::string port;
    std::string address;
    std::string idle;
    std::vector<std::string> roots;
    std::vector<std::string> hints;
    bool json = false;
    bool watch = false;
    bool in_place = false;
    bool quick = false;
    bool defragment = false;
    bool elsewhere = false;
    bool force = false;
    bool pointers = false;
    bool once = false;
    bool list = false;
    bool verify = false;
    bool receives = false;
    bool only_base = false;
    bool no_base = false;
    bool takes_back = false;
    bool flushed = false;
    bool ask = false;
    bool commit = false;
    bool roll_back = false;
    bool restored = false;
    bool help = false;
};

struct option {
    const char *name;  // without its dashes
    char letter;       // its short form; 0: none
    const char *value; // its value's name, for the help; NULL: it takes no value
    const char *help;
    bool request::*flag = nullptr;                      // for an option without a value
    std::string request::*text = nullptr;               // for an option with a value
    std::vector<std::string> request::*texts = nullptr; // for an option that may be repeated
};

struct command {
    const char *name;     // one word, or two: "log stat"
    const char *operands; // for the help: "FILE..."
    size_t operands_min;
    size_t operands_max;
    const char *summary;
    const char *details;
    int (*run)(const request &given);
    std::vector<option> options;
};

// In the order of the help.
const std::vector<command> &commands();

// Commands that this build lacks, and the package that it was built without.
struct left_out {
    const char *name;
    const char *package;
};
const std::vector<left_out> &left_out_commands();

// Parses the words and runs the command. Returns the program's exit code. The first error in the words is reported on
// stderr.
int run_words(std::vector<std::string> words);

} // namespace cli
