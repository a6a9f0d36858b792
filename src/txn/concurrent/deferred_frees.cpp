#include "deferred_frees.hpp"

namespace taiyen {

ty_status deferred_frees::enter(const os::array<block_note> &freed) {
    ty_status status = TY_OK;
    os::lock_guard guard(lock);
    for (size_t i = 0; i < freed.count(); i++) {
        const uint64_t word = freed[i].word;
        status = holds(word) && !fault("block_freed_twice_by_two_threads") ? TY_E_BUSY : words_.insert(word, 0);
        if (status != TY_OK) {
            while (i-- > 0)
                leave_one(freed[i].word);
            return status;
        }
        count(word, 1);
    }
    return TY_OK;
}

void deferred_frees::leave(const block_note *freed, size_t count) {
    os::lock_guard guard(lock);
    for (size_t i = 0; i < count; i++)
        leave_one(freed[i].word);
}

void deferred_frees::leave_one(uint64_t word) {
    words_.erase(word);
    count(word, -1);
}

// Only one thread has the lock, so no other one writes meanwhile.
void deferred_frees::count(uint64_t word, int by) {
    std::atomic<uint32_t> &place = places_[place_of(word)];
    place.store(place.load(std::memory_order_relaxed) + static_cast<uint32_t>(by), std::memory_order_relaxed);
}

bool deferred_frees::any() {
    os::lock_guard guard(lock);
    return words_.count() != 0;
}

} // namespace taiyen
