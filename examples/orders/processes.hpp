// The shop's processes, seen from their parent. Each is a new process of this program, and ends with it.
#pragma once

#include "roles.hpp"
#include <sys/types.h>

namespace orders {

class processes {
public:
    explicit processes(role_plan plan);
    ~processes(); // kills them
    processes(const processes &) = delete;
    processes &operator=(const processes &) = delete;

    void start(role who);
    // Throws if it has ended by itself before.
    void kill(role who);
    void kill_all();
    // Receives their reports for so long, and longer until `is_heard`. Throws if one has ended by itself, or if nothing
    // is reported for a minute.
    void listen(double ms, const std::function<bool()> &is_heard);
    // Starts the prover, and waits for its end. False: it has found something wrong, and printed it.
    bool prove(bool is_final);

    uint64_t acknowledged = 0; // the highest number of an order that was taken
    uint64_t done = 0;
    uint64_t received = 0; // by the depot
    uint64_t resolved = 0; // how often a worker found a distributed transaction in doubt
    bool is_started[3] = {};
    bool is_opened[3] = {};
    bool is_quiet = false; // a taker that starts takes no more orders

private:
    pid_t run(role who, bool is_final);
    void note(const message &words);
    void refuse_ended();

    role_plan plan_;
    int pipe_[2]; // the ends of the pipe
    listener worker_;
    listener depot_;
    pid_t running_[3] = {-1, -1, -1};
    uint64_t starts_ = 0;
};

} // namespace orders
