// Messages on their way from an outbox to the inbox of another process, through a socket. Either end may die at any
// time: the other one reconnects, or accepts the next connection, and nothing is lost or done twice.
#pragma once

#include <functional>
#include <string>
#include <taiyen/distributed.h>
#include <taiyen/outbox.h>
#include <taiyen/taiyen.h>

namespace orders {

// A listening socket, and the name by which others on this machine connect to it. It stays when a process that accepts
// its connections dies, as the parent has it, too.
struct listener {
    int descriptor = -1;
    std::string name;
};
listener make_listener();

// Sends what is in the outbox, for ever, and removes what the receiver has. after_forget: called when there is room
// again.
void send_outbox(ty_heap *heap, const char *box, const std::string &to, const std::function<void()> &after_forget);

// Receives messages, for ever: each in a transaction with what `effect` does. after: called with the number up to which
// each burst is durable.
using message_effect = std::function<void(ty_txn *txn, uint64_t number, const void *bytes, size_t size)>;
void receive_into_inbox(ty_heap *heap, int listening, const message_effect &effect,
                        const std::function<void(uint64_t last)> &after);

} // namespace orders
