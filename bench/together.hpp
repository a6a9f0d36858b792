// The common parts of the suite together: heaps of counters, and transactions of several threads.
#pragma once

#include "files.hpp"
#include "harness.hpp"
#include "laps.hpp"
#include "process.hpp"

#include <memory>
#include <taiyen/distributed.h>

namespace bench {

// A new transactional heap with counters.
class counter_heap {
public:
    explicit counter_heap(const std::string &path);
    ~counter_heap(); // removes its files
    counter_heap(const counter_heap &) = delete;
    counter_heap &operator=(const counter_heap &) = delete;

    ty_heap *get() const { return heap_; }
    // Adds 1 to so many of them.
    void add(ty_txn *txn, random_source &random, size_t count) const;

private:
    std::string path_;
    ty_heap *heap_ = nullptr;
    uint64_t *counters_ = nullptr;
};

class group_of {
public:
    group_of(const std::vector<ty_heap *> &heaps, const ty_last_agent *agent,
             const std::vector<ty_resource_manager> &others);
    ~group_of() { ty_group_close(group_); }
    group_of(const group_of &) = delete;
    group_of &operator=(const group_of &) = delete;
    ty_group *get() const { return group_; }

private:
    ty_group *group_ = nullptr;
};

// Transactions of so many threads at once, for about a second, in a process of its own that `prepare` sets up: it
// returns a thread's transaction, by the thread's number.
using transaction = std::function<void(random_source &random)>;
using preparation = std::function<std::function<transaction(size_t thread)>()>;
void measure_together(session &session, const std::string &case_name, const char *subject, size_t threads,
                      const preparation &prepare);

// suite_together_databases.cpp
std::vector<std::string> database_case_names();
void run_databases(session &session);
void evaluate_databases(session &session);

} // namespace bench
