// Single messages of an engine, read and written.
#pragma once

#include "message.hpp"

#include <chrono>

namespace taiyen::standby {

inline constexpr uint32_t answer_ms = 5000; // for an engine to answer about one message

inline uint64_t now_ms() {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(now).count());
}

// ST14: one replica of an engine may differ from the others. So before messages count as wrong, they are read again
// from the last position that was right, with a fresh subscription, which may reach another replica.
inline constexpr int readings_max = 8;
inline bool is_wrong(ty_status status) {
    return status == TY_E_DAMAGED || status == TY_E_FORMAT || status == TY_E_NOT_FOUND;
}
// *readings: how many reads it took. body starts over each time.
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

// The first message after a position. *found: one came within the time.
ty_status first_after(const ty_engine &engine, ty_engine_log log, uint64_t after, uint32_t timeout_ms,
                      owned_message *first, bool *found);
// The records' newest message that counts. *found: false if the log has none.
struct records_end {
    owned_message newest;
    uint64_t end_at = 0; // the engine's position of the last message, which may be void
    int readings = 1;    // ST14: more than one: replicas differ
};
ty_status newest_position(const ty_engine &engine, records_end *at, bool *found);
// Whether the records' log begins after the position, so that what was there was trimmed, and not lost.
ty_status is_trimmed(const ty_engine &engine, uint64_t position, bool *is);
uint64_t random_session();

// The newest message, whether it counts or not. *found: false if the log never had one.
ty_status newest_message(const ty_engine &engine, ty_engine_log log, owned_message *newest, bool *found);

// The same of the bases. ST6: one that cannot be read counts as void: it has nothing but its position.
ty_status newest_of_bases(const ty_engine &engine, owned_message *newest, bool *found);

// How the newest base is looked for: where the newest message is a base's last one; also in the whole log; or there
// alone, so that each message of the base can be read.
enum class lookup { at_the_end, anywhere, whole };
// The first message of the newest complete base. *found: false if the log has none.
ty_status newest_base(const ty_engine &engine, lookup how, owned_message *begin, bool *found);

// Whether the records' message that a base continues from is still there: messages may have been lost since, and others
// written in their places.
ty_status goes_on(const ty_engine &engine, const message_header &base, bool *does);

// The header of the next message after `before`, without its session.
message_header header_after(const message_header &before, message_kind kind);

// Writes one sealed message, and waits for its acknowledgement.
ty_status append_one(const ty_engine &engine, ty_engine_log log, uint64_t term, uint64_t after,
                     const std::vector<uint8_t> &bytes, uint64_t *position);

std::vector<uint8_t> message_of(const message_header &header, const void *payload = nullptr, size_t size = 0);

} // namespace taiyen::standby
