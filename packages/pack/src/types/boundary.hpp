// The boundary of C functions: exceptions of the C++ library become a status.
#pragma once

#include <new>
#include <stdexcept>
#include <string>
#include <taiyen/storage.h>

namespace taiyen::pack {

inline ty_status fail(ty_status status, const std::string &operation, const std::string &remedy) {
    return ty_error_set(status, 0, operation.c_str(), nullptr, UINT64_MAX, remedy.c_str());
}

inline ty_status no_memory(const char *operation) {
    return ty_error_set(TY_E_MEMORY, 0, operation, nullptr, UINT64_MAX, "free memory of the process");
}

// Runs `body`, which returns a ty_status. Exceptions of the program's own callbacks pass through.
template <class function>
ty_status at_boundary(const char *operation, const function &body) {
    try {
        return body();
    } catch (const std::bad_alloc &) {
        return no_memory(operation);
    } catch (const std::length_error &) {
        return no_memory(operation);
    }
}

} // namespace taiyen::pack
