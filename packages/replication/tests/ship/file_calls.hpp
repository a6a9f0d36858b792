// The calls by which a folder of objects becomes durable, as a test sees them and makes them fail: the program's own
// fsync, mkdir, renameat and unlinkat.
#pragma once

#include <functional>
#include <string>

namespace taiyen::test {

enum class file_call { flush_file, flush_folder, make_folder, name, remove };

struct file_calls {
    // Before a call; false: it fails with EIO, and does nothing. descriptor: of what is flushed, or of the folder; -1:
    // of none. name: that is given or removed.
    std::function<bool(file_call call, int descriptor, const char *name)> before;
    // Once it was done, and did not fail.
    std::function<void(file_call call, int descriptor, const char *name)> after;
};
extern file_calls watched; // empty: nobody watches

} // namespace taiyen::test
