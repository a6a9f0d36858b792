#include "copied_files.hpp"
#include "../process/process.hpp"

#include "../memory/memory.hpp"
#include "file_system.hpp"
#include "nameless_file.hpp"

#include <cstdlib>
#include <cstring>
#include <new>

namespace taiyen {

// The table's functions. A file of the table is a copied_file; most functions call those of the built-in storage.
struct copied_files::functions {
    static copied_file &of(ty_file *file) { return *reinterpret_cast<copied_file *>(file); }
    static const ty_storage &built_in() { return *ty_storage_default(); }

    static ty_status refuse(const char *path) {
        return failure(TY_E_PERMISSION, "change a copy of a heap's file").at(path).remedy("it is for reading only");
    }

    static ty_status open(void *context, const char *path, uint32_t flags, ty_file **file) {
        auto &self = *static_cast<copied_files *>(context);
        if (flags & (TY_FILE_WRITE | TY_FILE_CREATE))
            return refuse(path);
        for (unsigned i = 0; i < self.file_count_; ++i)
            if (!strcmp(self.files_[i].path, path)) {
                self.users_ += 1;
                *file = reinterpret_cast<ty_file *>(&self.files_[i]);
                return TY_OK;
            }
        return failure(TY_E_NOT_FOUND, "open the file").at(path).remedy("check the path");
    }
    static void close(void *, ty_file *file) { of(file).owner->release(); }
    static ty_status read(void *, ty_file *file, uint64_t offset, void *buffer, size_t bytes) {
        return built_in().read(built_in().context, of(file).file, offset, buffer, bytes);
    }
    static ty_status get_size(void *, ty_file *file, uint64_t *bytes) {
        return built_in().get_size(built_in().context, of(file).file, bytes);
    }
    static ty_status next_data(void *, ty_file *file, uint64_t offset, uint64_t *start, uint64_t *end) {
        return built_in().next_data(built_in().context, of(file).file, offset, start, end);
    }
    static ty_status map(void *, ty_file *file, void *address, size_t bytes, uint64_t offset, uint32_t flags) {
        if (flags & TY_MAP_SHARED)
            return refuse(of(file).path);
        return built_in().map(built_in().context, of(file).file, address, bytes, offset, flags);
    }
    static ty_status unmap(void *, ty_file *file, void *address, size_t bytes) {
        return built_in().unmap(built_in().context, of(file).file, address, bytes);
    }
    static ty_status lock(void *, ty_file *file, bool exclusive) {
        return exclusive ? refuse(of(file).path) : TY_OK; // no other process has it
    }
    static ty_status resolve(void *context, const char *path, char *resolved, size_t bytes) {
        const ty_storage &original = *static_cast<copied_files *>(context)->original_;
        return original.resolve(original.context, path, resolved, bytes);
    }

    static ty_status write(void *, ty_file *file, uint64_t, const void *, size_t) { return refuse(of(file).path); }
    static ty_status flush(void *, ty_file *file) { return refuse(of(file).path); }
    static ty_status set_size(void *, ty_file *file, uint64_t) { return refuse(of(file).path); }
    static ty_status change_space(void *, ty_file *file, uint64_t, uint64_t) { return refuse(of(file).path); }
    static ty_status write_back(void *, ty_file *file, void *, size_t) { return refuse(of(file).path); }
    static ty_status rename(void *, const char *from, const char *) { return refuse(from); }
    static ty_status remove(void *, const char *path) { return refuse(path); }
    static ty_status flush_directory(void *, const char *path) { return refuse(path); }

    static void fill(ty_storage &table) {
        table.open = open;
        table.close = close;
        table.read = read;
        table.write = write;
        table.flush = flush;
        table.get_size = get_size;
        table.set_size = set_size;
        table.allocate = table.punch = change_space;
        table.next_data = next_data;
        table.map = map;
        table.unmap = unmap;
        table.write_back = write_back;
        table.lock = lock;
        table.rename = rename;
        table.remove = remove;
        table.flush_directory = flush_directory;
    }
};

const ty_storage &copied_files::original_of(const ty_storage &storage) {
    return storage.open == functions::open ? *static_cast<const copied_files *>(storage.context)->original_ : storage;
}

ty_status copied_files::create(const ty_storage &original, copied_files **made) {
    void *memory = os::internal_malloc(sizeof(copied_files));
    if (!memory)
        return failure(TY_E_MEMORY, "copy the files of a heap").remedy("free some memory");
    auto *self = new (memory) copied_files;
    self->original_ = &original;
    self->table_.struct_size = sizeof self->table_;
    self->table_.context = self;
    functions::fill(self->table_);
    if (original.resolve)
        self->table_.resolve = functions::resolve;
    *made = self;
    return TY_OK;
}

ty_status copied_files::add(const char *path, uint64_t bytes, storage_file *copy) {
    const uint64_t wanted = bytes > UINT64_MAX / 2 ? UINT64_MAX : 2 * bytes; // the heap's program needs room, too
    const bool on_disk = original_ == ty_storage_default() && os::disk_room(path) >= wanted;
    if (!on_disk) {
        os::memory_limits memory;
        memory.start();
        if (memory.now().available < wanted)
            return failure(TY_E_SPACE, "copy a file of %llu bytes: neither the disk nor memory has room for twice that",
                           (unsigned long long)bytes)
                .at(path)
                .remedy("make room, or close the heap where it is open: then nothing is copied");
    }
    copied_file &added = files_[file_count_];
    added = {this, path_with(path, ""), path_with(path, " (a copy)"), nullptr};
    ty_status status =
        added.path && added.name ? os::make_nameless_file(added.name, !on_disk, &added.file) : TY_E_MEMORY;
    if (status) {
        free(added.path);
        free(added.name);
        return status;
    }
    ++file_count_;
    *copy = {ty_storage_default(), added.file, added.name};
    return TY_OK;
}

void copied_files::release() {
    if (--users_)
        return;
    for (unsigned i = 0; i < file_count_; ++i) {
        storage_file{ty_storage_default(), files_[i].file, files_[i].name}.close();
        free(files_[i].path);
        free(files_[i].name);
    }
    free(this);
}

} // namespace taiyen
