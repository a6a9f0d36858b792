// Child processes: for honest memory figures, for kills, and so that files are removed whatever happens.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace bench {

// Runs work in a forked child and returns its result. What it throws is rethrown here; if it dies, this throws, too.
std::vector<double> in_child(const std::function<std::vector<double>()> &work);

// The same in so many children at once. Each calls `start` when it is ready; it returns when all have called it, or
// ended.
std::vector<std::vector<double>>
in_children(size_t count,
            const std::function<std::vector<double>(size_t index, const std::function<void()> &start)> &work);

// Runs work in a forked child, and kills the child with SIGKILL as soon as work has returned.
void in_killed_child(const std::function<void()> &work);

struct program_end {
    int exit_code;      // -1: a signal ended it
    std::string output; // what it wrote to standard output
};

// Runs a program with LD_PRELOAD set to `preload` (empty: unset), and waits for it. arguments[0] is its path.
program_end run_program(const std::vector<std::string> &arguments, const std::string &preload);

// Runs work in a child while this process waits; on SIGINT, SIGTERM and SIGHUP, ends the child and all its children. In
// every case removes the folder, then returns the child's exit code.
int supervise(const std::string &folder, const std::function<int()> &work);

// The highest resident size of this process so far, in bytes.
double peak_resident_bytes();

// The resident size now, and the part of it that is no file's.
double resident_bytes();
double private_bytes();

// Bytes that this process has caused to be written to disks, as the kernel accounts them.
double written_bytes();

} // namespace bench
