#include "suites.hpp"

namespace bench {

#define TAIYEN_BENCH_DECLARE(name) extern const suite name##_suite;
TAIYEN_BENCH_SUITES(TAIYEN_BENCH_DECLARE)
#undef TAIYEN_BENCH_DECLARE

namespace {
#define TAIYEN_BENCH_ENTRY(name) &name##_suite,
constexpr const suite *table[] = {TAIYEN_BENCH_SUITES(TAIYEN_BENCH_ENTRY)};
#undef TAIYEN_BENCH_ENTRY
} // namespace

std::span<const suite *const> suites() {
    return table;
}

} // namespace bench
