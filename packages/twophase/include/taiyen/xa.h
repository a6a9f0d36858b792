/* Taiyen: heaps as resource managers of X/Open XA, for existing transaction managers.
 *
 * Purpose: a transaction manager that knows XA (The Open Group, "Distributed Transaction Processing: The XA
 * Specification", C193) changes heaps and databases together. Pass it the switch `ty_xa_switch`. A program without a
 * transaction manager uses distributed.h. This header is not part of taiyen.h, as its names are those of the
 * specification.
 *
 * Vocabulary, as in the specification: a *resource manager* is a transactional heap, known by a number that the
 * transaction manager gives it (rmid). A *branch* is its part of a global transaction, known by an XID.
 *
 * How: xa_open's info is the path of a heap that exists. A thread of the program works between xa_start and xa_end, and
 * finds the branch's transaction by ty_xa_txn. xa_prepare is ty_prepare, with the XID as the description. A heap that
 * has a branch in doubt when it is opened stays closed until xa_commit or xa_rollback gives the outcome; xa_recover
 * lists the branch.
 *
 * Limits: one branch at a time has a heap, from its start to its end: others wait in xa_start, or get XA_RETRY with
 * TMNOWAIT; from the same thread they are refused with XAER_RMERR. The thread that started a branch ends it, prepares
 * it, or commits it in one phase; once it is prepared any thread of the process may end it, and after the process's
 * death any process. So it supports neither migration (TMNOMIGRATE) nor asynchronous calls. The heap's log has one log
 * stream.
 *
 * Errors: the codes of the specification. ty_error_text, in the same thread, says what was wrong with the heap.
 */
#ifndef TAIYEN_XA_H
#define TAIYEN_XA_H

#include <taiyen/base.h>
#include <taiyen/heap.h>
#include <taiyen/txn.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- The specification's declarations, under the guard that such headers share: another header may have made them. */
#ifndef XA_H
#define XA_H

#define XIDDATASIZE 128 /* bytes */
#define MAXGTRIDSIZE 64
#define MAXBQUALSIZE 64

struct xid_t {
    long formatID; /* -1: none */
    long gtrid_length;
    long bqual_length;
    char data[XIDDATASIZE]; /* the global transaction's bytes, then the branch's */
};
typedef struct xid_t XID;

#define RMNAMESZ 32
#define MAXINFOSIZE 256

struct xa_switch_t {
    char name[RMNAMESZ];
    long flags;
    long version; /* 0 */
    /* Opens the resource manager for the thread. */
    int (*xa_open_entry)(char *info, int rmid, long flags);
    /* Closes it. */
    int (*xa_close_entry)(char *info, int rmid, long flags);
    /* The thread works for a branch from now on. */
    int (*xa_start_entry)(XID *xid, int rmid, long flags);
    /* The thread stops working for the branch. */
    int (*xa_end_entry)(XID *xid, int rmid, long flags);
    /* Rolls back a branch. */
    int (*xa_rollback_entry)(XID *xid, int rmid, long flags);
    /* Prepares it: it can be committed, whatever happens. */
    int (*xa_prepare_entry)(XID *xid, int rmid, long flags);
    /* Commits it. */
    int (*xa_commit_entry)(XID *xid, int rmid, long flags);
    /* Lists prepared branches in an array of `count`; returns how many it wrote. */
    int (*xa_recover_entry)(XID *xids, long count, int rmid, long flags);
    /* Forgets a branch that was ended heuristically: Taiyen has none. */
    int (*xa_forget_entry)(XID *xid, int rmid, long flags);
    /* Waits for an asynchronous call: Taiyen has none. */
    int (*xa_complete_entry)(int *handle, int *returned, int rmid, long flags);
};

/* Flags of a switch. */
#define TMNOFLAGS 0x00000000L
#define TMREGISTER 0x00000001L
#define TMNOMIGRATE 0x00000002L
#define TMUSEASYNC 0x00000004L
/* Flags of calls. */
#define TMASYNC 0x80000000L
#define TMONEPHASE 0x40000000L
#define TMFAIL 0x20000000L
#define TMNOWAIT 0x10000000L
#define TMRESUME 0x08000000L
#define TMSUCCESS 0x04000000L
#define TMSUSPEND 0x02000000L
#define TMSTARTRSCAN 0x01000000L
#define TMENDRSCAN 0x00800000L
#define TMMULTIPLE 0x00400000L
#define TMJOIN 0x00200000L
#define TMMIGRATE 0x00100000L

/* Return values. From 100 on: the branch is, or will be, rolled back. */
#define XA_RBBASE 100
#define XA_RBROLLBACK XA_RBBASE
#define XA_RBCOMMFAIL (XA_RBBASE + 1)
#define XA_RBDEADLOCK (XA_RBBASE + 2)
#define XA_RBINTEGRITY (XA_RBBASE + 3)
#define XA_RBOTHER (XA_RBBASE + 4)
#define XA_RBPROTO (XA_RBBASE + 5)
#define XA_RBTIMEOUT (XA_RBBASE + 6)
#define XA_RBTRANSIENT (XA_RBBASE + 7)
#define XA_RBEND XA_RBTRANSIENT
#define XA_NOMIGRATE 9
#define XA_HEURHAZ 8
#define XA_HEURCOM 7
#define XA_HEURRB 6
#define XA_HEURMIX 5
#define XA_RETRY 4
#define XA_RDONLY 3
#define XA_OK 0
#define XAER_ASYNC (-2)
#define XAER_RMERR (-3)
#define XAER_NOTA (-4)
#define XAER_INVAL (-5)
#define XAER_PROTO (-6)
#define XAER_RMFAIL (-7)
#define XAER_DUPID (-8)
#define XAER_OUTSIDE (-9)

#endif

/* ---- Taiyen's declarations. */

/* For the transaction manager. All its functions are thread-safe. */
extern TY_API struct xa_switch_t ty_xa_switch;

/* The heap of a resource manager, or NULL if it is not open, or has a branch in doubt. Valid until xa_close.
 * Thread-safe. */
TY_API ty_heap *ty_xa_heap(int rmid);
/* The transaction of the branch that this thread works for (between xa_start and xa_end), or NULL. Only the transaction
 * manager commits it or rolls it back. Thread-safe. */
TY_API ty_txn *ty_xa_txn(int rmid);

#ifdef __cplusplus
}
#endif
#endif
