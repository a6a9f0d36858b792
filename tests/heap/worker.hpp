// Threads that a test gives one thing after the other to do.
#pragma once

#include <barrier>
#include <functional>
#include <thread>

namespace taiyen::test {

// It sleeps in between, and keeps its caches of heaps.
class worker {
public:
    worker() : thread_([this] { work(); }) {}
    ~worker() { end(); }
    worker(const worker &) = delete;
    worker &operator=(const worker &) = delete;
    void run(const std::function<void()> &what) {
        what_ = &what;
        turn_.arrive_and_wait();
        turn_.arrive_and_wait();
    }
    void end() {
        if (!thread_.joinable())
            return;
        what_ = nullptr;
        turn_.arrive_and_wait();
        thread_.join();
    }

private:
    void work() {
        for (;;) {
            turn_.arrive_and_wait();
            if (what_ == nullptr)
                return;
            (*what_)();
            turn_.arrive_and_wait();
        }
    }
    std::barrier<> turn_{2};
    const std::function<void()> *what_ = nullptr;
    std::thread thread_;
};

} // namespace taiyen::test
