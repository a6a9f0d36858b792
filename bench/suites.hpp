// The suites that taiyen-bench knows. A new one is a file that defines `const suite NAME_suite`, and a line here.
#pragma once

#include <span>

namespace bench {

#define TAIYEN_BENCH_SUITES(SUITE)                                                                                     \
    SUITE(churn)                                                                                                       \
    SUITE(malloc)                                                                                                      \
    SUITE(dynamic)                                                                                                     \
    SUITE(dirty)                                                                                                       \
    SUITE(snapshot)                                                                                                    \
    SUITE(open)                                                                                                        \
    SUITE(commit)                                                                                                      \
    SUITE(transactional)                                                                                               \
    SUITE(undo)

class session;

struct suite {
    const char *name;
    const char *purpose;           // one line, for `list` and above the table
    void (*run)(session &session); // measures all cases
    void (*judge)(session &session);
};

// In the order of the list above.
std::span<const suite *const> suites();

// NULL if there is none of that name.
const suite *find_suite(const char *name);

} // namespace bench
