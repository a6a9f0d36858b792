// Dirty pages by page protection. The range is read-only; the first write to a page faults, and the handler records the
// page and makes it writable.
//
// W1: a page is recorded before it becomes writable, so each written page is recorded.
// W2: no handler is between recording and unprotecting while collect protects the range and takes the records: it holds
//      the faults.
#include "../base/base.hpp"
#include "../calls/calls.hpp"
#include "dirty_bits.hpp"
#include "fault_handler.hpp"
#include "tracker_methods.hpp"

#include <new>

namespace taiyen::os::signal_tracker {

struct range {
    char *base;
    uint64_t page_count;
    faults::watch *watch;
    std::atomic<uint64_t> pieces{0}; // made writable since the last collect
    dirty_bits dirty;

    size_t bytes() const { return page_count * page_bytes; }
};

namespace {

constexpr unsigned coarser_shift = 4; // each step makes pieces 16 times as large
constexpr unsigned whole_range_shift = 63;

static_assert(sizeof(range) <= page_bytes);

// Half of the budget is for single pages, half of the rest for pieces of 16, and so on; at its end, the whole range is
// unprotected.
unsigned piece_shift() {
    uint64_t used, budget;
    if (!faults::mappings_left(&used, &budget))
        return whole_range_shift;
    unsigned shift = 0;
    for (uint64_t half = budget / 2; half != 0 && budget - used <= half; half /= 2)
        shift += coarser_shift;
    return shift;
}

// Records the piece that holds the page and makes it writable; a coarser one if the kernel refuses (W1: in this order;
// T1: so the page is reported).
bool lift(range &tracked, uint64_t page) {
    for (unsigned shift = piece_shift();; shift += coarser_shift) {
        bool whole = shift >= whole_range_shift || tracked.page_count >> shift == 0;
        uint64_t first = whole ? 0 : page >> shift << shift;
        uint64_t rest = tracked.page_count - first;
        uint64_t count = whole || rest < uint64_t{1} << shift ? rest : uint64_t{1} << shift;
        const bool late = fault("page_noted_after_it_is_writable");
        if (!late)
            tracked.dirty.set(first, count - (count > 1 && fault("last_page_of_a_region_not_noted")));
        if (sys::mprotect(tracked.base + first * page_bytes, count * page_bytes, PROT_READ | PROT_WRITE) == 0) {
            if (late)
                tracked.dirty.set(first, 1);
            break;
        }
        if (whole)
            return false;
    }
    tracked.pieces.fetch_add(1, std::memory_order_relaxed);
    faults::count_runs(1);
    return true;
}

faults::outcome on_write(void *context, const faults::memory_fault &fault) {
    range &tracked = *static_cast<range *>(context);
    uint64_t page = (fault.address - reinterpret_cast<uintptr_t>(tracked.base)) / page_bytes;
    return lift(tracked, page) ? faults::outcome::again : faults::outcome::not_ours;
}

void forget_pieces(range &tracked) {
    faults::count_runs(-static_cast<int64_t>(tracked.pieces.exchange(0, std::memory_order_relaxed)));
}

// Making the whole range writable needs no new mapping, so a failure is temporary: tries twice.
void unprotect(const range &tracked) {
    if (protect(tracked.base, tracked.bytes(), true) != TY_OK)
        static_cast<void>(protect(tracked.base, tracked.bytes(), true));
}

void destroy(range *tracked) {
    tracked->dirty.destroy();
    unmap_memory(tracked, page_bytes);
}

ty_status watch_range(range &tracked) {
    ty_status status =
        faults::watch_range(faults::layer::tracker, tracked.base, tracked.bytes(), on_write, &tracked, &tracked.watch);
    if (status != TY_OK)
        return status;
    faults::prepare_merging(tracked.base, tracked.bytes());
    status = protect(tracked.base, tracked.bytes(), false);
    if (status != TY_OK) {
        faults::hold held(*tracked.watch);
        unprotect(tracked); // of several mappings some may be protected
        faults::remove(tracked.watch);
    }
    return status;
}

} // namespace

// The caller is the only writing thread that is known here.
ty_status start(char *base, uint64_t page_count, range **made) {
    void *memory;
    bool blocked;
    if (ty_status status = faults::admit(&blocked)) // F5: it takes faults, whatever signals it blocks
        return status;
    ty_status status = map_memory(page_bytes, memory_hint::none, &memory);
    if (status != TY_OK)
        return status;
    range *tracked = new (memory) range{base, page_count, nullptr, {}, {}};
    status = tracked->dirty.create(page_count);
    if (status == TY_OK)
        status = watch_range(*tracked);
    if (status == TY_OK)
        *made = tracked;
    else
        destroy(tracked);
    return status;
}

void stop(range *tracked) {
    {
        faults::hold held(*tracked->watch);
        unprotect(*tracked);
        faults::remove(tracked->watch);
    }
    forget_pieces(*tracked);
    destroy(tracked);
}

ty_status collect(range *tracked, page_set &into) {
    faults::hold held(*tracked->watch);
    ty_status status = protect(tracked->base, tracked->bytes(), false);
    if (status != TY_OK)
        return status;
    forget_pieces(*tracked);
    tracked->dirty.move_to(into);
    return TY_OK;
}

void query(range *tracked, page_set &into) {
    tracked->dirty.add_to(into);
}

void note(const faults::watch &node, const void *address, size_t bytes) {
    range &tracked = *static_cast<range *>(node.context.load(std::memory_order_relaxed));
    tracked.dirty.set(static_cast<uint64_t>(static_cast<const char *>(address) - tracked.base) / page_bytes,
                      bytes / page_bytes);
}

} // namespace taiyen::os::signal_tracker
