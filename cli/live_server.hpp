// The web server of `taiyen live`: on the loopback address alone, for who knows the token. It answers with texts that
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

struct live_answer {
    std::string type; // empty: there is no such thing
    std::string body;
    std::string nonce;     // of the page's own script and style; empty: it is no page
    std::string file_name; // to be saved under; empty: it is to be shown
};

class live_server {
public:
    // name: the path below the token; argument: the number behind "from", or 0. In a thread of the server's.
    using answerer = std::function<live_answer(const std::string &name, uint64_t argument)>;

    live_server();
    ~live_server(); // all connections end
    live_server(const live_server &) = delete;

    // False: why() says what could not be done. port 0: one that is free.
    bool start(uint16_t port, answerer answer);
    std::string url() const;
    uint16_t port() const;
    const std::string &why() const;
    // To all who listen to events: the newest one, which is the first that others get.
    void publish(std::string event);
    bool is_watched() const;

    static std::string random_text(); // 128 bits, in hexadecimal digits

    struct state; // of live_server.cpp

private:
    std::unique_ptr<state> state_;
};

} // namespace cli
