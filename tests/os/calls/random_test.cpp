// Goal: random_bytes gives words that differ, and no byte more than it was asked for.
// Method: a thousand words, and an odd count of bytes in a buffer that is longer.
#include "src/os/calls/random.hpp"

#include <cstdint>
#include <gtest/gtest.h>
#include <set>

using namespace taiyen::os;

namespace {

TEST(random_bytes, differ) {
    std::set<uint64_t> seen;
    for (int i = 0; i < 1000; i++) {
        uint64_t word = 0;
        random_bytes(&word, sizeof word);
        EXPECT_TRUE(seen.insert(word).second);
    }
    unsigned char odd[13] = {};
    random_bytes(odd, 11);
    EXPECT_EQ(odd[11] | odd[12], 0);
}

} // namespace
