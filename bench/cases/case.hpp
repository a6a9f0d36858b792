// The frame of the cases: their parameters, how they measure, and memory that is hidden from the allocator under test.
//
// A case makes its tables, calls start, works, and calls stop: the time in between is measured, and the resident memory
// that was added is what the blocks cost.
#pragma once

#include "../workload.hpp"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <functional>
#include <new>

namespace bench {

// Ends the program with a line on standard error, as the measurement would be wrong.
[[noreturn]] void fail(const char *what);

class case_run {
public:
    case_run(bool quick, size_t divisor) : quick_(quick), divisor_(divisor) {}

    bool quick() const { return quick_; }
    size_t divisor() const { return divisor_; }
    size_t scaled(size_t full) const { return std::max<size_t>(full / divisor_, 1); } // sizes
    size_t work(size_t full) const { return scaled(quick_ ? full / 5 : full); }       // operations

    void start();
    // Reports the time since start; also the peak of resident memory over peak_live_bytes, unless the latter is so
    // small that the allocator's fixed costs would be measured.
    void stop(size_t peak_live_bytes);
    // Resident memory now, minus that at the start. Cheap: one read of a small file.
    double resident_bytes() const;
    // Reports a figure to the suite.
    void report(const char *metric, const char *unit, double value);

private:
    bool quick_;
    size_t divisor_;
    stopwatch watch_;
    double cpu_seconds_ = 0;
    size_t resident_before_ = 0;
};

// Zeroed memory straight from the system, resident from the start.
void *map_table(size_t bytes);

template <typename T>
class table {
public:
    explicit table(size_t count) : count_(count), items_(static_cast<T *>(map_table(count * sizeof(T)))) {}
    size_t size() const { return count_; }
    T &operator[](size_t index) { return items_[index]; }
    T *begin() { return items_; }
    T *end() { return items_ + count_; }

private:
    size_t count_; // stays mapped until the program ends
    T *items_;
};

inline char *allocate(size_t size) {
    char *block = static_cast<char *>(std::malloc(size));
    if (!block)
        fail("malloc gave NULL");
    return block;
}

// Allocated, and made resident.
inline char *allocate_touched(size_t size) {
    char *block = allocate(size);
    touch(block, 0, size);
    return block;
}

// The live bytes of a case with threads: each thread counts its own; the first thread reads the sum.
class live_meter {
public:
    static constexpr size_t most_threads = 8;
    void add(size_t thread, int64_t bytes) {
        std::atomic<int64_t> &own = lines_[thread].bytes;
        own.store(own.load(std::memory_order_relaxed) + bytes, std::memory_order_relaxed); // no other thread writes it
    }
    void look() {
        int64_t sum = 0;
        for (line &each : lines_)
            sum += each.bytes.load(std::memory_order_relaxed);
        peak_ = std::max(peak_, sum);
    }
    size_t peak() const { return static_cast<size_t>(peak_); }

private:
    struct alignas(128) line {
        std::atomic<int64_t> bytes = 0;
    };
    line lines_[most_threads];
    int64_t peak_ = 0;
};

// Runs work(0) to work(count - 1), each in its own thread, and waits for them.
void run_threads(size_t count, const std::function<void(size_t)> &work);

} // namespace bench
