// When a transactional heap takes a snapshot for want of memory: what was written since the last one is private memory,
// which goes only once the image holds it.
#pragma once

#include "../../os/os.hpp"
#include "../txn.hpp"

namespace taiyen {

enum class memory_answer {
    enough,
    soon, // a snapshot is due
    now   // and whoever writes is to wait for it
};

// Nothing but a comparison for a heap that fits. Thread-safe but for start: threads of a concurrent heap look while
// another takes a snapshot.
class memory_need {
public:
    static inline uint64_t look_ns = 2'000'000;   // at most so often; a look takes some 40 µs. Tests lower it
    static inline uint64_t least_bytes = 1 << 20; // of new private memory; with less a snapshot wins nothing
    void start(ty_heap *heap, uint64_t bound_bytes);
    memory_answer look(); // enough, while another thread looks
    // What was written up to now is in a snapshot.
    void collected();
    bool may_exceed() const; // the heap, what memory has room for

private:
    memory_answer answer();

    ty_heap *heap_ = nullptr;
    uint64_t bound_bytes_ = 0;
    os::memory_watch memory_;
    bool watching_ = false;
    uint64_t next_look_ns_ = 0;
    std::atomic<bool> looking_{false};       // guards the two before it
    std::atomic<uint64_t> private_bytes_{0}; // of the process, at the last snapshot
};

} // namespace taiyen
