// The values that change: memory available in each control group and in the machine.
#include "memory_available.hpp"

#include "../calls/calls.hpp"
#include "../process/process.hpp"
#include "memory_group.hpp"
#include "vm.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

namespace taiyen::os {
namespace {

// The number after a name at the start of a line.
bool find_number(const char *text, const char *name, uint64_t *number) {
    const size_t length = strlen(name);
    for (const char *line = text; line != nullptr; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, name, length) == 0 && (line[length] == ' ' || line[length] == ':')) {
            *number = strtoull(line + length + 1, nullptr, 10);
            return true;
        }
    }
    return false;
}

// Pages of files in the kernel's cache, which are freed on demand.
uint64_t file_cache(const char *statistics, bool first_version) {
    uint64_t active = 0, inactive = 0;
    find_number(statistics, first_version ? "total_active_file" : "active_file", &active);
    find_number(statistics, first_version ? "total_inactive_file" : "inactive_file", &inactive);
    return active + inactive;
}

void narrow(memory_available &room, const memory_available &other) {
    room.limit = std::min(room.limit, other.limit);
    room.available = std::min(room.available, other.available);
}

memory_available machine_room() {
    char text[2048];
    uint64_t total_kb, available_kb;
    if (!read_text("/proc/meminfo", text, sizeof text) || !find_number(text, "MemTotal", &total_kb) ||
        !find_number(text, "MemAvailable", &available_kb))
        return {UINT64_MAX, UINT64_MAX};
    return {total_kb << 10, available_kb << 10};
}

struct room_sink {
    memory_available room;

    static void level(void *context, const memory_group &group, const char *folder, uint64_t limit) {
        char text[4096]; // the fields are at the start of memory.stat, or near its end in version 1
        const bool first_version = group.kind == memory_group::version::first;
        uint64_t used = 0;
        if (!read_group_number(folder, first_version ? "memory.usage_in_bytes" : "memory.current", &used))
            return;
        uint64_t cache =
            read_group_text(folder, "memory.stat", text, sizeof text) ? file_cache(text, first_version) : 0;
        used -= std::min(used, cache);
        narrow(static_cast<room_sink *>(context)->room, {limit, limit - std::min(limit, used)});
    }
};

} // namespace

memory_available memory_limits::now() const {
    room_sink sink{machine_room()};
    for (const memory_group &group : groups_)
        each_group_limit(group, &sink, room_sink::level);
    return sink.room;
}

uint64_t usable_memory_bytes() {
    static std::atomic<uint64_t> known{0};
    uint64_t bytes = known.load(std::memory_order_relaxed);
    if (bytes == 0) {
        memory_limits groups;
        groups.start();
        bytes = std::min<uint64_t>(machine().memory_bytes, groups.limit());
        known.store(bytes, std::memory_order_relaxed);
    }
    return bytes;
}

uint64_t private_bytes() {
    char text[128];
    if (!read_text("/proc/self/statm", text, sizeof text))
        return 0;
    char *at;
    strtoull(text, &at, 10); // mapped pages
    uint64_t resident = strtoull(at, &at, 10);
    uint64_t of_files = strtoull(at, &at, 10);
    return (resident - std::min(resident, of_files)) * page_bytes;
}

} // namespace taiyen::os
