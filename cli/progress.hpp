// How far long work has come and how long it will take, on a terminal only: nothing is written to a pipe or a file.
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
    void clear(); // before other output
    // As a callback of the library, with a progress as context; goes on.
    static bool tell(uint64_t done_bytes, uint64_t total_bytes, void *self);

private:
    const char *what_;
    bool terminal_;
    int shown_percent_ = -1;
    std::chrono::steady_clock::time_point begun_, shown_at_;
};

} // namespace cli
