// Names of a heap's files.
#pragma once

namespace taiyen {

// path + suffix, in malloc's memory; NULL with the detail set when there is none.
char *path_with(const char *path, const char *suffix);

inline constexpr const char *journal_suffix = "-journal";
inline constexpr const char *creation_suffix = "-creating"; // an image that is being created (I6)

} // namespace taiyen
