// How much memory the process may use, and how much of that is left: of the machine, and of the control groups that it
// is in (versions 1 and 2), of which the narrowest counts.
#pragma once

#include <cstddef>
#include <cstdint>

namespace taiyen::os {

struct memory_room {
    uint64_t limit;     // UINT64_MAX: the kernel does not tell
    uint64_t available; // of it; the kernel's cache of files counts as available
};

// One kind of control group that the process is in: a folder and the folders above it have a limit each.
struct memory_group {
    enum class version : uint8_t { none, first, second };
    static constexpr size_t longest = 512;
    version kind = version::none;
    size_t mount_length = 0; // of `folder`: the mount point, which has nothing above it
    char folder[longest] = {};
};

class memory_watch {
public:
    // Finds the control groups of this process as it is now. About 100 µs. Cannot fail: what cannot be read limits
    // nothing.
    void start();
    // The same for a process whose /proc files say this. For tests.
    void start(const char *cgroup_path, const char *mountinfo_path);

    uint64_t limit() const;  // of the groups: UINT64_MAX if there is none
    memory_room now() const; // of groups and machine; some 30 µs

private:
    memory_group groups_[2];
};

// The machine's memory, or the least that a group of this process allows, as it was at the first call. For persistent
// heaps: topology.hpp knows fewer groups, in less code.
uint64_t usable_memory_bytes();

// Private memory of this process that is resident, but for file pages. 0 where the kernel does not tell.
uint64_t private_bytes();

} // namespace taiyen::os
