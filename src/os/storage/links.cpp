#include "links.hpp"

#include "../base/base.hpp"
#include "../calls/calls.hpp"

#include <climits>
#include <cstring>

namespace taiyen::os {
namespace {

constexpr int links_max = 40; // the kernel's limit

size_t folder_length(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash == nullptr ? 0 : static_cast<size_t>(slash + 1 - path);
}

// One step: replaces the path by the target of its last component. False: not a link, or too long.
bool follow_one(char (&path)[PATH_MAX]) {
    char target[PATH_MAX];
    ssize_t length = sys::readlink(path, target, sizeof target);
    if (length <= 0)
        return false;
    size_t kept = target[0] == '/' ? 0 : folder_length(path);
    if (kept + static_cast<size_t>(length) >= sizeof path)
        return false;
    memcpy(path + kept, target, static_cast<size_t>(length));
    path[kept + static_cast<size_t>(length)] = 0;
    return true;
}

// Makes the directory absolute, without links; unchanged on failure.
void follow_folder(char (&path)[PATH_MAX]) {
    char folder[PATH_MAX], whole[PATH_MAX];
    size_t length = folder_length(path);
    memcpy(folder, path, length);
    strcpy(folder + length, length == 0 ? "." : "");
    if (sys::realpath(folder, whole) == nullptr)
        return;
    const char *name = path + length;
    const char *slash = strcmp(whole, "/") == 0 ? "" : "/";
    if (strlen(whole) + strlen(slash) + strlen(name) >= sizeof path)
        return;
    strcat(whole, slash);
    strcat(whole, name);
    strcpy(path, whole);
}

} // namespace

ty_status follow_links(const char *path, char *resolved, size_t bytes) {
    char now[PATH_MAX];
    if (strlen(path) >= sizeof now || strlen(path) >= bytes)
        return failure(TY_E_ARGUMENT, "follow a path of %zu bytes", strlen(path)).remedy("use a shorter path");
    strcpy(now, path);
    int links = 0;
    while (links <= links_max && follow_one(now))
        ++links;
    if (links > links_max)
        return failure(TY_E_FORMAT, "follow symbolic links that lead in a circle")
            .at(path)
            .cause(ELOOP)
            .remedy("give the path of a file, or of a link that leads to one");
    follow_folder(now);
    strcpy(resolved, strlen(now) < bytes ? now : path);
    return TY_OK;
}

} // namespace taiyen::os
