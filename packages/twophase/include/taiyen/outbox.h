/* Taiyen: outboxes and inboxes: messages that leave a heap, and arrive in another one, with the changes that they
 * belong to.
 *
 * Purpose: a program changes its heap and sends a message about the change, and both commit or neither; the receiver
 * applies each message's effect exactly once. So work goes from heap to heap, over any connection, without a
 * transaction over both.
 *
 * Vocabulary:
 *   outbox   messages that transactions of a heap have put, in the order of their commits, until they are forgotten. A
 *            heap has several, by name: one for each receiver that takes at its own pace.
 *   stream   the sequence of an outbox's messages, from the first one on. It has a source: a text of 32 hexadecimal
 *            digits that no other outbox has. A message's identifier is its stream's source and its number, from 1 on.
 *   inbox    what a heap has taken: for each source the number of the last message.
 *
 * How: a transaction changes the heap and puts a message. A thread reads the outbox and sends each message with its
 * identifier. The receiver takes it in the same transaction as its effect, if the inbox says that it is the next one,
 * and reports the last number that it has (ty_inbox_last); the sender forgets messages up to there. Whatever crashes,
 * the sender continues after the last message that the receiver has, and duplicates are recognised.
 *
 * Guarantees: numbers increase by one, in the order of commits. What ty_outbox_read delivers and ty_inbox_last returns
 * is durable: no crash makes a receiver have what its sender never did, or a sender forget what its receiver loses. All
 * of it is stored in the heaps without addresses, so heaps can be moved and packed.
 *
 * Limits: a copy of a heap that is used beside it, a branch of it, and a heap that was restored to an earlier time, or
 * returned to a mark (marks.h), have the same streams. A receiver that is ahead of its sender is detected
 * (ty_outbox_read); remove that outbox and create it again.
 */
#ifndef TAIYEN_OUTBOX_H
#define TAIYEN_OUTBOX_H

#include <taiyen/base.h>
#include <taiyen/heap.h>
#include <taiyen/persist.h>
#include <taiyen/status.h>
#include <taiyen/txn.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Roots of the blocks of outboxes and inbox: the first with an outbox's name appended. Programs must not change
 * them. */
#define TY_OUTBOX_ROOT "taiyen.outbox."
#define TY_INBOX_ROOT "taiyen.inbox"
#define TY_OUTBOX_NAME_MAX 32u /* bytes; at least 1 */
#define TY_SOURCE_NAME_MAX 63u /* bytes; at least 1 */
#define TY_INBOX_SOURCES_MAX 16384u
#define TY_MESSAGE_BYTES_MAX (1u << 20)

typedef struct ty_message {
    const char *source; /* of its stream */
    uint64_t number;
    const void *bytes; /* valid during the callback, aligned to 8 */
    size_t size_bytes;
} ty_message;

/* ---- The sender's side. The heap is transactional, and open for writing. */

/* Creates the outbox, or changes its room: bytes for waiting messages, each of which takes its size and 16 bytes, in
 * steps of 8. Waiting messages stay, and are copied; the change is logged whole. Errors: TY_E_ARGUMENT (the name; less
 * than 4096 bytes), TY_E_SPACE (less than the waiting messages take), TY_E_MEMORY (also: the heap has no root left),
 * TY_E_DAMAGED (the root points to something else). */
TY_API TY_CHECKED ty_status ty_outbox_make(ty_txn *txn, const char *name, size_t bytes);
/* Removes the outbox, with its waiting messages: its stream ends, and an outbox of the same name that is created later
 * has another one. Errors: TY_E_NOT_FOUND, TY_E_ARGUMENT, TY_E_DAMAGED. */
TY_API TY_CHECKED ty_status ty_outbox_remove(ty_txn *txn, const char *name);

/* Puts a message, as part of the transaction. *number (may be NULL) is its number, if that commits. Cost: that of
 * declaring and logging the message and 48 bytes. bytes: may be NULL if size is 0.
 * Errors: TY_E_NOT_FOUND (no such outbox), TY_E_SPACE (it has no room: wait until something is forgotten, or make it
 * larger), TY_E_ARGUMENT (also: more than TY_MESSAGE_BYTES_MAX), TY_E_DAMAGED, TY_E_MEMORY. */
TY_API TY_CHECKED ty_status ty_outbox_put(ty_txn *txn, const char *name, const void *bytes, size_t size,
                                          uint64_t *number);

/* Called for a message. False ends the call. It may use the heap as any other code of the thread. */
typedef bool ty_message_callback(const ty_message *message, void *context);
/* Calls back for the messages after the number `after`, in order, that were committed when the call began, and makes
 * them durable first. Writers wait only while some of them are copied, 1 MiB or one message at a time.
 * Errors: TY_E_ARGUMENT (also: this thread's transaction on the heap is under way), TY_E_NOT_FOUND (no such outbox; or
 * the next message is forgotten), TY_E_MISMATCH (no message has had this number: the receiver's stream is another one,
 * or this heap was restored to an earlier time), TY_E_DAMAGED, TY_E_MEMORY, those of ty_durable: messages that were
 * called back for are valid. Thread-safe. */
TY_API TY_CHECKED ty_status ty_outbox_read(ty_heap *heap, const char *name, uint64_t after,
                                           ty_message_callback *callback, void *context);
/* Waits until a message follows the number, at most timeout_ms; *more: one does. Does not poll.
 * On a heap without the library's threads (TY_BACKGROUND_CALLS), a message of ty_commit_async ends the wait once it is
 * durable. Errors: as ty_outbox_read. Thread-safe. */
TY_API TY_CHECKED ty_status ty_outbox_wait(ty_heap *heap, const char *name, uint64_t after, uint32_t timeout_ms,
                                           bool *more);

/* Forgets the messages up to that number, which makes room. TY_OK also if they were forgotten before.
 * Errors: TY_E_MISMATCH (no message has had this number), TY_E_NOT_FOUND, TY_E_ARGUMENT, TY_E_DAMAGED, TY_E_MEMORY. */
TY_API TY_CHECKED ty_status ty_outbox_forget(ty_txn *txn, const char *name, uint64_t through);

typedef struct ty_outbox_info {
    size_t struct_size;  /* sizeof(ty_outbox_info), set by the caller */
    char source[40];     /* of its stream */
    uint64_t first;      /* the number of the oldest message that waits */
    uint64_t next;       /* of the next one to be put; equal to `first`: no message waits */
    uint64_t used_bytes; /* by waiting messages; room that is not free for others */
    uint64_t size_bytes; /* its capacity */
} ty_outbox_info;
/* Writes *info. Within this thread's transaction, includes its changes. Errors: as ty_outbox_read. Thread-safe. */
TY_API TY_CHECKED ty_status ty_outbox_get_info(ty_heap *heap, const char *name, ty_outbox_info *info);

/* ---- The receiver's side. */

typedef enum ty_taken {
    TY_MESSAGE_NEW = 1,    /* the next one of its source: recorded as taken, if the transaction commits */
    TY_MESSAGE_DOUBLE = 2, /* it was taken before: do nothing */
    TY_MESSAGE_GAP = 3     /* others before it are missing: nothing is recorded */
} ty_taken;

/* Says whether to apply the message, in the transaction that applies it. The first one of a source has the number 1
 * (see ty_inbox_set). Errors: TY_E_ARGUMENT (the source's name; the number 0), TY_E_SPACE (TY_INBOX_SOURCES_MAX
 * sources), TY_E_DAMAGED (the root points to something else), TY_E_MEMORY. */
TY_API TY_CHECKED ty_status ty_inbox_take(ty_txn *txn, const char *source, uint64_t number, ty_taken *taken);
/* Records everything of the source up to that number as taken: to start a source at a later message. UINT64_MAX:
 * removes the source from the inbox. Errors: as ty_inbox_take. */
TY_API TY_CHECKED ty_status ty_inbox_set(ty_txn *txn, const char *source, uint64_t number);
/* *number: of the last message taken from the source; 0: none. It is durable when this returns, so the sender may
 * forget messages up to it. Errors: TY_E_ARGUMENT (also: this thread's transaction on the heap is under way),
 * TY_E_DAMAGED, those of ty_durable. Thread-safe. */
TY_API TY_CHECKED ty_status ty_inbox_last(ty_heap *heap, const char *source, uint64_t *number);

#ifdef __cplusplus
}
#endif
#endif
