// Goal: the machine is described, and plausibly.
// Method: the same facts are asked of the C library.
#include "src/os/process/topology.hpp"

#include <bit>
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

using namespace taiyen::os;

TEST(topology, agrees_with_the_c_library) {
    const topology &m = machine();
    cpu_set_t set;
    ASSERT_EQ(sched_getaffinity(0, sizeof set, &set), 0);
    EXPECT_EQ(m.cores, static_cast<unsigned>(CPU_COUNT(&set)));
    EXPECT_EQ(m.page_bytes, static_cast<size_t>(sysconf(_SC_PAGESIZE)));
    EXPECT_TRUE(std::has_single_bit(m.cache_line_bytes));
    EXPECT_GE(m.cache_line_bytes, 16u);
    EXPECT_GE(m.numa_nodes, 1u);
    EXPECT_GT(m.memory_bytes, size_t{1} << 24);
    EXPECT_LE(m.memory_bytes, static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * m.page_bytes);
    EXPECT_EQ(&m, &machine());
}
