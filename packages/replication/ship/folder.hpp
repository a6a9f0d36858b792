// The system calls of this library: objects in a folder, and the names of a heap that is being restored.
#pragma once

#include <memory>
#include <string>
#include <taiyen/ship.h>
#include <taiyen/storage.h>

namespace taiyen::ship {

ty_status folder_open(const char *path, bool writes, ty_destination **destination);
void folder_close(ty_destination *destination);

class restoring_lock {
public:
    restoring_lock() = default;
    restoring_lock(const restoring_lock &) = delete;
    restoring_lock &operator=(const restoring_lock &) = delete;
    ~restoring_lock(); // removes the file
    ty_status take(const std::string &path);

private:
    std::string path_;
    int descriptor_ = -1;
};

ty_status check_absent(const std::string &path); // TY_E_EXISTS if it exists
ty_status remove_file(const std::string &path);
ty_status flush_folder_of(const std::string &path);
ty_status give_name(const std::string &from, const std::string &to);

} // namespace taiyen::ship
