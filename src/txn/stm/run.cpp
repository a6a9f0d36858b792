// Runs transactions until they commit.
#include "stm.hpp"

namespace taiyen::stm {
namespace {

constexpr unsigned aborts_before_old = 2;    // a reader
constexpr unsigned aborts_before_serial = 8; // a writer, or a reader whose old values were not kept
constexpr unsigned longest_rest = 10;        // as a power of two

// Randomised exponential backoff: other transactions progress meanwhile.
void rest(unsigned aborts, uint64_t &dice) {
    dice = dice * 6364136223846793005 + 1442695040888963407;
    const unsigned bits = aborts < longest_rest ? aborts : longest_rest;
    for (uint64_t n = dice >> (64 - bits); n != 0; n--)
        os::pause_briefly();
    if (aborts >= aborts_before_serial / 2)
        os::yield();
}

// The effect of a conflict on the next attempt. A body that asks to run again although no other could commit gains
// nothing from serial mode: it lets others go first.
void count_abort(const transaction &own, attempts &tried) {
    const conflict why = own.last_conflict();
    if (why == conflict::evicted) {
        tried.aborts = aborts_before_serial;
        return;
    }
    tried.aborts = why == conflict::restart && own.is_serial() ? 0 : tried.aborts + 1;
    if (tried.dice == 0)
        tried.dice = reinterpret_cast<uintptr_t>(&own);
    if (why != conflict::other_domain)
        rest(tried.aborts == 0 ? aborts_before_serial : tried.aborts, tried.dice);
}

// Q7: with wait_policy::never it waits for no other transaction. A transaction that is not optimistic has not recorded
// its reads: it does in the next run.
ty_status wait_for_change(transaction &own, wait_policy waits) {
    if (waits == wait_policy::never) {
        own.roll_back();
        return failure(TY_E_ARGUMENT, "wait for a change: a transaction on another heap would be held up meanwhile")
            .remedy("return from its body, too, and let that one wait");
    }
    if (!own.may_wait())
        own.roll_back();
    else if (!own.await_change())
        return failure(TY_E_ARGUMENT, "wait for a change: the transaction has read nothing")
            .remedy("load what it waits for through the transaction");
    own.call_due();
    return TY_OK;
}

} // namespace

manner next_manner(kind what, const attempts &tried) {
    if (tried.serial || tried.aborts >= aborts_before_serial)
        return manner::serial;
    return what == kind::reads && tried.aborts >= aborts_before_old ? manner::old : manner::optimistic;
}

ty_status kept_waiting() {
    return failure(TY_E_BUSY, "run a transaction: it would have to wait, within one on another heap")
        .remedy("return from the body");
}

bool runs_again(transaction &own, verdict wanted, attempts &tried, ty_status *status) {
    *status = TY_OK;
    if (wanted == verdict::retry && own.aborted() == TY_OK) {
        tried.aborts = 0;
        *status = wait_for_change(own, tried.waits);
        return *status == TY_OK;
    }
    if (wanted != verdict::commit) // else the commit has rolled it back
        own.roll_back();
    if (wanted == verdict::roll_back && own.aborted() == TY_OK)
        return false;
    *status = own.aborted();
    if (*status != TY_E_BUSY)
        return false;
    count_abort(own, tried);
    if (own.last_conflict() == conflict::other_domain || own.last_conflict() == conflict::restart)
        return false;
    own.call_due();
    if (own.await_serial_end(tried.waits))
        return true;
    *status = kept_waiting();
    return false;
}

} // namespace taiyen::stm
