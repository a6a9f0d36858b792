// A transaction's loads and stores.
#include "stm.hpp"

#include <cstdlib>
#include <cstring>

namespace taiyen::stm {
namespace {

// The thread that holds an orec is about to release it, unless it was descheduled.
constexpr unsigned looks_at_a_locked_orec = 200;

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

void transaction::wake_those_that_await_ends() const {
    domain_->ended_.fetch_add(1, std::memory_order_seq_cst);
    os::wake_all(domain_->ended_);
}

bool transaction::abort(conflict kind) {
    if (!fault("stm_aborted_transaction_loads_on"))
        close_window();
    aborted_ = TY_E_BUSY;
    last_conflict_ = kind;
    count(conflicts_[static_cast<size_t>(kind)]);
    return false;
}

bool transaction::abort(ty_status status) {
    close_window();
    aborted_ = status;
    return false;
}

// True: no orec that was read has been committed to since the start, or is locked by another transaction.
bool transaction::reads_hold() const {
    for (size_t i = 1; i <= reads_count(); i++) {
        const uint64_t version = load_orec(reads_[i]);
        if (is_locked(version) ? !holds(version) || before(version) > window_.start : version > window_.start)
            return false;
    }
    return true;
}

transaction::~transaction() {
    free(reads_);
}

void transaction::release_reads() {
    free(reads_);
    reads_ = window_.reads_end = window_.reads_limit = nullptr;
}

ty_status transaction::grow_reads() {
    const size_t count = reads_count(), wanted = count == 0 ? 1024 : 2 * count;
    auto **grown =
        static_cast<orec **>(os::internal_realloc(static_cast<void *>(reads_), (wanted + 1) * sizeof *reads_));
    if (grown == nullptr)
        return failure(TY_E_MEMORY, "note what a transaction loads").remedy("make it load less at once");
    grown[0] = nullptr;
    reads_ = grown;
    window_.reads_end = grown + 1 + count;
    window_.reads_limit = grown + 1 + wanted;
    return TY_OK;
}

bool transaction::note_read(orec *read) {
    if (window_.reads_end == window_.reads_limit) [[unlikely]]
        if (ty_status status = grow_reads())
            return abort(status);
    if (window_.reads_end[-1] != read)
        *window_.reads_end++ = read;
    return true;
}

// Q1: all loads are of one state of memory. What was read so far must be valid at the new start, too.
bool transaction::extend_start() {
    const uint64_t now = domain_->now();
    perturb();
    if (!fault("stm_start_moves_up_without_validation") && !reads_hold())
        return abort(conflict::changed);
    window_.start = now;
    return true;
}

bool transaction::renew() {
    if (aborted_ != TY_OK || how_ != manner::optimistic)
        return aborted_ == TY_OK;
    if (!extend_start())
        return false;
    began_.store(window_.start + 1,
                 std::memory_order_release); // what it has read leads to no block that was freed before
    return true;
}

bool transaction::load_committed(const uint64_t *word, uint64_t *value) {
    orec *own = domain_->orec_of(word);
    for (unsigned looks = 0; !ty_detail_read(window_.start, own, reinterpret_cast<uintptr_t>(word), value); looks++) {
        const uint64_t version = load_orec(own);
        if (is_locked(version)) {
            if (looks == looks_at_a_locked_orec)
                return abort(conflict::locked);
            os::pause_briefly();
        } else if (version > window_.start && !extend_start()) {
            return false;
        }
    }
    return note_read(own);
}

bool transaction::load_in_word(const uint64_t *word, uint64_t mask, uint64_t *value) {
    const written_word *own = writes_.find(word);
    if (own == nullptr && ty_detail_load_unwritten(&window_, reinterpret_cast<uintptr_t>(word), value)) [[likely]]
        return true;
    if (own != nullptr && (mask & ~own->mask) == 0) {
        *value = own->value;
        return aborted_ == TY_OK;
    }
    if (aborted_ != TY_OK)
        return false;
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
    auto *to = static_cast<unsigned char *>(value);
    auto from = reinterpret_cast<uintptr_t>(address);
    while (bytes != 0) {
        const word_part part = part_at(from, bytes);
        uint64_t word;
        if (!load_at_once(reinterpret_cast<uintptr_t>(part.word), &word) &&
            !load_in_word(part.word, part.mask(), &word))
            return false;
        word >>= part.first * 8;
        memcpy(to, &word, part.bytes);
        to += part.bytes;
        from += part.bytes;
        bytes -= part.bytes;
    }
    return true;
}

bool transaction::store_in_word(uint64_t *word, uint64_t value, uint64_t mask) {
    if (aborted_ != TY_OK)
        return false;
    if (!may_change("store"))
        return false;
    if (!writes_.put_at_once(word, value, mask))
        if (ty_status status = writes_.put(word, value, mask))
            return abort(status);
    window_.written |= ty_detail_filter_bit(reinterpret_cast<uintptr_t>(word));
    return true;
}

bool transaction::store(void *address, const void *value, size_t bytes) {
    if (bytes == 0)
        return aborted_ == TY_OK;
    const auto *from = static_cast<const unsigned char *>(value);
    auto to = reinterpret_cast<uintptr_t>(address);
    while (bytes != 0) {
        const word_part part = part_at(to, bytes);
        uint64_t word = 0;
        memcpy(&word, from, part.bytes);
        if (!store_in_word(part.word, word << part.first * 8, part.mask()))
            return false;
        from += part.bytes;
        to += part.bytes;
        bytes -= part.bytes;
    }
    return true;
}

void transaction::store_slowly(const void *address, size_t bytes) {
    const uintptr_t first = reinterpret_cast<uintptr_t>(address) / slow_bytes;
    const uintptr_t pieces = (reinterpret_cast<uintptr_t>(address) + bytes - 1) / slow_bytes - first + 1;
    for (uintptr_t i = fault("own_allocation_partly_stored_to_at_the_commit"); i < pieces && slow_stores_ != UINT64_MAX;
         i++)
        slow_stores_ |= ty_detail_filter_bit(first + i);
}

bool transaction::touch(void *word) {
    return store_in_word(static_cast<uint64_t *>(word), 0, 0);
}

bool transaction::unchanged(const void *word) {
    if (aborted_ != TY_OK)
        return false;
    const uint64_t version = load_orec(domain_->orec_of(word));
    if (how_ == manner::serial || version <= window_.start)
        return true;
    return abort(is_locked(version) ? conflict::locked : conflict::changed);
}

bool transaction::is_locked_now(const void *word) const {
    return is_locked(load_orec(domain_->orec_of(word)));
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
