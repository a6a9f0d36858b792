// The functions of log.h that create sinks.
#include "src/store/log/log.hpp"
#include "arguments.hpp"
#include <taiyen/taiyen.h>

using namespace taiyen;

namespace {

constexpr uint32_t cache_line_bytes = 64;

ty_status check_log_size(uint64_t size_bytes, uint32_t block_bytes, const char *call) {
    if (size_bytes >= TY_LOG_BYTES_MIN && size_bytes % block_bytes == 0 && size_bytes <= INT64_MAX)
        return TY_OK;
    return failure(TY_E_ARGUMENT, "%s of %llu byte%s", call, (unsigned long long)size_bytes, plural(size_bytes))
        .remedy("give a multiple of %u bytes, at least %u", block_bytes, TY_LOG_BYTES_MIN);
}

ty_status check_sink(const ty_log_sink *sink, const char *call, const char *what) {
    if (ty_status status = check_pointer(sink, call, what))
        return status;
    const uint32_t block = sink->block_bytes;
    if (sink->struct_size < sizeof(ty_log_sink) || !sink->read || !sink->write)
        return failure(TY_E_ARGUMENT, "%s: %s is not filled in", call, what)
            .remedy("set struct_size to sizeof(ty_log_sink), and read and write");
    if (block < 64 || block > 65536 || (block & (block - 1)) != 0)
        return failure(TY_E_ARGUMENT, "%s: %s has blocks of %u byte%s", call, what, block, plural(block))
            .remedy("block_bytes is a power of two from 64 to 65536");
    return check_log_size(sink->size_bytes, block, call);
}

ty_status open_file_log(const char *path, uint64_t size_bytes, const ty_storage &storage, ty_log_sink **sink) {
    ty_status status = file_sink_open(path, true, storage, sink);
    if (status == TY_E_NOT_FOUND)
        return file_sink_create(path, size_bytes, storage, sink);
    if (status || (*sink)->size_bytes == size_bytes)
        return status;
    const uint64_t found = (*sink)->size_bytes;
    sink_destroy(*sink);
    *sink = nullptr;
    return failure(TY_E_MISMATCH, "open a log of %llu bytes: the file has %llu", (unsigned long long)size_bytes,
                   (unsigned long long)found)
        .at(path)
        .remedy("give the size it has, or another path");
}

} // namespace

ty_status ty_memory_log_create(void *memory, size_t size_bytes, const ty_memory_log_options *options,
                               ty_log_sink **sink) {
    const char *call = "make a log in memory";
    if (ty_status status = check_pointer(memory, call, "the memory"))
        return status;
    if (ty_status status = check_pointer(sink, call, "the place for the sink"))
        return status;
    *sink = nullptr;
    if (ty_status status = check_log_size(size_bytes, cache_line_bytes, call))
        return status;
    if (reinterpret_cast<uintptr_t>(memory) % cache_line_bytes)
        return failure(TY_E_ARGUMENT, "%s: %p is not aligned", call, memory)
            .remedy("align it to %u bytes", cache_line_bytes);
    ty_memory_log_options known = TY_MEMORY_LOG_OPTIONS_INIT;
    if (options)
        if (ty_status status = copy_options(options, &known, sizeof known, call, "ty_memory_log_options",
                                            "TY_MEMORY_LOG_OPTIONS_INIT"))
            return status;
    return memory_sink_create(memory, size_bytes, known.write_back, known.write_latency_ns, sink);
}

ty_status ty_tee_log_create(const ty_log_sink *first, const ty_log_sink *second, ty_log_sink **sink) {
    const char *call = "make a log on two sinks";
    if (ty_status status = check_pointer(sink, call, "the place for the sink"))
        return status;
    *sink = nullptr;
    if (ty_status status = check_sink(first, call, "the first sink"))
        return status;
    if (ty_status status = check_sink(second, call, "the second sink"))
        return status;
    if (first->size_bytes != second->size_bytes || first == second)
        return failure(TY_E_ARGUMENT, "%s of %llu and %llu bytes", call, (unsigned long long)first->size_bytes,
                       (unsigned long long)second->size_bytes)
            .remedy("give two sinks of the same size");
    return tee_sink_create(first, second, sink);
}

ty_status ty_file_log_create(const char *path, uint64_t size_bytes, const ty_storage *storage, ty_log_sink **sink) {
    const char *call = "open a log file";
    if (ty_status status = check_path(path, call, "the path"))
        return status;
    if (ty_status status = check_pointer(sink, call, "the place for the sink"))
        return status;
    *sink = nullptr;
    if (ty_status status = check_log_size(size_bytes, TY_STORAGE_BLOCK, call))
        return status;
    if (storage)
        if (ty_status status = check_storage(storage, call))
            return status;
    const ty_storage &used = storage ? *storage : *ty_storage_default();
    char *resolved = nullptr;
    if (ty_status status = resolve_path(used, path, &resolved))
        return status;
    ty_status status = open_file_log(resolved, size_bytes, used, sink);
    free(resolved);
    return status;
}

void ty_log_sink_destroy(ty_log_sink *sink) {
    sink_destroy(sink);
}
