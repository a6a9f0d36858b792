#include "scope.hpp"

#include "keep_out.hpp"
#include <array>

namespace taiyen::drop_in {

constinit thread_local os::current_malloc *current_scope = nullptr;
constinit std::atomic<bool> any_scope{false};

namespace {

// Copies of the library that had a scope: never forgotten, as blocks of their heaps are freed later.
constinit std::array<std::atomic<const os::current_malloc_calls *>, 4> libraries{};

bool learn(const os::current_malloc_calls *calls) {
    for (auto &place : libraries) {
        const os::current_malloc_calls *known = nullptr;
        if (place.compare_exchange_strong(known, calls, std::memory_order_acq_rel) || known == calls)
            return true;
    }
    return false;
}

} // namespace

// M6.
bool counts_in(const os::current_malloc &scope, call_site site) {
    return scope.pauses == 0 && !is_kept_out(site);
}

// M7.
const os::current_malloc_calls *find_owner(const ty_heap *own, const void *block) {
    if (own != nullptr && heap_of(block) == own)
        return nullptr;
    for (const auto &place : libraries) {
        const os::current_malloc_calls *calls = place.load(std::memory_order_acquire);
        if (calls == nullptr)
            return nullptr;
        if (calls->owns(block))
            return calls;
    }
    return nullptr;
}

} // namespace taiyen::drop_in

using namespace taiyen;
using namespace taiyen::drop_in;

extern "C" [[gnu::visibility("default")]] bool TAIYEN_SET_CURRENT_MALLOC(os::current_malloc *scope, unsigned version) {
    if (scope == nullptr) {
        current_scope = nullptr;
        show_held();
        return true;
    }
    if (version != os::current_malloc_version || !learn(scope->calls))
        return false;
    os::prepare_stacks(); // here, where nothing is locked: allocations ask who calls (M6)
    any_scope.store(true, std::memory_order_release);
    hide_held();
    current_scope = scope;
    return true;
}
