// Who gives a heap that moved its right addresses.
#include "pack.hpp"
#include "shapes/shapes.hpp"

#include <taiyen/value_shapes.hpp>

namespace taiyen::pack {
namespace {

struct shapes_owner {
    ty_shapes *shapes = nullptr;
    ~shapes_owner() { ty_shapes_destroy(shapes); }
};

// The shapes that are given, or those that the heap keeps; *found NULL: there are none.
ty_status find_shapes(ty_heap *heap, const ty_shapes *given, shapes_owner *kept, const ty_shapes **found) {
    *found = given;
    if (given != nullptr || ty_root(heap, TY_SHAPES_ROOT) == nullptr)
        return TY_OK;
    if (ty_status status = ty_shapes_create(&kept->shapes))
        return status;
    *found = kept->shapes;
    const ty_status loaded = ty_shapes_load(kept->shapes, heap);
    return loaded ? loaded : bind_values(kept->shapes);
}

ty_status refuse_move() {
    return ty_error_set(TY_E_UNSUPPORTED, 0, "move the blocks of a heap: its addresses would be wrong", nullptr,
                        UINT64_MAX, "give shapes or a fix callback, take the moves and fix them, or force it");
}

} // namespace

// PK7.
ty_status fix_by_shapes(ty_heap *heap, const ty_moves &moves, const ty_shapes *shapes, bool others, bool force,
                        uint64_t *fixed) {
    shapes_owner kept;
    if (ty_status status = find_shapes(heap, shapes, &kept, &shapes))
        return status;
    if (shapes == nullptr)
        return others || force ? TY_OK : refuse_move();
    ty_fixes fixes{};
    fixes.struct_size = sizeof fixes;
    if (ty_status status = fix_moved_heap(heap, moves, shapes, force, &fixes))
        return status;
    *fixed = fixes.pointers;
    return TY_OK;
}

ty_status check_shapes(ty_heap *heap, const ty_shapes *shapes) {
    shapes_owner kept;
    if (ty_status status = find_shapes(heap, shapes, &kept, &shapes))
        return status;
    return shapes != nullptr ? ty_take_census(heap, shapes, nullptr, nullptr, nullptr) : refuse_move();
}

} // namespace taiyen::pack
