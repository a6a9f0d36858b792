// ty_take_census: a walk that moves nothing, and what it tells.
#include "census.hpp"

#include "../../own/own.hpp"
#include "boundary.hpp"
#include "clock.hpp"

using taiyen::own::check_output, taiyen::own::copy_output;
using namespace taiyen::pack;

namespace {

void tell(const std::vector<finding> &found, ty_census_callback *callback, void *context) {
    for (const finding &one : found) {
        ty_census_finding told{};
        told.struct_size = sizeof told;
        told.kind = one.kind;
        told.open = one.open;
        told.shape = one.shape.empty() ? nullptr : one.shape.c_str();
        told.field = one.field.empty() ? nullptr : one.field.c_str();
        told.offset = one.offset;
        told.count = one.count;
        told.of = one.of;
        told.bytes = one.bytes;
        told.example = one.example;
        told.value = one.value;
        told.text = one.text.c_str();
        if (!callback(&told, context))
            return;
    }
}

void count(const walker &walk, const std::vector<finding> &found, ty_census &census) {
    census.blocks = walk.index().size() - walk.own_blocks();
    for (size_t n = 0; n < walk.types().size(); ++n)
        census.reached_blocks += walk.types()[n] != 0 && !walk.is_own(n);
    census.objects = walk.objects;
    census.pointers = walk.pointers;
    census.findings = found.size();
    for (const finding &one : found)
        census.open_findings += one.open;
}

} // namespace

ty_status ty_take_census(ty_heap *heap, const ty_shapes *shapes, ty_census_callback *callback, void *context,
                         ty_census *census) {
    constexpr const char *operation = "take a census of a heap";
    ty_census known{};
    if (ty_status status = check_output(census, operation))
        return status;
    return at_boundary(operation, [&]() -> ty_status {
        uint64_t begin = now_ns();
        if (ty_status status = check_walk(heap, shapes, operation))
            return status;
        walker walk(heap, shapes->set, nullptr, nullptr);
        if (ty_status status = walk.run())
            return status;
        std::vector<finding> found = findings(walk).collect();
        count(walk, found, known);
        if (callback)
            tell(found, callback, context);
        known.duration_ns = now_ns() - begin;
        copy_output(known, census);
        if (known.open_findings == 0)
            return TY_OK;
        return fail(TY_E_MISMATCH, "take a census: " + std::to_string(known.open_findings) + " open findings",
                    found.front().text);
    });
}
