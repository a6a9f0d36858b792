#include "memory_need.hpp"

namespace taiyen {

void memory_need::start(ty_heap *heap, uint64_t bound_bytes) {
    heap_ = heap;
    bound_bytes_ = bound_bytes;
    private_bytes_.store(os::private_bytes(), std::memory_order_relaxed);
}

bool memory_need::may_exceed() const {
    return heap_used_bytes(heap_) > image_copies_allowed(heap_);
}

memory_answer memory_need::look() {
    if (!may_exceed() || looking_.exchange(true, std::memory_order_acquire))
        return memory_answer::enough;
    const memory_answer found = answer();
    looking_.store(false, std::memory_order_release);
    return found;
}

memory_answer memory_need::answer() {
    const uint64_t now = os::now_ns();
    if (now < next_look_ns_)
        return memory_answer::enough;
    next_look_ns_ = now + look_ns;
    const uint64_t there = os::private_bytes();
    const uint64_t before = private_bytes_.load(std::memory_order_relaxed);
    const uint64_t grown = there > before ? there - before : 0;
    if (grown < least_bytes)
        return memory_answer::enough;
    if (bound_bytes_)
        return grown < bound_bytes_ / 2 ? memory_answer::enough
               : grown < bound_bytes_   ? memory_answer::soon
                                        : memory_answer::now;
    if (!watching_)
        memory_.start();
    watching_ = true;
    const os::memory_room room = memory_.now();
    if (grown < room.limit / 16) // a snapshot would free little
        return memory_answer::enough;
    if (room.available < room.limit / 8)
        return memory_answer::now;
    return room.available < room.limit / 4 + grown ? memory_answer::soon
                                                   : memory_answer::enough; // staging needs as much
}

void memory_need::collected() {
    if (may_exceed())
        private_bytes_.store(os::private_bytes(), std::memory_order_relaxed);
}

} // namespace taiyen
