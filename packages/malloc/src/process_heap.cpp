// The heap of the process, and the reaction to a pointer that is not a block.
#include "malloc.hpp"
#include "settings.hpp"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace taiyen::drop_in {

constinit std::atomic<ty_heap *> made_heap{nullptr};

namespace {

// Address space; only what is used becomes memory.
constexpr size_t limit_wanted = size_t{1} << 40;

constinit os::mutex making{os::lock_rank::registry};
constinit std::atomic<ty_heap *> any_heap{nullptr}; // checked or not
constinit unsigned checks;                          // the checks of any_heap; guarded by `making`

// Where mappings are limited or locked, as with ulimit -v or mlockall, only what is used counts.
ty_heap *make_claimed_heap() {
    void *base = os::claim_range(limit_wanted, heap_granule_bytes);
    ty_heap *heap;
    if (base == nullptr || heap_format(base, limit_wanted, TY_CLASSES_DENSE, claimed_owner()) != TY_OK ||
        heap_attach(base, limit_wanted, claimed_owner(), true, &heap) != TY_OK)
        return nullptr;
    return heap;
}

// Where address space cannot be claimed it is reserved; and where the first limit is then too large, for whatever
// reason, the largest power of two that is not.
ty_heap *make_heap() {
    ty_heap_options options = TY_HEAP_OPTIONS_INIT;
    options.classes = TY_CLASSES_DENSE;
    ty_heap *heap = make_claimed_heap();
    if (heap != nullptr)
        return heap;
    size_t limit = limit_wanted;
    while (limit > os::reserve_advised_max() && limit > heap_granule_bytes)
        limit /= 2;
    for (; limit >= heap_granule_bytes; limit /= 2) {
        options.limit_bytes = limit;
        if (ty_heap_create(&options, &heap) == TY_OK)
            return heap;
    }
    return nullptr;
}

// A program whose checks cannot be started runs without them, as it does with words of TAIYEN_MALLOC that are not
// known.
void start_checks(ty_heap *heap) {
    ty_check_options options = TY_CHECK_OPTIONS_INIT;
    read_settings(os::start_variable("TAIYEN_MALLOC"), &options);
    if (options.checks == 0 && options.sample_every == 0)
        return;
    os::postpone_stacks(); // no loading of an unwinder while the dynamic linker allocates
    if (ty_heap_start_checks(heap, &options) == TY_OK) {
        checks = options.checks;
        return;
    }
    const char *text = ty_error_text();
    os::write_standard_error(text, strlen(text));
}

// M2: the heap is made before any fork handler is registered. The linker marks the library to be initialised first.
[[gnu::constructor]] void start() {
    static_cast<void>(process_heap()); // on failure the first allocation tries again
}

// Runs after all other destructors and exit handlers.
[[gnu::destructor]] void finish() {
    ty_heap *heap = any_heap.load(std::memory_order_relaxed);
    if (heap != nullptr && checks != 0)
        heap_finish_checks(heap);
}

void stop_for_late(const void *) {
    abort_for("free");
}

void *stop_if_damaged(void *block) {
    if (block == nullptr) {
        ty_error error;
        ty_error_detail(&error);
        if (error.status == TY_E_DAMAGED)
            abort_for("malloc");
    }
    return block;
}

} // namespace

ty_heap *process_heap() {
    if (ty_heap *heap = any_heap.load(std::memory_order_acquire))
        return heap;
    os::lock_guard guard(making);
    if (any_heap.load(std::memory_order_relaxed) == nullptr) {
        ty_heap *heap = make_heap();
        if (heap != nullptr)
            start_checks(heap);
        bool holds = heap != nullptr && checks == 0 && use_magazines(heap, stop_for_late) == TY_OK;
        any_heap.store(heap, std::memory_order_release);
        if (holds)
            made_heap.store(heap, std::memory_order_release);
    }
    return any_heap.load(std::memory_order_relaxed);
}

namespace {

void *allocate_here(size_t size, call_site) {
    ty_heap *heap = process_heap();
    if (heap == nullptr || size > request_max)
        return nullptr;
    if (heap_checked(heap))
        return stop_if_damaged(heap_alloc(heap, size));
    return stop_if_damaged(alloc_cached_slowly(heap, natural_bytes(size)));
}

void *aligned_here(size_t size, size_t alignment, call_site site) {
    if (alignment <= 8)
        return allocate(size, site);
    ty_heap *heap = process_heap();
    if (alignment <= natural_alignment && (heap == nullptr || !heap_checked(heap)))
        return allocate(size <= natural_alignment ? natural_alignment : size, site);
    if (heap == nullptr || size > request_max)
        return nullptr;
    void *block = try_alloc_cached_aligned(size, alignment);
    return block != nullptr ? block : stop_if_damaged(heap_alloc(heap, size, alignment, false));
}

void *zeroed_here(size_t size, call_site site) {
    if (size > direct_bytes_max) {
        ty_heap *heap = process_heap();
        return heap != nullptr && size <= request_max ? heap_alloc(heap, size, 0, true) : nullptr;
    }
    void *block = allocate(size, site);
    return block != nullptr ? memset(block, 0, size) : nullptr;
}

// Within a scope: allocates from its heap, unless the call does not count in it (M6: run-time libraries' own).
template <class Here>
[[gnu::cold]] void *allocate_in_scope(size_t size, size_t alignment, bool zeroed, call_site site, Here here) {
    out_of_scope outside;
    const os::current_malloc &scope = *outside.scope();
    if (!counts_in(scope, site))
        return here();
    return size <= request_max ? scope.calls->alloc(scope.heap, natural_bytes(size), alignment, zeroed, site.caller)
                               : nullptr;
}

} // namespace

[[gnu::noinline]] void *allocate_otherwise(size_t size, call_site site) {
    if (current_scope != nullptr) [[unlikely]]
        return allocate_in_scope(size, 0, false, site, [=] { return allocate(size, site); });
    return allocate_here(size, site);
}

void *allocate_aligned(size_t size, size_t alignment, call_site site) {
    if (current_scope != nullptr) [[unlikely]]
        return allocate_in_scope(size, alignment, false, site, [=] { return aligned_here(size, alignment, site); });
    return aligned_here(size, alignment, site);
}

void *allocate_zeroed(size_t size, call_site site) {
    if (current_scope != nullptr) [[unlikely]]
        return allocate_in_scope(size, 0, true, site, [=] { return zeroed_here(size, site); });
    return zeroed_here(size, site);
}

[[gnu::noinline]] void release_elsewhere(const char *function, void *block, const magazine *stack) {
    if (free_cached_elsewhere(block, stack) != TY_OK) [[unlikely]]
        abort_for(function);
}

// M7: a block is freed in the heap that it lies in. The end of the scope shows the thread cache again, and with it the
// fast path.
[[gnu::noinline]] void release_otherwise(const char *function, void *block) {
    if (block == nullptr)
        return;
    if (current_scope != nullptr) [[unlikely]] {
        out_of_scope outside;
        return release(function, block);
    }
    if (const os::current_malloc_calls *calls = owner_of(any_heap.load(std::memory_order_acquire), block))
        [[unlikely]] {
        int kept = errno;
        if (!calls->free(block))
            stop_beside(function, calls);
        errno = kept;
    } else if (free_cached_slowly(block) != TY_OK)
        abort_for(function);
}

namespace {

[[noreturn]] void stop_with(const char *function, const char *text) {
    char line[320];
    int length = snprintf(line, sizeof line, "taiyen-malloc: %s: %s\n", function, text);
    os::write_standard_error(line,
                             static_cast<size_t>(length) < sizeof line ? static_cast<size_t>(length) : sizeof line);
    abort();
}

} // namespace

void abort_for(const char *function) {
    char text[280];
    ty_error error;
    ty_error_detail(&error);
    snprintf(text, sizeof text, "cannot %s", error.operation);
    stop_with(function, text);
}

void stop_beside(const char *function, const os::current_malloc_calls *calls) {
    stop_with(function, calls->error_text());
}

} // namespace taiyen::drop_in
