#pragma once

#include <taiyen/persist.h>

namespace taiyen::test {

// Options of a heap in this storage. Good until the thread's next call.
inline const ty_open_options *files_on(const ty_storage *storage, const char *log_path = nullptr) {
    static thread_local ty_open_options options;
    options = TY_OPEN_OPTIONS_INIT;
    options.storage = storage;
    options.log_path = log_path;
    return &options;
}

} // namespace taiyen::test
