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

// The files of a heap, as an open takes them.
struct heap_files {
    std::string path;
    std::string journal_path; // empty: the heap's path + "-journal"
    std::string log_path;     // empty: the heap's path + "-log"

    // Of a read-only open. The options point into this struct.
    ty_open_options options() const;
};

enum class verify_part { all, files, structures };

int info(const heap_files &files, bool json, bool classes);
int verify(const heap_files &files, verify_part part);
int log_stat(const heap_files &files, bool json);
int log_dump(const heap_files &files);
int map(const heap_files &files, const std::string &picture_path, int width);

// The library's text with the options of this program where it names those of ty_open.
std::string as_options(std::string text);
// Says on stderr what the thread's last failing call could not do, and what to do about it.
int complain(ty_status status);

// The file's name without its folders, for titles.
std::string name_of(const std::string &path);
const char *kind_name(ty_kind kind);

} // namespace cli
