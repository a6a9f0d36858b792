// Taiyen in C++: what a container does after its heap's blocks have moved. A part of hash_map.hpp and ordered_map.hpp,
// which include it.
#ifndef TAIYEN_MOVE_WALK_HPP
#define TAIYEN_MOVE_WALK_HPP

#include "heap.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace taiyen {
inline namespace v0 {
namespace detail {

// J6. Over blocks of a container that somebody hostile may have made: shapes say that each address is one of the right
// type, but not that lists end.
class move_walk {
public:
    explicit move_walk(const void *container) noexcept : container_(container) {}
    // Whether a block starts there that has room for so much, and the walk has met no more than the heap has.
    bool meet(const void *block, std::size_t bytes) noexcept {
        return ty_usable_size(block) >= bytes && (++met_ <= most_ || met_ <= ask());
    }
    std::uint64_t met() const noexcept { return met_; }

private:
    // Once, and only of a large container: it takes a look at the whole heap.
    std::uint64_t ask() noexcept {
        ty_heap_stats stats{};
        stats.struct_size = sizeof stats;
        if (!asked_ && ty_heap_get_stats(ty_heap_of(container_), &stats) == TY_OK)
            most_ = std::max(most_, stats.live_blocks);
        asked_ = true;
        return most_;
    }
    const void *container_;
    std::uint64_t met_ = 0;
    std::uint64_t most_ = 4096;
    bool asked_ = false;
};

} // namespace detail
} // namespace v0
} // namespace taiyen

#endif
