// The functions of persist.h, and those of txn.h and log.h that are about files.
#include "arguments.hpp"
#include "callbacks.hpp"
#include "ending.hpp"
#include "metrics.hpp"
#include "src/code/code.hpp"
#include "src/txn/txn.hpp"
#include <taiyen/taiyen.h>

using namespace taiyen;

namespace {

constexpr size_t log_bytes_max = size_t{1} << 40;

// Refuses heaps that the call is not for.
ty_status check_in_files(ty_heap *heap, const char *call) {
    if (ty_status status = check_heap(heap, call))
        return status;
    if (image_kind(heap) == TY_VOLATILE)
        return failure(TY_E_ARGUMENT, "%s: it is a volatile heap and has no files", call)
            .remedy("use ty_open for a heap that lives in files; ty_heap_destroy ends a volatile one");
    return TY_OK;
}

const char *name_of(ty_kind kind) {
    return kind == TY_VOLATILE ? "a volatile" : "an archive";
}

// Two callbacks with one context.
struct scrub_guards {
    guarded<ty_progress_callback> progress;
    guarded<ty_problem_callback> problem;

    static bool progressed(uint64_t done_bytes, uint64_t total_bytes, void *self) {
        auto &guards = *static_cast<scrub_guards *>(self);
        return !guards.problem.any() && guards.progress.callback()(done_bytes, total_bytes, &guards.progress);
    }
    static void found(const char *text, void *self) {
        auto &guards = *static_cast<scrub_guards *>(self);
        if (!guards.progress.any())
            guards.problem.callback()(text, &guards.problem);
    }
};

ty_status check_snapshot_heap(ty_heap *heap, const char *call) {
    if (ty_status status = check_heap(heap, call))
        return status;
    const ty_kind kind = image_kind(heap);
    if (kind != TY_SNAPSHOT && kind != TY_TRANSACTIONAL)
        return failure(TY_E_UNSUPPORTED, "%s: it is %s heap", call, name_of(kind))
            .remedy("only snapshot heaps can do this; open the heap with kind TY_SNAPSHOT");
    return TY_OK;
}

ty_status check_choice(int value, int last, const char *call, const char *field) {
    if (value < 0 || value > last)
        return failure(TY_E_ARGUMENT, "%s: the option %s is %d", call, field, value)
            .remedy("use one of the constants of persist.h");
    return TY_OK;
}

ty_status check_log_options(const ty_open_options &options, const char *call) {
    if (options.log_path)
        if (ty_status status = check_path(options.log_path, call, "the option log_path"))
            return status;
    if (options.log_bytes && (options.log_bytes < TY_LOG_BYTES_MIN || options.log_bytes > log_bytes_max))
        return failure(TY_E_ARGUMENT, "%s: log_bytes is %zu", call, options.log_bytes)
            .remedy("give %u bytes or more, or 0 for the default", TY_LOG_BYTES_MIN);
    if (options.log_streams > TY_LOG_STREAMS_MAX)
        return failure(TY_E_ARGUMENT, "%s: log_streams is %u", call, options.log_streams)
            .remedy("give %u at the most, or 0 for as many as the log has", TY_LOG_STREAMS_MAX);
    const ty_log_sink *sink = options.log;
    if (sink && (sink->struct_size < sizeof *sink || sink->struct_size > struct_size_max || !sink->read ||
                 !sink->write || sink->size_bytes < TY_LOG_BYTES_MIN))
        return failure(TY_E_ARGUMENT, "%s: the option log is not a sink", call)
            .remedy("set struct_size, the functions read and write, and a size of %u bytes or more", TY_LOG_BYTES_MIN);
    const uint64_t bytes = sink ? sink->size_bytes : options.log_bytes;
    const uint64_t least = log_bytes_min(sink ? sink->block_bytes : TY_STORAGE_BLOCK, options.log_streams);
    if (options.log_streams > 1 && bytes && bytes < least)
        return failure(TY_E_ARGUMENT, "%s: a log of %u log streams in %llu bytes", call, options.log_streams,
                       (unsigned long long)bytes)
            .remedy("give %llu bytes or more", (unsigned long long)least);
    return TY_OK;
}

ty_status check_open_options(const ty_open_options &options, const char *call) {
    if (ty_status status = check_choice(number_of(options.mode), TY_OPEN_FOLLOW, call, "mode"))
        return status;
    if (ty_status status = check_choice(number_of(options.kind), TY_TRANSACTIONAL, call, "kind"))
        return status;
    if (ty_status status = check_choice(number_of(options.tracking), TY_TRACK_CONTENT, call, "tracking"))
        return status;
    if (ty_status status = check_choice(number_of(options.background), TY_BACKGROUND_CALLS, call, "background"))
        return status;
    if (ty_status status = check_choice(number_of(options.code), TY_CODE_IGNORED, call, "code"))
        return status;
    if (options.kind == TY_VOLATILE)
        return failure(TY_E_ARGUMENT, "%s as a volatile heap", call).remedy("use ty_heap_create for one");
    if (ty_status status = check_new_heap(options.limit_bytes, options.base, number_of(options.classes), call))
        return status;
    if (options.journal_path)
        if (ty_status status = check_path(options.journal_path, call, "the option journal_path"))
            return status;
    if (options.mark != nullptr) {
        if (ty_status status = check_mark_name(options.mark, call))
            return status;
        if (!opens_for_reading(options.mode))
            return failure(TY_E_ARGUMENT, "%s at a mark, for writing", call)
                .remedy("open it read-only, or use ty_return_to; ty_branch makes a heap of its own");
    }
    if (options.concurrent && options.check_stores)
        return failure(TY_E_UNSUPPORTED, "%s with the options concurrent and check_stores", call)
            .remedy("give one of them: stores of ty_atomically's transactions are all known");
    if (options.shared)
        if (ty_status status = sharing_check(options))
            return status;
    return check_log_options(options, call);
}

// The storage that a call uses: the caller's, checked, or the built-in one.
ty_status choose_storage(const ty_storage *given, const char *call, const ty_storage **storage) {
    *storage = given ? given : ty_storage_default();
    return given ? check_storage(given, call) : TY_OK;
}

} // namespace

ty_status taiyen::take_open_options(const ty_open_options *options, const char *call, ty_open_options *known) {
    if (options)
        if (ty_status status =
                copy_options(options, known, sizeof *known, call, "ty_open_options", "TY_OPEN_OPTIONS_INIT"))
            return status;
    if (ty_status status = check_open_options(*known, call))
        return status;
    return choose_storage(known->storage, call, &known->storage);
}

ty_status ty_open(const char *path, const ty_open_options *options, ty_heap **heap, ty_report *report) {
    constexpr const char *call = "open a heap";
    const kept_detail detail;
    ty_open_options known = TY_OPEN_OPTIONS_INIT;
    if (ty_status status = check_path(path, call, "the path"))
        return status;
    if (ty_status status = check_pointer(heap, call, "the place for the heap"))
        return status;
    if (ty_status status = take_open_options(options, call, &known))
        return status;
    if (known.concurrent && known.kind != TY_TRANSACTIONAL && !opens_for_reading(known.mode))
        return failure(TY_E_ARGUMENT, "%s with the option concurrent, and not as a transactional one", call)
            .remedy("give the option kind TY_TRANSACTIONAL, too");
    ty_open_options as_seen = known;
    if (known.shared) // code in it is nobody's
        as_seen.mode = TY_OPEN_FOLLOW;
    code_session code(as_seen);
    const open_validator validator = code.validator();
    if (ty_status status = txn_open(path, known, heap, report, &validator))
        return status;
    if (ty_status status = code.finish(heap, report))
        return status;
    if (!image_is_read_only(*heap))
        metrics_start(*heap, known);
    return detail.after(TY_OK);
}

ty_status ty_rebuild(ty_heap **heap, const ty_open_options *options, ty_report *report) {
    constexpr const char *call = "rebuild a heap";
    ty_open_options known = TY_OPEN_OPTIONS_INIT;
    if (ty_status status = check_pointer(heap, call, "the place of the heap"))
        return status;
    if (ty_status status = check_in_files(*heap, call))
        return status;
    if (ty_status status = take_open_options(options, call, &known))
        return status;
    code_session code(known);
    const open_validator validator = code.validator();
    const metrics_stopped metrics_page = metrics_stop(*heap);
    if (ty_status status = txn_rebuild(heap, known, report, &validator)) {
        if (*heap)
            metrics_start_again(metrics_page);
        return status;
    }
    if (ty_status status = code.finish(heap, report))
        return status;
    metrics_start(*heap, known);
    return TY_OK;
}

ty_status ty_close(ty_heap *heap) {
    if (!heap)
        return TY_OK;
    if (ty_status status = check_in_files(heap, "close a heap"))
        return status;
    heap_service *service = heap_service_of(heap);
    if (ty_status status = prepare_end(service, false))
        return status;
    const metrics_stopped metrics_page = metrics_stop(heap);
    ty_status status = end_heap(heap, image_path(heap), [heap] { return txn_close(heap); });
    if (status)
        metrics_start_again(metrics_page);
    else
        release(service);
    return status;
}

ty_status ty_discard(ty_heap *heap) {
    if (!heap)
        return TY_OK;
    if (ty_status status = check_in_files(heap, "discard a heap"))
        return status;
    heap_service *service = heap_service_of(heap);
    if (ty_status status = prepare_end(service, true))
        return status;
    const metrics_stopped metrics_page = metrics_stop(heap);
    ty_status status = end_heap(heap, image_path(heap), [heap] { return txn_discard(heap); });
    if (status && heap_is_open(heap))
        metrics_start_again(metrics_page);
    release(service);
    return status;
}

ty_status ty_snapshot(ty_heap *heap) {
    if (ty_status status = check_in_files(heap, "take a snapshot"))
        return status;
    uint64_t epoch = 0;
    if (ty_status status = txn_snapshot_start(heap, &epoch))
        return status;
    if (ty_status status = txn_snapshot_wait(heap, epoch))
        return status;
    txn_evict_copies(heap);
    return TY_OK;
}

ty_status ty_snapshot_start(ty_heap *heap, uint64_t *epoch) {
    constexpr const char *call = "start a snapshot";
    if (ty_status status = check_in_files(heap, call))
        return status;
    if (ty_status status = check_pointer(epoch, call, "the place for the epoch"))
        return status;
    return txn_snapshot_start(heap, epoch);
}

ty_status ty_snapshot_wait(ty_heap *heap, uint64_t epoch) {
    if (ty_status status = check_in_files(heap, "wait for a snapshot"))
        return status;
    return txn_snapshot_wait(heap, epoch);
}

ty_status ty_write_back_early(ty_heap *heap, size_t limit_pages) {
    if (ty_status status = check_snapshot_heap(heap, "write dirty pages early"))
        return status;
    return image_write_back_early(heap, limit_pages);
}

ty_status ty_run_background_work(ty_heap *heap) {
    if (ty_status status = check_in_files(heap, "checkpoint a heap's batches"))
        return status;
    return txn_work(heap);
}

ty_status ty_refresh(ty_heap *heap, uint32_t wait_ms, bool *changed) {
    bool unused = false;
    if (ty_status status = check_in_files(heap, "refresh a heap"))
        return status;
    return txn_refresh(heap, uint64_t{wait_ms} * 1'000'000, changed ? changed : &unused);
}

bool ty_shows_newest(ty_heap *heap) {
    return txn_shows_newest(heap);
}

ty_status ty_background_work_status(ty_heap *heap) {
    if (ty_status status = check_in_files(heap, "report how a heap's background work went"))
        return status;
    return txn_work_status(heap);
}

ty_status ty_dirty_count(ty_heap *heap, uint64_t *pages) {
    constexpr const char *call = "count dirty pages";
    if (ty_status status = check_snapshot_heap(heap, call))
        return status;
    if (ty_status status = check_pointer(pages, call, "the place for the count"))
        return status;
    return image_dirty_count(heap, pages);
}

ty_status ty_dirty_bitmap(ty_heap *heap, uint64_t first, uint64_t count, uint64_t *bitmap) {
    constexpr const char *call = "copy the dirty bitmap";
    if (ty_status status = check_snapshot_heap(heap, call))
        return status;
    if (ty_status status = check_pointer(bitmap, call, "the bitmap"))
        return status;
    const uint64_t pages = heap_limit(heap) / os::page_bytes;
    if (first > pages || count > pages - first)
        return failure(TY_E_ARGUMENT, "%s: %llu page%s from page %llu on: not in the heap", call,
                       static_cast<unsigned long long>(count), plural(count), static_cast<unsigned long long>(first))
            .remedy("the heap has %llu pages", static_cast<unsigned long long>(pages));
    return image_dirty_bitmap(heap, first, count, bitmap);
}

ty_status ty_mark_written(ty_heap *heap, const void *address, size_t bytes) {
    constexpr const char *call = "mark bytes as written";
    if (ty_status status = check_in_files(heap, call))
        return status;
    if (!bytes)
        return TY_OK;
    if (ty_status status = check_pointer(address, call, "the address"))
        return status;
    return txn_mark_written(heap, address, bytes);
}

ty_status ty_read_info(const char *path, const ty_open_options *options, ty_info *info) {
    constexpr const char *call = "read what a heap's files say";
    ty_open_options used = TY_OPEN_OPTIONS_INIT;
    if (ty_status status = check_path(path, call, "the path"))
        return status;
    if (ty_status status = take_open_options(options, call, &used))
        return status;
    if (ty_status status = check_output(info, call, "ty_info"))
        return status;
    ty_info known{};
    known.struct_size = sizeof known;
    if (ty_status status = txn_read_info(path, used, &known))
        return status;
    copy_output(&known, sizeof known, info);
    return TY_OK;
}

ty_kind ty_heap_kind(ty_heap *heap) {
    return check_heap(heap, "get the kind of a heap") ? TY_KIND_DEFAULT : image_kind(heap);
}

uint64_t ty_heap_epoch(ty_heap *heap) {
    if (check_heap(heap, "get the epoch of a heap"))
        return 0;
    return image_kind(heap) == TY_VOLATILE ? 0 : image_epoch(heap);
}

ty_status ty_get_snapshot_stats(ty_heap *heap, ty_snapshot_stats *stats) {
    constexpr const char *call = "get snapshot statistics";
    if (ty_status status = check_in_files(heap, call))
        return status;
    if (ty_status status = check_output(stats, call, "ty_snapshot_stats"))
        return status;
    ty_snapshot_stats known{};
    known.struct_size = sizeof known;
    if (ty_status status = image_get_snapshot_stats(heap, &known))
        return status;
    copy_output(&known, sizeof known, stats);
    return TY_OK;
}

ty_status ty_scrub(const char *path, const ty_open_options *options, ty_progress_callback *progress,
                   ty_problem_callback *problem, void *context) {
    constexpr const char *call = "scrub a heap's files";
    ty_open_options used = TY_OPEN_OPTIONS_INIT;
    if (ty_status status = check_path(path, call, "the path"))
        return status;
    if (ty_status status = take_open_options(options, call, &used))
        return status;
    scrub_guards guards{{progress, context}, {problem, context}};
    ty_status status =
        txn_scrub(path, used, progress ? guards.progressed : nullptr, problem ? guards.found : nullptr, &guards);
    return guards.progress.end(guards.problem.end(status));
}

ty_status ty_log_read(const char *heap_path, const ty_open_options *options, ty_log_info *info,
                      ty_log_entry_callback *callback, void *context) {
    constexpr const char *call = "read a log";
    ty_open_options used = TY_OPEN_OPTIONS_INIT;
    if (ty_status status = take_open_options(options, call, &used))
        return status;
    if (heap_path || !(used.log_path || used.log))
        if (ty_status status = check_path(heap_path, call, "the path"))
            return status;
    if (info)
        if (ty_status status = check_output(info, call, "ty_log_info"))
            return status;
    ty_log_info known{};
    known.struct_size = sizeof known;
    guarded<ty_log_entry_callback> guard(callback, context);
    ty_status status = txn_log_read(heap_path, used, &known, guard.callback(), &guard);
    if (info && !status)
        copy_output(&known, sizeof known, info);
    return guard.end(status);
}
