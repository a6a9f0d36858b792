/* Taiyen: distributed transactions, over several resources.
 *
 * Purpose: several heaps, a heap and a database, or heaps and any other resource that can prepare, change together: a
 * distributed transaction commits on all of them or on none, whatever crashes.
 *
 * Vocabulary:
 * - *group*: the resources that change together: heaps of this process, and perhaps others.
 * - *distributed transaction*: one transaction over a group. It has a transaction (ty_txn) on each of the group's
 *   heaps.
 * - *last agent*: a resource outside the library that commits in one step: any SQL database. It commits last, when the
 *   heaps are prepared, and stores the distributed transaction's identifier in a table of its own, so it knows
 *   afterwards whether the distributed transaction was committed.
 * - *resource manager*: a resource outside the library that can prepare (PREPARE TRANSACTION, XA): after that it has
 *   promised to commit.
 * - *identifier* of a distributed transaction: a short text of letters, digits and hyphens, unique to it.
 *
 * How: heaps write their records as prepared ones, all at the same time: for the time of one durable write. Without
 * agent and resource managers the distributed transaction is committed as soon as each heap has its record, without a
 * further write: each heap keeps the distributed transaction's number with its own data, so an open that finds a
 * prepared transaction asks the other heaps. Distributed transactions of several threads share their writes (two-phase
 * group commit): while one waits for the disk, the next ones begin and end. With an agent, the agent's commit decides.
 * With resource managers, the group's first heap decides: its commit is an ordinary one, made when all others are
 * prepared. Functions of agents and resource managers must not throw, and must not use the heaps of the group.
 *
 * After a crash: ty_open resolves transactions in doubt by itself. It reads all other heaps of the group: those that
 * this process has open, else their files, which it opens for a moment. It looks for them under the paths that images,
 * logs and journals had when the group was last opened; if the heap itself has moved, under the same relative paths (a
 * tree of folders that was moved), or beside it. Or it asks the agent (ty_register_last_agent, before the open). If one
 * of them cannot be asked, the open fails with TY_E_IN_DOUBT, and nothing is lost: open the heap again when the other
 * one is reachable. An open for reading does the same, but only reads the files of the others.
 *
 * Backups: the heaps of a group belong together, and must be of one moment. Copy them together: while all are closed,
 * or with a file-system snapshot that has all of them at one moment. Copies that the library makes (taiyen copy, taiyen
 * pack, TY_OPEN_COPY, taiyen restore) are each of their own moment, and fit together only if no distributed transaction
 * lies between. A heap of another moment is recognised: each heap keeps the number of the group's last distributed
 * transaction, and ty_group_open commits a new one. So
 *  - ty_open of a heap with a distributed transaction in doubt fails with TY_E_IN_DOUBT if another heap has neither
 *    that distributed transaction nor the one before, or is not the one that took part (such as a copy that the library
 *    made). Nothing is changed: with the right files it opens.
 *  - ty_group_open fails with TY_E_MISMATCH if the heaps, or those that they are copies of, have different distributed
 *    transactions, or if another heap lies where a member lay (recreated, as its disk was missing; or of another
 *    group). The error detail names the heap.
 * Not recognised are the files of a member that were copied with other tools while the group was open, right after the
 * distributed transaction before the one in doubt. They are what that member would have after a crash at that moment,
 * so the distributed transaction is rolled back. Distributed transactions that changed only one heap have no number: a
 * heap that lacks only such ones is not recognised. Nor can heaps detect an older state of an agent or a resource
 * manager.
 *
 * Limits: the heaps' logs have one log stream each; a heap's part of a distributed transaction must fit in half a frame
 * of its log (2 MiB).
 */
#ifndef TAIYEN_DISTRIBUTED_H
#define TAIYEN_DISTRIBUTED_H

#include <taiyen/base.h>
#include <taiyen/heap.h>
#include <taiyen/persist.h>
#include <taiyen/status.h>
#include <taiyen/txn.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ty_group ty_group; /* opaque; several threads may use it */
typedef struct ty_dtxn ty_dtxn;   /* opaque; of the thread that began it */

#define TY_GROUP_HEAPS_MAX 16
#define TY_GROUP_RESOURCE_MANAGERS_MAX 16
#define TY_DTXN_ID_BYTES 56 /* size of an identifier, with its terminating 0 */
/* The root of the block in which a heap keeps data about its groups. Programs must not change it. */
#define TY_DTXN_ROOT "taiyen.dtxn"

/* From now on, opens in this process resolve distributed transactions as said above. Any other call of this library
 * that a program has does the same when the program starts, as does the shared library when it is loaded: a program
 * that only opens heaps calls this first. Thread-safe. */
TY_API void ty_dtxn_resolve(void);

/* A last agent: it decides the outcome and remembers it. Its functions are called by the thread that commits, or opens
 * a heap. */
typedef struct ty_last_agent {
    size_t struct_size; /* sizeof(ty_last_agent) */
    const char *name;   /* identifies the agent: the same in each run, and unique to it. At most 63 bytes */
    void *context;
    /* Commits the agent's transaction of this thread, with the identifier in it. done: an identifier that is no longer
     * needed and can be deleted in the same transaction, or NULL. TY_OK: committed. TY_E_IN_DOUBT: perhaps committed.
     * Any other status: not committed, and never will be. */
    ty_status (*commit)(void *context, const char *id, const char *done);
    /* Rolls back the agent's transaction of this thread, which has not committed. */
    void (*rollback)(void *context);
    /* Sets *committed to whether the identifier is in the agent's table. If it is not, it must never be afterwards: the
     * function stops, or waits for, whatever may still commit it. (With SQL: insert the identifier as rolled back; a
     * unique key makes one of the two inserts fail.) */
    ty_status (*resolve)(void *context, const char *id, bool *committed);
} ty_last_agent;

/* A resource manager: a resource that can prepare. One thread may commit a distributed transaction in it while another
 * thread prepares the next. A resource manager that was not asked to prepare is not called: if a distributed
 * transaction ends before, the program itself rolls back what it did there. */
typedef struct ty_resource_manager {
    size_t struct_size; /* sizeof(ty_resource_manager) */
    void *context;
    /* Prepares: when it returns TY_OK, the resource manager's part of the distributed transaction is durable, and can
     * be committed or rolled back. On any other status it is rolled back already, or will never be asked for again. */
    ty_status (*prepare)(void *context, const char *id);
    /* Commits what is prepared under the identifier. TY_OK also if that was done before. After any other status it is
     * called again. */
    ty_status (*commit)(void *context, const char *id);
    /* Rolls it back; otherwise as commit. */
    ty_status (*rollback)(void *context, const char *id);
    /* Calls back with each identifier that is prepared and begins with the prefix. What a dead process asked to prepare
     * must not become prepared afterwards: if a server may not have detected its death yet, the function waits for
     * that. */
    ty_status (*recover)(void *context, const char *prefix, void (*callback)(const char *id, void *callback_context),
                         void *callback_context);
} ty_resource_manager;

typedef struct ty_group_options {
    size_t struct_size;    /* sizeof(ty_group_options), set by the _INIT macro */
    ty_heap *const *heaps; /* transactional, open for writing, each once; at least one. They must stay open as long as
                              the group. With resource managers, the first one decides */
    size_t heap_count;
    const ty_last_agent *agent; /* registered (ty_register_last_agent); NULL: none */
    const ty_resource_manager *resource_managers;
    size_t resource_manager_count;
    bool restored; /* heaps of different moments, or another heap in a member's place, continue together as they are: a
                      distributed transaction that some of them lack stays half done. What resource managers have
                      prepared gets the outcome that the first heap has. Set this once, on purpose (or use `taiyen
                      resolve --restored`). It has no effect if nothing differs */
} ty_group_options;
#define TY_GROUP_OPTIONS_INIT                                                                                          \
    { sizeof(ty_group_options), NULL, 0, NULL, NULL, 0, false }

/* Registers an agent with the process, so that opens can ask it. The struct is copied, but not its name and context,
 * and stays registered until the process ends. Errors: TY_E_ARGUMENT, TY_E_EXISTS (another agent has the name),
 * TY_E_MEMORY. Thread-safe. */
TY_API TY_CHECKED ty_status ty_register_last_agent(const ty_last_agent *agent);

/* Opens a group. If it has several heaps, each stores which heaps they are, and where (one transaction each, the first
 * time, and after a move), and a distributed transaction over all of them, durable when this returns, distinguishes
 * them from copies that were made before. Transactions that resource managers have prepared for this group get their
 * outcome. The order of the heaps does not matter, except that with resource managers the first one decides. Errors:
 * TY_E_MISMATCH (the heaps are of different moments: see Backups), TY_E_ARGUMENT (a heap is not transactional, is
 * read-only, or is given twice; both agent and resource managers; too many), TY_E_UNSUPPORTED (a log with several log
 * streams), TY_E_EXISTS (a group of the same heaps with resource managers is open), TY_E_MEMORY, TY_E_IN_DOUBT (its
 * transaction has committed, and a heap cannot be written to: discard the heaps), those of ty_commit, and those of
 * resource managers. A group must always have the same resource managers. Thread-safe. */
TY_API TY_CHECKED ty_status ty_group_open(const ty_group_options *options, ty_group **group);
/* Frees the group, and distributed transactions that a failed write has left in doubt; NULL does nothing. No
 * distributed transaction may be under way. If a resource manager still has to be notified of a commit, the next
 * ty_group_open does it.
 */
TY_API void ty_group_close(ty_group *group);

/* What decides the outcome of a distributed transaction. */
typedef enum ty_decider {
    TY_DECIDED_BY_HEAPS = 1, /* committed if and only if all heaps of the group have it */
    TY_DECIDED_BY_FIRST_HEAP = 2,
    TY_DECIDED_BY_LAST_AGENT = 3
} ty_decider;

/* The content of the description of a heap's part of a distributed transaction (ty_in_doubt_txn, TY_LOG_PREPARED). */
typedef struct ty_dtxn_info {
    size_t struct_size; /* sizeof(ty_dtxn_info), set by the caller */
    char id[TY_DTXN_ID_BYTES];
    ty_decider decided_by;
    char agent[64]; /* its name; empty: none */
} ty_dtxn_info;
/* Decodes it. False: the description is not of a distributed transaction, or a pointer is NULL. Thread-safe. */
TY_API bool ty_dtxn_read(const void *description, size_t bytes, ty_dtxn_info *info);

/* Begins a distributed transaction: a transaction on each heap, in an order that all groups of the process share, so
 * that distributed transactions do not deadlock. (Refused if the thread itself has begun a transaction on one of the
 * heaps.) Only the distributed transaction ends its transactions. It is rolled back when its thread ends. options: as
 * for ty_begin, for each of them; may be NULL. Errors: as ty_begin, TY_E_SPACE and TY_E_IO (a heap's log is nearly
 * full, and its snapshot fails), TY_E_IN_DOUBT (a resource manager cannot be notified of the last commit), TY_E_MEMORY.
 * Thread-safe.
 */
TY_API TY_CHECKED ty_status ty_dtxn_begin(ty_group *group, const ty_txn_options *options, ty_dtxn **dtxn);
/* The transaction on the n-th heap of the group's options, or NULL if n is too large. */
TY_API ty_txn *ty_dtxn_txn(const ty_dtxn *dtxn, size_t n);
/* The distributed transaction's identifier: for a program that writes it to a database itself. Valid until the
 * distributed transaction ends. */
TY_API const char *ty_dtxn_id(const ty_dtxn *dtxn);

/* Commits: durable everywhere when it returns TY_OK. After any status but TY_E_IN_DOUBT the distributed transaction is
 * over and freed. If only one heap has changed, and the group has neither agent nor resource managers, this is that
 * heap's ty_commit. For the thread that began it, as is ty_dtxn_rollback (TY_E_ARGUMENT). Errors: those of ty_prepare,
 * of the agent and of resource managers: all is rolled back, in memory at once; if the process dies then, the next open
 * may find it committed, whole. TY_E_IN_DOUBT: either the agent's answer is not known: call this again to ask once
 * more, or ty_discard the heaps; until then no other transaction or reader gets at them. Or a write has failed that
 * distributed transactions of several threads shared: all of them return TY_E_IN_DOUBT, the heaps cannot be used any
 * more, and after ty_discard and ty_open all of them are committed or none. */
TY_API TY_CHECKED ty_status ty_dtxn_commit(ty_dtxn *dtxn);
/* Rolls back all of it, including the agent's transaction; the distributed transaction is over and freed. After a
 * commit with TY_E_IN_DOUBT this is refused with TY_E_IN_DOUBT, and nothing is done. NULL does nothing. */
TY_API ty_status ty_dtxn_rollback(ty_dtxn *dtxn);

#ifdef __cplusplus
}
#endif
#endif
