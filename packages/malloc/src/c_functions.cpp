// The functions of malloc(3), posix_memalign(3), malloc_usable_size(3), malloc_trim(3) and mallinfo(3). Where the
// standard leaves behaviour open, they do what glibc does.
#include "malloc.hpp"

#include <bit>
#include <cerrno>
#include <climits>
#include <cstring>

using namespace taiyen;
using namespace taiyen::drop_in;

#define TAIYEN_FAMILY extern "C" [[gnu::visibility("default")]]

namespace {

// struct mallinfo and mallinfo2 of <malloc.h>, which is not an ISO C header.
template <class Number>
struct memory_info {
    Number arena, ordblks, smblks, hblks, hblkhd, usmblks, fsmblks, uordblks, fordblks, keepcost;
};

[[gnu::noinline, gnu::cold]] void *no_memory() {
    errno = ENOMEM;
    return nullptr;
}

void *or_no_memory(void *block) {
    if (block == nullptr) [[unlikely]]
        return no_memory();
    return block;
}

const os::current_malloc_calls *owner_beside(const void *block) {
    return owner_of(process_heap(), block);
}

// Not 0: stops the process where `block` is not a live block, in the name of `function`.
size_t usable_bytes(const char *function, const void *block) {
    out_of_scope outside;
    size_t bytes = cached_usable_size(block);
    if (bytes != 0)
        return bytes;
    const os::current_malloc_calls *calls = owner_beside(block);
    bytes = calls != nullptr ? calls->usable_size(block) : heap_usable_size(block);
    if (bytes == 0)
        calls != nullptr ? stop_beside(function, calls) : abort_for(function);
    return bytes;
}

void *resized_or_stop(void *block, size_t size) {
    void *resized = heap_resize(block, size);
    if (resized != nullptr)
        return resized;
    ty_error error;
    ty_error_detail(&error);
    if (error.status != TY_E_MEMORY)
        abort_for("realloc");
    return no_memory();
}

// Copies content bytes into a new block and frees the old one. NULL: no memory.
void *move_into(void *block, size_t size, size_t content) {
    void *moved = allocate(size, TAIYEN_MALLOC_SITE);
    if (moved == nullptr)
        return nullptr;
    memcpy(moved, block, content);
    release("realloc", block);
    return moved;
}

// M7: a block is resized in the heap that it lies in. By the rules of the library that owns that heap.
[[gnu::noinline, gnu::cold]] void *resize_beside(const os::current_malloc_calls *calls, void *block, size_t size,
                                                 const void *caller) {
    return size <= request_max ? or_no_memory(calls->resize(block, natural_bytes(size), caller)) : no_memory();
}

// A block of the process's heap; the thread is in no scope.
void *resize(void *block, size_t size) {
    if (made_heap.load(std::memory_order_acquire) == nullptr && size <= request_max)
        return resized_or_stop(block, size); // a checked heap keeps the requested size
    size_t held = usable_bytes("realloc", block);
    if (size > request_max)
        return no_memory();
    if (held > direct_bytes_max && size > direct_bytes_max) // an extent, which can shrink in place
        return resized_or_stop(block, natural_bytes(size));
    if (size > held)
        return size <= direct_bytes_max ? or_no_memory(move_into(block, size, held))
                                        : resized_or_stop(block, natural_bytes(size));
    if (size >= held / 2)
        return block;
    void *less = move_into(block, size, size); // its tail is large enough to be worth freeing
    return less != nullptr ? less : block;
}

int saturated(size_t value) {
    return value > INT_MAX ? INT_MAX : static_cast<int>(value);
}

// What the heap counts anyway; it has no separate mappings and no fast bins. keepcost stays 0: it would need a walk
// over the free pages.
memory_info<size_t> figures() {
    memory_info<size_t> info{};
    ty_heap_stats stats{};
    ty_heap *heap = process_heap();
    if (heap == nullptr || heap_get_stats(heap, &stats) != TY_OK)
        return info;
    info.arena = stats.touched_bytes;
    info.ordblks = stats.free_extents;
    info.uordblks = stats.live_bytes;
    info.fordblks = stats.free_bytes;
    return info;
}

} // namespace

[[gnu::noinline]] void *taiyen::drop_in::allocate_or_enomem(size_t size, call_site site) {
    return or_no_memory(allocate_otherwise(size, site));
}

TAIYEN_FAMILY void *malloc(size_t size) noexcept {
    void *block = try_alloc_cached(size);
    return block != nullptr ? block : allocate_or_enomem(size, TAIYEN_MALLOC_SITE);
}

// Defined here, so that blocks of their callers are distinguished from libc's own copies through its own strdup
// (setlocale).
TAIYEN_FAMILY char *strdup(const char *text) noexcept {
    const size_t size = strlen(text) + 1;
    void *block = try_alloc_cached(size);
    block = block != nullptr ? block : allocate_or_enomem(size, TAIYEN_MALLOC_SITE);
    return block != nullptr ? static_cast<char *>(memcpy(block, text, size)) : nullptr;
}

TAIYEN_FAMILY char *strndup(const char *text, size_t longest) noexcept {
    const size_t length = strnlen(text, longest);
    void *block = try_alloc_cached(length + 1);
    block = block != nullptr ? block : allocate_or_enomem(length + 1, TAIYEN_MALLOC_SITE);
    if (block == nullptr)
        return nullptr;
    static_cast<char *>(block)[length] = '\0';
    return static_cast<char *>(memcpy(block, text, length));
}

TAIYEN_FAMILY void *calloc(size_t count, size_t size) noexcept {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes) || bytes > request_max)
        return no_memory();
    return or_no_memory(allocate_zeroed(bytes, TAIYEN_MALLOC_SITE));
}

TAIYEN_FAMILY void free(void *block) noexcept {
    release("free", block);
}

namespace {

[[gnu::always_inline]] inline void *reallocate(void *block, size_t size, call_site site) {
    if (block == nullptr)
        return or_no_memory(allocate(size, site));
    if (size == 0) {
        release("realloc", block);
        return nullptr;
    }
    if (const os::current_malloc_calls *calls = owner_beside(block)) [[unlikely]] {
        out_of_scope outside;
        return resize_beside(calls, block, size, site.caller);
    }
    if (fault("block_moves_into_the_scope_as_it_grows"))
        return resize(block, size);
    out_of_scope outside;
    return resize(block, size);
}

} // namespace

TAIYEN_FAMILY void *realloc(void *block, size_t size) noexcept {
    return reallocate(block, size, TAIYEN_MALLOC_SITE);
}

TAIYEN_FAMILY void *reallocarray(void *block, size_t count, size_t size) noexcept {
    size_t bytes;
    return __builtin_mul_overflow(count, size, &bytes) ? no_memory() : reallocate(block, bytes, TAIYEN_MALLOC_SITE);
}

TAIYEN_FAMILY int posix_memalign(void **block, size_t alignment, size_t size) noexcept {
    if (!std::has_single_bit(alignment) || alignment % sizeof(void *) != 0)
        return EINVAL;
    int kept = errno;
    void *made = allocate_aligned(size, alignment, TAIYEN_MALLOC_SITE);
    errno = kept;
    if (made == nullptr)
        return ENOMEM;
    *block = made;
    return 0;
}

TAIYEN_FAMILY void *aligned_alloc(size_t alignment, size_t size) noexcept {
    if (std::has_single_bit(alignment))
        return or_no_memory(allocate_aligned(size, alignment, TAIYEN_MALLOC_SITE));
    errno = EINVAL;
    return nullptr;
}

// An alignment that is not a power of two is rounded up to one.
TAIYEN_FAMILY void *memalign(size_t alignment, size_t size) noexcept {
    if (alignment > request_max / 2 + 1) {
        errno = EINVAL;
        return nullptr;
    }
    return or_no_memory(allocate_aligned(size, std::bit_ceil(alignment), TAIYEN_MALLOC_SITE));
}

TAIYEN_FAMILY void *valloc(size_t size) noexcept {
    return or_no_memory(allocate_aligned(size, os::page_bytes, TAIYEN_MALLOC_SITE));
}

TAIYEN_FAMILY void *pvalloc(size_t size) noexcept {
    if (size > request_max - os::page_bytes)
        return no_memory();
    size_t whole = (size + os::page_bytes - 1) & ~(os::page_bytes - 1);
    return or_no_memory(allocate_aligned(whole, os::page_bytes, TAIYEN_MALLOC_SITE));
}

TAIYEN_FAMILY size_t malloc_usable_size(void *block) noexcept {
    return block != nullptr ? usable_bytes("malloc_usable_size", block) : 0;
}

// The argument, pad, is what glibc keeps at the end of its heap; here no free page is kept.
TAIYEN_FAMILY int malloc_trim(size_t) noexcept {
    ty_heap *heap = process_heap();
    size_t released = 0;
    return heap != nullptr && heap_purge(heap, &released) == TY_OK && released != 0;
}

TAIYEN_FAMILY memory_info<size_t> mallinfo2() noexcept {
    return figures();
}

TAIYEN_FAMILY memory_info<int> mallinfo() noexcept {
    memory_info<size_t> info = figures();
    memory_info<int> narrow{};
    narrow.arena = saturated(info.arena);
    narrow.ordblks = saturated(info.ordblks);
    narrow.uordblks = saturated(info.uordblks);
    narrow.fordblks = saturated(info.fordblks);
    return narrow;
}
