// Memory that grows in place: its pages are provided as they are needed and returned on request. Its content never
// moves.
#pragma once

#include "src/os/os.hpp"

namespace taiyen {

class arena {
public:
    ty_status create(size_t most_bytes) { return memory_.create_claimed(most_bytes); }
    void destroy() { memory_.destroy(); } // also if it was never created

    // Makes the first `bytes` bytes usable. Expected: TY_E_MEMORY.
    ty_status provide(size_t bytes) {
        if (bytes <= memory_.provided()) [[likely]]
            return TY_OK;
        return grow(bytes);
    }
    // Returns the memory beyond `kept_bytes` to the kernel; it stays provided.
    void trim(size_t kept_bytes);

    template <class T>
    T *as() const {
        return memory_.as<T>();
    }
    template <class T>
    size_t room() const { // elements that are provided
        return memory_.provided() / sizeof(T);
    }

private:
    ty_status grow(size_t bytes);

    os::space memory_;
};

} // namespace taiyen
