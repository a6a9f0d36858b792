// A transaction's loads and stores.
#include "stm.hpp"

#include <cstring>

namespace taiyen::stm {
namespace {

// The thread that holds an orec is about to release it, unless it was descheduled.
constexpr unsigned looks_at_a_locked_orec = 200;

bool is_locked(uint64_t version) {
    return version & 1;
}

uint64_t timestamp_of(uint64_t version) {
    return version >> 1;
}

// Increments a metric that only one thread writes.
void count(std::atomic<uint64_t> &metric) {
    metric.store(metric.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

uint64_t load_memory(const uint64_t *word) {
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

// The part of a load or store that lies in one word.
struct word_part {
    uint64_t *word;
    unsigned first; // first byte
    unsigned bytes;
    uint64_t mask() const { return bytes == 8 ? UINT64_MAX : ((uint64_t{1} << bytes * 8) - 1) << first * 8; }
};

word_part part_at(uintptr_t address, size_t left) {
    const auto first = static_cast<unsigned>(address % 8);
    const size_t bytes = left < 8 - first ? left : 8 - first;
    return {reinterpret_cast<uint64_t *>(address - first), first, static_cast<unsigned>(bytes)};
}

} // namespace

// Succeeds while the domain is not stopped. A thread that stops it later waits for this transaction.
inline bool transaction::try_to_enter() {
    const uint64_t now = domain_->now();
    perturb();
    if (domain_->barrier_) [[likely]] {
        began_.store(now + 1, std::memory_order_relaxed);
        std::atomic_signal_fence(std::memory_order_seq_cst);
    } else {
        began_.exchange(now + 1, std::memory_order_seq_cst);
    }
    perturb();
    return !domain_->is_asked(domain::ask_stop);
}

bool transaction::enter_slowly(wait_policy waits) {
    do {
        runs_no_more();
        if (waits == wait_policy::never &&
            !fault("stm_nonblocking_inner_transaction_waits")) // Q7: with wait_policy::never, wait for no other
                                                               // transaction
            return false;
        domain_->await_end_of(domain::ask_stop);
    } while (!try_to_enter());
    return true;
}

bool transaction::acquire_domain(wait_policy waits) {
    if (!enter(waits))
        return false;
    exclusive_ = domain_->begin_serial(*this, waits);
    if (!exclusive_)
        runs_no_more();
    return exclusive_;
}

void transaction::release_domain() {
    if (!exclusive_)
        return;
    exclusive_ = false;
    domain_->end_serial();
    runs_no_more();
}

bool transaction::begin(kind what, manner how, wait_policy waits) {
    if (exclusive_) [[unlikely]]
        how = manner::serial;
    else if (!enter(waits)) [[unlikely]]
        return false;
    what_ = what;
    how_ = how;
    last_conflict_ = conflict::count;
    aborted_ = TY_OK;
    waits_ = false;
    if (how != manner::optimistic && !begin_otherwise(waits)) [[unlikely]]
        return false;
    stops_ = domain_->stops_.load(std::memory_order_acquire);
    start_ = domain_->now();
    runs_ = true;
    return true;
}

bool transaction::begin_otherwise(wait_policy waits) {
    if (how_ == manner::serial) {
        if (!exclusive_ && !domain_->begin_serial(*this, waits)) {
            runs_no_more();
            return false;
        }
        count(serial_count_);
        began_.store(domain_->now() + 1, std::memory_order_release); // no commit since the domain is exclusive
        return true;
    }
    if (domain_->begin_old() != TY_OK) { // no memory for old values: handled like a full table of them
        how_ = manner::optimistic;
        abort(conflict::evicted);
    }
    count(old_count_);
    return true;
}

// The counterpart of try_to_enter().
void transaction::runs_no_more() {
    if (domain_->barrier_) [[likely]] {
        began_.store(0, std::memory_order_release);
        std::atomic_signal_fence(std::memory_order_seq_cst);
    } else {
        began_.exchange(0, std::memory_order_seq_cst);
    }
    if (!domain_->is_asked(domain::ask_stop | domain::ask_ends)) [[likely]]
        return;
    domain_->ended_.fetch_add(1, std::memory_order_seq_cst);
    os::wake_all(domain_->ended_);
}

bool transaction::abort(conflict kind) {
    aborted_ = TY_E_BUSY;
    last_conflict_ = kind;
    count(conflicts_[static_cast<size_t>(kind)]);
    return false;
}

bool transaction::abort(ty_status status) {
    aborted_ = status;
    return false;
}

// True: no orec that was read has been committed to since the start, or is locked by another transaction.
bool transaction::reads_hold() const {
    for (const std::atomic<uint64_t> *orec : reads_) {
        const uint64_t version = orec->load(std::memory_order_acquire);
        if (is_locked(version) ? !holds(version) || timestamp_of(before(version)) > start_
                               : timestamp_of(version) > start_)
            return false;
    }
    return true;
}

// Q1: all loads are of one state of memory. What was read so far must be valid at the new start, too.
bool transaction::extend_start() {
    const uint64_t now = domain_->now();
    perturb();
    if (!fault("stm_start_moves_up_without_validation") && !reads_hold())
        return abort(conflict::changed);
    start_ = now;
    return true;
}

bool transaction::renew() {
    if (aborted_ != TY_OK || how_ != manner::optimistic)
        return aborted_ == TY_OK;
    if (!extend_start())
        return false;
    began_.store(start_ + 1, std::memory_order_release); // what it has read leads to no block that was freed before
    return true;
}

bool transaction::load_committed(const uint64_t *word, uint64_t *value) {
    std::atomic<uint64_t> *orec = domain_->orec_of(word);
    for (unsigned looks = 0; !load_unlocked(orec, word, value); looks++) {
        const uint64_t version = orec->load(std::memory_order_acquire);
        if (is_locked(version)) {
            if (looks == looks_at_a_locked_orec)
                return abort(conflict::locked);
            os::pause_briefly();
        } else if (timestamp_of(version) > start_ && !extend_start()) {
            return false;
        }
    }
    if (reads_.count() != 0 && reads_[reads_.count() - 1] == orec)
        return true;
    ty_status status = reads_.push(orec);
    return status == TY_OK || abort(status);
}

bool transaction::load_word(const uint64_t *word, uint64_t *value) {
    const written_word *own = writes_.find(word);
    if (own != nullptr && own->mask == UINT64_MAX) {
        *value = own->value;
        return true;
    }
    if (how_ == manner::serial)
        *value = load_memory(word); // Q4: no other transaction commits meanwhile
    else if (how_ == manner::old ? !load_old(word, value) : !load_committed(word, value))
        return false;
    if (own != nullptr)
        *value = (*value & ~own->mask) | own->value;
    return true;
}

bool transaction::load(const void *address, void *value, size_t bytes) {
    if (aborted_ != TY_OK)
        return false;
    uint64_t whole;
    if (is_word(address, bytes) && load_at_once(static_cast<const uint64_t *>(address), &whole)) {
        memcpy(value, &whole, sizeof whole);
        return true;
    }
    auto *to = static_cast<unsigned char *>(value);
    auto from = reinterpret_cast<uintptr_t>(address);
    while (bytes != 0) {
        const word_part part = part_at(from, bytes);
        uint64_t word;
        if (!load_word(part.word, &word))
            return false;
        word >>= part.first * 8;
        memcpy(to, &word, part.bytes);
        to += part.bytes;
        from += part.bytes;
        bytes -= part.bytes;
    }
    return true;
}

bool transaction::store(void *address, const void *value, size_t bytes) {
    if (aborted_ != TY_OK)
        return false;
    if (what_ == kind::reads)
        return abort(failure(TY_E_ARGUMENT, "store in a transaction that only reads"));
    if (is_word(address, bytes)) {
        uint64_t whole;
        memcpy(&whole, value, sizeof whole);
        if (store_at_once(static_cast<uint64_t *>(address), whole, UINT64_MAX))
            return true;
    }
    const auto *from = static_cast<const unsigned char *>(value);
    auto to = reinterpret_cast<uintptr_t>(address);
    while (bytes != 0) {
        const word_part part = part_at(to, bytes);
        uint64_t word = 0;
        memcpy(&word, from, part.bytes);
        if (ty_status status = writes_.put(part.word, word << part.first * 8, part.mask()))
            return abort(status);
        from += part.bytes;
        to += part.bytes;
        bytes -= part.bytes;
    }
    return true;
}

bool transaction::touch(void *word) {
    if (aborted_ != TY_OK)
        return false;
    if (what_ == kind::reads)
        return abort(failure(TY_E_ARGUMENT, "store in a transaction that only reads"));
    ty_status status = writes_.put(static_cast<uint64_t *>(word), 0, 0);
    return status == TY_OK || abort(status);
}

bool transaction::unchanged(const void *word) {
    if (aborted_ != TY_OK)
        return false;
    const uint64_t version = domain_->orec_of(word)->load(std::memory_order_acquire);
    if (how_ == manner::serial || (!is_locked(version) && timestamp_of(version) <= start_))
        return true;
    return abort(is_locked(version) ? conflict::locked : conflict::changed);
}

bool transaction::is_locked_now(const void *word) const {
    return is_locked(domain_->orec_of(word)->load(std::memory_order_acquire));
}

bool transaction::await_serial_end(wait_policy waits) const {
    if (waits == wait_policy::never)
        return exclusive_ || !domain_->is_asked(domain::ask_serial);
    domain_->await_end_of(domain::ask_serial);
    return true;
}

void transaction::prefetch(const void *const *addresses, size_t count) const {
    for (size_t i = 0; i < count; i++) {
        __builtin_prefetch(domain_->orec_of(addresses[i]), 1);
        __builtin_prefetch(addresses[i], 1);
    }
}

} // namespace taiyen::stm
