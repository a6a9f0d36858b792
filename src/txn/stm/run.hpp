// The loop that runs a body until it commits, compiled into its caller. Included by stm.hpp; run.cpp has what is rare.
#pragma once

#include "stm.hpp"

namespace taiyen::stm {

struct attempts {
    bool serial = false; // it is serial from the first attempt on, and does not wait
    wait_policy waits = wait_policy::any;
    unsigned aborts = 0; // so far: later calls count on from here
    uint64_t dice = 0;
};
manner next_manner(kind what, const attempts &tried);
ty_status kept_waiting();
// After a run that has not committed. True: it is to run again; otherwise *status is the result.
bool runs_again(transaction &own, verdict wanted, attempts &tried, ty_status *status);

// After the first run.
template <class Body>
[[gnu::cold, gnu::noinline]] ty_status run_on(transaction &own, kind what, Body &body, verdict wanted, bool *committed,
                                              attempts &tried) {
    ty_status status = TY_OK;
    while (runs_again(own, wanted, tried, &status)) {
        if (!own.begin(what, next_manner(what, tried), tried.waits))
            return kept_waiting();
        wanted = body(own);
        *committed = wanted == verdict::commit && own.commit();
        if (*committed)
            return TY_OK;
    }
    return status;
}

// Runs the body in a transaction until it commits, or the body has it rolled back, which leaves *committed false. The
// body may run many times. Once the transaction is aborted its loads and stores are refused, and it runs again whatever
// the body returns, unless memory is short (TY_E_MEMORY) or it stored although it said that it only reads
// (TY_E_ARGUMENT). After some conflicts it runs so that it cannot be aborted. own must not run already: a part of a
// transaction is run by its caller, with a savepoint.
//
// verdict::retry: the body cannot proceed in this state; it runs again when a word that it loaded has changed. The
// caller calls own.call_due() afterwards.
//
// TY_E_BUSY: it has been rolled back; call run() again with the same attempts. last_conflict() says why. restart: the
// body wanted to begin again. other_domain: a nested call would have had to wait. Anything else: this one would have
// had to wait, and wait_policy::never forbids it (Q7). A body that retries under `never` gets TY_E_ARGUMENT.
template <class Body>
[[gnu::always_inline]] inline ty_status run(transaction &own, kind what, Body body, bool *committed, attempts &tried) {
    *committed = false;
    const manner how = tried.serial || tried.aborts != 0 ? next_manner(what, tried) : manner::optimistic;
    if (!own.begin(what, how, tried.waits)) [[unlikely]]
        return kept_waiting();
    const verdict wanted = body(own);
    if (wanted == verdict::commit && own.commit()) [[likely]] {
        *committed = true;
        return TY_OK;
    }
    return run_on(own, what, body, wanted, committed, tried);
}

} // namespace taiyen::stm
