#include "memory_pressure.hpp"

namespace taiyen {

void memory_pressure::start(ty_heap *heap, uint64_t bound_bytes) {
    heap_ = heap;
    bound_bytes_ = bound_bytes;
    private_bytes_.store(os::private_bytes(), std::memory_order_relaxed);
}

bool memory_pressure::may_exceed() const {
    return heap_used_bytes(heap_) > image_copies_allowed(heap_);
}

snapshot_urgency memory_pressure::look() {
    if (!may_exceed() || looking_.exchange(true, std::memory_order_acquire))
        return snapshot_urgency::enough;
    const snapshot_urgency found = answer();
    looking_.store(false, std::memory_order_release);
    return found;
}

snapshot_urgency memory_pressure::answer() {
    const uint64_t now = os::now_ns();
    if (now < next_look_ns_)
        return snapshot_urgency::enough;
    next_look_ns_ = now + look_ns;
    const uint64_t there = os::private_bytes();
    const uint64_t before = private_bytes_.load(std::memory_order_relaxed);
    const uint64_t grown = there > before ? there - before : 0;
    if (grown < least_bytes)
        return snapshot_urgency::enough;
    if (bound_bytes_)
        return grown < bound_bytes_ / 2 ? snapshot_urgency::enough
               : grown < bound_bytes_   ? snapshot_urgency::soon
                                        : snapshot_urgency::now;
    if (!watching_)
        memory_.start();
    watching_ = true;
    const os::memory_available room = memory_.now();
    if (grown < room.limit / 16) // a snapshot would free little
        return snapshot_urgency::enough;
    if (room.available < room.limit / 8)
        return snapshot_urgency::now;
    return room.available < room.limit / 4 + grown ? snapshot_urgency::soon
                                                   : snapshot_urgency::enough; // staging needs as much
}

void memory_pressure::collected() {
    if (may_exceed())
        private_bytes_.store(os::private_bytes(), std::memory_order_relaxed);
}

} // namespace taiyen
