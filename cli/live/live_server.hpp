// The web server of `taiyen live`: only on a loopback address, for clients that know the token. It returns texts that
// it was given, and knows nothing of heaps.
//
// Only a GET or HEAD of a path below the token, under the address that was printed and from no other site's page, gets
// anything about the heap.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace cli {

// The numbers come from the client, and may have any value.
struct live_request {
    std::string name; // the path below the token
    uint64_t from = 0;
    uint64_t bytes = 0;
};

struct live_answer {
    std::string type; // empty: not found
    std::string body;
    std::string nonce;     // for the page's own script and style; empty: it is no page
    std::string file_name; // to save it under; empty: it is to be shown
};

class live_server {
public:
    // Runs in a thread of the server.
    using answerer = std::function<live_answer(const live_request &request)>;

    live_server();
    ~live_server(); // ends all connections
    live_server(const live_server &) = delete;

    // address: one for which is_loopback() holds; port 0: any free port. False: why() has the reason.
    bool start(const std::string &address, uint16_t port, answerer answer);
    static bool is_loopback(const std::string &address); // 127.0.0.1 or ::1
    std::string url() const;
    uint16_t port() const;
    const std::string &why() const;
    // Sends the newest event to all listeners; new listeners get it first.
    void publish(std::string event);
    // Sends a sign of life to all listeners, by which those that have gone are noticed.
    void beat();
    // How long nobody has listened to events or asked for anything; 0 while somebody listens.
    uint64_t idle_ns() const;

    static std::string random_text(); // 128 bits, in hexadecimal digits

    struct state; // in live_server.cpp

private:
    std::unique_ptr<state> state_;
};

} // namespace cli
