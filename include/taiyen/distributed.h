/* Taiyen: one transaction over several resources.
 *
 * Purpose: several heaps, a heap and a database, or heaps and whatever else can prepare, change together: all of a
 * distributed transaction counts, or nothing of it, whatever dies.
 *
 * Vocabulary:
 *   group        the resources that change together: heaps of this process, and perhaps others.
 *   distributed transaction        one transaction over a group. It has a transaction (ty_txn) on each of the group's
 * heaps. agent        a resource outside that commits by itself, in one step: any SQL database. It commits last, when
 * the heaps are prepared, and keeps the distributed transaction's identifier in a table of its own; so it knows,
 * afterwards, whether the distributed transaction was committed. resource manager  a resource outside that can be
 * prepared (PREPARE TRANSACTION, XA): one that has promised to commit. identifier   of a distributed transaction: a
 * short text of letters, digits and hyphens, another one for each.
 *
 * How: heaps write their records as prepared ones, all at the same time: one durable write's time for all. Without
 * agent and resource managers the distributed transaction is committed as soon as each heap has it, without a further
 * write: each keeps the distributed transaction's number with its own data, so that an open that finds a prepared
 * transaction asks the other heaps. Distributed transactions of several threads share their writes: while one waits for
 * the disk, the next ones are begun and ended. With an agent, the agent's commit decides. With resource managers, the
 * group's first heap decides: its commit is ordinary, and comes when all others are prepared. Functions of agents and
 * resource managers do not throw, and do not use the heaps of the group.
 *
 * After a crash: ty_open resolves what is in doubt by itself. It looks at all other heaps of the group: those that this
 * process has open, else their files, which it opens for a moment: under the paths that images, logs and journals had
 * when the group was opened last; if the heap itself does not lie where it was, as far from it as they were (a tree of
 * folders that was moved), or beside it. Or it asks the agent (ty_register_last_agent,
 * before the open). Where one cannot be asked the open fails with TY_E_IN_DOUBT, and nothing is lost: open it again
 * when the other one is there. An open for reading does the same, but only looks at the files of the others.
 *
 * Backups: the heaps of a group belong together, and are of one moment. They are copied together: while all are closed,
 * or by a snapshot of the file system that has all of them at one moment. Copies that the library makes (taiyen copy,
 * taiyen pack, TY_OPEN_COPY, taiyen restore) are each of a moment of their own, and fit together only if no distributed
 * transaction lies between. A heap of another moment is recognised: each heap keeps the number of the group's last
 * distributed transaction, and ty_group_open commits one of its own. So
 *  - ty_open of a heap with a distributed transaction in doubt fails with TY_E_IN_DOUBT if another heap has neither
 * that distributed transaction nor the one before, or is not the one that took part (such as a copy that the library
 * made). Nothing is changed: with the right files it opens.
 *  - ty_group_open fails with TY_E_MISMATCH if the heaps, or those that they are copies of, have different distributed
 * transactions, or if another heap lies where a member lay (made anew, as its disk was not there; or of another group).
 * The text says which heap it is. What cannot be recognised: the files of a member, copied with other tools while the
 * group was open, after the very distributed transaction before the one that is in doubt. They are what that member
 * would have after a crash at that moment, so the distributed transaction is rolled back. Distributed transactions that
 * changed one heap alone have no number: a heap that misses nothing else is not recognised by them. Nor can heaps tell
 * of an agent's or a resource manager's older state.
 *
 * Limits: the heaps' logs have one log stream each; a heap's part of a distributed transaction fits in half a frame of
 * its log (2 MiB).
 */
#ifndef TAIYEN_DISTRIBUTED_H
#define TAIYEN_DISTRIBUTED_H

#include "base.h"
#include "heap.h"
#include "persist.h"
#include "status.h"
#include "txn.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ty_group ty_group; /* opaque; several threads may use it */
typedef struct ty_dtxn ty_dtxn;   /* opaque; of the thread that began it */

#define TY_GROUP_HEAPS_MAX 16
#define TY_GROUP_RESOURCE_MANAGERS_MAX 16
#define TY_DTXN_ID_BYTES 56 /* of an identifier, with the zero at its end */
/* The root of the block in which a heap keeps what it knows of its groups. A program leaves it alone. */
#define TY_DTXN_ROOT "taiyen.dtxn"

/* What decides last, and remembers. Its functions are called by the thread that commits, or opens a heap. */
typedef struct ty_last_agent {
    size_t struct_size; /* sizeof(ty_last_agent) */
    const char *name;   /* it is found again by it: the same in each run, and another one for each agent. At most 63
                           bytes */
    void *context;
    /* Commits the agent's transaction of this thread, with the identifier in it. done: an identifier that nobody asks
     * for any more and that can go in the same transaction, or NULL. TY_OK: it is committed. TY_E_IN_DOUBT: it may be.
     * Any other status: it is not, and never will be. */
    ty_status (*commit)(void *context, const char *id, const char *done);
    /* Takes the agent's transaction of this thread back. It has not committed. */
    void (*rollback)(void *context);
    /* Whether the identifier is there: *committed. Where it is not, it never will be afterwards: what may still commit
     * it is stopped, or waited for. (With SQL: insert the identifier as one that was rolled back; a unique key makes
     * one of the two fail.) */
    ty_status (*resolve)(void *context, const char *id, bool *committed);
} ty_last_agent;

/* What can be prepared. One distributed transaction may be committed in it by one thread while another thread prepares
 * the next. Who was not asked to prepare is told nothing: where a distributed transaction ends before, the program
 * itself takes back what it did. */
typedef struct ty_resource_manager {
    size_t struct_size; /* sizeof(ty_resource_manager) */
    void *context;
    /* The resource manager's part of the distributed transaction is durable, and may be committed or rolled back, when
     * it returns TY_OK. On any other status it is rolled back already, or will never be asked for again. */
    ty_status (*prepare)(void *context, const char *id);
    /* Commits what is prepared under the identifier. TY_OK also if that was done before. Other statuses: it is tried
     * again. */
    ty_status (*commit)(void *context, const char *id);
    /* Rolls it back, likewise. */
    ty_status (*rollback)(void *context, const char *id);
    /* Calls back with each identifier that is prepared and begins with the prefix. What a dead process has asked to be
     * prepared is not prepared afterwards: where a server may not know of its death yet, that is waited for. */
    ty_status (*recover)(void *context, const char *prefix, void (*callback)(const char *id, void *callback_context),
                         void *callback_context);
} ty_resource_manager;

typedef struct ty_group_options {
    size_t struct_size;    /* sizeof(ty_group_options), set by the _INIT macro */
    ty_heap *const *heaps; /* transactional, open for writing, each once; at least one. They stay open as long as the
                              group. With resource managers, the first one decides */
    size_t heap_count;
    const ty_last_agent *agent; /* registered (ty_register_last_agent); NULL: none */
    const ty_resource_manager *resource_managers;
    size_t resource_manager_count;
    bool restored; /* heaps of different moments, or another one in a member's place, go on together as they are: what
                      one of them has of distributed transactions that another one has not stays half. What resource
                      managers have prepared gets the outcome that the first heap has. To be set once, on purpose (or:
                      taiyen resolve
                      --restored). Where nothing differs it does nothing */
} ty_group_options;
#define TY_GROUP_OPTIONS_INIT                                                                                          \
    { sizeof(ty_group_options), NULL, 0, NULL, NULL, 0, false }

/* Makes an agent known to the process, so that opens can ask it. It is copied, but for its name and context, and stays
 * known until the process ends. Errors: TY_E_ARGUMENT, TY_E_EXISTS (another one has the name), TY_E_MEMORY.
 * Thread-safe. */
TY_API TY_CHECKED ty_status ty_register_last_agent(const ty_last_agent *agent);

/* Makes a group. Several heaps note in each which heaps they are, and where (one transaction each, the first time, and
 * after a move), and a distributed transaction of all of them, durable when it returns, tells them from copies that
 * were made before. Resource managers that have something prepared for this group learn what becomes of it. The order
 * of the heaps does not matter, but that the first one decides. Errors: TY_E_MISMATCH (the heaps are of different
 * moments: see Backups), TY_E_ARGUMENT (a heap is not transactional, read-only, or given twice; agent and resource
 * managers; too many), TY_E_UNSUPPORTED (a log of several log streams), TY_E_EXISTS (a group of the same heaps with
 * resource managers is open), TY_E_MEMORY, TY_E_IN_DOUBT (it has committed, and a heap cannot be written to: discard
 * the heaps), those of ty_commit, and what a resource manager says. A group always has the same resource managers.
 * Thread-safe. */
TY_API TY_CHECKED ty_status ty_group_open(const ty_group_options *options, ty_group **group);
/* Frees it, and distributed transactions that a failed write has left in doubt; NULL does nothing. No distributed
 * transaction is under way. Where a resource manager still has to be told of a commit, the next ty_group_open does it.
 */
TY_API void ty_group_close(ty_group *group);

/* Who decides on a distributed transaction. */
typedef enum ty_decider {
    TY_DECIDED_BY_HEAPS = 1, /* all heaps of the group have it, or it does not count */
    TY_DECIDED_BY_FIRST_HEAP = 2,
    TY_DECIDED_BY_LAST_AGENT = 3
} ty_decider;

/* What the description of a distributed transaction's part says (ty_in_doubt_txn, TY_LOG_PREPARED). */
typedef struct ty_dtxn_info {
    size_t struct_size; /* sizeof(ty_dtxn_info), set by the caller */
    char id[TY_DTXN_ID_BYTES];
    ty_decider decided_by;
    char agent[64]; /* its name; empty: none */
} ty_dtxn_info;
/* Reads it. False: it is none of a distributed transaction, or a pointer is NULL. Thread-safe. */
TY_API bool ty_dtxn_read(const void *description, size_t bytes, ty_dtxn_info *info);

/* Begins a distributed transaction: a transaction on each heap, in an order that all groups of the process have in
 * common, so that distributed transactions do not wait for each other for ever. (A thread that has begun a transaction
 * on one of the heaps by itself is refused.) Its transactions are ended by the distributed transaction alone. It is
 * rolled back when its thread ends. options: as for ty_begin, for each of them; may be NULL. Errors: as ty_begin,
 * TY_E_SPACE and TY_E_IO (a heap's log is nearly full, and its snapshot fails), TY_E_IN_DOUBT (a resource manager
 * cannot be told of the last commit), TY_E_MEMORY. Thread-safe.
 */
TY_API TY_CHECKED ty_status ty_dtxn_begin(ty_group *group, const ty_txn_options *options, ty_dtxn **dtxn);
/* The transaction on the n-th heap of the group's options; NULL: there is none such. */
TY_API ty_txn *ty_dtxn_txn(const ty_dtxn *dtxn, size_t n);
/* The distributed transaction's identifier: for a program that writes it to a database itself. Valid as long as the
 * distributed transaction. */
TY_API const char *ty_dtxn_id(const ty_dtxn *dtxn);

/* Commits: durable everywhere when it returns TY_OK. The distributed transaction is over and freed, but for
 * TY_E_IN_DOUBT. Where one heap alone has changed and there is neither agent nor resource manager, this is that heap's
 * ty_commit. For the thread that began it, as is ty_dtxn_rollback (TY_E_ARGUMENT). Errors: those of ty_prepare, of the
 * agent and of resource managers: all is rolled back, in memory at once; a process that dies then may find it
 * committed, whole. TY_E_IN_DOUBT: the agent's answer is not known: call it again to ask once more, or ty_discard the
 * heaps; until then nobody else enters them. Or a write has failed which distributed transactions of several threads
 * shared: all of these say so, nothing can be done with the heaps any more (TY_E_IN_DOUBT), and after ty_discard and
 * ty_open they are there, all or none. */
TY_API TY_CHECKED ty_status ty_dtxn_commit(ty_dtxn *dtxn);
/* Takes all back; the distributed transaction is over and freed. The agent's transaction is rolled back, too. After
 * TY_E_IN_DOUBT it is refused with that, and nothing is done. NULL does nothing. */
TY_API ty_status ty_dtxn_rollback(ty_dtxn *dtxn);

#ifdef __cplusplus
}
#endif
#endif
