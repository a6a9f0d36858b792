#include "storage_file.hpp"

#include "../os/os.hpp"

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

} // namespace taiyen
