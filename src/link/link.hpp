// The façade of the link layer: what leaves a heap for other places. docs/design/link.md describes how it works.
#pragma once

#include "src/txn/txn.hpp"
#include <taiyen/distributed.h>
#include <taiyen/feed.h>
#include <taiyen/outbox.h>
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

// ---- Distributed transactions: the functions of distributed.h, likewise (dtxn.hpp)

inline constexpr size_t agent_name_max = 63;
// NULL: none of that name is registered.
const ty_last_agent *agent_named(const char *name);
ty_status agent_register(const ty_last_agent &agent);
// The resolver that txn_open uses if the program gave no callback of its own.
extern const in_doubt_resolver dtxn_resolver;

bool dtxn_info_of(const void *description, size_t bytes, ty_dtxn_info *info);
ty_status group_open(const ty_group_options &options, ty_group **group);
void group_close(ty_group *group);
ty_status dtxn_begin(ty_group *group, const ty_txn_options &options, ty_dtxn **dtxn);
ty_txn *dtxn_txn(const ty_dtxn *dtxn, size_t n);
const char *dtxn_id(const ty_dtxn *dtxn);
ty_status dtxn_commit(ty_dtxn *dtxn);
ty_status dtxn_rollback(ty_dtxn *dtxn);

// ---- Outboxes and inboxes: the functions of outbox.h, likewise (outbox.hpp)

ty_status outbox_make(ty_txn *txn, const char *name, size_t bytes);
ty_status outbox_remove(ty_txn *txn, const char *name);
ty_status outbox_put(ty_txn *txn, const char *name, const void *bytes, size_t size, uint64_t *number);
ty_status outbox_read(ty_heap *heap, const char *name, uint64_t after, ty_message_callback *callback, void *context);
ty_status outbox_wait(ty_heap *heap, const char *name, uint64_t after, uint32_t timeout_ms, bool *more);
ty_status outbox_forget(ty_txn *txn, const char *name, uint64_t through);
ty_status outbox_get_info(ty_heap *heap, const char *name, ty_outbox_info *info);
ty_status inbox_take(ty_txn *txn, const char *source, uint64_t number, ty_taken *taken);
ty_status inbox_set(ty_txn *txn, const char *source, uint64_t number);
ty_status inbox_last(ty_heap *heap, const char *source, uint64_t *number);

} // namespace taiyen
