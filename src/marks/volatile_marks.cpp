// Marks of volatile heaps. From the first one on the heap's written pages are tracked. The base is the empty heap: all
// that it uses at the first mark is copied.
#include "marks.hpp"

#include <cstdlib>
#include <new>

namespace taiyen {
namespace {

struct volatile_marks : heap_marks {
    ty_heap *heap;
    os::fork_guard fork;
    os::tracker tracker;
    os::page_set found; // by a collect, or pages to return to; empty between calls
    page_copies copies;
    mark_tree tree;
};

// The pages that the heap may have touched.
struct asked_ranges {
    os::page_range parts[heap_asked_max];
    size_t count;

    explicit asked_ranges(const ty_heap *heap) : count(heap_asked_pages(heap, parts)) {}
    os::page_ranges ranges() const { return {parts, count}; }
};

void release(heap_marks *marks) {
    auto *own = static_cast<volatile_marks *>(marks);
    if (!own->fork.forked())
        own->tracker.stop();
    own->tree.destroy();
    own->copies.destroy();
    if (own->found.page_count() != 0)
        own->found.destroy();
    own->fork.stop();
    own->~volatile_marks();
    free(own);
}

// With the heap paused to change: its memory is pinned, and tracked from now on.
ty_status begin(volatile_marks &marks) {
    ty_heap *heap = marks.heap;
    const uint64_t pages = heap_limit(heap) / os::page_bytes;
    if (ty_status status = marks.fork.start())
        return status;
    if (ty_status status = marks.found.create(pages))
        return status;
    if (ty_status status = marks.tree.create(pages, marks.copies))
        return status;
    heap_pin_memory(heap);
    const asked_ranges asked(heap);
    if (ty_status status = marks.tracker.start(heap_base(heap), pages, os::tracker_method::automatic, asked.ranges()))
        return status;
    for (const os::page_range &part : asked.parts)
        marks.tree.changed.insert_range(part.first, part.count);
    return TY_OK;
}

// Under the heap's marks' lock. *made NULL: it has none.
ty_status find_marks(ty_heap *heap, const char *call, volatile_marks **found) {
    *found = static_cast<volatile_marks *>(heap_marks_of(heap));
    if (*found != nullptr && (*found)->fork.forked())
        return failure(TY_E_FORKED, "%s: the heap's marks are the parent process's", call).remedy("do it there");
    return TY_OK;
}

ty_status make_marks(ty_heap *heap, volatile_marks **made) {
    void *memory = os::internal_malloc(sizeof(volatile_marks));
    if (memory == nullptr)
        return failure(TY_E_MEMORY, "mark a heap").remedy("free memory");
    auto *marks = ::new (memory) volatile_marks{};
    static_cast<heap_marks &>(*marks) = {release};
    marks->heap = heap;
    if (ty_status status = begin(*marks)) {
        release(marks);
        return status;
    }
    heap_marks_of(heap) = *made = marks;
    return TY_OK;
}

void end_marks(volatile_marks &marks) {
    heap_marks_of(marks.heap) = nullptr;
    release(&marks);
}

ty_status collect(volatile_marks &marks) {
    const ty_status status = marks.tracker.collect(asked_ranges(marks.heap).ranges(), marks.found);
    marks.tree.changed.merge(marks.found); // also if it failed: what it found is lost to the next
    marks.found.clear();
    return status;
}

ty_status mark_paused(ty_heap *heap, volatile_marks *marks, const char *name) {
    if (marks == nullptr)
        if (ty_status status = make_marks(heap, &marks))
            return status;
    page_list pages;
    ty_status status = marks->tree.check_unused(name);
    if (status == TY_OK)
        status = collect(*marks);
    if (status == TY_OK)
        status = heap_select_pages(heap, marks->tree.changed, {}, &pages);
    if (status == TY_OK)
        status = marks->tree.add(name, static_cast<char *>(heap_base(heap)), pages, heap_count_used(heap));
    if (marks->tree.count() == 0)
        end_marks(*marks);
    return status;
}

ty_status return_paused(volatile_marks &marks, const char *name) {
    uint32_t mark = 0;
    if (ty_status status = marks.tree.find(name, &mark))
        return status;
    // These pages are about to be written again: they stay writable until then.
    const ty_status queried = marks.tracker.query(asked_ranges(marks.heap).ranges(), marks.found);
    marks.tree.changed.merge(marks.found);
    marks.found.clear();
    if (queried != TY_OK)
        return queried;
    marks.tree.add_differences(mark, marks.tree.changed);
    marks.tree.move_to(mark);
    apply_mark(marks.heap, marks.tree, marks.copies, marks.tree.changed, nullptr);
    settle_tracker(marks.tracker, asked_ranges(marks.heap).ranges(), marks.tree.changed, marks.found);
    marks.found.clear();
    marks.tree.changed.clear();
    return TY_OK;
}

} // namespace

ty_status volatile_mark(ty_heap *heap, const char *name) {
    os::lock_guard guard(heap_marks_lock(heap));
    volatile_marks *marks = nullptr;
    if (ty_status status = find_marks(heap, "mark a heap", &marks))
        return status;
    heap_pause(heap, pause_to::change);
    const ty_status status = mark_paused(heap, marks, name);
    heap_resume(heap);
    return status;
}

ty_status volatile_return_to(ty_heap *heap, const char *name) {
    os::lock_guard guard(heap_marks_lock(heap));
    volatile_marks *marks = nullptr;
    if (ty_status status = find_marks(heap, "return to a mark", &marks))
        return status;
    if (marks == nullptr)
        return mark_not_found(name);
    heap_pause(heap, pause_to::change);
    const ty_status status = return_paused(*marks, name);
    heap_resume(heap);
    return status;
}

ty_status volatile_drop_mark(ty_heap *heap, const char *name) {
    os::lock_guard guard(heap_marks_lock(heap));
    volatile_marks *marks = nullptr;
    uint32_t mark = 0;
    if (ty_status status = find_marks(heap, "drop a mark", &marks))
        return status;
    if (marks == nullptr)
        return mark_not_found(name);
    if (ty_status status = marks->tree.find(name, &mark))
        return status;
    marks->tree.drop(mark);
    if (marks->tree.count() == 0)
        end_marks(*marks);
    return TY_OK;
}

ty_status volatile_each_mark(ty_heap *heap, ty_mark_callback *callback, void *context) {
    os::lock_guard guard(heap_marks_lock(heap));
    volatile_marks *marks = nullptr;
    if (ty_status status = find_marks(heap, "list marks", &marks))
        return status;
    if (marks != nullptr)
        each_mark(&marks->tree, nullptr, callback, context);
    return TY_OK;
}

} // namespace taiyen
