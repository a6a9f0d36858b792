// The first write to each piece of a range of memory: its owner is called before it happens, and can keep what was
// there. Pieces are write-protected; the fault handler calls the owner and makes the piece writable. Later the owner
// protects the pieces again.
//
// G1: while armed, no byte of a piece changes before its owner was called for it and agreed.
// G2: the owner is called once for a piece between two protections, and its calls do not overlap.
// G3: protect takes effect before it returns: who compares a piece after that misses no write, and the next one is the
//     owner's again. A thread that writes meanwhile does so before, or faults.
// G4: writable runs of pieces cost mappings; they stay within a budget of the process (a piece is then made writable
//     together with the gap to the nearest writable one). All protected or all disarmed, the mappings are as before.
// G5: dirty pages are tracked all the same. By the kernel: protection leaves its marks alone. By signals: the tracker
//     notes a piece before it becomes writable; its collect protects pieces, and their next write is noted again
//     without a call of the owner.
//
// System calls that write into a protected piece fail with EFAULT: touch it before.
//
// One call at a time, but for touch, which any thread may call; writes may come from all threads at any time. In a
// forked child everything works on the child's own copy.
#pragma once

#include "../memory/memory.hpp"

namespace taiyen::os {

struct first_write {
    uint64_t piece;
    const void *address;     // where the write goes; in another piece if this one becomes writable along with that
    const void *instruction; // that writes; NULL: touch, or an unknown processor
};

enum class write_answer {
    allow,
    refuse // the fault goes to the handler that was there before this library's: as a rule, the process ends
};

// Called on the thread that writes, in a signal handler, with all signals blocked. It reads the memory, and writes what
// no guard or tracker watches; it calls async-signal-safe functions only, and needs little stack.
using first_write_function = write_answer (*)(void *context, const first_write &write);

struct guard_state;

class write_guard {
public:
    // What costs least where writes are scattered; decision 20 (docs/decisions) has other sizes.
    static constexpr uint64_t default_piece_pages = 1;

    // The range is mapped, readable and writable; nothing is protected yet. Writes one word of each mapping in it to
    // what it is. A tracker of the range is started before and stopped after it; nobody writes to the range meanwhile.
    // Expected: TY_E_BUSY (guarded already), TY_E_UNSUPPORTED (no handler for faults), TY_E_MEMORY.
    ty_status start(void *base, uint64_t page_count, uint64_t piece_pages, first_write_function owner, void *context);
    void stop(); // nothing is protected any more

    // Protects the whole range, and takes the protection away; one system call each. Expected: TY_E_MEMORY (too many
    // mappings); then call again, or stop.
    ty_status arm();
    ty_status disarm();

    // Protects pieces again that the owner was called for; neighbours in the list with one system call.
    // Expected: TY_E_MEMORY: some of them may be protected already; call again.
    ty_status protect(const uint64_t *pieces, size_t count);

    // A thread that is going to write to the range takes faults from now on, whatever it blocks; *blocked: it blocked
    // them, and leave makes that so again. Expected: TY_E_UNSUPPORTED (it could not serve any).
    static ty_status admit_thread(bool *blocked);
    static void leave_thread();

    // Makes the part of [address, address + bytes) that lies in the range writable, calling the owner as writes would.
    // Not armed: does nothing. Expected: TY_E_BUSY (the owner refuses), TY_E_MEMORY (too many mappings).
    ty_status touch(const void *address, size_t bytes);

private:
    guard_state *state_ = nullptr;
};

} // namespace taiyen::os
