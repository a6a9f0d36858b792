// Files without a name: gone with their last descriptor, however the process ends.
#pragma once

#include <taiyen/storage.h>

namespace taiyen::os {

// Makes an empty one for the built-in storage, accessed through the page cache: on the disk, in path's directory; or in
// memory, if wanted, or if no such file can be made there. path is for error texts.
ty_status make_nameless_file(const char *path, bool in_memory, ty_file **made);

} // namespace taiyen::os
