#include "live/live_server.hpp"

#include "common/times.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <charconv>
#include <cstring>
#include <microhttpd.h>
#include <mutex>
#include <set>
#include <sys/random.h>
#include <system_error>
#include <taiyen/detail/fault.hpp>
#include <vector>

namespace cli {

namespace {

constexpr unsigned connections_max = 32;
constexpr size_t connection_bytes_max = 16384; // twice the size of a request's line and headers
constexpr unsigned idle_s_max = 10;
constexpr size_t event_part_bytes = 16384;

} // namespace

struct listener;

struct live_server::state {
    MHD_Daemon *daemon = nullptr;
    std::string token;
    std::string host; // "127.0.0.1:PORT" or "[::1]:PORT"
    std::string why;
    uint16_t port = 0;
    answerer answer;

    std::mutex lock; // guards all that follows
    std::string event;
    uint64_t event_number = 0;
    uint64_t beats = 0;
    uint64_t seen_ns = 0; // when an authorised client last asked or listened
    bool ends = false;
    std::set<listener *> listeners;
};

// A client that listens to events. A slow one gets the newest event when it has taken the one before.
struct listener {
    live_server::state *server;
    MHD_Connection *connection;
    std::string text; // being sent
    size_t taken = 0;
    uint64_t number = 0;
    uint64_t beats = 0; // that it has received
    bool sleeps = false;
};

namespace {

ssize_t next_part(void *context, uint64_t, char *buffer, size_t bytes) {
    auto &self = *static_cast<listener *>(context);
    const std::lock_guard guard(self.server->lock);
    if (self.taken == self.text.size()) {
        if (self.server->ends)
            return MHD_CONTENT_READER_END_OF_STREAM;
        const bool is_new = self.number != self.server->event_number;
        if (!is_new && self.beats == self.server->beats) {
            self.sleeps = true;
            MHD_suspend_connection(self.connection);
            return 0;
        }
        self.number = self.server->event_number;
        self.beats = self.server->beats;
        self.text = is_new ? "id: " + std::to_string(self.number) + "\ndata: " + self.server->event + "\n\n" : ":\n\n";
        self.taken = 0;
    }
    const size_t part = std::min(bytes, self.text.size() - self.taken);
    std::memcpy(buffer, self.text.data() + self.taken, part);
    self.taken += part;
    return static_cast<ssize_t>(part);
}

void forget_listener(void *context) {
    auto *self = static_cast<listener *>(context);
    {
        const std::lock_guard guard(self->server->lock);
        self->server->listeners.erase(self);
        self->server->seen_ns = steady_ns();
    }
    delete self;
}

// Holds the server's lock.
void wake_all(live_server::state &server) {
    for (listener *each : server.listeners) {
        if (each->sleeps)
            MHD_resume_connection(each->connection);
        each->sleeps = false;
    }
}

void add_header(MHD_Response *response, const char *name, const std::string &value) {
    static_cast<void>(MHD_add_response_header(response, name, value.c_str()));
}

void add_rules(MHD_Response *response, const std::string &nonce) {
    std::string rules = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";
    if (!nonce.empty())
        rules +=
            "; connect-src 'self'; img-src data:; script-src 'nonce-" + nonce + "'; style-src 'nonce-" + nonce + "'";
    add_header(response, "Content-Security-Policy", rules);
    add_header(response, "Referrer-Policy", "no-referrer");
    add_header(response, "X-Content-Type-Options", "nosniff");
    add_header(response, "Cross-Origin-Resource-Policy", "same-origin");
    add_header(response, "Cache-Control", "no-store");
}

MHD_Result send(MHD_Connection *connection, unsigned code, MHD_Response *response) {
    if (response == nullptr)
        return MHD_NO;
    const MHD_Result result = MHD_queue_response(connection, code, response);
    MHD_destroy_response(response);
    return result;
}

MHD_Result send_nothing(MHD_Connection *connection, unsigned code) {
    MHD_Response *response = MHD_create_response_from_buffer(0, nullptr, MHD_RESPMEM_PERSISTENT);
    if (response == nullptr)
        return MHD_NO;
    add_rules(response, "");
    if (code == MHD_HTTP_METHOD_NOT_ALLOWED)
        add_header(response, "Allow", "GET, HEAD");
    return send(connection, code, response);
}

MHD_Result send_answer(MHD_Connection *connection, const live_answer &answer) {
    MHD_Response *response = MHD_create_response_from_buffer(answer.body.size(), const_cast<char *>(answer.body.data()),
                                                             MHD_RESPMEM_MUST_COPY);
    if (response == nullptr)
        return MHD_NO;
    add_rules(response, answer.nonce);
    add_header(response, "Content-Type", answer.type);
    if (!answer.file_name.empty())
        add_header(response, "Content-Disposition", "attachment; filename=\"" + answer.file_name + "\"");
    return send(connection, MHD_HTTP_OK, response);
}

MHD_Result send_events(MHD_Connection *connection, live_server::state &server) {
    auto *made = new listener{&server, connection, "retry: 2000\n\n"};
    {
        const std::lock_guard guard(server.lock);
        made->beats = server.beats;
        server.listeners.insert(made);
    }
    MHD_Response *response =
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, event_part_bytes, next_part, made, forget_listener);
    if (response == nullptr) {
        forget_listener(made);
        return MHD_NO;
    }
    add_rules(response, "");
    add_header(response, "Content-Type", "text/event-stream");
    return send(connection, MHD_HTTP_OK, response);
}

std::string header_of(MHD_Connection *connection, const char *name) {
    const char *value = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
    return value != nullptr ? value : "";
}

// CL7: the live page is only for those who know its address. Another site's page may send requests from a person's
// browser, also under a host name that it has pointed here.
bool is_own(MHD_Connection *connection, const live_server::state &server) {
    const std::string site = header_of(connection, "Sec-Fetch-Site"), origin = header_of(connection, "Origin");
    return header_of(connection, "Host") == server.host && (origin.empty() || origin == "http://" + server.host) &&
           (site.empty() || site == "none" || site == "same-origin");
}

// In constant time, however much of the token is right. *name: the path after it.
bool has_token(const char *path, const std::string &token, std::string *name) {
    if (std::strlen(path) < token.size() + 2 || path[0] != '/' || path[token.size() + 1] != '/')
        return false;
    unsigned char differs = 0;
    for (size_t i = 0; i < token.size(); ++i)
        differs = static_cast<unsigned char>(differs | (path[i + 1] ^ token[i]));
    *name = path + token.size() + 2;
    return differs == 0 || taiyen::detail::fault("page_served_with_a_wrong_token");
}

// 0 if the argument is missing. False: it is not a 64-bit integer.
bool read_argument(MHD_Connection *connection, const char *name, uint64_t *number) {
    const char *text = MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, name);
    if (text == nullptr)
        return true;
    const char *end = text + std::strlen(text);
    const auto [stop, error] = std::from_chars(text, end, *number);
    return error == std::errc() && stop == end;
}

MHD_Result answer_request(void *context, MHD_Connection *connection, const char *path, const char *method, const char *,
                          const char *, size_t *upload_bytes, void **seen) {
    auto &server = *static_cast<live_server::state *>(context);
    if (*seen == nullptr || *upload_bytes != 0) { // only the headers so far, or a body, which is ignored
        *seen = context;
        *upload_bytes = 0;
        return MHD_YES;
    }
    if (std::strcmp(method, MHD_HTTP_METHOD_GET) != 0 && std::strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
        return send_nothing(connection, MHD_HTTP_METHOD_NOT_ALLOWED);
    live_request request;
    if (!is_own(connection, server) || !has_token(path, server.token, &request.name))
        return send_nothing(connection, MHD_HTTP_NOT_FOUND);
    {
        const std::lock_guard guard(server.lock);
        server.seen_ns = steady_ns();
    }
    if (!read_argument(connection, "from", &request.from) || !read_argument(connection, "bytes", &request.bytes))
        return send_nothing(connection, MHD_HTTP_BAD_REQUEST);
    if (request.name == "events" && std::strcmp(method, MHD_HTTP_METHOD_GET) == 0)
        return send_events(connection, server);
    const live_answer answer = server.answer(request);
    return answer.type.empty() ? send_nothing(connection, MHD_HTTP_NOT_FOUND) : send_answer(connection, answer);
}

} // namespace

std::string live_server::random_text() {
    unsigned char bytes[16];
    if (getrandom(bytes, sizeof bytes, 0) != ssize_t(sizeof bytes))
        return "";
    std::string text;
    for (const unsigned char byte : bytes) {
        text += "0123456789abcdef"[byte >> 4];
        text += "0123456789abcdef"[byte & 15];
    }
    return text;
}

live_server::live_server() : state_(std::make_unique<state>()) {}

live_server::~live_server() {
    if (state_->daemon == nullptr)
        return;
    {
        const std::lock_guard guard(state_->lock);
        state_->ends = true;
        wake_all(*state_);
    }
    MHD_stop_daemon(state_->daemon);
}

namespace {

constexpr const char *loopback_v4 = "127.0.0.1";
constexpr const char *loopback_v6 = "::1";

} // namespace

bool live_server::is_loopback(const std::string &address) {
    return address == loopback_v4 || address == loopback_v6;
}

bool live_server::start(const std::string &address, uint16_t port, answerer answer) {
    state &own = *state_;
    own.token = random_text();
    if (own.token.empty()) {
        own.why = "the system gives no random numbers";
        return false;
    }
    own.answer = std::move(answer);
    own.seen_ns = steady_ns();
    const bool is_v6 = address == loopback_v6;
    sockaddr_in v4{};
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port);
    v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    sockaddr_in6 v6{};
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(port);
    v6.sin6_addr = in6addr_loopback;
    const auto *place = is_v6 ? reinterpret_cast<const sockaddr *>(&v6) : reinterpret_cast<const sockaddr *>(&v4);
    const unsigned flags =
        MHD_USE_POLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | (is_v6 ? unsigned{MHD_USE_IPv6} : 0);
    errno = 0;
    own.daemon = MHD_start_daemon(flags, port, nullptr, nullptr, answer_request, &own, MHD_OPTION_SOCK_ADDR, place,
                                  MHD_OPTION_CONNECTION_LIMIT, connections_max, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                                  connection_bytes_max, MHD_OPTION_CONNECTION_TIMEOUT, idle_s_max, MHD_OPTION_END);
    if (own.daemon == nullptr) {
        own.why = std::generic_category().message(errno);
        return false;
    }
    const MHD_DaemonInfo *bound = MHD_get_daemon_info(own.daemon, MHD_DAEMON_INFO_BIND_PORT);
    own.port = bound != nullptr ? bound->port : port;
    own.host = (is_v6 ? "[" + address + "]" : address) + ":" + std::to_string(own.port);
    return true;
}

std::string live_server::url() const {
    return "http://" + state_->host + "/" + state_->token + "/";
}

uint16_t live_server::port() const {
    return state_->port;
}

const std::string &live_server::why() const {
    return state_->why;
}

void live_server::publish(std::string event) {
    const std::lock_guard guard(state_->lock);
    state_->event = std::move(event);
    state_->event_number += 1;
    wake_all(*state_);
}

void live_server::beat() {
    const std::lock_guard guard(state_->lock);
    state_->beats += 1;
    wake_all(*state_);
}

uint64_t live_server::idle_ns() const {
    const std::lock_guard guard(state_->lock);
    return state_->listeners.empty() ? steady_ns() - state_->seen_ns : 0;
}

} // namespace cli
