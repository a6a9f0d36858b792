#include "storage_file.hpp"

#include "failure.hpp"
#include "vm.hpp"

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
    char *text = static_cast<char *>(malloc(length + suffix_length + 1));
    if (!text) {
        (void)ty_status(failure(TY_E_MEMORY, "keep the name of a file").at(path));
        return nullptr;
    }
    memcpy(text, path, length);
    memcpy(text + length, suffix, suffix_length + 1);
    return text;
}

ty_status storage_file::open_for_creation(const char *name) {
    ty_status status = open(name, TY_OPEN_WRITE | TY_OPEN_CREATE);
    if (status == TY_E_EXISTS) {
        if ((status = open(name, TY_OPEN_WRITE)))
            return status;
        if (!(status = lock(true)))
            status = set_size(0);
        return status;
    }
    return status ? status : lock(true);
}

} // namespace taiyen
