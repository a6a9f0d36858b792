// Marks of heaps with transactions: none is under way meanwhile.
//
// X36: a return of a transactional heap is one transaction, durable when it ends; if it fails, nothing has changed.
#include "members.hpp"

namespace taiyen {
namespace {

constexpr const char *return_call = "return to a mark";

ty_status refuse_busy(const char *call) {
    return failure(TY_E_BUSY, "%s: a transaction is under way, or readers are in the heap", call)
        .remedy("try again, or leave no_wait out");
}

// The heap to itself: no transaction, body or read section of another thread is under way, and what they have freed is
// free. For a return, no thread reads an object, either.
class alone {
public:
    alone(txn_runtime *rt, concurrent_heap *all) : rt_(rt), all_(all) {}
    ~alone() {
        if (!entered_)
            return;
        if (objects_)
            objects_unlock_all(*rt_);
        if (all_ != nullptr)
            all_->go_on(*all_);
        if (rt_ != nullptr)
            rt_->rwlock.unlock();
    }
    alone(const alone &) = delete;
    alone &operator=(const alone &) = delete;

    ty_status enter(const char *call, bool no_wait) {
        if (rt_ != nullptr && !no_wait)
            rt_->rwlock.lock();
        else if (rt_ != nullptr && !rt_->rwlock.try_lock())
            return refuse_busy(call);
        entered_ = true;
        if (all_ != nullptr)
            stop(*all_);
        return TY_OK;
    }
    ty_status enter_objects(const char *call, bool no_wait) {
        if (fault("return_beside_readers_of_objects"))
            return TY_OK;
        objects_ = objects_lock_all(*rt_, no_wait);
        return objects_ ? TY_OK : refuse_busy(call);
    }

private:
    static void stop(concurrent_heap &all) {
        all.stop(all);
        const bool closes = !fault("mark_beside_frees_after_commits");
        if (closes)
            latch_close(all); // a thread frees blocks after its commit, too
        static_cast<void>(retired_free_all(all));
        if (closes)
            latch_open(all); // it finds none
    }

    txn_runtime *rt_;
    concurrent_heap *all_;
    bool entered_ = false, objects_ = false;
};

// Blocks that are reserved, or whose free is deferred, are no part of the state that the program knows.
ty_status check_whole(txn_runtime &rt, const char *call) {
    if (ty_status status = snapshots_free_all(rt))
        return status;
    if (rt.poisoned.load(std::memory_order_relaxed))
        return refuse_poisoned(rt, call);
    if (reserved_count(rt) != 0)
        return failure(TY_E_BUSY, "%s: blocks are reserved on it", call).remedy("publish them, or use ty_cancel");
    return TY_OK;
}

// The memory becomes that of the mark. The list of reserved blocks is found again, as at an open.
ty_status go_to(txn_runtime &rt, const char *name) {
    write_faults_destroy(rt); // a return stores to any page
    const ty_status status = image_return_to(rt.heap, name);
    return status == TY_OK ? reservations_read_again(rt) : status;
}

// X36. A snapshot stands for the return in place of a record, as for a transaction that is too long for the log.
ty_status return_alone(txn_runtime &rt, const char *name) {
    if (ty_status status = check_whole(rt, return_call))
        return status;
    if (ty_status status = image_find_mark(rt.heap, name))
        return status;
    if (ty_status status = image_mark(rt.heap, mark_before_a_return, TY_MARK_OPTIONS_INIT))
        return status;
    uint64_t lsn = 0;
    ty_status status = go_to(rt, name);
    if (status == TY_OK && !fault("return_without_a_snapshot"))
        status = snapshot_instead(rt, true, &lsn);
    if (status != TY_OK) {
        const ty_error error = keep_error();
        if (go_to(rt, mark_before_a_return) != TY_OK)
            rt.poisoned.store(true, std::memory_order_relaxed);            // memory holds what no file has
        static_cast<void>(image_drop_mark(rt.heap, mark_before_a_return)); // it was just made
        return report_again(error);
    }
    return image_drop_mark(rt.heap, mark_before_a_return);
}

// Those that the heap has; NULL: it has no transactions.
ty_status find_transactions(ty_heap *heap, const char *call, txn_runtime **rt, concurrent_heap **all) {
    *rt = runtime_of(heap);
    *all = nullptr;
    if (*rt != nullptr) {
        *all = static_cast<concurrent_heap *>((*rt)->concurrent);
        if (ty_status status = refuse_shared(**rt, call))
            return status;
        if (ty_status status = txn_begin_check(heap))
            return status;
    } else if (heap_may_be_concurrent(heap)) {
        if (ty_status status = concurrent_of(heap, all))
            return status;
        if ((*all)->fork.forked())
            return refuse_forked();
    } else {
        return TY_OK;
    }
    return in_body() ? refuse_in_body(call) : TY_OK; // X31
}

} // namespace

ty_status txn_branch(ty_heap *heap, const char *path) {
    constexpr const char *call = "branch a heap";
    txn_runtime *rt = nullptr;
    concurrent_heap *all = nullptr;
    rt = runtime_of(heap);
    if (rt == nullptr || (image_is_read_only(heap) && rt->sharing == nullptr))
        return image_branch(heap, path);
    if (ty_status status = find_transactions(heap, call, &rt, &all))
        return status;
    alone own(rt, all);
    if (ty_status status = own.enter(call, false))
        return status;
    if (ty_status status = check_whole(*rt, call))
        return status;
    return image_branch(heap, path);
}

ty_status txn_mark(ty_heap *heap, const char *name, const ty_mark_options &options) {
    constexpr const char *call = "mark a heap";
    txn_runtime *rt = nullptr;
    concurrent_heap *all = nullptr;
    if (ty_status status = find_transactions(heap, call, &rt, &all))
        return status;
    alone own(rt, all);
    if (ty_status status = own.enter(call, options.no_wait))
        return status;
    if (rt != nullptr)
        if (ty_status status = check_whole(*rt, call))
            return status;
    return heap_image_of(heap) != nullptr ? image_mark(heap, name, options) : volatile_mark(heap, name);
}

ty_status txn_return_to(ty_heap *heap, const char *name, const ty_mark_options &options) {
    txn_runtime *rt = nullptr;
    concurrent_heap *all = nullptr;
    if (ty_status status = find_transactions(heap, return_call, &rt, &all))
        return status;
    alone own(rt, all);
    if (ty_status status = own.enter(return_call, options.no_wait))
        return status;
    if (rt != nullptr)
        if (ty_status status = own.enter_objects(return_call, options.no_wait))
            return status;
    if (rt != nullptr)
        return return_alone(*rt, name);
    return heap_image_of(heap) != nullptr ? image_return_to(heap, name) : volatile_return_to(heap, name);
}

} // namespace taiyen
