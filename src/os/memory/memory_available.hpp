// How much memory the process may use, and how much of that is available: in the machine, and in its control groups
// (versions 1 and 2), of which the tightest counts.
#pragma once

#include <cstddef>
#include <cstdint>

namespace taiyen::os {

struct memory_available {
    uint64_t limit;     // UINT64_MAX: not known
    uint64_t available; // of the limit; the kernel's cache of files counts as available
};

// A control group of the process in one hierarchy: a directory, which has a limit, as has each one above it.
struct memory_group {
    enum class version : uint8_t { none, first, second };
    static constexpr size_t longest = 512;
    version kind = version::none;
    size_t mount_length = 0; // of `folder`: the mount point, the topmost directory
    char folder[longest] = {};
};

class memory_limits {
public:
    // Finds the current control groups of this process. Takes about 100 µs. Cannot fail: what cannot be read limits
    // nothing.
    void start();
    // The same for a process with these /proc files. For tests.
    void start(const char *cgroup_path, const char *mountinfo_path);

    uint64_t limit() const;       // of the groups; UINT64_MAX: none
    memory_available now() const; // of groups and machine; takes some 30 µs

private:
    memory_group groups_[2];
};

// The machine's memory, or the lowest limit of this process's groups, as of the first call. For persistent heaps:
// topology.hpp knows fewer groups, in less code.
uint64_t usable_memory_bytes();

// Resident private memory of this process, without file pages. 0 if the kernel does not say.
uint64_t private_bytes();

} // namespace taiyen::os
