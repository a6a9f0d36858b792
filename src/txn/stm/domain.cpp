// What all transactions share: the clock, the orecs, the list of transactions, and the requests to all of them.
#include "stm.hpp"

#include <algorithm>
#include <new>

namespace taiyen::stm {
namespace {

size_t whole_pages(size_t bytes) {
    return (bytes + os::page_bytes - 1) & ~(os::page_bytes - 1);
}

} // namespace

#if defined(TAIYEN_TSAN)
constexpr bool barriers_are_seen = false; // ThreadSanitizer does not model membarrier
#else
constexpr bool barriers_are_seen = true;
#endif

size_t domain::orecs_bytes() const {
    return whole_pages(orec_mask_ + sizeof *orecs_);
}

size_t domain::old_bytes() const {
    return whole_pages(old_max_ * sizeof *old_);
}

ty_status domain::create(const options &wanted, domain **made) {
    void *memory = nullptr;
    if (ty_status status = os::map_memory(sizeof(domain), os::memory_hint::none, &memory))
        return status;
    domain *own = ::new (memory) domain{};
    own->orec_mask_ = ((size_t{1} << wanted.orec_bits) - 1) * sizeof(orec);
    own->old_max_ = std::clamp<uint64_t>(wanted.old_bytes / sizeof(old_value), 1, old_index_mask);
    own->clock_.store(wanted.clock, std::memory_order_relaxed);
    if (wanted.keeper != nullptr)
        own->keeper_ = *wanted.keeper;
    own->barrier_ = barriers_are_seen && os::process_barrier_available();
    void *orecs = nullptr;
    if (ty_status status = os::map_memory(own->orecs_bytes(), os::memory_hint::huge, &orecs)) {
        own->destroy();
        return status;
    }
    own->orecs_ = static_cast<orec *>(orecs); // of version 0
    *made = own;
    return TY_OK;
}

void domain::destroy() {
    if (orecs_ != nullptr)
        os::unmap_memory(orecs_, orecs_bytes());
    if (old_ != nullptr) {
        os::unmap_memory(old_, old_bytes());
        os::unmap_memory(heads_, orecs_bytes());
    }
    this->~domain();
    os::unmap_memory(this, sizeof(domain));
}

void domain::join(transaction &own) {
    own.domain_ = this;
    own.window_.orecs = orecs_;
    own.window_.orec_mask = orec_mask_;
    os::lock_guard guard(lock_);
    own.id_ = ++last_id_;
    own.next_ = first_.load(std::memory_order_relaxed);
    first_.store(&own, std::memory_order_release);
}

metrics domain::count() {
    metrics all{};
    each([&](const transaction &own) {
        own.add_to(all);
        return true;
    });
    return all;
}

// Q3: a requester waits for the commits under way. Q8: it may hold lock_, so what a commit does must not need that.
void domain::await_commits(bool none, const transaction *but) {
    await_announcements();
    each([&](const transaction &own) {
        const uint64_t seen = own.committing_.load(std::memory_order_seq_cst);
        while (&own != but && seen != 0) {
            const uint64_t now = own.committing_.load(std::memory_order_acquire);
            if (now == 0 || (now != seen && !none))
                break;
            os::give_way();
        }
        return true;
    });
}

// Q8: without lock_. The caller has read a clock of at least this timestamp, so it sees committing_ of each transaction
// that has such a timestamp.
void domain::await(uint64_t timestamp, const transaction *but) {
    if (fault("stm_commit_waits_for_the_lock_of_requests"))
        os::lock_guard guard(lock_);
    each([&](const transaction &own) {
        for (;;) {
            const uint64_t least = own.committing_.load(std::memory_order_seq_cst);
            if (&own == but || least == 0 || least > timestamp)
                return true;
            os::give_way();
        }
    });
}

void domain::ask(uint32_t what) {
    attention_.fetch_or(what, std::memory_order_seq_cst);
    if (!fault("stm_commits_under_way_not_awaited"))
        await_commits(false, nullptr);
}

void domain::no_longer(uint32_t what) {
    attention_.fetch_and(~what, std::memory_order_seq_cst);
    answered_.fetch_add(1, std::memory_order_seq_cst);
    os::wake_all(answered_);
}

void domain::await_end_of(uint32_t what) {
    for (;;) {
        const uint32_t seen = answered_.load(std::memory_order_seq_cst);
        if ((attention_.load(std::memory_order_seq_cst) & what) == 0)
            return;
        os::wait_on(answered_, seen);
    }
}

bool domain::take_ticket(wait_policy waits) {
    if (waits == wait_policy::never) { // Q7: take a ticket only if it is served at once
        uint32_t ticket = serving_.load(std::memory_order_acquire);
        return next_ticket_.compare_exchange_strong(ticket, ticket + 1, std::memory_order_acquire,
                                                    std::memory_order_relaxed);
    }
    const uint32_t ticket = next_ticket_.fetch_add(1, std::memory_order_relaxed);
    for (;;) {
        const uint32_t seen = serving_.load(std::memory_order_acquire);
        if (seen == ticket)
            return true;
        os::wait_on(serving_, seen);
    }
}

// Q4: While one transaction is in serial mode, no other commits. In the order of the tickets.
bool domain::begin_serial(const transaction &who, wait_policy waits) {
    if (!take_ticket(waits))
        return false;
    os::lock_guard guard(lock_);
    attention_.fetch_or(ask_serial, std::memory_order_seq_cst);
    await_commits(true, &who);
    return true;
}

void domain::end_serial() {
    no_longer(ask_serial);
    serving_.fetch_add(1, std::memory_order_release);
    os::wake_all(serving_);
}

// A transaction announces its begin before it checks whether it may run, as in Q3; with a process barrier it needs no
// fence for that.
void domain::stop() {
    attention_.fetch_or(ask_stop, std::memory_order_seq_cst);
    await_announcements();
    for (;;) {
        const uint32_t seen = ended_.load(std::memory_order_seq_cst);
        if (!any_runs())
            return;
        os::wait_on(ended_, seen);
    }
}

bool domain::any_runs() {
    bool found = false;
    each([&](const transaction &own) {
        found = own.began_.load(std::memory_order_seq_cst) != 0;
        return !found;
    });
    return found;
}

// What was stored meanwhile is not known, so all transactions that wait for a change validate again.
void domain::go_on() {
    stops_.fetch_add(1, std::memory_order_seq_cst);
    no_longer(ask_stop);
    wake(UINT64_MAX);
}

// oldest() reads after a process barrier, as stop() does: a transaction that ends later sees ask_ends.
void domain::quiesce() {
    const uint64_t timestamp = now();
    await(timestamp, nullptr);
    {
        os::lock_guard guard(lock_);
        if (quiescing_++ == 0)
            attention_.fetch_or(ask_ends, std::memory_order_seq_cst);
    }
    for (;;) {
        const uint32_t seen = ended_.load(std::memory_order_seq_cst);
        if (oldest() >= timestamp)
            break;
        os::wait_on(ended_, seen);
    }
    os::lock_guard guard(lock_);
    if (--quiescing_ == 0)
        attention_.fetch_and(~ask_ends, std::memory_order_seq_cst);
}

// The clock is read before the barrier: a transaction that announces its begin too late to be seen reads a later clock.
uint64_t domain::oldest() {
    uint64_t least = now();
    await_announcements();
    each([&](const transaction &own) {
        const uint64_t began = own.began_.load(std::memory_order_seq_cst);
        if (began != 0 && began - 1 < least)
            least = began - 1;
        return true;
    });
    return least;
}

} // namespace taiyen::stm
