// Files without a name: gone with their last descriptor, whatever ends the process.
#pragma once

#include <taiyen/storage.h>

namespace taiyen::os {

// Makes one for the built-in storage, empty, to be read and written through the page cache: on the disk, in the folder
// that path is in; or in memory, where that is wanted, or no such file can be made there. path stands in the texts of
// its errors.
ty_status make_nameless_file(const char *path, bool in_memory, ty_file **made);

} // namespace taiyen::os
