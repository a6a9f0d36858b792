// The frame that all suites share: settings, time, repetitions, and errors.
#pragma once

#include "results.hpp"
#include "suites.hpp"
#include <taiyen/taiyen.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

namespace bench {

struct settings {
    bool quick = false;
    size_t divisor = 1; // sizes are divided by it; other than 1 only to test the program itself
    std::string folder; // where files go; removed at the end
};

// A peer or a kernel feature that is not there: the subject is left out, with the reason in the table.
class unavailable : public std::runtime_error {
    using runtime_error::runtime_error;
};

// Throws what went wrong, with the library's or the system's text.
void check(ty_status status, const char *what);
[[noreturn]] void fail_system(const char *what);

class stopwatch {
public:
    double ns() const { return std::chrono::duration<double, std::nano>(clock::now() - start_).count(); }
    double ms() const { return ns() / 1e6; }

private:
    using clock = std::chrono::steady_clock;
    clock::time_point start_ = clock::now();
};

// A small, fast generator: the same seed gives the same sequence to every subject of a case.
class random_source {
public:
    explicit random_source(uint64_t seed) : state_(seed * 2 + 1) {}
    uint64_t next() {
        state_ ^= state_ << 13;
        state_ ^= state_ >> 7;
        state_ ^= state_ << 17;
        return state_ * 0x9e3779b97f4a7c15u;
    }
    size_t below(size_t bound) { return static_cast<size_t>((next() >> 32) * bound >> 32); } // bound < 2^32
private:
    uint64_t state_;
};

// `count` different numbers below `bound`, in random order.
std::vector<uint32_t> random_pages(size_t count, size_t bound, uint64_t seed);

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
    // Runs the subjects in turn (A B C A B C ...), so that a drift of the machine meets all of them alike. A subject
    // that throws `unavailable` is noted as missing and left out from then on.
    void interleave(const std::string &case_name, size_t times, std::vector<subject> subjects);

private:
    void show_progress(const std::string &text);

    const settings &options_;
    results results_;
    std::string suite_name_;
};

} // namespace bench
