/* Taiyen: messages that leave a heap, and arrive in another one, with the changes that they belong to.
 *
 * Purpose: a program changes its heap and tells somebody else of it, and both count or neither; whoever is told has
 * each message's effect once. So work goes from heap to heap, over any connection, without a transaction over both.
 *
 * Vocabulary:
 *   outbox   messages that transactions of a heap have put, in the order of their commits, until they are forgotten. A
 *            heap has several, by name: one for each receiver that takes at its own pace.
 *   stream   what an outbox's messages are, from the first one on. It has a source: a text of 32 hexadecimal digits
 *            that no other outbox has. A message's identifier is its stream's source and its number, from 1 on.
 *   inbox    what a heap has taken: for each source the number of the last message.
 *
 * How: a transaction changes the heap and puts a message. A thread reads the outbox and sends each message with its
 * identifier. The receiver takes it in a transaction with its effect, where the inbox says that it is the next one, and
 * tells what it has (ty_inbox_last); the sender forgets up to there. Whatever dies, the sender begins again behind what
 * the receiver has, and what comes twice is known as a double.
 *
 * Promises: numbers rise by one, in the order of commits. What ty_outbox_read gives and ty_inbox_last tells is durable:
 * no crash makes a receiver have what its sender never did, or a sender forget what its receiver loses. All of it lies
 * in the heaps without addresses, so heaps can be moved and packed.
 *
 * Limits: a copy of a heap that goes on beside it, and a heap that was restored to an earlier time, have the same
 * streams. A receiver that is ahead of its sender is noticed (ty_outbox_read); remove that outbox and make it anew.
 */
#ifndef TAIYEN_OUTBOX_H
#define TAIYEN_OUTBOX_H

#include "base.h"
#include "heap.h"
#include "persist.h"
#include "status.h"
#include "txn.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Roots of the blocks in which these things lie: of an outbox, with its name behind it; of the inbox. A program leaves
 * them alone. */
#define TY_OUTBOX_ROOT "taiyen.outbox."
#define TY_INBOX_ROOT "taiyen.inbox"
#define TY_OUTBOX_NAME_MAX 32u /* bytes; at least 1 */
#define TY_SOURCE_NAME_MAX 63u /* likewise */
#define TY_INBOX_SOURCES_MAX 16384u
#define TY_MESSAGE_BYTES_MAX (1u << 20)

typedef struct ty_message {
    const char *source; /* of its stream */
    uint64_t number;
    const void *bytes; /* valid during the callback, aligned to 8 */
    size_t size_bytes;
} ty_message;

/* ---- The sender's side. The heap is transactional, and open for writing. */

/* Makes the outbox, or gives it other room: so many bytes for messages that wait, each of which takes 16 bytes more
 * than it has, in steps of 8. What waits stays, and is copied; the change is logged whole. Errors: TY_E_ARGUMENT (the
 * name; less than 4096 bytes), TY_E_SPACE (less than what waits takes), TY_E_MEMORY (also: the heap has no root left),
 * TY_E_DAMAGED (something else is behind the root). */
TY_API TY_CHECKED ty_status ty_outbox_make(ty_txn *txn, const char *name, size_t bytes);
/* Takes it away, with what waits in it: its stream ends, and one of the same name that is made later is another one.
 * Errors: TY_E_NOT_FOUND, TY_E_ARGUMENT, TY_E_DAMAGED. */
TY_API TY_CHECKED ty_status ty_outbox_remove(ty_txn *txn, const char *name);

/* Puts a message, as a part of the transaction. *number (may be NULL) is its number, if that commits. Cost: that of
 * declaring and logging the message and 48 bytes. bytes: may be NULL if size is 0.
 * Errors: TY_E_NOT_FOUND (no such outbox), TY_E_SPACE (it has no room: wait until something is forgotten, or make it
 * larger), TY_E_ARGUMENT (also: more than TY_MESSAGE_BYTES_MAX), TY_E_DAMAGED, TY_E_MEMORY. */
TY_API TY_CHECKED ty_status ty_outbox_put(ty_txn *txn, const char *name, const void *bytes, size_t size,
                                          uint64_t *number);

/* Called for a message. False: no more in this call. It may use the heap as any other code of the thread. */
typedef bool ty_message_callback(const ty_message *message, void *context);
/* Calls back for the messages behind the number `after`, in order, that were committed when the call began, and makes
 * them durable first. Writers wait only while some of them are copied, 1 MiB or one message at a time.
 * Errors: TY_E_ARGUMENT (also: this thread's transaction on the heap is under way), TY_E_NOT_FOUND (no such outbox; or
 * the next message is forgotten), TY_E_MISMATCH (no message has had this number: the receiver is of another stream, or
 * this heap was restored to an earlier time), TY_E_DAMAGED, TY_E_MEMORY, those of ty_durable: what was called back for
 * counts. Thread-safe. */
TY_API TY_CHECKED ty_status ty_outbox_read(ty_heap *heap, const char *name, uint64_t after,
                                           ty_message_callback *callback, void *context);
/* Waits until there is a message behind the number, or timeout_ms: *more. Without polling.
 * Where the heap has no threads of the library (TY_BACKGROUND_CALLS), what ty_commit_async has committed ends the wait
 * once it is durable. Errors: as ty_outbox_read. Thread-safe. */
TY_API TY_CHECKED ty_status ty_outbox_wait(ty_heap *heap, const char *name, uint64_t after, uint32_t timeout_ms,
                                           bool *more);

/* Forgets the messages up to that number, which makes room. TY_OK also if there are none of them.
 * Errors: TY_E_MISMATCH (no message has had this number), TY_E_NOT_FOUND, TY_E_ARGUMENT, TY_E_DAMAGED, TY_E_MEMORY. */
TY_API TY_CHECKED ty_status ty_outbox_forget(ty_txn *txn, const char *name, uint64_t through);

typedef struct ty_outbox_info {
    size_t struct_size;  /* sizeof(ty_outbox_info), set by the caller */
    char source[40];     /* of its stream */
    uint64_t first;      /* the number of the oldest message that waits */
    uint64_t next;       /* of the next one to be put; as `first`: none waits */
    uint64_t used_bytes; /* by those that wait, as far as it is not free for others */
    uint64_t size_bytes; /* its room */
} ty_outbox_info;
/* Within this thread's transaction, as that has it. Errors: as ty_outbox_read. Thread-safe. */
TY_API TY_CHECKED ty_status ty_outbox_get_info(ty_heap *heap, const char *name, ty_outbox_info *info);

/* ---- The receiver's side. */

typedef enum ty_taken {
    TY_MESSAGE_NEW = 1,    /* it is the next one of its source, and noted as taken, if the transaction commits */
    TY_MESSAGE_DOUBLE = 2, /* it was taken before: nothing is to be done */
    TY_MESSAGE_GAP = 3     /* others before it are missing: nothing is noted */
} ty_taken;

/* Whether the message is to be done, in the transaction that does it. The first one of a source has the number 1 (see
 * ty_inbox_set). Errors: TY_E_ARGUMENT (the source's name; the number 0), TY_E_SPACE (TY_INBOX_SOURCES_MAX sources),
 * TY_E_DAMAGED (something else is behind the root), TY_E_MEMORY. */
TY_API TY_CHECKED ty_status ty_inbox_take(ty_txn *txn, const char *source, uint64_t number, ty_taken *taken);
/* Notes that everything of the source up to that number is taken: for one whose messages are to be had from a later one
 * on. UINT64_MAX: the source is not known any more. Errors: as ty_inbox_take. */
TY_API TY_CHECKED ty_status ty_inbox_set(ty_txn *txn, const char *source, uint64_t number);
/* The number of the last message taken from the source, 0: none. It is durable: for the sender, that it may forget.
 * Errors: TY_E_ARGUMENT (also: this thread's transaction on the heap is under way), TY_E_DAMAGED, those of ty_durable.
 * Thread-safe. */
TY_API TY_CHECKED ty_status ty_inbox_last(ty_heap *heap, const char *source, uint64_t *number);

#ifdef __cplusplus
}
#endif
#endif
