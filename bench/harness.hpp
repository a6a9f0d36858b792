// The frame of all suites: settings, time, repetitions, and errors.
#pragma once

#include "results.hpp"
#include "suites.hpp"
#include "workload.hpp"
#include <taiyen/taiyen.h>

#include <cstdint>
#include <functional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

namespace bench {

struct settings {
    bool quick = false;
    size_t divisor = 1;                // sizes are divided by it; not 1 only in tests of the program itself
    std::string folder;                // where files go; removed at the end
    std::vector<std::string> cases;    // empty: all; else those that one of these stands_for
    std::vector<std::string> subjects; // empty: all
    std::string peers;                 // folder of the allocators that scripts/build_peers has built
    std::vector<std::string> also;     // NAME=LIBRARY: further allocators to preload
};

// A peer or a kernel feature is missing: the subject is left out, with the reason in the table.
class unavailable : public std::runtime_error {
    using runtime_error::runtime_error;
};

// Throws a failure, with the library's or the system's text.
void check(ty_status status, const char *what);
[[noreturn]] void fail_system(const char *what);

// `count` different numbers below `bound`, in random order.
std::vector<uint32_t> random_pages(size_t count, size_t bound, uint64_t seed);

// A name on the command line stands for the case of that name, and for those whose names continue with a hyphen.
bool stands_for(const std::string &chosen, const std::string &case_name);

class session {
public:
    session(const settings &options, const suite &suite);

    const settings &options() const { return options_; }
    results &out() { return results_; }

    size_t repetitions(size_t full) const { return options_.quick ? (full > 5 ? 3 : 2) : full; }
    size_t work(size_t full) const { return scaled(options_.quick ? full / 5 : full); } // operations
    size_t scaled(size_t full) const { return full / options_.divisor > 0 ? full / options_.divisor : 1; }
    std::string path(const std::string &name) const { return options_.folder + "/" + name; }

    struct subject {
        const char *name;
        std::function<void()> run;
    };
    // Runs the subjects in turn (A B C A B C ...), so that a drift of the machine affects all of them alike. A subject
    // that throws `unavailable` is noted as missing and left out from then on. Subjects that were not asked for are
    // left out, too, and the whole call is skipped if none of the cases that it measures was asked for.
    void interleave(const std::vector<std::string> &case_names, size_t times, std::vector<subject> subjects);
    void interleave(const std::string &case_name, size_t times, std::vector<subject> subjects) {
        interleave(std::vector{case_name}, times, std::move(subjects));
    }

    bool is_wanted(const std::string &case_name) const;
    // The names of all subjects that interleave was given.
    const std::set<std::string> &subjects() const { return subjects_; }

private:
    bool is_wanted_subject(const std::string &name) const;
    void show_progress(const std::string &text);

    const settings &options_;
    results results_;
    const suite &suite_;
    std::set<std::string> subjects_;
};

} // namespace bench
