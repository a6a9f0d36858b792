// The common interface of the subjects of the commit suite: a table in which transactions add 1 to words, or churn
// small records. One file per subject: commit_NAME.cpp.
#pragma once

#include "harness.hpp"

#include <array>
#include <limits>
#include <memory>
#include <span>

namespace bench {

// The words that a transaction adds 1 to. Threads draw from disjoint parts of the table, so that no subject has
// conflicts between them.
using word_set = std::array<uint64_t, 6>;

// A transaction that removes one record, adds another, and looks up a third.
struct churn_step {
    uint64_t remove, insert, look_up; // keys
    size_t bytes;                     // of the inserted record
};
constexpr size_t least_record_bytes = 16;
constexpr size_t most_record_bytes = 256;

enum class table_content { words, records };
enum class table_values { counters, random };

struct store_settings {
    std::string path;       // a folder of the subject's own
    table_content content;  // a table for add_one, or one for churn
    size_t count;           // of keys 0, 1, 2 ... that `fill` makes
    bool sync = true;       // a transaction is durable when the call returns; else as soon as the subject likes
    bool automatic = false; // taiyen only: nothing is declared
    table_values values = table_values::counters; // taiyen only: random values instead of added ones
    bool shared = false;                          // several processes have it open: taiyen, lmdb and sqlite only
};

// One object at a time in a process: constructed (which loads the peer's library), opened, used, closed. Every failure
// is thrown, and ends the process; what is open then is left as it is.
class commit_store {
public:
    virtual ~commit_store() = default;

    // Opens what `fill` made, after whatever happened to the process that used it last; else creates an empty table.
    virtual void open() = 0;
    // Words of value 0, or records of different sizes. Durable when it is closed.
    virtual void fill() = 0;
    virtual void close() = 0;
    // Brings files and caches to the state of a store that has run for a while.
    virtual void warm_up() {}
    // One transaction. Called by many threads.
    virtual void add_one(const word_set &words) = 0;
    // One transaction; throws if a key to remove or to look up is missing. Called by one thread.
    virtual void churn(const churn_step &step);
    // Bytes of the record, copied to buffer; 0 if there is no record. Outside of transactions, one thread.
    virtual size_t read(uint64_t key, std::span<char> buffer);
    // Bytes written to the log since the store was opened, including everything that is committed; NaN: it has no log,
    // or does not report it.
    virtual double log_bytes() { return std::numeric_limits<double>::quiet_NaN(); }
};

// A subject that has only words, and that does not survive a kill (raw), does not implement these.
inline void commit_store::churn(const churn_step &) {
    throw std::logic_error("this subject has no records");
}
inline size_t commit_store::read(uint64_t, std::span<char>) {
    throw std::logic_error("this subject cannot be read");
}

// The number of words of a 1 GB table, and of a smaller one that some stores handle better.
constexpr size_t gigabyte_words = (size_t{1} << 30) / sizeof(uint64_t);
constexpr size_t small_words = gigabyte_words / 8;

struct store_kind {
    const char *name;
    std::unique_ptr<commit_store> (*make)(const store_settings &);
};

extern const store_kind raw_kind, raw_huge_kind;
// Taiyen first, then the peers whose headers were found when this program was built.
std::vector<store_kind> store_kinds();

// What `fill` puts into a record, and its size.
inline size_t record_bytes_of(uint64_t key) {
    return least_record_bytes + key * 37 % (most_record_bytes - least_record_bytes + 1);
}
inline constexpr char record_content[most_record_bytes] = "A record of some bytes.";

} // namespace bench
