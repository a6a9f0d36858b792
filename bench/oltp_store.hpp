// The common interface of the subjects of the suite oltp: a table of words, which many threads change in transactions.
// oltp_taiyen.cpp, oltp_plain.cpp, oltp_libitm.cpp and oltp_tinystm.cpp have the subjects.
#pragma once

#include "harness.hpp"
#include "kernel_probe.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <span>

namespace bench {

// A function that is called in a transaction of libitm must be declared for that.
#ifdef TAIYEN_BENCH_GNU_TM
#define TAIYEN_BENCH_IN_TRANSACTION __attribute__((transaction_safe))
#else
#define TAIYEN_BENCH_IN_TRANSACTION
#endif

// A transaction that reads words and adds an amount to each. Places are numbers of words. A range is all words from a
// place on, range_bytes in total; a partial last word is a number of its bytes. balanced: words at every second place
// are reduced by the amount, so that the sum of all stays.
struct addition {
    std::span<const uint64_t> places;
    size_t range_bytes = sizeof(uint64_t);
    uint64_t amount = 1;
    bool balanced = false;

    TAIYEN_BENCH_IN_TRANSACTION uint64_t amount_at(size_t at) const {
        return balanced && at % 2 == 1 ? uint64_t{0} - amount : amount;
    }
};
constexpr size_t most_range_bytes = 512;

TAIYEN_BENCH_IN_TRANSACTION inline void add_to_range(char *range, size_t bytes, uint64_t amount) {
    for (size_t at = 0; at < bytes; at += sizeof(uint64_t)) {
        uint64_t value = 0;
        size_t part = bytes - at < sizeof value ? bytes - at : sizeof value;
        std::memcpy(&value, range + at, part);
        value += amount;
        std::memcpy(range + at, &value, part);
    }
}

// The initial value of all words: so that a double holds the sum of all words exactly.
constexpr uint64_t first_value = 1000000;

TAIYEN_BENCH_IN_TRANSACTION inline uint64_t sum_of(const uint64_t *table, size_t words) {
    uint64_t sum = 0;
    for (size_t at = 0; at < words; at++)
        sum += table[at];
    return sum;
}

struct oltp_settings {
    std::string path; // a folder of the subject's own; empty: the table is in memory only
    size_t words;
    uint64_t first = first_value; // the initial value of all words
    size_t block_bytes = 0;       // of blocks other than the table
    size_t log_bytes = 0;         // of a table in a folder
};

constexpr size_t heap_spare_bytes = size_t{128} << 20; // for a heap's own tables

struct travel_request;
struct travel_outcome {
    int64_t more_reservations = 0;
    uint64_t stored_words = 0; // if the subject counts them
};

// When `add` returns: when the transaction is durable, when it is visible, or when it is durable in its own log stream.
enum class commit_how { sync, async, stream };

// Since the table was opened. NaN: it has none, or does not report it.
struct oltp_counts {
    double conflicts = std::numeric_limits<double>::quiet_NaN();
    double snapshot_wait_ms = std::numeric_limits<double>::quiet_NaN(); // the longest of all
    double log_bytes = std::numeric_limits<double>::quiet_NaN();        // including everything that is committed
};

// One object per process: opened, used, closed. Every failure is thrown, and ends the process.
class oltp_store {
public:
    virtual ~oltp_store() = default;

    // Opens the table in the folder, or creates a new one. Every page of it has been written.
    virtual void open() = 0;
    virtual void close() {}
    // Called by many threads, as are wait_until_durable and snapshot. Returns the argument for wait_until_durable.
    virtual uint64_t add(const addition &what, commit_how how) = 0;
    virtual void wait_until_durable(uint64_t) {}
    virtual void snapshot() { throw std::logic_error("this subject has no snapshots"); }
    // The sum of all words at one moment, in a transaction; some of the threads call it.
    virtual uint64_t read_all() { throw std::logic_error("this subject cannot read all"); }
    // travel.hpp
    virtual travel_outcome travel(const travel_request &, commit_how) {
        throw std::logic_error("this subject is no travel agency");
    }
    // Read while no transaction runs.
    virtual const uint64_t *table() = 0;
    virtual oltp_counts counts() { return {}; }
};

struct oltp_kind {
    const char *name;
    std::unique_ptr<oltp_store> (*make)(const oltp_settings &);
};

template <typename Store>
std::unique_ptr<oltp_store> make_oltp(const oltp_settings &settings) {
    return std::make_unique<Store>(settings);
}

// Words of subjects other than taiyen. In a block of a volatile heap, as taiyen's are, so that all have pages of the
// same size. Or in huge pages, which that heap asks for only as far as it finds memory in use when it grows.
class word_memory {
public:
    word_memory(const oltp_settings &settings, bool huge);
    word_memory(const word_memory &) = delete;
    ~word_memory();

    uint64_t *words() { return words_; }

private:
    std::optional<mapping> mapping_;
    ty_heap *heap_ = nullptr;
    uint64_t *words_;
};

// "hinted": the words are prefetched, by the library's call or by the processor's instruction.
extern const oltp_kind taiyen_oltp, taiyen_unhinted_oltp, one_writer_oltp, raw_oltp, raw_huge_oltp, mutex_oltp,
    mutex_hinted_oltp, libitm_oltp, libitm_hinted_oltp, tinystm_oltp;

} // namespace bench
