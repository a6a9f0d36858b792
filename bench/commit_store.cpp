#include "commit_store.hpp"

namespace bench {

namespace {

[[maybe_unused]] std::unique_ptr<commit_store> not_built(const store_settings &) {
    throw unavailable("its headers were missing when this program was built");
}

} // namespace

// The build passes the peers whose headers were found: a list of PRESENT(name) and ABSENT(name).
#define PRESENT(name) extern const store_kind name##_kind;
#define ABSENT(name)
TAIYEN_BENCH_PEERS
#undef PRESENT
#undef ABSENT

std::vector<store_kind> store_kinds() {
#define PRESENT(name) name##_kind,
#define ABSENT(name) {#name, not_built},
    return {TAIYEN_BENCH_PEERS};
#undef PRESENT
#undef ABSENT
}

} // namespace bench
