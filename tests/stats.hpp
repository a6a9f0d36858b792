// What the library returns of a heap, each with its size set.
#pragma once

#include <gtest/gtest.h>
#include <taiyen/taiyen.h>

namespace taiyen::test {

template <class Stats, class Get>
Stats stats_by(Get get, ty_heap *heap) {
    Stats stats{};
    stats.struct_size = sizeof stats;
    EXPECT_EQ(TY_OK, get(heap, &stats)) << ty_error_text();
    return stats;
}
inline ty_heap_stats heap_stats_of(ty_heap *heap) {
    return stats_by<ty_heap_stats>(ty_heap_get_stats, heap);
}
inline ty_snapshot_stats snapshot_stats_of(ty_heap *heap) {
    return stats_by<ty_snapshot_stats>(ty_get_snapshot_stats, heap);
}
inline ty_txn_stats txn_stats_of(ty_heap *heap) {
    return stats_by<ty_txn_stats>(ty_get_txn_stats, heap);
}
inline ty_undo_stats undo_stats_of(ty_heap *heap) {
    return stats_by<ty_undo_stats>(ty_get_undo_stats, heap);
}
inline ty_atomic_stats atomic_stats_of(ty_heap *heap) {
    return stats_by<ty_atomic_stats>(ty_get_atomic_stats, heap);
}

} // namespace taiyen::test
