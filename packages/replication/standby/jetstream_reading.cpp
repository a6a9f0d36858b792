// Streams: created, checked, read and trimmed.
#include "jetstream.hpp"

#include <algorithm>

namespace taiyen::standby {

namespace {

constexpr int messages_max = 256; // in one read
constexpr int64_t quick_ms = 1;   // for a message that has arrived already
constexpr int64_t heartbeat_ns = 5'000'000'000;

ty_status refuse_setting(const stream &of, const char *setting, const char *remedy) {
    return fail(TY_E_UNSUPPORTED, std::string("use a stream: ") + setting, of.name, remedy);
}

// Each message is found by the ones after it, so without its newest one a stream cannot be used any more.
ty_status refuse_removed(const stream &of) {
    return fail(TY_E_DAMAGED, "read a stream: its newest messages were removed from it", of.name,
                "publish under another name, and make new standbys");
}

constexpr const char *make_anew = "change the setting, or have a stream made under another name";

} // namespace

// ST8: a stream is used only if its settings drop nothing that was acknowledged.
ty_status jetstream::check_stream(const stream &of, const jsStreamInfo &info) {
    const jsStreamConfig &c = *info.Config;
    const bool bounded = c.MaxMsgs > 0 || c.MaxBytes > 0;
    if (c.SubjectsLen != 1 || of.subject != c.Subjects[0])
        return refuse_setting(of, "it has other subjects than one of its own", make_anew);
    if (c.Storage != js_FileStorage)
        return refuse_setting(of, "it is kept in the server's memory", make_anew);
    if (c.Retention != js_LimitsPolicy)
        return refuse_setting(of, "messages leave it when they were read (its retention is not limits)", make_anew);
    if (c.MaxAge > 0 || c.MaxMsgsPerSubject > 0 || (bounded && c.Discard != js_DiscardNew))
        return refuse_setting(of, "old messages are dropped (max_age, max_msgs_per_subject, or discard old)",
                              make_anew);
    if (c.NoAck || c.Sealed)
        return refuse_setting(of, "it acknowledges nothing, or is sealed", make_anew);
    if (c.Mirror || c.SourcesLen > 0)
        return refuse_setting(of, "it is a copy of another stream", make_anew);
    if (static_cast<uint32_t>(std::max<int64_t>(c.Replicas, 1)) < options_.replicas)
        return refuse_setting(of, "it has fewer replicas than were asked for", "raise them, or ask for fewer");
    return TY_OK;
}

// libnats has no call for the server's version. Servers of 2.10 and newer have a time stamp in a stream's information.
void jetstream::see_to_version(const stream &of, const jsStreamInfo &info) {
    if (info.Config->Replicas < 2)
        return;
    natsMsg *answer = nullptr;
    const std::string subject = "$JS.API.STREAM.INFO." + of.name;
    if (natsConnection_RequestString(&answer, connection_, subject.c_str(), "", options_.timeout_ms) != NATS_OK)
        return; // the next open asks again
    const std::string text(natsMsg_GetData(answer), static_cast<size_t>(natsMsg_GetDataLength(answer)));
    natsMsg_Destroy(answer);
    if (text.find("\"ts\":") == std::string::npos)
        table_.warning = "the servers are older than 2.10: once all of them were killed at a time, the replicas of a "
                         "stream may differ, and acknowledged messages be lost; use 2.10.23 or newer for replicas";
}

ty_status jetstream::see_to_stream(stream &of) {
    jsStreamInfo *info = nullptr;
    jsErrCode code = static_cast<jsErrCode>(0);
    natsStatus s = js_GetStreamInfo(&info, js_, of.name.c_str(), nullptr, &code);
    if (s == NATS_NOT_FOUND) {
        const char *subject = of.subject.c_str();
        jsStreamConfig config;
        jsStreamConfig_Init(&config);
        config.Name = of.name.c_str();
        config.Subjects = &subject;
        config.SubjectsLen = 1;
        config.Storage = js_FileStorage;
        config.Retention = js_LimitsPolicy;
        config.Discard = js_DiscardNew;
        config.Replicas = options_.replicas;
        config.DenyDelete = true;
        s = js_AddStream(&info, js_, &config, nullptr, &code);
    }
    if (s != NATS_OK)
        return nats_failure(s, "look at a stream, or make it", of.name);
    const ty_status status = check_stream(of, *info);
    if (!status && info->Config->MaxMsgSize > 0)
        table_.message_bytes_max =
            std::min(table_.message_bytes_max, static_cast<size_t>(std::max(info->Config->MaxMsgSize - 256, 0)));
    if (!status)
        see_to_version(of, *info);
    jsStreamInfo_Destroy(info);
    return status;
}

// The bases' log alone holds nothing that was acknowledged: a log without messages is one without a base, and another
// base is sent.
ty_status jetstream::newest(stream &of, uint64_t *position) {
    jsStreamInfo *info = nullptr;
    const natsStatus s = js_GetStreamInfo(&info, js_, of.name.c_str(), nullptr, nullptr);
    if (s != NATS_OK)
        return nats_failure(s, "look at a stream", of.name);
    const uint64_t last = info->State.LastSeq;
    const bool removed = info->State.Msgs == 0 && last > 0;
    jsStreamInfo_Destroy(info);
    if (removed && &of == &this->of(TY_ENGINE_RECORDS))
        return refuse_removed(of);
    *position = removed ? 0 : last;
    const std::lock_guard<std::mutex> with(lock_);
    of.emptied = removed ? last : 0;
    return TY_OK;
}

ty_status jetstream::check_newest(const stream &of, uint64_t position) {
    natsMsg *message = nullptr;
    const natsStatus s = js_GetMsg(&message, js_, of.name.c_str(), position, nullptr, nullptr);
    natsMsg_Destroy(message);
    return s == NATS_OK ? TY_OK : s == NATS_NOT_FOUND ? refuse_removed(of) : nats_failure(s, "read a stream", of.name);
}

// A purge up to the first message would remove all of them: the server takes 1 as no position given.
ty_status jetstream::trim(stream &of, uint64_t before) {
    if (before <= 1)
        return TY_OK;
    jsOptions options;
    jsOptions_Init(&options);
    options.Wait = options_.timeout_ms;
    options.Stream.Purge.Sequence = before;
    const natsStatus s = js_PurgeStream(js_, of.name.c_str(), &options, nullptr);
    return s == NATS_OK ? TY_OK : nats_failure(s, "trim a stream", of.name);
}

// ---- Reading

void jetstream::unsubscribe(stream &of) {
    if (!of.messages)
        return;
    natsSubscription_Unsubscribe(of.messages);
    natsSubscription_Destroy(of.messages);
    of.messages = nullptr;
}

// An ordered consumer of libnats is recreated by a thread of libnats when a message is missing, and to unsubscribe
// meanwhile reads freed memory (3.4.1). next() detects a missing message itself.
ty_status jetstream::subscribe(stream &of, uint64_t after) {
    jsSubOptions options;
    jsSubOptions_Init(&options);
    options.Stream = of.name.c_str();
    options.Config.AckPolicy = js_AckNone;
    options.Config.MaxDeliver = 1;
    options.Config.FlowControl = true;
    options.Config.Heartbeat = heartbeat_ns; // flow control requires one
    options.Config.DeliverPolicy = js_DeliverByStartSequence;
    options.Config.OptStartSeq = after + 1;
    unsubscribe(of);
    {
        const std::lock_guard<std::mutex> with(lock_);
        of.made_for = connections_;
    }
    const natsStatus s = js_SubscribeSync(&of.messages, js_, of.subject.c_str(), nullptr, &options, nullptr);
    if (s != NATS_OK)
        return nats_failure(s, "read a stream", of.name);
    of.cursor = after;
    of.first = true;
    return TY_OK;
}

// *more: a message was delivered, and another one may have arrived.
ty_status jetstream::next(stream &of, uint32_t timeout_ms, ty_engine_callback *callback, void *context, bool *more) {
    natsMsg *message = nullptr;
    jsMsgMetaData *about = nullptr;
    *more = false;
    natsStatus s = natsSubscription_NextMsg(&message, of.messages, std::max<int64_t>(timeout_ms, quick_ms));
    if (s == NATS_TIMEOUT)
        return TY_OK;
    if (s == NATS_MISMATCH || s == NATS_MISSED_HEARTBEAT || s == NATS_SLOW_CONSUMER) {
        unsubscribe(of); // some are missing: subscribe again from there
        return TY_OK;
    }
    if (s == NATS_OK)
        s = natsMsg_GetMetaData(&about, message);
    if (s != NATS_OK) {
        natsMsg_Destroy(message);
        unsubscribe(of);
        return nats_failure(s, "read a stream", of.name);
    }
    const uint64_t at = about->Sequence.Stream;
    const bool follows = at == of.cursor + 1 || (of.first && at > of.cursor);
    if (follows) {
        of.cursor = at;
        of.first = false;
        *more = callback(natsMsg_GetData(message), static_cast<size_t>(natsMsg_GetDataLength(message)), at, context);
    } else {
        unsubscribe(of); // as above
    }
    jsMsgMetaData_Destroy(about);
    natsMsg_Destroy(message);
    return TY_OK;
}

ty_status jetstream::read(stream &of, uint64_t after, uint32_t timeout_ms, ty_engine_callback *callback,
                          void *context) {
    const std::lock_guard<std::mutex> alone(of.reading);
    uint64_t connections;
    {
        const std::lock_guard<std::mutex> with(lock_);
        connections = connections_;
    }
    if (!of.messages || of.cursor != after || of.made_for != connections)
        if (ty_status status = subscribe(of, after))
            return status;
    bool more = true;
    for (int n = 0; more && of.messages && n < messages_max; n++) {
        int here = 0;
        if (n > 0 && (natsSubscription_GetPending(of.messages, &here, nullptr) != NATS_OK || here == 0))
            return TY_OK;
        if (ty_status status = next(of, n ? 0 : timeout_ms, callback, context, &more))
            return status;
        if (n > 0 || more || !of.messages || of.cursor != after)
            continue;
        // Nothing came: only the stream shows whether the subscription is dead.
        uint64_t last = 0;
        if (ty_status status = newest(of, &last))
            return status;
        if (last < after)
            return fail(TY_E_DAMAGED, "read a stream: it has lost messages that were read", of.name,
                        "see whether its server was restored from a backup; make a new standby");
        if (last > after)
            unsubscribe(of);
        if (ty_status status = last > after ? check_newest(of, last) : TY_OK)
            return status;
    }
    return TY_OK;
}

} // namespace taiyen::standby
