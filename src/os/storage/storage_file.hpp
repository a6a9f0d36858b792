// A file of a heap: the storage table and one open file of it, with its functions as methods. The table may be the
// program's: no thread is cancelled in its functions, as the library holds locks meanwhile (Y5: callbacks are not
// cancelled).
#pragma once

#include "../base/base.hpp"

#include <taiyen/storage.h>

namespace taiyen {

// path + suffix, allocated with malloc; NULL with the detail set when memory is short.
char *path_with(const char *path, const char *suffix);
// The resolved path of a file, allocated with malloc.
ty_status resolve_path(const ty_storage &storage, const char *path, char **resolved);
// The same for a file beside a heap's image, whose path is resolved; or at the given path, unless that is NULL.
ty_status resolve_beside(const ty_storage &storage, const char *image_path, const char *suffix, const char *given,
                         char **resolved);
inline constexpr const char *creation_suffix = "-creating"; // of a file that is being created

// After a failure: if the error names a temporary file of a creation, which is gone, it names the final file instead.
void name_final_file(const ty_storage &storage, const char *creation_path, const char *path);

struct storage_file {
    const ty_storage *storage = nullptr;
    ty_file *file = nullptr;
    const char *path = nullptr; // owned by the caller of open

    bool is_open() const { return file != nullptr; }
    ty_status open(const char *name, uint32_t flags) {
        path = name;
        return os::call_whole(storage->open, storage->context, name, flags, &file);
    }
    // Creates a file that only its owner may open until `protect`, if the storage supports that.
    ty_status create_private(const char *name) {
        return open(name, TY_FILE_WRITE | TY_FILE_CREATE | (storage->protect ? TY_FILE_PRIVATE : 0));
    }
    // Makes PATH-creating for this process alone, empty, and no more accessible than `like` (NULL: as new files are). A
    // file that a crash left there was never acknowledged, and is replaced. On failure there is no such file, except
    // for TY_E_BUSY: then it is another process's.
    ty_status open_for_creation(const char *name, const storage_file *like = nullptr);
    // Gives a file that is whole its name, durably (I6).
    ty_status rename_from(const char *creation_path, const char *name) const;
    void close() {
        if (file)
            os::call_whole(storage->close, storage->context, file);
        file = nullptr;
    }
    ty_status read(uint64_t offset, void *buffer, size_t bytes) const {
        return os::call_whole(storage->read, storage->context, file, offset, buffer, bytes);
    }
    ty_status write(uint64_t offset, const void *buffer, size_t bytes) const {
        return os::call_whole(storage->write, storage->context, file, offset, buffer, bytes);
    }
    ty_status write_many(const ty_write *writes, size_t count) const {
        if (storage->write_many)
            return os::call_whole(storage->write_many, storage->context, file, writes, count);
        for (size_t i = 0; i < count; ++i)
            if (ty_status status = write(writes[i].offset, writes[i].buffer, writes[i].bytes))
                return status;
        return TY_OK;
    }
    ty_status write_durable(uint64_t offset, const void *buffer, size_t bytes) const {
        if (storage->write_durable)
            return os::call_whole(storage->write_durable, storage->context, file, offset, buffer, bytes);
        ty_status status = write(offset, buffer, bytes);
        return status ? status : flush();
    }
    ty_status flush() const { return os::call_whole(storage->flush, storage->context, file); }
    ty_status get_size(uint64_t *bytes) const {
        return os::call_whole(storage->get_size, storage->context, file, bytes);
    }
    ty_status set_size(uint64_t bytes) const {
        return os::call_whole(storage->set_size, storage->context, file, bytes);
    }
    ty_status allocate(uint64_t offset, uint64_t bytes) const {
        return os::call_whole(storage->allocate, storage->context, file, offset, bytes);
    }
    ty_status punch(uint64_t offset, uint64_t bytes) const {
        return os::call_whole(storage->punch, storage->context, file, offset, bytes);
    }
    ty_status next_data(uint64_t offset, uint64_t *start, uint64_t *end) const {
        return os::call_whole(storage->next_data, storage->context, file, offset, start, end);
    }
    uint64_t allocated_bytes() const; // that may hold data other than zeros, as far as known
    ty_status map(void *address, size_t bytes, uint64_t offset, uint32_t flags) const {
        return os::call_whole(storage->map, storage->context, file, address, bytes, offset, flags);
    }
    // At an address that was free.
    ty_status map_anywhere(size_t bytes, uint64_t offset, uint32_t flags, void **mapped) const;
    ty_status unmap(void *address, size_t bytes) const {
        return os::call_whole(storage->unmap, storage->context, file, address, bytes);
    }
    ty_status write_back(void *address, size_t bytes) const {
        return os::call_whole(storage->write_back, storage->context, file, address, bytes);
    }
    ty_status remove() const { return os::call_whole(storage->remove, storage->context, path); }
    // Removes a useless file after a failure, and keeps its detail. The disk may be gone.
    void remove_quietly(const char *name) const;
    ty_status check() const { return storage->check ? os::call_whole(storage->check, storage->context, file) : TY_OK; }
    // N4: no user who may not open `like` may open this file.
    ty_status protect(const storage_file &like) const {
        return storage->protect ? os::call_whole(storage->protect, storage->context, file, like.file) : TY_OK;
    }
    bool can_be_held() const { return storage->hold != nullptr; }
    ty_status hold(uint32_t mode, uint64_t first, uint64_t last, uint64_t *other) const {
        return can_be_held() ? os::call_whole(storage->hold, storage->context, file, mode, first, last, other) : TY_OK;
    }
    ty_status turn(bool begin) const {
        return storage->turn ? os::call_whole(storage->turn, storage->context, file, begin) : TY_OK;
    }
    ty_status check_lock() const {
        return storage->check_lock ? os::call_whole(storage->check_lock, storage->context, file) : lock(false);
    }
    ty_status lock(bool exclusive) const { return os::call_whole(storage->lock, storage->context, file, exclusive); }
};

// One page for direct I/O where no memory may be allocated: for writes when it is too late to refuse.
struct alignas(TY_STORAGE_BLOCK) io_page {
    char bytes[TY_STORAGE_BLOCK] = {};
};

// A page-aligned buffer for direct I/O, released at the end of its scope.
class io_buffer {
public:
    io_buffer() = default;
    io_buffer(const io_buffer &) = delete;
    io_buffer &operator=(const io_buffer &) = delete;
    ~io_buffer();

    ty_status create(size_t bytes);
    char *data() const { return data_; }
    size_t bytes() const { return bytes_; }

private:
    char *data_ = nullptr;
    size_t bytes_ = 0;
};

} // namespace taiyen
