// A thread that ends takes back what it has under way: its transactions are rolled back, its read sections end. Else it
// would hold the heap's gate for ever.
//
// X9: whatever a thread that has ended had under way is over: nobody waits for it, and nothing of it is committed.
#include "transaction.hpp"

namespace taiyen {
namespace {

constinit os::mutex runtimes_lock{os::lock_rank::registry};
constinit os::condition runtimes_changed;
constinit txn_runtime *first_runtime = nullptr; // guarded by runtimes_lock, as are `next` and `enders` of all
constinit uint64_t last_number = 0;             // and these
constinit bool hooks_installed = false;
pthread_key_t thread_ends;

// What a thread's end has to wait for: its own destructors of thread-specific data may still commit, or use the heap.
// Those of the first round go first.
enum class end_state : uint8_t { unknown, told, waits };
thread_local end_state state;

bool has_work(const txn_runtime &rt) {
    bool own = rt.txn != nullptr && rt.txn->owner.load(std::memory_order_relaxed) == this_thread();
    return own || in_section(rt);
}

// A runtime that this thread has work in; it is not destroyed until give_back.
txn_runtime *take_next() {
    os::lock_guard guard(runtimes_lock);
    for (txn_runtime *rt = first_runtime; rt != nullptr; rt = rt->next) {
        if (!rt->txn_forked() && has_work(*rt)) {
            rt->enders++;
            return rt;
        }
    }
    return nullptr;
}

void give_back(txn_runtime &rt) {
    os::lock_guard guard(runtimes_lock);
    rt.enders--;
    runtimes_changed.notify_all();
}

void end_thread(void *mark) {
    if (state == end_state::told) {
        state = end_state::waits;
        if (pthread_setspecific(thread_ends, mark) == 0)
            return;
    }
    while (txn_runtime *rt = take_next()) {
        sections_end(*rt);
        if (ty_txn *txn = txn_current(rt->heap))
            static_cast<void>(txn_rollback(txn)); // all of it that can be is taken back; nobody is there to be told
        give_back(*rt);
    }
    state = end_state::unknown;
}

// In a child no other thread is left that could be ending, or have the lock.
void before_fork() {
    runtimes_lock.lock();
}
void after_fork() {
    runtimes_lock.unlock();
}
void after_fork_in_child() {
    for (txn_runtime *rt = first_runtime; rt != nullptr; rt = rt->next)
        rt->enders = 0;
    runtimes_lock.unlock();
}

// Under runtimes_lock.
ty_status install_hooks() {
    if (hooks_installed)
        return TY_OK;
    int error = pthread_key_create(&thread_ends, end_thread);
    if (error == 0)
        error = pthread_atfork(before_fork, after_fork, after_fork_in_child);
    if (error != 0)
        return failure(TY_E_MEMORY, "be told when threads end and processes fork").cause(error);
    hooks_installed = true;
    return TY_OK;
}

} // namespace

ty_status thread_ends_watch() {
    if (state != end_state::unknown) [[likely]]
        return TY_OK;
    if (int error = pthread_setspecific(thread_ends, &state))
        return failure(TY_E_MEMORY, "be told when a thread ends").cause(error);
    state = end_state::told;
    return TY_OK;
}

ty_status thread_ends_add(txn_runtime &rt) {
    os::lock_guard guard(runtimes_lock);
    if (ty_status status = install_hooks())
        return status;
    rt.number = ++last_number;
    rt.next = first_runtime;
    first_runtime = &rt;
    return TY_OK;
}

bool thread_ends_watches(uint64_t number) {
    os::lock_guard guard(runtimes_lock);
    const txn_runtime *rt = first_runtime;
    while (rt != nullptr && rt->number != number)
        rt = rt->next;
    return rt != nullptr;
}

void thread_ends_remove(txn_runtime &rt) {
    os::lock_guard guard(runtimes_lock);
    for (txn_runtime **link = &first_runtime; *link != nullptr; link = &(*link)->next) {
        if (*link == &rt) {
            *link = rt.next;
            break;
        }
    }
    while (rt.enders != 0)
        runtimes_changed.wait(runtimes_lock);
}

} // namespace taiyen
