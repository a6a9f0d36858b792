// How a transaction ends.
#include "stm.hpp"

namespace taiyen::stm {
namespace {

constexpr unsigned looks_while_others_are_held = 50; // by a thread that already holds others

} // namespace

bool transaction::holds(uint64_t version) const {
    return version & 1 && version >> index_bits == id_;
}

uint64_t transaction::before(uint64_t version) const {
    return locks_[(version & ((uint64_t{1} << index_bits) - 1)) >> 1].version;
}

// Q2: words are stored to with their orecs locked. Bounded waits, so that two transactions do not deadlock.
bool transaction::lock_orecs() {
    for (const written_word &written : writes_) {
        std::atomic<uint64_t> *orec = domain_->orec_of(written.word);
        uint64_t version = orec->load(std::memory_order_relaxed);
        for (unsigned looks = 0; !holds(version); looks++) {
            if (version & 1) {
                if (how_ == manner::serial)
                    os::give_way(); // its owner will find that it may not commit
                else if (looks == looks_while_others_are_held)
                    return abort(conflict::locked);
                else
                    os::pause_briefly();
                version = orec->load(std::memory_order_relaxed);
                continue;
            }
            if (ty_status status = locks_.push({orec, version}))
                return abort(status);
            if (orec->compare_exchange_strong(version, id_ << index_bits | (locks_.count() - 1) << 1 | 1,
                                              std::memory_order_acq_rel, std::memory_order_relaxed)) {
                perturb();
                break;
            }
            locks_.cut(locks_.count() - 1);
        }
    }
    return true;
}

void transaction::unlock_orecs() {
    for (const locked_orec &locked : locks_)
        locked.orec->store(locked.version, std::memory_order_release);
}

// Q2: a word is stored to with its orec locked. Release, so that a thread that sees the word sees the lock.
void transaction::store_words() {
    for (const written_word &written : writes_) {
        uint64_t value = written.value;
        if (written.mask == 0)
            continue;
        if (written.mask != UINT64_MAX)
            value |= __atomic_load_n(written.word, __ATOMIC_RELAXED) & ~written.mask;
        __atomic_store_n(written.word, value, __ATOMIC_RELEASE);
        perturb();
    }
}

void transaction::release_orecs(uint64_t timestamp) {
    for (const locked_orec &locked : locks_) {
        locked.orec->store(fault("stm_orec_keeps_its_old_timestamp") ? locked.version : timestamp << 1,
                           std::memory_order_release);
        perturb();
    }
}

// Q3: announces the commit in committing_ before it reads attention_. Q4: does not commit beside a serial one.
bool transaction::try_commit() {
    if (!lock_orecs())
        return false;
    const recorder &keeper = domain_->keeper_;
    if (keeper.prepare != nullptr)
        if (ty_status status = keeper.prepare(keeper.context, *this))
            return abort(status);
    committing_.store(domain_->now() + 1, std::memory_order_seq_cst);
    perturb();
    const uint32_t asked = domain_->attention_.load(std::memory_order_seq_cst);
    if ((asked & domain::ask_serial) != 0 && how_ != manner::serial && !fault("stm_commit_beside_a_serial_one")) {
        if (keeper.record != nullptr)
            keeper.record(keeper.context, *this, 0, false);
        return abort(conflict::serial);
    }
    perturb();
    const uint64_t timestamp = domain_->clock_.fetch_add(1, std::memory_order_acq_rel) + 1;
    perturb();
    const bool valid =
        timestamp == start_ + 1 || how_ == manner::serial || fault("stm_commit_without_validation") || reads_hold();
    if (keeper.record != nullptr)
        keeper.record(keeper.context, *this, timestamp, valid);
    if (!valid)
        return abort(conflict::changed);
    if ((asked & domain::ask_old) != 0)
        domain_->note_old(writes_, timestamp);
    store_words();
    if (keeper.stored != nullptr)
        if (ty_status status = keeper.stored(keeper.context, *this, timestamp))
            return abort(status);
    release_orecs(timestamp);
    timestamp_ = timestamp;
    committing_.store(0, std::memory_order_release);
    if ((asked & domain::ask_wake) != 0) {
        uint64_t orecs = 0;
        for (const locked_orec &locked : locks_)
            orecs |= domain_->bit_of(locked.orec);
        domain_->wake(orecs);
    }
    return true;
}

bool transaction::commit() {
    if (aborted_ != TY_OK) {
        roll_back();
        return false;
    }
    if (!writes_.empty() && !try_commit()) {
        unlock_orecs();
        committing_.store(0, std::memory_order_release);
        roll_back();
        return false;
    }
    stored_ = !writes_.empty();
    commits_.store(commits_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    end(call_when::committed);
    return true;
}

void transaction::back_to(const part_savepoint &to) {
    writes_.back_to(to.writes);
    for (size_t i = to.calls; i < calls_.count(); i++)
        if (calls_[i].when == call_when::committed)
            calls_[i].when = call_when::never;
        else if (calls_[i].when == call_when::rolled_back)
            calls_[i].when = call_when::always;
}

void transaction::roll_back() {
    end(call_when::rolled_back);
}

void transaction::end(call_when outcome) {
    runs_ = false;
    if (!exclusive_) {
        if (how_ == manner::serial)
            domain_->end_serial();
        else if (how_ == manner::old)
            domain_->end_old();
        runs_no_more();
    }
    reads_.clear();
    locks_.clear();
    writes_.clear();
    if (calls_.count() == 0) [[likely]]
        return;
    due_.swap(calls_); // due_ is empty: call_due() precedes the next begin
    size_t kept = 0;
    for (size_t i = 0; i < due_.count(); i++)
        if (due_[i].when == outcome || due_[i].when == call_when::always)
            due_[kept++] = due_[i];
    due_.cut(kept);
}

void transaction::call_all_due() {
    os::array<call> due;
    due.swap(due_);
    for (const call &each : due)
        each.function(each.context);
}

void transaction::add_to(metrics &sums) const {
    sums.commits += commits_.load(std::memory_order_relaxed);
    for (size_t i = 0; i < static_cast<size_t>(conflict::count); i++)
        sums.conflicts[i] += conflicts_[i].load(std::memory_order_relaxed);
    sums.serial += serial_count_.load(std::memory_order_relaxed);
    sums.old_readers += old_count_.load(std::memory_order_relaxed);
}

} // namespace taiyen::stm
