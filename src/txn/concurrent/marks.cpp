// Marks of heaps with transactions: none is under way meanwhile.
//
// X36: a return of a transactional heap is one transaction, durable when it ends; if it fails, nothing has changed.
#include "members.hpp"

namespace taiyen {
namespace {

constexpr const char *before_the_return = "\1before"; // no program can use this name

// The heap to itself: no transaction, body or read section of another thread is under way, and what they have freed is
// free.
class alone {
public:
    explicit alone(txn_runtime &rt) : rt_(rt) {
        rt.rwlock.lock();
        stop_others(rt);
        if (rt.concurrent != nullptr)
            static_cast<void>(rt.concurrent->give_back(*rt.concurrent));
    }
    ~alone() {
        others_go_on(rt_);
        rt_.rwlock.unlock();
    }
    alone(const alone &) = delete;
    alone &operator=(const alone &) = delete;

private:
    txn_runtime &rt_;
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
    const bool locks = !fault("return_beside_readers_of_objects");
    if (locks)
        objects_lock_all(rt);
    ty_status status = image_return_to(rt.heap, name);
    if (status == TY_OK)
        status = reservations_read_again(rt);
    if (locks)
        objects_unlock_all(rt);
    return status;
}

// X36. A snapshot stands for the return in place of a record, as for a transaction that is too long for the log.
ty_status return_alone(txn_runtime &rt, const char *name) {
    if (ty_status status = check_whole(rt, "return to a mark"))
        return status;
    if (ty_status status = image_find_mark(rt.heap, name))
        return status;
    if (ty_status status = image_mark(rt.heap, before_the_return))
        return status;
    uint64_t lsn = 0;
    ty_status status = go_to(rt, name);
    if (status == TY_OK && !fault("return_without_a_snapshot"))
        status = snapshot_instead(rt, true, &lsn);
    if (status != TY_OK) {
        const ty_error error = keep_error();
        if (go_to(rt, before_the_return) != TY_OK)
            rt.poisoned.store(true, std::memory_order_relaxed);         // memory holds what no file has
        static_cast<void>(image_drop_mark(rt.heap, before_the_return)); // it was just made
        return report_again(error);
    }
    return image_drop_mark(rt.heap, before_the_return);
}

// A volatile heap of many writers.
class stopped {
public:
    explicit stopped(concurrent_heap &all) : all_(all) {
        all.stop(all);
        static_cast<void>(retired_free_all(all));
    }
    ~stopped() { all_.go_on(all_); }
    stopped(const stopped &) = delete;
    stopped &operator=(const stopped &) = delete;

private:
    concurrent_heap &all_;
};

ty_status find_concurrent(ty_heap *heap, const char *call, concurrent_heap **all) {
    if (ty_status status = concurrent_of(heap, all))
        return status;
    if ((*all)->fork.forked())
        return refuse_forked();
    return in_body() ? refuse_in_body(call) : TY_OK;
}

} // namespace

bool txn_is_concurrent(ty_heap *heap) {
    const txn_runtime *rt = runtime_of(heap);
    return rt != nullptr ? rt->concurrent != nullptr : heap_may_be_concurrent(heap);
}

ty_status txn_mark(ty_heap *heap, const char *name) {
    constexpr const char *call = "mark a heap";
    txn_runtime *rt = runtime_of(heap);
    if (rt != nullptr) {
        if (ty_status status = txn_begin_check(heap))
            return status;
        const alone own(*rt);
        const ty_status status = check_whole(*rt, call);
        return status == TY_OK ? image_mark(heap, name) : status;
    }
    if (!heap_may_be_concurrent(heap))
        return heap_image_of(heap) != nullptr ? image_mark(heap, name) : volatile_mark(heap, name);
    concurrent_heap *all = nullptr;
    if (ty_status status = find_concurrent(heap, call, &all))
        return status;
    const stopped own(*all);
    return volatile_mark(heap, name);
}

ty_status txn_return_to(ty_heap *heap, const char *name) {
    constexpr const char *call = "return to a mark";
    txn_runtime *rt = runtime_of(heap);
    if (rt != nullptr) {
        if (ty_status status = txn_begin_check(heap))
            return status;
        const alone own(*rt);
        return return_alone(*rt, name);
    }
    if (!heap_may_be_concurrent(heap))
        return heap_image_of(heap) != nullptr ? image_return_to(heap, name) : volatile_return_to(heap, name);
    concurrent_heap *all = nullptr;
    if (ty_status status = find_concurrent(heap, call, &all))
        return status;
    const stopped own(*all);
    return volatile_return_to(heap, name);
}

} // namespace taiyen
