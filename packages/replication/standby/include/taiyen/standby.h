/* Taiyen: a standby over a replicated log that servers keep (library taiyen_standby).
 *
 * Purpose: a second copy on another machine that is moments behind, or not behind at all, and that can take over. A
 * *publisher* writes the transactions of a heap, the *primary*, to an *engine*, in commit order; a *standby* is another
 * heap that applies them, can be read meanwhile, and becomes the primary by ty_standby_promote.
 *
 * Vocabulary:
 *   engine     a log that servers keep: it gives appended messages one order, and keeps them once they are
 * acknowledged. JetStream of NATS (ty_jetstream_open), Kafka (ty_kafka_open), or a program's own implementation of
 *              ty_engine.
 *   term       a number that grows with each promotion. One heap is the primary of a term; each message carries it.
 *   base       a packed copy of the heap in the engine, from which a standby is made (ty_publish_base).
 *   timeline   records without a gap. A publisher that fell behind begins a new one; standbys must then be recreated.
 *
 * Guarantees:
 *  - What is published is durable in the primary. Each transaction is in the engine once, in order, also when the
 *    publisher, the standby or the server is killed.
 *  - Asynchronous: nothing waits for the engine; what it has not acknowledged when the primary is lost, is lost with
 *    it. Synchronous (ty_publisher_commit, ty_publisher_wait): what returned TY_OK is durable in the primary and
 *    acknowledged by the engine, and each standby that is promoted later has it.
 *  - Readers of the primary's heap see a transaction from the moment when it is committed there, before the engine has
 *    acknowledged it; if another heap is promoted just then, what they saw is lost. Confirm a read that must not be
 *    lost: ty_publisher_confirm returns once the engine has all that was read, and has taken a message that was put
 *    after the read, so that the heap was still the primary at the time of the read. A confirmed read is linearizable.
 *    A standby's readers see acknowledged transactions, but not always the newest.
 *  - After a promotion of a standby, whatever the old primary publishes is refused, both when it starts and while it
 *    runs. Transactions that it committed without acknowledgement remain in its files only: recreate it as a standby of
 *    the new primary. A heap stores in its own file that it was superseded, and is refused then whatever the engine
 *    says later, unless an operator takes the term back (ty_publish_new_term).
 *  - A heap stores in its own file which term it has seen, and what was acknowledged to it. It writes nothing to an
 *    engine whose log lacks that (its store was lost, restored to an older state, copied, or is another one):
 *    publishers, bases and standbys report that the server is behind; remove nothing because of it. With
 *    ty_publish_new_term a primary continues. Not detectable is a server restored to a state from before a promotion,
 *    if an old primary writes to it that was never refused and has nothing acknowledged after that state. So after a
 *    server was restored, publish the heap of the highest term first.
 *  - Each byte of each message is under a checksum, messages are numbered, and records are bound by hashes: a message
 *    that was changed, truncated, duplicated, exchanged or left out is reported, and not applied. This is no protection
 *    against forgery: who may write to the engine is controlled by the server.
 *  - How durable an acknowledgement is, depends on the engine: see ty_jetstream_open and ty_kafka_open.
 *
 * Cost: a publisher reads the log as a change feed does (feed.h). A message has about 400 bytes more than its records.
 * A synchronous commit takes its flush, and then a round trip to the engine; many threads share both.
 */
#ifndef TAIYEN_STANDBY_H
#define TAIYEN_STANDBY_H

#include <taiyen/base.h>
#include <taiyen/feed.h>
#include <taiyen/heap.h>
#include <taiyen/persist.h>
#include <taiyen/status.h>
#include <taiyen/txn.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Engines. */

/* An engine keeps two logs of one name. */
typedef enum ty_engine_log {
    TY_ENGINE_RECORDS = 0, /* transactions and terms */
    TY_ENGINE_BASES = 1
} ty_engine_log;

/* After the newest message, whichever that is. */
#define TY_ENGINE_ANYWHERE UINT64_MAX

/* Called for a message; the bytes are valid during the call. False ends the read; this message counts as delivered. */
typedef bool ty_engine_callback(const void *bytes, size_t size, uint64_t position, void *context);

/* An engine. Positions are its own: they grow from one message to the next, perhaps by more than one; 0 is before the
 * first. Several threads may call the functions at a time, but only one writer per log calls those that write
 * (begin_session, append, acknowledged). They return failures as statuses, with ty_error_set for the detail: TY_E_IO if
 * it may work later (the server is unreachable, an answer did not come). No function waits much longer than its
 * timeout, or some seconds. */
typedef struct ty_engine {
    size_t struct_size; /* sizeof(ty_engine) */
    void *context;
    size_t message_bytes_max; /* 4096 at least */
    /* The position of the newest message that is kept as acknowledged ones are; 0: the log never had one. */
    ty_status (*newest)(void *context, ty_engine_log log, uint64_t *position);
    /* Delivers messages after the position `after`, in order: those that exist, up to some number. Waits for the first
     * one up to timeout_ms; TY_OK also if none came; TY_E_DAMAGED if the log ends before `after`. If the next messages
     * were trimmed, it begins with the first one kept. */
    ty_status (*read)(void *context, ty_engine_log log, uint64_t after, uint32_t timeout_ms,
                      ty_engine_callback *callback, void *callback_context);
    /* Begins a producer session, and ends the one before. The engine places its first message right after the one at
     * `after`, or refuses it if that is not the newest; or after whatever is newest (TY_ENGINE_ANYWHERE; for a single
     * message only). Each further message is placed right after the one before it. A message may be placed after
     * another one only if the one before it was refused (the session is then refused, too), or if it is of an earlier
     * session and was long under way; messages name their predecessor themselves. So a refused message may still be in
     * the log, at the wrong position; but no message may be there without those of its session before it. */
    ty_status (*begin_session)(void *context, ty_engine_log log, uint64_t after);
    /* Sends the next message of the session, without waiting for its acknowledgement. */
    ty_status (*append)(void *context, ty_engine_log log, const void *bytes, size_t size);
    /* *count: how many messages of the session are acknowledged, with all of the session before them; *position: of the
     * last one of these (if *count is not 0). Waits up to timeout_ms until *count is more than `known`. Errors: the
     * session has ended. TY_E_MISMATCH: a message was refused, as another one is in its place. */
    ty_status (*acknowledged)(void *context, ty_engine_log log, uint64_t known, uint32_t timeout_ms, uint64_t *count,
                              uint64_t *position);
    /* Trims the log: messages before this position are no longer needed. */
    ty_status (*trim)(void *context, ty_engine_log log, uint64_t before);
    const char *warning; /* a known weakness of its servers, for the operator; NULL: none known */
    const char *name;    /* its address for messages, such as "stream c of nats://127.0.0.1:4222"; may be NULL */
} ty_engine;

typedef struct ty_jetstream_options {
    size_t struct_size;      /* sizeof(ty_jetstream_options), set by the _INIT macro */
    uint32_t replicas;       /* of streams that are created. 0: 1. Existing streams must have at least this many */
    uint32_t timeout_ms;     /* for an answer of the server. 0: 5 s */
    const char *credentials; /* a NATS credentials file; NULL: none. User and token can be in the URL instead */
} ty_jetstream_options;
#define TY_JETSTREAM_OPTIONS_INIT                                                                                      \
    { sizeof(ty_jetstream_options), 0, 0, NULL }

/* JetStream of a NATS server (2.9 or newer; with replicas 2.10.23 or newer) as an engine: the streams NAME and
 * NAME-bases, which are created if they do not exist. url: such as nats://127.0.0.1:4222; or several of one cluster,
 * separated by commas, of which one that answers is used, and another one when that fails. name: letters, digits, '-'
 * and '_'.
 *
 * An existing stream is accepted only if its settings cannot lose messages: file storage, retention by limits, none of
 * which drops old messages; one subject; acknowledged; not a copy of another stream.
 *
 * Durability of JetStream: an acknowledged message survives a kill of the server. It survives a power failure if it was
 * flushed, or another replica has it; the server flushes every two minutes unless its setting sync_interval is "always"
 * (2.10 and newer), which a client cannot request. So use it as the second copy, beside the primary's own disk, or with
 * three replicas on different machines. With servers older than 2.10 the replicas of a stream may differ after all of
 * them were killed at the same time: what is wrong in one is read from another one, but acknowledged messages may be
 * lost; the engine's `warning` says so.
 *
 * Signals: libnats sets SIGPIPE to ignored for the whole process when it is first used (nats_Open). This call restores
 * the program's disposition before it returns; a connection that breaks raises SIGPIPE neither in libnats' threads nor
 * in threads that use the engine, which block it meanwhile. A program that also uses libnats itself, with TLS, must
 * call nats_Open before, and then SIGPIPE stays ignored; nats_Open also seeds rand().
 *  Errors: TY_E_ARGUMENT, TY_E_IO (no server answers; JetStream is off), TY_E_PERMISSION, TY_E_UNSUPPORTED (a setting
 *  of a stream; the detail names it), TY_E_MEMORY. Thread-safe; not for use in a forked child. */
TY_API TY_CHECKED ty_status ty_jetstream_open(const char *url, const char *name, const ty_jetstream_options *options,
                                              ty_engine **engine);
/* Closes the engine; NULL does nothing. Close what uses it first. */
TY_API void ty_jetstream_close(ty_engine *engine);

typedef struct ty_kafka_options {
    size_t struct_size;      /* sizeof(ty_kafka_options), set by the _INIT macro */
    uint32_t replicas;       /* of topics that are created. 0: 1. Existing topics must have at least this many */
    uint32_t timeout_ms;     /* for an answer of a broker. 0: 5 s */
    const char *credentials; /* a file of lines NAME=VALUE: librdkafka's settings for security (security., sasl.,
                                ssl.); NULL: none */
    bool flushed;            /* each replica flushes a message before it acknowledges it: topics are created with
                                flush.messages=1, and refused without it */
} ty_kafka_options;
#define TY_KAFKA_OPTIONS_INIT                                                                                          \
    { sizeof(ty_kafka_options), 0, 0, NULL, false }

/* Kafka (brokers of 2.1 or newer) as an engine: the topics NAME and NAME-bases with one partition each, which are
 * created if they do not exist. brokers: such as 127.0.0.1:9092; several are separated by commas. name: letters,
 * digits, '-' and '_'.
 *
 * An existing topic is accepted only if its settings cannot lose messages: nothing is dropped by age, size or key; no
 * broker that lacks messages becomes its leader; two replicas acknowledge, if it has two.
 *
 * Durability of Kafka: an acknowledged message is on min.insync.replicas brokers (a majority of `replicas`, if the
 * topic was created here), and survives while one of them has its disk, and a kill of all. Brokers that choose a new
 * leader by themselves continue. The message survives a power failure of all of them if it was flushed: with `flushed`,
 * at the cost of one flush for each append; else the operating system flushes in its own time.
 *
 * Errors: TY_E_ARGUMENT, TY_E_IO (no broker answers), TY_E_PERMISSION, TY_E_UNSUPPORTED (a setting of a topic; the
 * detail names it), TY_E_NOT_FOUND (the file with credentials), TY_E_MEMORY. Thread-safe; not for use in a forked
 * child. */
TY_API TY_CHECKED ty_status ty_kafka_open(const char *brokers, const char *name, const ty_kafka_options *options,
                                          ty_engine **engine);
/* Closes the engine; NULL does nothing. Close what uses it first. */
TY_API void ty_kafka_close(ty_engine *engine);

/* ---- Publishing. */

typedef struct ty_publisher ty_publisher; /* opaque */

typedef struct ty_publisher_options {
    size_t struct_size;                 /* sizeof(ty_publisher_options), set by the _INIT macro */
    const struct ty_open_options *open; /* only journal_path, log_path, log and storage matter; they must stay valid as
                                           long as the publisher. NULL: all defaults */
    ty_heap *heap;      /* the same heap, open for writing in this process; needed for ty_publisher_commit. Close the
                           publisher before it. NULL: another process has it open, or it is closed */
    uint32_t gather_ms; /* while no thread waits, how long transactions are gathered into one message. 0: 20 */
    uint32_t window;    /* at most this many messages are in flight. 0: 64 */
    uint32_t answer_ms; /* messages in flight count as lost if none of them is acknowledged for this long. 0: 5 s */
    uint32_t alive_ms;  /* after this long with nothing to send, a heartbeat is sent (456 bytes). 0: 1 s */
    uint32_t base_ms;   /* a wait without a timeout waits at most this long while the engine works, but has no base of
                           the heap and gets none. 0: 60 s; UINT32_MAX: for ever */
} ty_publisher_options;
#define TY_PUBLISHER_OPTIONS_INIT                                                                                      \
    { sizeof(ty_publisher_options), NULL, NULL, 0, 0, 0, 0, 0 }

typedef struct ty_publisher_report {
    size_t struct_size; /* sizeof(ty_publisher_report), set by the caller */
    uint64_t term;
    uint64_t lsn;     /* acknowledged up to this transaction, with a base of its timeline */
    uint64_t records; /* since the publisher was opened, as are all counts below */
    uint64_t record_bytes;
    uint64_t messages;
    uint64_t runs;        /* producer sessions: one, and one more after each interruption */
    uint64_t gaps;        /* timelines begun because one was interrupted */
    uint64_t differences; /* how often one replica of the engine had wrong messages, and another one the right ones */
    bool based;           /* the engine has a base that the records continue from */
    ty_status status; /* TY_OK: it works, or has not begun. TY_E_IO and the like: a failure that it retries. With ended:
                         why it ended */
    bool ended;       /* ended for good: the detail that ty_publisher_wait sets says what to do */
} ty_publisher_report;

/* Opens a publisher, which works in three threads of its own until it is closed. It continues where the engine's log
 * ends; in an empty log, a heap that has never published begins the first term. A heap that was promoted continues with
 * its term. The publisher writes side records to the heap's file (side_record.h). options may be NULL.
 * Errors: TY_E_ARGUMENT, TY_E_MEMORY, TY_E_MISMATCH (the heap's file records that it was superseded; the detail says by
 * which heap, and in which term). Later failures are reported by ty_publisher_wait and ty_publisher_get_report.
 * Thread-safe.
 */
TY_API TY_CHECKED ty_status ty_publisher_open(const char *heap_path, const ty_engine *engine,
                                              const ty_publisher_options *options, ty_publisher **publisher);
/* Closes the publisher and abandons what is in flight; NULL does nothing. No thread may be waiting in it. */
TY_API void ty_publisher_close(ty_publisher *publisher);

/* Waits until the engine has acknowledged the transaction with that LSN, and all before it, and has a base of the heap
 * from which records lead to that transaction: so a standby can get it. While the server is unreachable, or the base is
 * missing (ty_publish_base, in another process), it waits, and the publisher continues by itself. A heap that was
 * promoted needs a base of its own.
 * Errors: TY_E_BUSY (not within timeout_ms; UINT32_MAX: for ever, but without a base only for base_ms of the options;
 * the detail says what is missing), and those that end a publisher: TY_E_MISMATCH (another heap is the primary now:
 * this one is superseded, durably; or the engine has another history of this heap), TY_E_DAMAGED (the engine has been
 * behind the heap for answer_ms, or is another one, or two heaps are the primary of one term: keep the heap; see
 * ty_publish_new_term), those of ty_feed_read except TY_E_NOT_FOUND for a log that was overwritten, TY_E_DAMAGED and
 * TY_E_FORMAT (the engine's newest message is not a valid one), TY_E_UNSUPPORTED (a newer version of the library has
 * written it; or the engine's), TY_E_PERMISSION of the engine.
 * Thread-safe. */
TY_API TY_CHECKED ty_status ty_publisher_wait(ty_publisher *publisher, uint64_t lsn, uint32_t timeout_ms);

/* Commits a transaction of the publisher's heap, durably, and waits as ty_publisher_wait does with UINT32_MAX. If the
 * publisher has ended already, the transaction is rolled back. Readers of the heap see the transaction while this waits
 * (ty_publisher_confirm). Errors: those of ty_commit, with the same meaning; and those of ty_publisher_wait, after
 * which the transaction is either committed here, visible to readers of this heap and perhaps not in the engine, or
 * rolled back. After TY_E_BUSY it is committed, and ty_publisher_wait can wait further; after the others recreate the
 * heap: only what was confirmed is certain. Thread-safe, for different transactions. */
TY_API TY_CHECKED ty_status ty_publisher_commit(ty_publisher *publisher, ty_txn *txn);

/* Confirms what this process has read of the publisher's heap before the call (in a read section, or in a transaction
 * that has ended): TY_OK once the engine has acknowledged all that was committed by then, and a message that was put
 * since the call began. So no other heap was the primary when it was read, and each later primary has it. Without
 * TY_OK, do not rely on what was read. Cost: one round trip to the engine, shared by all threads that confirm at the
 * same time; the first one after a second without may take 100 ms more. Errors: TY_E_ARGUMENT (a publisher that was
 * opened without the heap), those of ty_durable and of ty_publisher_wait. Thread-safe. */
TY_API TY_CHECKED ty_status ty_publisher_confirm(ty_publisher *publisher, uint32_t timeout_ms);

/* Writes *report. Errors: TY_E_ARGUMENT. Thread-safe. */
TY_API TY_CHECKED ty_status ty_publisher_get_report(ty_publisher *publisher, ty_publisher_report *report);

/* Publishes a base of the heap, in a process that does not have it open, while a publisher works; returns once the
 * records reach to it. It then trims what is before the previous base. open: as in ty_ship_options. *lsn: the
 * transaction after which the base was made; may be NULL. Errors: TY_E_NOT_FOUND (no publisher has begun),
 * TY_E_MISMATCH (another heap is the primary), TY_E_DAMAGED (the engine is behind the heap, as in ty_publisher_wait),
 * TY_E_BUSY (another base is being published; or the records did not reach it within a minute), those of ty_ship_step
 * and of the engine. Thread-safe. */
TY_API TY_CHECKED ty_status ty_publish_base(const char *heap_path, const ty_engine *engine,
                                            const struct ty_open_options *open, uint64_t *lsn);

/* Begins a new term with a heap that is a primary and stays it. Use it when publishers report that the engine is behind
 * the heap (TY_E_DAMAGED), because the server lost its store or was restored to an older one, and replication must
 * continue all the same; or to continue under another name or on another server, where nothing was published. The
 * operator must decide this: if another heap was the primary meanwhile, which this one cannot detect, its transactions
 * are not in the new term. Publishers of the heap then continue, and need a new base; heaps and standbys of lower terms
 * are refused from then on. takes_back: also if the heap was superseded by one that has published nothing since its
 * term began: its promotion never ended, or its server was put back; what that one committed is not in the new term.
 * *term: may be NULL. Errors: TY_E_EXISTS (the engine already has it as the primary: nothing to do), TY_E_NOT_FOUND (it
 * has never published, or is a standby: ty_standby_promote), TY_E_MISMATCH (it was superseded), TY_E_DAMAGED (the log
 * is of another replication), TY_E_BUSY (others write to the log at the same time), those of the engine and of
 * ty_publisher_wait. If the engine does not answer, the term may have begun. Thread-safe. */
TY_API TY_CHECKED ty_status ty_publish_new_term(const char *heap_path, const ty_engine *engine,
                                                const struct ty_open_options *open, bool takes_back, uint64_t *term);

/* ---- Standbys. */

typedef struct ty_standby ty_standby; /* opaque; for one thread at a time */

typedef struct ty_standby_options {
    size_t struct_size; /* sizeof(ty_standby_options), set by the _INIT macro */
    const char
        *state_path;     /* the folder in which the standby keeps its position. NULL: the heap's path and "-standby" */
    uint32_t durable_ms; /* how often that is made durable. 0: 1 s */
} ty_standby_options;
#define TY_STANDBY_OPTIONS_INIT                                                                                        \
    { sizeof(ty_standby_options), NULL, 0 }

typedef struct ty_standby_report {
    size_t struct_size; /* sizeof(ty_standby_report), set by the caller */
    uint64_t term;
    uint64_t lsn;         /* of the last transaction that was applied */
    uint64_t durable_lsn; /* of the last one that is durable */
    uint64_t records;     /* since the standby was opened */
    uint64_t record_bytes;
    uint64_t messages;
    uint64_t differences; /* how often one replica of the engine had wrong messages, and another one the right ones */
    bool caught_up;       /* the engine had nothing more */
    bool promoting;       /* its promotion is in the engine: ty_standby_promote completes it */
    uint64_t silent_ms;   /* for how long the primary's publisher has sent nothing, not even a heartbeat: how long
                             ty_standby_step has waited in vain since its last message, with everything applied that the
                             engine has. 0 before this standby has received a message of it, and after a failed call: an
                             unreachable server, or a pause of this process, is no silence of the primary */
} ty_standby_report;

/* Creates a heap at heap_path, where nothing may exist, from the engine's newest base, and the folder of its state.
 * open: only journal_path and log_path matter; NULL: all defaults. report may be NULL.
 * Errors: TY_E_NOT_FOUND (the engine has no base of the present primary: ty_publish_base), TY_E_EXISTS, those of
 * ty_restore and of the engine. */
TY_API TY_CHECKED ty_status ty_standby_make(const char *heap_path, const ty_engine *engine,
                                            const struct ty_open_options *open, const ty_standby_options *options,
                                            ty_standby_report *report);

/* Opens a standby on a heap that ty_standby_make created, and that is open for writing in this process. It continues
 * where it was. options may be NULL. Errors: TY_E_ARGUMENT, TY_E_BUSY (it has an open standby already, perhaps in
 * another process), TY_E_EXISTS (it was promoted, and is the primary of the newest term), TY_E_NOT_FOUND (it has no
 * state folder), TY_E_DAMAGED (the state; or the heap was promoted, and the engine is behind it), TY_E_MISMATCH (the
 * heap was promoted, and another one is the primary now, or the state is of another heap), those of
 * ty_replica_begin. */
TY_API TY_CHECKED ty_status ty_standby_open(ty_heap *heap, const char *heap_path, const ty_engine *engine,
                                            const ty_standby_options *options, ty_standby **standby);
/* Makes durable what was applied, and closes the standby; NULL does nothing. Call it before the heap is closed. The
 * heap stays a standby. */
TY_API void ty_standby_close(ty_standby *standby);

/* Waits for transactions, at most timeout_ms, and applies those that the engine has. report may be NULL. After an error
 * it may be called again, and continues; nothing of the failed message was applied. A message that is wrong in one
 * replica of the engine is first read from another one. Errors: TY_E_DAMAGED and TY_E_FORMAT (a message was changed,
 * truncated, duplicated, exchanged, or is not a valid one; or the engine is behind this standby: the detail says so;
 * keep the standby), TY_E_UNSUPPORTED (a newer version of the library has written it), TY_E_NOT_FOUND (the next
 * message was trimmed; or the publisher fell behind: make a new standby, or, as long as there is no base since, promote
 * this one),
 * TY_E_MISMATCH (another heap is the primary now: make a new standby), those of ty_replica_apply and of the engine;
 * TY_E_BUSY (a promotion of it failed: complete that first). */
TY_API TY_CHECKED ty_status ty_standby_step(ty_standby *standby, uint32_t timeout_ms, ty_standby_report *report);

/* Applies all that the engine has, begins a new term, and makes the heap a primary: from then on it is writable, and
 * the old primary's messages are refused. If the engine does not answer, it returns, and may be called again, also by
 * another process; the new term may then have begun or not. After TY_OK the standby can only be closed. A transaction
 * that the primary had prepared, and whose outcome is not in the engine, is rolled back.
 * Errors: TY_E_NOT_FOUND (as in ty_standby_step; or it lacks what had been acknowledged before a ty_publish_new_term),
 * those of ty_standby_step, of the engine and of ty_promote. */
TY_API TY_CHECKED ty_status ty_standby_promote(ty_standby *standby, ty_standby_report *report);

/* As ty_standby_promote, for a primary that is silent (silent_ms is not 0): the new term begins only if the engine has,
 * and receives, nothing of the old primary before. So a primary that lives but cannot be heard, as some of the engine's
 * servers hang, stays the primary. Errors: TY_E_BUSY (it has sent something: the standby continues as one), those of
 * ty_standby_promote. If the engine does not acknowledge (TY_E_IO), the new term may begin later: `promoting` of the
 * report is then set, and a call of this or of ty_standby_promote completes the promotion. */
TY_API TY_CHECKED ty_status ty_standby_take_over(ty_standby *standby, ty_standby_report *report);

#ifdef __cplusplus
}
#endif
#endif
