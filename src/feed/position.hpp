// Positions and hashes of records, shared by change feeds and replicas.
#pragma once

#include "feed.hpp"

namespace taiyen {

static_assert(sizeof(ty_feed_position) == 80 + 24 * TY_LOG_STREAMS_MAX + 8, "no padding: its bytes are hashed");
static_assert(log_streams_max == TY_LOG_STREAMS_MAX);

// LK1: a record's hash covers all records before it, back to a base.
uint64_t record_hash(uint64_t log, uint64_t previous, uint64_t lsn, const void *bytes, size_t size);

ty_feed_position position_of(const snapshot_position &base);
// Called after each change of its fields.
void seal_position(ty_feed_position &position);
// For a position from outside: whether it is valid, and names a possible place.
ty_status check_position(const ty_feed_position &position);
// Moves a position after the record, if the record is the next one, and unchanged; it must be sealed then.
ty_status follow_step(ty_feed_position &position, const ty_feed_record &record);
// The start of a reading that yields the position's last record once more, if it has one, and all after it.
log_positions log_positions_of(const ty_feed_position &position);
void set_log_positions(ty_feed_position &position, const log_positions &positions);

} // namespace taiyen
