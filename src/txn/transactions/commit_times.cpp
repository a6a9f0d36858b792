#include "commit_times.hpp"

#include "txn_runtime.hpp"

#include <bit>

namespace taiyen {
namespace {

// Four buckets per power of two, from 8 ns on.
uint32_t bucket_of(uint64_t ns) {
    if (ns < 8)
        return 0;
    const auto power = static_cast<uint32_t>(std::bit_width(ns)) - 1;
    const uint32_t bucket = (power - 3) * 4 + static_cast<uint32_t>(ns >> (power - 2) & 3);
    return bucket < commit_buckets ? bucket : commit_buckets - 1;
}

} // namespace

void commit_watch::begin() {
    began_ns_ = os::now_ns();
}

void commit_watch::note() {
    std::atomic<uint64_t> &count = times_->counts[static_cast<size_t>(way_)][bucket_of(os::now_ns() - began_ns_)];
    count.fetch_add(1, std::memory_order_relaxed);
}

void txn_time_commits(ty_heap *heap, bool wanted) {
    if (txn_runtime *rt = runtime_of(heap))
        rt->times.wanted.store(wanted, std::memory_order_relaxed);
}

void txn_commit_times(ty_heap *heap, uint64_t (&counts)[commit_ways][commit_buckets]) {
    const txn_runtime *rt = runtime_of(heap);
    for (size_t way = 0; way < commit_ways; ++way)
        for (size_t bucket = 0; bucket < commit_buckets; ++bucket)
            counts[way][bucket] = rt != nullptr ? rt->times.counts[way][bucket].load(std::memory_order_relaxed) : 0;
}

} // namespace taiyen
