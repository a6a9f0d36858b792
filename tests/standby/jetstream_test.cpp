// Goal: JetStream keeps the promises of an engine, over kills of its server too, and streams that would lose something
// by their settings are refused (ST8). Method: a real nats-server; skipped where there is none.
#if TAIYEN_WITH_NATS
#include "engine_test.hpp"
#include "nats_server.hpp"

#include <nats/nats.h>

using namespace taiyen;
using namespace taiyen::test;

namespace {

class jetstream_test : public engine_test {
protected:
    void SetUp() override {
        if (!nats_server::is_there())
            GTEST_SKIP() << nats_server::why_not;
        ASSERT_TRUE(server.start());
    }
    struct engine_end {
        void operator()(ty_engine *engine) const { ty_jetstream_close(engine); }
    };
    using engine_owner = std::unique_ptr<ty_engine, engine_end>;
    engine_owner open(const char *name) {
        ty_engine *engine = nullptr;
        EXPECT_OK(ty_jetstream_open(server.url().c_str(), name, nullptr, &engine));
        return engine_owner(engine);
    }
    nats_server server;
};

TEST_F(jetstream_test, takes_what_stands_in_its_place_and_nothing_else) {
    const engine_owner one = open("places"), other = open("places");
    uint64_t last = 0;
    EXPECT_EQ(0u, newest(one.get()));
    ASSERT_OK(one->run(one->context, TY_ENGINE_RECORDS, 1, 0));
    for (int n = 0; n < 200; ++n)
        append(one.get(), "one " + std::to_string(n));
    ASSERT_OK(answers(one.get(), 200));
    // Another writer, which does not know the newest message; and the first one behind it.
    ASSERT_OK(other->run(other->context, TY_ENGINE_RECORDS, 1, 0));
    append(other.get(), "not");
    EXPECT_EQ(TY_E_MISMATCH, answers(other.get(), 1));
    ASSERT_OK(other->run(other->context, TY_ENGINE_RECORDS, 1, 199));
    append(other.get(), "not");
    EXPECT_EQ(TY_E_MISMATCH, answers(other.get(), 1));
    ASSERT_OK(other->run(other->context, TY_ENGINE_RECORDS, 2, 200));
    append(other.get(), "other");
    ASSERT_OK(answers(other.get(), 1));
    append(one.get(), "late");
    const std::string later = "later"; // the answer may be there before it
    (void)one->append(one->context, TY_ENGINE_RECORDS, later.data(), later.size());
    EXPECT_EQ(TY_E_MISMATCH, answers(one.get(), 202));
    ASSERT_OK(one->newest(one->context, TY_ENGINE_RECORDS, &last)); // behind all that was sent
    const std::vector<std::string> all = read(one.get(), 0);
    ASSERT_EQ(last, all.size());
    ASSERT_LE(201u, last);
    EXPECT_EQ("one 0", all[0]);
    EXPECT_EQ("other", all[200]);
    if (last == 202) { // it found the place that it expects: messages say themselves what they are behind
        EXPECT_EQ("later", all[201]);
    }
    EXPECT_EQ(last - 100, read(other.get(), 100).size());
    for (uint64_t none : {0, 1})
        ASSERT_OK(one->trim(one->context, TY_ENGINE_RECORDS, none));
    EXPECT_EQ(last, read(other.get(), 0).size());
    ASSERT_OK(one->trim(one->context, TY_ENGINE_RECORDS, 150));
    EXPECT_EQ(last - 149, read(other.get(), 3).size());
    EXPECT_EQ(last, newest(other.get()));
}

TEST_F(jetstream_test, goes_on_when_its_server_is_back) {
    goes_on(server, open("back").get());
}

TEST_F(jetstream_test, carries_a_standby) {
    carries(server, open("standby").get());
}

struct setting {
    const char *name;
    void (*set)(jsStreamConfig &);
};

TEST_F(jetstream_test, streams_that_may_lose_something_are_refused) {
    const setting settings[] = {
        {"memory", [](jsStreamConfig &c) { c.Storage = js_MemoryStorage; }},
        {"age", [](jsStreamConfig &c) { c.MaxAge = int64_t{3600} * 1'000'000'000; }},
        {"count", [](jsStreamConfig &c) { c.MaxMsgs = 1000; }},
        {"bytes", [](jsStreamConfig &c) { c.MaxBytes = 1 << 20; }},
        {"subject", [](jsStreamConfig &c) { c.MaxMsgsPerSubject = 5; }},
        {"queue", [](jsStreamConfig &c) { c.Retention = js_WorkQueuePolicy; }},
        {"interest", [](jsStreamConfig &c) { c.Retention = js_InterestPolicy; }},
        {"silent", [](jsStreamConfig &c) { c.NoAck = true; }},
    };
    natsConnection *connection = nullptr;
    jsCtx *js = nullptr;
    ASSERT_EQ(NATS_OK, natsConnection_ConnectTo(&connection, server.url().c_str()));
    ASSERT_EQ(NATS_OK, natsConnection_JetStream(&js, connection, nullptr));
    for (const setting &one : settings) {
        const std::string subject = std::string("taiyen.") + one.name;
        const char *subjects[] = {subject.c_str()};
        jsStreamConfig config;
        jsStreamConfig_Init(&config);
        config.Name = one.name;
        config.Subjects = subjects;
        config.SubjectsLen = 1;
        one.set(config);
        ASSERT_EQ(NATS_OK, js_AddStream(nullptr, js, &config, nullptr, nullptr)) << one.name;
        ty_engine *engine = nullptr;
        EXPECT_EQ(TY_E_UNSUPPORTED, ty_jetstream_open(server.url().c_str(), one.name, nullptr, &engine)) << one.name;
        EXPECT_EQ(nullptr, engine);
    }
    const char *others[] = {"taiyen.wide", "taiyen.wider"};
    jsStreamConfig wide;
    jsStreamConfig_Init(&wide);
    wide.Name = "wide";
    wide.Subjects = others;
    wide.SubjectsLen = 2;
    ASSERT_EQ(NATS_OK, js_AddStream(nullptr, js, &wide, nullptr, nullptr));
    ty_engine *engine = nullptr;
    EXPECT_EQ(TY_E_UNSUPPORTED, ty_jetstream_open(server.url().c_str(), "wide", nullptr, &engine));
    jsCtx_Destroy(js);
    natsConnection_Destroy(connection);
    // One that refuses what has no room loses nothing; and then says so.
    const engine_owner fine = open("fine");
    ty_jetstream_options options = TY_JETSTREAM_OPTIONS_INIT;
    options.replicas = 3;
    EXPECT_EQ(TY_E_UNSUPPORTED, ty_jetstream_open(server.url().c_str(), "fine", &options, &engine));
}

// By somebody else's hand: the stream's place of its newest message stays, and nothing is there.
TEST_F(jetstream_test, newest_messages_that_were_removed_are_told) {
    natsConnection *connection = nullptr;
    jsCtx *js = nullptr;
    ASSERT_EQ(NATS_OK, natsConnection_ConnectTo(&connection, server.url().c_str()));
    ASSERT_EQ(NATS_OK, natsConnection_JetStream(&js, connection, nullptr));
    const char *subjects[] = {"taiyen.removed"};
    jsStreamConfig config; // a stream that the engine makes refuses that single messages are deleted
    jsStreamConfig_Init(&config);
    config.Name = "removed";
    config.Subjects = subjects;
    config.SubjectsLen = 1;
    ASSERT_EQ(NATS_OK, js_AddStream(nullptr, js, &config, nullptr, nullptr));
    const engine_owner engine = open("removed");
    ASSERT_OK(engine->run(engine->context, TY_ENGINE_RECORDS, 1, 0));
    for (int n = 0; n < 3; ++n)
        append(engine.get(), "one");
    ASSERT_OK(answers(engine.get(), 3));
    const auto take = [](const void *, size_t, uint64_t, void *) { return true; };
    ASSERT_EQ(NATS_OK, js_DeleteMsg(js, "removed", 3, nullptr, nullptr));
    EXPECT_EQ(TY_E_DAMAGED, engine->read(engine->context, TY_ENGINE_RECORDS, 2, 100, take, nullptr));
    ASSERT_EQ(NATS_OK, js_PurgeStream(js, "removed", nullptr, nullptr));
    uint64_t position = 0;
    EXPECT_EQ(TY_E_DAMAGED, engine->newest(engine->context, TY_ENGINE_RECORDS, &position));
    disk files;
    source_model source(45, files, published_options(files, false, 1));
    source.transactions(1);
    source.close();
    const publisher_owner publisher = open_publisher(source.options(), engine.get());
    EXPECT_EQ(TY_E_DAMAGED, ty_publisher_wait(publisher.get(), 1, patience_ms));
    jsCtx_Destroy(js);
    natsConnection_Destroy(connection);
}

TEST(jetstream_arguments, are_checked) {
    ty_engine *engine = nullptr;
    EXPECT_EQ(TY_E_ARGUMENT, ty_jetstream_open(nullptr, "name", nullptr, &engine));
    EXPECT_EQ(TY_E_ARGUMENT, ty_jetstream_open("nats://127.0.0.1:1", "a.b", nullptr, &engine));
    EXPECT_EQ(TY_E_ARGUMENT, ty_jetstream_open("nats://127.0.0.1:1", "", nullptr, &engine));
    EXPECT_EQ(TY_E_ARGUMENT, ty_jetstream_open("nats://127.0.0.1:1", "name", nullptr, nullptr));
    EXPECT_EQ(TY_E_IO, ty_jetstream_open("nats://127.0.0.1:1", "name", nullptr, &engine)); // nobody is there
    EXPECT_EQ(nullptr, engine);
}

} // namespace
#endif
