// Symbolic links: the file to which a path leads.
#pragma once

#include <cstddef>
#include <taiyen/status.h>

namespace taiyen::os {

// Writes the path of the file, with an absolute directory without links: its meaning stays the same when the program
// changes its working directory. The file need not exist; a dangling link resolves to its target, as for open(2). What
// cannot be resolved stays unchanged: an open reports why. TY_E_FORMAT: a cycle of links.
ty_status follow_links(const char *path, char *resolved, size_t bytes);

} // namespace taiyen::os
