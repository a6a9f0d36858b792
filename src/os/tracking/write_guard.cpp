#include "write_guard.hpp"

#include "../base/base.hpp"
#include "../calls/calls.hpp"
#include "../process/process.hpp"
#include "fault_handler.hpp"
#include "tracker_methods.hpp"

#include <algorithm>
#include <bit>
#include <new>

namespace taiyen::os {

namespace {
constexpr uint64_t none = UINT64_MAX;
}

// Non-atomic members are changed only by the thread that serves (one at a time) or that holds the faults.
struct guard_state {
    char *base;
    uint64_t page_count;
    uint64_t piece_pages;
    uint64_t piece_count;
    size_t mapped_bytes;
    first_write_function owner;
    void *context;
    faults::watch *watch = nullptr;
    faults::watch *beneath = nullptr; // the signal tracker of the same memory
    std::atomic<pid_t> serving{0};    // the process in which a thread serves a write; a fork's copy is ignored
    bool armed = false;
    uint64_t agreed_count = 0;
    uint64_t low = none; // bits below low, and from high on, are clear
    uint64_t high = 0;
    uint64_t *agreed; // a bit for each piece: its owner has agreed since it was protected
};

namespace {

using faults::outcome;

struct piece_range {
    uint64_t first;
    uint64_t end;
};

struct page_part {
    char *address;
    size_t bytes;
};

page_part memory_of(const guard_state &g, piece_range pieces) {
    uint64_t first = pieces.first * g.piece_pages;
    uint64_t end = std::min(pieces.end * g.piece_pages, g.page_count);
    return {g.base + first * page_bytes, (end - first) * page_bytes};
}

piece_range all_pieces(const guard_state &g) {
    return {0, g.piece_count};
}

bool has_agreed(const guard_state &g, uint64_t piece) {
    return piece < g.piece_count && (g.agreed[piece / 64] >> piece % 64 & 1) != 0;
}

// G4: counts writable runs: a piece may join or split runs.
int64_t neighbours(const guard_state &g, uint64_t piece) {
    return (piece > 0 && has_agreed(g, piece - 1) ? 1 : 0) + (has_agreed(g, piece + 1) ? 1 : 0);
}

void set_agreed(guard_state &g, uint64_t piece) {
    faults::count_runs(1 - neighbours(g, piece));
    g.agreed[piece / 64] |= uint64_t{1} << piece % 64;
    g.low = std::min(g.low, piece);
    g.high = std::max(g.high, piece + 1);
    g.agreed_count++;
}

void clear_agreed(guard_state &g, uint64_t piece) {
    if (!has_agreed(g, piece))
        return;
    g.agreed[piece / 64] &= ~(uint64_t{1} << piece % 64);
    faults::count_runs(neighbours(g, piece) - 1);
    if (--g.agreed_count == 0) {
        g.low = none;
        g.high = 0;
    }
}

uint64_t last_agreed_before(const guard_state &g, uint64_t piece) {
    uint64_t end = std::min(piece, g.high);
    if (end <= g.low)
        return none;
    uint64_t kept = ~uint64_t{0} >> (63 - (end - 1) % 64);
    for (uint64_t word = (end - 1) / 64 + 1; word-- > g.low / 64; kept = ~uint64_t{0})
        if (uint64_t bits = g.agreed[word] & kept)
            return word * 64 + 63 - static_cast<uint64_t>(std::countl_zero(bits));
    return none;
}

uint64_t first_agreed_from(const guard_state &g, uint64_t piece) {
    uint64_t first = std::max(piece, g.low);
    if (first >= g.high)
        return none;
    uint64_t kept = ~uint64_t{0} << first % 64;
    for (uint64_t word = first / 64; word <= (g.high - 1) / 64; word++, kept = ~uint64_t{0})
        if (uint64_t bits = g.agreed[word] & kept)
            return word * 64 + static_cast<uint64_t>(std::countr_zero(bits));
    return none;
}

void clear_all(guard_state &g) {
    for (uint64_t piece = first_agreed_from(g, 0); piece != none; piece = first_agreed_from(g, piece + 1))
        clear_agreed(g, piece);
}

// Extends the pieces up to the nearest writable run, if any, so that they need no mapping of their own.
void extend_to_nearest(const guard_state &g, piece_range &pieces) {
    uint64_t before = last_agreed_before(g, pieces.first);
    uint64_t after = first_agreed_from(g, pieces.end);
    if (before == none && after == none)
        return;
    if (after == none || (before != none && pieces.first - before <= after - pieces.end))
        pieces.first = before + 1;
    else
        pieces.end = after;
}

void stay_within_budget(const guard_state &g, piece_range &pieces) {
    uint64_t used, budget;
    if (!faults::mappings_left(&used, &budget) && first_agreed_from(g, pieces.first) >= pieces.end)
        extend_to_nearest(g, pieces);
}

// G1: no byte of a piece changes before its owner agreed.
bool ask_owner(guard_state &g, piece_range pieces, first_write write) {
    for (write.piece = pieces.first; write.piece < pieces.end; write.piece++) {
        if (has_agreed(g, write.piece))
            continue;
        if (g.owner(g.context, write) != write_answer::allow && !fault("refused_write_made_possible"))
            return false;
        set_agreed(g, write.piece);
    }
    return true;
}

enum class result { done, refused, no_mapping };

// Agreed pieces may still be protected: the tracker beneath has collected, or the kernel refused before. If it refuses,
// tries once more, extended to a writable run, which needs no new mapping.
result make_writable(guard_state &g, piece_range pieces, const first_write &write) {
    if (g.armed)
        stay_within_budget(g, pieces);
    for (bool again = false;; again = true) {
        if (fault("piece_writable_before_its_owner_is_called")) {
            page_part part = memory_of(g, pieces);
            static_cast<void>(sys::mprotect(part.address, part.bytes, PROT_READ | PROT_WRITE));
        }
        if (g.armed && !ask_owner(g, pieces, write))
            return result::refused;
        page_part part = memory_of(g, pieces);
        if (g.beneath != nullptr && !(g.armed && fault("guarded_piece_not_noted_as_dirty")))
            signal_tracker::note(*g.beneath, part.address, part.bytes);
        if (sys::mprotect(part.address, part.bytes, PROT_READ | PROT_WRITE) == 0)
            return result::done;
        if (again)
            return result::no_mapping;
        extend_to_nearest(g, pieces);
    }
}

// One thread serves at a time (G2), and no tracker collects meanwhile (G5). False: the caller must try again.
class serving {
public:
    explicit serving(guard_state &g) : g_(g) {
        if (g.beneath != nullptr && !faults::enter(*g.beneath))
            return;
        pid_t process = getpid();
        begun_ = g.serving.exchange(process, std::memory_order_acquire) != process ||
                 fault("two_threads_serve_writes_at_once");
        if (!begun_ && g.beneath != nullptr)
            faults::leave(*g.beneath);
    }
    ~serving() {
        if (!begun_)
            return;
        g_.serving.store(0, std::memory_order_release);
        if (g_.beneath != nullptr)
            faults::leave(*g_.beneath);
    }
    serving(const serving &) = delete;
    serving &operator=(const serving &) = delete;
    bool begun() const { return begun_; }

private:
    guard_state &g_;
    bool begun_ = false;
};

// While not armed, the memory is the tracker's, if there is one; arm waits until that has made its page writable.
// Without one, the fault was overtaken by disarm.
outcome on_write(void *context, const faults::memory_fault &fault) {
    guard_state &g = *static_cast<guard_state *>(context);
    if (!g.armed && g.beneath != nullptr)
        return faults::serve(*g.beneath, fault);
    serving turn(g);
    if (!turn.begun()) {
        give_way();
        return outcome::again;
    }
    uint64_t piece = (fault.address - reinterpret_cast<uintptr_t>(g.base)) / page_bytes / g.piece_pages;
    first_write write = {piece, reinterpret_cast<const void *>(fault.address),
                         reinterpret_cast<const void *>(fault.instruction)};
    return make_writable(g, {piece, piece + 1}, write) == result::done ? outcome::again : outcome::not_ours;
}

// False: the faults are held, or another thread serves.
bool try_touch(guard_state &g, piece_range pieces, const void *address, result *what) {
    faults::signals_blocked blocked;
    if (!faults::enter(*g.watch))
        return false;
    bool done = false;
    {
        serving turn(g);
        done = turn.begun();
        if (done)
            *what = g.armed ? make_writable(g, pieces, {0, address, nullptr}) : result::done;
    }
    faults::leave(*g.watch);
    return done;
}

ty_status protect_pieces(guard_state &g, piece_range pieces) {
    const bool shorter = fault("last_piece_stays_writable") && pieces.end - pieces.first > 1;
    page_part part = memory_of(g, {pieces.first, pieces.end - shorter});
    return os::protect(part.address, part.bytes, false);
}

// G5: a tracker beneath still needs its protection. Equal for the whole range, it needs no mapping.
ty_status return_pieces(const guard_state &g) {
    page_part part = memory_of(g, all_pieces(g));
    return os::protect(part.address, part.bytes,
                       g.beneath == nullptr || fault("disarming_lifts_the_trackers_protection"));
}

ty_status create_state(void *base, uint64_t page_count, uint64_t piece_pages, guard_state **made) {
    uint64_t pieces = (page_count + piece_pages - 1) / piece_pages;
    size_t words = (pieces + 63) / 64;
    size_t bytes = (sizeof(guard_state) + words * sizeof(uint64_t) + page_bytes - 1) & ~(page_bytes - 1);
    void *memory;
    ty_status status = map_memory(bytes, memory_hint::none, &memory);
    if (status != TY_OK)
        return status;
    guard_state *g = new (memory) guard_state{};
    g->base = static_cast<char *>(base);
    g->page_count = page_count;
    g->piece_pages = piece_pages;
    g->piece_count = pieces;
    g->mapped_bytes = bytes;
    g->agreed = reinterpret_cast<uint64_t *>(g + 1);
    *made = g;
    return TY_OK;
}

void destroy(guard_state *g) {
    if (g->watch != nullptr) {
        faults::hold held(*g->watch);
        faults::remove(g->watch);
    }
    unmap_memory(g, g->mapped_bytes);
}

} // namespace

ty_status write_guard::start(void *base, uint64_t page_count, uint64_t piece_pages, first_write_function owner,
                             void *context) {
    guard_state *g;
    ty_status status = create_state(base, page_count, piece_pages, &g);
    if (status != TY_OK)
        return status;
    g->owner = owner;
    g->context = context;
    size_t bytes = page_count * page_bytes;
    status = faults::find(faults::layer::tracker, base, bytes, &g->beneath);
    if (status == TY_OK)
        status = faults::watch_range(faults::layer::guard, base, bytes, on_write, g, &g->watch);
    if (status != TY_OK) {
        destroy(g);
        return status;
    }
    faults::prepare_merging(g->base, bytes);
    state_ = g;
    return TY_OK;
}

// A failure to unprotect is temporary: tries twice.
void write_guard::stop() {
    if (state_ == nullptr)
        return;
    if (disarm() != TY_OK)
        static_cast<void>(disarm());
    destroy(state_);
    state_ = nullptr;
}

ty_status write_guard::arm() {
    guard_state &g = *state_;
    faults::hold held(*g.watch);
    if (ty_status status = protect_pieces(g, all_pieces(g)))
        return status;
    clear_all(g);
    g.armed = true;
    return TY_OK;
}

ty_status write_guard::disarm() {
    guard_state &g = *state_;
    faults::hold held(*g.watch);
    if (ty_status status = return_pieces(g))
        return status;
    clear_all(g);
    g.armed = false;
    return TY_OK;
}

// G3: protection takes effect before protect returns.
ty_status write_guard::protect(const uint64_t *pieces, size_t count) {
    guard_state &g = *state_;
    faults::hold held(*g.watch);
    for (size_t i = 0; i < count && g.armed;) {
        size_t next = i + 1;
        while (next < count && pieces[next] == pieces[next - 1] + 1)
            next++;
        piece_range run = {pieces[i], pieces[next - 1] + 1};
        if (ty_status status = protect_pieces(g, run))
            return status;
        for (uint64_t piece = run.first; piece < run.end; piece++)
            clear_agreed(g, piece);
        i = next;
    }
    return TY_OK;
}

ty_status write_guard::admit_thread(bool *blocked) {
    return faults::admit(blocked);
}

void write_guard::leave_thread() {
    faults::block_again();
}

ty_status write_guard::touch(const void *address, size_t bytes) {
    guard_state &g = *state_;
    uintptr_t base = reinterpret_cast<uintptr_t>(g.base);
    uintptr_t start = std::max(reinterpret_cast<uintptr_t>(address), base);
    uintptr_t end = std::min(reinterpret_cast<uintptr_t>(address) + bytes, base + g.page_count * page_bytes);
    if (start >= end)
        return TY_OK;
    size_t piece_bytes = g.piece_pages * page_bytes;
    piece_range pieces = {(start - base) / piece_bytes, (end - 1 - base) / piece_bytes + 1};
    result what = result::done;
    while (!try_touch(g, pieces, address, &what))
        give_way();
    if (what == result::refused)
        return failure(TY_E_BUSY, "make %zu bytes at %p writable: the owner of the memory refuses", bytes, address)
            .remedy("write to fewer places in one transaction");
    if (what == result::no_mapping)
        return failure(TY_E_MEMORY, "make %zu bytes at %p writable: too many mappings", bytes, address)
            .remedy("write to fewer places in one transaction, or raise sysctl vm.max_map_count");
    return TY_OK;
}

} // namespace taiyen::os
