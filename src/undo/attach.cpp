// Attaching and detaching, and what a close of the heap does.
#include "undo_runtime.hpp"

#include <algorithm>
#include <new>

namespace taiyen {
namespace {

constexpr uint64_t undo_bytes_default = uint64_t{16} << 20;
constexpr uint64_t bytes_an_entry = 64;
constexpr uint64_t entries_min = 16;

// The sizes that the options ask for.
undo_control control_for(ty_heap *heap, const ty_undo_options &options) {
    undo_control c{};
    c.magic = undo_magic;
    c.version = undo_version;
    c.flags = (options.fixed ? uint32_t{undo_fixed} : 0) | (options.volatile_buffers ? uint32_t{undo_volatile} : 0);
    uint64_t back = options.undo_bytes ? options.undo_bytes : undo_bytes_default;
    uint64_t forth = options.redo_bytes ? options.redo_bytes : back;
    uint64_t entries = options.entries ? options.entries : std::max(back / bytes_an_entry, entries_min);
    c.entry_count = entries + 1; // and a mark: one transaction may have all of them
    c.payload_bytes[0] = padded(back) + undo_ring::mark_room;
    c.payload_bytes[1] = padded(forth) + undo_ring::mark_room;
    c.kept_bytes_max = options.kept_bytes ? options.kept_bytes : heap_limit(heap) / 4;
    return c;
}

bool is_what_is_asked_for(const undo_control &c, const ty_undo_options &options) {
    auto as = [](uint64_t asked, uint64_t got) { return asked == 0 || asked == got; };
    return options.fixed == bool(c.flags & undo_fixed) && options.volatile_buffers == bool(c.flags & undo_volatile) &&
           as(padded(options.undo_bytes), c.payload_bytes[0] - undo_ring::mark_room) &&
           as(padded(options.redo_bytes), c.payload_bytes[1] - undo_ring::mark_room) &&
           as(options.entries, c.entry_count - 1) && as(options.kept_bytes, c.kept_bytes_max);
}

uint64_t buffer_bytes_of(const undo_control &c) {
    uint64_t bytes = sizeof c + 2 * c.entry_count * sizeof(undo_entry);
    return c.flags & undo_volatile ? bytes : bytes + c.payload_bytes[0] + c.payload_bytes[1];
}

} // namespace

void undo_destroy(undo *u) {
    if (u == nullptr)
        return;
    u->kept.destroy();
    if (u->outside != nullptr)
        os::unmap_memory(u->outside, u->outside_bytes);
    u->~undo();
    os::unmap_memory(u, sizeof *u);
}

namespace {

void lay_rings(undo &u) {
    undo_control &c = *u.control;
    auto *entries = reinterpret_cast<undo_entry *>(u.control + 1);
    char *payload = u.outside != nullptr ? u.outside : reinterpret_cast<char *>(entries + 2 * c.entry_count);
    for (int i = 0; i < 2; i++) {
        u.rings[i] = {entries, payload, c.entry_count, c.payload_bytes[i], &c.positions[i], 0, 0, 0};
        u.rings[i].refresh();
        entries += c.entry_count;
        payload += c.payload_bytes[i];
    }
}

ty_status prepare_end(heap_service *service, bool discards) {
    undo &u = *static_cast<undo *>(service);
    if (u.running != undo_run::none)
        return failure(TY_E_BUSY, "close a heap in a procedure of an undo").remedy("let it end first");
    if (!discards && u.control->flags & undo_volatile && image_check_writer(u.heap, "close a heap") == TY_OK)
        forget_all(u); // the recorded bytes end with the session
    return TY_OK;
}

void release(heap_service *service) {
    undo_destroy(static_cast<undo *>(service));
}

} // namespace

ty_status undo_create(ty_heap *heap, undo_control *control, uint64_t buffer_bytes, undo **made) {
    void *memory;
    if (ty_status status = os::map_memory(sizeof(undo), os::memory_hint::none, &memory))
        return status;
    undo *u = ::new (memory) undo{};
    u->prepare_end = prepare_end;
    u->release = release;
    heap_words words = heap_block_words(heap);
    u->heap = heap;
    u->base = static_cast<char *>(heap_base(heap));
    u->first_offset = words.first * 8;
    u->end_offset = words.end * 8;
    u->control = control;
    u->buffer_bytes = buffer_bytes;
    ty_status status = u->kept.create(2 * control->entry_count, heap_limit(heap) / os::page_bytes);
    if (!status && control->flags & undo_volatile) {
        u->outside_bytes = control->payload_bytes[0] + control->payload_bytes[1];
        u->outside_bytes = (u->outside_bytes + os::page_bytes - 1) / os::page_bytes * os::page_bytes;
        if (!(status = os::map_memory(u->outside_bytes, os::memory_hint::none, &memory)))
            u->outside = static_cast<char *>(memory);
    }
    if (status) {
        undo_destroy(u);
        return status;
    }
    lay_rings(*u);
    u->kept.cover(u->offset_of(control), buffer_bytes);
    *made = u;
    return TY_OK;
}

namespace {

// The block that a heap's service root points to, if it is undo's; else NULL. Removes what a detached log left there.
ty_status find_buffers(ty_heap *heap, undo_control **control, uint64_t *bytes) {
    *control = nullptr;
    void *root = heap_service_root(heap);
    if (root == nullptr)
        return TY_OK;
    ty_block block;
    if (!heap_find_block(heap, root, &block) || block.address != root || block.size_bytes < sizeof(undo_control))
        return failure(TY_E_DAMAGED, "attach undo: the heap's service block is not there")
            .remedy("ty_undo_detach with keep_history false forgets it");
    *control = static_cast<undo_control *>(root);
    *bytes = block.size_bytes;
    if ((*control)->magic == undo_magic)
        return TY_OK;
    *control = nullptr;
    return txn_remove_leftovers(heap);
}

ty_status make_buffers(ty_heap *heap, const ty_undo_options &options, undo **made) {
    if (std::max({options.undo_bytes, options.redo_bytes, options.entries}) > heap_limit(heap))
        return failure(TY_E_MEMORY, "attach undo: its buffers would be larger than the heap")
            .remedy("ask for smaller ones");
    undo_control control = control_for(heap, options);
    void *block = heap_alloc(heap, buffer_bytes_of(control), 16, false);
    if (block == nullptr) {
        const ty_error error = keep_error();
        return error.status;
    }
    memcpy(block, &control, sizeof control);
    ty_status status = undo_create(heap, static_cast<undo_control *>(block), heap_usable_size(block), made);
    if (status)
        static_cast<void>(heap_free(block)); // it was just allocated
    else
        heap_set_service_root(heap, block);
    return status;
}

bool has_history(undo &u) {
    return !u.back().empty() || !u.forth().empty() || u.is(undo_open);
}

void remove_buffers(ty_heap *heap, undo *u, void *block) {
    undo_destroy(u);
    heap_set_service_root(heap, nullptr);
    static_cast<void>(heap_free(block)); // it is live: this was checked
}

// Takes over buffers that are already in the heap.
ty_status take_up(ty_heap *heap, undo_control *control, uint64_t bytes, undo **taken) {
    if (ty_status status = check_control(*control, bytes))
        return status;
    undo *u;
    if (ty_status status = undo_create(heap, control, bytes, &u))
        return status;
    if (ty_status status = check_buffers(*u)) {
        undo_destroy(u);
        return status;
    }
    u->reattached = true;
    if (control->flags & undo_volatile && has_history(*u)) {
        u->lost_volatile = true;
        forget_all(*u);
    }
    if (u->is(undo_open) && !u->is(undo_full))
        u->target = &u->back();
    *taken = u;
    return TY_OK;
}

ty_status check_attachable(ty_heap *heap) {
    constexpr const char *call = "attach undo";
    if (ty_status status = image_check_writer(heap, call))
        return status;
    if (undo_of(heap) != nullptr)
        return failure(TY_E_BUSY, "%s: it is attached already", call).remedy("detach it first");
    if (image_kind(heap) == TY_TRANSACTIONAL)
        return failure(TY_E_UNSUPPORTED, "%s to a transactional heap", call)
            .remedy("use a snapshot heap; a transaction of a transactional heap can be rolled back");
    if (heap_may_be_concurrent(heap))
        return failure(TY_E_UNSUPPORTED, "%s to a concurrent heap", call)
            .remedy("create the heap without the option concurrent");
    if (heap_has_checks(heap))
        return failure(TY_E_UNSUPPORTED, "%s to the heap at %p: it is checked", call, heap_base(heap))
            .remedy("create the heap without checks");
    return TY_OK;
}

} // namespace

ty_status undo_attach(ty_heap *heap, const ty_undo_options *options) {
    const ty_undo_options asked = options != nullptr ? *options : ty_undo_options TY_UNDO_OPTIONS_INIT;
    if (ty_status status = check_attachable(heap))
        return status;
    undo_control *control;
    uint64_t bytes;
    undo *u = nullptr;
    if (ty_status status = find_buffers(heap, &control, &bytes))
        return status;
    if (control != nullptr)
        if (ty_status status = take_up(heap, control, bytes, &u))
            return status;
    if (u != nullptr && options != nullptr && !is_what_is_asked_for(*control, asked)) {
        if (has_history(*u)) {
            undo_destroy(u);
            return failure(TY_E_EXISTS, "attach undo with other buffers: those in the heap hold a history")
                .remedy("attach with NULL for options, and clear or detach it first");
        }
        undo *made;
        ty_status status = make_buffers(heap, asked, &made); // before the old ones are freed: it may fail
        undo_destroy(u);
        if (status)
            return status;
        static_cast<void>(heap_free(control)); // it is live: find_buffers has checked
        u = made;
    } else if (u == nullptr) {
        if (ty_status status = make_buffers(heap, asked, &u))
            return status;
    }
    heap_set_service(heap, u);
    return TY_OK;
}

ty_status undo_detach(ty_heap *heap, bool keep_history) {
    constexpr const char *call = "detach undo";
    undo *u = undo_of(heap);
    if (u != nullptr) {
        if (ty_status status = find_undo(heap, call, &u))
            return status;
        if (!keep_history || u->control->flags & undo_volatile)
            forget_all(*u);
        heap_set_service(heap, nullptr);
        if (keep_history)
            undo_destroy(u);
        else
            remove_buffers(heap, u, u->control);
        return TY_OK;
    }
    if (ty_status status = image_check_writer(heap, call))
        return status;
    void *root = heap_service_root(heap);
    ty_block block;
    if (root == nullptr || image_kind(heap) == TY_TRANSACTIONAL)
        return failure(TY_E_NOT_FOUND, "%s: it is not attached, and the heap has no buffers", call);
    if (keep_history)
        return TY_OK;
    if (undo_attach(heap, nullptr) == TY_OK)
        return undo_detach(heap, false);
    // In invalid buffers no entry is believed: what they kept stays in the heap.
    heap_set_service_root(heap, nullptr);
    if (heap_find_block(heap, root, &block) && block.address == root)
        return heap_free(root);
    return TY_OK;
}

ty_status undo_check_return(ty_heap *heap, const char *call) {
    const undo *u = undo_of(heap);
    if (u == nullptr)
        return TY_OK;
    if (u->running != undo_run::none)
        return failure(TY_E_ARGUMENT, "%s in a procedure that an undo or redo runs", call)
            .remedy("a procedure may record, allocate, resize and free");
    if (u->control->flags & undo_volatile)
        return failure(TY_E_UNSUPPORTED, "%s: the bytes that its undo has recorded are outside of it", call)
            .remedy("attach undo without volatile_buffers");
    return TY_OK;
}

// The same buffers, with what they hold now: as an attach does, but in the memory that is there.
static bool take_up_again(undo &u) {
    ty_block block;
    const undo_control &control = *u.control;
    if (heap_service_root(u.heap) != u.control || !heap_find_block(u.heap, u.control, &block) ||
        block.address != u.control || block.size_bytes != u.buffer_bytes || check_control(control, u.buffer_bytes) ||
        control.flags & undo_volatile || control.entry_count != u.rings[0].entry_count)
        return false;
    u.kept.clear();
    lay_rings(u);
    u.kept.cover(u.offset_of(u.control), u.buffer_bytes);
    if (check_buffers(u) != TY_OK)
        return false;
    u.redo_lost = u.unrecorded = false;
    u.target = u.is(undo_open) && !u.is(undo_full) ? &u.back() : nullptr;
    return true;
}

void undo_returned(ty_heap *heap) {
    undo *u = undo_of(heap);
    if (u == nullptr || take_up_again(*u))
        return;
    heap_set_service(heap, nullptr);
    undo_destroy(u);
}

ty_status find_undo(ty_heap *heap, const char *call, undo **found) {
    undo *u = undo_of(heap);
    if (u == nullptr)
        return failure(TY_E_ARGUMENT, "%s: the heap has no undo", call).remedy("call ty_undo_attach first");
    if (ty_status status = image_check_writer(heap, call))
        return status;
    if (u->running != undo_run::none)
        return failure(TY_E_ARGUMENT, "%s in a procedure that an undo or redo runs", call)
            .remedy("a procedure may record, allocate, resize and free");
    *found = u;
    return TY_OK;
}

} // namespace taiyen
