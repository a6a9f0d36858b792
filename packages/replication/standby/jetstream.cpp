// The connection, and writes to a stream.
#include "jetstream.hpp"

#include "broken_pipe.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

namespace taiyen::standby {

namespace {

constexpr uint32_t timeout_ms_standard = 5000;
constexpr int64_t reconnect_ms = 50;
constexpr int wrong_last_sequence[] = {10071, 10164}; // error codes in the server's answers
constexpr int no_room[] = {10023, 10028, 10047, 10077, 10122};

// The number of a name in the server's answer, which is JSON; 0 if the name is missing.
uint64_t number_of(const std::string &answer, const char *name) {
    const size_t at = answer.find(std::string("\"") + name + "\":");
    return at == std::string::npos ? 0 : strtoull(answer.c_str() + at + strlen(name) + 3, nullptr, 10);
}

// The text of a name in the answer; if the name is missing, the answer itself.
std::string text_of(const std::string &answer, const char *name) {
    const std::string before = std::string("\"") + name + "\":\"";
    const size_t at = answer.find(before);
    if (at == std::string::npos)
        return answer;
    const size_t from = at + before.size();
    return answer.substr(from, answer.find('"', from) - from);
}

// A URL may contain a user and a password.
std::string without_credentials(std::string urls) {
    for (size_t at = urls.find('@'); at != std::string::npos; at = urls.find('@')) {
        const size_t begin = urls.find_last_of("/,", at);
        const size_t from = begin == std::string::npos ? 0 : begin + 1;
        urls.erase(from, at + 1 - from);
    }
    return urls;
}

ty_status status_of(int code) {
    for (int one : wrong_last_sequence)
        if (code == one)
            return TY_E_MISMATCH;
    for (int one : no_room)
        if (code == one)
            return TY_E_SPACE;
    return TY_E_IO;
}

// The servers in a comma-separated list; empty if one of them is empty.
std::vector<std::string> servers_of(const std::string &urls) {
    std::vector<std::string> servers;
    for (size_t at = 0; at <= urls.size();) {
        const size_t end = std::min(urls.find(',', at), urls.size()), first = urls.find_first_not_of(" \t", at);
        if (first >= end)
            return {};
        const size_t last = urls.find_last_not_of(" \t", end - 1);
        servers.push_back(urls.substr(first, last + 1 - first));
        at = end + 1;
    }
    return servers;
}

ty_status kept(const stream &of) {
    return fail(of.failed, "write to a stream: " + of.why, of.name,
                of.failed == TY_E_MISMATCH ? "another process has written to it"
                : of.failed == TY_E_SPACE  ? "raise the stream's limits, or give the server more room"
                                           : "see whether the server is well");
}

} // namespace

ty_status nats_failure(natsStatus status, const std::string &operation, const std::string &stream) {
    const char *more = nats_GetLastError(nullptr);
    const std::string what =
        operation + ": " + natsStatus_GetText(status) + (more && *more ? ", " : "") + (more ? more : "");
    if (status == NATS_NO_MEMORY)
        return fail(TY_E_MEMORY, what, stream, "free memory of the process");
    if (status == NATS_NOT_PERMITTED || status == NATS_CONNECTION_AUTH_FAILED)
        return fail(TY_E_PERMISSION, what, stream, "give a URL or credentials that are allowed to");
    if (status == NATS_INVALID_ARG || status == NATS_ADDRESS_MISSING)
        return fail(TY_E_ARGUMENT, what, stream, "give a URL such as nats://127.0.0.1:4222");
    return fail(TY_E_IO, what, stream, "see whether the server runs, with JetStream, and can be reached");
}

jetstream::jetstream(const char *name, const ty_jetstream_options &options) : options_(options) {
    streams_[0].name = name;
    streams_[1].name = std::string(name) + "-bases";
    for (stream &one : streams_)
        one.subject = "taiyen." + one.name;
    options_.replicas = options.replicas ? options.replicas : 1;
    options_.timeout_ms = options.timeout_ms ? options.timeout_ms : timeout_ms_standard;
    table_.struct_size = sizeof table_;
    table_.context = this;
    name_ = std::string("stream ") + name;
    table_.newest = [](void *context, ty_engine_log log, uint64_t *position) {
        const pipe_guard guard;
        auto &js = *static_cast<jetstream *>(context);
        return js.newest(js.of(log), position);
    };
    table_.read = [](void *context, ty_engine_log log, uint64_t after, uint32_t timeout_ms,
                     ty_engine_callback *callback, void *with) {
        const pipe_guard guard;
        auto &js = *static_cast<jetstream *>(context);
        return js.read(js.of(log), after, timeout_ms, callback, with);
    };
    table_.begin_session = [](void *context, ty_engine_log log, uint64_t after) {
        const pipe_guard guard;
        auto &js = *static_cast<jetstream *>(context);
        return js.begin_session(js.of(log), after);
    };
    table_.append = [](void *context, ty_engine_log log, const void *bytes, size_t size) {
        const pipe_guard guard;
        auto &js = *static_cast<jetstream *>(context);
        return js.append(js.of(log), bytes, size);
    };
    table_.acknowledged = [](void *context, ty_engine_log log, uint64_t known, uint32_t timeout_ms, uint64_t *count,
                             uint64_t *position) {
        const pipe_guard guard;
        auto &js = *static_cast<jetstream *>(context);
        return js.acknowledged(js.of(log), known, timeout_ms, count, position);
    };
    table_.trim = [](void *context, ty_engine_log log, uint64_t before) {
        const pipe_guard guard;
        auto &js = *static_cast<jetstream *>(context);
        return js.trim(js.of(log), before);
    };
}

// Threads of libnats run the callbacks; libnats reports when no more will come.
jetstream::~jetstream() {
    for (stream &one : streams_) {
        unsubscribe(one);
        if (!one.answers)
            continue;
        natsSubscription_Unsubscribe(one.answers);
        std::unique_lock<std::mutex> with(lock_);
        changed_.wait(with, [&] { return one.answers_end; });
        with.unlock();
        natsSubscription_Destroy(one.answers);
    }
    if (js_)
        jsCtx_Destroy(js_);
    if (connection_) {
        natsConnection_Close(connection_);
        std::unique_lock<std::mutex> with(lock_);
        changed_.wait(with, [this] { return closed_; });
        with.unlock();
        natsConnection_Destroy(connection_);
    }
}

// libnats sets SIGPIPE to ignored, for the whole process, when it is first used; the disposition is the program's to
// set. libnats' threads are created by threads that block the signal (broken_pipe.hpp), and inherit that.
natsStatus jetstream::open_nats() {
    static std::mutex once;
    const std::lock_guard<std::mutex> alone(once);
    const pipe_disposition before;
    return nats_Open(-1);
}

// Messages in flight may be in the stream or not, and no answer will come.
void jetstream::cut() {
    const std::lock_guard<std::mutex> with(lock_);
    connections_ += 1;
    for (stream &one : streams_)
        if (!one.failed) {
            one.failed = TY_E_IO;
            one.why = "the connection to the server was cut";
        }
    changed_.notify_all();
}

ty_status jetstream::connect_options(natsOptions *options, const char *urls) {
    const std::vector<std::string> servers = servers_of(urls);
    std::vector<const char *> names;
    for (const std::string &one : servers)
        names.push_back(one.c_str());
    if (names.empty())
        return fail(TY_E_ARGUMENT, "connect to a server: one of the list is empty", urls,
                    "give URLs such as nats://127.0.0.1:4222, with commas between");
    natsStatus s = natsOptions_SetServers(options, names.data(), static_cast<int>(names.size()));
    if (s == NATS_OK)
        s = natsOptions_SetName(options, "taiyen");
    if (s == NATS_OK)
        s = natsOptions_SetTimeout(options, options_.timeout_ms);
    if (s == NATS_OK)
        s = natsOptions_SetMaxReconnect(options, -1);
    if (s == NATS_OK)
        s = natsOptions_SetReconnectWait(options, reconnect_ms);
    if (s == NATS_OK)
        s = natsOptions_SetReconnectJitter(options, reconnect_ms, reconnect_ms);
    // A server that hangs, or is cut off, closes nothing: it is given up once it does not answer a ping. By default,
    // libnats pings only every two minutes.
    if (s == NATS_OK)
        s = natsOptions_SetPingInterval(options, options_.timeout_ms);
    if (s == NATS_OK)
        s = natsOptions_SetMaxPingsOut(options, 1);
    if (s == NATS_OK)
        s = natsOptions_SetSendAsap(options, true);
    if (s == NATS_OK)
        s = natsOptions_SetDisconnectedCB(
            options, [](natsConnection *, void *self) { static_cast<jetstream *>(self)->cut(); }, this);
    if (s == NATS_OK)
        s = natsOptions_SetClosedCB(
            options,
            [](natsConnection *, void *closure) {
                auto &self = *static_cast<jetstream *>(closure);
                const std::lock_guard<std::mutex> with(self.lock_);
                self.closed_ = true;
                self.changed_.notify_all();
            },
            this);
    if (s == NATS_OK && options_.credentials)
        s = natsOptions_SetUserCredentialsFromFiles(options, options_.credentials, nullptr);
    return s == NATS_OK ? TY_OK : nats_failure(s, "connect to a server", urls);
}

ty_status jetstream::connect(const char *urls) {
    natsOptions *options = nullptr;
    natsStatus s = open_nats();
    if (s == NATS_OK)
        s = natsOptions_Create(&options);
    if (s != NATS_OK)
        return nats_failure(s, "connect to a server", urls);
    ty_status status = connect_options(options, urls);
    if (!status && (s = natsConnection_Connect(&connection_, options)) != NATS_OK)
        status = nats_failure(s, "connect to a server", urls);
    natsOptions_Destroy(options);
    if (status)
        return status;
    jsOptions js;
    jsOptions_Init(&js);
    js.Wait = options_.timeout_ms;
    s = natsConnection_JetStream(&js_, connection_, &js);
    return s == NATS_OK ? TY_OK : nats_failure(s, "use JetStream", urls);
}

ty_status jetstream::open(const char *urls) {
    constexpr int64_t header_bytes = 256; // of NATS, per message
    name_ += " of " + without_credentials(urls);
    table_.name = name_.c_str();
    if (ty_status status = connect(urls))
        return status;
    table_.message_bytes_max = static_cast<size_t>(natsConnection_GetMaxPayload(connection_) - header_bytes);
    for (stream &one : streams_) {
        if (ty_status status = see_to_stream(one))
            return status;
        if (ty_status status = listen(one))
            return status;
    }
    return TY_OK;
}

// ---- Writing

void jetstream::answer(natsConnection *, natsSubscription *, natsMsg *message, void *closure) {
    auto &self = *static_cast<jetstream *>(closure);
    const std::string subject = natsMsg_GetSubject(message);
    for (stream &one : self.streams_)
        if (subject.rfind(one.inbox + ".", 0) == 0)
            self.take_answer(one, subject.c_str() + one.inbox.size() + 1, natsMsg_GetData(message),
                             static_cast<size_t>(natsMsg_GetDataLength(message)));
    natsMsg_Destroy(message);
}

ty_status jetstream::listen(stream &of) {
    natsInbox *inbox = nullptr;
    natsStatus s = natsInbox_Create(&inbox);
    if (s != NATS_OK)
        return nats_failure(s, "listen to a stream's answers", of.name);
    of.inbox = inbox;
    natsInbox_Destroy(inbox);
    s = natsConnection_Subscribe(&of.answers, connection_, (of.inbox + ".>").c_str(), answer, this);
    if (s == NATS_OK)
        s = natsSubscription_SetPendingLimits(of.answers, -1, -1);
    if (s == NATS_OK)
        s = natsSubscription_SetOnCompleteCB(
            of.answers,
            [](void *closure) {
                auto &self = *static_cast<jetstream *>(closure);
                const std::lock_guard<std::mutex> with(self.lock_);
                // Subscriptions are ended one after the other, so the first one that waits is the one that ended.
                (self.streams_[0].answers_end ? self.streams_[1] : self.streams_[0]).answers_end = true;
                self.changed_.notify_all();
            },
            this);
    if (s == NATS_OK)
        return TY_OK;
    const ty_status status = nats_failure(s, "listen to a stream's answers", of.name);
    natsSubscription_Destroy(of.answers);
    of.answers = nullptr;
    return status;
}

// ST3: only an acknowledged message with all before it counts. subject: SESSION.NUMBER. After a refused message, the
// server may take a later one that happens to find the place it expects.
void jetstream::take_answer(stream &of, const char *subject, const char *data, size_t size) {
    const std::string answer(data ? data : "", size);
    char *end = nullptr;
    const uint64_t session = strtoull(subject, &end, 10), number = *end == '.' ? strtoull(end + 1, nullptr, 10) : 0;
    const std::lock_guard<std::mutex> with(lock_);
    if (session != of.session || of.failed || number == 0 || number > of.sent)
        return;
    const uint64_t at = number_of(answer, "seq");
    if (answer.find("\"error\"") != std::string::npos || at == 0) {
        of.failed = status_of(static_cast<int>(number_of(answer, "err_code")));
        of.why = of.failed == TY_E_MISMATCH ? "another message stands at that position"
                 : answer.empty()           ? "nothing takes it"
                                            : text_of(answer, "description").substr(0, 200);
    } else if (number == of.answered + 1) {
        of.answered = number;
        of.last_at = at;
    } else {
        of.failed = TY_E_IO;
        of.why = "an acknowledgement is missing";
    }
    changed_.notify_all();
}

ty_status jetstream::begin_session(stream &of, uint64_t after) {
    const std::lock_guard<std::mutex> with(lock_);
    of.session += 1;
    of.expected = after;
    of.sent = of.answered = 0;
    of.failed = TY_OK;
    return TY_OK;
}

// The server takes the message only if the stream's newest one is the one expected. It understands 0 only for subjects;
// the stream has one.
ty_status jetstream::append(stream &of, const void *bytes, size_t size) {
    natsMsg *message = nullptr;
    std::string reply, expected;
    {
        const std::lock_guard<std::mutex> with(lock_);
        if (of.failed)
            return kept(of);
        of.sent += 1;
        reply = of.inbox + "." + std::to_string(of.session) + "." + std::to_string(of.sent);
        if (of.expected != TY_ENGINE_ANYWHERE) {
            expected = std::to_string(of.expected);
            of.expected = (of.expected ? of.expected : of.emptied) + 1;
        }
    }
    natsStatus s = natsMsg_Create(&message, of.subject.c_str(), reply.c_str(), static_cast<const char *>(bytes),
                                  static_cast<int>(size));
    if (s == NATS_OK && !expected.empty())
        s = natsMsgHeader_Set(message,
                              expected == "0" ? "Nats-Expected-Last-Subject-Sequence" : "Nats-Expected-Last-Sequence",
                              expected.c_str());
    if (s == NATS_OK)
        s = natsConnection_PublishMsg(connection_, message);
    natsMsg_Destroy(message);
    return s == NATS_OK ? TY_OK : nats_failure(s, "write to a stream", of.name);
}

ty_status jetstream::acknowledged(stream &of, uint64_t known, uint32_t timeout_ms, uint64_t *count,
                                  uint64_t *position) {
    std::unique_lock<std::mutex> with(lock_);
    changed_.wait_for(with, std::chrono::milliseconds(timeout_ms), [&] { return of.answered > known || of.failed; });
    if (of.answered <= known && of.failed)
        return kept(of);
    *count = of.answered;
    *position = of.last_at;
    return TY_OK;
}

} // namespace taiyen::standby

// ---- The public functions

ty_status ty_jetstream_open(const char *url, const char *name, const ty_jetstream_options *options,
                            ty_engine **engine) {
    using namespace taiyen;
    constexpr const char *call = "open an engine on JetStream";
    constexpr size_t name_max = 200;
    ty_jetstream_options known = TY_JETSTREAM_OPTIONS_INIT;
    if (!url || !url[0] || !engine)
        return common::refuse_call(call, "give a URL, and a place for the engine");
    *engine = nullptr;
    if (!name || !name[0] || strlen(name) > name_max ||
        strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") != strlen(name))
        return common::refuse_call(call, "give a name of letters, digits, '-' and '_'");
    if (ty_status status = common::copy_options(options, &known, call))
        return status;
    const standby::pipe_guard guard;
    return common::at_boundary(call, [&] {
        auto made = std::make_unique<standby::jetstream>(name, known);
        common::kept_failure failed;
        if (ty_status status = made->open(url)) {
            failed.keep(status);
            made.reset();
            return failed.restore();
        }
        *engine = made.release()->table();
        return TY_OK;
    });
}

void ty_jetstream_close(ty_engine *engine) {
    const taiyen::standby::pipe_guard guard;
    if (engine)
        delete static_cast<taiyen::standby::jetstream *>(engine->context);
}
