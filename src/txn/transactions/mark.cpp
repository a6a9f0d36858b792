// Bytes that were written without the tracking seeing it. Every kind and method of tracking sees a store to the page:
// so one is made to each page, which changes nothing and is atomic, as other threads may store to the same bytes.
#include "write_faults.hpp"

namespace taiyen {

ty_status txn_mark_written(ty_heap *heap, const void *address, size_t bytes) {
    constexpr const char *call = "mark bytes as written";
    if (ty_status status = image_check_writer(heap, call))
        return status;
    char *base = static_cast<char *>(heap_base(heap));
    uint64_t low = heap_block_words(heap).first * 8;
    uint64_t high = heap_used_bytes(heap);
    uint64_t end = heap_block_words(heap).end * 8;
    high = high < end ? high : end;
    uint64_t offset = reinterpret_cast<uintptr_t>(address) - reinterpret_cast<uintptr_t>(base);
    if (offset < low || offset >= high || bytes > high - offset)
        return failure(TY_E_ARGUMENT, "%s: %zu byte%s at %p: not in the heap's blocks", call, bytes, plural(bytes),
                       address)
            .remedy("hand in the address of a part of a block of the heap");
    library_stores own; // no undeclared writes
    for (uint64_t at = offset; at < offset + bytes; at = (at / os::page_bytes + 1) * os::page_bytes)
        os::store_what_is_there(base + at);
    return TY_OK;
}

} // namespace taiyen
