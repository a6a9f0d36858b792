// How a transaction ends.
#include "stm.hpp"

namespace taiyen::stm {
namespace {

constexpr unsigned looks_while_others_are_held = 50; // by a thread that already holds others

} // namespace

bool transaction::holds(uint64_t version) const {
    return version >> index_bits == (locked_bit >> index_bits | id_);
}

uint64_t transaction::before(uint64_t version) const {
    return locks_[version & index_mask].version;
}

// Q2: words are stored to with their orecs locked. Bounded waits, so that two transactions do not deadlock.
inline bool transaction::lock_orecs() {
    if (ty_status status = locks_.reserve(writes_.count()))
        return abort(status);
    const uint64_t mine = locked_bit | id_ << index_bits;
    for (const written_word &written : writes_) {
        orec *own = domain_->orec_of(written.word);
        uint64_t version = __atomic_load_n(own, __ATOMIC_RELAXED);
        unsigned looks = 0;
        for (;;) {
            if (is_locked(version)) [[unlikely]] {
                if (holds(version))
                    break;
                if (!rest_at_locked(&looks))
                    return false;
                version = __atomic_load_n(own, __ATOMIC_RELAXED);
            } else if (__atomic_compare_exchange_n(own, &version, mine | locks_.count(), false, __ATOMIC_ACQ_REL,
                                                   __ATOMIC_RELAXED)) [[likely]] {
                locks_.push_in_room({own, version});
                perturb();
                break;
            }
        }
    }
    return true;
}

// False: it has looked often enough.
bool transaction::rest_at_locked(unsigned *looks) {
    if (how_ == manner::serial)
        os::give_way(); // its owner will find that it may not commit
    else if ((*looks)++ == looks_while_others_are_held)
        return abort(conflict::locked);
    else
        os::pause_briefly();
    return true;
}

void transaction::unlock_orecs() {
    for (const locked_orec &locked : locks_)
        __atomic_store_n(locked.at, locked.version, __ATOMIC_RELEASE);
}

// Q2: a word is stored to with its orec locked. Release, so that a thread that sees the word sees the lock.
inline void transaction::store_words() {
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

inline void transaction::release_orecs(uint64_t timestamp) {
    for (const locked_orec &locked : locks_) {
        __atomic_store_n(locked.at, fault("stm_orec_keeps_its_old_timestamp") ? locked.version : timestamp,
                         __ATOMIC_RELEASE);
        perturb();
    }
}

// Q3: announces the commit in committing_ before it reads attention_. Q4: does not commit beside a serial one.
bool transaction::try_commit() {
    if (!lock_orecs())
        return false;
    const recorder &keeper = domain_->keeper_;
    const bool records = keeper.every_commit || (has_changes_ && keeper.prepare != nullptr);
    if (records)
        if (ty_status status = keeper.prepare(keeper.context, *this))
            return abort(status);
    announce(committing_, domain_->now() + 1);
    perturb();
    const uint32_t asked = domain_->attention_.load(std::memory_order_seq_cst);
    if ((asked & domain::ask_serial) != 0 && how_ != manner::serial && !fault("stm_commit_beside_a_serial_one"))
        [[unlikely]] {
        if (records)
            keeper.record(keeper.context, *this, 0, false);
        return abort(conflict::serial);
    }
    perturb();
    const uint64_t timestamp = domain_->clock_.fetch_add(1, std::memory_order_acq_rel) + 1;
    perturb();
    const bool valid = timestamp == window_.start + 1 || how_ == manner::serial ||
                       fault("stm_commit_without_validation") || reads_hold();
    if (records)
        keeper.record(keeper.context, *this, timestamp, valid);
    if (!valid)
        return abort(conflict::changed);
    if ((asked & domain::ask_old) != 0) [[unlikely]]
        domain_->note_old(writes_, timestamp);
    store_words();
    if (records && keeper.stored != nullptr)
        if (ty_status status = keeper.stored(keeper.context, *this, timestamp))
            return abort(status);
    release_orecs(timestamp);
    timestamp_ = timestamp;
    committing_.store(0, std::memory_order_release);
    if ((asked & domain::ask_wake) != 0) [[unlikely]]
        wake_waiting();
    return true;
}

void transaction::wake_waiting() const {
    uint64_t orecs = 0;
    for (const locked_orec &locked : locks_)
        orecs |= domain_->bit_of(locked.at);
    domain_->wake(orecs);
}

// False: it has been rolled back.
bool transaction::commit_stores() {
    if (aborted_ == TY_OK && try_commit()) {
        stored_ = true;
        return true;
    }
    if (committing_.load(std::memory_order_relaxed) != 0 || locks_.count() != 0) {
        unlock_orecs();
        committing_.store(0, std::memory_order_release);
    }
    roll_back();
    return false;
}

void transaction::back_to(const part_savepoint &to) {
    writes_.back_to(to.writes);
    window_.written = writes_.filter();
    for (size_t i = to.calls; i < calls_.count(); i++)
        if (calls_[i].when == call_when::committed)
            calls_[i].when = call_when::never;
        else if (calls_[i].when == call_when::rolled_back)
            calls_[i].when = call_when::always;
}

void transaction::discard_changes() {
    const recorder &keeper = domain_->keeper_;
    if (keeper.discard != nullptr)
        keeper.discard(keeper.context, *this);
}

// X26: a thread that stops the domain finds nothing left of what has been rolled back.
void transaction::roll_back() {
    const bool late = fault("changes_discarded_after_the_end");
    if (!late)
        discard_changes();
    end(call_when::rolled_back);
    if (late) {
        os::yield(); // the turn of the thread that stops it
        discard_changes();
    }
}

void transaction::end_manner() {
    if (exclusive_)
        return;
    if (how_ == manner::serial)
        domain_->end_serial();
    else if (how_ == manner::old)
        domain_->end_old();
    runs_no_more();
}

void transaction::collect_due(call_when outcome) {
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
