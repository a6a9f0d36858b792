// The one handler of faults (SIGSEGV) in the process, for those who protect memory to see it being used. It chains to
// the handler that was there before.
//
// A range is watched by at most one tracker and one guard, for writes. The guard is asked first; it knows of the
// tracker beneath. Apart from these, one may watch for any access to what may not be accessed at all.
//
// F1: no handler works on a range while its faults are held: who holds shuts the gate and waits for the handlers
//     inside; a handler that meets a shut gate returns, and the write faults again.
// F2: nodes of the list are never unmapped, so that a handler may look at them at any time; a node's version is odd
//     while it changes. The node that a writing thread needs does not change: its range is mapped and watched.
// F3: what a fork copied of other threads' handlers and holds means nothing in the child.
// F4: a fault that nobody here claims goes on as if this handler were not there.
// F5: who begins to write to a range by the library's leave (a transaction that finds its stores) takes faults
//     meanwhile, whatever signals the thread blocks.
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
    bool write;            // also where that is not known
};

// again: the write is repeated. not_ours: the fault goes to the handler that was there before.
enum class outcome { not_ours, again };

// Called in a signal handler, on the thread that writes, with all signals blocked: async-signal-safe code only, which
// writes to no watched memory and needs little stack (it may be an alternate one).
using serve_function = outcome (*)(void *context, const memory_fault &fault);

enum class layer : uint8_t { guard, tracker, forbidden };

struct watch {
    std::atomic<uint32_t> version{0};
    std::atomic<pid_t> gate{0};     // the process that has shut it
    std::atomic<uintptr_t> base{0}; // 0: the node is free
    std::atomic<uintptr_t> end{0};
    std::atomic<uint64_t> inside{0}; // the process in the upper half, how many of its handlers in the lower one
    std::atomic<serve_function> serve{nullptr};
    std::atomic<void *> context{nullptr};
    watch *next = nullptr; // constant once the node is in the list
};

// Installs the handler if need be. Expected: TY_E_BUSY (the range overlaps another of the same layer, or a tracker is
// to start beneath a guard), TY_E_UNSUPPORTED (no handler can be installed), TY_E_MEMORY.
ty_status add(layer where, const void *base, size_t bytes, serve_function serve, void *context, watch **made);
// Who watches the whole range at that layer; NULL: nobody. Expected: TY_E_ARGUMENT (somebody watches a part of it).
ty_status find(layer where, const void *base, size_t bytes, watch **found);
// The range's faults are held, and its memory is writable.
void remove(watch *node);

// For the guard, to hand a fault to the tracker beneath.
outcome serve(watch &node, const memory_fault &fault);

// For the handlers' part of the work outside a handler. False: the faults are held.
bool enter(watch &node);
void leave(watch &node);

// The calling thread is about to write where writes fault: SIGSEGV is no longer blocked in it, as the kernel ends a
// process at a fault of a thread that blocks it; *blocked tells whether it was. Expected: TY_E_UNSUPPORTED (the
// thread's alternate stack is too small for a handler).
ty_status admit(bool *blocked);
void block_again(); // what admit told of

// Signals wait: a handler of this very thread could write to the range, and would never be done.
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

// Writable runs among protected pages, each of which costs up to two mappings, in the whole process.
bool mappings_left(uint64_t *used, uint64_t *budget); // false: none
void count_runs(int64_t change);
// 0: a quarter of what the system allows, so that half of the mappings are left to the program. A test can shrink it.
void set_run_budget(uint64_t runs);

// Writes a word of each mapping in the range to what it is. The mapping then has its place for private copies before it
// is split, which all its pieces share: only such pieces grow together again when they are protected alike.
void prepare_merging(char *base, size_t bytes);

} // namespace taiyen::os::faults
