// For a test that runs its own program again: what it asks for may belong to another shard.
#pragma once

#include <cstdlib>

namespace taiyen::test {

// The programs that this process starts run every case that they are asked for.
inline void leave_shards() {
    unsetenv("GTEST_TOTAL_SHARDS");
    unsetenv("GTEST_SHARD_INDEX");
}

} // namespace taiyen::test
