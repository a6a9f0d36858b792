// The program and the shared objects that are loaded now.
#pragma once

#include <cstddef>
#include <cstdint>
#include <elf.h>
#include <taiyen/status.h>

namespace taiyen::os {

inline constexpr size_t build_bytes_max = 32;

struct loaded_object {
    uintptr_t load; // what is added to the addresses in its file
    uintptr_t begin;
    uintptr_t end;
    uint8_t
        build[build_bytes_max]; // its build id; where it was linked without one, a checksum of what is never written
    uint32_t build_bytes;
    bool program;
    bool of_kernel; // the vDSO: it has no file, and another kernel has another one
    bool gone;      // false; for who keeps ones that were loaded
    bool has_build_id;
    char name[128];  // the last part of its path, cut
    char path[1024]; // empty where it is longer
};

// The program first, then what the dynamic linker asks for a name, in that order. Not what was loaded into a namespace
// of its own (dlmopen). The first failure ends it.
ty_status each_loaded_object(ty_status (*visit)(void *context, const loaded_object &object), void *context);

// Whether a part of an object counts for the checksum that is its build, by its flags (PF_*).
inline bool is_only_read(uint32_t flags) {
    return (flags & (PF_R | PF_W)) == PF_R;
}

// From the program's first address to its last one, and from the first address of a library to the last one of any; 0
// where there are none. A few microseconds.
struct code_zones {
    uint64_t program_begin;
    uint64_t program_end;
    uint64_t libraries_begin;
    uint64_t libraries_end;
};
code_zones find_code_zones();

} // namespace taiyen::os
