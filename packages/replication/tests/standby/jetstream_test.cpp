// Goal: JetStream keeps the promises of an engine, over kills of its server too, and streams that would lose something
// by their settings are refused (ST8). Method: a real nats-server; skipped where there is none.
#if TAIYEN_WITH_NATS
#include "engine_test.hpp"
#include "nats_server.hpp"
#include "packages/replication/standby/broken_pipe.hpp"

#include <filesystem>
#include <fstream>
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
    ASSERT_OK(one->begin_session(one->context, TY_ENGINE_RECORDS, 0));
    for (int n = 0; n < 200; ++n)
        append(one.get(), "one " + std::to_string(n));
    ASSERT_OK(answers(one.get(), 200));
    // Another writer, which does not know the newest message; and the first one after it.
    ASSERT_OK(other->begin_session(other->context, TY_ENGINE_RECORDS, 0));
    append(other.get(), "not");
    EXPECT_EQ(TY_E_MISMATCH, answers(other.get(), 1));
    ASSERT_OK(other->begin_session(other->context, TY_ENGINE_RECORDS, 199));
    append(other.get(), "not");
    EXPECT_EQ(TY_E_MISMATCH, answers(other.get(), 1));
    ASSERT_OK(other->begin_session(other->context, TY_ENGINE_RECORDS, 200));
    append(other.get(), "other");
    ASSERT_OK(answers(other.get(), 1));
    append(one.get(), "late");
    const std::string later = "later"; // the answer may be there before it
    (void)one->append(one->context, TY_ENGINE_RECORDS, later.data(), later.size());
    EXPECT_EQ(TY_E_MISMATCH, answers(one.get(), 202));
    ASSERT_OK(one->newest(one->context, TY_ENGINE_RECORDS, &last)); // after all that was sent
    const std::vector<std::string> all = read(one.get(), 0);
    ASSERT_EQ(last, all.size());
    ASSERT_LE(201u, last);
    EXPECT_EQ("one 0", all[0]);
    EXPECT_EQ("other", all[200]);
    if (last == 202) { // it found the place that it expects: messages say themselves what they are after
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

TEST_F(jetstream_test, goes_on_at_another_server_of_the_list) {
    const int first = free_port(), second = free_port();
    const std::string host = "nats://127.0.0.1:",
                      urls = host + std::to_string(first) + ", " + host + std::to_string(second);
    server.end(SIGTERM);
    server.use(second); // nobody is at the first one
    ASSERT_TRUE(server.start());
    ty_engine *opened = nullptr;
    ASSERT_OK(ty_jetstream_open(urls.c_str(), "list", nullptr, &opened)) << ty_error_text();
    const engine_owner engine(opened);
    ASSERT_OK(engine->begin_session(engine->context, TY_ENGINE_RECORDS, 0));
    append(engine.get(), "one");
    ASSERT_OK(answers(engine.get(), 1));
    server.end(SIGKILL);
    server.use(first); // with the same streams
    ASSERT_TRUE(server.start());
    uint64_t position = 0;
    while (engine->newest(engine->context, TY_ENGINE_RECORDS, &position)) // until the connection is there
        ;
    EXPECT_EQ(1u, position);
    EXPECT_EQ(std::vector<std::string>{"one"}, read(engine.get(), 0));
    EXPECT_EQ(TY_E_ARGUMENT, ty_jetstream_open((urls + ",").c_str(), "list", nullptr, &opened));
}

// One that hangs, or is cut off, closes no connection.
TEST_F(jetstream_test, leaves_a_server_that_does_not_answer) {
    nats_server other;
    ASSERT_TRUE(other.start());
    ty_jetstream_options options = TY_JETSTREAM_OPTIONS_INIT;
    options.timeout_ms = 500;
    ty_engine *opened = nullptr;
    for (const nats_server *one : {&server, &other}) { // both have the streams
        ASSERT_OK(ty_jetstream_open(one->url().c_str(), "hangs", &options, &opened));
        ty_jetstream_close(opened);
    }
    const std::string urls = server.url() + "," + other.url();
    ASSERT_OK(ty_jetstream_open(urls.c_str(), "hangs", &options, &opened)) << ty_error_text();
    const engine_owner engine(opened);
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
    uint64_t position = 1;
    for (const nats_server *one : {&server, &other}) // which of the two it uses is chance
        one->stop();
    ASSERT_EQ(TY_E_IO, engine->newest(engine->context, TY_ENGINE_RECORDS, &position));
    server.go_on(); // if it is that one, it answers; then the other one
    ty_status status = TY_E_IO;
    while (status && std::chrono::steady_clock::now() < deadline)
        status = engine->newest(engine->context, TY_ENGINE_RECORDS, &position);
    EXPECT_OK(status);
    other.go_on();
    server.stop();
    for (status = TY_E_IO; status && std::chrono::steady_clock::now() < deadline;)
        status = engine->newest(engine->context, TY_ENGINE_RECORDS, &position);
    EXPECT_OK(status);
    EXPECT_EQ(0u, position);
}

// Three of them, of which each but one is killed in turn, and then all.
TEST_F(jetstream_test, goes_on_in_a_cluster) {
    constexpr int count = 3;
    nats_server nodes[count];
    int routes[count];
    std::string urls, all_routes;
    for (int n = 0; n < count; ++n) {
        routes[n] = free_port();
        all_routes += (n ? ", " : "") + ("nats://127.0.0.1:" + std::to_string(routes[n]));
    }
    for (int n = 0; n < count; ++n) {
        nodes[n].use(free_port(), "server_name: n" + std::to_string(n) + "\ncluster { name: c, listen: \"127.0.0.1:" +
                                      std::to_string(routes[n]) + "\", routes: [" + all_routes + "] }\n");
        urls += (n ? "," : "") + nodes[n].url();
    }
    for (nats_server &one : nodes)
        ASSERT_TRUE(one.start());
    ty_jetstream_options options = TY_JETSTREAM_OPTIONS_INIT;
    options.replicas = count;
    options.timeout_ms = 2000;
    ty_engine *opened = nullptr;
    ty_status status;
    do
        status = ty_jetstream_open(urls.c_str(), "cluster", &options, &opened);
    while (status == TY_E_IO); // it has no leader yet
    ASSERT_OK(status) << ty_error_text();
    const engine_owner engine(opened);
    ASSERT_NE(nullptr, engine->warning); // Debian's are of 2.9
    EXPECT_NE(nullptr, strstr(engine->warning, "2.10"));
    const auto put = [&] { // until it is acknowledged
        uint64_t after = 0;
        do {
            while (engine->newest(engine->context, TY_ENGINE_RECORDS, &after))
                ;
            ASSERT_OK(engine->begin_session(engine->context, TY_ENGINE_RECORDS, after));
            const std::string text = "one";
            status = engine->append(engine->context, TY_ENGINE_RECORDS, text.data(), text.size());
            uint64_t acknowledged = 0, position = 0;
            if (!status)
                status = engine->acknowledged(engine->context, TY_ENGINE_RECORDS, 0, 2000, &acknowledged, &position);
            if (!status && !acknowledged)
                status = TY_E_IO;
        } while (status);
    };
    put();
    for (nats_server &one : nodes) {
        one.end(SIGKILL);
        put();
        ASSERT_TRUE(one.start());
    }
    put();
    EXPECT_LE(5u, newest(engine.get()));
}

// libnats has it ignored for the whole process, and its writes need not raise it: with TLS they do.
TEST_F(jetstream_test, sigpipe_is_the_programs) {
    struct sigaction before {
    }, after{};
    signal(SIGPIPE, SIG_DFL);
    const engine_owner engine = open("pipe");
    ASSERT_EQ(0, sigaction(SIGPIPE, nullptr, &after));
    EXPECT_EQ(SIG_DFL, after.sa_handler);
    sigset_t mask;
    ASSERT_EQ(0, pthread_sigmask(SIG_BLOCK, nullptr, &mask));
    EXPECT_EQ(0, sigismember(&mask, SIGPIPE));
    int threads = 0, blocked = 0;
    for (const auto &task : std::filesystem::directory_iterator("/proc/self/task")) {
        if (task.path().filename() == std::to_string(getpid()))
            continue;
        std::ifstream status(task.path() / "status");
        for (std::string timeline; std::getline(status, timeline);)
            if (timeline.rfind("SigBlk:", 0) == 0)
                blocked += (std::stoull(timeline.substr(7), nullptr, 16) >> (SIGPIPE - 1)) % 2 == 1;
        threads += 1;
    }
    EXPECT_LT(2, threads);
    EXPECT_EQ(threads, blocked);
    server.end(SIGKILL);
    for (int n = 0; n < 20; ++n) {
        const std::string text(1000, 'x');
        (void)engine->append(engine->context, TY_ENGINE_RECORDS, text.data(), text.size());
    }
    ASSERT_EQ(0, sigaction(SIGPIPE, nullptr, &before));
    EXPECT_EQ(SIG_DFL, before.sa_handler);
}

TEST(pipe_guard, takes_away_what_was_raised_and_no_more) {
    signal(SIGPIPE, SIG_DFL);
    int ends[2];
    ASSERT_EQ(0, pipe(ends));
    close(ends[0]);
    sigset_t pending;
    {
        const standby::pipe_guard guard;
        EXPECT_EQ(-1, write(ends[1], "x", 1)); // which would end the process
    }
    ASSERT_EQ(0, sigpending(&pending));
    EXPECT_EQ(0, sigismember(&pending, SIGPIPE));
    sigset_t set, before;
    sigemptyset(&set);
    sigaddset(&set, SIGPIPE);
    ASSERT_EQ(0, pthread_sigmask(SIG_BLOCK, &set, &before));
    ASSERT_EQ(0, raise(SIGPIPE));
    {
        const standby::pipe_guard guard;
        EXPECT_EQ(-1, write(ends[1], "x", 1));
    }
    ASSERT_EQ(0, sigpending(&pending));
    EXPECT_EQ(1, sigismember(&pending, SIGPIPE)); // the program's own
    int taken = 0;
    ASSERT_EQ(0, sigwait(&set, &taken));
    ASSERT_EQ(0, pthread_sigmask(SIG_SETMASK, &before, nullptr));
    close(ends[1]);
}

// It keeps what it has, and takes no more; a thread that waits is notified, and continues once there is room.
TEST_F(jetstream_test, a_full_stream_is_reported_as_that) {
    natsConnection *connection = nullptr;
    jsCtx *js = nullptr;
    ASSERT_EQ(NATS_OK, natsConnection_ConnectTo(&connection, server.url().c_str()));
    ASSERT_EQ(NATS_OK, natsConnection_JetStream(&js, connection, nullptr));
    const char *subjects[] = {"taiyen.full"};
    jsStreamConfig config;
    jsStreamConfig_Init(&config);
    config.Name = "full";
    config.Subjects = subjects;
    config.SubjectsLen = 1;
    config.MaxBytes = 1000;
    config.Discard = js_DiscardNew;
    ASSERT_EQ(NATS_OK, js_AddStream(nullptr, js, &config, nullptr, nullptr));
    const engine_owner engine = open("full");
    disk files;
    source_model source(48, files, published_options(files, false, 1));
    source.transactions(5);
    source.close();
    {
        const publisher_owner publisher = open_publisher(source.options(), engine.get());
        ty_status status;
        do
            status = ty_publisher_wait(publisher.get(), 1, 100);
        while (status == TY_E_BUSY && !report_of(publisher.get()).status);
        EXPECT_EQ(TY_E_SPACE, report_of(publisher.get()).status);
        EXPECT_EQ(TY_E_BUSY, ty_publisher_wait(publisher.get(), 1, 100));
        EXPECT_NE(nullptr, strstr(ty_error_text(), "maximum bytes exceeded")) << ty_error_text();
        EXPECT_EQ(nullptr, strstr(ty_error_text(), "in use")) << ty_error_text();
        config.MaxBytes = -1;
        ASSERT_EQ(NATS_OK, js_UpdateStream(nullptr, js, &config, nullptr, nullptr));
        do
            status = ty_publish_base(heap_path, engine.get(), &source.options(), nullptr);
        while (status == TY_E_NOT_FOUND);
        ASSERT_OK(status);
        EXPECT_OK(ty_publisher_wait(publisher.get(), source.records.back()->record.lsn, timeout_ms));
    }
    jsCtx_Destroy(js);
    natsConnection_Destroy(connection);
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
TEST_F(jetstream_test, newest_messages_that_were_removed_are_reported) {
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
    ASSERT_OK(engine->begin_session(engine->context, TY_ENGINE_RECORDS, 0));
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
    EXPECT_EQ(TY_E_DAMAGED, ty_publisher_wait(publisher.get(), 1, timeout_ms));
    jsCtx_Destroy(js);
    natsConnection_Destroy(connection);
}

// Likewise the bases alone, as servers of 2.9 do it, too: that is a log without a base. The publisher goes on, and the
// next base stands after what was removed.
TEST_F(jetstream_test, bases_that_were_removed_are_put_anew) {
    const temporary_folder folder;
    const engine_owner engine = open("emptied"), other = open("emptied");
    disk files;
    source_model source(49, files, published_options(files, false, 1));
    source.transactions(5);
    source.close();
    const publisher_owner publisher = open_publisher(source.options(), engine.get());
    const auto base = [&] {
        ty_status status;
        do
            status = ty_publish_base(heap_path, other.get(), &source.options(), nullptr);
        while (status == TY_E_NOT_FOUND); // the timeline has not begun
        return status;
    };
    ASSERT_OK(base());
    for (int n = 0; n < 2; ++n) {
        uint64_t last = 0;
        ASSERT_OK(other->newest(other->context, TY_ENGINE_BASES, &last));
        ASSERT_OK(other->trim(other->context, TY_ENGINE_BASES, last + 1));
        uint64_t none = 1;
        ASSERT_OK(other->newest(other->context, TY_ENGINE_BASES, &none)) << ty_error_text();
        EXPECT_EQ(0u, none);
        standby_of early(folder.file("early"), engine.get());
        EXPECT_EQ(TY_E_NOT_FOUND, early.make());
        ASSERT_OK(base()) << ty_error_text();
        uint64_t now = 0;
        ASSERT_OK(other->newest(other->context, TY_ENGINE_BASES, &now));
        EXPECT_LT(last, now);
    }
    EXPECT_OK(ty_publisher_wait(publisher.get(), source.records.back()->record.lsn, timeout_ms));
    standby_of standby(folder.file("standby"), engine.get());
    ASSERT_OK(standby.make());
    standby.open();
    standby.catch_up();
    standby.expect_like(source);
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
