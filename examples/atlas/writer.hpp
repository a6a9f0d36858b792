// The process that is killed: it opens the atlas, changes it without end, and takes snapshots in between. Through a
// pipe it reports what it is about to make durable, and what has been acknowledged as durable.
#pragma once

#include "fingerprint.hpp"
#include <string>

namespace demo {

struct message {
    enum class kind : uint32_t {
        started,  // the process runs; nothing is open yet
        about_to, // a snapshot of this content begins
        durable,  // it is durable
    };
    kind what;
    uint32_t unused;
    fingerprint which;
    uint64_t pause_ns; // durable: of this snapshot
    uint64_t bytes;    // durable: written by it
};
static_assert(sizeof(message) == 40); // far less than PIPE_BUF: a message arrives whole or not at all

// Returns only by an exception: the writer ends by being killed, and dies with its parent.
[[noreturn]] void run_writer(const std::string &path, int pipe, uint64_t seed);

} // namespace demo
