// Jobs that several threads work on at once; the calling thread feeds them and drains them in order.
#pragma once

#include <condition_variable>
#include <csignal>
#include <exception>
#include <mutex>
#include <system_error>
#include <taiyen/detail/fault.hpp>
#include <thread>
#include <vector>

namespace taiyen::pack {

// feed(slot): makes the next job; false: no more. work(slot, number): in any thread; no two at once have the same
// number, which is below the number of threads (0 if there is one). drain(slot): in the order of feeding; false ends
// all. Only the calling thread calls feed and drain, so a program's callbacks run there. What work throws, the calling
// thread throws. PK2: a job is drained after its work, and before its slot is fed again; all jobs that were fed are
// drained in order, except those after a drain that returned false.
template <class Slot>
class job_ring {
public:
    explicit job_ring(std::vector<Slot> &slots) : slots_(slots), states_(slots.size(), state::empty) {}
    job_ring(const job_ring &) = delete;

    // With fewer than two threads, or if none can be started, the calling thread does the work.
    template <class Feed, class Work, class Drain>
    bool run(unsigned threads, Feed feed, Work work, Drain drain) {
        stopper at_end{*this};
        start(threads, work);
        size_t under_way = 0;
        bool more = true;
        for (size_t next = 0; more || under_way != 0; next = (next + 1) % slots_.size()) {
            if (wait_for(next) == state::done) {
                under_way--;
                if (!drain(slots_[next]))
                    return false;
                set(next, state::empty);
            }
            if (more && (more = feed(slots_[next]))) {
                under_way++;
                if (workers_.empty())
                    work(slots_[next], 0u);
                set(next, workers_.empty() ? state::done : state::ready);
            }
        }
        return true;
    }

private:
    enum class state : uint8_t { empty, ready, taken, done };
    struct stopper {
        job_ring &ring;
        ~stopper() { ring.stop(); }
    };

    // The threads block all signals: the program's handlers must not run there.
    template <class Work>
    void start(unsigned threads, Work &work) {
        sigset_t all, before;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        try {
            for (unsigned i = 0; threads > 1 && i < threads; i++)
                workers_.emplace_back([this, &work, i] { serve(work, i); });
        } catch (const std::system_error &) { // continues with the threads that could be started
        }
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
    }

    template <class Work>
    void serve(Work &work, unsigned number) {
        std::unique_lock guard(lock_);
        for (;;) {
            changed_.wait(guard, [&] { return stopped_ || states_[next_] == state::ready; });
            if (stopped_)
                return;
            size_t own = next_;
            next_ = (next_ + 1) % slots_.size();
            states_[own] = taiyen::detail::fault("pack_job_done_before_its_work") ? state::done : state::taken;
            changed_.notify_all();
            guard.unlock();
            std::exception_ptr thrown;
            try {
                work(slots_[own], number);
            } catch (...) {
                thrown = std::current_exception();
            }
            guard.lock();
            if (thrown)
                thrown_ = thrown;
            states_[own] = state::done;
            changed_.notify_all();
        }
    }

    state wait_for(size_t slot) {
        std::unique_lock guard(lock_);
        changed_.wait(guard, [&] { return thrown_ || states_[slot] == state::empty || states_[slot] == state::done; });
        if (thrown_)
            std::rethrow_exception(thrown_);
        return states_[slot];
    }

    void set(size_t slot, state to) {
        std::lock_guard guard(lock_);
        states_[slot] = to;
        changed_.notify_all();
    }

    void stop() {
        {
            std::lock_guard guard(lock_);
            stopped_ = true;
            changed_.notify_all();
        }
        for (std::thread &one : workers_)
            one.join();
        workers_.clear();
    }

    std::vector<Slot> &slots_;
    std::vector<state> states_; // guarded by lock_, as is all below except workers_
    std::mutex lock_;
    std::condition_variable changed_;
    std::exception_ptr thrown_;
    size_t next_ = 0; // the next one that a worker takes
    bool stopped_ = false;
    std::vector<std::thread> workers_;
};

} // namespace taiyen::pack
