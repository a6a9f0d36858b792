// The allocators that the suites malloc and dynamic compare: each preloaded into a process of its own.
#pragma once

#include "harness.hpp"

namespace bench {

struct allocator_library {
    std::string name;
    std::string library; // a path, or a file name that the dynamic linker finds
    bool preloaded = true;
};

// Where scripts/build_peers puts what it builds.
std::string default_peers();

// taiyen first, then its peers and what --also names.
std::vector<allocator_library> allocator_libraries(const settings &options);

// Runs a case of taiyen-bench-cases under each allocator, in turn, so many times (quick: 3), and records its figures.
// An allocator that has had five turns and spent ten seconds on them gets no more.
void interleave_allocators(session &session, const std::vector<allocator_library> &libraries, const char *case_name,
                           size_t times);

enum class peers { all, without_glibc };

// The lowest median of a metric among the peers (without those of --also); NaN if no peer has it.
double best_peer(const results &out, const std::string &case_name, const std::string &metric, peers which = peers::all);

// Adds the geometric mean of a metric over all cases, for each subject that has run them all, as the case mean_case.
inline constexpr const char *mean_case = "mean";
void add_means(results &out, const std::string &metric, const std::string &unit);

} // namespace bench
