// The façade of the layer of change feeds and replicas. docs/design/feed.md describes how it works.
#pragma once

#include "src/txn/txn.hpp"
#include <taiyen/feed.h>
#include <taiyen/replica.h>

namespace taiyen {

// The functions of feed.h; the caller has checked the arguments for NULL, and structs are complete.
ty_status feed_open(const char *path, const ty_open_options &options, ty_heap *heap, ty_feed **feed);
void feed_close(ty_feed *feed);
ty_heap *follow_heap(const ty_feed *feed); // NULL: unknown
ty_status feed_base(ty_feed *feed, ty_feed_position *position, bool *receives);
ty_status feed_read(ty_feed *feed, ty_feed_position *position, ty_feed_callback *callback, void *context,
                    ty_feed_position *base);
ty_status feed_wait(ty_feed *feed, const ty_feed_position &position, uint32_t timeout_ms, bool *more);
ty_status feed_check(ty_feed_position *position, const ty_feed_record &record);

// The functions of replica.h, likewise.
ty_status feed_copied(ty_heap *copy, ty_feed_position *position);
ty_status replica_begin(ty_heap *heap, const ty_feed_position &position, const ty_replica_options &options,
                        ty_replica **replica);
void replica_end(ty_replica *replica);
ty_status receive(ty_replica *replica, const ty_feed_record *records, size_t count);
ty_status replica_make_durable(ty_replica *replica, ty_feed_position *position);

} // namespace taiyen
