// Taiyen in C++: checks of a container's blocks after they have moved. Part of hash_map.hpp and ordered_map.hpp, which
// include it.
#ifndef TAIYEN_MOVE_WALK_HPP
#define TAIYEN_MOVE_WALK_HPP

#include <taiyen/heap.h>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace taiyen {
inline namespace v0 {
namespace detail {

// J6: a map that is not whole stays as it is after a move. Checks a walk over blocks of a container that may be
// hostile: type descriptors guarantee that each address is of the right type, but neither that lists end, nor that a
// block is used only once.
class move_walk {
public:
    explicit move_walk(const void *container) noexcept : container_(container) {}
    // Whether a block with room for `bytes` starts there, and the walk has met no more blocks than the heap has.
    bool meet(const void *block, std::size_t bytes) {
        if (ty_usable_size(block) < bytes || (blocks_.size() == most_ && blocks_.size() == ask()))
            return false;
        blocks_.push_back(block);
        return true;
    }
    // Whether the walk has met no block twice, and not the container's own: then a store to one changes no other.
    bool is_whole() {
        ty_block own{};
        if (ty_block_of(container_, &own) == TY_OK)
            blocks_.push_back(own.address);
        std::sort(blocks_.begin(), blocks_.end());
        return std::adjacent_find(blocks_.begin(), blocks_.end()) == blocks_.end();
    }

private:
    // Only for a large container: this reads statistics of the whole heap.
    std::size_t ask() {
        ty_heap_stats stats{};
        stats.struct_size = sizeof stats;
        if (ty_heap_get_stats(ty_heap_of(container_), &stats) == TY_OK)
            most_ = std::max<std::size_t>(most_, stats.live_blocks);
        return most_;
    }
    const void *container_;
    std::vector<const void *> blocks_;
    std::size_t most_ = 4096;
};

} // namespace detail
} // namespace v0
} // namespace taiyen

#endif
