// Goal: Kafka keeps the promises of an engine, over kills of its brokers too, and topics that would lose something by
// their settings are refused (ST8, ST10). Method: real brokers; skipped where there are none (make test-kafka).
#if TAIYEN_WITH_KAFKA
#include "engine_test.hpp"
#include "kafka_server.hpp"

#include <librdkafka/rdkafka.h>

using namespace taiyen;
using namespace taiyen::test;

namespace {

struct engine_end {
    void operator()(ty_engine *engine) const { ty_kafka_close(engine); }
};
using engine_owner = std::unique_ptr<ty_engine, engine_end>;

// Until the brokers are ready.
engine_owner open_kafka(const kafka_server &server, const char *name,
                        const ty_kafka_options &options = TY_KAFKA_OPTIONS_INIT) {
    ty_engine *engine = nullptr;
    ty_status status;
    do
        status = ty_kafka_open(server.brokers().c_str(), name, &options, &engine);
    while (status == TY_E_IO);
    EXPECT_OK(status);
    return engine_owner(engine);
}

class kafka_test : public engine_test {
protected:
    // One broker for all tests but those that kill it.
    static void SetUpTestSuite() {
        if (kafka_server::is_there()) {
            shared = std::make_unique<kafka_server>();
            started = shared->start();
        }
    }
    static void TearDownTestSuite() { shared.reset(); }
    void SetUp() override {
        if (!kafka_server::is_there())
            GTEST_SKIP() << kafka_server::why_not;
        ASSERT_TRUE(started);
    }
    static inline std::unique_ptr<kafka_server> shared;
    static inline bool started = false;
};

TEST_F(kafka_test, takes_what_stands_in_its_place_and_nothing_else) {
    const engine_owner one = open_kafka(*shared, "places"), other = open_kafka(*shared, "places");
    EXPECT_EQ(0u, newest(one.get()));
    ASSERT_OK(one->begin_session(one->context, TY_ENGINE_RECORDS, 0));
    for (int n = 0; n < 200; ++n)
        append(one.get(), "one " + std::to_string(n));
    ASSERT_OK(answers(one.get(), 200));
    EXPECT_EQ(200u, newest(other.get()));
    // Another writer, which does not know the newest message; and the first one after it.
    ASSERT_OK(other->begin_session(other->context, TY_ENGINE_RECORDS, 0));
    append(other.get(), "not");
    EXPECT_EQ(TY_E_MISMATCH, answers(other.get(), 1));
    ASSERT_OK(other->begin_session(other->context, TY_ENGINE_RECORDS, 199));
    append(other.get(), "not either");
    EXPECT_EQ(TY_E_MISMATCH, answers(other.get(), 1));
    ASSERT_OK(other->begin_session(other->context, TY_ENGINE_RECORDS, newest(other.get())));
    append(other.get(), "other");
    ASSERT_OK(answers(other.get(), 1));
    append(one.get(), "late");
    EXPECT_EQ(TY_E_MISMATCH, answers(one.get(), 201));
    ASSERT_OK(other->begin_session(other->context, TY_ENGINE_RECORDS, TY_ENGINE_ANYWHERE));
    append(other.get(), "anywhere");
    ASSERT_OK(answers(other.get(), 1));
    const std::vector<std::string> all = read(one.get(), 0);
    ASSERT_EQ(205u, all.size()); // what was refused stands there, and is void
    EXPECT_EQ("one 0", all[0]);
    EXPECT_EQ("not", all[200]);
    EXPECT_EQ("other", all[202]);
    EXPECT_EQ("late", all[203]);
    EXPECT_EQ("anywhere", all[204]);
    EXPECT_EQ(105u, read(other.get(), 100).size());
    for (uint64_t none : {0, 1})
        ASSERT_OK(one->trim(one->context, TY_ENGINE_RECORDS, none));
    EXPECT_EQ(205u, read(other.get(), 0).size());
    ASSERT_OK(one->trim(one->context, TY_ENGINE_RECORDS, 150));
    EXPECT_EQ(56u, read(other.get(), 3).size());
    EXPECT_EQ(205u, newest(other.get()));
    const auto take = [](const void *, size_t, uint64_t, void *) { return true; };
    EXPECT_EQ(TY_E_DAMAGED, one->read(one->context, TY_ENGINE_RECORDS, 206, 100, take, nullptr)); // it ends before
}

TEST_F(kafka_test, takes_messages_of_any_size) {
    const engine_owner engine = open_kafka(*shared, "sizes");
    ASSERT_OK(engine->begin_session(engine->context, TY_ENGINE_BASES, 0));
    uint64_t count = 0, position = 0, sent = 0;
    for (size_t size : {size_t{1}, size_t{4096}, engine->message_bytes_max / 2, engine->message_bytes_max,
                        engine->message_bytes_max - 1})
        for (int n = 0; n < 3; ++n, ++sent) {
            const std::string message(size, 'x');
            ASSERT_OK(engine->append(engine->context, TY_ENGINE_BASES, message.data(), message.size()));
        }
    while (count < sent)
        ASSERT_OK(engine->acknowledged(engine->context, TY_ENGINE_BASES, count, 1000, &count, &position));
    EXPECT_EQ(sent, position);
    EXPECT_EQ(0u, newest(engine.get()));
}

TEST_F(kafka_test, goes_on_when_its_broker_is_back) {
    kafka_server server;
    ASSERT_TRUE(server.start());
    goes_on(server, open_kafka(server, "back").get());
}

// What is asked comes to an end, and what was sent gets there later, as an earlier session's messages may.
TEST_F(kafka_test, a_broker_that_hangs_is_reported) {
    kafka_server server;
    ASSERT_TRUE(server.start());
    ty_kafka_options options = TY_KAFKA_OPTIONS_INIT;
    options.timeout_ms = 1000;
    const engine_owner engine = open_kafka(server, "hangs", options);
    const auto take = [](const void *, size_t, uint64_t, void *) { return true; };
    ASSERT_OK(engine->begin_session(engine->context, TY_ENGINE_RECORDS, newest(engine.get())));
    append(engine.get(), "one");
    ASSERT_OK(answers(engine.get(), 1));
    server.send(0, SIGSTOP);
    uint64_t position = 0, count = 0;
    append(engine.get(), "two");
    EXPECT_OK(engine->acknowledged(engine->context, TY_ENGINE_RECORDS, 1, 100, &count, &position));
    EXPECT_EQ(1u, count);
    EXPECT_EQ(TY_E_IO, engine->newest(engine->context, TY_ENGINE_RECORDS, &position));
    EXPECT_EQ(TY_E_IO, engine->read(engine->context, TY_ENGINE_RECORDS, 0, 100, take, nullptr));
    EXPECT_EQ(TY_E_IO, engine->trim(engine->context, TY_ENGINE_RECORDS, 2));
    server.send(0, SIGCONT);
    while (engine->newest(engine->context, TY_ENGINE_RECORDS, &position) || position < 2)
        ;
    EXPECT_EQ(2u, position);
}

TEST_F(kafka_test, carries_a_standby) {
    kafka_server server;
    ASSERT_TRUE(server.start());
    carries(server, open_kafka(server, "standby").get());
}

struct topic_setting {
    const char *name;
    const char *value;
};

// A client of the test's own, for what an engine does not do.
class client {
public:
    explicit client(const kafka_server &server, const char *transactions = nullptr) {
        char why[512];
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        EXPECT_EQ(RD_KAFKA_CONF_OK,
                  rd_kafka_conf_set(conf, "bootstrap.servers", server.brokers().c_str(), why, sizeof why));
        if (transactions) {
            EXPECT_EQ(RD_KAFKA_CONF_OK, rd_kafka_conf_set(conf, "transactional.id", transactions, why, sizeof why));
        }
        own = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof why);
        queue = rd_kafka_queue_new(own);
    }
    ~client() {
        rd_kafka_queue_destroy(queue);
        rd_kafka_destroy(own);
    }
    client(const client &) = delete;
    client &operator=(const client &) = delete;

    void make(const std::string &topic, int partitions, const std::vector<topic_setting> &settings) {
        char why[512];
        rd_kafka_NewTopic_t *one = rd_kafka_NewTopic_new(topic.c_str(), partitions, 1, why, sizeof why);
        for (const topic_setting &each : settings)
            rd_kafka_NewTopic_set_config(one, each.name, each.value);
        rd_kafka_CreateTopics(own, &one, 1, nullptr, queue);
        expect_done();
        rd_kafka_NewTopic_destroy(one);
    }
    void remove_all(const char *topic, int64_t before) {
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
        rd_kafka_topic_partition_list_add(list, topic, 0)->offset = before;
        rd_kafka_DeleteRecords_t *records = rd_kafka_DeleteRecords_new(list);
        rd_kafka_DeleteRecords(own, &records, 1, nullptr, queue);
        expect_done();
        rd_kafka_DeleteRecords_destroy(records);
        rd_kafka_topic_partition_list_destroy(list);
    }
    void remove(const char *topic) {
        rd_kafka_DeleteTopic_t *one = rd_kafka_DeleteTopic_new(topic);
        rd_kafka_DeleteTopics(own, &one, 1, nullptr, queue);
        expect_done();
        rd_kafka_DeleteTopic_destroy(one);
    }
    void transaction(const char *topic) {
        ASSERT_EQ(nullptr, rd_kafka_init_transactions(own, 60'000));
        ASSERT_EQ(nullptr, rd_kafka_begin_transaction(own));
        ASSERT_EQ(RD_KAFKA_RESP_ERR_NO_ERROR,
                  rd_kafka_producev(own, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_PARTITION(0),
                                    RD_KAFKA_V_VALUE(const_cast<char *>(topic), 4), RD_KAFKA_V_END));
        ASSERT_EQ(nullptr, rd_kafka_commit_transaction(own, 60'000));
    }

private:
    void expect_done() {
        rd_kafka_event_t *event = rd_kafka_queue_poll(queue, -1);
        EXPECT_EQ(RD_KAFKA_RESP_ERR_NO_ERROR, rd_kafka_event_error(event)) << rd_kafka_event_error_string(event);
        rd_kafka_event_destroy(event);
    }
    rd_kafka_t *own;
    rd_kafka_queue_t *queue;
};

TEST_F(kafka_test, topics_that_may_lose_something_are_refused) {
    const engine_owner fine = open_kafka(*shared, "fine"); // as it makes them, they are taken
    client other(*shared);
    const std::vector<topic_setting> sound = {{"retention.ms", "-1"}, {"cleanup.policy", "delete"}};
    const std::vector<topic_setting> wrong[] = {{{"retention.ms", "-1"}, {"cleanup.policy", "compact"}},
                                                {{"retention.ms", "86400000"}},
                                                {}, // a week
                                                {{"retention.ms", "-1"}, {"retention.bytes", "1000000"}},
                                                {{"retention.ms", "-1"}, {"unclean.leader.election.enable", "true"}},
                                                {{"retention.ms", "-1"}, {"max.message.bytes", "4000"}}};
    int number = 0;
    const auto opens = [&](int partitions, const std::vector<topic_setting> &settings, bool flushed = false) {
        const std::string name = "given-" + std::to_string(number++);
        ty_kafka_options options = TY_KAFKA_OPTIONS_INIT;
        options.flushed = flushed;
        other.make(name, partitions, settings);
        ty_engine *engine = nullptr;
        const ty_status status = ty_kafka_open(shared->brokers().c_str(), name.c_str(), &options, &engine);
        ty_kafka_close(engine);
        return status;
    };
    EXPECT_OK(opens(1, sound));
    EXPECT_EQ(TY_E_UNSUPPORTED, opens(3, sound));
    EXPECT_EQ(TY_E_UNSUPPORTED, opens(1, sound, true));
    for (const auto &settings : wrong)
        EXPECT_EQ(TY_E_UNSUPPORTED, opens(1, settings));
    ty_kafka_options options = TY_KAFKA_OPTIONS_INIT;
    ty_engine *engine = nullptr;
    options.replicas = 3; // of one broker
    EXPECT_EQ(TY_E_UNSUPPORTED, ty_kafka_open(shared->brokers().c_str(), "fine", &options, &engine));
    EXPECT_EQ(TY_E_UNSUPPORTED, ty_kafka_open(shared->brokers().c_str(), "many", &options, &engine)) << ty_error_text();
    options.replicas = 0;
    options.flushed = true;
    ty_kafka_close(open_kafka(*shared, "flushed", options).release());
}

// And made anew by somebody else, while an engine has read it and written to it, which ends all the same.
TEST_F(kafka_test, a_topic_that_was_deleted_is_not_taken_for_the_one_before) {
    const engine_owner engine = open_kafka(*shared, "deleted");
    ASSERT_OK(engine->begin_session(engine->context, TY_ENGINE_RECORDS, 0));
    append(engine.get(), "one");
    ASSERT_OK(answers(engine.get(), 1));
    EXPECT_EQ(1u, read(engine.get(), 0).size());
    client other(*shared);
    other.remove("deleted");
    ty_status status = TY_OK;
    while (status == TY_OK) // a broker reports it in its own time
        status = engine->begin_session(engine->context, TY_ENGINE_RECORDS, 1);
    EXPECT_EQ(TY_E_IO, status);
    other.make("deleted", 1, {});
    while (status == TY_E_IO)
        status = engine->begin_session(engine->context, TY_ENGINE_RECORDS, 0);
    EXPECT_EQ(TY_E_UNSUPPORTED, status) << ty_error_text();
}

// By somebody else's hand: the places of the newest messages hold nothing.
TEST_F(kafka_test, newest_messages_that_were_removed_are_reported) {
    const auto take = [](const void *, size_t, uint64_t, void *) { return true; };
    const engine_owner engine = open_kafka(*shared, "removed"), marked = open_kafka(*shared, "marked");
    uint64_t position = 0;
    ASSERT_OK(engine->begin_session(engine->context, TY_ENGINE_RECORDS, 0));
    for (int n = 0; n < 3; ++n)
        append(engine.get(), "one");
    ASSERT_OK(answers(engine.get(), 3));
    client(*shared).remove_all("removed", 3);
    EXPECT_EQ(TY_E_DAMAGED, engine->newest(engine->context, TY_ENGINE_RECORDS, &position));
    client(*shared, "someone").transaction("marked"); // its end is no message, and has a place
    while (newest(marked.get()) < 2)                  // a broker puts it there in its own time
        ;
    EXPECT_EQ(TY_E_DAMAGED, marked->read(marked->context, TY_ENGINE_RECORDS, 1, 1000, take, nullptr));
    disk files;
    source_model source(45, files, published_options(files, false, 1));
    source.transactions(1);
    source.close();
    for (const engine_owner *each : {&engine, &marked}) {
        const publisher_owner publisher = open_publisher(source.options(), each->get());
        EXPECT_EQ(TY_E_DAMAGED, ty_publisher_wait(publisher.get(), 1, timeout_ms));
    }
}

// Three brokers, of which one after the other is killed, and then all: what two have acknowledged is there.
TEST_F(kafka_test, a_majority_goes_on) {
    kafka_server server(3);
    ASSERT_TRUE(server.start());
    ty_kafka_options options = TY_KAFKA_OPTIONS_INIT;
    options.replicas = 3;
    options.flushed = true;
    ty_engine *opened = nullptr;
    ty_status status; // until all brokers are there
    while ((status = ty_kafka_open(server.brokers().c_str(), "three", &options, &opened)) == TY_E_IO ||
           status == TY_E_UNSUPPORTED)
        ;
    ASSERT_OK(status);
    const engine_owner engine(opened);
    uint64_t sent = 0;
    ASSERT_OK(engine->begin_session(engine->context, TY_ENGINE_RECORDS, 0));
    for (size_t n = 0; n < 3; ++n) {
        for (int m = 0; m < 20; ++m)
            append(engine.get(), std::to_string(sent++));
        server.end_one(n, SIGKILL);
        for (int m = 0; m < 20; ++m)
            append(engine.get(), std::to_string(sent++));
        ASSERT_OK(answers(engine.get(), sent));
        ASSERT_TRUE(server.start_one(n));
    }
    server.end(SIGKILL);
    ASSERT_TRUE(server.start());
    uint64_t position = 0;
    while (engine->newest(engine->context, TY_ENGINE_RECORDS, &position) == TY_E_IO)
        ;
    EXPECT_EQ(sent, position);
    const std::vector<std::string> all = read(engine.get(), 0);
    ASSERT_EQ(sent, all.size());
    for (size_t n = 0; n < all.size(); ++n)
        EXPECT_EQ(std::to_string(n), all[n]);
}

} // namespace
#endif
