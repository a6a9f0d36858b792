// The functions of ship.h.
#include "folder.hpp"
#include "packages/common/common.hpp"
#include "restoring.hpp"
#include "shipper.hpp"

#include <new>
#include <stdexcept>

using namespace taiyen::common;
using namespace taiyen::ship;

namespace {

ty_status check_destination(const ty_destination *destination, const char *call) {
    if (destination && destination->struct_size >= sizeof(ty_destination) && destination->put_begin &&
        destination->put_bytes && destination->put_end && destination->get && destination->list && destination->remove)
        return TY_OK;
    return refuse_call(call, "give a destination with all its functions (ty_folder_open makes one)");
}

ty_status check_path(const char *path, const char *call) {
    return path && path[0] ? TY_OK : refuse_call(call, "give a path");
}

} // namespace

ty_status ty_folder_open(const char *path, bool writes, ty_destination **destination) {
    constexpr const char *call = "open a folder to ship to";
    if (ty_status status = check_path(path, call))
        return status;
    if (!destination)
        return refuse_call(call, "pass a place for the destination");
    *destination = nullptr;
    return at_boundary(call, [&] { return folder_open(path, writes, destination); });
}

void ty_folder_close(ty_destination *destination) {
    if (destination)
        folder_close(destination);
}

ty_status ty_ship_open(const char *heap_path, const ty_destination *destination, const ty_ship_options *options,
                       ty_shipper **shipper) {
    constexpr const char *call = "ship a heap";
    ty_ship_options known = TY_SHIP_OPTIONS_INIT;
    if (ty_status status = check_path(heap_path, call))
        return status;
    if (ty_status status = check_destination(destination, call))
        return status;
    if (!shipper)
        return refuse_call(call, "pass a place for the shipper");
    if (ty_status status = copy_options(options, &known, call))
        return status;
    *shipper = nullptr;
    return at_boundary(call, [&] {
        auto made = std::make_unique<ty_shipper>(heap_path, *destination, known);
        if (ty_status status = made->open())
            return status;
        *shipper = made.release();
        return TY_OK;
    });
}

void ty_ship_close(ty_shipper *shipper) {
    delete shipper;
}

ty_status ty_ship_step(ty_shipper *shipper, uint32_t timeout_ms, bool *more, ty_ship_report *report) {
    constexpr const char *call = "ship a heap";
    if (!shipper)
        return refuse_call(call, "give a shipper");
    if (ty_status status = check_output(report, call))
        return status;
    return at_boundary(call, [&] {
        bool there = false;
        const ty_status status = shipper->step(timeout_ms, &there);
        ty_ship_report filled{};
        shipper->fill_report(&filled);
        copy_output(filled, report);
        if (more)
            *more = there;
        return status;
    });
}

ty_status ty_ship_all(ty_shipper *shipper, ty_ship_report *report) {
    constexpr const char *call = "ship a heap";
    if (!shipper)
        return refuse_call(call, "give a shipper");
    if (ty_status status = check_output(report, call))
        return status;
    return at_boundary(call, [&] {
        const ty_status status = shipper->all();
        ty_ship_report filled{};
        shipper->fill_report(&filled);
        copy_output(filled, report);
        return status;
    });
}

ty_status ty_ship_list(const ty_destination *destination, ty_ship_object_callback *callback, void *context) {
    constexpr const char *call = "list what was shipped";
    if (ty_status status = check_destination(destination, call))
        return status;
    if (!callback)
        return refuse_call(call, "pass a function");
    return at_boundary(call, [&] {
        catalog all;
        if (ty_status status = all.read(*destination, reading::whole, nullptr, nullptr))
            return status;
        const auto damage = [&] {
            return all.bad.empty() ? TY_OK
                                   : fail(TY_E_DAMAGED, "list all that was shipped: " + all.bad.front().problem, "",
                                          "verify what was shipped (ty_ship_verify)");
        };
        const auto each = [&](const object &one, bool follows) {
            const object_header &h = one.header;
            const bool base = h.kind == uint32_t(object_kind::base);
            const ty_ship_object shown{one.name.c_str(), base,       h.level,   base ? h.from.lsn : h.from.lsn + 1,
                                       h.to.lsn,         h.first_ns, h.last_ns, h.timeline_hash,
                                       one.size_bytes,   follows};
            return callback(&shown, context);
        };
        size_t base = 0;
        for (size_t i = 0; i <= all.segments.size(); i++) {
            for (; base < all.bases.size() &&
                   (i == all.segments.size() || all.bases[base].header.from.lsn <= all.segments[i].header.from.lsn);
                 base++)
                if (!each(all.bases[base], false))
                    return TY_OK;
            if (i < all.segments.size() && !each(all.segments[i], all.follows(i)))
                return TY_OK;
        }
        return damage();
    });
}

ty_status ty_ship_verify(const ty_destination *destination, ty_progress_callback *progress,
                         ty_problem_callback *problem, void *context) {
    constexpr const char *call = "verify what was shipped";
    if (ty_status status = check_destination(destination, call))
        return status;
    return at_boundary(call, [&] { return verify_objects(*destination, progress, problem, context); });
}

ty_status ty_restore(const ty_destination *destination, const char *heap_path, const ty_restore_options *options,
                     ty_restore_report *report) {
    constexpr const char *call = "restore a heap";
    ty_restore_options known = TY_RESTORE_OPTIONS_INIT;
    if (ty_status status = check_destination(destination, call))
        return status;
    if (ty_status status = check_path(heap_path, call))
        return status;
    if (ty_status status = copy_options(options, &known, call))
        return status;
    if (ty_status status = check_output(report, call))
        return status;
    if (known.to_lsn && known.to_ns)
        return refuse_call(call, "give a transaction or a time, not both");
    if (known.open && known.open->storage && known.open->storage != ty_storage_default())
        return refuse_call(call, "leave the option storage out: a heap is restored to files");
    return at_boundary(call, [&] {
        ty_restore_report filled{};
        const ty_status status = restore_heap(*destination, heap_path, known, &filled);
        if (!status || filled.incomplete)
            copy_output(filled, report);
        return status;
    });
}
