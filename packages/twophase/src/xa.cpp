// The switch of xa.h: branches of global transactions over the public functions of transactions.
//
// XA1: a prepared branch ends by xa_commit or xa_rollback of its XID alone: while the process lives, and, by the
//     outcome that the next open gets, after its death.
#include "xa_managers.hpp"
#include <cstring>

using namespace taiyen::twophase;
using namespace taiyen::twophase::xa;

namespace {

// ---- Opening

struct asked {
    ty_outcome outcome;
    XID xid;
    bool is_branch;
};

ty_outcome report(const ty_in_doubt_txn *in_doubt, void *context) {
    auto &self = *static_cast<asked *>(context);
    self.is_branch = read_description(in_doubt->description, in_doubt->description_bytes, &self.xid);
    return self.outcome;
}

ty_status open_heap(const char *path, asked *answer, ty_heap **heap) {
    ty_open_options options = TY_OPEN_OPTIONS_INIT;
    options.mode = TY_OPEN_EXISTING;
    options.outcome = answer ? report : nullptr;
    options.outcome_context = answer;
    if (ty_status status = ty_open(path, &options, heap, nullptr))
        return status;
    if (ty_status status = ty_plugin_check_prepare(*heap, "open a resource manager")) {
        const ty_error why = keep_error();
        static_cast<void>(ty_discard(*heap)); // nothing was done in it
        *heap = nullptr;
        return report_again(why, status);
    }
    return TY_OK;
}

// What is in doubt and not of this switch is resolved by its own layer: distributed transactions by themselves.
ty_status open_or_learn(const char *path, ty_heap **heap, asked *answer) {
    *answer = {TY_OUTCOME_UNKNOWN, {}, false};
    ty_status status = open_heap(path, answer, heap);
    if (status == TY_E_IN_DOUBT && !answer->is_branch)
        status = open_heap(path, nullptr, heap);
    return status;
}

int code_of(ty_status status) {
    switch (status) {
    case TY_OK:
        return XA_OK;
    case TY_E_ARGUMENT:
    case TY_E_NOT_FOUND:
        return XAER_INVAL;
    case TY_E_FORKED:
        return XAER_RMFAIL;
    default:
        return XAER_RMERR;
    }
}

int xa_open(char *info, int rmid, long flags) {
    if (flags & TMASYNC)
        return XAER_ASYNC;
    if (flags != TMNOFLAGS || !info || info[0] == 0 || strnlen(info, MAXINFOSIZE) == MAXINFOSIZE)
        return XAER_INVAL;
    const std::lock_guard guard(lock);
    manager *found = await_manager(rmid);
    if (found) {
        if (strcmp(found->path, info) != 0)
            return XAER_INVAL;
        if (!is_opened_here(*found))
            ++found->opened;
        note_opened_here(*found, true);
        return XA_OK;
    }
    found = new_manager(rmid, info);
    if (!found)
        return XAER_RMERR;
    found->busy = this_process();
    asked answer;
    ty_heap *heap = nullptr;
    lock.unlock();
    ty_status status = open_or_learn(info, &heap, &answer);
    lock.lock();
    found->busy = 0;
    note_changed();
    if (status == TY_E_IN_DOUBT && answer.is_branch)
        status = add_branch(*found, answer.xid, branch_state::doubtful) ? TY_OK : TY_E_MEMORY;
    found->heap = heap;
    found->used = status == TY_OK;
    found->opened = 1;
    note_opened_here(*found, true);
    return code_of(status);
}

int xa_close(char *, int rmid, long flags) {
    if (flags & TMASYNC)
        return XAER_ASYNC;
    if (flags != TMNOFLAGS)
        return XAER_INVAL;
    const std::lock_guard guard(lock);
    manager *found = await_manager(rmid);
    if (!found || !is_opened_here(*found))
        return XA_OK; // it was closed already
    for (const branch *each = found->branches; each; each = each->next)
        if (each->thread == thread_number() && each->state != branch_state::doubtful)
            return XAER_PROTO;
    if (found->opened > 1) {
        note_opened_here(*found, false);
        --found->opened;
        return XA_OK;
    }
    found->busy = this_process();
    lock.unlock();
    const ty_status status = found->heap ? ty_close(found->heap) : TY_OK;
    lock.lock();
    found->busy = 0;
    note_changed();
    if (status)
        return XAER_RMERR;
    note_opened_here(*found, false);
    while (found->branches)
        remove_branch(*found, found->branches);
    found->used = false;
    return XA_OK;
}

// ---- Work

// Continues the branch, in the thread that began it.
int rejoin(manager &of, const XID &xid, long flags) {
    branch *found = find_branch(of, xid);
    if (!found)
        return XAER_NOTA;
    const branch_state from = flags & TMRESUME ? branch_state::suspended : branch_state::idle;
    if (found->state == branch_state::failed)
        return XA_RBROLLBACK;
    if (found->state != from || found->thread != thread_number())
        return XAER_PROTO;
    found->state = branch_state::active;
    return XA_OK;
}

ty_status begin(ty_heap *heap, bool no_wait, ty_txn **txn) {
    ty_txn_options options = TY_TXN_OPTIONS_INIT;
    options.no_wait = no_wait;
    if (ty_status status = ty_plugin_make_prepare_room(heap, no_wait))
        return status;
    return ty_begin(heap, &options, txn);
}

int xa_start(XID *xid, int rmid, long flags) {
    constexpr long known = TMJOIN | TMRESUME | TMNOWAIT;
    if (flags & TMASYNC)
        return XAER_ASYNC;
    if ((flags & ~known) || (flags & TMJOIN && flags & TMRESUME) || !is_xid(xid))
        return XAER_INVAL;
    const std::lock_guard guard(lock);
    manager *found = await_manager(rmid);
    if (!found || !is_opened_here(*found) || own_branch(*found))
        return XAER_PROTO;
    if (flags & (TMJOIN | TMRESUME))
        return rejoin(*found, *xid, flags);
    if (find_branch(*found, *xid))
        return XAER_DUPID;
    if (!found->heap) // what is in doubt must be resolved first
        return XAER_RMERR;
    bool is_own = false;
    for (const branch *each = found->branches; each; each = each->next)
        is_own = is_own || each->thread == thread_number();
    if (is_own)
        return XAER_RMERR;
    if (ty_current_txn(found->heap))
        return XAER_OUTSIDE;
    branch *made = add_branch(*found, *xid, branch_state::starting);
    if (!made)
        return XAER_RMERR;
    lock.unlock();
    const ty_status status = begin(found->heap, flags & TMNOWAIT, &made->txn);
    lock.lock();
    made->state = branch_state::active;
    if (status)
        remove_branch(*found, made);
    return status == TY_E_BUSY ? XA_RETRY : code_of(status);
}

int xa_end(XID *xid, int rmid, long flags) {
    const long how = flags & ~TMMIGRATE;
    if (flags & TMASYNC)
        return XAER_ASYNC;
    if ((how != TMSUCCESS && how != TMFAIL && how != TMSUSPEND) || !is_xid(xid))
        return XAER_INVAL;
    if (flags & TMMIGRATE)
        return how == TMSUSPEND ? XA_NOMIGRATE : XAER_INVAL;
    const std::lock_guard guard(lock);
    manager *found = await_manager(rmid);
    if (!found)
        return XAER_PROTO;
    branch *one = find_branch(*found, *xid);
    if (!one)
        return XAER_NOTA;
    const bool may = one->state == branch_state::active || (one->state == branch_state::suspended && how != TMSUSPEND);
    if (!may || one->thread != thread_number())
        return XAER_PROTO;
    one->state = how == TMSUCCESS ? branch_state::idle : how == TMFAIL ? branch_state::failed : branch_state::suspended;
    return XA_OK;
}

// ---- Ends

// A branch is removed from the list before its end lets the next one in, and put back if it did not end.
struct ending {
    manager *of = nullptr;
    branch *one = nullptr;
    int code = XA_OK; // if there is no branch
};

ending find_ending(XID *xid, int rmid, long flags, long known) {
    ending found;
    if (flags & TMASYNC)
        found.code = XAER_ASYNC;
    else if ((flags & ~known) || !is_xid(xid))
        found.code = XAER_INVAL;
    if (found.code)
        return found;
    found.of = await_manager(rmid);
    if (!found.of)
        found.code = XAER_PROTO;
    else if (!(found.one = find_branch(*found.of, *xid)))
        found.code = XAER_NOTA;
    return found;
}

// A program's procedures may be called meanwhile.
ty_status take_back(ty_txn *txn) {
    lock.unlock();
    const ty_status status = ty_rollback(txn);
    lock.lock();
    return status;
}

bool is_over(const ending &what) {
    return ty_current_txn(what.of->heap) != what.one->txn;
}

int xa_prepare(XID *xid, int rmid, long flags) {
    const std::lock_guard guard(lock);
    const ending what = find_ending(xid, rmid, flags, TMNOFLAGS);
    if (what.code)
        return what.code;
    branch &one = *what.one;
    if ((one.state != branch_state::idle && one.state != branch_state::failed) || one.thread != thread_number())
        return XAER_PROTO;
    const bool is_failed = one.state == branch_state::failed, is_empty = !is_failed && ty_plugin_is_empty(one.txn);
    uint8_t description[description_head + XIDDATASIZE];
    ty_txn *txn = one.txn;
    if (!is_failed && !is_empty) {
        one.state = branch_state::starting; // reserved for this call
        const size_t bytes = describe(one.xid, description);
        lock.unlock();
        const ty_status status = ty_prepare(txn, description, bytes);
        lock.lock();
        if (!status) {
            one.state = branch_state::prepared;
            return XA_OK;
        }
        remove_branch(*what.of, &one);
        static_cast<void>(take_back(txn));
        return status == TY_E_SPACE ? XA_RBTRANSIENT : XA_RBOTHER;
    }
    remove_branch(*what.of, &one);
    static_cast<void>(take_back(txn)); // it has done nothing, or must not count
    return is_failed ? XA_RBROLLBACK : XA_RDONLY;
}

// XA1: resolves a branch of a process that has crashed.
int resolve(manager &of, branch *one, ty_outcome outcome) {
    const bool wrong = fault("xa_rolled_back_is_committed") && outcome != TY_OUTCOME_UNKNOWN;
    asked answer{wrong ? TY_OUTCOME_COMMIT : outcome, {}, false};
    ty_heap *heap = nullptr;
    of.busy = this_process();
    lock.unlock();
    const ty_status status = open_heap(of.path, &answer, &heap);
    lock.lock();
    of.busy = 0;
    note_changed();
    if (status)
        return XAER_RMFAIL; // it is in doubt as before
    of.heap = heap;
    remove_branch(of, one);
    return XA_OK;
}

int commit_in_one(const ending &what) {
    branch &one = *what.one;
    if (one.state == branch_state::failed && one.thread == thread_number()) {
        ty_txn *txn = one.txn;
        remove_branch(*what.of, &one);
        static_cast<void>(take_back(txn));
        return XA_RBROLLBACK;
    }
    if (one.state != branch_state::idle || one.thread != thread_number())
        return XAER_PROTO;
    one.state = branch_state::starting; // reserved for this call
    lock.unlock();
    const ty_status status = ty_commit(one.txn);
    const bool over = !status || is_over(what);
    if (!over)
        static_cast<void>(ty_rollback(one.txn));
    lock.lock();
    remove_branch(*what.of, &one);
    return !status ? XA_OK : over ? XAER_RMFAIL : status == TY_E_SPACE ? XA_RBTRANSIENT : XA_RBOTHER;
}

int xa_commit(XID *xid, int rmid, long flags) {
    const std::lock_guard guard(lock);
    const ending what = find_ending(xid, rmid, flags, TMONEPHASE | TMNOWAIT);
    if (what.code)
        return what.code;
    if (flags & TMONEPHASE)
        return commit_in_one(what);
    branch &one = *what.one;
    if (one.state == branch_state::doubtful)
        return resolve(*what.of, &one, TY_OUTCOME_COMMIT);
    if (one.state != branch_state::prepared)
        return XAER_PROTO;
    one.state = branch_state::starting;
    lock.unlock();
    const ty_status status = ty_commit(one.txn);
    lock.lock();
    if (status == TY_E_IN_DOUBT) {
        one.state = branch_state::prepared;
        return XA_RETRY;
    }
    remove_branch(*what.of, &one);
    return status ? XAER_RMFAIL : XA_OK;
}

int xa_rollback(XID *xid, int rmid, long flags) {
    const std::lock_guard guard(lock);
    const ending what = find_ending(xid, rmid, flags, TMNOFLAGS);
    if (what.code)
        return what.code;
    branch &one = *what.one;
    if (one.state == branch_state::doubtful)
        return resolve(*what.of, &one, TY_OUTCOME_ROLLBACK);
    const bool is_own = one.thread == thread_number();
    const bool may = one.state == branch_state::prepared ||
                     ((one.state == branch_state::idle || one.state == branch_state::failed) && is_own);
    if (!may)
        return XAER_PROTO;
    ty_txn *txn = one.txn;
    remove_branch(*what.of, &one);
    return take_back(txn) ? XAER_RMERR : XA_OK;
}

int xa_recover(XID *xids, long count, int rmid, long flags) {
    if (flags & TMASYNC)
        return XAER_ASYNC;
    if (flags & ~(TMSTARTRSCAN | TMENDRSCAN) || count < 0 || (!xids && count > 0))
        return XAER_INVAL;
    const std::lock_guard guard(lock);
    manager *found = await_manager(rmid);
    if (!found)
        return XAER_PROTO;
    if (flags & TMSTARTRSCAN) {
        found->scans = true;
        found->scanned = 0;
    } else if (!found->scans) {
        return XAER_INVAL;
    }
    long listed = 0;
    uint32_t at = 0;
    for (const branch *each = found->branches; each && listed < count; each = each->next)
        if ((each->state == branch_state::prepared || each->state == branch_state::doubtful) && at++ >= found->scanned)
            xids[listed++] = each->xid;
    found->scanned += static_cast<uint32_t>(listed);
    if (flags & TMENDRSCAN)
        found->scans = false;
    return static_cast<int>(listed);
}

int xa_forget(XID *xid, int rmid, long flags) {
    const std::lock_guard guard(lock);
    const ending what = find_ending(xid, rmid, flags, TMNOFLAGS);
    return what.code ? what.code : XAER_PROTO; // no branch ends heuristically
}

int xa_complete(int *, int *, int, long) {
    return XAER_INVAL;
}

} // namespace

struct xa_switch_t ty_xa_switch = {"Taiyen",    TMNOMIGRATE, 0,         xa_open,    xa_close,  xa_start,   xa_end,
                                   xa_rollback, xa_prepare,  xa_commit, xa_recover, xa_forget, xa_complete};

ty_heap *ty_xa_heap(int rmid) {
    const std::lock_guard guard(lock);
    const manager *found = await_manager(rmid);
    return found ? found->heap : nullptr;
}

ty_txn *ty_xa_txn(int rmid) {
    const std::lock_guard guard(lock);
    const manager *found = await_manager(rmid);
    const branch *one = found ? own_branch(*found) : nullptr;
    return one ? one->txn : nullptr;
}
