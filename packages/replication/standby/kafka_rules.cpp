#include "kafka_rules.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <taiyen/detail/fault.hpp>

namespace taiyen::standby {

namespace {

constexpr int64_t message_bytes_min = 8192; // of a topic, so that an engine's smallest messages fit

ty_status refuse_setting(const topic_settings &topic, const std::string &setting, const std::string &remedy) {
    return fail(TY_E_UNSUPPORTED, "use a topic: " + setting, topic.name, remedy);
}

std::string change_to(const char *setting) {
    return std::string("change it to ") + setting + ", or have a topic made under another name";
}

std::string without_spaces(const std::string &text) {
    const char *spaces = " \t\r";
    const size_t from = text.find_first_not_of(spaces), to = text.find_last_not_of(spaces);
    return from == std::string::npos ? "" : text.substr(from, to - from + 1);
}

bool of_security(const std::string &name) {
    for (const char *prefix : {"security.", "sasl.", "ssl.", "enable.ssl."})
        if (name.rfind(prefix, 0) == 0)
            return true;
    return false;
}

} // namespace

std::string topic_settings::value(const char *setting) const {
    const auto found = values.find(setting);
    return found == values.end() ? "" : found->second;
}

int64_t topic_settings::number(const char *setting, int64_t otherwise) const {
    const std::string text = value(setting);
    char *end = nullptr;
    const int64_t value = strtoll(text.c_str(), &end, 10);
    return text.empty() || *end ? otherwise : value;
}

uint32_t quorum_of(uint32_t replicas) {
    return replicas / 2 + 1;
}

// ST8: a topic is used only if its settings drop nothing that was acknowledged. A setting that the broker does not
// report counts as wrong.
ty_status check_topic(const topic_settings &topic, const ty_kafka_options &options) {
    const auto in_sync = topic.number("min.insync.replicas", 0);
    if (topic.partitions != 1)
        return refuse_setting(topic, "it has " + std::to_string(topic.partitions) + " partitions, and no order",
                              "have a topic with one partition made under another name");
    if (topic.value("cleanup.policy") != "delete")
        return refuse_setting(topic, "messages are dropped for others with the same key (cleanup.policy)",
                              change_to("cleanup.policy=delete"));
    if (topic.number("retention.ms", 0) != -1)
        return refuse_setting(topic, "old messages are dropped by age (retention.ms)", change_to("retention.ms=-1"));
    if (topic.number("retention.bytes", 0) != -1)
        return refuse_setting(topic, "old messages are dropped by size (retention.bytes)",
                              change_to("retention.bytes=-1"));
    if (topic.value("unclean.leader.election.enable") != "false")
        return refuse_setting(topic, "a broker that lacks messages may lead it (unclean.leader.election.enable)",
                              change_to("unclean.leader.election.enable=false"));
    if (topic.replicas < options.replicas)
        return refuse_setting(topic, "it has fewer replicas than were asked for", "add some, or ask for fewer");
    if (in_sync < std::min<int64_t>(2, static_cast<int64_t>(topic.replicas)))
        return refuse_setting(topic, "one replica alone may acknowledge a message (min.insync.replicas)",
                              change_to("min.insync.replicas=2"));
    if (options.flushed && topic.number("flush.messages", 0) != 1)
        return refuse_setting(topic, "messages are acknowledged before they are flushed (flush.messages)",
                              change_to("flush.messages=1"));
    if (topic.number("max.message.bytes", 0) < message_bytes_min)
        return refuse_setting(topic, "its messages are too short (max.message.bytes)",
                              change_to("max.message.bytes=1048588"));
    return TY_OK;
}

ty_status read_credentials(const std::string &path, std::map<std::string, std::string> *settings) {
    constexpr size_t line_bytes_max = 65536;
    std::ifstream file(path);
    std::string line;
    while (std::getline(file, line)) {
        const size_t equals = line.find('=');
        const std::string name = without_spaces(line.substr(0, equals));
        if (name.empty() || name[0] == '#')
            continue;
        if (equals == std::string::npos || line.size() > line_bytes_max || !of_security(name))
            return fail(TY_E_ARGUMENT, "read a file with credentials: it has a line that is none of them", path,
                        "give lines NAME=VALUE with names that begin with security., sasl., ssl. or enable.ssl.");
        (*settings)[name] = without_spaces(line.substr(equals + 1));
    }
    return file.eof() ? TY_OK
                      : fail(TY_E_NOT_FOUND, "read a file with credentials", path, "give a file that can be read");
}

void session_of_positions::begin(uint64_t after) {
    *this = session_of_positions{};
    after_ = after;
}

// ST3, ST10: a message counts only right after the one before it, with all before acknowledged. A writer that continues
// after a refused message may find the position that it expects; so the first refusal ends the session.
void session_of_positions::answer(ty_status status, const std::string &why, uint64_t position) {
    if (failed_)
        return;
    if (!status && answered_ == sent_)
        status = TY_E_IO;
    if (status) {
        failed_ = status;
        why_ = why;
    } else if (after_ != TY_ENGINE_ANYWHERE && position != after_ + 1 &&
               (position < after_ || !taiyen::detail::fault("message_acknowledged_at_any_position"))) {
        failed_ = TY_E_MISMATCH;
        why_ = "another message stands at that position";
    } else {
        answered_ += 1;
        last_at_ = position;
        after_ = position;
    }
}

ty_status session_of_positions::report(const std::string &topic) const {
    return fail(failed_, "write to a topic: " + why_, topic,
                failed_ == TY_E_MISMATCH ? "another process has written to it" : "see whether the brokers are well");
}

} // namespace taiyen::standby
