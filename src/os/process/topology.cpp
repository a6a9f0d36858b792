#include "topology.hpp"

#include "../base/base.hpp"
#include "../calls/calls.hpp"
#include "text_file.hpp"

#include <bit>
#include <cstdio>
#include <cstring>

namespace taiyen::os {
namespace {

unsigned usable_cores() {
    constexpr size_t words = 128; // 8,192 cores
    unsigned long mask[words] = {};
    if (sys::affinity(sizeof mask, reinterpret_cast<cpu_set_t *>(mask)) != 0) {
        long online = sysconf(_SC_NPROCESSORS_ONLN);
        return online > 0 ? static_cast<unsigned>(online) : 1;
    }
    unsigned cores = 0;
    for (unsigned long word : mask)
        cores += static_cast<unsigned>(std::popcount(word));
    return cores > 0 ? cores : 1;
}

// The number of entries in a list such as "0-3,8".
unsigned count_list(const char *list) {
    unsigned count = 0;
    while (*list >= '0' && *list <= '9') {
        char *end;
        unsigned long first = strtoul(list, &end, 10);
        unsigned long last = *end == '-' ? strtoul(end + 1, &end, 10) : first;
        count += last >= first ? static_cast<unsigned>(last - first + 1) : 1;
        list = *end == ',' ? end + 1 : end;
    }
    return count;
}

unsigned numa_node_count() {
    char list[256];
    unsigned count = read_text("/sys/devices/system/node/online", list, sizeof list) ? count_list(list) : 0;
    return count > 0 ? count : 1;
}

// The lowest limit from the process's control group up to the root.
uint64_t control_group_limit() {
    uint64_t lowest = UINT64_MAX;
    uint64_t limit;
    char groups[1024];
    char *path = nullptr;
    if (read_text("/proc/self/cgroup", groups, sizeof groups))
        path = strncmp(groups, "0::/", 4) == 0 ? groups + 3 : strstr(groups, "\n0::/");
    if (path != nullptr && *path == '\n')
        path += 4;
    if (path != nullptr)
        path[strcspn(path, "\n")] = 0;
    while (path != nullptr && *path != 0) {
        char file[1100];
        snprintf(file, sizeof file, "/sys/fs/cgroup%s/memory.max", path);
        if (read_number(file, &limit) && limit < lowest)
            lowest = limit;
        *strrchr(path, '/') = 0;
    }
    if (read_number("/sys/fs/cgroup/memory.max", &limit) && limit < lowest)
        lowest = limit;
    if (read_number("/sys/fs/cgroup/memory/memory.limit_in_bytes", &limit) && limit < lowest)
        lowest = limit;
    return lowest;
}

size_t usable_memory() {
    constexpr size_t modest = size_t{1} << 30; // where the kernel says nothing
    uint64_t limit = control_group_limit();
    struct sysinfo info;
    uint64_t physical = sys::sysinfo(&info) == 0 ? static_cast<uint64_t>(info.totalram) * info.mem_unit : modest;
    return static_cast<size_t>(limit < physical ? limit : physical);
}

topology found;
pthread_once_t once = PTHREAD_ONCE_INIT;

} // namespace

topology survey_machine() {
    long line = sysconf(_SC_LEVEL1_DCACHE_LINESIZE);
    topology result;
    result.cache_line_bytes = line > 0 ? static_cast<size_t>(line) : 64;
    result.page_bytes = page_bytes;
    result.cores = usable_cores();
    result.numa_nodes = numa_node_count();
    result.memory_bytes = usable_memory();
    return result;
}

const topology &machine() {
    pthread_once(&once, [] { found = survey_machine(); });
    return found;
}

} // namespace taiyen::os
