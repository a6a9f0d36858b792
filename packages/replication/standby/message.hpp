// The format of the messages in an engine. Fixed-width, little-endian, no padding. docs/design/standby.md has the
// rules, docs/reference.md the format for other programs.
#pragma once

#include "packages/common/common.hpp"

#include <cstdint>
#include <string>
#include <taiyen/feed.h>
#include <taiyen/standby.h>
#include <vector>

namespace taiyen::standby {

using common::fail;

inline constexpr uint64_t message_magic = 0x656d6172'66796154; // "Tayframe"
inline constexpr uint32_t message_version = 1;

// The kinds of a message. The records' log has the first four and the last two, the bases' log the others.
enum class message_kind : uint32_t {
    term = 1,     // a new primary
    timeline = 2, // records begin at the position
    records = 3,  // whole records
    part = 4,     // a part of one record that is too long for a message
    base_begin = 5,
    base_piece = 6,
    base_end = 7,
    alive = 8,    // from a publisher that has nothing to send
    take_over = 9 // a new primary, unless the old one appended something before
};

// ST1: the checksum covers each byte before it and the whole payload; number and checksum of the message before say
// where the message belongs.
// ST2: the position is a sealed one of a change feed, after the message's last whole record.
struct message_header {
    uint64_t magic;
    uint32_t version;
    uint32_t kind; // message_kind
    uint64_t number;
    uint64_t previous; // the checksum of the message before; 0 in a base's message, as are all fields up to `term`
    uint64_t session;  // a random number of the writer's session
    uint64_t known_at; // the engine's position of an earlier message that was acknowledged; 0: the log's begin. In a
                       // base's first message: of the newest one that its writer found; in its last one: of the one
                       // before; in the others 0
    uint64_t term;
    uint8_t owner[16];    // the identity of the term's primary
    uint64_t replication; // a random number, made with the first term: the same in each later term, in any engine
    uint64_t begun_term;  // the last term that was begun without all that was before it (ty_publish_new_term); 0: none
    uint64_t begun_lsn;   // up to here transactions had been acknowledged to the heap that began it
    ty_feed_position position;
    uint64_t timeline;   // number of the message that began it; of a term: of the last one that its writer knew
    uint64_t begin;      // base: the engine's position of its first message; in that message 0. Others: that of a base
                         // that leads to this one, once the writer knew of one; 0: nothing of the timeline was
                         // reported as acknowledged yet
    uint64_t records_at; // base: the engine's position, in the other log, after which the records that it needs come;
                         // term that names no message of those before: the position right before it
    uint64_t record_number; // of the message there: its number, checksum and session
    uint64_t record_checksum;
    uint64_t record_session;
    uint64_t record_hash; // part: of its record
    uint64_t record_bytes;
    uint64_t offset;  // part, or piece of a base: where it belongs
    uint32_t records; // in the payload
    uint32_t payload_bytes;
    uint64_t checksum;
};
static_assert(sizeof(message_header) == 184 + sizeof(ty_feed_position));
static_assert(sizeof(ty_feed_position) == 280);

// A payload of records has for each one its length (4 bytes), its hash (8) and its bytes.
inline constexpr size_t record_head_bytes = 12;

inline constexpr uint64_t counter_max = uint64_t{1} << 62;

// Sets the fields that every message has, and the checksum, which it returns. The payload must follow the header
// already.
uint64_t seal_message(std::vector<uint8_t> &message);

// A message as it was read.
struct message {
    message_header header;
    const uint8_t *payload; // valid as long as the message's bytes
    uint64_t at;            // the engine's position
};

// TY_E_FORMAT, TY_E_DAMAGED. ST1: nothing of a message is used before.
ty_status read_message(const void *bytes, size_t size, uint64_t at, ty_engine_log log, message *read);

// The last message of the records' log that counts; a reader continues from there.
struct tail {
    uint64_t number = 0;
    uint64_t checksum = 0;
    uint64_t session = 0;
    uint64_t term = 0;
    uint64_t timeline = 0;
    uint64_t at = 0;    // the engine's position
    uint64_t voids = 0; // messages after it that do not count
    uint64_t read = 0;  // the engine's position of the last message that was read
};
inline tail tail_at(const message_header &header, uint64_t at) {
    return {header.number, header.checksum, header.session, header.term, header.timeline, at, 0, at};
}
// ST1: a message counts if it is the next one by number and by the checksum of the one before. A message that an
// earlier session had in flight may enter the log after a newer session's message: it names another predecessor, and is
// void. A message whose writer knew of later messages that count belongs to another history: the engine lost messages,
// and others were written in their places. That is reported: TY_E_DAMAGED, or TY_E_NOT_FOUND (messages in between are
// missing). A late message is neither: its writer knew no message as late as the last one that counts; or it knew that
// one, and then as many may have been refused before it as are void since. ST5: a higher term begins wherever it
// stands, one that takes over only right after the message that it names; messages of a lower term after it are void.
// ST23: it does not if a timeline began that its writer did not know. ST21: nor does one that was put where messages
// are missing, if another message came before.
ty_status classify(const message &one, tail *last, bool *counts);

// ST4: whether records lead from a base to the newest message: both are of one term, and of one timeline.
inline bool leads_to(const message_header &base, const message_header &newest) {
    return base.replication == newest.replication && base.term == newest.term && base.timeline == newest.timeline;
}
inline bool begins_term(const message_header &header) {
    return header.kind == uint32_t(message_kind::term) || header.kind == uint32_t(message_kind::take_over);
}

// ST2: the records in a message of records, after a position whose LSN and hash advance. The caller checks the records.
ty_status take_apart(const message &from, ty_feed_position *position, std::vector<ty_feed_record> *records);

ty_status damaged(uint64_t at, const char *what);

inline bool same_owner(const uint8_t *a, const uint8_t *b) {
    return memcmp(a, b, 16) == 0;
}
// Whether both are right after the same record of the same log.
bool same_position(const ty_feed_position &a, const ty_feed_position &b);

} // namespace taiyen::standby
