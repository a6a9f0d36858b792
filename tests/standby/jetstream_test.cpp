// Goal: JetStream keeps the promises of an engine, over kills of its server too, and streams that would lose something
// by their settings are refused (ST8). Method: a real nats-server; skipped where there is none.
#include "nats_server.hpp"
#include "support.hpp"

#include <nats/nats.h>

using namespace taiyen;
using namespace taiyen::test;

namespace {

class jetstream_test : public testing::Test {
protected:
    void SetUp() override {
        if (nats_server_program().empty())
            GTEST_SKIP() << "there is no nats-server (scripts/setup test installs it)";
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
    static void append(ty_engine *engine, const std::string &text) {
        EXPECT_OK(engine->append(engine->context, TY_ENGINE_RECORDS, text.data(), text.size()));
    }
    static uint64_t newest(ty_engine *engine) {
        uint64_t position = 0;
        EXPECT_OK(engine->newest(engine->context, TY_ENGINE_RECORDS, &position));
        return position;
    }
    // Until all are acknowledged, or the run has ended.
    static ty_status answers(ty_engine *engine, uint64_t wanted) {
        uint64_t count = 0, position = 0;
        ty_status status = TY_OK;
        while (!status && count < wanted)
            status = engine->acknowledged(engine->context, TY_ENGINE_RECORDS, count, 1000, &count, &position);
        return status;
    }
    static std::vector<std::string> read(ty_engine *engine, uint64_t behind) {
        std::vector<std::string> all;
        struct reading {
            std::vector<std::string> *all;
            uint64_t at;
        } reads{&all, behind};
        while (reads.at < newest(engine))
            EXPECT_OK(engine->read(
                engine->context, TY_ENGINE_RECORDS, reads.at, 1000,
                [](const void *bytes, size_t size, uint64_t position, void *context) {
                    auto &r = *static_cast<reading *>(context);
                    EXPECT_LT(r.at, position);
                    r.at = position;
                    r.all->emplace_back(static_cast<const char *>(bytes), size);
                    return true;
                },
                &reads));
        return all;
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
    const engine_owner engine = open("back");
    for (int round = 0; round < 5; ++round) {
        const uint64_t behind = newest(engine.get());
        ASSERT_OK(engine->run(engine->context, TY_ENGINE_RECORDS, 1, behind));
        for (int n = 0; n < 20; ++n)
            append(engine.get(), std::to_string(behind + uint64_t(n)));
        ASSERT_OK(answers(engine.get(), 20));
        server.end(SIGKILL);
        EXPECT_EQ(TY_E_IO, answers(engine.get(), 21));
        ASSERT_TRUE(server.start());
        uint64_t position = 0;
        while (engine->newest(engine->context, TY_ENGINE_RECORDS, &position)) // until the connection is back
            ;
        EXPECT_EQ(behind + 20, position);
    }
    const std::vector<std::string> all = read(engine.get(), 0);
    ASSERT_EQ(100u, all.size());
    for (size_t n = 0; n < all.size(); ++n)
        EXPECT_EQ(std::to_string(n), all[n]);
}

TEST_F(jetstream_test, carries_a_standby) {
    disk files;
    temporary_folder folder;
    const engine_owner engine = open("standby");
    source_model source(44, files, published_options(files, false, 1));
    standby_of standby(folder.file("standby"), engine.get());
    source.transactions(10);
    source.close();
    {
        const publisher_owner publisher = open_publisher(source.options(), engine.get());
        ty_status status;
        do
            status = ty_publish_base(heap_path, engine.get(), &source.options(), nullptr);
        while (status == TY_E_NOT_FOUND); // until it has begun
        ASSERT_OK(status);
    }
    ASSERT_OK(standby.make());
    for (int n = 0; n < 4; ++n) {
        source.open();
        source.transactions(50);
        source.close();
        const publisher_owner publisher = open_publisher(source.options(), engine.get());
        if (n == 2) { // while it works
            server.end(SIGKILL);
            ASSERT_TRUE(server.start());
        }
        ASSERT_OK(ty_publisher_wait(publisher.get(), source.records.back()->record.sequence, patience_ms));
        standby.open();
        do
            ASSERT_OK(ty_standby_step(standby.get(), 200, &standby.report));
        while (standby.report.sequence < source.records.back()->record.sequence);
        standby.expect_like(source);
        standby.close();
    }
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
