// The programs of the churn suite: each runs on any allocator that has alloc, free and resize as static functions.
//
// An operation is one alloc, free or resize. Every block is written to in its first and last byte, and once in each
// page, so that what is allocated is resident and memory figures can be compared. Sizes and choices come from a
// generator with the same seed for all allocators; drawing them is part of the time of each (about 2 ns).
#pragma once

#include "harness.hpp"

#include <atomic>
#include <memory>
#include <sched.h>
#include <thread>

namespace bench {

// Blocks and the bytes asked for, with their peak. Created and touched before memory is measured.
class live_set {
public:
    explicit live_set(size_t slots) : blocks_(slots), sizes_(slots) {}
    size_t slots() const { return blocks_.size(); }
    char *&block(size_t slot) { return blocks_[slot]; }
    size_t size(size_t slot) const { return sizes_[slot]; }
    void set_size(size_t slot, size_t size) {
        live_ += size - sizes_[slot];
        sizes_[slot] = static_cast<uint32_t>(size);
        if (live_ > peak_)
            peak_ = live_;
    }
    size_t peak() const { return peak_; }

private:
    std::vector<char *> blocks_;
    std::vector<uint32_t> sizes_;
    size_t live_ = 0, peak_ = 0;
};

template <typename Allocator>
char *alloc_touched(size_t size) {
    char *block = static_cast<char *>(Allocator::alloc(size));
    if (!block)
        throw std::runtime_error("an allocator has no memory");
    touch(block, 0, size);
    return block;
}

template <typename Allocator>
void replace(live_set &live, size_t slot, size_t size) {
    Allocator::free(live.block(slot));
    live.block(slot) = alloc_touched<Allocator>(size);
    live.set_size(slot, size);
}

template <typename Allocator>
void fill(live_set &live, random_source &random, const size_table &sizes) {
    for (size_t slot = 0; slot < live.slots(); slot++)
        replace<Allocator>(live, slot, sizes.pick(random));
}

// A case returns nanoseconds per operation; the memory figures follow from the live set.
using churn_case = double(live_set &live, size_t steps);

// A tight loop of small blocks, each freed 16 steps later, beside a live set that is left alone.
template <typename Allocator>
double churn_tight(live_set &live, size_t steps) {
    random_source random(1);
    fill<Allocator>(live, random, size_table(16, 64, 2));
    char *ring[16] = {};
    stopwatch watch;
    for (size_t step = 0; step < steps; step++) {
        char *&place = ring[step % 16];
        Allocator::free(place);
        place = alloc_touched<Allocator>(16 + step % 4 * 16);
    }
    double ns = watch.ns() / static_cast<double>(2 * steps);
    for (char *block : ring)
        Allocator::free(block);
    return ns;
}

// A random block of the live set is freed, and another of random size takes its place.
template <typename Allocator>
double churn_random(live_set &live, size_t steps) {
    random_source random(1);
    size_table sizes(16, 1024, 2);
    fill<Allocator>(live, random, sizes);
    stopwatch watch;
    for (size_t step = 0; step < steps; step++)
        replace<Allocator>(live, random.below(live.slots()), sizes.pick(random));
    return watch.ns() / static_cast<double>(2 * steps);
}

// The same while the sizes drift, from 16..128 up to 256..2048 and back: holes of one size must serve another.
template <typename Allocator>
double churn_drift(live_set &live, size_t steps) {
    constexpr size_t phases = 9;
    random_source random(1);
    fill<Allocator>(live, random, size_table(16, 128, 2));
    stopwatch watch;
    for (size_t phase = 0; phase < phases; phase++) {
        size_t grown = phase < phases / 2 ? phase : phases - 1 - phase;
        size_table sizes(size_t{16} << grown, size_t{128} << grown, 3 + phase);
        for (size_t step = 0; step < steps / phases; step++)
            replace<Allocator>(live, random.below(live.slots()), sizes.pick(random));
    }
    return watch.ns() / static_cast<double>(steps / phases * phases * 2);
}

// Blocks from a page to a megabyte.
template <typename Allocator>
double churn_large(live_set &live, size_t steps) {
    random_source random(1);
    size_table sizes(4096, size_t{1} << 20, 2);
    fill<Allocator>(live, random, sizes);
    stopwatch watch;
    for (size_t step = 0; step < steps; step++)
        replace<Allocator>(live, random.below(live.slots()), sizes.pick(random));
    return watch.ns() / static_cast<double>(2 * steps);
}

// Blocks that grow by half again and again, as vectors and strings do; at 64 KB they start over at 32 B.
template <typename Allocator>
double churn_resize(live_set &live, size_t steps) {
    random_source random(1);
    fill<Allocator>(live, random, size_table(32, 65536, 2));
    size_t operations = 0;
    stopwatch watch;
    for (size_t step = 0; step < steps; step++) {
        size_t slot = random.below(live.slots()), old = live.size(slot);
        size_t size = old + old / 2 + 8;
        if (size > 65536) {
            replace<Allocator>(live, slot, 32);
            operations += 2;
            continue;
        }
        char *grown = static_cast<char *>(Allocator::resize(live.block(slot), size));
        if (!grown)
            throw std::runtime_error("an allocator has no memory");
        touch(grown, old, size);
        live.block(slot) = grown;
        live.set_size(slot, size);
        operations++;
    }
    return watch.ns() / static_cast<double>(operations);
}

// One thread allocates, another one reads and frees; between them is a ring of 4,096 blocks.
template <typename Allocator>
double churn_handoff(live_set &live, size_t steps) {
    constexpr size_t ring_slots = 4096;
    random_source random(1);
    size_table sizes(16, 256, 2);
    fill<Allocator>(live, random, sizes);
    auto ring = std::make_unique<char *[]>(ring_slots);
    // One thread writes each of them and the other reads it: the release store pairs with the acquire load.
    alignas(64) std::atomic<size_t> made{0};
    alignas(64) std::atomic<size_t> taken{0};
    stopwatch watch;
    std::thread consumer([&] {
        for (size_t at = 0; at < steps;) {
            size_t ready = made.load(std::memory_order_acquire);
            if (at == ready)
                sched_yield();
            for (; at < ready; at++) {
                char *block = ring[at % ring_slots];
                if (block[0] == 1)
                    Allocator::free(block);
            }
            taken.store(at, std::memory_order_release);
        }
    });
    for (size_t at = 0; at < steps; at++) {
        while (at - taken.load(std::memory_order_acquire) == ring_slots)
            sched_yield();
        ring[at % ring_slots] = alloc_touched<Allocator>(sizes.pick(random));
        made.store(at + 1, std::memory_order_release);
    }
    consumer.join();
    return watch.ns() / static_cast<double>(2 * steps);
}

} // namespace bench
