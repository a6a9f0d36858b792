// Symbolic links: which file a path leads to.
#pragma once

#include <cstddef>
#include <taiyen/status.h>

namespace taiyen::os {

// Writes the path of the file, in a folder without links from the root on: what it means stays the same when the
// program changes its working directory. The file need not be there; of a link that leads nowhere it is the place that
// it leads to, as for open(2). What cannot be followed stays as it is: opening it tells why. TY_E_FORMAT: links that
// lead in a circle.
ty_status follow_links(const char *path, char *resolved, size_t bytes);

} // namespace taiyen::os
