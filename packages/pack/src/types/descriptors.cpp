// The public functions on sets of type descriptors.
#include "boundary.hpp"
#include "descriptor_set.hpp"
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
    return txn ? ty_txn_root_set(txn, TY_TYPES_ROOT, block) : ty_root_set(heap, TY_TYPES_ROOT, block);
}

ty_status free_block(ty_txn *txn, void *block) {
    return txn ? ty_txn_free(txn, block) : ty_free(block);
}

// Allocates a block with the text, and zeros up to its end.
void *text_block(ty_heap *heap, ty_txn *txn, const std::string &text) {
    void *block = txn ? ty_txn_alloc(txn, text.size() + 1) : ty_alloc_zeroed(heap, text.size() + 1);
    if (block)
        memcpy(block, text.data(), text.size());
    return block;
}

} // namespace

ty_status ty_types_create(ty_types **descriptors) {
    constexpr const char *operation = "create a set of type descriptors";
    if (!descriptors)
        return refuse_null(operation);
    return at_boundary(operation, [&] {
        *descriptors = new ty_types;
        return TY_OK;
    });
}

void ty_types_destroy(ty_types *descriptors) {
    delete descriptors;
}

ty_status ty_types_add(ty_types *descriptors, const ty_type *descriptor) {
    constexpr const char *operation = "add a type descriptor";
    if (!descriptors || !descriptor)
        return refuse_null(operation);
    return at_boundary(operation, [&] { return descriptors->set.add(descriptor); });
}

ty_status ty_types_root(ty_types *descriptors, const char *root, const ty_type *descriptor, const ty_count *count) {
    constexpr const char *operation = "give a root a type descriptor";
    if (!descriptors)
        return refuse_null(operation);
    return at_boundary(operation, [&] { return descriptors->set.add_root(root, descriptor, count); });
}

const ty_type *ty_types_find(const ty_types *descriptors, const char *name) {
    return descriptors && name ? descriptors->set.find(name) : nullptr;
}

ty_status ty_types_find_root(const ty_types *descriptors, const char *root, const ty_type **descriptor,
                             ty_count *count) {
    constexpr const char *operation = "find the type descriptor of a root";
    if (!descriptors || !root || !descriptor)
        return refuse_null(operation);
    const set_root *found = descriptors->set.find_root(root);
    if (found == nullptr)
        return fail(TY_E_NOT_FOUND, operation, "the set says nothing of this root");
    *descriptor = found->descriptor;
    if (count != nullptr)
        *count = found->count;
    return TY_OK;
}

ty_status ty_types_bind(ty_types *descriptors, const char *name, ty_trace_callback *trace, ty_move_callback *moved,
                        void *context) {
    constexpr const char *operation = "bind hooks to a type descriptor";
    if (!descriptors || !name)
        return refuse_null(operation);
    return at_boundary(operation, [&] { return descriptors->set.bind(name, trace, moved, context); });
}

ty_status ty_types_read(ty_types *descriptors, const char *text, size_t bytes) {
    constexpr const char *operation = "read type descriptors";
    if (!descriptors || (!text && bytes != 0))
        return refuse_null(operation);
    return at_boundary(operation, [&] { return read_text(descriptors->set, {text, bytes}); });
}

ty_status ty_types_write(const ty_types *descriptors, ty_text_callback *callback, void *context) {
    constexpr const char *operation = "write type descriptors";
    if (!descriptors || !callback)
        return refuse_null(operation);
    return at_boundary(operation, [&] {
        constexpr size_t piece_bytes = 64 << 10;
        std::string text = write_text(descriptors->set);
        for (size_t at = 0; at < text.size(); at += piece_bytes)
            if (!callback(text.data() + at, std::min(piece_bytes, text.size() - at), context))
                break;
        return TY_OK;
    });
}

ty_status ty_types_keep(const ty_types *descriptors, ty_heap *heap) {
    constexpr const char *operation = "keep type descriptors in a heap";
    if (!descriptors || !heap)
        return refuse_null(operation);
    return at_boundary(operation, [&]() -> ty_status {
        std::string text = write_text(descriptors->set);
        if (text.size() > text_bytes_max)
            return fail(TY_E_ARGUMENT, operation, "the text is longer than 16 MiB; split the set");
        ty_txn *txn = ty_current_txn(heap);
        void *old = ty_root(heap, TY_TYPES_ROOT);
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

ty_status ty_types_load(ty_types *descriptors, ty_heap *heap) {
    constexpr const char *operation = "load the type descriptors that a heap keeps";
    if (!descriptors || !heap)
        return refuse_null(operation);
    const char *text = static_cast<const char *>(ty_root(heap, TY_TYPES_ROOT));
    if (!text)
        return fail(TY_E_NOT_FOUND, operation, "the heap keeps none; ty_types_keep puts them there");
    ty_block block;
    if (ty_block_of(text, &block) != TY_OK)
        return fail(TY_E_FORMAT, operation, "the root taiyen.types leads to no live block");
    size_t room = static_cast<size_t>(static_cast<const char *>(block.address) + block.size_bytes - text);
    return at_boundary(operation, [&] { return read_text(descriptors->set, {text, strnlen(text, room)}); });
}
