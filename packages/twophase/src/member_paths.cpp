// Where the files of a group lie. A heap's table has the paths that its members had when the group was last opened. If
// the heap itself was moved since, or is a copy, the others are at the same relative paths, or beside it. Files at the
// old places are then not its members.
#include "dtxn.hpp"

namespace taiyen::twophase {
namespace {

// Length of the path's folder, with the slash.
size_t folder_bytes(const char *path, size_t bytes) {
    while (bytes > 0 && path[bytes - 1] != '/')
        --bytes;
    return bytes;
}

// Length of the common prefix, in whole folders.
size_t common_bytes(path_text one, path_text other) {
    size_t common = 0;
    for (size_t i = 0; i < one.bytes && i < other.bytes && one.at[i] == other.at[i]; ++i)
        if (one.at[i] == '/')
            common = i + 1;
    return common;
}

ty_status join(const char *folder, size_t bytes, path_text rest, char **path) {
    auto *made = static_cast<char *>(ty_plugin_malloc(bytes + rest.bytes + 1));
    if (!made)
        return no_memory("find the files of a group");
    memcpy(made, folder, bytes);
    memcpy(made + bytes, rest.at, rest.bytes);
    made[bytes + rest.bytes] = 0;
    *path = made;
    return TY_OK;
}

} // namespace

ty_status path_after_move(path_text other, path_text then, const char *now, placing how, char **place) {
    *place = nullptr;
    if (then == text_of(now))
        return join("", 0, other, place);
    size_t folder = folder_bytes(now, strlen(now));
    size_t common = folder_bytes(other.at, other.bytes);
    if (how == placing::alike) {
        common = common_bytes(then, other);
        for (size_t i = common; i < then.bytes; ++i) {
            if (then.at[i] != '/')
                continue;
            if (folder <= 1) // there is no folder above
                return TY_OK;
            folder = folder_bytes(now, folder - 1);
        }
    }
    return join(now, folder, {other.at + common, other.bytes - common}, place);
}

ty_status resolve_path(const ty_storage &storage, const char *path, char **resolved) {
    auto *made = static_cast<char *>(ty_plugin_malloc(TY_STORAGE_PATH_MAX));
    ty_status status = made ? TY_OK : no_memory("find the files of a group");
    if (!status && storage.resolve)
        status = storage.resolve(storage.context, path, made, TY_STORAGE_PATH_MAX);
    else if (!status)
        snprintf(made, TY_STORAGE_PATH_MAX, "%s", path);
    if (status)
        free(made);
    else
        *resolved = made;
    return status;
}

} // namespace taiyen::twophase
