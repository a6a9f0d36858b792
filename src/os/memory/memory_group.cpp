// Finds the control groups of the process that limit memory. /proc/self/cgroup has the path of the process in each
// hierarchy, /proc/self/mountinfo where that is mounted, and which part of it: a container sees only its own part.
#include "memory_group.hpp"

#include "../calls/calls.hpp"
#include "../process/process.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace taiyen::os {
namespace {

// Reads lines from a file of any length; longer lines are cut.
class line_reader {
public:
    explicit line_reader(const char *path) : fd_(open_system_file(path)) {}
    ~line_reader() {
        if (fd_ >= 0)
            sys::close(fd_);
    }
    line_reader(const line_reader &) = delete;
    line_reader &operator=(const line_reader &) = delete;

    bool next(char *line, size_t line_bytes) {
        size_t length = 0;
        for (char c; get(&c);) {
            if (c == '\n') {
                line[length] = 0;
                return true;
            }
            if (length + 1 < line_bytes)
                line[length++] = c;
        }
        line[length] = 0;
        return length != 0;
    }

private:
    bool get(char *c) {
        if (used_ == filled_) {
            ssize_t got;
            do
                got = fd_ < 0 ? 0 : sys::read(fd_, buffer_, sizeof buffer_);
            while (got < 0 && errno == EINTR);
            if (got <= 0)
                return false;
            used_ = 0;
            filled_ = static_cast<size_t>(got);
        }
        *c = buffer_[used_++];
        return true;
    }

    int fd_;
    size_t used_ = 0;
    size_t filled_ = 0;
    char buffer_[1024];
};

// Whether a comma-separated list contains this word.
bool lists(const char *list, const char *word) {
    const size_t length = strlen(word);
    for (const char *at = list; at != nullptr; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, word, length) == 0 && (at[length] == ',' || at[length] == 0))
            return true;
    }
    return false;
}

using version = memory_group::version;

struct group_places {
    char first[memory_group::longest] = {}; // empty: the process is in none
    char second[memory_group::longest] = {};
};

// The paths of the process in the hierarchies: a line of /proc/self/cgroup is NUMBER:CONTROLLERS:PATH.
void find_places(const char *cgroup_path, group_places *places) {
    line_reader reader(cgroup_path);
    char line[memory_group::longest + 64];
    while (reader.next(line, sizeof line)) {
        char *controllers = strchr(line, ':');
        char *found = controllers != nullptr ? strchr(controllers + 1, ':') : nullptr;
        if (found == nullptr)
            continue;
        *found++ = 0;
        controllers++;
        char *place = lists(controllers, "memory")                   ? places->first
                      : strcmp(line, "0:") == 0 && *controllers == 0 ? places->second
                                                                     : nullptr;
        if (place != nullptr && *place == 0 && strlen(found) < memory_group::longest)
            strcpy(place, found);
    }
}

// The next word of a line; replaces the space after it with a zero.
char *take_word(char **line) {
    char *word = *line;
    char *end = word + strcspn(word, " ");
    *line = *end != 0 ? end + 1 : end;
    *end = 0;
    return word;
}

// A line of /proc/self/mountinfo: ID PARENT DEVICE ROOT MOUNT_POINT OPTIONS OPTIONAL... - TYPE SOURCE SUPER_OPTIONS
version take_mount(char *line, const char **root, const char **mount_point) {
    char *kinds = strstr(line, " - ");
    if (kinds == nullptr)
        return version::none;
    kinds += 3;
    const char *type = take_word(&kinds);
    take_word(&kinds);
    const char *options = take_word(&kinds);
    for (int skipped = 0; skipped < 3; skipped++)
        take_word(&line);
    *root = take_word(&line);
    *mount_point = take_word(&line);
    if (strcmp(type, "cgroup2") == 0)
        return version::second;
    return strcmp(type, "cgroup") == 0 && lists(options, "memory") ? version::first : version::none;
}

// The path below the mounted part of the hierarchy; "" (that part itself) if the path is not below it.
const char *below(const char *place, const char *root) {
    size_t length = strcmp(root, "/") == 0 ? 0 : strlen(root);
    if (strncmp(place, root, length) != 0 || (place[length] != '/' && place[length] != 0))
        return "";
    return strcmp(place + length, "/") == 0 ? "" : place + length;
}

void take_group(const char *place, version kind, const char *root, const char *mount_point, memory_group *group) {
    int length = snprintf(group->folder, sizeof group->folder, "%s%s", mount_point, below(place, root));
    if (length < 0 || static_cast<size_t>(length) >= sizeof group->folder)
        return; // too long: treated as no group
    group->kind = kind;
    group->mount_length = strlen(mount_point);
}

// 0: none.
uint64_t limit_of(const char *folder, memory_group::version kind) {
    uint64_t limit = 0, high = 0;
    if (kind == memory_group::version::first)
        return read_group_number(folder, "memory.limit_in_bytes", &limit) ? limit : 0;
    bool limited = read_group_number(folder, "memory.max", &limit); // "max" is not a number
    bool slowed = read_group_number(folder, "memory.high", &high);
    return limited && slowed ? std::min(limit, high) : limited ? limit : high;
}

} // namespace

bool read_group_text(const char *folder, const char *file, char *text, size_t text_bytes) {
    char path[memory_group::longest + 64];
    int length = snprintf(path, sizeof path, "%s/%s", folder, file);
    return length > 0 && static_cast<size_t>(length) < sizeof path && read_text(path, text, text_bytes);
}

bool read_group_number(const char *folder, const char *file, uint64_t *number) {
    char text[32];
    if (!read_group_text(folder, file, text, sizeof text) || text[0] < '0' || text[0] > '9')
        return false;
    *number = strtoull(text, nullptr, 10);
    return true;
}

void each_group_limit(const memory_group &group, void *context, group_level level) {
    if (group.kind == memory_group::version::none)
        return;
    char folder[memory_group::longest];
    strcpy(folder, group.folder);
    for (;;) {
        if (uint64_t limit = limit_of(folder, group.kind))
            level(context, group, folder, limit);
        char *end = strrchr(folder + group.mount_length, '/');
        if (end == nullptr)
            return;
        *end = 0;
    }
}

void memory_limits::start() {
    start("/proc/self/cgroup", "/proc/self/mountinfo");
}

void memory_limits::start(const char *cgroup_path, const char *mountinfo_path) {
    for (memory_group &group : groups_)
        group = {};
    group_places places;
    find_places(cgroup_path, &places);
    line_reader reader(mountinfo_path);
    char line[2 * memory_group::longest];
    while (reader.next(line, sizeof line)) {
        const char *root, *mount_point;
        const version kind = take_mount(line, &root, &mount_point);
        const bool is_first = kind == version::first;
        const char *place = is_first ? places.first : places.second;
        memory_group &group = groups_[is_first ? 0 : 1];
        if (kind != version::none && *place != 0 && group.kind == version::none) // the first of several mounts
            take_group(place, kind, root, mount_point, &group);
    }
}

uint64_t memory_limits::limit() const {
    uint64_t lowest = UINT64_MAX;
    for (const memory_group &group : groups_)
        each_group_limit(group, &lowest, [](void *context, const memory_group &, const char *, uint64_t limit) {
            auto &least = *static_cast<uint64_t *>(context);
            least = std::min(least, limit);
        });
    return lowest;
}

} // namespace taiyen::os
