// Copies of files, as a storage of their own: an open of a heap by path finds the copies under the paths of the files.
#pragma once

#include "storage_file.hpp"

namespace taiyen {

// The copies have no names, are read-only, and are gone when the last of them is closed and `release` was called.
// Copies of files of the built-in storage lie in the files' directories, if files can be made there and at least as
// much room is left as they take; all others in memory, as a program's storage may keep secrets. Not thread-safe.
class copied_files {
public:
    static ty_status create(const ty_storage &original, copied_files **made);
    // Makes the copy of the file with this path (as resolved), empty, for so many bytes. Write it through *copy, which
    // is valid until `release` and need not be closed. TY_E_SPACE: no room.
    ty_status add(const char *path, uint64_t bytes, storage_file *copy);
    const ty_storage *storage() const { return &table_; }
    // That of the files themselves, where these are copies; else the storage itself.
    static const ty_storage &original_of(const ty_storage &storage);
    void release();

private:
    static constexpr unsigned file_max = 4; // image, journal, log and durable marks
    struct copied_file {
        copied_files *owner;
        char *path;
        char *name; // for error texts
        ty_file *file;
    };
    struct functions; // of the storage table

    ty_storage table_{};
    const ty_storage *original_ = nullptr;
    copied_file files_[file_max] = {};
    unsigned file_count_ = 0;
    unsigned users_ = 1; // open files, and the creator
};

} // namespace taiyen
