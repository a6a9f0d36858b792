#include "message.hpp"

#include <algorithm>
#include <taiyen/detail/fault.hpp>
#include <utility>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace taiyen::standby {

namespace {

// ST21: of a standby or of a primary, which may have what the engine has lost.
constexpr const char *keep_files = "make a new standby, and keep the files of this heap until that has what they have";

constexpr uint64_t payload_seed = 0x7962646e617473; // "standby"

uint64_t checksum_of(const message_header &header, const void *payload) {
    const uint64_t seed = XXH3_64bits_withSeed(&header, offsetof(message_header, checksum), payload_seed);
    return XXH3_64bits_withSeed(payload, header.payload_bytes, seed);
}

// What no publisher writes, whatever the checksum.
const char *wrong_field(const message_header &h, ty_engine_log log) {
    const auto kind = static_cast<message_kind>(h.kind);
    const bool of_bases = kind >= message_kind::base_begin && kind <= message_kind::base_end;
    if (kind < message_kind::term || kind > message_kind::take_over)
        return "its kind is none";
    if (of_bases != (log == TY_ENGINE_BASES))
        return "it belongs to the other log";
    if (h.number == 0 || h.number > counter_max || h.term == 0 || h.term > counter_max || h.replication == 0)
        return "its number, term or replication is impossible";
    if ((kind == message_kind::records) != (h.records != 0))
        return "it has records, or none";
    if (h.records > h.payload_bytes / record_head_bytes)
        return "it has more records than bytes";
    if (kind == message_kind::part && (h.payload_bytes == 0 || h.record_bytes > counter_max ||
                                       h.offset > h.record_bytes || h.payload_bytes > h.record_bytes - h.offset))
        return "it is a part that lies outside its record";
    if (kind == message_kind::base_piece && (h.payload_bytes == 0 || h.offset > counter_max))
        return "it is a piece of a base without a position";
    return nullptr;
}

} // namespace

ty_status damaged(uint64_t at, const char *what) {
    return ty_error_set(TY_E_DAMAGED, 0, (std::string("take a message from the engine: ") + what).c_str(), nullptr, at,
                        "get it from another replica; or make a new standby from a newer base");
}

bool same_position(const ty_feed_position &a, const ty_feed_position &b) {
    return same_owner(a.heap_identity, b.heap_identity) && a.log_identity == b.log_identity && a.lsn == b.lsn &&
           a.hash == b.hash;
}

// ST1: only a message that follows the one it names counts. ST5: after a term begins, messages of lower terms are void.
// ST23: who does not know of a timeline cannot have what it begins with, and becomes no primary.
ty_status classify(const message &one, tail *last, bool *counts) {
    const message_header &header = one.header;
    const bool follows = header.number == last->number + 1 &&
                         (header.previous == last->checksum || taiyen::detail::fault("late_message_counts")),
               of_last_session = header.session == last->session, begins = begins_term(header);
    const bool knows_timeline = header.begun_term == header.term || header.timeline == last->timeline ||
                                taiyen::detail::fault("term_after_an_unknown_timeline_counts");
    const uint64_t before = std::exchange(last->read, one.at);
    const bool is_elsewhere = begins && header.records_at && before && before != header.records_at &&
                              !taiyen::detail::fault("term_counts_after_another_message");
    *counts = begins ? header.term > last->term && knows_timeline : follows && header.term == last->term;
    if (header.kind == uint32_t(message_kind::take_over) && !follows &&
        !taiyen::detail::fault("takes_over_after_anything"))
        *counts = false;
    *counts = *counts && !is_elsewhere;
    if (*counts) {
        *last = tail_at(header, one.at);
        return TY_OK;
    }
    if (header.term < last->term || (begins && !of_last_session)) {
        last->voids += 1;
        return TY_OK;
    }
    if (header.term > last->term)
        return ty_error_set(TY_E_NOT_FOUND, 0,
                            "take a message from the engine: where its term begins is not there any more", nullptr,
                            one.at, keep_files);
    const bool may_be_late = !of_last_session && header.known_at < last->at;
    const uint64_t positions = // that void ones took from messages
        of_last_session && taiyen::detail::fault("message_after_a_refused_one_is_a_loss") ? 0 : last->voids;
    if (!may_be_late && header.number > last->number + 1 + positions)
        return ty_error_set(TY_E_NOT_FOUND, 0, "take a message from the engine: those before it are not there any more",
                            nullptr, one.at, keep_files);
    // Those between were refused, since void ones came into their places.
    const bool after_refused = header.number > last->number + 1 || taiyen::detail::fault("doubled_message_passed_over");
    if (of_last_session && !after_refused)
        return damaged(one.at, "it stands there twice, or has changed places");
    if (header.known_at > last->at)
        return damaged(one.at, "the engine has lost messages that were taken, and others stand in their places");
    last->voids += 1;
    return TY_OK;
}

uint64_t seal_message(std::vector<uint8_t> &message) {
    message_header header;
    memcpy(&header, message.data(), sizeof header);
    header.magic = message_magic;
    header.version = message_version;
    header.payload_bytes = static_cast<uint32_t>(message.size() - sizeof header);
    header.checksum = checksum_of(header, message.data() + sizeof header);
    memcpy(message.data(), &header, sizeof header);
    return header.checksum;
}

// ST1: nothing of a message is used before it was checked.
ty_status read_message(const void *bytes, size_t size, uint64_t at, ty_engine_log log, message *read) {
    message_header &header = read->header;
    header = {};
    if (size)
        memcpy(&header, bytes, std::min(size, sizeof header));
    if (header.magic != message_magic)
        return ty_error_set(TY_E_FORMAT, 0, "take a message from the engine: no publisher has made it", nullptr, at,
                            "use a name in the engine that nothing else writes to");
    if (size < sizeof header)
        return damaged(at, "it is shorter than any");
    if (header.version != message_version) // another library's is no message that was lost
        return ty_error_set(TY_E_UNSUPPORTED, 0, "take a message from the engine: its version is not known here",
                            nullptr, at, "use a newer version of the library");
    if (header.payload_bytes != size - sizeof header)
        return damaged(at, "it was cut, or something was appended to it");
    read->payload = static_cast<const uint8_t *>(bytes) + sizeof header;
    read->at = at;
    if (header.checksum != checksum_of(header, read->payload) && !taiyen::detail::fault("changed_message_taken"))
        return damaged(at, "its checksum is wrong");
    if (const char *why = wrong_field(header, log))
        return damaged(at, why);
    return TY_OK;
}

// ST2: records lead from the position before a message to the one in it.
ty_status take_apart(const message &from, ty_feed_position *position, std::vector<ty_feed_record> *records) {
    const uint8_t *at = from.payload;
    size_t left = from.header.payload_bytes;
    records->clear();
    for (uint32_t n = 0; n < from.header.records; n++) {
        uint32_t size = 0;
        uint64_t hash = 0;
        if (left < record_head_bytes)
            return damaged(from.at, "its records are not as many as it says");
        memcpy(&size, at, sizeof size);
        memcpy(&hash, at + sizeof size, sizeof hash);
        at += record_head_bytes;
        left -= record_head_bytes;
        if (size > left)
            return damaged(from.at, "a record is longer than it");
        records->push_back({position->lsn + 1, position->hash, hash, at, size});
        position->lsn += 1;
        position->hash = hash;
        at += size;
        left -= size;
    }
    if (left != 0 || (!same_position(*position, from.header.position) &&
                      !taiyen::detail::fault("position_of_a_message_not_compared")))
        return damaged(from.at, "its records do not lead where it says");
    return TY_OK;
}

} // namespace taiyen::standby
