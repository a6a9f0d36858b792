// ty_audit_pointers: a walk that moves nothing, and its report.
#include "audit.hpp"

#include "boundary.hpp"
#include "clock.hpp"
#include "packages/common/common.hpp"

using taiyen::common::check_output, taiyen::common::copy_output;
using namespace taiyen::pack;

namespace {

void report(const std::vector<mismatch> &found, ty_audit_callback *callback, void *context) {
    for (const mismatch &one : found) {
        ty_audit_mismatch reported{};
        reported.struct_size = sizeof reported;
        reported.kind = one.kind;
        reported.open = one.open;
        reported.descriptor = one.descriptor.empty() ? nullptr : one.descriptor.c_str();
        reported.field = one.field.empty() ? nullptr : one.field.c_str();
        reported.offset = one.offset;
        reported.count = one.count;
        reported.of = one.of;
        reported.bytes = one.bytes;
        reported.example = one.example;
        reported.value = one.value;
        reported.text = one.text.c_str();
        if (!callback(&reported, context))
            return;
    }
}

void count(const walker &walk, const std::vector<mismatch> &found, ty_audit &audit) {
    audit.blocks = walk.index().size() - walk.internal_blocks();
    for (size_t n = 0; n < walk.types().size(); ++n)
        audit.reached_blocks += walk.types()[n] != 0 && !walk.is_internal(n);
    audit.objects = walk.objects;
    audit.pointers = walk.pointers;
    audit.mismatches = found.size();
    for (const mismatch &one : found)
        audit.open_mismatches += one.open;
}

} // namespace

ty_status ty_audit_pointers(ty_heap *heap, const ty_types *descriptors, ty_audit_callback *callback, void *context,
                            ty_audit *audit) {
    constexpr const char *operation = "take a pointer audit of a heap";
    ty_audit known{};
    if (ty_status status = check_output(audit, operation))
        return status;
    return at_boundary(operation, [&]() -> ty_status {
        uint64_t begin = now_ns();
        if (ty_status status = check_walk(heap, descriptors, operation))
            return status;
        walker walk(heap, descriptors->set, nullptr, nullptr);
        if (ty_status status = walk.run())
            return status;
        std::vector<mismatch> found = mismatches(walk).collect();
        count(walk, found, known);
        if (callback)
            report(found, callback, context);
        known.duration_ns = now_ns() - begin;
        copy_output(known, audit);
        if (known.open_mismatches == 0)
            return TY_OK;
        return fail(TY_E_MISMATCH,
                    "take a pointer audit: " + std::to_string(known.open_mismatches) + " open mismatches",
                    found.front().text);
    });
}
