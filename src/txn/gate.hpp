// One writer or many readers. A word that counts readers and has a writer's bit; who must wait sleeps in the kernel. A
// waiting writer holds new readers up, so that it is served; a thread's nested read sections must not come here again.
#pragma once

#include "../os/os.hpp"
#include <atomic>

namespace taiyen {

class txn_gate {
public:
    void lock();     // for a transaction
    bool try_lock(); // false: somebody is in
    void unlock();
    void lock_shared(); // for a reader, or a snapshot
    bool try_lock_shared();
    void unlock_shared();

private:
    std::atomic<uint32_t> state_{0};
    std::atomic<uint32_t> waiters_{0};
};

} // namespace taiyen
