#include "vm.hpp"

#include "../process/process.hpp"

#include "../base/base.hpp"
#include "../calls/calls.hpp"

#include <cstdio>
#include <cstring>

#ifndef __has_feature
#define __has_feature(feature) 0
#endif
#if defined(__SANITIZE_THREAD__) || __has_feature(thread_sanitizer)
#define TAIYEN_TSAN 1
#endif

namespace taiyen::os {
namespace {

constexpr int reserve_flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

// Best effort: a refusal by the kernel is not a failure, and must not show in errno after malloc or free (M4).
void wish(void *address, size_t bytes, int advice) {
    int kept = errno;
    sys::madvise(address, bytes, advice);
    errno = kept;
}

ty_status memory_failure(const char *what, const void *address, size_t bytes) {
    int error = errno;
    return failure(error == ENOMEM || error == EAGAIN ? TY_E_MEMORY : status_of_errno(error), "%s %zu bytes at %p",
                   what, bytes, address)
        .cause(error)
        .remedy(
            "free memory, or raise the limits: ulimit -v, ulimit -d, sysctl vm.max_map_count, vm.overcommit_memory");
}

// No mapping is in the range, but this build cannot use it.
ty_status unusable(uintptr_t address, size_t bytes) {
    return failure(TY_E_ADDRESS, "reserve %zu bytes at %p: this build cannot use that range", bytes,
                   reinterpret_cast<void *>(address))
        .remedy("use the kind of build that made the heap: a sanitizer restricts addresses");
}

ty_status taken(uintptr_t address, size_t bytes) {
    char text[mapping_text_bytes];
    describe_mapping(address, bytes, text, sizeof text);
    return failure(TY_E_ADDRESS, "reserve %zu bytes at %p: the range is taken", bytes,
                   reinterpret_cast<void *>(address))
        .remedy("unload what is in the way (%s), or open the heap in another process",
                text[0] != 0 ? text : "it is gone by now");
}

ty_status reserve_at(uintptr_t address, size_t bytes, void **reserved) {
    if (!address_usable(address, bytes))
        return unusable(address, bytes);
    void *wanted = reinterpret_cast<void *>(address);
    void *got = sys::mmap(wanted, bytes, PROT_NONE, reserve_flags | MAP_FIXED_NOREPLACE, -1, 0);
    if (got == MAP_FAILED)
        return errno == EEXIST ? taken(address, bytes) : memory_failure("reserve", wanted, bytes);
    if (got != wanted) { // a kernel before 4.17 takes the address as a hint
        sys::munmap(got, bytes);
        return taken(address, bytes);
    }
    *reserved = got;
    return TY_OK;
}

// Maps more than needed and unmaps the unaligned ends.
[[gnu::cold]] ty_status map_aligned(size_t bytes, size_t alignment, int protection, void **mapped) {
    size_t excess = alignment > page_bytes ? alignment - page_bytes : 0;
    if (bytes == 0 || bytes > SIZE_MAX - excess)
        return failure(TY_E_ARGUMENT, "map %zu bytes", bytes);
    void *got = sys::mmap(nullptr, bytes + excess, protection, reserve_flags, -1, 0);
    if (got == MAP_FAILED)
        return memory_failure("map", nullptr, bytes);
    uintptr_t start = reinterpret_cast<uintptr_t>(got);
    uintptr_t aligned = align_up(start, alignment);
    size_t before = aligned - start;
    size_t after = excess - before;
    if ((before != 0 && sys::munmap(got, before) != 0) ||
        (after != 0 && sys::munmap(reinterpret_cast<void *>(aligned + bytes), after) != 0)) {
        ty_status status = memory_failure("trim", got, bytes);
        direct::munmap(got, bytes + excess); // unmapping an unmapped range is not an error
        return status;
    }
    *mapped = reinterpret_cast<void *>(aligned);
    return TY_OK;
}

} // namespace

address_zone persistent_zone() {
#if defined(TAIYEN_TSAN)
    return {0x550000000000, 0x555000000000};
#else
    return {0x100100000000, 0x550000000000};
#endif
}

bool address_usable(uintptr_t address, size_t bytes) {
    constexpr uintptr_t user_end = uintptr_t{1} << 47; // the kernel's default limit
    if (address >= user_end || bytes > user_end - address)
        return false;
#if defined(TAIYEN_TSAN)
    constexpr address_zone parts[] = {
        {0x1000, 0x8000000000}, {0x550000000000, 0x568000000000}, {0x7e8000000000, user_end}};
    for (const address_zone &part : parts)
        if (address >= part.low && address + bytes <= part.high)
            return true;
    return false;
#else
    return true;
#endif
}

uintptr_t find_free(size_t bytes, size_t alignment, zone_end from, address_zone within) {
    mapping_reader reader;
    if (bytes == 0 || !reader.open())
        return 0;
    uintptr_t best = 0;
    uintptr_t gap_start = within.low;
    bool more = true;
    while (more && gap_start < within.high) {
        mapping found;
        more = reader.next(found);
        uintptr_t gap_end = more && found.start < within.high ? found.start : within.high;
        uintptr_t low = align_up(gap_start, alignment);
        if (low >= gap_start && low < gap_end && gap_end - low >= bytes) {
            best = from == zone_end::low ? low : (gap_end - bytes) & ~(alignment - 1);
            if (from == zone_end::low)
                break;
        }
        if (more && found.end > gap_start)
            gap_start = found.end;
    }
    bool failed = reader.failed();
    reader.close();
    return failed ? 0 : best;
}

[[gnu::cold]] ty_status reserve(uintptr_t address, size_t bytes, size_t alignment, void **reserved) {
    if (address != 0)
        return reserve_at(address, bytes, reserved);
    return map_aligned(bytes, alignment < page_bytes ? page_bytes : alignment, PROT_NONE, reserved);
}

size_t address_space_max() {
    static_assert(RLIM_INFINITY == SIZE_MAX);
    struct rlimit limit;
    return sys::getrlimit(RLIMIT_AS, &limit) == 0 ? limit.rlim_cur : SIZE_MAX;
}

size_t reserve_advised_max() {
    constexpr uint64_t strict = 2;
    struct rlimit limit;
    size_t most = address_space_max();
    if (most != SIZE_MAX)
        most /= 2;
    if (sys::getrlimit(RLIMIT_DATA, &limit) == 0 && limit.rlim_cur < most / 2)
        most = limit.rlim_cur * 2;
    uint64_t overcommit = 0;
    if (read_number("/proc/sys/vm/overcommit_memory", &overcommit) && overcommit == strict)
        most = most < machine().memory_bytes / 2 ? most : machine().memory_bytes / 2;
    return most;
}

ty_status commit(void *address, size_t bytes) {
    if (sys::mprotect(address, bytes, PROT_READ | PROT_WRITE) != 0)
        return memory_failure("commit", address, bytes);
    return TY_OK;
}

ty_status replace_with_memory(void *address, size_t bytes) {
    void *got = sys::mmap(address, bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    return got == address ? TY_OK : memory_failure("map memory at", address, bytes);
}

ty_status move_mapping(void *from, void *to, size_t bytes) {
    return sys::mremap(from, bytes, to) == to ? TY_OK : memory_failure("move a mapping of", to, bytes);
}

void advise_huge(void *address, size_t bytes, bool huge) {
    uintptr_t start = align_up(reinterpret_cast<uintptr_t>(address), huge_page_bytes);
    uintptr_t end = (reinterpret_cast<uintptr_t>(address) + bytes) & ~(huge_page_bytes - 1);
    if (start < end)
        wish(reinterpret_cast<void *>(start), end - start, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
}

bool half_resident_huge(void *page) {
    int kept = errno;
    unsigned char resident[huge_page_bytes / page_bytes]{};
    sys::mincore(page, huge_page_bytes, resident);
    errno = kept;
    size_t count = 0;
    for (unsigned char one : resident)
        count += one & 1;
    return count * 2 >= sizeof resident;
}

void split_huge_page(void *page) {
    constexpr int cold = 20; // MADV_COLD, Linux 5.4
    wish(page, page_bytes, cold);
}

void dump(void *address, size_t bytes, bool dumped) {
    wish(address, bytes, dumped ? MADV_DODUMP : MADV_DONTDUMP);
}

void advise_random(void *address, size_t bytes) {
    wish(address, bytes, MADV_RANDOM);
}

void populate(void *address, size_t bytes) {
    constexpr int populate_write = 23; // MADV_POPULATE_WRITE, Linux 5.14
    wish(address, bytes, populate_write);
}

ty_status decommit(void *address, size_t bytes) {
    if (sys::madvise(address, bytes, MADV_DONTNEED) == 0)
        return TY_OK;
    if (errno == EINVAL && sys::madvise(address, bytes, MADV_DONTNEED_LOCKED) == 0) // after mlockall
        return TY_OK;
    return memory_failure("give back", address, bytes);
}

ty_status release(void *address, size_t bytes) {
    if (sys::munmap(address, bytes) != 0)
        return memory_failure("unmap", address, bytes);
    return TY_OK;
}

ty_status map_memory(size_t bytes, memory_hint hint, void **memory) {
    size_t alignment = hint == memory_hint::huge ? huge_page_bytes : page_bytes;
    ty_status status = map_aligned(bytes, alignment, PROT_READ | PROT_WRITE, memory);
    if (status == TY_OK && hint == memory_hint::huge)
        wish(*memory, bytes, MADV_HUGEPAGE); // small pages also work, slower
    return status;
}

void unmap_memory(void *memory, size_t bytes) {
    // Unmapping a part of a merged mapping can fail at the limit of mappings; then at least its memory is released.
    if (memory != nullptr && sys::munmap(memory, bytes) != 0)
        sys::madvise(memory, bytes, MADV_DONTNEED);
}

namespace {

struct retired {
    void *memory;
    size_t bytes;
};
constinit mutex retired_lock{lock_rank::retired};
constinit retired retired_last[retired_max] = {}; // guarded by retired_lock, as is retired_next
constinit size_t retired_next = 0;

} // namespace

void retire_memory(void *memory, size_t bytes) {
    if (sys::madvise(memory, bytes, MADV_DONTNEED) != 0) // locked memory
        memset(memory, 0, bytes);
    retired oldest;
    {
        lock_guard guard(retired_lock);
        retired &place = retired_last[retired_next++ % retired_max];
        oldest = place;
        place = {memory, bytes};
    }
    unmap_memory(oldest.memory, oldest.bytes);
}

ty_status protect(void *address, size_t bytes, bool writable) {
    if (sys::mprotect(address, bytes, writable ? PROT_READ | PROT_WRITE : PROT_READ) != 0)
        return memory_failure(writable ? "unprotect" : "protect", address, bytes);
    return TY_OK;
}

ty_status forbid(void *address, size_t bytes) {
    if (sys::mprotect(address, bytes, PROT_NONE) != 0)
        return memory_failure("take access away from", address, bytes);
    return TY_OK;
}

void describe_mapping(uintptr_t address, size_t bytes, char *text, size_t text_bytes) {
    text[0] = 0;
    mapping_reader reader;
    if (!reader.open())
        return;
    mapping found;
    while (reader.next(found)) {
        if (found.end <= address || found.start >= address + bytes)
            continue;
        const char *name = found.name[0] != 0 ? found.name : "memory of this process";
        const size_t length = strlen(name);
        name += length > mapping_name_max ? length - mapping_name_max : 0;
        snprintf(text, text_bytes, "%s at 0x%llx to 0x%llx", name, static_cast<unsigned long long>(found.start),
                 static_cast<unsigned long long>(found.end));
        break;
    }
    reader.close();
}

ty_status fork_guard::start() {
    void *page;
    ty_status status = map_memory(page_bytes, memory_hint::none, &page);
    if (status != TY_OK)
        return status;
    if (sys::madvise(page, page_bytes, MADV_WIPEONFORK) != 0) {
        int error = errno;
        unmap_memory(page, page_bytes);
        return failure(TY_E_UNSUPPORTED, "mark memory as belonging to this process alone")
            .cause(error)
            .remedy("Linux 4.14 or newer is needed");
    }
    uint64_t *word = static_cast<uint64_t *>(page);
    *word = 1;
    word_ = word;
    return TY_OK;
}

ty_status shared_number::start() {
    void *page = sys::mmap(nullptr, page_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return memory_failure("share a number with children", nullptr, page_bytes);
    word_ = static_cast<std::atomic<uint64_t> *>(page);
    return TY_OK;
}

void shared_number::stop() {
    if (word_ != nullptr)
        unmap_memory(word_, page_bytes);
    word_ = nullptr;
}

void fork_guard::stop() {
    if (word_ != nullptr)
        unmap_memory(const_cast<uint64_t *>(word_), page_bytes);
    word_ = nullptr;
}

} // namespace taiyen::os
