// The clients, and writes to a topic.
#include "kafka.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <future>
#include <thread>

namespace taiyen::standby {

namespace {

constexpr uint32_t timeout_ms_standard = 5000;
constexpr uint32_t timeout_ms_least = 100, timeout_ms_most = 300'000; // limits of librdkafka
constexpr size_t batch_overhead_bytes = 1024;                         // of Kafka, for a message sent alone
constexpr uint32_t ending_ms = 5000;                                  // for a client to end
constexpr size_t message_bytes_most = size_t{64} << 20;

// By default, librdkafka writes to stderr.
void say_nothing(const rd_kafka_t *, int, const char *, const char *) {}

ty_status status_of(rd_kafka_resp_err_t code) {
    switch (code) {
    case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
    case RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED:
    case RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED:
    case RD_KAFKA_RESP_ERR__AUTHENTICATION:
        return TY_E_PERMISSION;
    case RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE:
    case RD_KAFKA_RESP_ERR_INVALID_REPLICATION_FACTOR:
    case RD_KAFKA_RESP_ERR_INVALID_CONFIG:
    case RD_KAFKA_RESP_ERR_POLICY_VIOLATION:
    case RD_KAFKA_RESP_ERR__UNSUPPORTED_FEATURE:
        return TY_E_UNSUPPORTED;
    case RD_KAFKA_RESP_ERR__INVALID_ARG:
        return TY_E_ARGUMENT;
    default:
        return TY_E_IO;
    }
}

const char *remedy_of(ty_status status) {
    return status == TY_E_PERMISSION    ? "give credentials that are allowed to"
           : status == TY_E_UNSUPPORTED ? "change the settings of the topic or of the brokers"
           : status == TY_E_ARGUMENT    ? "give brokers such as 127.0.0.1:9092, and settings that librdkafka knows"
                                        : "see whether the brokers run, and can be reached";
}

} // namespace

// A client's own complaint says more than that no answer came.
ty_status kafka::failure(rd_kafka_resp_err_t code, const std::string &operation, const std::string &topic) {
    const ty_status status = status_of(code);
    for (const client_owner *one : {&reader_, &asker_})
        if (*one)
            rd_kafka_poll(one->get(), 0);
    const std::lock_guard<std::mutex> with(lock_);
    const std::string more = status == TY_E_IO && !complaint_.empty() ? ", " + complaint_ : "";
    return fail(status, operation + ": " + rd_kafka_err2str(code) + more, topic, remedy_of(status));
}

kafka::kafka(const char *name, const ty_kafka_options &options) : options_(options) {
    topics_[0].name = name;
    topics_[1].name = std::string(name) + "-bases";
    for (topic &one : topics_)
        one.engine = this;
    options_.replicas = options.replicas ? options.replicas : 1;
    options_.timeout_ms = options.timeout_ms ? options.timeout_ms : timeout_ms_standard;
    table_.struct_size = sizeof table_;
    table_.context = this;
    name_ = std::string("topic ") + name;
    table_.newest = [](void *context, ty_engine_log log, uint64_t *position) {
        auto &k = *static_cast<kafka *>(context);
        return k.newest(k.of(log), position);
    };
    table_.read = [](void *context, ty_engine_log log, uint64_t after, uint32_t timeout_ms,
                     ty_engine_callback *callback, void *with) {
        auto &k = *static_cast<kafka *>(context);
        return k.read(k.of(log), after, timeout_ms, callback, with);
    };
    table_.begin_session = [](void *context, ty_engine_log log, uint64_t after) {
        auto &k = *static_cast<kafka *>(context);
        return common::at_boundary("write to a topic", [&] { return k.begin_session(k.of(log), after); });
    };
    table_.append = [](void *context, ty_engine_log log, const void *bytes, size_t size) {
        auto &k = *static_cast<kafka *>(context);
        return k.append(k.of(log), bytes, size);
    };
    table_.acknowledged = [](void *context, ty_engine_log log, uint64_t known, uint32_t timeout_ms, uint64_t *count,
                             uint64_t *position) {
        auto &k = *static_cast<kafka *>(context);
        return k.acknowledged(k.of(log), known, timeout_ms, count, position);
    };
    table_.trim = [](void *context, ty_engine_log log, uint64_t before) {
        auto &k = *static_cast<kafka *>(context);
        return common::at_boundary("trim a topic", [&] { return k.trim(k.of(log), before); });
    };
}

kafka::~kafka() {
    for (topic &one : topics_) {
        one.producer.reset(); // ends its thread, which calls take_answers()
        stop(one);
        if (one.messages)
            rd_kafka_topic_destroy(one.messages);
    }
    for (client_owner *one : {&reader_, &asker_})
        end_in_time(std::move(*one));
}

// librdkafka 2.0 never ends a consumer whose topic was deleted: after ending_ms it is left to its thread. It does not
// call this library any more.
void kafka::end_in_time(client_owner client) {
    if (!client)
        return;
    auto ended = std::make_shared<std::promise<void>>();
    std::future<void> end = ended->get_future();
    std::thread([ended, client = std::move(client)]() mutable {
        client.reset();
        ended->set_value();
    }).detach();
    end.wait_for(std::chrono::milliseconds(ending_ms));
}

ty_status kafka::configure(rd_kafka_conf_t *conf, const std::map<std::string, std::string> &settings) const {
    char why[512];
    for (const auto *some : {&settings_, &settings})
        for (const auto &[setting, value] : *some)
            if (rd_kafka_conf_set(conf, setting.c_str(), value.c_str(), why, sizeof why) != RD_KAFKA_CONF_OK)
                return fail(TY_E_ARGUMENT, std::string("connect to brokers: ") + why, settings_.at("bootstrap.servers"),
                            remedy_of(TY_E_ARGUMENT));
    rd_kafka_conf_set_log_cb(conf, say_nothing);
    return TY_OK;
}

ty_status kafka::connect(client_owner *client) {
    const std::map<std::string, std::string> settings = {
        {"enable.partition.eof", "true"},        {"auto.offset.reset", "error"},
        {"fetch.error.backoff.ms", "50"},        {"fetch.wait.max.ms", "100"},
        {"queued.max.messages.kbytes", "4096"},  {"allow.auto.create.topics", "false"},
        {"isolation.level", "read_uncommitted"}, // a foreign transaction hides nothing
    };
    char why[512];
    conf_owner conf(rd_kafka_conf_new());
    if (ty_status status = configure(conf.get(), settings))
        return status;
    rd_kafka_conf_set_opaque(conf.get(), this);
    rd_kafka_conf_set_error_cb(conf.get(), [](rd_kafka_t *, int, const char *reason, void *self) {
        auto &k = *static_cast<kafka *>(self);
        const std::lock_guard<std::mutex> with(k.lock_);
        k.complaint_.assign(reason, strnlen(reason, 200));
    });
    client->reset(rd_kafka_new(RD_KAFKA_CONSUMER, conf.get(), why, sizeof why));
    if (!*client)
        return fail(TY_E_ARGUMENT, std::string("connect to brokers: ") + why, settings_.at("bootstrap.servers"),
                    remedy_of(TY_E_ARGUMENT));
    (void)conf.release(); // the client owns it now
    return TY_OK;
}

ty_status kafka::open(const char *brokers) {
    name_ += std::string(" of ") + brokers;
    table_.name = name_.c_str();
    if (options_.credentials)
        if (ty_status status = read_credentials(options_.credentials, &settings_))
            return status;
    const std::string timeout = std::to_string(std::clamp(options_.timeout_ms, timeout_ms_least, timeout_ms_most));
    settings_.insert({{"bootstrap.servers", brokers},
                      {"client.id", "taiyen"},
                      {"socket.timeout.ms", timeout},
                      {"reconnect.backoff.ms", "50"},
                      {"reconnect.backoff.max.ms", "500"},
                      {"topic.metadata.refresh.fast.interval.ms", "100"}});
    for (client_owner *one : {&reader_, &asker_})
        if (ty_status status = connect(one))
            return status;
    table_.message_bytes_max = message_bytes_most;
    for (topic &one : topics_) {
        if (ty_status status = see_to_topic(one))
            return status;
        one.messages = rd_kafka_topic_new(reader_.get(), one.name.c_str(), nullptr);
        if (!one.messages)
            return failure(rd_kafka_last_error(), "read a topic", one.name);
    }
    table_.message_bytes_max -= batch_overhead_bytes;
    return TY_OK;
}

// ---- Writing

// All messages of a session go through one producer, which keeps them in order, each once, and without gaps: it retries
// for ever, and is dropped with the session. With a time limit it would skip a message and continue with the next.
ty_status kafka::make_producer(topic &of) {
    const std::map<std::string, std::string> settings = {
        {"acks", "all"},
        {"enable.idempotence", "true"},
        {"enable.gapless.guarantee", "true"},
        {"message.timeout.ms", "0"},
        {"allow.auto.create.topics", "false"},
        {"linger.ms", "0"},
        {"retry.backoff.ms", "50"},
        {"message.max.bytes", std::to_string(table_.message_bytes_max + batch_overhead_bytes / 2)},
        {"batch.size", std::to_string(table_.message_bytes_max + batch_overhead_bytes / 2)},
    };
    char why[512];
    conf_owner conf(rd_kafka_conf_new());
    of.producer.reset();
    if (ty_status status = configure(conf.get(), settings))
        return status;
    rd_kafka_conf_set_opaque(conf.get(), &of);
    rd_kafka_conf_set_events(conf.get(), RD_KAFKA_EVENT_DR | RD_KAFKA_EVENT_ERROR);
    rd_kafka_conf_set_background_event_cb(conf.get(), take_answers);
    of.producer.reset(rd_kafka_new(RD_KAFKA_PRODUCER, conf.get(), why, sizeof why));
    if (!of.producer)
        return fail(TY_E_ARGUMENT, std::string("write to a topic: ") + why, of.name, remedy_of(TY_E_ARGUMENT));
    (void)conf.release();
    const queue_owner answers(rd_kafka_queue_get_main(of.producer.get())),
        thread(rd_kafka_queue_get_background(of.producer.get()));
    rd_kafka_queue_forward(answers.get(), thread.get());
    return TY_OK;
}

// Runs in a thread of the producer.
void kafka::take_answers(rd_kafka_t *, rd_kafka_event_t *event, void *context) {
    const event_owner owner(event);
    auto &of = *static_cast<topic *>(context);
    kafka &self = *of.engine;
    if (rd_kafka_event_type(event) == RD_KAFKA_EVENT_DR)
        while (const rd_kafka_message_t *message = rd_kafka_event_message_next(event))
            self.take_answer(of, *message);
    if (rd_kafka_event_type(event) != RD_KAFKA_EVENT_ERROR)
        return;
    const char *reason = rd_kafka_event_error_string(event);
    const std::lock_guard<std::mutex> with(self.lock_);
    self.complaint_.assign(reason, strnlen(reason, 200));
}

void kafka::take_answer(topic &of, const rd_kafka_message_t &message) {
    const std::lock_guard<std::mutex> with(lock_);
    if (message.err)
        of.session.answer(status_of(message.err), rd_kafka_err2str(message.err), 0);
    else if (message.offset < 0)
        of.session.answer(TY_E_IO, "its position is not known", 0);
    else
        of.session.answer(TY_OK, "", static_cast<uint64_t>(message.offset) + 1);
    of.producer_failed = of.producer_failed || message.err || message.offset < 0;
    changed_.notify_all();
}

// What an earlier session has in flight ends with its producer; a producer with nothing in flight is reused.
ty_status kafka::begin_session(topic &of, uint64_t after) {
    bool there = false;
    topic_settings about;
    if (ty_status status = check(of, &about, &there)) // somebody may have changed or recreated it
        return status;
    if (!there)
        return failure(RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART, "write to a topic", of.name);
    bool fresh = !of.producer || rd_kafka_outq_len(of.producer.get()) > 0;
    {
        const std::lock_guard<std::mutex> with(lock_);
        fresh = fresh || of.producer_failed;
    }
    if (fresh)
        if (ty_status status = make_producer(of))
            return status;
    const std::lock_guard<std::mutex> with(lock_);
    of.producer_failed = false;
    of.session.begin(after);
    return TY_OK;
}

ty_status kafka::append(topic &of, const void *bytes, size_t size) {
    {
        const std::lock_guard<std::mutex> with(lock_);
        if (of.session.failed())
            return of.session.report(of.name);
        of.session.sent();
    }
    const rd_kafka_resp_err_t code = rd_kafka_producev(
        of.producer.get(), RD_KAFKA_V_TOPIC(of.name.c_str()), RD_KAFKA_V_PARTITION(0),
        RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_VALUE(const_cast<void *>(bytes), size), RD_KAFKA_V_END);
    if (!code)
        return TY_OK;
    {
        const std::lock_guard<std::mutex> with(lock_);
        of.session.answer(status_of(code), rd_kafka_err2str(code), 0);
        of.producer_failed = true;
    }
    return failure(code, "write to a topic", of.name);
}

ty_status kafka::acknowledged(topic &of, uint64_t known, uint32_t timeout_ms, uint64_t *count, uint64_t *position) {
    std::unique_lock<std::mutex> with(lock_);
    changed_.wait_for(with, std::chrono::milliseconds(timeout_ms),
                      [&] { return of.session.answered() > known || of.session.failed(); });
    if (of.session.answered() <= known && of.session.failed())
        return of.session.report(of.name);
    *count = of.session.answered();
    *position = of.session.last_at();
    return TY_OK;
}

} // namespace taiyen::standby

// ---- The public functions

ty_status ty_kafka_open(const char *brokers, const char *name, const ty_kafka_options *options, ty_engine **engine) {
    using namespace taiyen;
    constexpr const char *call = "open an engine on Kafka";
    constexpr size_t name_max = 200;
    ty_kafka_options known = TY_KAFKA_OPTIONS_INIT;
    if (!brokers || !brokers[0] || !engine)
        return common::refuse_call(call, "give brokers, and a place for the engine");
    *engine = nullptr;
    if (!name || !name[0] || strlen(name) > name_max ||
        strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") != strlen(name))
        return common::refuse_call(call, "give a name of letters, digits, '-' and '_'");
    if (ty_status status = common::copy_options(options, &known, call))
        return status;
    if (known.replicas > INT16_MAX)
        return common::refuse_call(call, "ask for fewer replicas");
    return common::at_boundary(call, [&] {
        auto made = std::make_unique<standby::kafka>(name, known);
        common::kept_failure failed;
        if (ty_status status = made->open(brokers)) {
            failed.keep(status);
            made.reset();
            return failed.restore();
        }
        *engine = made.release()->table();
        return TY_OK;
    });
}

void ty_kafka_close(ty_engine *engine) {
    if (engine)
        delete static_cast<taiyen::standby::kafka *>(engine->context);
}
