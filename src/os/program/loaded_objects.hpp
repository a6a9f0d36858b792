// The program and the shared objects that are loaded now.
#pragma once

#include <cstddef>
#include <cstdint>
#include <elf.h>
#include <taiyen/status.h>

namespace taiyen::os {

inline constexpr const char *program_link = "/proc/self/exe";

inline constexpr size_t build_bytes_max = 32;

struct loaded_object {
    uintptr_t load; // added to the addresses in its file
    uintptr_t begin;
    uintptr_t end;
    uint8_t build[build_bytes_max]; // its build id; if linked without one, a checksum of its read-only parts
    uint32_t build_bytes;
    bool program;
    bool of_kernel; // the vDSO: it has no file, and each kernel has its own
    bool gone;      // false here; for callers that keep objects that were loaded
    bool has_build_id;
    char name[128];  // the last component of its path, cut
    char path[1024]; // empty if longer
};

// The program first, then objects in the dynamic linker's search order. Not those in other namespaces (dlmopen). The
// first failure ends the iteration.
ty_status each_loaded_object(ty_status (*visit)(void *context, const loaded_object &object), void *context);

// Whether a part of an object counts in the checksum that replaces a build id, by its flags (PF_*).
inline bool is_only_read(uint32_t flags) {
    return (flags & (PF_R | PF_W)) == PF_R;
}

// From the program's first address to its last, and from the first address of any library to the last; 0: none. Takes a
// few microseconds.
struct code_zones {
    uint64_t program_begin;
    uint64_t program_end;
    uint64_t libraries_begin;
    uint64_t libraries_end;
};
constexpr bool operator==(const code_zones &a, const code_zones &b) {
    return a.program_begin == b.program_begin && a.program_end == b.program_end &&
           a.libraries_begin == b.libraries_begin && a.libraries_end == b.libraries_end;
}
code_zones find_code_zones();

} // namespace taiyen::os
