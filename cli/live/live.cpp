// taiyen live: a page that shows a heap while it is in use.
#include "common/interrupts.hpp"
#include "common/numbers.hpp"
#include "common/text.hpp"
#include "common/times.hpp"
#include "live/live_page.hpp"
#include "live/live_server.hpp"
#include "live/live_source.hpp"
#include "picture/picture_file.hpp"

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <mutex>
#include <sys/stat.h>
#include <system_error>
#include <utility>

namespace cli {

namespace {

constexpr uint64_t event_every_ms = 500;
constexpr uint64_t beat_every_ms = 5000;
constexpr uint64_t ms_ns = 1000000;

std::string text_of(const json::document &one) {
    return one.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// The state that the main thread updates, and the server's thread answers from.
class live_view {
public:
    explicit live_view(live_source &source) : source_(source) {}

    void take_all() {
        const std::lock_guard guard(lock_);
        state_ = {source_.metrics_document(), source_.map_document(), source_.look().extents(0)};
    }
    std::string event() {
        const std::lock_guard guard(lock_);
        return text_of(state_.metrics);
    }
    std::string page(const std::string &nonce, bool is_saved) {
        const std::lock_guard guard(lock_);
        return live_page(state_, nonce, is_saved);
    }
    live_answer answer(const live_request &request);
    // A viewer has asked for an inspection of the heap.
    bool take_wish() { return wanted_.exchange(false); }
    // Only the main thread uses the source, except for the lists that viewers ask for.
    std::mutex &source_lock() { return source_lock_; }

private:
    live_source &source_;
    std::mutex source_lock_;
    std::mutex lock_;
    live_state state_;
    std::atomic<bool> wanted_{false};
};

live_answer live_view::answer(const live_request &request) {
    const std::string &name = request.name;
    constexpr const char *html = "text/html; charset=utf-8", *json = "application/json";
    if (name.empty()) {
        const std::string nonce = live_server::random_text();
        return {html, page(nonce, false), nonce, ""};
    }
    if (name == "save")
        return {html, page("", true), "", "taiyen-live.html"};
    if (name == "metrics")
        return {json, event(), "", ""};
    if (name == "map" && request.from == 0 && request.bytes == 0) {
        const std::lock_guard guard(lock_);
        return {json, text_of(state_.map), "", ""};
    }
    if (name == "map" || name == "extents" || name == "blocks" || name == "block") {
        const std::lock_guard guard(source_lock_);
        const heap_look &look = source_.look();
        return {json,
                text_of(name == "map"       ? look.map(request.from, request.bytes)
                        : name == "extents" ? look.extents(request.from)
                        : name == "blocks"  ? look.blocks(request.from)
                                            : source_.block_document(request.from)),
                "", ""};
    }
    if (name == "look") {
        wanted_ = true;
        return {json, "{}", "", ""};
    }
    return {};
}

// CL2: what a command makes is there completely, or what was there before.
int save(const request &given, const std::string &page) {
    const std::string &path = given.picture_path;
    ty_status status = TY_OK;
    if (struct stat there; lstat(path.c_str(), &there) == 0)
        status = ty_error_set(TY_E_EXISTS, 0, "save the page", path.c_str(), UINT64_MAX,
                              "give a path where a new file can be made");
    if (status == TY_OK)
        status = heap_map::write_picture(path, page);
    return status == TY_OK ? int(exit_fine) : refuse(given, status);
}

// idle_ms 0: for ever.
void serve(live_source &source, live_view &view, live_server &server, uint64_t idle_ms) {
    uint64_t beaten_ms = 0;
    while (!interrupted() && (idle_ms == 0 || server.idle_ns() / ms_ns < idle_ms)) {
        bool is_new = false;
        {
            const std::lock_guard guard(view.source_lock());
            is_new = source.renew();
            if (view.take_wish()) {
                source.inspect_heap();
                is_new = true;
            }
            if (is_new)
                view.take_all();
        }
        if (is_new)
            server.publish(view.event());
        beaten_ms += event_every_ms;
        if (beaten_ms >= beat_every_ms) {
            server.beat();
            beaten_ms = 0;
        }
        pause_ms(event_every_ms);
    }
}

} // namespace

int live(const request &given) {
    const heap_files files{given.paths[0], given.journal_path, given.log_path};
    int64_t port = 0;
    if (!given.port.empty() && !read_whole(given.port, 1, 65535, &port)) {
        refuse_value("port", given.port, "a whole number, 1 to 65535");
        return exit_cannot;
    }
    uint64_t idle_ms = 0;
    if (!given.idle.empty() && !read_duration(given.idle, &idle_ms)) {
        refuse_value("idle", given.idle, "a time such as 30m or 8h");
        return exit_cannot;
    }
    const std::string address = given.address.empty() ? "127.0.0.1" : given.address;
    if (!live_server::is_loopback(address)) {
        refuse_value("address", given.address, "127.0.0.1 or ::1; from another machine, look through ssh -L");
        return exit_cannot;
    }
    live_source source(files);
    live_view view(source);
    if (ty_status status = source.begin())
        return refuse(files, given, status);
    view.take_all();
    if (!given.picture_path.empty())
        return save(given, view.page("", true));
    live_server server;
    end_with_interrupts();
    if (!server.start(address, static_cast<uint16_t>(port),
                      [&](const live_request &request) { return view.answer(request); })) {
        std::fprintf(stderr, "taiyen: cannot serve a page on %s: %s; try another --port or --address\n",
                     address.c_str(), server.why().c_str());
        return exit_cannot;
    }
    server.publish(view.event());
    if (given.json)
        json::print({{"path", files.path}, {"url", server.url()}});
    else
        std::printf("%s\nOpen this in a browser on this machine; it ends with an interrupt (Ctrl-C)%s.\n",
                    server.url().c_str(), idle_ms != 0 ? ", or when nobody has looked for a while" : "");
    std::fflush(stdout);
    serve(source, view, server, idle_ms);
    return exit_fine;
}

} // namespace cli
