// Address space and memory from the kernel. Addresses and sizes are multiples of page_bytes.
#pragma once

#include "../base/base.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <taiyen/status.h>

namespace taiyen::os {

// The zone in which persistent heaps are placed: address-space randomisation places nothing there (executables, the
// program break, libraries and stacks lie above it), and the shadows of AddressSanitizer and ThreadSanitizer leave it
// free.
struct address_zone {
    uintptr_t low;
    uintptr_t high;
};
address_zone persistent_zone();

// Whether this kind of build can map the range at all: a sanitizer leaves a program only parts of the address space.
bool address_usable(uintptr_t address, size_t bytes);

// A free range within [low, high), at its low or its high end. Reads the process's mappings; another thread may take
// the range before the caller reserves it. Returns 0 if none.
enum class zone_end { low, high };
uintptr_t find_free(size_t bytes, size_t alignment, zone_end from, address_zone within);

// Reserves address space without access. address 0: anywhere, aligned to alignment.
// Expected: TY_E_ADDRESS (taken; the detail says by what), TY_E_MEMORY.
ty_status reserve(uintptr_t address, size_t bytes, size_t alignment, void **reserved);

// The process's limit on mappings (RLIMIT_AS). SIZE_MAX: none.
size_t address_space_max();

// The most address space that one reservation should take, so that others have enough: half of RLIMIT_AS, and little
// enough for the tables that lie in writable memory, where RLIMIT_DATA or the kernel (vm.overcommit_memory 2) counts
// what is mapped and not what is used. SIZE_MAX: no limit.
size_t reserve_advised_max();

// Makes reserved pages readable and writable; they read as zeros when first touched. Expected: TY_E_MEMORY.
ty_status commit(void *address, size_t bytes);

// A store that changes nothing, and is atomic, as other threads may store to the same byte: the page counts as written,
// and is a private copy where the mapping is private. ThreadSanitizer would report a race with the stores of others;
// but this one loses none of them.
[[gnu::no_sanitize_thread]] inline void store_what_is_there(char *byte) {
#if defined(__x86_64__)
    // Assembly, as the compiler may turn an atomic OR with 0 into a plain load.
    asm volatile("lock orb $0, %0" : "+m"(*byte) : : "memory");
#else
    __atomic_fetch_or(byte, 0, __ATOMIC_SEQ_CST);
#endif
}

// Releases the memory of committed pages; they stay committed and read as zeros when touched again.
ty_status decommit(void *address, size_t bytes);

// Ends a reservation, or a part of it.
ty_status release(void *address, size_t bytes);

// reserve and commit of anonymous memory, for the library's own tables; lazily backed. huge asks for 2 MiB pages.
enum class memory_hint { none, huge };
ty_status map_memory(size_t bytes, memory_hint hint, void **memory);
void unmap_memory(void *memory, size_t bytes);

// Makes pages writable or read-only.
ty_status protect(void *address, size_t bytes, bool writable);

// Makes committed pages inaccessible; their content stays. commit makes them accessible again.
ty_status forbid(void *address, size_t bytes);

// Asks for huge pages for the whole huge pages in the range, or for none there. Best effort.
void advise_huge(void *address, size_t bytes, bool huge = true);

// For a huge page's range of private memory: whether at least half of its small pages are resident. False if the kernel
// does not say.
bool half_resident_huge(void *page);

// Splits the huge page that contains this page, if any, into small ones (MADV_COLD, Linux 5.4, of a part of one: 160 us
// while it is mapped whole). Best effort.
void split_huge_page(void *page);

// Does at once what the first writes to all pages of a range would do: allocates memory and copies what is mapped
// there. Best effort: later writes do the rest.
void populate(void *address, size_t bytes);

// Replaces whatever is mapped there with anonymous memory, readable and writable; it reads as zeros.
// Expected: TY_E_MEMORY.
ty_status replace_with_memory(void *address, size_t bytes);

// Moves the whole mapping at `from`, with its pages, over whatever is mapped at `to`; atomic for other threads. After a
// failure both may be unchanged, or nothing is mapped at `to`. Expected: TY_E_MEMORY.
ty_status move_mapping(void *from, void *to, size_t bytes);

// Whether a core file includes these pages; by default it does, and for a private file mapping also pages that were
// never touched. Best effort.
void dump(void *address, size_t bytes, bool dumped);

// Advises that a file mapping will be accessed in random order, so that the kernel reads nothing ahead. Best effort.
void advise_random(void *address, size_t bytes);

// Resident bytes of the range (mincore would count the page cache; this counts this process's own entries). 0 if the
// kernel does not say.
size_t resident_bytes(const void *address, size_t bytes);

// Describes what occupies the range, for error texts, such as "[heap] at 0x555555559000 to 0x55555557a000": the end of
// a long name. Empty if nothing does. A text of this size fits into a remedy.
inline constexpr size_t mapping_text_bytes = 176, mapping_name_max = mapping_text_bytes - 48;
void describe_mapping(uintptr_t address, size_t bytes, char *text, size_t text_bytes);

// Retires the memory of a destroyed object of which callers may still have handles: it reads as zeros, and nothing else
// is mapped there, until retired_max others were retired after it. So use of an old handle can be detected.
inline constexpr size_t retired_max = 64;
void retire_memory(void *memory, size_t bytes);

// A word that is not 0 in the process that made it, and 0 in any forked child (MADV_WIPEONFORK).
class fork_guard {
public:
    ty_status start();
    void stop();
    bool forked() const { return word_ != nullptr && *word_ == 0; } // in a child of the process that called start

private:
    const volatile uint64_t *word_ = nullptr;
};

// A number that the children of the process that called start see change.
class shared_number {
public:
    ty_status start();
    void stop();
    void set(uint64_t number) {
        if (word_ != nullptr)
            word_->store(number);
    }
    uint64_t get() const { return word_ != nullptr ? word_->load() : 0; }

private:
    std::atomic<uint64_t> *word_ = nullptr;
};

} // namespace taiyen::os
