// Read sections of the heap and of objects.
#include "bodies.hpp"
#include "transaction.hpp"

#include <new>

namespace taiyen {

struct object_locks {
    static constexpr unsigned count_bits = 8;
    struct alignas(64) line {
        fair_rwlock rwlock;
    };
    line lines[size_t{1} << count_bits];

    fair_rwlock &of(const void *object) {
        return lines[reinterpret_cast<uintptr_t>(object) * 0x9e3779b97f4a7c15 >> (64 - count_bits)].rwlock;
    }
};

namespace {

// What the thread has open on one heap.
struct section {
    uint64_t runtime;    // its number: the address of a destroyed one may be reused
    uint32_t depth;      // nesting of the heap's sections
    fair_rwlock *object; // NULL: none
};
constexpr unsigned sections_max = 16;
thread_local section sections[sections_max];
thread_local unsigned section_count;

section *find_section(const txn_runtime &rt) {
    for (unsigned i = 0; i < section_count; i++)
        if (sections[i].runtime == rt.number)
            return &sections[i];
    return nullptr;
}

void drop_if_over(section *s) {
    if (s->depth == 0 && s->object == nullptr)
        *s = sections[--section_count];
}

// Removes sections of heaps that were discarded or rebuilt.
void drop_ended() {
    for (unsigned i = section_count; i > 0; i--)
        if (!thread_ends_watches(sections[i - 1].runtime))
            sections[i - 1] = sections[--section_count];
}

// A thread that does not exist in the child may be inside.
ty_status open_section(txn_runtime *rt, const char *call, section **found) {
    if (rt == nullptr || rt->txn == nullptr)
        return failure(TY_E_ARGUMENT, "%s: the heap is not transactional, or open for reading only", call)
            .remedy("a heap that nobody writes to needs no read sections");
    if (rt->txn->owner.load(std::memory_order_relaxed) == this_thread())
        return failure(TY_E_ARGUMENT, "%s: this thread's own transaction is under way", call)
            .remedy("within it just read: nobody else writes");
    if (ty_status status = refuse_own_prepared(*rt, call))
        return status;
    if (ty_status status = refuse_forked(*rt, call))
        return status;
    if (ty_status status = refuse_within(*rt, call))
        return status;
    if (rt->poisoned.load(std::memory_order_relaxed))
        return refuse_poisoned(*rt, call);
    if (ty_status status = thread_ends_watch())
        return status;
    *found = find_section(*rt);
    if (*found != nullptr)
        return TY_OK;
    if (section_count == sections_max)
        drop_ended();
    if (section_count == sections_max)
        return failure(TY_E_MEMORY, "%s: this thread has sections open on %u heaps", call, sections_max)
            .remedy("end some of them first");
    *found = &sections[section_count];
    return TY_OK;
}

// Transactions of other threads on a concurrent heap do not use the reader-writer locks.
ty_status enter_rwlock(txn_runtime &rt, fair_rwlock &rwlock, const char *call) {
    if (!must_not_wait()) // X31: a thread in a body waits for nobody on another heap
        rwlock.lock_shared();
    else if (!rwlock.try_lock_shared())
        return bodies_abort_for({blocker::kind::rwlock, nullptr, &rwlock, nullptr});
    if (rt.poisoned.load(std::memory_order_relaxed) && !fault("reader_enters_a_poisoned_heap")) { // while this waited
        rwlock.unlock_shared();
        return refuse_poisoned(rt, call);
    }
    stop_others(rt);
    return TY_OK;
}
void leave_rwlock(txn_runtime &rt, fair_rwlock &rwlock) {
    others_go_on(rt);
    rwlock.unlock_shared();
}

// Whether what was read counts: asked before a follower shows another state.
ty_status leave_read(txn_runtime &rt, fair_rwlock &rwlock) {
    ty_status status = TY_OK;
    if (rt.sharing != nullptr)
        status = sharing_check_read(rt);
    else if (rt.follower != nullptr)
        status = follower_check(rt);
    leave_rwlock(rt, rwlock);
    return status;
}

// Registers the thread's section that open_section found.
void keep_section(txn_runtime *rt, section *s) {
    if (s == &sections[section_count]) {
        *s = {rt->number, 0, nullptr};
        section_count++;
    }
}

} // namespace

bool in_section(const txn_runtime &rt) {
    return section_count != 0 && find_section(rt) != nullptr;
}

// X9: what a thread had under way ends with it.
void sections_end(txn_runtime &rt) {
    section *s = find_section(rt);
    if (s == nullptr)
        return;
    const section ended = *s;
    *s = {rt.number, 0, nullptr};
    drop_if_over(s);
    if (ended.object != nullptr && !fault("object_locked_by_an_ended_thread"))
        leave_rwlock(rt, *ended.object);
    if (ended.depth != 0)
        leave_rwlock(rt, rt.rwlock);
}

ty_status objects_create(txn_runtime &rt) {
    void *memory;
    if (ty_status status = os::map_memory(sizeof(object_locks), os::memory_hint::none, &memory))
        return status;
    rt.objects = ::new (memory) object_locks{};
    return TY_OK;
}

void objects_destroy(txn_runtime &rt) {
    if (rt.objects != nullptr)
        os::unmap_memory(rt.objects, sizeof(object_locks));
    rt.objects = nullptr;
}

ty_status txn_read_begin(ty_heap *heap) {
    txn_runtime *rt = runtime_of(heap);
    section *s;
    if (ty_status status = open_section(rt, "begin a read section", &s))
        return status;
    bool known = s != &sections[section_count];
    bool nested = known && s->depth != 0;
    // A transaction may wait for the object, and this thread would wait for the transaction.
    if (known && !nested)
        return failure(TY_E_ARGUMENT, "begin a read section: this thread has one of an object open on the heap")
            .remedy("begin the heap's section first, or end the object's");
    if (ty_status status = nested || rt->sharing == nullptr ? TY_OK : sharing_see_newest(*rt))
        return status;
    if (!nested)
        if (ty_status status = enter_rwlock(*rt, rt->rwlock, "begin a read section"))
            return status;
    keep_section(rt, s);
    s->depth++;
    return TY_OK;
}

ty_status txn_read_end(ty_heap *heap) {
    txn_runtime *rt = runtime_of(heap);
    section *s = rt != nullptr ? find_section(*rt) : nullptr;
    if (s == nullptr || s->depth == 0 || --s->depth != 0)
        return TY_OK;
    drop_if_over(s);
    return leave_read(*rt, rt->rwlock);
}

ty_status txn_object_read_begin(ty_heap *heap, const void *object) {
    constexpr const char *call = "begin an object's read section";
    txn_runtime *rt = runtime_of(heap);
    section *s;
    if (ty_status status = open_section(rt, call, &s))
        return status;
    if (ty_status status = refuse_shared(*rt, call))
        return status;
    if (s != &sections[section_count] && s->object != nullptr)
        return failure(TY_E_ARGUMENT, "%s: this thread has one open on the heap", call)
            .remedy("end it first, or use a read section of the heap");
    fair_rwlock &rwlock = rt->objects->of(object);
    if (ty_status status = enter_rwlock(*rt, rwlock, call))
        return status;
    keep_section(rt, s);
    s->object = &rwlock;
    return TY_OK;
}

ty_status txn_object_read_end(ty_heap *heap, const void *object) {
    txn_runtime *rt = runtime_of(heap);
    section *s = rt != nullptr ? find_section(*rt) : nullptr;
    if (s == nullptr || s->object != &rt->objects->of(object))
        return TY_OK;
    fair_rwlock *rwlock = s->object;
    s->object = nullptr;
    drop_if_over(s);
    return leave_read(*rt, *rwlock);
}

ty_status txn_lock_object(ty_txn *txn, const void *object) {
    constexpr const char *call = "lock an object";
    if (ty_status status = check_owner(txn, call))
        return status;
    if (ty_status status = refuse_forked(*txn->rt, call))
        return status;
    if (txn->rt->sharing != nullptr) // its readers read the whole heap
        return TY_OK;
    fair_rwlock &rwlock = txn->rt->objects->of(object);
    for (fair_rwlock *held : txn->objects)
        if (held == &rwlock)
            return TY_OK;
    if (must_not_wait()) { // X31: a thread in a body waits for nobody on another heap
        if (!rwlock.try_lock())
            return bodies_abort_for({blocker::kind::rwlock, nullptr, &rwlock, nullptr});
    } else {
        rwlock.lock();
    }
    ty_status status = txn->objects.push(&rwlock);
    if (status)
        rwlock.unlock();
    return status;
}

bool objects_lock_all(txn_runtime &rt, bool no_wait) {
    object_locks::line *lines = rt.objects->lines;
    for (size_t i = 0; i < std::size(rt.objects->lines); i++) {
        if (!no_wait) {
            lines[i].rwlock.lock();
        } else if (!lines[i].rwlock.try_lock()) {
            while (i > 0)
                lines[--i].rwlock.unlock();
            return false;
        }
    }
    return true;
}

void objects_unlock_all(txn_runtime &rt) {
    for (object_locks::line &each : rt.objects->lines)
        each.rwlock.unlock();
}

void objects_unlock(ty_txn *txn) {
    for (fair_rwlock *rwlock : txn->objects)
        rwlock->unlock();
    txn->objects.count = 0;
}

} // namespace taiyen
