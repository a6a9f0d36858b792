// Decides when a transactional heap takes a snapshot for want of memory: what was written since the last one is in
// private pages, which can be evicted only once the image holds them.
#pragma once

#include "../txn.hpp"
#include "src/os/os.hpp"

namespace taiyen {

enum class snapshot_urgency {
    enough,
    soon, // a snapshot is due
    now   // and writers must wait for it
};

// A heap that fits in memory costs one comparison. Thread-safe, except start(): threads of a concurrent heap check
// while another takes a snapshot.
class memory_pressure {
public:
    static inline uint64_t look_ns = 2'000'000;   // minimum between two checks; one takes some 40 µs. Tests lower it
    static inline uint64_t least_bytes = 1 << 20; // of new private memory; with less a snapshot gains nothing
    void start(ty_heap *heap, uint64_t bound_bytes);
    snapshot_urgency look(); // enough, while another thread checks
    // What was written up to now is in a snapshot.
    void collected();
    bool may_exceed() const; // whether the heap may exceed the memory available

private:
    snapshot_urgency answer();

    ty_heap *heap_ = nullptr;
    uint64_t bound_bytes_ = 0;
    os::memory_limits memory_;
    bool watching_ = false;
    uint64_t next_look_ns_ = 0;
    std::atomic<bool> looking_{false};       // guards the two fields above
    std::atomic<uint64_t> private_bytes_{0}; // of the process, at the last snapshot
};

} // namespace taiyen
