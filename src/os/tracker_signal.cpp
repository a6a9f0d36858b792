// Dirty pages by page protection. The range is read-only; the first write to a page faults, and the handler notes the
// page and makes it writable.
//
// W1: a page is noted before it becomes writable, so what was written is noted.
// W2: no handler is between noting and lifting while collect protects the range and takes the notes: collect shuts the
//     gate and waits for the handlers inside; a handler that meets a shut gate returns, and the write faults again.
// W3: nodes of the list are never unmapped, so that a handler may look at them at any time; a node's version is odd
//     while it changes. The node that a writing thread needs does not change: its range is mapped and tracked.
#include "dirty_bits.hpp"
#include "failure.hpp"
#include "syscalls.hpp"
#include "text_file.hpp"
#include "thread.hpp"
#include "tracker_methods.hpp"

#include <new>
#include <ucontext.h>

namespace taiyen::os::signal_tracker {

struct range {
    std::atomic<uint32_t> version{0};
    std::atomic<uintptr_t> base{0}; // 0: the node is free
    std::atomic<uintptr_t> end{0};
    std::atomic<pid_t> gate{0};    // the process whose collect has shut it; a forked child's copy means nothing
    std::atomic<uint32_t> busy{0}; // handlers inside
    std::atomic<uint64_t> pieces{0};
    dirty_bits dirty;
    range *next = nullptr; // constant once the node is in the list

    char *address() const { return reinterpret_cast<char *>(base.load(std::memory_order_relaxed)); }
    size_t bytes() const { return end.load(std::memory_order_relaxed) - base.load(std::memory_order_relaxed); }
};

namespace {

constexpr uint64_t mappings_default = 65530; // vm.max_map_count, where it cannot be read
constexpr unsigned coarser_shift = 4;        // each step makes pieces 16 times as large
constexpr unsigned whole_range_shift = 63;

constinit mutex list_lock{lock_rank::tracker}; // start and stop
constinit std::atomic<range *> list{nullptr};
constinit std::atomic<uint64_t> pieces_in_use{0};
constinit std::atomic<uint64_t> piece_budget{0};

struct sigaction previous;
bool installed; // by list_lock
constinit std::atomic<bool> previous_spent{false};

bool is_write(const ucontext_t *context) {
#if defined(__x86_64__)
    constexpr greg_t write_access = 2;
    return (context->uc_mcontext.gregs[REG_ERR] & write_access) != 0;
#else
    static_cast<void>(context);
    return true;
#endif
}

// Half of the budget is for single pages, half of the rest for pieces of 16, and so on; at its end, all is lifted.
unsigned piece_shift() {
    uint64_t budget = piece_budget.load(std::memory_order_relaxed);
    uint64_t used = pieces_in_use.load(std::memory_order_relaxed);
    if (used >= budget)
        return whole_range_shift;
    unsigned shift = 0;
    for (uint64_t half = budget / 2; half != 0 && budget - used <= half; half /= 2)
        shift += coarser_shift;
    return shift;
}

// Notes the piece that holds the page and makes it writable; a coarser one where the kernel refuses. (W1)
bool lift(range &tracked, uint64_t page) {
    uint64_t page_count = tracked.bytes() / page_bytes;
    for (unsigned shift = piece_shift();; shift += coarser_shift) {
        bool whole = shift >= whole_range_shift || page_count >> shift == 0;
        uint64_t first = whole ? 0 : page >> shift << shift;
        uint64_t count = whole || page_count - first < uint64_t{1} << shift ? page_count - first : uint64_t{1} << shift;
        tracked.dirty.set(first, count);
        if (sys::mprotect(tracked.address() + first * page_bytes, count * page_bytes, PROT_READ | PROT_WRITE) == 0)
            break;
        if (whole)
            return false;
    }
    tracked.pieces.fetch_add(1, std::memory_order_relaxed);
    pieces_in_use.fetch_add(1, std::memory_order_relaxed);
    return true;
}

enum class outcome { not_ours, again, refused };

// busy is raised before the gate is looked at, collect shuts the gate before it looks at busy: one sees the other.
outcome handle_in(range &tracked, uint32_t version, uintptr_t address) {
    tracked.busy.fetch_add(1, std::memory_order_seq_cst);
    pid_t shut_by = tracked.gate.load(std::memory_order_seq_cst);
    bool shut = shut_by != 0 && shut_by == getpid();
    outcome result = outcome::again;
    if (!shut && tracked.version.load(std::memory_order_seq_cst) == version)
        if (!lift(tracked, (address - tracked.base.load(std::memory_order_relaxed)) / page_bytes))
            result = outcome::refused;
    tracked.busy.fetch_sub(1, std::memory_order_seq_cst);
    if (shut)
        yield();
    return result;
}

outcome handle(uintptr_t address) {
    for (range *node = list.load(std::memory_order_acquire); node != nullptr; node = node->next) {
        uint32_t version = node->version.load(std::memory_order_acquire);
        uintptr_t base = node->base.load(std::memory_order_relaxed);
        uintptr_t end = node->end.load(std::memory_order_relaxed);
        if (version % 2 == 0 && address >= base && address < end)
            return handle_in(*node, version, address);
    }
    return outcome::not_ours;
}

void restore_default(int signal, const siginfo_t *info) {
    struct sigaction action {};
    action.sa_handler = SIG_DFL;
    ::sigaction(signal, &action, nullptr);
    if (info->si_code <= 0) // sent by a process: it does not come again by itself
        ::raise(signal);
}

// As if this handler were not there.
void pass_on(int signal, siginfo_t *info, ucontext_t *context) {
    bool sent = info->si_code <= 0;
    bool ignored = (previous.sa_flags & SA_SIGINFO) == 0 && previous.sa_handler == SIG_IGN;
    bool none = (previous.sa_flags & SA_SIGINFO) == 0 && previous.sa_handler == SIG_DFL;
    if (ignored && sent)
        return;
    if ((previous.sa_flags & static_cast<int>(SA_RESETHAND)) != 0 && previous_spent.exchange(true))
        none = true;
    if (none || ignored)
        return restore_default(signal, info);
    sigset_t mask = context->uc_sigmask;
    sigorset(&mask, &mask, &previous.sa_mask);
    if ((previous.sa_flags & SA_NODEFER) == 0)
        sigaddset(&mask, signal);
    ::pthread_sigmask(SIG_SETMASK, &mask, nullptr);
    if (previous.sa_flags & SA_SIGINFO)
        previous.sa_sigaction(signal, info, context);
    else
        previous.sa_handler(signal);
}

void on_fault(int signal, siginfo_t *info, void *context) {
    int error = errno;
    auto *state = static_cast<ucontext_t *>(context);
    bool protection = info->si_code == SEGV_ACCERR && is_write(state);
    outcome result = protection ? handle(reinterpret_cast<uintptr_t>(info->si_addr)) : outcome::not_ours;
    errno = error;
    if (result != outcome::again)
        pass_on(signal, info, state);
}

// All signals wait while the handler runs: another handler that wrote to the range meanwhile could meet a gate that
// opens only when this one is done.
ty_status install() {
    if (installed)
        return TY_OK;
    struct sigaction action {};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigfillset(&action.sa_mask);
    if (sys::sigaction(SIGSEGV, nullptr, &previous) != 0 || sys::sigaction(SIGSEGV, &action, nullptr) != 0)
        return failure(TY_E_UNSUPPORTED, "install a handler for page faults")
            .cause(errno)
            .remedy("use a kernel with asynchronous write-protection (Linux 6.7)");
    installed = true;
    return TY_OK;
}

void find_budget() {
    uint64_t mappings = mappings_default;
    if (piece_budget.load(std::memory_order_relaxed) != 0)
        return;
    read_number("/proc/sys/vm/max_map_count", &mappings);
    piece_budget.store(mappings / 4 + 1, std::memory_order_relaxed);
}

// A free node, or a page of new ones. (W3)
ty_status get_node(range **node) {
    for (range *candidate = list.load(std::memory_order_relaxed); candidate != nullptr; candidate = candidate->next)
        if (candidate->base.load(std::memory_order_relaxed) == 0) {
            *node = candidate;
            return TY_OK;
        }
    void *memory;
    ty_status status = map_memory(page_bytes, memory_hint::none, &memory);
    if (status != TY_OK)
        return status;
    range *nodes = static_cast<range *>(memory);
    for (size_t i = 0; i < page_bytes / sizeof(range); i++) {
        range *made = new (&nodes[i]) range;
        made->next = list.load(std::memory_order_relaxed);
        list.store(made, std::memory_order_release);
        *node = made;
    }
    return TY_OK;
}

void set_place(range &node, uintptr_t base, uintptr_t end) {
    node.version.fetch_add(1, std::memory_order_seq_cst);
    node.base.store(base, std::memory_order_relaxed);
    node.end.store(end, std::memory_order_relaxed);
    node.version.fetch_add(1, std::memory_order_seq_cst);
}

void forget_pieces(range &node) {
    pieces_in_use.fetch_sub(node.pieces.exchange(0, std::memory_order_relaxed), std::memory_order_relaxed);
}

// Keeps handlers out. Signals wait, too: a handler of this very thread could write to the range.
class shut_gate {
public:
    explicit shut_gate(range &tracked) : tracked_(tracked) {
        sigset_t all;
        sigfillset(&all);
        for (int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL})
            sigdelset(&all, own);
        ::pthread_sigmask(SIG_SETMASK, &all, &before_);
        tracked_.gate.store(getpid(), std::memory_order_seq_cst);
        while (tracked_.busy.load(std::memory_order_seq_cst) != 0)
            yield();
    }
    ~shut_gate() {
        tracked_.gate.store(0, std::memory_order_seq_cst);
        ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    }
    shut_gate(const shut_gate &) = delete;
    shut_gate &operator=(const shut_gate &) = delete;

private:
    range &tracked_;
    sigset_t before_;
};

// Writes a word of the range to what it is. The mapping then has its place for private copies before it is split, which
// all its pieces share: only such pieces grow together again when they are protected alike.
void prepare_merging(char *base) {
    auto &word = *reinterpret_cast<std::atomic<uint64_t> *>(base);
    uint64_t value = word.load(std::memory_order_relaxed);
    word.compare_exchange_strong(value, value, std::memory_order_relaxed);
}

} // namespace

void set_piece_budget(uint64_t pieces) {
    piece_budget.store(pieces, std::memory_order_relaxed);
}

ty_status start(char *base, uint64_t page_count, range **made) {
    lock_guard guard(list_lock);
    find_budget();
    range *node;
    ty_status status = install();
    if (status == TY_OK)
        status = get_node(&node);
    if (status == TY_OK)
        status = node->dirty.create(page_count);
    if (status != TY_OK)
        return status;
    uintptr_t start = reinterpret_cast<uintptr_t>(base);
    set_place(*node, start, start + page_count * page_bytes);
    prepare_merging(base);
    status = protect(base, page_count * page_bytes, false);
    if (status == TY_OK) {
        *made = node;
        return TY_OK;
    }
    set_place(*node, 0, 0);
    node->dirty.destroy();
    return status;
}

// Making the whole range writable needs no new mapping, so a failure passes; it is tried once more.
void stop(range *tracked) {
    lock_guard guard(list_lock);
    shut_gate shut(*tracked);
    if (protect(tracked->address(), tracked->bytes(), true) != TY_OK)
        static_cast<void>(protect(tracked->address(), tracked->bytes(), true));
    set_place(*tracked, 0, 0);
    forget_pieces(*tracked);
    tracked->dirty.destroy();
}

ty_status collect(range *tracked, page_set &into) {
    shut_gate shut(*tracked);
    ty_status status = protect(tracked->address(), tracked->bytes(), false);
    if (status != TY_OK)
        return status;
    forget_pieces(*tracked);
    tracked->dirty.move_to(into);
    return TY_OK;
}

void query(range *tracked, page_set &into) {
    tracked->dirty.add_to(into);
}

} // namespace taiyen::os::signal_tracker
