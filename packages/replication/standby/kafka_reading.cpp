// Reads topics.
#include "kafka.hpp"

#include <algorithm>
#include <chrono>

namespace taiyen::standby {

namespace {

constexpr int messages_max = 256; // in one read

int64_t now_ms() {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

// Each message is found by the ones after it, so without its newest one a topic cannot be used any more.
ty_status refuse_removed(const topic &of) {
    return fail(TY_E_DAMAGED, "read a topic: its newest messages were removed from it, or no publisher made them",
                of.name, "publish under another name, and make new standbys");
}

ty_status refuse_lost(const topic &of, uint64_t last, uint64_t read) {
    return fail(TY_E_DAMAGED,
                "read a topic: it has lost messages that were read: it ends with " + std::to_string(last) + ", and " +
                    std::to_string(read) + " was read",
                of.name, "see whether its brokers were restored from a backup; make a new standby");
}

} // namespace

// One end of a topic: RD_KAFKA_OFFSET_BEGINNING or RD_KAFKA_OFFSET_END, which a broker takes as times. (Before
// librdkafka 2.3, the function that asks for both waits for ever if the broker is away.)
ty_status kafka::end_of(const topic &of, int64_t which, uint64_t *position) {
    using list_owner = owned<rd_kafka_topic_partition_list_t, rd_kafka_topic_partition_list_destroy>;
    const list_owner list(rd_kafka_topic_partition_list_new(1));
    rd_kafka_topic_partition_t *one = rd_kafka_topic_partition_list_add(list.get(), of.name.c_str(), 0);
    one->offset = which;
    rd_kafka_resp_err_t code =
        rd_kafka_offsets_for_times(asker_.get(), list.get(), static_cast<int>(options_.timeout_ms));
    code = code ? code : one->err;
    if (code || one->offset < 0)
        return failure(code ? code : RD_KAFKA_RESP_ERR__FAIL, "look at a topic", of.name);
    *position = static_cast<uint64_t>(one->offset);
    return TY_OK;
}

// The last position that all in-sync replicas have, as they have all acknowledged messages.
ty_status kafka::ends_of(const topic &of, uint64_t *first, uint64_t *last) {
    if (ty_status status = end_of(of, RD_KAFKA_OFFSET_BEGINNING, first))
        return status;
    if (ty_status status = end_of(of, RD_KAFKA_OFFSET_END, last))
        return status;
    const std::lock_guard<std::mutex> with(lock_);
    complaint_.clear();
    return *first == *last && *last > 0 ? refuse_removed(of) : TY_OK;
}

ty_status kafka::newest(topic &of, uint64_t *position) {
    uint64_t first = 0;
    return ends_of(of, &first, position);
}

void kafka::stop(topic &of) {
    if (of.started)
        rd_kafka_consume_stop(of.messages, 0);
    of.started = false;
}

ty_status kafka::start(topic &of, uint64_t after) {
    uint64_t first = 0, last = 0;
    stop(of);
    if (ty_status status = ends_of(of, &first, &last))
        return status;
    if (last < after)
        return refuse_lost(of, last, after);
    if (rd_kafka_consume_start(of.messages, 0, static_cast<int64_t>(std::max(after, first))))
        return failure(rd_kafka_last_error(), "read a topic", of.name);
    of.started = true;
    of.at_end = false;
    of.cursor = after;
    return TY_OK;
}

// *more: another message may have arrived.
ty_status kafka::take(topic &of, const rd_kafka_message_t &message, ty_engine_callback *callback, void *context,
                      bool *more) {
    const uint64_t offset = static_cast<uint64_t>(std::max<int64_t>(message.offset, 0));
    *more = false;
    if (message.err == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
        of.at_end = true;
        // Something occupies these offsets, and it is no message: a transaction marker, which no publisher writes.
        if (offset <= of.cursor)
            return TY_OK;
        stop(of);
        return refuse_removed(of);
    }
    if (message.err) { // what comes next was trimmed or lost; the next start shows which
        stop(of);
        return message.err == RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET ? TY_OK
                                                                   : failure(message.err, "read a topic", of.name);
    }
    of.at_end = false;
    of.cursor = offset + 1;
    *more = callback(message.payload, message.len, of.cursor, context);
    return TY_OK;
}

ty_status kafka::check_end(topic &of) {
    uint64_t first = 0, last = 0;
    if (ty_status status = ends_of(of, &first, &last))
        return status;
    return last < of.cursor ? refuse_lost(of, last, of.cursor) : TY_OK;
}

// Messages that are there are delivered even without waiting; the broker says when there are none.
ty_status kafka::read(topic &of, uint64_t after, uint32_t timeout_ms, ty_engine_callback *callback, void *context) {
    using message_owner = owned<rd_kafka_message_t, rd_kafka_message_destroy>;
    const std::lock_guard<std::mutex> alone(of.reading);
    const int64_t begun = now_ms(), engine_timeout_ms = options_.timeout_ms;
    if (!of.started || of.cursor != after)
        if (ty_status status = start(of, after))
            return status;
    bool more = true;
    for (int n = 0; more && n < messages_max;) {
        const int64_t limit_ms = of.at_end ? timeout_ms : std::max<int64_t>(timeout_ms, engine_timeout_ms);
        const int64_t wait_ms = n ? 0 : std::max<int64_t>(limit_ms - (now_ms() - begun), 0);
        const message_owner message(rd_kafka_consume(of.messages, 0, static_cast<int>(wait_ms)));
        if (!message && n == 0)
            return check_end(of);
        if (!message)
            return TY_OK;
        const bool received = !message->err;
        if (ty_status status = take(of, *message, callback, context, &more))
            return status;
        n += received;
        more = more || (!received && of.started);
    }
    return TY_OK;
}

} // namespace taiyen::standby
