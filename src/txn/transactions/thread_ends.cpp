// A thread that ends gives up its work: its transactions are rolled back, its read sections end. Otherwise it would
// hold the heap's reader-writer lock for ever.
//
// X9: what a thread had under way ends with it: nobody waits for it, and nothing of it is committed.
#include "transaction.hpp"

#include <cstring>

namespace taiyen {
namespace {

constinit os::mutex watchers_lock{os::lock_rank::registry};
constinit os::condition watchers_changed;
constinit thread_end_watcher *first_watcher = nullptr; // guarded by watchers_lock, as are `enders` of all
constinit uint64_t last_number = 0;                    // and these
constinit bool hooks_installed = false;
pthread_key_t thread_ends;

// The library's destructor has to wait for the thread's own destructors of thread-specific data, which may still
// commit, or use the heap. Those of the first round go first.
enum class end_state : uint8_t { unknown, notified, waits };
thread_local end_state state;

// Returns a watcher that this thread has work in; it is not destroyed until give_back.
thread_end_watcher *take_next() {
    os::lock_guard guard(watchers_lock);
    for (thread_end_watcher *each = first_watcher; each != nullptr; each = each->watched_next) {
        if (each->has_work(each)) {
            each->enders++;
            return each;
        }
    }
    return nullptr;
}

void give_back(thread_end_watcher &watcher) {
    os::lock_guard guard(watchers_lock);
    watcher.enders--;
    watchers_changed.notify_all();
}

void end_thread(void *mark) {
    if (state == end_state::notified) {
        state = end_state::waits;
        if (pthread_setspecific(thread_ends, mark) == 0)
            return;
    }
    while (thread_end_watcher *watcher = take_next()) {
        watcher->end(watcher);
        give_back(*watcher);
    }
    state = end_state::unknown;
}

// In the child, no other thread exists that could be ending, or hold the lock.
void before_fork() {
    watchers_lock.lock();
}
void after_fork() {
    watchers_lock.unlock();
}
void after_fork_in_child() {
    for (thread_end_watcher *each = first_watcher; each != nullptr; each = each->watched_next) {
        each->enders = 0;
        if (each->has_work == runtime_has_work)
            static_cast<txn_runtime *>(each)->lookers = 0;
    }
    watchers_lock.unlock();
}

// Under watchers_lock.
ty_status install_hooks() {
    if (hooks_installed)
        return TY_OK;
    int error = pthread_key_create(&thread_ends, end_thread);
    if (error == 0)
        error = pthread_atfork(before_fork, after_fork, after_fork_in_child);
    if (error != 0)
        return failure(TY_E_MEMORY, "register for ends of threads and forks")
            .cause(error)
            .remedy("free memory, or raise the process's limits");
    hooks_installed = true;
    return TY_OK;
}

} // namespace

ty_status thread_ends_watch() {
    if (state != end_state::unknown) [[likely]]
        return TY_OK;
    if (int error = pthread_setspecific(thread_ends, &state))
        return failure(TY_E_MEMORY, "register for ends of threads")
            .cause(error)
            .remedy("free memory, or raise the process's limits");
    state = end_state::notified;
    return TY_OK;
}

ty_status thread_ends_add(thread_end_watcher &watcher) {
    os::lock_guard guard(watchers_lock);
    if (ty_status status = install_hooks())
        return status;
    watcher.number = fault("read_section_outlives_its_heap") ? 1 : ++last_number;
    watcher.watched_next = first_watcher;
    first_watcher = &watcher;
    return TY_OK;
}

bool thread_ends_watches(uint64_t number) {
    os::lock_guard guard(watchers_lock);
    const thread_end_watcher *each = first_watcher;
    while (each != nullptr && each->number != number)
        each = each->watched_next;
    return each != nullptr;
}

txn_runtime *runtime_hold(const uint8_t identity[16], bool readers) {
    os::lock_guard guard(watchers_lock);
    for (thread_end_watcher *each = first_watcher; each != nullptr; each = each->watched_next) {
        if (each->has_work != runtime_has_work)
            continue;
        auto *rt = static_cast<txn_runtime *>(each);
        if (!rt->opened.load(std::memory_order_acquire) || (rt->log == nullptr && !readers) || rt->txn_forked() ||
            memcmp(image_identity(rt->heap), identity, 16) != 0)
            continue;
        rt->lookers++;
        return rt;
    }
    return nullptr;
}

void runtime_release(txn_runtime &rt) {
    os::lock_guard guard(watchers_lock);
    rt.lookers--;
    watchers_changed.notify_all();
}

void runtime_shut(txn_runtime &rt) {
    os::lock_guard guard(watchers_lock);
    rt.opened.store(false, std::memory_order_relaxed);
    while (rt.lookers != 0)
        watchers_changed.wait(watchers_lock);
}

void thread_ends_remove(thread_end_watcher &watcher) {
    os::lock_guard guard(watchers_lock);
    for (thread_end_watcher **link = &first_watcher; *link != nullptr; link = &(*link)->watched_next) {
        if (*link == &watcher) {
            *link = watcher.watched_next;
            break;
        }
    }
    while (watcher.enders != 0)
        watchers_changed.wait(watchers_lock);
}

bool runtime_has_work(thread_end_watcher *watcher) {
    const auto &rt = *static_cast<txn_runtime *>(watcher);
    if (rt.txn_forked())
        return false;
    const bool own = rt.txn != nullptr && rt.txn->owner.load(std::memory_order_relaxed) == this_thread() &&
                     !fault("transaction_of_an_ended_thread_stays");
    return own || (rt.txn != nullptr && has_prepared(rt)) || in_section(rt);
}

void runtime_end(thread_end_watcher *watcher) {
    auto &rt = *static_cast<txn_runtime *>(watcher);
    sections_end(rt);
    if (has_prepared(rt)) // another thread will end it
        rt.txn->preparer.store(0, std::memory_order_relaxed);
    if (ty_txn *txn = txn_current(rt.heap))
        static_cast<void>(txn_rollback(txn)); // rolls back all that it can; no one is left to report an error to
}

} // namespace taiyen
