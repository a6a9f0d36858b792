// Fixes the addresses of a heap that moved.
#include "pack.hpp"
#include "types/descriptors.hpp"

#include <taiyen/value_types.hpp>

namespace taiyen::pack {
namespace {

struct descriptors_owner {
    ty_types *descriptors = nullptr;
    ~descriptors_owner() { ty_types_destroy(descriptors); }
};

// The type descriptors that are given, or those that the heap keeps; *found NULL: it has none.
ty_status find_descriptors(ty_heap *heap, const ty_types *given, descriptors_owner *kept, const ty_types **found) {
    *found = given;
    if (given != nullptr || ty_root(heap, TY_TYPES_ROOT) == nullptr)
        return TY_OK;
    if (ty_status status = ty_types_create(&kept->descriptors))
        return status;
    *found = kept->descriptors;
    const ty_status loaded = ty_types_load(kept->descriptors, heap);
    return loaded ? loaded : bind_values(kept->descriptors);
}

ty_status refuse_move() {
    return ty_error_set(TY_E_UNSUPPORTED, 0, "move the blocks of a heap: its addresses would be wrong", nullptr,
                        UINT64_MAX,
                        "give type descriptors or a fix callback, take the moves and fix them, or force it");
}

} // namespace

// PK7: no heap is left with wrong addresses.
ty_status fix_by_descriptors(ty_heap *heap, const ty_moves &moves, const ty_types *descriptors, bool others, bool force,
                             uint64_t *fixed) {
    descriptors_owner kept;
    if (ty_status status = find_descriptors(heap, descriptors, &kept, &descriptors))
        return status;
    if (descriptors == nullptr)
        return others || force ? TY_OK : refuse_move();
    ty_fixes fixes{};
    fixes.struct_size = sizeof fixes;
    if (ty_status status = fix_moved_heap(heap, moves, descriptors, force, &fixes))
        return status;
    *fixed = fixes.pointers;
    return TY_OK;
}

ty_status check_descriptors(ty_heap *heap, const ty_types *descriptors) {
    descriptors_owner kept;
    if (ty_status status = find_descriptors(heap, descriptors, &kept, &descriptors))
        return status;
    return descriptors != nullptr ? ty_audit_pointers(heap, descriptors, nullptr, nullptr, nullptr) : refuse_move();
}

} // namespace taiyen::pack
