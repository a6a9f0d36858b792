// Failures of file operations, each with a remedy.
#pragma once

#include "../base/base.hpp"

namespace taiyen::os {

const char *remedy_for(int error);
ty_status file_failure(const char *operation, const char *path, uint64_t offset, int error);
ty_status unsupported(const char *operation, const char *path, uint64_t offset, int error);
bool is_unsupported(int error);

} // namespace taiyen::os
