// NATS JetStream as an engine. docs/design/standby.md, "JetStream".
#pragma once

#include "packages/common/common.hpp"

#include <condition_variable>
#include <mutex>
#include <nats/nats.h>
#include <string>
#include <taiyen/standby.h>

namespace taiyen::standby {

using common::fail;

// A status of libnats as one of ours.
ty_status nats_failure(natsStatus status, const std::string &operation, const std::string &stream);

// A log: a stream with one subject.
struct stream {
    std::string name;
    std::string subject;

    // A session of messages. Under the connection's lock.
    uint64_t session = 0;
    uint64_t expected = 0; // the position after which the next message goes
    uint64_t emptied = 0;  // if the stream was emptied, the position of its newest message before
    uint64_t sent = 0;
    uint64_t answered = 0;
    uint64_t last_at = 0; // position of the last answered message
    ty_status failed = TY_OK;
    std::string why;
    std::string inbox; // answers come to INBOX.SESSION.NUMBER
    natsSubscription *answers = nullptr;
    bool answers_end = false; // no callback will come

    // A subscription that delivers messages. Under reading.
    std::mutex reading;
    natsSubscription *messages = nullptr;
    uint64_t cursor = 0;   // the last one delivered
    uint64_t made_for = 0; // the connection that it was made with
    bool first = false;    // none was delivered since it was made
};

class jetstream {
public:
    jetstream(const char *name, const ty_jetstream_options &options);
    ~jetstream();
    jetstream(const jetstream &) = delete;
    jetstream &operator=(const jetstream &) = delete;
    ty_status open(const char *urls);
    ty_engine *table() { return &table_; }

private:
    static natsStatus open_nats();
    ty_status connect(const char *urls);
    ty_status connect_options(natsOptions *options, const char *urls);
    ty_status see_to_stream(stream &of);
    ty_status check_stream(const stream &of, const jsStreamInfo &info);
    void see_to_version(const stream &of, const jsStreamInfo &info);
    ty_status listen(stream &of);

    ty_status newest(stream &of, uint64_t *position);
    ty_status check_newest(const stream &of, uint64_t position);
    ty_status read(stream &of, uint64_t after, uint32_t timeout_ms, ty_engine_callback *callback, void *context);
    ty_status subscribe(stream &of, uint64_t after);
    static void unsubscribe(stream &of);
    ty_status next(stream &of, uint32_t timeout_ms, ty_engine_callback *callback, void *context, bool *more);
    ty_status begin_session(stream &of, uint64_t after);
    ty_status append(stream &of, const void *bytes, size_t size);
    ty_status acknowledged(stream &of, uint64_t known, uint32_t timeout_ms, uint64_t *count, uint64_t *position);
    ty_status trim(stream &of, uint64_t before);

    stream &of(ty_engine_log log) { return streams_[log == TY_ENGINE_BASES]; }
    void take_answer(stream &of, const char *subject, const char *data, size_t size);
    void cut();
    static void answer(natsConnection *connection, natsSubscription *subscription, natsMsg *message, void *self);

    ty_jetstream_options options_;
    std::string name_; // in the table
    stream streams_[2];
    natsConnection *connection_ = nullptr;
    jsCtx *js_ = nullptr;
    std::mutex lock_;
    std::condition_variable changed_;
    uint64_t connections_ = 1; // incremented by each cut
    bool closed_ = false;
    ty_engine table_{};
};

} // namespace taiyen::standby
