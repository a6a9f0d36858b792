// Goal: a message counts as written only right after the one before it (ST10), and topics that may lose something are
// refused (ST8). Method: what decides it is asked itself; no broker is needed. kafka_test.cpp has real ones.
#include "support.hpp"

#include "packages/replication/standby/kafka_rules.hpp"

#include <fstream>

using namespace taiyen;
using namespace taiyen::test;
using namespace taiyen::standby;

namespace {

TEST(kafka_rules_test, a_message_at_another_position_is_refused) {
    session_of_positions run;
    run.begin(7);
    for (int n = 0; n < 5; ++n)
        run.sent();
    run.answer(TY_OK, "", 8);
    run.answer(TY_OK, "", 9);
    EXPECT_EQ(2u, run.answered());
    EXPECT_EQ(9u, run.last_at());
    EXPECT_EQ(TY_OK, run.failed());
    run.answer(TY_OK, "", 11); // another writer's is between them
    run.answer(TY_OK, "", 12);
    EXPECT_EQ(TY_E_MISMATCH, run.failed());
    EXPECT_EQ(2u, run.answered());
    EXPECT_EQ(9u, run.last_at());
    EXPECT_EQ(TY_E_MISMATCH, run.report("topic"));
    run.begin(7);
    run.sent();
    run.answer(TY_OK, "", 7); // the log was cut meanwhile
    EXPECT_EQ(TY_E_MISMATCH, run.failed());
    run.begin(7);
    run.sent();
    run.answer(TY_E_IO, "none", 0);
    run.answer(TY_OK, "", 8);
    EXPECT_EQ(TY_E_IO, run.failed());
    EXPECT_EQ(0u, run.answered());
}

TEST(kafka_rules_test, a_message_after_whatever_there_is) {
    session_of_positions run;
    run.begin(TY_ENGINE_ANYWHERE);
    run.sent();
    run.answer(TY_OK, "", 40);
    EXPECT_EQ(1u, run.answered());
    EXPECT_EQ(40u, run.last_at());
    run.answer(TY_OK, "", 41); // none was sent
    EXPECT_EQ(TY_E_IO, run.failed());
}

topic_settings sound_topic() {
    return {"topic",
            1,
            3,
            {{"cleanup.policy", "delete"},
             {"retention.ms", "-1"},
             {"retention.bytes", "-1"},
             {"unclean.leader.election.enable", "false"},
             {"min.insync.replicas", "2"},
             {"flush.messages", "1"},
             {"max.message.bytes", "1048588"}}};
}

TEST(kafka_rules_test, topics_that_may_lose_something_are_refused) {
    ty_kafka_options options = TY_KAFKA_OPTIONS_INIT;
    options.replicas = 3;
    options.flushed = true;
    ASSERT_OK(check_topic(sound_topic(), options));
    const std::pair<const char *, const char *> wrong[] = {
        {"cleanup.policy", "compact"},
        {"cleanup.policy", "compact,delete"},
        {"retention.ms", "604800000"},
        {"retention.bytes", "1073741824"},
        {"unclean.leader.election.enable", "true"},
        {"min.insync.replicas", "1"},
        {"flush.messages", "9223372036854775807"},
        {"max.message.bytes", "1000"},
    };
    for (const auto &[setting, value] : wrong) {
        topic_settings topic = sound_topic();
        topic.values[setting] = value;
        EXPECT_EQ(TY_E_UNSUPPORTED, check_topic(topic, options)) << setting << "=" << value;
        EXPECT_NE(nullptr, strstr(ty_error_text(), setting));
        topic.values.erase(setting); // what is not reported counts as wrong
        EXPECT_EQ(TY_E_UNSUPPORTED, check_topic(topic, options)) << setting;
        topic.values[setting] = "soon";
        EXPECT_EQ(TY_E_UNSUPPORTED, check_topic(topic, options)) << setting;
    }
    for (size_t partitions : {0, 2}) {
        topic_settings topic = sound_topic();
        topic.partitions = partitions;
        EXPECT_EQ(TY_E_UNSUPPORTED, check_topic(topic, options));
    }
    topic_settings fewer = sound_topic();
    fewer.replicas = 2;
    EXPECT_EQ(TY_E_UNSUPPORTED, check_topic(fewer, options));
    options.replicas = 1;
    EXPECT_OK(check_topic(fewer, options));
    topic_settings one = sound_topic();
    one.replicas = 1;
    one.values["min.insync.replicas"] = "1";
    EXPECT_OK(check_topic(one, options));
    one.values["flush.messages"] = "9223372036854775807";
    EXPECT_EQ(TY_E_UNSUPPORTED, check_topic(one, options));
    options.flushed = false;
    EXPECT_OK(check_topic(one, options));
}

TEST(kafka_rules_test, a_majority_acknowledges) {
    const uint32_t quorums[] = {1, 2, 2, 3, 3};
    for (uint32_t replicas = 1; replicas <= 5; ++replicas)
        EXPECT_EQ(quorums[replicas - 1], quorum_of(replicas));
}

TEST(kafka_rules_test, files_with_credentials) {
    temporary_folder folder;
    const std::string path = folder.file("credentials");
    const auto reads = [&](const char *text, std::map<std::string, std::string> *settings) {
        std::ofstream(path) << text;
        return read_credentials(path, settings);
    };
    std::map<std::string, std::string> settings;
    ASSERT_OK(
        reads("# of the brokers\n\n security.protocol = SASL_SSL\r\nsasl.password=a=b\nssl.ca.location=/x", &settings));
    EXPECT_EQ(3u, settings.size());
    EXPECT_EQ("SASL_SSL", settings["security.protocol"]);
    EXPECT_EQ("a=b", settings["sasl.password"]);
    EXPECT_EQ("/x", settings["ssl.ca.location"]);
    EXPECT_EQ(TY_E_ARGUMENT, reads("enable.idempotence=false\n", &settings));
    EXPECT_EQ(TY_E_ARGUMENT, reads("plugin.library.paths=x\n", &settings));
    EXPECT_EQ(TY_E_ARGUMENT, reads("security.protocol\n", &settings));
    EXPECT_EQ(TY_E_NOT_FOUND, read_credentials(folder.file("none"), &settings));
}

TEST(kafka_arguments, are_checked) {
    ty_engine *engine = nullptr;
    ty_kafka_options options = TY_KAFKA_OPTIONS_INIT;
    options.timeout_ms = 100;
#if TAIYEN_WITH_KAFKA
    EXPECT_EQ(TY_E_ARGUMENT, ty_kafka_open("127.0.0.1:1", "name", nullptr, nullptr));
    EXPECT_EQ(TY_E_ARGUMENT, ty_kafka_open(nullptr, "name", nullptr, &engine));
    EXPECT_EQ(TY_E_ARGUMENT, ty_kafka_open("127.0.0.1:1", "a.b", nullptr, &engine));
    EXPECT_EQ(TY_E_ARGUMENT, ty_kafka_open("127.0.0.1:1", "", nullptr, &engine));
    EXPECT_EQ(TY_E_IO, ty_kafka_open("127.0.0.1:1", "name", &options, &engine)); // nobody is there
    options.credentials = "/nowhere/at-all";
    EXPECT_EQ(TY_E_NOT_FOUND, ty_kafka_open("127.0.0.1:1", "name", &options, &engine));
#else
    EXPECT_EQ(TY_E_UNSUPPORTED, ty_kafka_open("127.0.0.1:1", "name", &options, &engine));
#endif
    EXPECT_EQ(nullptr, engine);
}

} // namespace
