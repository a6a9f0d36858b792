// The suites of taiyen-bench. A new one is a file that defines `const suite NAME_suite`, and a line here.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace bench {

// They measure parts of the examples.
#ifdef TAIYEN_BENCH_WITHOUT_EXAMPLES
#define TAIYEN_BENCH_PACK(SUITE)
#define TAIYEN_BENCH_TOGETHER(SUITE)
#else
#define TAIYEN_BENCH_PACK(SUITE) SUITE(pack)
#define TAIYEN_BENCH_TOGETHER(SUITE) SUITE(together)
#endif

#define TAIYEN_BENCH_SUITES(SUITE)                                                                                     \
    SUITE(churn)                                                                                                       \
    SUITE(malloc)                                                                                                      \
    SUITE(dynamic)                                                                                                     \
    SUITE(dirty)                                                                                                       \
    SUITE(snapshot)                                                                                                    \
    SUITE(open)                                                                                                        \
    SUITE(watch)                                                                                                       \
    SUITE(commit)                                                                                                      \
    SUITE(processes)                                                                                                   \
    SUITE(oltp)                                                                                                        \
    TAIYEN_BENCH_TOGETHER(SUITE)                                                                                       \
    SUITE(transactional)                                                                                               \
    SUITE(undo)                                                                                                        \
    SUITE(marks)                                                                                                       \
    SUITE(vectors)                                                                                                     \
    TAIYEN_BENCH_PACK(SUITE)

class session;

struct suite {
    const char *name;
    const char *purpose;                 // one line, for `list` and above the table
    std::vector<std::string> (*cases)(); // the names of all rows that it measures, by which they can be chosen
    void (*run)(session &session);
    void (*evaluate)(session &session);
    // So much memory is touched and released before each turn. A virtual machine's host may take back memory that has
    // been free for two seconds (free page reporting): a gigabyte in huge pages then takes 2.4 s to touch instead of
    // 0.05 s, and the first subject after a pause would pay for that.
    size_t warm_bytes = 0;
};

// The names of an array of cases.
template <typename Cases>
std::vector<std::string> names_of(const Cases &cases) {
    std::vector<std::string> names;
    for (const auto &each : cases)
        names.emplace_back(each.name);
    return names;
}

// In the order of the list above.
std::span<const suite *const> suites();

} // namespace bench
