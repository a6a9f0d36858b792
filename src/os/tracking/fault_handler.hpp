// The process's single handler of faults (SIGSEGV), for code that protects memory to detect its use. It chains to the
// handler that was there before.
//
// A range is watched by at most one tracker and one guard, for writes. The guard is called first; it knows the tracker
// beneath. Independently, one watch may be for any access to inaccessible memory.
//
// F1: no handler works on a range while its faults are held: a hold closes the gate and waits for the handlers inside;
//      a handler that meets a closed gate returns, and the write faults again.
// F2: nodes of the list are never unmapped, so that a handler may read them at any time; a node's version is odd while
//      it changes. The node that a writing thread needs does not change: its range is mapped and watched.
// F3: what a fork copied of other threads' handlers and holds means nothing in the child.
// F4: a fault that is not claimed here has the effect that it would have without this handler.
// F5: a thread that begins to write to a range by the library's leave (a transaction with write-fault tracking) takes
//      faults meanwhile, whatever signals it blocks.
#pragma once

#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <sys/types.h>
#include <taiyen/status.h>

namespace taiyen::os::faults {

struct memory_fault {
    uintptr_t address;
    uintptr_t instruction; // 0 where the processor's context is not known
    bool write;            // true also where not known
};

// again: repeat the write. not_ours: pass the fault to the handler that was there before.
enum class outcome { not_ours, again };

// Called in a signal handler, on the writing thread, with all signals blocked: async-signal-safe code only, which
// writes to no watched memory and needs little stack (it may be an alternate one).
using serve_function = outcome (*)(void *context, const memory_fault &fault);

enum class layer : uint8_t { guard, tracker, forbidden };

struct watch {
    std::atomic<uint32_t> version{0};
    std::atomic<pid_t> gate{0};     // the process that has closed it; 0: open
    std::atomic<uintptr_t> base{0}; // 0: the node is free
    std::atomic<uintptr_t> end{0};
    std::atomic<uint64_t> inside{0}; // upper half: the process; lower half: its handlers inside
    std::atomic<serve_function> serve{nullptr};
    std::atomic<void *> context{nullptr};
    watch *next = nullptr; // constant once the node is in the list
};

// Installs the handler if necessary. Expected: TY_E_BUSY (the range overlaps another of the same layer, or a tracker
// would start beneath a guard), TY_E_UNSUPPORTED (no handler can be installed), TY_E_MEMORY.
ty_status watch_range(layer where, const void *base, size_t bytes, serve_function serve, void *context, watch **made);
// The watch of the whole range at that layer, or NULL. Expected: TY_E_ARGUMENT (only a part of it is watched).
ty_status find(layer where, const void *base, size_t bytes, watch **found);
// The range's faults must be held, and its memory writable.
void remove(watch *node);

// For the guard, to pass a fault to the tracker beneath.
outcome serve(watch &node, const memory_fault &fault);

// For the handlers' part of the work outside a handler. False: the faults are held.
bool enter(watch &node);
void leave(watch &node);

// Called by a thread that is about to write where writes fault: unblocks SIGSEGV in it, as the kernel ends a process at
// a fault of a thread that blocks it; *blocked: it was blocked. Expected: TY_E_UNSUPPORTED (the thread's alternate
// stack is too small for a handler).
ty_status admit(bool *blocked);
void block_again(); // after admit, if it was blocked

// Blocks signals: a handler of this very thread could write to the range, and would never finish.
class signals_blocked {
public:
    signals_blocked();
    ~signals_blocked();
    signals_blocked(const signals_blocked &) = delete;
    signals_blocked &operator=(const signals_blocked &) = delete;

private:
    sigset_t before_;
};

// Keeps handlers out (F1). One hold on a range at a time.
class hold {
public:
    explicit hold(watch &node);
    ~hold();
    hold(const hold &) = delete;
    hold &operator=(const hold &) = delete;

private:
    signals_blocked blocked_;
    watch &node_;
};

// The budget of writable runs among protected pages in the whole process; each costs up to two mappings.
bool mappings_left(uint64_t *used, uint64_t *budget); // false: none
void count_runs(int64_t change);
// 0: a quarter of the system's limit, so that half of the mappings are left to the program. A test can shrink it.
void set_run_budget(uint64_t runs);

// Rewrites a word of each mapping in the range with its value. The mapping then gets its structure for private copies
// before it is split, which all its pieces share: only such pieces merge again when their protection is equal.
void prepare_merging(char *base, size_t bytes);

} // namespace taiyen::os::faults
