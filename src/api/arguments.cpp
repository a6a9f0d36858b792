#include "arguments.hpp"

namespace taiyen {

namespace {

constexpr size_t path_bytes_max = 4096; // PATH_MAX of Linux, with the terminating zero

size_t struct_size_of(const void *given) {
    size_t bytes;
    memcpy(&bytes, given, sizeof bytes);
    return bytes;
}

bool all_zero(const void *bytes, size_t count) {
    const auto *p = static_cast<const unsigned char *>(bytes);
    for (size_t i = 0; i < count; ++i)
        if (p[i])
            return false;
    return true;
}

ty_status check_struct_size(size_t bytes, const char *call, const char *name, const char *remedy) {
    if (bytes < sizeof(size_t) || bytes > struct_size_max)
        return failure(TY_E_ARGUMENT, "%s: the %s has a struct_size of %zu", call, name, bytes).remedy("%s", remedy);
    return TY_OK;
}

} // namespace

// O1: structs of other lengths count as if filled with zeros. O2: nothing beyond struct_size is read.
[[gnu::cold]] ty_status copy_options(const void *given, void *known, size_t known_bytes, const char *call,
                                     const char *name, const char *init) {
    const size_t bytes = struct_size_of(given);
    char remedy[128] = "initialise it with ";
    strncat(remedy, init, sizeof remedy - strlen(remedy) - 1);
    if (ty_status status = check_struct_size(bytes, call, name, remedy))
        return status;
    const size_t common = bytes < known_bytes ? bytes : known_bytes;
    if (bytes > known_bytes && !all_zero(static_cast<const char *>(given) + known_bytes, bytes - known_bytes))
        return failure(TY_E_ARGUMENT, "%s: the %s sets an option that this library does not know", call, name)
            .remedy("leave options that are newer than version %s zero, or use a newer library", ty_version());
    memset(known, 0, known_bytes);
    memcpy(known, given, common);
    memcpy(known, &known_bytes, sizeof known_bytes);
    return TY_OK;
}

ty_status check_output(const void *given, const char *call, const char *name) {
    if (ty_status status = check_pointer(given, call, name))
        return status;
    return check_struct_size(struct_size_of(given), call, name, "set its struct_size to its sizeof before the call");
}

void copy_output(const void *known, size_t known_bytes, void *given) {
    const size_t bytes = struct_size_of(given);
    const size_t common = bytes < known_bytes ? bytes : known_bytes;
    memcpy(given, known, common);
    if (bytes > common)
        memset(static_cast<char *>(given) + common, 0, bytes - common);
    memcpy(given, &bytes, sizeof bytes);
}

ty_status refuse_null(const char *call, const char *what) {
    return failure(TY_E_ARGUMENT, "%s: %s is NULL", call, what).remedy("pass a valid pointer");
}

ty_status check_heap(const ty_heap *heap, const char *call) {
    if (!heap)
        return refuse_null(call, "the heap");
    return heap_is_open(heap) ? TY_OK : heap_closed(call);
}

ty_status check_path(const char *path, const char *call, const char *what) {
    if (ty_status status = check_pointer(path, call, what))
        return status;
    const size_t length = strnlen(path, path_bytes_max);
    if (length == 0)
        return failure(TY_E_ARGUMENT, "%s: %s is empty", call, what).remedy("give the path of a file");
    if (length == path_bytes_max)
        return failure(TY_E_ARGUMENT, "%s: %s is longer than %zu bytes", call, what, path_bytes_max - 1)
            .remedy("give a shorter path, for example a relative one");
    return TY_OK;
}

ty_status check_new_heap(size_t limit_bytes, const void *base, int classes, const char *call) {
    if (limit_bytes > heap_limit_max)
        return failure(TY_E_ARGUMENT, "%s: limit_bytes is %zu, and a heap can have %zu at most", call, limit_bytes,
                       heap_limit_max)
            .remedy("give a smaller limit, or 0 for the default of %zu GiB", heap_limit_default >> 30);
    const auto address = reinterpret_cast<uintptr_t>(base);
    if (address % heap_granule_bytes)
        return failure(TY_E_ARGUMENT, "%s: base %p is not a multiple of %zu MiB", call, base, heap_granule_bytes >> 20)
            .remedy("give a multiple of it, or NULL and the library finds a place");
    if (classes != TY_CLASSES_CACHE_LINE && classes != TY_CLASSES_DENSE)
        return failure(TY_E_ARGUMENT, "%s: there is no class table %d", call, classes)
            .remedy("use TY_CLASSES_CACHE_LINE or TY_CLASSES_DENSE");
    return TY_OK;
}

ty_status check_checks(unsigned checks, const char *call) {
    constexpr unsigned all = TY_CHECK_BOUNDS | TY_CHECK_GUARD_PAGES | TY_CHECK_FREED | TY_CHECK_SITES | TY_CHECK_LEAKS;
    if (checks & ~all)
        return failure(TY_E_ARGUMENT, "%s: there are no checks 0x%x", call, checks & ~all)
            .remedy("give a sum of TY_CHECK_ values");
    return TY_OK;
}

ty_status check_alignment(ty_heap *heap, size_t alignment, const char *call) {
    if ((alignment & (alignment - 1)) != 0 || alignment > heap_limit(heap)) // 0: the default of any block
        return failure(TY_E_ARGUMENT, "%s: the alignment is %zu", call, alignment)
            .remedy("give a power of two up to the heap's limit of %zu bytes", heap_limit(heap));
    return TY_OK;
}

ty_status check_root(ty_heap *heap, const char *name, const void *address, const char *call) {
    if (ty_status status = check_pointer(name, call, "the name"))
        return status;
    const size_t length = strnlen(name, TY_ROOT_NAME_MAX + 1);
    if (length == 0 || length > TY_ROOT_NAME_MAX)
        return failure(TY_E_ARGUMENT, "%s with a name that is %s", call, length ? "too long" : "empty")
            .remedy("give a name of 1 to %u bytes", TY_ROOT_NAME_MAX);
    if (address && heap_of(address) != heap)
        return failure(TY_E_ARGUMENT, "%s: %p does not lie in the heap", call, address)
            .remedy("give the address of a block of this heap, or NULL to remove the root");
    return TY_OK;
}

ty_status check_storage(const ty_storage *storage, const char *call) {
    const size_t bytes = storage->struct_size;
    if (bytes < sizeof(ty_storage) || bytes > struct_size_max)
        return failure(TY_E_ARGUMENT, "%s: the ty_storage has a struct_size of %zu", call, bytes)
            .remedy("set it to sizeof(ty_storage), %zu in this library", sizeof(ty_storage));
    if (!all_zero(reinterpret_cast<const char *>(storage) + sizeof(ty_storage), bytes - sizeof(ty_storage)))
        return failure(TY_E_ARGUMENT, "%s: the ty_storage has functions that this library does not know", call)
            .remedy("leave what is newer than version %s NULL, or use a newer library", ty_version());
    const bool whole = storage->open && storage->close && storage->read && storage->write && storage->flush &&
                       storage->get_size && storage->set_size && storage->allocate && storage->punch &&
                       storage->next_data && storage->map && storage->unmap && storage->write_back && storage->lock &&
                       storage->rename && storage->remove && storage->flush_directory;
    if (!whole)
        return failure(TY_E_ARGUMENT, "%s: a function of the ty_storage is NULL", call)
            .remedy("copy the table of ty_storage_default() and replace what differs");
    return TY_OK;
}

} // namespace taiyen
