// The rules of Kafka as an engine that need no broker: which settings of a topic are accepted, and which messages of a
// session count as written.
#pragma once

#include "packages/common/common.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <taiyen/standby.h>

namespace taiyen::standby {

using common::fail;

// A topic as the brokers describe it.
struct topic_settings {
    std::string name;
    size_t partitions = 0;
    size_t replicas = 0;
    std::map<std::string, std::string> values;
    std::string value(const char *setting) const;
    int64_t number(const char *setting, int64_t otherwise) const;
};

// ST8: TY_E_UNSUPPORTED if a setting may drop what was acknowledged; the detail names it.
ty_status check_topic(const topic_settings &topic, const ty_kafka_options &options);
// How many replicas must acknowledge a message, for a topic made with so many replicas.
uint32_t quorum_of(uint32_t replicas);

// Reads the lines NAME=VALUE of a file: settings of librdkafka for a connection's security; others are refused. '#'
// begins a comment.
ty_status read_credentials(const std::string &path, std::map<std::string, std::string> *settings);

// ST10: a session of messages. A broker appends each message, whatever is there, and returns its position: so a message
// counts as written only right after the one before it; any other position is reported as refused. Not locked.
class session_of_positions {
public:
    void begin(uint64_t after);
    void sent() { sent_ += 1; }
    // The result for the next message: its position, or why it has none (status, if not TY_OK).
    void answer(ty_status status, const std::string &why, uint64_t position);
    ty_status failed() const { return failed_; }
    uint64_t answered() const { return answered_; }
    uint64_t last_at() const { return last_at_; }
    ty_status report(const std::string &topic) const;

private:
    uint64_t after_ = 0; // the position before the next answer's, or TY_ENGINE_ANYWHERE
    uint64_t sent_ = 0;
    uint64_t answered_ = 0;
    uint64_t last_at_ = 0;
    ty_status failed_ = TY_OK;
    std::string why_;
};

} // namespace taiyen::standby
