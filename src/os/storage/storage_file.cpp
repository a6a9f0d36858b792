#include "storage_file.hpp"
#include "../process/process.hpp"

#include "../base/base.hpp"
#include "../memory/memory.hpp"

#include <cstdlib>
#include <cstring>

namespace taiyen {

io_buffer::~io_buffer() {
    if (data_)
        os::unmap_memory(data_, bytes_);
}

ty_status io_buffer::create(size_t bytes) {
    void *memory = nullptr;
    if (ty_status status = os::map_memory(bytes, os::memory_hint::none, &memory))
        return status;
    data_ = static_cast<char *>(memory);
    bytes_ = bytes;
    return TY_OK;
}

char *path_with(const char *path, const char *suffix) {
    size_t length = strlen(path), suffix_length = strlen(suffix);
    char *text = static_cast<char *>(os::internal_malloc(length + suffix_length + 1));
    if (!text) {
        (void)ty_status(failure(TY_E_MEMORY, "keep the name of a file").at(path));
        return nullptr;
    }
    memcpy(text, path, length);
    memcpy(text + length, suffix, suffix_length + 1);
    return text;
}

ty_status resolve_path(const ty_storage &storage, const char *path, char **resolved) {
    char place[TY_STORAGE_PATH_MAX];
    if (storage.resolve)
        if (ty_status status = os::call_whole(storage.resolve, storage.context, path, place, sizeof place))
            return status;
    *resolved = path_with(storage.resolve ? place : path, "");
    return *resolved ? TY_OK : TY_E_MEMORY;
}

ty_status resolve_beside(const ty_storage &storage, const char *image_path, const char *suffix, const char *given,
                         char **resolved) {
    if (given)
        return resolve_path(storage, given, resolved);
    char *beside = path_with(image_path, suffix);
    ty_status status = beside ? resolve_path(storage, beside, resolved) : TY_E_MEMORY;
    free(beside);
    return status;
}

namespace {

ty_status create(storage_file &file, const char *name, const storage_file *like) {
    return like ? file.create_private(name) : file.open(name, TY_FILE_WRITE | TY_FILE_CREATE);
}

ty_status in_use(const char *name) {
    return failure(TY_E_BUSY, "create a file that another process creates now").at(name).remedy("try again");
}

// The first page of a file; zeros if it is empty. *whole: it consists of pages, as the library's files do.
ty_status read_front(const storage_file &file, io_page *page, bool *whole) {
    uint64_t size = 0;
    *page = {};
    ty_status status = file.get_size(&size);
    *whole = size % sizeof page->bytes == 0;
    return status || !*whole || size == 0 ? status : file.read(0, page->bytes, sizeof page->bytes);
}

// After a power cut a file that was being made may hold anything. One of another size than the library's is another
// program's.
ty_status check_leftover(const storage_file &left, const char *name, bool whole) {
    if (whole)
        return left.check() ? in_use(name) : TY_OK;
    return failure(TY_E_EXISTS, "make a file under its temporary name: another file has that")
        .at(name)
        .remedy("move that away, or use another name");
}

// Whether the name still leads to the file: it may have got its own, and another process may have made one since.
ty_status check_name(const storage_file &left, const char *name, const io_page &page) {
    storage_file there{left.storage};
    io_page other;
    bool whole = false;
    ty_status status = there.open(name, 0);
    if (!status)
        status = read_front(there, &other, &whole);
    there.close();
    if (status == TY_E_NOT_FOUND || (!status && memcmp(page.bytes, other.bytes, sizeof page.bytes) != 0))
        return in_use(name);
    return status;
}

// What a crash left has the permissions of its creator: it is removed rather than reused. Only a process that holds its
// lock while its name leads to it may do that; so of two processes that create the same heap one gets TY_E_BUSY.
ty_status replace_leftover(storage_file &file, const char *name, const storage_file *like) {
    storage_file left{file.storage};
    io_page page;
    bool whole = false;
    ty_status status = left.open(name, TY_FILE_WRITE);
    if (!status)
        status = left.lock(true);
    if (!status)
        status = read_front(left, &page, &whole);
    if (!status)
        status = check_leftover(left, name, whole);
    if (!status)
        status = check_name(left, name, page);
    if (!status && !(status = left.remove()) && (status = create(file, name, like)) == TY_E_EXISTS)
        status = in_use(name);
    left.close();
    return status == TY_E_NOT_FOUND ? in_use(name) : status; // it has got its own name since
}

} // namespace

void name_final_file(const ty_storage &storage, const char *creation_path, const char *path) {
    const ty_error error = keep_error();
    if (strcmp(error.path, creation_path) != 0)
        return;
    storage_file left{&storage};
    const ty_status status = left.open(creation_path, 0);
    left.close();
    const bool there = status == TY_OK || status == TY_E_PERMISSION || status == TY_E_FORMAT || status == TY_E_BUSY;
    (void)ty_error_set(error.status, error.system_error, error.operation, there ? creation_path : path, error.offset,
                       error.remedy);
}

void storage_file::remove_quietly(const char *name) const {
    const ty_error error = keep_error();
    if (os::call_whole(storage->remove, storage->context, name))
        (void)report_again(error);
}

ty_status storage_file::open_for_creation(const char *name, const storage_file *like) {
    ty_status status = create(*this, name, like);
    if (status == TY_E_EXISTS)
        status = replace_leftover(*this, name, like);
    if (status)
        return status;
    // Another process may have taken it for a leftover. A check that merely failed does not prove that.
    if (!(status = lock(true)) && check() && check())
        status = in_use(name);
    if (!status && like)
        status = protect(*like);
    if (status) {
        close();
        if (status != TY_E_BUSY)
            remove_quietly(name);
    }
    return status;
}

ty_status storage_file::rename_from(const char *creation_path, const char *name) const {
    if (ty_status status = os::call_whole(storage->rename, storage->context, creation_path, name))
        return status;
    ty_status status = fault("folder_of_a_new_heap_not_flushed")
                           ? TY_OK
                           : os::call_whole(storage->flush_directory, storage->context, name);
    if (status)
        remove_quietly(name);
    return status;
}

// The storage maps at an address, never over what is there.
ty_status storage_file::map_anywhere(size_t bytes, uint64_t offset, uint32_t flags, void **mapped) const {
    constexpr int tries_max = 8;
    ty_status status = TY_OK;
    for (int tries = 0; tries < tries_max; ++tries) {
        void *place = nullptr;
        if ((status = os::map_memory(bytes, os::memory_hint::none, &place)))
            return status;
        os::unmap_memory(place, bytes);
        if (!(status = map(place, bytes, offset, flags)))
            *mapped = place;
        if (status != TY_E_ADDRESS) // another thread was faster
            return status;
    }
    return status;
}

uint64_t storage_file::allocated_bytes() const {
    uint64_t sum = 0, start = 0, end = 0;
    for (uint64_t offset = 0; next_data(offset, &start, &end) == TY_OK && end > offset; offset = end)
        sum += end - start;
    return sum;
}

} // namespace taiyen
