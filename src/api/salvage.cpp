// The functions of salvage.h.
#include "arguments.hpp"
#include "callbacks.hpp"
#include "src/txn/txn.hpp"

#include <cstdlib>

using namespace taiyen;

namespace {

// Two callbacks with one context.
struct salvage_guards {
    guarded<ty_problem_callback> problem;
    guarded<ty_salvage_page_callback> page;

    static void report_problem(const char *text, void *self) {
        auto &guards = *static_cast<salvage_guards *>(self);
        if (!guards.page.any())
            guards.problem.callback()(text, &guards.problem);
    }
    static void report_page(uint64_t page, bool missing, void *self) {
        auto &guards = *static_cast<salvage_guards *>(self);
        if (!guards.problem.any())
            guards.page.callback()(page, missing, &guards.page);
    }
};

// The image's path, resolved, allocated by malloc, and the checked options.
ty_status take_arguments(const char *path, const ty_open_options *options, const char *call, ty_open_options *used,
                         char **resolved) {
    if (ty_status status = check_path(path, call, "the path"))
        return status;
    if (ty_status status = take_open_options(options, call, used))
        return status;
    return resolve_path(*used->storage, path, resolved);
}

} // namespace

ty_status ty_salvage(const char *path, const ty_open_options *options, const char *out_path,
                     ty_problem_callback *problem, ty_salvage_page_callback *page, void *context,
                     ty_salvage_report *report) {
    constexpr const char *call = "salvage a heap";
    ty_open_options used = TY_OPEN_OPTIONS_INIT;
    if (ty_status status = check_path(out_path, call, "the path of the new heap"))
        return status;
    if (report)
        if (ty_status status = check_output(report, call, "ty_salvage_report"))
            return status;
    char *resolved = nullptr;
    if (ty_status status = take_arguments(path, options, call, &used, &resolved))
        return status;
    salvage_guards guards{{problem, context}, {page, context}};
    const salvage_sinks sinks{problem ? salvage_guards::report_problem : nullptr,
                              page ? salvage_guards::report_page : nullptr, &guards};
    ty_salvage_report known{};
    known.struct_size = sizeof known;
    const ty_status status = image_salvage(resolved, used, out_path, sinks, &known);
    free(resolved);
    if (report && !status)
        copy_output(&known, sizeof known, report);
    return guards.problem.end(guards.page.end(status));
}

ty_status ty_salvage_redo(ty_heap *heap, const char *path, const ty_open_options *options,
                          const ty_salvage_report *salvaged, uint64_t until, ty_salvage_redone *report) {
    constexpr const char *call = "do the transactions of a damaged heap again";
    ty_open_options used = TY_OPEN_OPTIONS_INIT;
    if (ty_status status = check_heap(heap, call))
        return status;
    if (!salvaged || salvaged->struct_size < offsetof(ty_salvage_report, state) + sizeof salvaged->state)
        return failure(TY_E_ARGUMENT, "%s without the report of ty_salvage", call)
            .remedy("give its report, as it was set");
    if (report)
        if (ty_status status = check_output(report, call, "ty_salvage_redone"))
            return status;
    char *resolved = nullptr;
    if (ty_status status = take_arguments(path, options, call, &used, &resolved))
        return status;
    ty_salvage_redone known{};
    known.struct_size = sizeof known;
    const ty_status status = txn_salvage_redo(heap, resolved, used, salvaged->state, until, &known);
    free(resolved);
    if (report)
        copy_output(&known, sizeof known, report);
    return status;
}
