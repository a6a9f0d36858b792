// Memory that grows in place: address space is reserved once, its pages are provided as they are needed and given back
// on request. What lies in it never moves.
#pragma once

#include "../os/os.hpp"

namespace taiyen {

class area {
public:
    ty_status create(size_t most_bytes);
    void destroy(); // also of what was never created

    // Makes the first so many bytes usable. Expected: TY_E_MEMORY.
    ty_status provide(size_t bytes) {
        if (bytes <= provided_) [[likely]]
            return TY_OK;
        return grow(bytes);
    }
    // Gives the memory beyond so many bytes back; it stays provided.
    void trim(size_t kept_bytes);

    template <class T>
    T *as() const {
        return reinterpret_cast<T *>(memory_);
    }
    template <class T>
    size_t room() const { // elements that are provided
        return provided_ / sizeof(T);
    }

private:
    ty_status grow(size_t bytes);

    char *memory_;
    size_t provided_;
    size_t reserved_;
};

} // namespace taiyen
