// Messages of an outbox on their way to the inbox of another process, through a socket. Either end may die at any time:
// the other one connects anew, or takes the next connection, and nothing is lost or done twice.
#pragma once

#include <functional>
#include <string>
#include <taiyen/taiyen.h>

namespace orders {

// A socket that listens, and the name by which others of this machine reach it. It stays when a process that takes its
// connections dies, as the parent has it, too.
struct listener {
    int descriptor = -1;
    std::string name;
};
listener make_listener();

// Sends what is in the outbox, for ever, and forgets what the receiver has. after_forget: room was made.
void send_outbox(ty_heap *heap, const char *box, const std::string &to, const std::function<void()> &after_forget);

// Takes messages, for ever: each in a transaction with what `effect` does. after: how far each burst of them got,
// durable.
using message_effect = std::function<void(ty_txn *txn, uint64_t number, const void *bytes, size_t size)>;
void receive_into_inbox(ty_heap *heap, int listening, const message_effect &effect,
                        const std::function<void(uint64_t last)> &after);

} // namespace orders
