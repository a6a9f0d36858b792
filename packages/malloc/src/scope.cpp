#include "scope.hpp"

#include "keep_out.hpp"
#include "malloc.hpp"
#include <array>
#include <cstdlib>

namespace taiyen::drop_in {

constinit thread_local os::current_malloc *current_scope = nullptr;
constinit std::atomic<bool> any_scope{false};

namespace {

bool owns_nothing(const void *) {
    return false;
}
constexpr os::current_malloc_calls gone = {nullptr, nullptr, nullptr, nullptr, owns_nothing, nullptr};

// A copy of the library that has had a scope. One in a plug-in may be unloaded; the unload waits for threads that are
// calling owns().
struct copy {
    std::atomic<const os::current_malloc_calls *> calls; // NULL: none yet; &gone: it was unloaded
    std::atomic<bool> stays;
    std::atomic<unsigned> asking;

    bool take(const os::current_malloc_calls *free, const os::current_malloc_calls *taker) {
        if (!calls.compare_exchange_strong(free, taker, std::memory_order_acq_rel))
            return free == taker;
        stays.store(os::stays_loaded(taker), std::memory_order_relaxed);
        return true;
    }

    // NULL: it does not own the block.
    const os::current_malloc_calls *owning(const void *block) {
        const os::current_malloc_calls *known = calls.load(std::memory_order_acquire);
        if (stays.load(std::memory_order_relaxed))
            return known->owns(block) ? known : nullptr;
        asking.fetch_add(1, std::memory_order_seq_cst); // pairs with forget(): it sees this, or this sees &gone
        known = calls.load(std::memory_order_seq_cst);
        const bool owned = known->owns(block);
        asking.fetch_sub(1, std::memory_order_release);
        return owned ? known : nullptr;
    }

    void forget(const os::current_malloc_calls *leaving) {
        if (!calls.compare_exchange_strong(leaving, &gone, std::memory_order_seq_cst))
            return;
        constexpr unsigned waits_max = 10000; // bounded: in a forked child, a thread that was asking may be gone
        for (unsigned waits = 0; waits < waits_max && asking.load(std::memory_order_seq_cst) != 0; waits++)
            os::yield();
    }
};
constinit std::array<copy, 4> copies{};

// No copy is unloaded then, but destructors still free blocks.
constinit std::atomic<bool> exiting{false};

bool learn(const os::current_malloc_calls *calls) {
    for (copy &place : copies)
        if (place.take(nullptr, calls))
            return true;
    for (copy &place : copies)
        if (place.take(&gone, calls))
            return true;
    return false;
}

} // namespace

// M6: what run-time libraries allocate for themselves is not the scope's.
bool counts_in(const os::current_malloc &scope, call_site site) {
    return scope.pauses == 0 && (!is_kept_out(site) || (fault("exceptions_lie_in_the_heap") && !site.operator_new));
}

// M7: a block is freed and resized in the heap that it lies in.
const os::current_malloc_calls *find_owner(const ty_heap *own, const void *block) {
    if (own != nullptr && heap_of(block) == own)
        return nullptr;
    for (copy &place : copies) {
        if (place.calls.load(std::memory_order_acquire) == nullptr)
            return nullptr;
        if (const os::current_malloc_calls *owner = place.owning(block))
            return owner;
    }
    return nullptr;
}

namespace {

// M7: a copy that is being unloaded owns no block any more.
void forget_copy(const os::current_malloc_calls *calls) {
    if (exiting.load(std::memory_order_acquire))
        return;
    for (copy &place : copies)
        place.forget(calls);
}

bool each_malloc_word(const os::malloc_word_search &wanted, size_t *left) {
    ty_heap *own = process_heap();
    return own == nullptr || heap_each_word(own, wanted, left);
}

constexpr os::drop_in_calls drop_in_calls = {forget_copy, each_malloc_word, heap_thread_pointers};

} // namespace

} // namespace taiyen::drop_in

using namespace taiyen;
using namespace taiyen::drop_in;

extern "C" [[gnu::visibility("default")]] const os::drop_in_calls *TAIYEN_SET_CURRENT_MALLOC(os::current_malloc *scope,
                                                                                             unsigned version) {
    if (scope == nullptr) {
        current_scope = nullptr;
        show_magazines();
        return &drop_in_calls;
    }
    if (version != os::current_malloc_version || !learn(scope->calls))
        return nullptr;
    os::prepare_stacks(); // here, with no lock held: allocations unwind the stack (M6)
    if (!any_scope.exchange(true, std::memory_order_acq_rel))
        static_cast<void>(atexit([] { exiting.store(true, std::memory_order_release); }));
    if (!fault("cached_blocks_stay_in_sight_in_a_scope"))
        hide_magazines();
    current_scope = scope;
    return &drop_in_calls;
}
