// Thrash: a live set whose sizes drift up and down while its total bytes stay the same, on any allocator.
//
// Sizes are spread evenly over the orders of magnitude in a window, seven eighths of the whole range, which moves from
// the smallest to the largest sizes and back; the live set is replaced six times in each direction (three times when
// quick), and the blocks to free are drawn at random. An allocator that keeps pages for sizes no longer in use shows it
// in its page efficiency: live bytes over resident bytes. (In a narrow window, all blocks of a page must be freed
// before another size can have it: then every allocator is at one half, and the figure says little.)
#pragma once

#include "../workload.hpp"

#include <algorithm>

namespace bench {

struct thrash_plan {
    size_t largest;     // bytes; the smallest is 8
    size_t live_bytes;  // to be kept
    size_t total_bytes; // to be allocated
    size_t slots;       // of the table of blocks: room for the window of the smallest sizes
};

struct thrash_block {
    char *block;
    size_t size;
};

class thrash_windows {
public:
    explicit thrash_windows(const thrash_plan &plan)
        : plan_(plan), octaves_(std::log2(static_cast<double>(plan.largest) / 8)), width_(octaves_ * 7 / 8) {}

    // The size of the next block after so many bytes have been allocated.
    size_t draw(size_t done_bytes, random_source &random) const {
        double way = 2 * static_cast<double>(done_bytes) / static_cast<double>(plan_.total_bytes); // up and down
        double in_leg = way - std::floor(way);
        bool down = way >= 1;
        double low = (down ? 1 - in_leg : in_leg) * (octaves_ - width_);
        double at = low + width_ * static_cast<double>(random.below(1u << 20)) / (1u << 20);
        return static_cast<size_t>(8 * std::exp2(at));
    }

private:
    const thrash_plan &plan_;
    double octaves_, width_;
};

// Fills the table up to the live set and thrashes it; observe(live bytes) is called every 256 blocks, once the set is
// full. Returns how many blocks are live at the end; they come first in the table. Allocator: alloc and free as static
// functions.
template <typename Allocator, typename Observe>
size_t thrash(const thrash_plan &plan, thrash_block *blocks, Observe observe) {
    thrash_windows windows(plan);
    random_source random(11);
    size_t count = 0, live = 0, steps = 0;
    for (size_t done = 0; done < plan.total_bytes; steps++) {
        size_t size = windows.draw(done, random);
        while (count > 0 && (live + size > plan.live_bytes || count == plan.slots)) {
            thrash_block &gone = blocks[random.below(count)];
            Allocator::free(gone.block);
            live -= gone.size;
            gone = blocks[--count];
        }
        char *block = static_cast<char *>(Allocator::alloc(size));
        touch(block, 0, size);
        blocks[count++] = {block, size};
        live += size;
        done += size;
        if (steps % 256 == 0 && done >= plan.live_bytes)
            observe(live);
    }
    return count;
}

inline thrash_plan plan_thrash(size_t largest, size_t divisor, bool quick) {
    size_t live = (size_t{512} << 20) / divisor;
    thrash_plan plan{std::max<size_t>(largest / divisor, 1024), live, live * (quick ? 7 : 13), 0};
    double window = std::pow(static_cast<double>(plan.largest) / 8, 0.875); // largest over smallest size
    double least_mean = 8 * (window - 1) / std::log(window);
    plan.slots = static_cast<size_t>(1.5 * static_cast<double>(live) / least_mean) + 64;
    return plan;
}

} // namespace bench
