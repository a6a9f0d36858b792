// Kafka as an engine. docs/design/standby.md, "Kafka".
#pragma once

#include "kafka_rules.hpp"

#include <condition_variable>
#include <functional>
#include <librdkafka/rdkafka.h>
#include <memory>
#include <mutex>

namespace taiyen::standby {

template <auto end>
struct ends_with {
    template <class Thing>
    void operator()(Thing *thing) const {
        end(thing);
    }
};
template <class Thing, auto end>
using owned = std::unique_ptr<Thing, ends_with<end>>;

using conf_owner = owned<rd_kafka_conf_t, rd_kafka_conf_destroy>;
using client_owner = owned<rd_kafka_t, rd_kafka_destroy>;
using queue_owner = owned<rd_kafka_queue_t, rd_kafka_queue_destroy>;
using event_owner = owned<rd_kafka_event_t, rd_kafka_event_destroy>;

class kafka;

// A log: a topic with one partition. A message with offset n has the position n + 1.
struct topic {
    std::string name;
    kafka *engine = nullptr;

    // A session of messages. Under the engine's lock, except for the producer, which only the writer uses.
    session_of_positions session;
    client_owner producer;
    bool producer_failed = false; // its messages in flight, and the answers to them, are of no use any more

    // A queue of the reader delivers messages. Under reading.
    std::mutex reading;
    rd_kafka_topic_t *messages = nullptr;
    bool started = false;
    bool at_end = false; // the topic has nothing after the last one delivered
    uint64_t cursor = 0; // the last one delivered
};

class kafka {
public:
    kafka(const char *name, const ty_kafka_options &options);
    ~kafka();
    kafka(const kafka &) = delete;
    kafka &operator=(const kafka &) = delete;
    ty_status open(const char *brokers);
    ty_engine *table() { return &table_; }

private:
    ty_status connect(client_owner *client);
    ty_status configure(rd_kafka_conf_t *conf, const std::map<std::string, std::string> &settings) const;
    ty_status failure(rd_kafka_resp_err_t code, const std::string &operation, const std::string &topic);

    ty_status check(const topic &of, topic_settings *about, bool *there);
    ty_status see_to_topic(topic &of);
    ty_status look_at(topic_settings *about, bool *there);
    ty_status make(const topic &of);
    static void end_in_time(client_owner client);
    ty_status describe(topic_settings *about, bool *there);
    ty_status ask(rd_kafka_admin_op_t what, const std::string &operation, const std::string &topic,
                  const std::function<void(const rd_kafka_AdminOptions_t *, rd_kafka_queue_t *)> &call,
                  event_owner *answer);

    ty_status end_of(const topic &of, int64_t which, uint64_t *position);
    ty_status ends_of(const topic &of, uint64_t *first, uint64_t *last);
    ty_status newest(topic &of, uint64_t *position);
    ty_status read(topic &of, uint64_t after, uint32_t timeout_ms, ty_engine_callback *callback, void *context);
    ty_status start(topic &of, uint64_t after);
    static void stop(topic &of);
    ty_status take(topic &of, const rd_kafka_message_t &message, ty_engine_callback *callback, void *context,
                   bool *more);
    ty_status check_end(topic &of);
    ty_status trim(topic &of, uint64_t before);

    ty_status make_producer(topic &of);
    ty_status begin_session(topic &of, uint64_t after);
    ty_status append(topic &of, const void *bytes, size_t size);
    ty_status acknowledged(topic &of, uint64_t known, uint32_t timeout_ms, uint64_t *count, uint64_t *position);
    static void take_answers(rd_kafka_t *producer, rd_kafka_event_t *event, void *of);
    void take_answer(topic &of, const rd_kafka_message_t &message);

    topic &of(ty_engine_log log) { return topics_[log == TY_ENGINE_BASES]; }

    ty_kafka_options options_;
    std::string name_;                            // in the table
    std::map<std::string, std::string> settings_; // of each client
    topic topics_[2];
    client_owner reader_;
    client_owner asker_; // separate: a broker answers a client's requests in order, and a reader's requests wait for
                         // messages
    std::mutex lock_;
    std::condition_variable changed_;
    std::string complaint_; // the last one of a client
    ty_engine table_{};
};

} // namespace taiyen::standby
