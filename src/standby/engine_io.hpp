// Single messages of an engine, read and written.
#pragma once

#include "message.hpp"

namespace taiyen::standby {

inline constexpr uint32_t answer_ms = 5000; // of an engine, for one message

// ST14: one replica of an engine may differ from the others. So what is wrong with messages is read once more from
// where all was right, which a fresh subscription to another replica tells, before it counts as wrong.
inline constexpr int readings_max = 8;
inline bool is_wrong(ty_status status) {
    return status == TY_E_DAMAGED || status == TY_E_FORMAT || status == TY_E_NOT_FOUND;
}
// *readings: how many it took. body begins from the start each time.
template <class Body>
ty_status read_again(int *readings, const Body &body) {
    ty_status status = body();
    for (*readings = 1; *readings < readings_max && is_wrong(status); ++*readings)
        status = body();
    return status;
}

struct owned_message {
    std::vector<uint8_t> bytes;
    message read{};
};

// The first one behind a position. *found: there was one within the time.
ty_status first_behind(const ty_engine &engine, ty_engine_log log, uint64_t behind, uint32_t timeout_ms,
                       owned_message *first, bool *found);
// The records' newest message that counts. *found: false if there is none.
struct place {
    owned_message newest;
    uint64_t end_at = 0; // the engine's position of the last one, which may be void
    int readings = 1;    // ST14
};
ty_status newest_place(const ty_engine &engine, place *at, bool *found);
uint64_t random_session();

// Whether it counts or not. *found: false if there never was one.
ty_status newest_message(const ty_engine &engine, ty_engine_log log, owned_message *newest, bool *found);

// Where the newest base begins that is whole. *found: false if there is none. searches: also where the newest message
// is not its last one; then all the log is read.
ty_status newest_base(const ty_engine &engine, bool searches, owned_message *begin, bool *found);

// Whether the message of the records stands there that a base goes on behind: they may have been lost since, and
// written anew.
ty_status goes_on(const ty_engine &engine, const message_header_1 &base, bool *does);

// A header that goes on behind another one, but for its session.
message_header_1 header_behind(const message_header_1 &before, message_kind kind);

// Writes one message, sealed already, and waits for its acknowledgement.
ty_status append_one(const ty_engine &engine, ty_engine_log log, uint64_t term, uint64_t behind,
                     const std::vector<uint8_t> &bytes, uint64_t *position);

std::vector<uint8_t> message_of(const message_header_1 &header, const void *payload = nullptr, size_t size = 0);

} // namespace taiyen::standby
