#include "fault_handler.hpp"

#include "../base/base.hpp"
#include "../calls/calls.hpp"
#include "../memory/memory.hpp"
#include "../process/process.hpp"

#include <new>
#include <sys/auxv.h>
#include <ucontext.h>

#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ 51
#endif

namespace taiyen::os::faults {
namespace {

constexpr uint64_t mappings_default = 65530; // vm.max_map_count, where it cannot be read
constexpr size_t layers = 3;
constexpr size_t write_layers = 2; // those before `forbidden`

constinit mutex list_lock{lock_rank::tracker}; // for watch_range and remove
constinit std::atomic<watch *> lists[layers] = {};
constinit std::atomic<uint64_t> runs_in_use{0};
constinit std::atomic<uint64_t> run_budget{0};

struct sigaction previous;
bool installed; // guarded by list_lock
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

uintptr_t instruction_of(const ucontext_t *context) {
#if defined(__x86_64__)
    return static_cast<uintptr_t>(context->uc_mcontext.gregs[REG_RIP]);
#elif defined(__aarch64__)
    return context->uc_mcontext.pc;
#else
    static_cast<void>(context);
    return 0;
#endif
}

outcome serve_version(watch &node, uint32_t version, const memory_fault &fault) {
    if (!enter(node)) {
        give_way();
        return outcome::again;
    }
    outcome result = outcome::again;
    if (node.version.load(std::memory_order_seq_cst) == version)
        result = node.serve.load(std::memory_order_relaxed)(node.context.load(std::memory_order_relaxed), fault);
    leave(node);
    return result;
}

// Guards before trackers. If a node changes meanwhile, the write is repeated and finds it again.
outcome handle(const memory_fault &fault) {
    for (size_t i = fault.write || taiyen::fault("read_fault_taken_for_a_write") ? 0 : write_layers; i < layers; i++)
        for (watch *node = lists[i].load(std::memory_order_acquire); node != nullptr; node = node->next) {
            uint32_t version = node->version.load(std::memory_order_acquire);
            uintptr_t base = node->base.load(std::memory_order_relaxed);
            uintptr_t end = node->end.load(std::memory_order_relaxed);
            if (version % 2 == 0 && fault.address >= base && fault.address < end)
                return serve_version(*node, version, fault);
        }
    return outcome::not_ours;
}

void restore_default(int signal, const siginfo_t *info) {
    struct sigaction action {};
    action.sa_handler = SIG_DFL;
    ::sigaction(signal, &action, nullptr);
    if (info->si_code <= 0) // sent by a process: it will not recur by itself
        ::raise(signal);
}

// F4: an unclaimed fault has the effect that it would have without this handler.
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
    memory_fault fault = {reinterpret_cast<uintptr_t>(info->si_addr), instruction_of(state), is_write(state)};
    outcome result = info->si_code == SEGV_ACCERR ? handle(fault) : outcome::not_ours;
    errno = error;
    if (result != outcome::again)
        pass_on(signal, info, state);
}

// Blocks all signals while the handler runs: another handler that wrote to the range meanwhile could meet a gate that
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
            .remedy("use a kernel with asynchronous write-protection (Linux 6.7), and declare what transactions write");
    installed = true;
    return TY_OK;
}

void find_budget() {
    uint64_t mappings = mappings_default;
    if (run_budget.load(std::memory_order_relaxed) != 0)
        return;
    read_number("/proc/sys/vm/max_map_count", &mappings);
    run_budget.store(mappings / 4 + 1, std::memory_order_relaxed);
}

std::atomic<watch *> &list_of(layer where) {
    return lists[static_cast<size_t>(where)];
}

bool overlaps(layer where, uintptr_t base, uintptr_t end) {
    for (watch *node = list_of(where).load(std::memory_order_relaxed); node != nullptr; node = node->next)
        if (node->base.load(std::memory_order_relaxed) < end && base < node->end.load(std::memory_order_relaxed))
            return true;
    return false;
}

ty_status check_free(layer where, uintptr_t base, uintptr_t end) {
    if (overlaps(where, base, end))
        return failure(TY_E_BUSY, "watch the writes to the memory at %p: somebody does already",
                       reinterpret_cast<void *>(base))
            .remedy("stop the tracker or guard that watches it");
    if (where == layer::tracker && overlaps(layer::guard, base, end))
        return failure(TY_E_BUSY, "track the written pages of the memory at %p: it is guarded",
                       reinterpret_cast<void *>(base))
            .remedy("start the tracker before the guard");
    return TY_OK;
}

// A free node, or one of a page of new ones (F2: nodes are never unmapped).
ty_status get_node(std::atomic<watch *> &list, watch **node) {
    for (watch *candidate = list.load(std::memory_order_relaxed); candidate != nullptr; candidate = candidate->next)
        if (candidate->base.load(std::memory_order_relaxed) == 0) {
            *node = candidate;
            return TY_OK;
        }
    void *memory;
    ty_status status = map_memory(page_bytes, memory_hint::none, &memory);
    if (status != TY_OK)
        return status;
    watch *nodes = static_cast<watch *>(memory);
    for (size_t i = 0; i < page_bytes / sizeof(watch); i++) {
        watch *made = new (&nodes[i]) watch;
        made->next = list.load(std::memory_order_relaxed);
        list.store(made, std::memory_order_release);
        *node = made;
    }
    return TY_OK;
}

void set_place(watch &node, uintptr_t base, uintptr_t end, serve_function serve, void *context) {
    node.version.fetch_add(1, std::memory_order_seq_cst);
    node.base.store(base, std::memory_order_relaxed);
    node.end.store(end, std::memory_order_relaxed);
    node.serve.store(serve, std::memory_order_relaxed);
    node.context.store(context, std::memory_order_relaxed);
    if (!taiyen::fault("watch_of_a_new_range_keeps_its_version"))
        node.version.fetch_add(1, std::memory_order_seq_cst);
}

uint64_t process_part() {
    return static_cast<uint64_t>(getpid()) << 32;
}

void rewrite_word(uintptr_t address) {
    auto &word = *reinterpret_cast<std::atomic<uint64_t> *>(address);
    uint64_t value = word.load(std::memory_order_relaxed);
    word.compare_exchange_strong(value, value, std::memory_order_relaxed);
}

} // namespace

ty_status watch_range(layer where, const void *base, size_t bytes, serve_function serve, void *context, watch **made) {
    lock_guard guard(list_lock);
    find_budget();
    uintptr_t start = reinterpret_cast<uintptr_t>(base);
    watch *node;
    ty_status status = check_free(where, start, start + bytes);
    if (status == TY_OK)
        status = install();
    if (status == TY_OK)
        status = get_node(list_of(where), &node);
    if (status != TY_OK)
        return status;
    set_place(*node, start, start + bytes, serve, context);
    *made = node;
    return TY_OK;
}

ty_status find(layer where, const void *base, size_t bytes, watch **found) {
    lock_guard guard(list_lock);
    uintptr_t start = reinterpret_cast<uintptr_t>(base);
    *found = nullptr;
    for (watch *node = list_of(where).load(std::memory_order_relaxed); node != nullptr; node = node->next)
        if (node->base.load(std::memory_order_relaxed) <= start &&
            node->end.load(std::memory_order_relaxed) >= start + bytes)
            *found = node;
    if (*found == nullptr && overlaps(where, start, start + bytes))
        return failure(TY_E_ARGUMENT, "watch the writes to the memory at %p: a part of it is tracked apart", base)
            .remedy("guard memory that lies in one tracked range, or in none");
    return TY_OK;
}

void remove(watch *node) {
    lock_guard guard(list_lock);
    set_place(*node, 0, 0, nullptr, nullptr);
}

outcome serve(watch &node, const memory_fault &fault) {
    return serve_version(node, node.version.load(std::memory_order_relaxed), fault);
}

// F1: no handler works on a range whose faults are held. `inside` is raised before `gate` is read, a hold closes `gate`
// before it reads `inside`: one sees the other.
bool enter(watch &node) {
    uint64_t process = process_part();
    uint64_t seen = node.inside.load(std::memory_order_relaxed);
    uint64_t raised;
    do // F3: a count copied from the parent process does not count
        raised = (seen >> 32 == process >> 32 ? seen : process) + 1;
    while (!node.inside.compare_exchange_weak(seen, raised, std::memory_order_seq_cst, std::memory_order_relaxed));
    pid_t shut_by = node.gate.load(std::memory_order_seq_cst);
    if (shut_by == 0 || shut_by != static_cast<pid_t>(process >> 32) ||
        taiyen::fault("fault_handler_passes_a_shut_gate"))
        return true;
    leave(node);
    return false;
}

void leave(watch &node) {
    node.inside.fetch_sub(1, std::memory_order_seq_cst);
}

namespace {

// The stack that the library's handlers need, besides the kernel's signal frame, whose size depends on the processor's
// registers.
constexpr size_t handler_stack_bytes = 2048;

ty_status check_alternate_stack() {
    static thread_local bool checked;
    stack_t stack;
    if (checked || sys::alternate_stack(&stack) != 0 || (stack.ss_flags & SS_DISABLE) != 0)
        return TY_OK;
    size_t frame = getauxval(AT_MINSIGSTKSZ);
    size_t needed = (frame != 0 ? frame : 2048) + handler_stack_bytes;
    if (stack.ss_size < needed)
        return failure(TY_E_UNSUPPORTED, "find stores by page faults in this thread: its alternate stack has %zu bytes",
                       stack.ss_size)
            .remedy("give sigaltstack at least %zu bytes, or sysconf(_SC_SIGSTKSZ), or none", needed);
    checked = true;
    return TY_OK;
}

sigset_t handled_signals() {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGSEGV);
    return set;
}

} // namespace

// F5: a thread of a tracked transaction takes faults, whatever signals it blocks.
ty_status admit(bool *blocked) {
    *blocked = false;
    if (ty_status status = check_alternate_stack())
        return status;
    sigset_t before;
    sigset_t set = handled_signals();
    *blocked = ::pthread_sigmask(SIG_UNBLOCK, &set, &before) == 0 && sigismember(&before, SIGSEGV) == 1;
    if (*blocked && taiyen::fault("write_faults_stay_blocked"))
        ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
    return TY_OK;
}

void block_again() {
    sigset_t set = handled_signals();
    ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

signals_blocked::signals_blocked() {
    sigset_t all;
    sigfillset(&all);
    for (int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL})
        sigdelset(&all, own);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
}

signals_blocked::~signals_blocked() {
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

hold::hold(watch &node) : node_(node) {
    node.gate.store(getpid(), std::memory_order_seq_cst);
    uint64_t process = process_part();
    for (;;) {
        uint64_t inside = node.inside.load(std::memory_order_seq_cst);
        const bool others = inside >> 32 != process >> 32 && !taiyen::fault("child_waits_for_handlers_of_its_parent");
        if (static_cast<uint32_t>(inside) == 0 || others || taiyen::fault("fault_handlers_not_awaited"))
            return;
        give_way();
    }
}

hold::~hold() {
    node_.gate.store(0, std::memory_order_seq_cst);
}

// G4: writable runs stay within a budget of mappings.
bool mappings_left(uint64_t *used, uint64_t *budget) {
    *used = runs_in_use.load(std::memory_order_relaxed);
    *budget = run_budget.load(std::memory_order_relaxed);
    return *used < *budget;
}

void count_runs(int64_t change) {
    runs_in_use.fetch_add(static_cast<uint64_t>(change), std::memory_order_relaxed);
}

void set_run_budget(uint64_t runs) {
    run_budget.store(runs, std::memory_order_relaxed);
}

void prepare_merging(char *base, size_t bytes) {
    uintptr_t start = reinterpret_cast<uintptr_t>(base);
    rewrite_word(start);
    mapping_reader reader;
    if (!reader.open())
        return; // then only pieces of the first mapping merge
    mapping found;
    while (reader.next(found) && found.start < start + bytes)
        if (found.start > start)
            rewrite_word(found.start);
    reader.close();
}

} // namespace taiyen::os::faults
