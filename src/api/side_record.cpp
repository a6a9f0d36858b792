// The functions of side_record.h.
#include "arguments.hpp"
#include "src/store/image/image.hpp"

#include <cstdlib>
#include <new>
#include <taiyen/side_record.h>

using namespace taiyen;

struct ty_side_records {
    const char *path; // allocated after the struct
    ty_open_options options;
    image_side_record_slots slots;
};

namespace {

static_assert(TY_SIDE_RECORDS == image_side_records && TY_SIDE_RECORD_BYTES_MAX == image_side_record_bytes_max);

ty_status check_side_record(const ty_side_records *side_records, uint32_t side_record, const void *bytes,
                            const char *call) {
    if (ty_status status = check_pointer(side_records, call, "the side records"))
        return status;
    if (ty_status status = check_pointer(bytes, call, "the place of its bytes"))
        return status;
    return side_record < TY_SIDE_RECORDS ? TY_OK
                                         : failure(TY_E_ARGUMENT, "%s: there is none of number %u", call, side_record);
}

} // namespace

ty_status ty_side_records_open(const char *heap_path, const ty_open_options *open, ty_side_records **side_records) {
    constexpr const char *call = "use the side records of a heap";
    ty_open_options used = TY_OPEN_OPTIONS_INIT;
    char *resolved = nullptr;
    if (ty_status status = check_path(heap_path, call, "the path"))
        return status;
    if (ty_status status = check_pointer(side_records, call, "the place for the side records"))
        return status;
    *side_records = nullptr;
    if (ty_status status = take_open_options(open, call, &used))
        return status;
    if (ty_status status = resolve_path(*used.storage, heap_path, &resolved))
        return status;
    const size_t length = strlen(resolved) + 1;
    void *memory = os::internal_calloc(1, sizeof(ty_side_records) + length);
    if (memory) {
        char *copy = static_cast<char *>(memory) + sizeof(ty_side_records);
        memcpy(copy, resolved, length);
        *side_records = new (memory) ty_side_records{copy, used, {}};
    }
    free(resolved);
    return memory ? TY_OK : failure(TY_E_MEMORY, "%s", call).at(heap_path).remedy("free memory of the process");
}

void ty_side_records_close(ty_side_records *side_records) {
    if (side_records)
        side_records->slots.image.close();
    free(side_records);
}

ty_status ty_side_records_read(ty_side_records *side_records, uint32_t side_record, void *bytes, size_t capacity,
                               size_t *size_bytes) {
    constexpr const char *call = "read a side record of a heap";
    if (ty_status status = check_side_record(side_records, side_record, bytes, call))
        return status;
    if (ty_status status = check_pointer(size_bytes, call, "the place for its size"))
        return status;
    return image_side_record_read(side_records->path, *side_records->options.storage, side_records->slots, side_record,
                                  bytes, capacity, size_bytes);
}

ty_status ty_side_records_write(ty_side_records *side_records, uint32_t side_record, const void *bytes,
                                size_t size_bytes, bool durable) {
    constexpr const char *call = "write a side record of a heap";
    if (ty_status status = check_side_record(side_records, side_record, bytes, call))
        return status;
    if (size_bytes == 0 || size_bytes > TY_SIDE_RECORD_BYTES_MAX)
        return failure(TY_E_ARGUMENT, "%s of %zu bytes", call, size_bytes)
            .remedy("give 1 to %u", TY_SIDE_RECORD_BYTES_MAX);
    return image_side_record_write(side_records->path, *side_records->options.storage, side_records->slots, side_record,
                                   bytes, size_bytes, durable);
}
