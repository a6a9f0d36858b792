#include "position.hpp"

#include <cstring>

namespace taiyen {
namespace {

constexpr uint64_t position_seed = 0x736f706f6c6c6f66; // "followpos"

uint64_t sum_of(const ty_feed_position &position) {
    return checksum(&position, offsetof(ty_feed_position, checksum), position_seed);
}

} // namespace

// LK1: each record is bound to the one before.
uint64_t record_hash(uint64_t log, uint64_t previous, uint64_t lsn, const void *bytes, size_t size) {
    const uint64_t link[] = {previous, lsn, size, checksum(bytes, size, log)};
    return checksum(link, sizeof link, log);
}

void seal_position(ty_feed_position &position) {
    position.checksum = sum_of(position);
}

// LK4: a position of another heap or history is refused.
ty_status check_position(const ty_feed_position &position) {
    bool good = (position.checksum == sum_of(position) || fault("damaged_position_accepted")) &&
                position.streams >= 1 && position.streams <= log_streams_max && position.has_record <= 1 &&
                position.lsn >= position.has_record && position.lsn <= counter_max;
    for (uint32_t p = 0; good && p < position.streams; ++p)
        good = position.log_positions[3 * p] <= counter_max && position.log_positions[3 * p + 2] <= counter_max;
    return good ? TY_OK
                : failure(TY_E_ARGUMENT, "follow a heap from a position that is damaged, or is none")
                      .remedy("begin again with a base (ty_feed_base)");
}

ty_feed_position position_of(const snapshot_position &base) {
    ty_feed_position position{};
    memcpy(position.heap_identity, base.identity.heap, sizeof position.heap_identity);
    position.log_identity = base.identity.log;
    position.lsn = base.redo_points.lsn;
    position.epoch = base.epoch;
    position.hash =
        record_hash(base.identity.log, 0, base.redo_points.lsn, base.identity.heap, sizeof base.identity.heap);
    position.open_number = base.open.number;
    position.open_random = base.open.random;
    set_log_positions(position, base.redo_points);
    seal_position(position);
    return position;
}

log_positions log_positions_of(const ty_feed_position &position) {
    log_positions positions{position.lsn - position.has_record, position.streams};
    for (uint32_t p = 0; p < positions.count; ++p)
        positions.at[p] = {position.log_positions[3 * p], position.log_positions[3 * p + 1],
                           position.log_positions[3 * p + 2]};
    return positions;
}

void set_log_positions(ty_feed_position &position, const log_positions &positions) {
    position.streams = uint32_t(positions.count);
    for (uint32_t p = 0; p < positions.count; ++p) {
        position.log_positions[3 * p] = positions.at[p].offset;
        position.log_positions[3 * p + 1] = positions.at[p].generation;
        position.log_positions[3 * p + 2] = positions.at[p].lsn;
    }
}

ty_status follow_step(ty_feed_position &position, const ty_feed_record &record) {
    const bool next = record.lsn == position.lsn + 1 && record.previous == position.hash;
    if (!next && !fault("received_with_one_left_out"))
        return failure(TY_E_MISMATCH, "take transaction %llu after transaction %llu: another one follows there",
                       (unsigned long long)record.lsn, (unsigned long long)position.lsn)
            .remedy("have the records sent again from this position on, or begin with a base");
    if (!fault("changed_record_received") &&
        record.hash != record_hash(position.log_identity, record.previous, record.lsn, record.bytes, record.size_bytes))
        return failure(TY_E_DAMAGED, "take transaction %llu: its bytes are not those that were notified",
                       (unsigned long long)record.lsn)
            .remedy("have it sent again");
    position.lsn = record.lsn;
    position.previous = record.previous;
    position.hash = record.hash;
    position.has_record = 1;
    return TY_OK;
}

ty_status feed_check(ty_feed_position *position, const ty_feed_record &record) {
    if (ty_status status = check_position(*position))
        return status;
    if (ty_status status = follow_step(*position, record))
        return status;
    seal_position(*position);
    return TY_OK;
}

} // namespace taiyen
