// What the words after `taiyen` ask for.
#pragma once

#include <string>
#include <vector>

namespace cli {

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
};

} // namespace cli
