#include "idle_poller.hpp"

#include "../calls/calls.hpp"

namespace taiyen::os {

ty_status idle_poller::start() {
    ty_status status = thread_.start(
        [](void *self) -> void * {
            static_cast<idle_poller *>(self)->keep();
            return nullptr;
        },
        this);
    while (!status && ready_.load(std::memory_order_acquire) == 0)
        wait_on(ready_, 0);
    return status;
}

void idle_poller::stop() {
    stopping_.store(true);
    word_.fetch_add(2);
    wake_one(word_);
    thread_.join();
}

void idle_poller::keep() {
    thread_id_ = sys::set_idle_class() == 0 ? thread_id() : 0;
    ready_.store(1, std::memory_order_release);
    wake_one(ready_);
    if (thread_id_ == 0)
        return;
    while (!stopping_.load()) {
        uint32_t seen = word_.load();
        if (seen % 2 == 1) {
            constexpr unsigned pauses = 16; // between reads of the clock
            for (uint64_t until = now_ns() + spin_ns_max; word_.load() == seen && now_ns() < until;)
                for (unsigned i = 0; i < pauses; ++i)
                    pause_briefly();
        }
        // Either the thread that changes the word sees asleep_, or the kernel sees the change.
        asleep_.store(true);
        if (word_.load() == seen && !stopping_.load())
            wait_on(word_, seen);
        asleep_.store(false);
    }
}

bool idle_poller::follow_caller() {
    unsigned core;
    if (thread_id_ == 0 || sys::getcpu(&core, nullptr) != 0)
        return false;
    if (core != core_ && sys::set_affinity(thread_id_, core) != 0)
        return false;
    core_ = core;
    return true;
}

bool idle_poller::begin() {
    if (!follow_caller())
        return false;
    word_.fetch_add(1);
    if (asleep_.load())
        wake_one(word_);
    return true;
}

void idle_poller::end() {
    word_.fetch_add(1);
}

void idle_poller_trial::note(uint64_t wait_ns) {
    if (at_ < 2 * pairs) {
        if (at_ % 2 == 0)
            bare_ns_ = wait_ns;
        else
            wins_ += bare_ns_ >= wait_ns_min && wait_ns + wait_ns / 8 < bare_ns_;
    }
    if (++at_ == 2 * pairs) {
        worth_it_ = wins_ >= pairs_to_win;
        wins_ = 0;
    }
    if (at_ == (worth_it_ ? waits_when_won : waits_when_lost))
        at_ = 0;
}

} // namespace taiyen::os
