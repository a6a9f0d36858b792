// The commands of `taiyen`. Each returns the program's exit code.
#pragma once

#include <string>
#include <taiyen/taiyen.h>

namespace cli {

// What scripts may rely on.
enum exit_code : int {
    exit_fine = 0,
    exit_problems = 1, // the heap has problems
    exit_cannot = 2    // wrong usage, or it cannot be read
};

int info(const std::string &path, bool json, bool classes);
int verify(const std::string &path, bool quick);
// log_path: empty is the heap's path + "-log".
int log_stat(const std::string &path, const std::string &log_path, bool json);
int log_dump(const std::string &path, const std::string &log_path);
int map(const std::string &path, const std::string &picture_path, int width);

// Says on stderr what the thread's last failing call could not do, and what to do about it.
int complain(ty_status status);

// The file's name without its folders, for titles.
std::string name_of(const std::string &path);
const char *kind_name(ty_kind kind);

} // namespace cli
