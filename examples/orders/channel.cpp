#include "channel.hpp"
#include "child_process.hpp"
#include "heap_file.hpp"
#include <cerrno>
#include <cstddef>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <vector>

namespace orders {
namespace {

using demo::check;
using demo::failure;

enum class frame_kind : uint32_t {
    message, // of an outbox; its bytes follow
    ask,     // up to which message of the source the receiver is
    answer,
};
struct frame {
    frame_kind kind;
    uint32_t bytes;
    uint64_t number;
    char source[40];
};

// One end. A failure because the other end has died is no error: false.
class connection {
public:
    explicit connection(int descriptor) : descriptor_(descriptor) {}
    ~connection() { ::close(descriptor_); }
    connection(const connection &) = delete;
    connection &operator=(const connection &) = delete;

    // Buffered until flush().
    void put(frame_kind kind, const char *source, uint64_t number, const void *bytes = nullptr, size_t size = 0) {
        frame head{kind, static_cast<uint32_t>(size), number, {}};
        std::memcpy(head.source, source, strnlen(source, sizeof head.source - 1));
        waiting_.append(reinterpret_cast<const char *>(&head), sizeof head);
        waiting_.append(static_cast<const char *>(bytes), size);
    }
    bool flush() {
        for (size_t at = 0; at < waiting_.size();) {
            const ssize_t sent = ::send(descriptor_, waiting_.data() + at, waiting_.size() - at, MSG_NOSIGNAL);
            if (sent <= 0)
                return false;
            at += static_cast<size_t>(sent);
        }
        waiting_.clear();
        return true;
    }
    bool get(frame &head, std::vector<char> &bytes) {
        if (!get_all(&head, sizeof head) || head.bytes > TY_MESSAGE_BYTES_MAX)
            return false;
        head.source[sizeof head.source - 1] = 0;
        bytes.resize(head.bytes);
        return get_all(bytes.data(), bytes.size());
    }

private:
    bool get_all(void *to, size_t bytes) {
        return bytes == 0 || ::recv(descriptor_, to, bytes, MSG_WAITALL) == static_cast<ssize_t>(bytes);
    }
    int descriptor_;
    std::string waiting_;
};

// A name that the system assigns, not of a file.
sockaddr_un address_of(const std::string &name) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    name.copy(address.sun_path + 1, sizeof address.sun_path - 1);
    return address;
}
socklen_t length_of(const std::string &name) {
    return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
}

int connect_to(const std::string &name) {
    const int made = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_un address = address_of(name);
    if (made < 0 || ::connect(made, reinterpret_cast<const sockaddr *>(&address), length_of(name)) != 0)
        demo::fail_system("connect to a process");
    return made;
}

// False: the receiver has gone.
bool ask(connection &to, const char *source, uint64_t &last) {
    frame head{};
    std::vector<char> bytes;
    to.put(frame_kind::ask, source, 0);
    if (!to.flush() || !to.get(head, bytes) || head.kind != frame_kind::answer)
        return false;
    last = head.number;
    return true;
}

void forget(ty_heap *heap, const char *box, uint64_t through) {
    ty_txn *txn = nullptr;
    check(ty_begin(heap, nullptr, &txn));
    check(ty_outbox_forget(txn, box, through));
    check(ty_commit_async(txn, nullptr)); // if that is lost, the receiver reports it again
}

void send_until_gone(ty_heap *heap, const char *box, const char *source, connection &to,
                     const std::function<void()> &after_forget) {
    uint64_t last = 0;
    while (ask(to, source, last)) {
        bool more = false;
        forget(heap, box, last);
        after_forget();
        while (!more)
            check(ty_outbox_wait(heap, box, last, 1000, &more));
        check(ty_outbox_read(
            heap, box, last,
            [](const ty_message *message, void *context) {
                static_cast<connection *>(context)->put(frame_kind::message, message->source, message->number,
                                                        message->bytes, message->size_bytes);
                return true;
            },
            &to));
    }
}

void take(ty_heap *heap, const frame &head, const std::vector<char> &bytes, const message_effect &effect) {
    ty_txn *txn = nullptr;
    ty_taken taken{};
    check(ty_begin(heap, nullptr, &txn));
    check(ty_inbox_take(txn, head.source, head.number, &taken));
    if (taken == TY_MESSAGE_GAP)
        throw failure("messages are missing before number " + std::to_string(head.number));
    if (taken == TY_MESSAGE_NEW)
        effect(txn, head.number, bytes.data(), bytes.size());
    check(ty_commit_async(txn, nullptr)); // what is reported to the sender is made durable then
}

} // namespace

listener make_listener() {
    listener made;
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    made.descriptor = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t length = sizeof address.sun_family; // no name: the system assigns one
    if (made.descriptor < 0 || ::bind(made.descriptor, reinterpret_cast<const sockaddr *>(&address), length) != 0 ||
        ::listen(made.descriptor, 4096) != 0)
        demo::fail_system("make a socket");
    length = sizeof address;
    if (::getsockname(made.descriptor, reinterpret_cast<sockaddr *>(&address), &length) != 0)
        demo::fail_system("look at a socket");
    made.name.assign(address.sun_path + 1, length - offsetof(sockaddr_un, sun_path) - 1);
    return made;
}

void send_outbox(ty_heap *heap, const char *box, const std::string &to, const std::function<void()> &after_forget) {
    ty_outbox_info info{};
    info.struct_size = sizeof info;
    check(ty_outbox_get_info(heap, box, &info));
    for (;;) {
        connection made(connect_to(to));
        send_until_gone(heap, box, info.source, made, after_forget);
    }
}

void receive_into_inbox(ty_heap *heap, int listening, const message_effect &effect,
                        const std::function<void(uint64_t last)> &after) {
    frame head{};
    std::vector<char> bytes;
    for (;;) {
        const int taken = ::accept4(listening, nullptr, nullptr, SOCK_CLOEXEC);
        if (taken < 0 && errno != ECONNABORTED)
            demo::fail_system("take a connection");
        if (taken < 0)
            continue;
        connection from(taken);
        while (from.get(head, bytes)) {
            if (head.kind == frame_kind::message) {
                take(heap, head, bytes, effect);
                continue;
            }
            uint64_t last = 0;
            check(ty_inbox_last(heap, head.source, &last));
            after(last);
            from.put(frame_kind::answer, head.source, last);
            if (!from.flush())
                break;
        }
    }
}

} // namespace orders
