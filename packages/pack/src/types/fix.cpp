// ty_fix_pointers: a walk that gives addresses their new values.
#include "audit.hpp"
#include "boundary.hpp"
#include "clock.hpp"
#include "descriptors.hpp"
#include "packages/common/common.hpp"

namespace taiyen::pack {

using common::check_output, common::copy_output;

namespace {

constexpr const char *operation = "fix the pointers of a heap";

// Also covers the words that no field names, which gives remains their new values.
ty_status check_mismatches(const walker &walk, bool force) {
    std::vector<mismatch> found = mismatches(walk).collect();
    if (force || found.empty() || !found.front().open)
        return TY_OK;
    return fail(TY_E_MISMATCH, "fix the pointers of a heap: type descriptors and content differ", found.front().text);
}

ty_status fix(ty_heap *heap, const ty_moves *before, const ty_types *descriptors, ty_moved_callback *moved,
              void *context, ty_fixes *fixes, bool force) {
    if (!moved)
        return fail(TY_E_ARGUMENT, operation, "give the callback that knows where addresses moved");
    ty_fixes known{};
    if (ty_status status = check_output(fixes, operation))
        return status;
    return at_boundary(operation, [&]() -> ty_status {
        uint64_t begin = now_ns();
        walker walk(heap, descriptors->set, moved, context, before);
        if (ty_status status = walk.run())
            return status;
        if (ty_status status = check_mismatches(walk, force))
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

// Runs before anything is changed.
ty_status check_hooks(const descriptor_set &set) {
    for (const ty_type *descriptor : set.descriptors())
        if (missing_hook(set, descriptor))
            return fail(TY_E_UNSUPPORTED, operation + (": the type " + std::string(descriptor->name).substr(0, 60)),
                        "it needs a hook of the program that knows the type: ty_types_bind");
    return TY_OK;
}

void *moved_by(const void *old_address, void *moves) {
    return static_cast<const ty_moves *>(moves)->moved(old_address);
}

} // namespace

ty_status fix_moved_heap(ty_heap *heap, const ty_moves &moves, const ty_types *descriptors, bool force,
                         ty_fixes *fixes) {
    return fix(heap, &moves, descriptors, moved_by, const_cast<ty_moves *>(&moves), fixes, force);
}

} // namespace taiyen::pack

using namespace taiyen::pack;

ty_status ty_fix_pointers(ty_heap *heap, const ty_types *descriptors, ty_moved_callback *moved, void *context,
                          ty_fixes *fixes) {
    if (ty_status status = check_walk(heap, descriptors, operation))
        return status;
    if (ty_status status = at_boundary(operation, [&] { return check_hooks(descriptors->set); }))
        return status;
    return fix(heap, nullptr, descriptors, moved, context, fixes, true);
}
