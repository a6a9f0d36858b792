// Which blocks of a heap are the library's own: undo's buffers and kept blocks; or those of the layer below.
#include "undo_runtime.hpp"

namespace taiyen {
namespace {

// U2: a block is kept for exactly one entry.
ty_status add_kept(const undo &u, internal_blocks &found) {
    uint64_t slot = 0, offset = 0;
    for (; u.kept.next(&slot, &offset); slot++)
        if (ty_status status = found.add(offset))
            return status;
    return found.add(u.offset_of(u.control));
}

// The block of undo's buffers in a heap; NULL if it has none.
undo_control *buffers_of(ty_heap *heap, uint64_t *bytes) {
    void *root = heap_service_root(heap);
    ty_block block;
    if (root == nullptr || !heap_find_block(heap, root, &block) || block.address != root ||
        block.size_bytes < sizeof(undo_control))
        return nullptr;
    *bytes = block.size_bytes;
    auto *control = static_cast<undo_control *>(root);
    return control->magic == undo_magic ? control : nullptr;
}

ty_status collect(ty_heap *heap, internal_blocks &found) {
    if (const undo *u = undo_of(heap))
        return add_kept(*u, found);
    undo *u;
    if (ty_status status = read_detached(heap, &u))
        return status;
    if (u == nullptr)
        return txn_add_internal_blocks(heap, found);
    const ty_status status = add_kept(*u, found);
    undo_destroy(u);
    return status;
}

} // namespace

ty_status read_detached(ty_heap *heap, undo **found) {
    *found = nullptr;
    uint64_t bytes = 0;
    undo_control *control = buffers_of(heap, &bytes);
    if (control == nullptr)
        return TY_OK;
    if (ty_status status = check_control(*control, bytes))
        return status;
    undo *u;
    if (ty_status status = undo_create(heap, control, bytes, &u))
        return status;
    if (ty_status status = check_buffers(*u)) {
        undo_destroy(u);
        return status;
    }
    *found = u;
    return TY_OK;
}

ty_status each_internal_block(ty_heap *heap, ty_block_callback *callback, void *context) {
    if (heap_has_checks(heap))
        return failure(TY_E_UNSUPPORTED, "go through the library's blocks in the heap at %p: it is checked",
                       heap_base(heap))
            .remedy("create the heap without checks");
    internal_blocks found;
    ty_status status = found.create(heap);
    if (!status)
        status = collect(heap, found);
    if (!status)
        found.each(callback, context);
    found.destroy();
    return status;
}

} // namespace taiyen
