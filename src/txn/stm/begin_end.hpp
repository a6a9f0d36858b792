// What each transaction does at its begin and its end, compiled into the callers. Included by stm.hpp.
#pragma once

#include "stm.hpp"

namespace taiyen::stm {

inline bool transaction::try_to_enter() {
    const uint64_t now = domain_->now();
    perturb();
    announce(began_, now + 1);
    perturb();
    return !domain_->is_asked(domain::ask_stop);
}

// A thread that stops the domain later waits for this transaction.
inline bool transaction::begin(kind what, manner how, wait_policy waits) {
    if (exclusive_) [[unlikely]]
        how = manner::serial;
    else if (!enter(waits)) [[unlikely]]
        return false;
    what_ = what;
    how_ = how;
    last_conflict_ = conflict::count;
    aborted_ = TY_OK;
    if (how != manner::optimistic && !begin_otherwise(waits)) [[unlikely]]
        return false;
    window_.start = domain_->now(); // a stop may have ended since it entered
    stops_ = domain_->stops_.load(std::memory_order_acquire);
    runs_ = true;
    open_window();
    return true;
}

inline void transaction::open_window() {
    if (reads_ == nullptr) [[unlikely]]
        static_cast<void>(grow_reads()); // without room, the first load fails
    const bool goes_on = aborted_ == TY_OK;
    window_.load_words = goes_on && how_ == manner::optimistic && reads_ != nullptr ? range_words_ : 0;
    window_.store_words = goes_on && what_ == kind::writes ? range_words_ : 0;
}

// A transaction that read much leaves no memory behind.
inline void transaction::clear_reads() {
    constexpr ptrdiff_t kept = ptrdiff_t{1} << 17;
    if (window_.reads_limit - reads_ > kept) [[unlikely]]
        release_reads();
    else if (reads_ != nullptr) [[likely]]
        window_.reads_end = reads_ + 1;
}

// The counterpart of try_to_enter().
inline void transaction::runs_no_more() {
    if (domain_->barrier_) [[likely]] {
        began_.store(0, std::memory_order_release);
        std::atomic_signal_fence(std::memory_order_seq_cst);
    } else {
        began_.exchange(0, std::memory_order_seq_cst);
    }
    if (domain_->is_asked(domain::ask_stop | domain::ask_ends)) [[unlikely]]
        wake_those_that_await_ends();
}

inline void transaction::end(call_when outcome) {
    runs_ = false;
    if (how_ != manner::optimistic || exclusive_) [[unlikely]]
        end_manner();
    else
        runs_no_more();
    close_window();
    clear_reads();
    if (has_changes_ || !writes_.empty()) {
        locks_.clear();
        writes_.clear();
        window_.written = slow_stores_ = 0;
        has_changes_ = false;
    }
    if (calls_.count() != 0) [[unlikely]]
        collect_due(outcome);
}

inline bool transaction::commit() {
    if (aborted_ != TY_OK || has_changes_ || !writes_.empty()) {
        if (!commit_stores())
            return false;
    } else {
        stored_ = false;
    }
    commits_.store(commits_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    end(call_when::committed);
    return true;
}

inline void transaction::announce(std::atomic<uint64_t> &field, uint64_t value) const {
    if (domain_->barrier_) [[likely]] {
        field.store(value, std::memory_order_relaxed);
        std::atomic_signal_fence(std::memory_order_seq_cst);
    } else {
        field.exchange(value, std::memory_order_seq_cst);
    }
}

} // namespace taiyen::stm
