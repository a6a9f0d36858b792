// ty_fix_pointers: a walk that gives addresses their new values.
#include "../../own/own.hpp"
#include "boundary.hpp"
#include "census.hpp"
#include "clock.hpp"
#include "shapes.hpp"

namespace taiyen::pack {

using own::check_output, own::copy_output;

namespace {

constexpr const char *operation = "fix the pointers of a heap";

// Goes over what no field covers, too, which gives remains their new values.
ty_status check_findings(const walker &walk, bool force) {
    std::vector<finding> found = findings(walk).collect();
    if (force || found.empty() || !found.front().open)
        return TY_OK;
    return fail(TY_E_MISMATCH, "fix the pointers of a heap: shapes and content differ", found.front().text);
}

ty_status fix(ty_heap *heap, const ty_moves *before, const ty_shapes *shapes, ty_moved_callback *moved, void *context,
              ty_fixes *fixes, bool force) {
    if (!moved)
        return fail(TY_E_ARGUMENT, operation, "give the callback that knows where addresses moved");
    ty_fixes known{};
    if (ty_status status = check_output(fixes, operation))
        return status;
    return at_boundary(operation, [&]() -> ty_status {
        uint64_t begin = now_ns();
        walker walk(heap, shapes->set, moved, context, before);
        if (ty_status status = walk.run())
            return status;
        if (ty_status status = check_findings(walk, force))
            return status;
        walk.call_moved_hooks();
        known.objects = walk.objects;
        known.pointers = walk.pointers - walk.dead_words();
        known.dead = walk.dead;
        known.duration_ns = now_ns() - begin;
        copy_output(known, fixes);
        return TY_OK;
    });
}

// Before anything is changed.
ty_status check_hooks(const shape_set &set) {
    for (const ty_shape *shape : set.shapes())
        if (missing_hook(set, shape))
            return fail(TY_E_UNSUPPORTED, operation + (": the shape " + std::string(shape->name).substr(0, 60)),
                        "it needs a hook of the program that knows the type: ty_shapes_bind");
    return TY_OK;
}

void *moved_by(const void *old_address, void *moves) {
    return static_cast<const ty_moves *>(moves)->moved(old_address);
}

} // namespace

ty_status fix_moved_heap(ty_heap *heap, const ty_moves &moves, const ty_shapes *shapes, bool force, ty_fixes *fixes) {
    return fix(heap, &moves, shapes, moved_by, const_cast<ty_moves *>(&moves), fixes, force);
}

} // namespace taiyen::pack

using namespace taiyen::pack;

ty_status ty_fix_pointers(ty_heap *heap, const ty_shapes *shapes, ty_moved_callback *moved, void *context,
                          ty_fixes *fixes) {
    if (ty_status status = check_walk(heap, shapes, operation))
        return status;
    if (ty_status status = at_boundary(operation, [&] { return check_hooks(shapes->set); }))
        return status;
    return fix(heap, nullptr, shapes, moved, context, fixes, true);
}
