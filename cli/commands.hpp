// The commands of `taiyen`. Each returns the program's exit code.
#pragma once

#include "arguments.hpp"

#include <string>
#include <taiyen/taiyen.h>
#include <vector>

namespace cli {

// Scripts may rely on these.
enum exit_code : int {
    exit_fine = 0,
    exit_problems = 1, // the heap has problems
    exit_cannot = 2,   // wrong usage, or the heap cannot be read
    exit_never = 3     // publish, standby, promote: a restart does not help before somebody has repaired something
};

// The files of a heap, as an open takes them.
struct heap_files {
    std::string path;
    std::string journal_path; // empty: the heap's path + "-journal"
    std::string log_path;     // empty: the heap's path + "-log"
    std::string mark{};       // a durable one, at which the heap is read; empty: as it is

    // Options of a read-only open. They point into this struct.
    ty_open_options options() const;
};
// Of an operand FILE or FILE@MARK: the latter if there is no file of that name, but one of a name that ends at an '@'.
heap_files files_at_mark(const request &given, size_t operand = 0);

int run_help(const request &given);
int run_version(const request &given);
int info(const request &given);
int stat_heaps(const request &given);
int dump(const request &given);
int diff(const request &given);
int create(const request &given);
int resize(const request &given);
int convert(const request &given);
int repair(const request &given);
int completion(const request &given);
int verify(const request &given);
int scrub(const request &given);
int log_stat(const request &given);
int log_dump(const request &given);
int map(const request &given);
int pack(const request &given);
int unpack(const request &given);
int copy(const request &given);
int compact(const request &given);
int mark(const request &given);
int marks(const request &given);
int branch(const request &given);
int return_to(const request &given);
int check(const request &given);
int descriptors(const request &given);
int ship(const request &given);
int restore(const request &given);
int resolve(const request &given);
int device_profile(const request &given);
int live(const request &given);    // built only with libmicrohttpd
int publish(const request &given); // these three are built only with the standby library
int standby(const request &given);
int promote(const request &given);

// Calls `look` for each heap, whatever the result of the one before. Returns the highest exit code.
int each_heap(const request &given, int (*look)(const heap_files &files, const request &given));

// A text of the library with this program's options in place of those of ty_open.
std::string as_options(std::string text);
// Prints on stderr what the thread's last failing call could not do, and the remedy.
int complain(ty_status status);
// The same, and as the file's document if JSON was asked for.
int refuse(const heap_files &files, const request &given, ty_status status);
// As the document of a command that reports on one thing.
int refuse(const request &given, ty_status status);

// The file's name without its folders, for titles.
std::string name_of(const std::string &path);
const char *kind_name(ty_kind kind);
// Reads --kind and --class-table, if given. False: a value is wrong; the error was printed.
bool read_kind(const request &given, ty_kind *kind);
bool read_class_table(const request &given, ty_class_table *classes);
std::vector<ty_class_stats> classes_of(ty_heap *heap, ty_status *status);

} // namespace cli
