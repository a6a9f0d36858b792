// Spaces in claimed ranges: in a zone of the address space where the library chooses the places itself.
#include "space.hpp"

#include "../base/base.hpp"
#include "../calls/calls.hpp"

#include <atomic>
#include <cstring>
#include <sys/auxv.h>

// Present in a program under ThreadSanitizer, which ends a program with mappings that it does not expect.
extern "C" [[gnu::weak]] void __tsan_init();

namespace taiyen::os {
namespace {

// Above the addresses of programs and AddressSanitizer's blocks, below libraries and stacks.
constexpr uintptr_t zone_low = 0x650000000000;
constexpr uintptr_t zone_high = 0x6f0000000000;
constexpr uintptr_t zone_start_max = 0x670000000000; // the first range starts at a random place below this
constexpr size_t start_unit = size_t{1} << 30;
constexpr size_t gap_bytes = segment_bytes; // between ranges, to detect overruns
constexpr unsigned claims_max = 64;

struct range {
    uintptr_t start;
    uintptr_t end;
};
constexpr size_t ranges_max = 4096;

// In rising order. Guarded by `ranges_taken`, a try-lock: a thread that finds it taken does without, so that a fork at
// any moment leaves no thread waiting.
range ranges[ranges_max];
size_t range_count;
uintptr_t next_place;
std::atomic<bool> unavailable{false};
std::atomic<bool> ranges_taken{false};

// Derived from the kernel's random bytes for each program.
uintptr_t first_place() {
    uint64_t random = 0;
    if (const void *drawn = reinterpret_cast<const void *>(getauxval(AT_RANDOM)))
        memcpy(&random, drawn, sizeof random);
    return zone_low + random % ((zone_start_max - zone_low) / start_unit) * start_unit;
}

// The first range that ends after an address.
size_t first_after(uintptr_t address) {
    size_t low = 0, high = range_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (ranges[middle].end > address)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

// Z1: ranges do not overlap. The next place, at or after an address, that is in no range; 0: none before the zone's
// end.
uintptr_t free_place(uintptr_t from, size_t bytes, size_t alignment) {
    uintptr_t place = align_up(from, alignment);
    const uintptr_t until = fault("space_reaches_into_the_next_range") ? place : place + bytes;
    for (size_t i = first_after(place); i < range_count && ranges[i].start < until; i++)
        place = align_up(ranges[i].end, alignment);
    return place <= zone_high - bytes ? place : 0;
}

enum class probe { free, occupied, impossible };

// Asks the kernel about a place, by a trial mapping: it checks for other mappings before any limit.
probe look_at(uintptr_t place, size_t bytes) {
    void *wanted = reinterpret_cast<void *>(place);
    void *got =
        sys::mmap(wanted, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (got == MAP_FAILED)
        return errno == EEXIST ? probe::occupied : errno == ENOMEM || errno == EAGAIN ? probe::free : probe::impossible;
    bool there = got == wanted;
    if (sys::munmap(got, bytes) != 0)
        return probe::impossible;
    return there ? probe::free : probe::impossible;
}

void enter(uintptr_t place, size_t bytes) {
    size_t at = first_after(place);
    memmove(ranges + at + 1, ranges + at, (range_count - at) * sizeof *ranges);
    ranges[at] = {place, place + bytes};
    range_count++;
}

uintptr_t find_place(size_t bytes, size_t alignment) {
    if (next_place == 0)
        next_place = first_place();
    uintptr_t from = next_place;
    bool around = false;
    for (unsigned tries = 0; tries < claims_max; tries++) {
        uintptr_t place = free_place(from, bytes, alignment);
        if (place == 0) {
            if (around)
                return 0;
            around = true;
            from = zone_low;
            continue;
        }
        probe found = look_at(place, bytes);
        if (found == probe::free)
            return place;
        if (found == probe::impossible) {
            unavailable.store(true, std::memory_order_relaxed);
            return 0;
        }
        from = place + bytes;
    }
    return 0;
}

} // namespace

[[gnu::cold]] void *claim_range(size_t bytes, size_t alignment) {
    if (!address_usable(zone_low, zone_high - zone_low) || &__tsan_init != nullptr ||
        unavailable.load(std::memory_order_relaxed) || bytes == 0 || bytes > zone_high - zone_low ||
        ranges_taken.exchange(true, std::memory_order_acquire))
        return nullptr;
    int kept = errno;
    size_t whole = align_up(bytes, page_bytes) + gap_bytes;
    uintptr_t place = range_count < ranges_max ? find_place(whole, alignment) : 0;
    if (place != 0) {
        enter(place, whole);
        next_place = place + whole;
    }
    ranges_taken.store(false, std::memory_order_release);
    errno = kept;
    return reinterpret_cast<void *>(place);
}

// If another thread has `ranges_taken`, the range stays claimed, which costs only addresses.
[[gnu::cold]] void release_range(const void *given) {
    if (ranges_taken.exchange(true, std::memory_order_acquire))
        return;
    uintptr_t start = reinterpret_cast<uintptr_t>(given);
    size_t at = first_after(start);
    if (at < range_count && ranges[at].start == start) {
        memmove(ranges + at, ranges + at + 1, (range_count - at - 1) * sizeof *ranges);
        range_count--;
    }
    ranges_taken.store(false, std::memory_order_release);
}

// Z2: no mapping of others is replaced or unmapped.
[[gnu::cold]] ty_status map_claimed(void *address, size_t bytes) {
    void *got = sys::mmap(address, bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE |
                              (fault("pages_mapped_over_others") ? MAP_FIXED : MAP_FIXED_NOREPLACE),
                          -1, 0);
    if (got == address)
        return TY_OK;
    int error = errno;
    if (got != MAP_FAILED) {
        sys::munmap(got, bytes);
        error = EEXIST;
    }
    return failure(TY_E_MEMORY, "map %zu bytes at %p", bytes, address)
        .cause(error)
        .remedy("free memory, or raise the limits: ulimit -v, ulimit -d, ulimit -l, sysctl vm.max_map_count, "
                "vm.overcommit_memory");
}

[[gnu::cold]] ty_status space::create_claimed(size_t most_bytes, size_t alignment) {
    static constexpr space_kind kind = {map_claimed, [](void *memory, size_t provided, size_t) {
                                            if (provided != 0)
                                                unmap_memory(memory, provided);
                                            release_range(memory);
                                        }};
    size_t bytes = align_up(most_bytes, page_bytes);
    void *memory = claim_range(bytes, alignment);
    return memory != nullptr ? create(kind, memory, bytes) : create_reserved(bytes, alignment);
}

} // namespace taiyen::os
