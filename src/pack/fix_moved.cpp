// Who gives a heap that moved its right addresses.
#include "pack.hpp"

namespace taiyen::pack {
namespace {

struct shapes_owner {
    ty_shapes *shapes = nullptr;
    ~shapes_owner() { ty_shapes_destroy(shapes); }
};

void *moved_by(const void *old_address, void *moves) {
    return static_cast<const ty_moves *>(moves)->moved(old_address);
}

} // namespace

ty_status fix_by_shapes(ty_heap *, const ty_moves &, const ty_shapes *, bool others, bool force, uint64_t *) {
    static_cast<void>(moved_by);
    return others || force ? TY_OK
                           : ty_error_set(TY_E_UNSUPPORTED, 0, "unpack a heap elsewhere: its addresses would be wrong",
                                          nullptr, UINT64_MAX, "give shapes");
}
} // namespace taiyen::pack
ty_status ty_shapes_create(ty_shapes **) {
    return TY_E_UNSUPPORTED;
}
ty_status ty_shapes_read(ty_shapes *, const char *, size_t) {
    return TY_E_UNSUPPORTED;
}
void ty_shapes_destroy(ty_shapes *) {}
