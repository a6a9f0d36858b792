// Topics: created, checked and trimmed.
#include "kafka.hpp"

#include <algorithm>
#include <chrono>

namespace taiyen::standby {

namespace {

constexpr uint32_t slice_ms = 50; // between checks for a topic that was created

using topic_owner = owned<rd_kafka_NewTopic_t, rd_kafka_NewTopic_destroy>;
using resource_owner = owned<rd_kafka_ConfigResource_t, rd_kafka_ConfigResource_destroy>;
using admin_owner = owned<rd_kafka_AdminOptions_t, rd_kafka_AdminOptions_destroy>;

} // namespace

// One admin request; waits for the answer.
ty_status kafka::ask(rd_kafka_admin_op_t what, const std::string &operation, const std::string &topic,
                     const std::function<void(const rd_kafka_AdminOptions_t *, rd_kafka_queue_t *)> &call,
                     event_owner *answer) {
    const int timeout_ms = static_cast<int>(options_.timeout_ms);
    const admin_owner options(rd_kafka_AdminOptions_new(asker_.get(), what));
    const queue_owner queue(rd_kafka_queue_new(asker_.get()));
    rd_kafka_AdminOptions_set_request_timeout(options.get(), timeout_ms, nullptr, 0);
    if (what != RD_KAFKA_ADMIN_OP_DESCRIBECONFIGS)
        rd_kafka_AdminOptions_set_operation_timeout(options.get(), timeout_ms, nullptr, 0);
    call(options.get(), queue.get());
    answer->reset(rd_kafka_queue_poll(queue.get(), -1)); // the request's own time limit ends it
    const rd_kafka_resp_err_t code = *answer ? rd_kafka_event_error(answer->get()) : RD_KAFKA_RESP_ERR__TIMED_OUT;
    return code ? failure(code, operation, topic) : TY_OK;
}

ty_status kafka::look_at(topic_settings *about, bool *there) {
    const rd_kafka_metadata_t *metadata = nullptr;
    using metadata_owner = owned<const rd_kafka_metadata_t, rd_kafka_metadata_destroy>;
    const std::unique_ptr<rd_kafka_topic_t, ends_with<rd_kafka_topic_destroy>> handle(
        rd_kafka_topic_new(asker_.get(), about->name.c_str(), nullptr));
    rd_kafka_resp_err_t code =
        rd_kafka_metadata(asker_.get(), 0, handle.get(), &metadata, static_cast<int>(options_.timeout_ms));
    const metadata_owner owner(code ? nullptr : metadata);
    *there = false;
    if (code)
        return failure(code, "look at a topic", about->name);
    if (metadata->topic_cnt != 1)
        return failure(RD_KAFKA_RESP_ERR__FAIL, "look at a topic", about->name);
    const rd_kafka_metadata_topic_t &found = metadata->topics[0];
    if (found.err == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART || found.err == RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE)
        return TY_OK;
    if (found.err)
        return failure(found.err, "look at a topic", about->name);
    about->partitions = static_cast<size_t>(std::max(found.partition_cnt, 0));
    about->replicas = about->partitions ? static_cast<size_t>(found.partitions[0].replica_cnt) : 0;
    *there = about->partitions > 0;
    return TY_OK;
}

ty_status kafka::make(const topic &of) {
    constexpr const char *operation = "make a topic";
    char why[512];
    const topic_owner one(
        rd_kafka_NewTopic_new(of.name.c_str(), 1, static_cast<int>(options_.replicas), why, sizeof why));
    if (!one)
        return fail(TY_E_ARGUMENT, std::string(operation) + ": " + why, of.name, "give another name");
    std::map<std::string, std::string> settings = {
        {"cleanup.policy", "delete"},
        {"retention.ms", "-1"},
        {"retention.bytes", "-1"},
        {"unclean.leader.election.enable", "false"},
        {"min.insync.replicas", std::to_string(quorum_of(options_.replicas))}};
    if (options_.flushed)
        settings["flush.messages"] = "1";
    for (const auto &[setting, value] : settings)
        rd_kafka_NewTopic_set_config(one.get(), setting.c_str(), value.c_str());
    event_owner answer;
    rd_kafka_NewTopic_t *topics[] = {one.get()};
    const auto call = [&](const rd_kafka_AdminOptions_t *options, rd_kafka_queue_t *queue) {
        rd_kafka_CreateTopics(asker_.get(), topics, 1, options, queue);
    };
    if (ty_status status = ask(RD_KAFKA_ADMIN_OP_CREATETOPICS, operation, of.name, call, &answer))
        return status;
    size_t count = 0;
    const auto *results = rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(answer.get()), &count);
    const rd_kafka_resp_err_t code = count == 1 ? rd_kafka_topic_result_error(results[0]) : RD_KAFKA_RESP_ERR__FAIL;
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR || code == RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS) // by another process
        return TY_OK;
    const char *more = count == 1 ? rd_kafka_topic_result_error_string(results[0]) : nullptr;
    return failure(code, std::string(operation) + (more ? std::string(": ") + more : ""), of.name);
}

// *there: the broker that answers knows the topic.
ty_status kafka::describe(topic_settings *about, bool *there) {
    constexpr const char *operation = "ask for a topic's settings";
    const resource_owner one(rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, about->name.c_str()));
    event_owner answer;
    rd_kafka_ConfigResource_t *resources[] = {one.get()};
    const auto call = [&](const rd_kafka_AdminOptions_t *options, rd_kafka_queue_t *queue) {
        rd_kafka_DescribeConfigs(asker_.get(), resources, 1, options, queue);
    };
    if (ty_status status = ask(RD_KAFKA_ADMIN_OP_DESCRIBECONFIGS, operation, about->name, call, &answer))
        return status;
    size_t count = 0, settings = 0;
    const auto *results =
        rd_kafka_DescribeConfigs_result_resources(rd_kafka_event_DescribeConfigs_result(answer.get()), &count);
    if (count != 1)
        return failure(RD_KAFKA_RESP_ERR__FAIL, operation, about->name);
    const rd_kafka_resp_err_t code = rd_kafka_ConfigResource_error(results[0]);
    *there = code != RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART;
    if (code)
        return *there ? failure(code, operation, about->name) : TY_OK;
    const auto *entries = rd_kafka_ConfigResource_configs(results[0], &settings);
    for (size_t n = 0; n < settings; n++)
        if (const char *value = rd_kafka_ConfigEntry_value(entries[n]))
            about->values[rd_kafka_ConfigEntry_name(entries[n])] = value;
    return TY_OK;
}

// ST8: a topic is used only if its settings drop nothing. *there: it can be used now.
ty_status kafka::check(const topic &of, topic_settings *about, bool *there) {
    about->name = of.name;
    if (ty_status status = look_at(about, there); status || !*there)
        return status;
    if (ty_status status = describe(about, there); status || !*there)
        return status;
    return check_topic(*about, options_);
}

ty_status kafka::see_to_topic(topic &of) {
    topic_settings about;
    bool there = false;
    about.name = of.name;
    if (ty_status status = look_at(&about, &there))
        return status;
    if (!there)
        if (ty_status status = make(of))
            return status;
    // A new topic has no leader at once, and not all brokers know it at once.
    const auto begun = std::chrono::steady_clock::now();
    for (there = false; !there;) {
        if (ty_status status = check(of, &about, &there))
            return status;
        if (!there && std::chrono::steady_clock::now() - begun > std::chrono::milliseconds(options_.timeout_ms))
            return failure(RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE, "make a topic", of.name);
        if (!there)
            rd_kafka_poll(asker_.get(), slice_ms);
    }
    const int64_t most = about.number("max.message.bytes", 0);
    table_.message_bytes_max = std::min(table_.message_bytes_max, static_cast<size_t>(most));
    return TY_OK;
}

ty_status kafka::trim(topic &of, uint64_t before) {
    constexpr const char *operation = "trim a topic";
    if (before <= 1)
        return TY_OK;
    using list_owner = owned<rd_kafka_topic_partition_list_t, rd_kafka_topic_partition_list_destroy>;
    using records_owner = owned<rd_kafka_DeleteRecords_t, rd_kafka_DeleteRecords_destroy>;
    const list_owner list(rd_kafka_topic_partition_list_new(1));
    rd_kafka_topic_partition_list_add(list.get(), of.name.c_str(), 0)->offset = static_cast<int64_t>(before - 1);
    const records_owner records(rd_kafka_DeleteRecords_new(list.get()));
    rd_kafka_DeleteRecords_t *all[] = {records.get()};
    event_owner answer;
    const auto call = [&](const rd_kafka_AdminOptions_t *options, rd_kafka_queue_t *queue) {
        rd_kafka_DeleteRecords(asker_.get(), all, 1, options, queue);
    };
    if (ty_status status = ask(RD_KAFKA_ADMIN_OP_DELETERECORDS, operation, of.name, call, &answer))
        return status;
    const auto *result = rd_kafka_event_DeleteRecords_result(answer.get());
    const auto *offsets = rd_kafka_DeleteRecords_result_offsets(result);
    const rd_kafka_resp_err_t code = offsets && offsets->cnt == 1 ? offsets->elems[0].err : RD_KAFKA_RESP_ERR__FAIL;
    return code ? failure(code, operation, of.name) : TY_OK;
}

} // namespace taiyen::standby
