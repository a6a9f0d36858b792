// A sink on a file. Its blocks are written once when it is created, so that later writes overwrite: that is four times
// as fast as writing to blocks that were only allocated, and cannot fail for lack of space.
#include "internal_sink.hpp"

#include <cstdlib>
#include <cstring>

namespace taiyen {

struct file_sink {
    internal_sink own;
    storage_file file;
    char *path;
};

namespace {

constexpr uint64_t fill_bytes = uint64_t{4} << 20; // per write

ty_status read_file(void *context, uint64_t offset, void *buffer, size_t bytes) {
    return static_cast<file_sink *>(context)->file.read(offset, buffer, bytes);
}

ty_status write_file(void *context, uint64_t offset, const void *buffer, size_t bytes) {
    return static_cast<file_sink *>(context)->file.write_durable(offset, buffer, bytes);
}

void destroy_file(internal_sink *own) {
    file_sink *self = reinterpret_cast<file_sink *>(own);
    self->file.close();
    free(self->path);
    free(self);
}

ty_status protect_file(internal_sink *own, const storage_file &like) {
    return reinterpret_cast<file_sink *>(own)->file.protect(like);
}

ty_status flush_file(internal_sink *own) {
    return reinterpret_cast<file_sink *>(own)->file.flush();
}

ty_status check_file(internal_sink *own) {
    return reinterpret_cast<file_sink *>(own)->file.check();
}

ty_status make(const char *path, const ty_storage &storage, file_sink **made) {
    file_sink *self = static_cast<file_sink *>(os::internal_calloc(1, sizeof(file_sink)));
    if (!self)
        return failure(TY_E_MEMORY, "open the log").at(path).remedy("free memory, or raise the process's limits");
    self->own.table = {sizeof(ty_log_sink), self, TY_STORAGE_BLOCK, 0, read_file, write_file, nullptr};
    self->own.destroy = destroy_file;
    self->own.protect = protect_file;
    self->own.flush = flush_file;
    self->own.check = check_file;
    self->file.storage = &storage;
    *made = self;
    self->path = path_with(path, "");
    return self->path ? TY_OK : TY_E_MEMORY;
}

ty_status fill_with_zeros(const storage_file &file, uint64_t size_bytes) {
    io_buffer zeros;
    if (ty_status status = zeros.create(fill_bytes < size_bytes ? fill_bytes : size_bytes))
        return status;
    for (uint64_t at = 0; at < size_bytes; at += zeros.bytes()) {
        uint64_t bytes = size_bytes - at < zeros.bytes() ? size_bytes - at : zeros.bytes();
        if (ty_status status = file.write(at, zeros.data(), bytes))
            return status;
    }
    return file.flush();
}

// On failure it leaves no file.
ty_status create(file_sink &self, const char *creation_path, uint64_t size_bytes, const storage_file *like) {
    if (ty_status status = self.file.open_for_creation(creation_path, like))
        return status;
    self.own.table.size_bytes = size_bytes;
    ty_status status = fill_with_zeros(self.file, size_bytes);
    if (status) {
        self.file.close();
        self.file.remove_quietly(creation_path);
    }
    return status;
}

// Under another name until it is whole.
ty_status create_whole(file_sink &self, const char *creation_path, uint64_t size_bytes) {
    const ty_storage &storage = *self.file.storage;
    ty_status status = create(self, creation_path, size_bytes, nullptr);
    if (status)
        return status;
    if ((status = os::call_whole(storage.rename, storage.context, creation_path, self.path))) {
        self.file.close();
        self.file.remove_quietly(creation_path);
        return status;
    }
    self.file.path = self.path;
    return os::call_whole(storage.flush_directory, storage.context, self.path);
}

ty_status open(file_sink &self, bool writable) {
    if (ty_status status = self.file.open(self.path, writable ? TY_FILE_WRITE : 0))
        return status;
    if (writable)
        if (ty_status status = self.file.lock(true))
            return status;
    uint64_t size = 0;
    ty_status status = self.file.get_size(&size);
    self.own.table.size_bytes = size / TY_STORAGE_BLOCK * TY_STORAGE_BLOCK;
    if (!status && size && size < TY_STORAGE_BLOCK) // a file of another program
        return failure(TY_E_FORMAT, "use a file that is not a log").at(self.path).remedy("check the path");
    return status;
}

// Returns the sink, or the failure.
ty_status finish(file_sink *self, ty_status status, ty_log_sink **sink) {
    if (!status)
        *sink = &self->own.table;
    else if (self)
        destroy_file(&self->own);
    return status;
}

} // namespace

ty_status file_sink_create(const char *path, uint64_t size_bytes, const ty_storage &storage, ty_log_sink **sink) {
    file_sink *self = nullptr;
    ty_status status = make(path, storage, &self);
    char *creation_path = status ? nullptr : path_with(self->path, creation_suffix);
    if (!status)
        status = creation_path ? create_whole(*self, creation_path, size_bytes) : TY_E_MEMORY;
    if (status && creation_path)
        name_final_file(storage, creation_path, self->path);
    free(creation_path);
    return finish(self, status, sink);
}

ty_status file_sink_make(const char *creation_path, uint64_t size_bytes, const ty_storage &storage,
                         const storage_file *like, ty_log_sink **sink) {
    file_sink *self = nullptr;
    ty_status status = make(creation_path, storage, &self);
    if (!status)
        status = create(*self, self->path, size_bytes, like);
    return finish(self, status, sink);
}

ty_status file_sink_open(const char *path, bool writable, const ty_storage &storage, ty_log_sink **sink) {
    file_sink *self = nullptr;
    ty_status status = make(path, storage, &self);
    if (!status)
        status = open(*self, writable);
    return finish(self, status, sink);
}

} // namespace taiyen
