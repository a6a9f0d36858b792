/* Taiyen: a standby on a replicated log that others run (library taiyen_standby).
 *
 * Purpose: a second copy on another machine that is moments behind, or not behind at all, and that can take over. A
 * *publisher* puts the transactions of a heap, the *primary*, to an *engine*, in commit order; a *standby* is another
 * heap that takes them, can be read meanwhile, and becomes the primary by ty_standby_promote.
 *
 * Vocabulary:
 *   engine     a log that servers keep: what is appended has one order, and stands there once it is acknowledged.
 *              Here it is JetStream of NATS (ty_jetstream_open), Kafka (ty_kafka_open), or what a program makes of
 *              the functions of ty_engine.
 *   term       a number that grows with each promotion. One heap is the primary of a term; it is in each message.
 *   base       a packed copy of the heap in the engine, with which a standby begins (ty_publish_base).
 *   timeline     records without a gap. A publisher that fell behind begins a new one; standbys are then made anew.
 *
 * Guarantees:
 *  - What is published is durable in the primary. Each transaction is in the engine once, in order, also when the
 *    publisher, the standby or the server is killed.
 *  - Asynchronous: nobody waits for the engine; what it has not acknowledged when the primary is lost is lost with it.
 *    Synchronous (ty_publisher_commit, ty_publisher_wait): what returned TY_OK is durable in the primary and
 *    acknowledged by the engine, and each standby that is promoted later has it.
 *  - Readers of the primary's heap see a transaction from the moment when it is committed there, before the engine has
 *    acknowledged it; if another heap is promoted just then, what they saw is lost. A read that must not be taken back
 *    is confirmed: ty_publisher_confirm returns once the engine has all that was seen, and has taken a message that was
 *    put since, so that the heap was still the primary when it was read. A read that is confirmed is linearizable. A
 *    standby's readers see what was acknowledged, but not always the newest of it.
 *  - Once a standby was promoted, whatever the old primary publishes is refused, at its start as well as while it
 *    works. What it committed and nobody acknowledged stays in its files alone: it is to be made anew, as a standby of
 *    the new primary. A heap remembers in its own file that it was superseded, and is refused then whatever the engine
 *    says later.
 *  - A heap remembers in its own file which term it has seen, and what was acknowledged to it. An engine whose log does
 *    not hold that (its store was lost, put back to an older state, copied, or is another one) gets nothing from it:
 *    publishers, bases and standbys report that the server is behind, and nothing is to be removed because of it.
 *    ty_publish_new_term goes on from a primary. What cannot be known: that a server was put back to a state from
 * before a promotion, by an old primary that was never refused and has nothing acknowledged behind that state. So after
 * a server was put back, the heap of the highest term is published first.
 *  - Each byte of each message is under a checksum, messages are numbered, and records are bound by hashes: what was
 *    changed, cut, doubled, exchanged or left out is told, and not done. It is no protection against a person who
 *    forges: who may write to the engine is the server's matter.
 *  - How durable an acknowledgement is, is the engine's promise: see ty_jetstream_open and ty_kafka_open.
 *
 * Cost: a publisher reads the log as a change feed does (feed.h). A message has about 400 bytes more than its records.
 * A synchronous commit takes its flush, and then the way to the engine and back; many threads share both.
 */
#ifndef TAIYEN_STANDBY_H
#define TAIYEN_STANDBY_H

#include "base.h"
#include "feed.h"
#include "heap.h"
#include "persist.h"
#include "status.h"
#include "txn.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Engines. */

/* An engine keeps two logs of one name. */
typedef enum ty_engine_log {
    TY_ENGINE_RECORDS = 0, /* transactions and terms */
    TY_ENGINE_BASES = 1
} ty_engine_log;

/* Behind the newest message, whichever that is. */
#define TY_ENGINE_ANYWHERE UINT64_MAX

/* Called for a message; the bytes are valid during the call. False: no more in this call; this one counts as told. */
typedef bool ty_engine_callback(const void *bytes, size_t size, uint64_t position, void *context);

/* Positions are the engine's: they grow from one message to the next, perhaps by more than one; 0 is before the first.
 * The functions may be called by several threads at a time, but those that write (begin_session, append, acknowledged)
 * for one log by one writer. They report failures as statuses, with ty_error_set for the detail: TY_E_IO where it may
 * work later (the server is away, an answer did not come). Nothing waits much longer than the timeouts that it is
 * given, or some seconds. */
typedef struct ty_engine {
    size_t struct_size; /* sizeof(ty_engine) */
    void *context;
    size_t message_bytes_max; /* 4096 at least */
    /* The newest message's position, of those that stand there as acknowledged ones do; 0: there never was one. */
    ty_status (*newest)(void *context, ty_engine_log log, uint64_t *position);
    /* Tells messages behind a position, in order: those that are there, up to some number. Waits for the first one up
     * to timeout_ms; TY_OK also if none came; TY_E_DAMAGED if the log ends before `behind`. If what
     * comes next was trimmed, it begins with the first one kept. */
    ty_status (*read)(void *context, ty_engine_log log, uint64_t behind, uint32_t timeout_ms,
                      ty_engine_callback *callback, void *callback_context);
    /* Begins a producer session, and ends the one before. Its first message stands right behind the one at `behind`,
     * which is the newest one, or is refused; or behind whatever there is (TY_ENGINE_ANYWHERE; for one message alone).
     * Each other one stands right behind the one before it. Only if that was refused (then so is the session) or it is
     * of an earlier session, and under way for long, it may stand behind another one; messages say themselves what they
     * belong behind. So what was refused may stand in the log all the same, as a message in the wrong place; but none
     * may be there without those of its session before it. A writer of a higher term may shut out those of lower ones
     * here. */
    ty_status (*begin_session)(void *context, ty_engine_log log, uint64_t term, uint64_t behind);
    /* Hands over the next message of the session, without waiting for its acknowledgement. */
    ty_status (*append)(void *context, ty_engine_log log, const void *bytes, size_t size);
    /* How many messages of the session are acknowledged, with all of the session before them, and the position of the
     * last one of these (if count is not 0). Waits up to timeout_ms until they are more than `known`. Errors: the
     * session has ended. TY_E_MISMATCH: a message was refused, as another one stands in its place. */
    ty_status (*acknowledged)(void *context, ty_engine_log log, uint64_t known, uint32_t timeout_ms, uint64_t *count,
                              uint64_t *position);
    /* Messages before this position are not needed any more. */
    ty_status (*trim)(void *context, ty_engine_log log, uint64_t before);
    const char *warning; /* what whoever relies on it should know of its servers; NULL: nothing is known */
    const char *name;    /* where it is, for texts, such as "stream c of nats://127.0.0.1:4222"; may be NULL */
} ty_engine;

typedef struct ty_jetstream_options {
    size_t struct_size;      /* sizeof(ty_jetstream_options), set by the _INIT macro */
    uint32_t replicas;       /* of streams that are made. 0: 1; of those that are there, so many at least */
    uint32_t timeout_ms;     /* for an answer of the server. 0: 5 s */
    const char *credentials; /* a file, as NATS has them; NULL: none. User and token can stand in the URL, too */
} ty_jetstream_options;
#define TY_JETSTREAM_OPTIONS_INIT                                                                                      \
    { sizeof(ty_jetstream_options), 0, 0, NULL }

/* JetStream of a NATS server (2.9 or newer; with replicas 2.10.23 or newer) as an engine: the streams NAME and
 * NAME-bases, which are made if they are not there. url: such as nats://127.0.0.1:4222; several ones of one cluster
 * with commas between, of which one that answers is used, and another one when that is gone. name: letters, digits, '-'
 * and
 * '_'.
 * Of a stream that is there it checks that it can lose nothing by its settings: kept in files, by limits, and none of
 * these drops old messages; one subject; acknowledged; no copy of another stream.
 * What JetStream promises: an acknowledged message survives a kill of the server. It survives a power failure if it was
 * flushed, or another replica has it; the server flushes every two minutes unless its setting sync_interval is "always"
 * (2.10 and newer), which no client can ask it for. So it is the second copy, beside the primary's own disk, or has
 * three replicas on different machines. With servers older than 2.10 the replicas of a stream may differ once all of
 * them were killed at a time: what is wrong in one is read from another one, but acknowledged messages may be lost; the
 * engine's `warning` says so.
 * Signals: libnats has SIGPIPE ignored for the whole process when it is first used (nats_Open). That is taken back
 * here: the disposition is the program's again when this returns, and a connection that breaks raises SIGPIPE neither
 * in libnats' threads nor in those that use the engine, which have it blocked meanwhile. A program that also uses
 * libnats itself, with TLS, calls nats_Open before, and then SIGPIPE stays ignored; nats_Open also seeds rand().
 * Errors: TY_E_ARGUMENT, TY_E_IO (no server answers; JetStream is off),
 * TY_E_PERMISSION, TY_E_UNSUPPORTED (a setting of a stream; the detail names it), TY_E_MEMORY. Thread-safe; not to be
 * used by a forked child. */
TY_API TY_CHECKED ty_status ty_jetstream_open(const char *url, const char *name, const ty_jetstream_options *options,
                                              ty_engine **engine);
/* Gives it up; NULL does nothing. What uses it is closed before. */
TY_API void ty_jetstream_close(ty_engine *engine);

typedef struct ty_kafka_options {
    size_t struct_size;      /* sizeof(ty_kafka_options), set by the _INIT macro */
    uint32_t replicas;       /* of topics that are made. 0: 1; of those that are there, so many at least */
    uint32_t timeout_ms;     /* for an answer of a broker. 0: 5 s */
    const char *credentials; /* a file of lines NAME=VALUE: librdkafka's settings for security (security., sasl.,
                                ssl.); NULL: none */
    bool flushed;            /* each replica flushes a message before it acknowledges it: topics are made with
                                flush.messages=1, and refused without it */
} ty_kafka_options;
#define TY_KAFKA_OPTIONS_INIT                                                                                          \
    { sizeof(ty_kafka_options), 0, 0, NULL, false }

/* Kafka (brokers of 2.1 or newer) as an engine: the topics NAME and NAME-bases with one partition each, which are made
 * if they are not there. brokers: such as 127.0.0.1:9092; several ones with commas between. name: letters, digits, '-'
 * and '_'. Of a topic that is there it checks that it can lose nothing by its settings: nothing is dropped by age, size
 * or key; no broker that lacks messages becomes its leader; two replicas acknowledge, if it has two.
 * What Kafka promises: an acknowledged message is with min.insync.replicas brokers (a majority of `replicas`, where the
 * topic was made here), and survives while one of these has its disk, and a kill of all. Brokers that choose a new
 * leader by themselves go on. It survives a power failure of all of them if it was flushed: with `flushed`, at the cost
 * of a flush an append; else the operating system does it in its own time. Errors: TY_E_ARGUMENT, TY_E_IO (no broker
 * answers), TY_E_PERMISSION, TY_E_UNSUPPORTED (a setting of a topic; the detail names it), TY_E_NOT_FOUND (the file
 * with credentials), TY_E_MEMORY. Thread-safe; not to be used by a forked child. */
TY_API TY_CHECKED ty_status ty_kafka_open(const char *brokers, const char *name, const ty_kafka_options *options,
                                          ty_engine **engine);
/* Gives it up; NULL does nothing. What uses it is closed before. */
TY_API void ty_kafka_close(ty_engine *engine);

/* ---- Publishing. */

typedef struct ty_publisher ty_publisher; /* opaque */

typedef struct ty_publisher_options {
    size_t struct_size;                 /* sizeof(ty_publisher_options), set by the _INIT macro */
    const struct ty_open_options *open; /* journal_path, log_path, log and storage count, and stay valid as long as the
                                           publisher; NULL: all defaults */
    ty_heap *heap;      /* the same heap, open for writing in this process; needed for ty_publisher_commit. The
                           publisher is closed before it. NULL: it is another process's, or closed */
    uint32_t gather_ms; /* while nobody waits, for how long transactions are gathered. 0: 20 */
    uint32_t window;    /* so many messages may be in flight. 0: 64 */
    uint32_t answer_ms; /* messages in flight are taken for lost if none of them is acknowledged for so long. 0: 5 s */
    uint32_t alive_ms;  /* with nothing to send for so long, a sign of life is put (456 bytes). 0: 1 s */
    uint32_t base_ms;   /* who waits without a timeout waits so long, and no longer, while the engine works and has no
                           base of the heap, and none comes. 0: 60 s; UINT32_MAX: for ever */
} ty_publisher_options;
#define TY_PUBLISHER_OPTIONS_INIT                                                                                      \
    { sizeof(ty_publisher_options), NULL, NULL, 0, 0, 0, 0, 0 }

typedef struct ty_publisher_report {
    size_t struct_size; /* sizeof(ty_publisher_report), set by the caller */
    uint64_t term;
    uint64_t lsn;     /* acknowledged up to this transaction, with a base of its timeline */
    uint64_t records; /* since the publisher was opened, as all that follows */
    uint64_t record_bytes;
    uint64_t messages;
    uint64_t runs;        /* how often it began to write: once, and once more after each cut */
    uint64_t gaps;        /* timelines that were begun since one was interrupted */
    uint64_t differences; /* how often one replica of the engine had wrong messages, and another one the right ones */
    bool based;           /* the engine has a base from which the records go on */
    ty_status
        status; /* TY_OK: it works, or has not begun. TY_E_IO and the like: what it tries to get over. ended: why */
    bool ended; /* for good: what has to be done stands in the detail that ty_publisher_wait sets */
} ty_publisher_report;

/* Makes a publisher, which works in three threads of its own until it is closed. It goes on where the engine's log
 * ends; in an empty log a heap that has never published begins the first term. One that was promoted goes on with its
 * term. It writes notes to the heap's file (note.h). options may be NULL.
 * Errors: TY_E_ARGUMENT, TY_E_MEMORY, TY_E_MISMATCH (the heap was superseded, by what it remembers itself; the detail
 * says by which heap, and in which term). What it finds out later, ty_publisher_wait and the report tell. Thread-safe.
 */
TY_API TY_CHECKED ty_status ty_publisher_open(const char *heap_path, const ty_engine *engine,
                                              const ty_publisher_options *options, ty_publisher **publisher);
/* Ends it, with what is in flight; NULL does nothing. Nobody waits in it. */
TY_API void ty_publisher_close(ty_publisher *publisher);

/* Waits until the engine has acknowledged the transaction with that LSN, and all before it, and has a base of the
 * heap behind which all that is missing there stands as records: so a standby can have it. While the server is away, or
 * the base is not there (ty_publish_base, by another process), it waits, and the publisher goes on by itself. A heap
 * that was promoted needs a base of its own.
 * Errors: TY_E_BUSY (not within timeout_ms; UINT32_MAX: for ever, but without a base for base_ms of the options; the
 * detail says what is missing), and those for which a publisher ends: TY_E_MISMATCH
 * (another heap is the primary now: this one is superseded, durably; or the engine has another history of this heap),
 * TY_E_DAMAGED (the engine is behind the heap, for answer_ms by now, or is another one, or two heaps are the primary of
 * one term: the heap is to be kept; see ty_publish_new_term), those of ty_feed_read but
 * TY_E_NOT_FOUND for a log that was written over, TY_E_DAMAGED and TY_E_FORMAT (the engine's newest message is none),
 * TY_E_UNSUPPORTED and TY_E_PERMISSION of the engine.
 * Thread-safe. */
TY_API TY_CHECKED ty_status ty_publisher_wait(ty_publisher *publisher, uint64_t lsn, uint32_t timeout_ms);

/* Commits a transaction of the publisher's heap, durably, and waits as ty_publisher_wait for ever does. If the
 * publisher has ended before, it is rolled back. Other readers of the heap see it while it waits
 * (ty_publisher_confirm). Errors: those of ty_commit, as it has them; and those of ty_publisher_wait, for which it is
 * committed here, seen by readers of this heap, and perhaps not in the engine, or was rolled back. After TY_E_BUSY it
 * is committed, and ty_publisher_wait waits on; after the others the heap is to be made anew, and only what was
 * confirmed counts. Thread-safe, for different transactions. */
TY_API TY_CHECKED ty_status ty_publisher_commit(ty_publisher *publisher, ty_txn *txn);

/* Confirms what this process has read of the publisher's heap before the call (in a read section, or in a transaction
 * that has ended): TY_OK once the engine has acknowledged all that was committed by then, and a message that was put
 * since the call began. So nobody else was the primary when it was read, and each later primary has it. Without TY_OK,
 * what was read is not to be relied on. It costs one way to the engine and back, which all share that confirm at a
 * time; the first one after a second without may take 100 ms more. Errors: TY_E_ARGUMENT (a publisher that was opened
 * without the heap), those of ty_durable and of ty_publisher_wait. Thread-safe. */
TY_API TY_CHECKED ty_status ty_publisher_confirm(ty_publisher *publisher, uint32_t timeout_ms);

/* Errors: TY_E_ARGUMENT. Thread-safe. */
TY_API TY_CHECKED ty_status ty_publisher_get_report(ty_publisher *publisher, ty_publisher_report *report);

/* Puts a base of the heap, in a process that does not have it open, while a publisher works: it is done once the
 * records reach to it. Then what comes before the base before it is trimmed. open: as of ty_ship_options. *lsn:
 * behind which transaction it was made; may be NULL. Errors: TY_E_NOT_FOUND (no publisher has begun), TY_E_MISMATCH
 * (another heap is the primary), TY_E_DAMAGED (the engine is behind the heap, as of ty_publisher_wait), TY_E_BUSY
 * (another base is being put; or the records did not come so far in a minute), those of ty_ship_step and of the engine.
 * Thread-safe. */
TY_API TY_CHECKED ty_status ty_publish_base(const char *heap_path, const ty_engine *engine,
                                            const struct ty_open_options *open, uint64_t *lsn);

/* Begins a new term with a heap that is a primary, and goes on being it: where publishers of it report that the engine
 * is behind it (TY_E_DAMAGED), as the server lost its store, or was put back to an older one, and is to go on all the
 * same; or under another name or on another server, where nothing was published. A person decides that: what the heap
 * lacks, as another one was the primary meanwhile, which this one cannot know of, is not in the new term. Publishers of
 * it go on then, and need a new base; heaps and standbys of lower terms are refused from then on. *term: may be NULL.
 * Errors: TY_E_EXISTS (it is the primary by what the engine has: nothing is to be done), TY_E_NOT_FOUND (it has never
 * published, or is a standby: ty_standby_promote), TY_E_MISMATCH (it was superseded), TY_E_DAMAGED (the log is another
 * replication's), TY_E_BUSY (another heap has begun a term at that time), those of the engine and of ty_publisher_wait.
 * Where the engine does not answer, the term may have begun. Thread-safe. */
TY_API TY_CHECKED ty_status ty_publish_new_term(const char *heap_path, const ty_engine *engine,
                                                const struct ty_open_options *open, uint64_t *term);

/* ---- Standbys. */

typedef struct ty_standby ty_standby; /* opaque; of one thread at a time */

typedef struct ty_standby_options {
    size_t struct_size; /* sizeof(ty_standby_options), set by the _INIT macro */
    const char
        *state_path;     /* a folder in which the standby keeps how far it is. NULL: the heap's path and "-standby" */
    uint32_t durable_ms; /* how often that is brought up to date. 0: 1 s */
} ty_standby_options;
#define TY_STANDBY_OPTIONS_INIT                                                                                        \
    { sizeof(ty_standby_options), NULL, 0 }

typedef struct ty_standby_report {
    size_t struct_size; /* sizeof(ty_standby_report), set by the caller */
    uint64_t term;
    uint64_t lsn;         /* of the last transaction that was taken */
    uint64_t durable_lsn; /* durable */
    uint64_t records;     /* since it was opened */
    uint64_t record_bytes;
    uint64_t messages;
    uint64_t differences; /* how often one replica of the engine had wrong messages, and another one the right ones */
    bool caught_up;       /* there was nothing more in the engine */
    bool promoting;       /* its promotion stands in the engine: ty_standby_promote ends it */
    uint64_t silent_ms;   /* for how long the primary's publisher has put nothing, not even a sign of life: how long
                             ty_standby_step has waited in vain since its last message, with all taken that the engine
                             has. 0 before this standby has taken any message of it, and after a failed call: a server
                             that is away, or a pause of this process, is no silence of the primary */
} ty_standby_report;

/* Makes a heap at heap_path, where nothing may be, of the engine's newest base, and the folder of its state. open:
 * journal_path and log_path count; NULL: all defaults. report may be NULL.
 * Errors: TY_E_NOT_FOUND (there is no base of the present primary: ty_publish_base), TY_E_EXISTS, those of ty_restore
 * and of the engine. */
TY_API TY_CHECKED ty_status ty_standby_make(const char *heap_path, const ty_engine *engine,
                                            const struct ty_open_options *open, const ty_standby_options *options,
                                            ty_standby_report *report);

/* Makes a standby of a heap that ty_standby_make made, and that is open for writing in this process. It goes on where
 * it was. options may be NULL. Errors: TY_E_ARGUMENT, TY_E_BUSY (it is a standby already, also in another process),
 * TY_E_EXISTS (it was promoted, and is the primary of the newest term), TY_E_NOT_FOUND (no state is kept),
 * TY_E_DAMAGED (the state; or the heap was promoted, and the engine is behind it), TY_E_MISMATCH (the heap was
 * promoted, and another one is the primary now, or it is not the one of the state), those of ty_replica_begin. */
TY_API TY_CHECKED ty_status ty_standby_open(ty_heap *heap, const char *heap_path, const ty_engine *engine,
                                            const ty_standby_options *options, ty_standby **standby);
/* Makes durable what was taken, and ends it; NULL does nothing. To be called before the heap is closed. The heap stays
 * a standby. */
TY_API void ty_standby_close(ty_standby *standby);

/* Waits for transactions, for timeout_ms at the most, and takes what there is. report may be NULL. After an error it
 * may be called again, and goes on; nothing of the message in question was done. What is wrong in one replica of the
 * engine is read from another one before. Errors: TY_E_DAMAGED and TY_E_FORMAT
 * (a message was changed, cut, doubled, exchanged, or is none; or the engine is behind this standby: the detail says
 * so, and the standby is to be kept), TY_E_NOT_FOUND (what comes next was trimmed, or the
 * publisher fell behind: make a new standby), TY_E_MISMATCH (another heap is the primary now: make a new standby),
 * those of ty_replica_apply and of the engine; TY_E_BUSY (a promotion of it failed: it is to be ended). */
TY_API TY_CHECKED ty_status ty_standby_step(ty_standby *standby, uint32_t timeout_ms, ty_standby_report *report);

/* Takes all there is, begins a new term, and makes the heap a primary: from then on it is written to, and the old
 * primary's messages are refused. Where the engine does not answer it returns, and may be called again, also by another
 * process; then the new term may have begun or not. After TY_OK the standby can only be closed. A transaction that the
 * primary had prepared, and whose outcome is not in the engine, is rolled back.
 * Errors: those of ty_standby_step, of the engine and of ty_promote. */
TY_API TY_CHECKED ty_status ty_standby_promote(ty_standby *standby, ty_standby_report *report);

/* As ty_standby_promote, for a primary that is silent (silent_ms is not 0): the new term begins only if the engine has,
 * and gets, nothing of the old primary before. So one that lives and is not heard, as some of the engine's servers
 * hang, stays the primary. Errors: TY_E_BUSY (it has put something: the standby goes on as one), those of
 * ty_standby_promote. Where the engine does not acknowledge (TY_E_IO), the new term may begin later: `promoting` of the
 * report tells, and a call of this or of ty_standby_promote ends the promotion. */
TY_API TY_CHECKED ty_status ty_standby_take_over(ty_standby *standby, ty_standby_report *report);

#ifdef __cplusplus
}
#endif
#endif
