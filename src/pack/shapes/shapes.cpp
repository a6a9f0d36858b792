// The public functions on sets of shapes.
#include "boundary.hpp"
#include "shape_set.hpp"
#include "text.hpp"
#include <algorithm>
#include <cstring>
#include <taiyen/persist.h>
#include <taiyen/txn.h>

using namespace taiyen::pack;

namespace {

ty_status refuse_null(const char *operation) {
    return fail(TY_E_ARGUMENT, operation, "an argument is NULL that must not be");
}

ty_status set_root_of(ty_heap *heap, ty_txn *txn, void *block) {
    return txn ? ty_txn_root_set(txn, TY_SHAPES_ROOT, block) : ty_root_set(heap, TY_SHAPES_ROOT, block);
}

ty_status free_block(ty_txn *txn, void *block) {
    return txn ? ty_txn_free(txn, block) : ty_free(block);
}

// A block with the text, and zeros up to its end.
void *text_block(ty_heap *heap, ty_txn *txn, const std::string &text) {
    void *block = txn ? ty_txn_alloc(txn, text.size() + 1) : ty_alloc_zeroed(heap, text.size() + 1);
    if (block)
        memcpy(block, text.data(), text.size());
    return block;
}

} // namespace

ty_status ty_shapes_create(ty_shapes **shapes) {
    constexpr const char *operation = "create a set of shapes";
    if (!shapes)
        return refuse_null(operation);
    return at_boundary(operation, [&] {
        *shapes = new ty_shapes;
        return TY_OK;
    });
}

void ty_shapes_destroy(ty_shapes *shapes) {
    delete shapes;
}

ty_status ty_shapes_add(ty_shapes *shapes, const ty_shape *shape) {
    constexpr const char *operation = "add a shape";
    if (!shapes || !shape)
        return refuse_null(operation);
    return at_boundary(operation, [&] { return shapes->set.add(shape); });
}

ty_status ty_shapes_root(ty_shapes *shapes, const char *root, const ty_shape *shape, const ty_count *count) {
    constexpr const char *operation = "give a root a shape";
    if (!shapes)
        return refuse_null(operation);
    return at_boundary(operation, [&] { return shapes->set.add_root(root, shape, count); });
}

const ty_shape *ty_shapes_find(const ty_shapes *shapes, const char *name) {
    return shapes && name ? shapes->set.find(name) : nullptr;
}

ty_status ty_shapes_find_root(const ty_shapes *shapes, const char *root, const ty_shape **shape, ty_count *count) {
    constexpr const char *operation = "find the shape of a root";
    if (!shapes || !root || !shape)
        return refuse_null(operation);
    const set_root *found = shapes->set.find_root(root);
    if (found == nullptr)
        return fail(TY_E_NOT_FOUND, operation, "the set says nothing of this root");
    *shape = found->shape;
    if (count != nullptr)
        *count = found->count;
    return TY_OK;
}

ty_status ty_shapes_bind(ty_shapes *shapes, const char *name, ty_trace_callback *trace, ty_move_callback *moved,
                         void *context) {
    constexpr const char *operation = "bind hooks to a shape";
    if (!shapes || !name)
        return refuse_null(operation);
    return at_boundary(operation, [&] { return shapes->set.bind(name, trace, moved, context); });
}

ty_status ty_shapes_read(ty_shapes *shapes, const char *text, size_t bytes) {
    constexpr const char *operation = "read shapes";
    if (!shapes || (!text && bytes != 0))
        return refuse_null(operation);
    return at_boundary(operation, [&] { return read_text(shapes->set, {text, bytes}); });
}

ty_status ty_shapes_write(const ty_shapes *shapes, ty_text_callback *callback, void *context) {
    constexpr const char *operation = "write shapes";
    if (!shapes || !callback)
        return refuse_null(operation);
    return at_boundary(operation, [&] {
        constexpr size_t piece_bytes = 64 << 10;
        std::string text = write_text(shapes->set);
        for (size_t at = 0; at < text.size(); at += piece_bytes)
            if (!callback(text.data() + at, std::min(piece_bytes, text.size() - at), context))
                break;
        return TY_OK;
    });
}

ty_status ty_shapes_keep(const ty_shapes *shapes, ty_heap *heap) {
    constexpr const char *operation = "keep shapes in a heap";
    if (!shapes || !heap)
        return refuse_null(operation);
    return at_boundary(operation, [&]() -> ty_status {
        std::string text = write_text(shapes->set);
        if (text.size() > text_bytes_max)
            return fail(TY_E_ARGUMENT, operation, "the text is longer than 16 MiB; split the set");
        ty_txn *txn = ty_current_txn(heap);
        void *old = ty_root(heap, TY_SHAPES_ROOT);
        void *block = text_block(heap, txn, text);
        if (!block) {
            ty_error error;
            ty_error_detail(&error);
            return error.status;
        }
        if (ty_status status = set_root_of(heap, txn, block)) {
            (void)free_block(txn, block);
            return status;
        }
        return old ? free_block(txn, old) : TY_OK;
    });
}

ty_status ty_shapes_load(ty_shapes *shapes, ty_heap *heap) {
    constexpr const char *operation = "load the shapes that a heap keeps";
    if (!shapes || !heap)
        return refuse_null(operation);
    const char *text = static_cast<const char *>(ty_root(heap, TY_SHAPES_ROOT));
    if (!text)
        return fail(TY_E_NOT_FOUND, operation, "the heap keeps none; ty_shapes_keep puts them there");
    ty_block block;
    if (ty_block_of(text, &block) != TY_OK)
        return fail(TY_E_FORMAT, operation, "the root taiyen.shapes leads to no live block");
    size_t room = static_cast<size_t>(static_cast<const char *>(block.address) + block.size_bytes - text);
    return at_boundary(operation, [&] { return read_text(shapes->set, {text, strnlen(text, room)}); });
}
