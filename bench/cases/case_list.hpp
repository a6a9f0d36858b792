// The cases of taiyen-bench-cases, by suite. A new one is a function run_NAME in a file here, and a line below.
#pragma once

#include <cstddef>

namespace bench {

#define TAIYEN_MALLOC_CASES(CASE)                                                                                      \
    CASE(small_batch, "small-batch")                                                                                   \
    CASE(small_random, "small-random")                                                                                 \
    CASE(small_queue, "small-queue")                                                                                   \
    CASE(small_trees, "small-trees")                                                                                   \
    CASE(small_lifetimes, "small-lifetimes")                                                                           \
    CASE(handover_single, "handover-single")                                                                           \
    CASE(handover_batch, "handover-batch")                                                                             \
    CASE(server, "server")                                                                                             \
    CASE(torture, "torture")                                                                                           \
    CASE(restart, "restart")                                                                                           \
    CASE(thrash_64k, "thrash-64K")                                                                                     \
    CASE(thrash_4m, "thrash-4M")                                                                                       \
    CASE(sharing_active, "sharing-active")                                                                             \
    CASE(sharing_passive, "sharing-passive")                                                                           \
    CASE(big, "big")                                                                                                   \
    CASE(realloc, "realloc")                                                                                           \
    CASE(calloc, "calloc")

#define TAIYEN_DYNAMIC_CASES(CASE)                                                                                     \
    CASE(double_alone, "double-alone")                                                                                 \
    CASE(double_between, "double-between")                                                                             \
    CASE(third_alone, "third-alone")                                                                                   \
    CASE(third_between, "third-between")

} // namespace bench
