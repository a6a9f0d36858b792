// Names of a heap's files.
#pragma once

#include "src/os/os.hpp"

namespace taiyen {

inline constexpr const char *journal_suffix = "-journal";

// The path of a heap's journal, as given or beside the image, in malloc's memory. TY_E_ARGUMENT: it leads to the image.
ty_status resolve_journal(const ty_storage &storage, const char *image_path, const char *given, char **resolved);

} // namespace taiyen
