// The web server of `taiyen live`: on a loopback address alone, for who knows the token. It answers with texts that
// it was given, and knows nothing of heaps.
//
// Only a GET or HEAD of a path below the token, under the address that was printed and from no other site's page, is
// answered with anything of the heap.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace cli {

// Numbers come from whoever asks, and may be any.
struct live_request {
    std::string name; // the path below the token
    uint64_t from = 0;
    uint64_t bytes = 0;
};

struct live_answer {
    std::string type; // empty: there is no such thing
    std::string body;
    std::string nonce;     // of the page's own script and style; empty: it is no page
    std::string file_name; // to be saved under; empty: it is to be shown
};

class live_server {
public:
    // In a thread of the server's.
    using answerer = std::function<live_answer(const live_request &request)>;

    live_server();
    ~live_server(); // all connections end
    live_server(const live_server &) = delete;

    // address: one that is_loopback() has; port 0: one that is free. False: why() says what could not be done.
    bool start(const std::string &address, uint16_t port, answerer answer);
    static bool is_loopback(const std::string &address); // 127.0.0.1 or ::1
    std::string url() const;
    uint16_t port() const;
    const std::string &why() const;
    // To all who listen to events: the newest one, which is the first that others get.
    void publish(std::string event);
    // Says to all who listen that it is still there: so those are noticed who have gone.
    void beat();
    // Since when nobody has listened to events, or asked for anything; 0 while somebody listens.
    uint64_t idle_ns() const;

    static std::string random_text(); // 128 bits, in hexadecimal digits

    struct state; // of live_server.cpp

private:
    std::unique_ptr<state> state_;
};

} // namespace cli
