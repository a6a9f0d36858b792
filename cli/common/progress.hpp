// How far long work has come and how long it will take, only on a terminal: nothing is written to a pipe or a file.
#pragma once

#include <chrono>
#include <cstdint>

namespace cli {

class progress {
public:
    explicit progress(const char *what);
    ~progress() { clear(); }
    progress(const progress &) = delete;
    progress &operator=(const progress &) = delete;

    void show(uint64_t done_bytes, uint64_t total_bytes);
    void clear(); // call it before other output
    // A callback of the library, with a progress as context; always continues.
    static bool report(uint64_t done_bytes, uint64_t total_bytes, void *self);

private:
    const char *what_;
    bool terminal_;
    int shown_percent_ = -1;
    std::chrono::steady_clock::time_point begun_, shown_at_;
};

} // namespace cli
