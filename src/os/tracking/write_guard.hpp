// Guards the first write to each piece of a memory range: its owner is called before it happens, and can save the old
// content. Pieces are write-protected; the fault handler calls the owner and makes the piece writable. Later the owner
// protects the pieces again.
//
// G1: while armed, no byte of a piece changes before its owner was called for it and agreed.
// G2: the owner is called once for a piece between two protections, and its calls do not overlap.
// G3: protect takes effect before it returns: a comparison of a piece after that misses no write, and the next write
//      calls the owner again. A thread that writes meanwhile does so before, or faults.
// G4: writable runs of pieces cost mappings; they stay within a budget of the process (a piece is then made writable
//      together with the gap to the nearest writable one). With all protected or all disarmed, the mappings are as
//      before.
// G5: dirty pages are tracked beneath a guard. By the kernel: protection does not affect its marks. By signals: the
//      tracker records a piece before it becomes writable; its collect protects pieces, and their next write is
//      recorded again without a call of the owner.
//
// System calls that write into a protected piece fail with EFAULT: call touch first.
//
// One call at a time, except touch, which any thread may call; writes may come from all threads at any time. In a
// forked child everything works on the child's own copy.
#pragma once

#include "../memory/memory.hpp"

namespace taiyen::os {

struct first_write {
    uint64_t piece;
    const void *address;     // of the write; it is in another piece if this one becomes writable together with that
    const void *instruction; // that writes; NULL: touch, or an unknown processor
};

enum class write_answer {
    allow,
    refuse // the fault goes to the handler before this library's: usually the process ends
};

// Called on the writing thread, in a signal handler, with all signals blocked. It may read the memory, and write to
// memory without guard or tracker; it may call only async-signal-safe functions, and must need little stack.
using first_write_function = write_answer (*)(void *context, const first_write &write);

struct guard_state;

class write_guard {
public:
    // The cheapest for scattered writes; decision 20 (docs/decisions) compares sizes.
    static constexpr uint64_t default_piece_pages = 1;

    // The range must be mapped, readable and writable; nothing is protected yet. Rewrites one word of each mapping in
    // it with its value. A tracker of the range must be started before and stopped after it; no thread writes to the
    // range meanwhile. Expected: TY_E_BUSY (guarded already), TY_E_UNSUPPORTED (no handler for faults), TY_E_MEMORY.
    ty_status start(void *base, uint64_t page_count, uint64_t piece_pages, first_write_function owner, void *context);
    void stop(); // ends all protection

    // Protects, or unprotects, the whole range with one system call. Expected: TY_E_MEMORY (too many mappings); then
    // call again, or stop.
    ty_status arm();
    ty_status disarm();

    // Protects pieces again for which the owner was called; neighbours in the list with one system call. Expected:
    // TY_E_MEMORY: some of them may be protected already; call again.
    ty_status protect(const uint64_t *pieces, size_t count);

    // A thread that is going to write to the range takes faults from now on, whatever signals it blocks; *blocked: it
    // blocked them; leave_thread restores that. Expected: TY_E_UNSUPPORTED (it could not handle any).
    static ty_status admit_thread(bool *blocked);
    static void leave_thread();

    // Makes the part of [address, address + bytes) that lies in the range writable, calling the owner as writes would.
    // Not armed: does nothing. Expected: TY_E_BUSY (the owner refuses), TY_E_MEMORY (too many mappings).
    ty_status touch(const void *address, size_t bytes);

private:
    guard_state *state_ = nullptr;
};

} // namespace taiyen::os
