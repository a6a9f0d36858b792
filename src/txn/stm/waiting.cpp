// Transactions that wait until something that they read has changed.
#include "stm.hpp"

namespace taiyen::stm {

// Q6: it is known to committing transactions before it validates for the last time. It is no longer running: none waits
// for it.
bool transaction::await_change() {
    if (reads_count() == 0) {
        roll_back();
        return false;
    }
    uint64_t orecs = 0;
    for (size_t i = 1; i <= reads_count(); i++)
        orecs |= domain_->bit_of(reads_[i]);
    discard_changes();
    runs_ = false;
    runs_no_more();
    perturb();
    waits_for_.store(orecs, std::memory_order_seq_cst);
    {
        os::lock_guard guard(domain_->lock_);
        domain_->waiting_++;
        domain_->ask(domain::ask_wake);
    }
    for (;;) {
        const uint32_t seen = changes_.load(std::memory_order_seq_cst);
        if (!reads_hold() || domain_->stops_.load(std::memory_order_seq_cst) != stops_)
            break;
        perturb();
        os::wait_on(changes_, fault("stm_sleeps_through_a_change") ? changes_.load(std::memory_order_seq_cst) : seen);
    }
    waits_for_.store(0, std::memory_order_relaxed);
    {
        os::lock_guard guard(domain_->lock_);
        if (--domain_->waiting_ == 0)
            domain_->no_longer(domain::ask_wake);
    }
    roll_back();
    return true;
}

void domain::wake(uint64_t orecs) {
    each([&](transaction &own) {
        if ((own.waits_for_.load(std::memory_order_seq_cst) & orecs) != 0) {
            own.changes_.fetch_add(1, std::memory_order_seq_cst);
            os::wake_all(own.changes_);
        }
        return true;
    });
}

} // namespace taiyen::stm
