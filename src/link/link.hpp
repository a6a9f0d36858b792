// The façade of the link layer: what leaves a heap for other places. docs/design/link.md tells how it works.
#pragma once

#include "../txn/txn.hpp"
#include <taiyen/follow.h>
#include <taiyen/joint.h>
#include <taiyen/outbox.h>
#include <taiyen/receive.h>

namespace taiyen {

// The functions of follow.h, with arguments checked for NULL by the caller, and structs that are whole.
ty_status follow_open(const char *path, const ty_open_options &options, ty_heap *heap, ty_follower **follower);
void follow_close(ty_follower *follower);
ty_heap *follow_heap(const ty_follower *follower); // NULL: unknown
ty_status follow_base(ty_follower *follower, ty_follow_position *position);
ty_status follow_read(ty_follower *follower, ty_follow_position *position, ty_follow_callback *callback, void *context,
                      ty_follow_position *base);
ty_status follow_wait(ty_follower *follower, const ty_follow_position &position, uint32_t timeout_ms, bool *more);
ty_status follow_check(ty_follow_position *position, const ty_follow_record &record);

// The functions of receive.h, likewise.
ty_status follow_copied(ty_heap *copy, ty_follow_position *position);
ty_status receive_begin(ty_heap *heap, const ty_follow_position &position, const ty_receive_options &options,
                        ty_receiver **receiver);
void receive_end(ty_receiver *receiver);
ty_status receive(ty_receiver *receiver, const ty_follow_record *records, size_t count);
ty_status receive_stable(ty_receiver *receiver, ty_follow_position *position);

// ---- Joints: the functions of joint.h, likewise (joint.hpp)

inline constexpr size_t agent_name_max = 63;
// NULL: none of that name is registered.
const ty_agent *agent_named(const char *name);
ty_status agent_register(const ty_agent &agent);
// What txn_open asks where the program gave no callback of its own.
extern const doubt_resolver joint_resolver;

bool joint_info_of(const void *description, size_t bytes, ty_joint_info *info);
ty_status group_open(const ty_group_options &options, ty_group **group);
void group_close(ty_group *group);
ty_status joint_begin(ty_group *group, const ty_txn_options &options, ty_joint **joint);
ty_txn *joint_txn(const ty_joint *joint, size_t n);
const char *joint_id(const ty_joint *joint);
ty_status joint_commit(ty_joint *joint);
ty_status joint_rollback(ty_joint *joint);

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
