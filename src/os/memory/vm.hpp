// Address space and memory: what the kernel gives. Addresses and sizes are multiples of page_bytes.
#pragma once

#include "../base/base.hpp"

#include <cstddef>
#include <cstdint>
#include <taiyen/status.h>

namespace taiyen::os {

// The zone in which persistent heaps are placed: address-space randomisation puts nothing there (executables, the
// program break, libraries and stacks lie above it), and AddressSanitizer's and ThreadSanitizer's shadows leave it
// free.
struct address_zone {
    uintptr_t low;
    uintptr_t high;
};
address_zone persistent_zone();

// Whether this kind of build could map the range at all: a sanitizer leaves a program only parts of the address space.
bool address_usable(uintptr_t address, size_t bytes);

// A free range within [low, high), at its low or its high end. Reads the process's mappings; somebody else may take the
// range before the caller reserves it. Returns 0 if there is none.
enum class zone_end { low, high };
uintptr_t find_free(size_t bytes, size_t alignment, zone_end from, address_zone within);

// Reserves address space: nothing may be read or written there. address 0: anywhere, aligned to alignment.
// Expected: TY_E_ADDRESS (taken; the detail says by what), TY_E_MEMORY.
ty_status reserve(uintptr_t address, size_t bytes, size_t alignment, void **reserved);

// What the process may map in all (RLIMIT_AS). SIZE_MAX: as much as there is.
size_t address_space_max();

// The most address space that one reservation should take, so that it starves nobody: half of what RLIMIT_AS allows the
// process, and what has tables of a bearable size, in writable memory, where RLIMIT_DATA or the kernel
// (vm.overcommit_memory 2) counts what is mapped and not what is used. SIZE_MAX: nothing bounds it.
size_t reserve_advised_max();

// Makes reserved pages readable and writable; they read as zeros when first touched. Expected: TY_E_MEMORY.
ty_status commit(void *address, size_t bytes);

// Gives the memory of committed pages back; they stay committed and read as zeros when touched again.
ty_status decommit(void *address, size_t bytes);

// Ends a reservation, or a part of it.
ty_status release(void *address, size_t bytes);

// reserve and commit of anonymous memory, for the library's own tables; lazily backed. huge asks for 2 MiB pages.
enum class memory_hint { none, huge };
ty_status map_memory(size_t bytes, memory_hint hint, void **memory);
void unmap_memory(void *memory, size_t bytes);

// Changes whether pages may be written.
ty_status protect(void *address, size_t bytes, bool writable);

// Takes all access away from committed pages, whose content stays; commit gives it back.
ty_status forbid(void *address, size_t bytes);

// Asks for huge pages in the part of the range that whole ones fill, or for none there. A wish: ignored where the
// kernel cannot.
void advise_huge(void *address, size_t bytes, bool huge = true);

// Of as many small pages of private memory as a huge one has: whether half of them, or more, are resident. False where
// the kernel does not say.
bool half_resident_huge(void *page);

// If the page is part of a huge one, that becomes small pages (MADV_COLD, Linux 5.4, of a part of one: 160 us while it
// is mapped whole). A wish.
void split_huge_page(void *page);

// Does what first writes to all pages of a range would do, at once: memory is found and what is mapped there is copied.
// A wish: what the kernel cannot do the writes will.
void populate(void *address, size_t bytes);

// Puts anonymous memory in the place of whatever is mapped there, readable and writable; it reads as zeros.
// Expected: TY_E_MEMORY.
ty_status replace_with_memory(void *address, size_t bytes);

// The mapping at `from`, whole, with its pages, takes the place of whatever is mapped at `to`; for other threads that
// happens at once. After a failure both may be as they were, or nothing is at `to`. Expected: TY_E_MEMORY.
ty_status move_mapping(void *from, void *to, size_t bytes);

// Whether a core file has these pages; without this it does, and of a file's private mapping also what was never
// touched. A wish.
void dump(void *address, size_t bytes, bool dumped);

// Tells that a file mapping will be touched in random order, so that nothing is read ahead. A wish: ignored where
// the kernel cannot.
void advise_random(void *address, size_t bytes);

// Bytes of the range that are resident (mincore would count the page cache; this counts this process's own entries).
// Where the kernel cannot say: 0.
size_t resident_bytes(const void *address, size_t bytes);

// Says what occupies the range, for error texts, such as "[heap] at 0x555555559000 to 0x55555557a000": of a long name
// the end. Empty if nothing does. A text of this size has room in a remedy.
inline constexpr size_t mapping_text_bytes = 176, mapping_name_max = mapping_text_bytes - 48;
void describe_mapping(uintptr_t address, size_t bytes, char *text, size_t text_bytes);

// Memory of an object that callers have handles of, and that is no more: it reads as zeros, and nothing else is mapped
// there, until so many others were retired after it. Who uses a handle too long can be told so.
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

} // namespace taiyen::os
