// Names of a heap's files.
#pragma once

namespace taiyen {

inline constexpr const char *journal_suffix = "-journal";

} // namespace taiyen
