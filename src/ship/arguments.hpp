// Checks of what callers hand in, as src/api/arguments.hpp has them (O1, O2): this library uses the public API alone.
#pragma once

#include <cstring>
#include <taiyen/storage.h>

namespace taiyen::ship {

inline constexpr size_t struct_size_max = 4096;

inline size_t struct_size_of(const void *given) {
    size_t bytes;
    memcpy(&bytes, given, sizeof bytes);
    return bytes;
}

inline ty_status refuse(const char *call, const char *remedy) {
    return ty_error_set(TY_E_ARGUMENT, 0, call, nullptr, UINT64_MAX, remedy);
}

// known has all defaults, and keeps them where nothing is given.
template <class Options>
ty_status copy_options(const Options *given, Options *known, const char *call) {
    if (given == nullptr)
        return TY_OK;
    const size_t bytes = struct_size_of(given);
    if (bytes < sizeof(size_t) || bytes > struct_size_max)
        return ty_error_set(TY_E_ARGUMENT, 0, call, nullptr, UINT64_MAX,
                            "initialise the options with their _INIT macro");
    const auto *from = reinterpret_cast<const char *>(given);
    for (size_t i = sizeof *known; i < bytes; i++)
        if (from[i] != 0)
            return ty_error_set(TY_E_ARGUMENT, 0, call, nullptr, UINT64_MAX,
                                "leave options that are newer than the library zero, or use a newer library");
    memset(static_cast<void *>(known), 0, sizeof *known);
    memcpy(static_cast<void *>(known), given, bytes < sizeof *known ? bytes : sizeof *known);
    known->struct_size = sizeof *known;
    return TY_OK;
}

template <class Output>
ty_status check_output(const Output *given, const char *call) {
    if (given == nullptr)
        return TY_OK;
    const size_t bytes = struct_size_of(given);
    if (bytes < sizeof(size_t) || bytes > struct_size_max)
        return ty_error_set(TY_E_ARGUMENT, 0, call, nullptr, UINT64_MAX,
                            "set the result's struct_size to its sizeof before the call");
    return TY_OK;
}

template <class Output>
void copy_output(const Output &known, Output *given) {
    if (given == nullptr)
        return;
    const size_t bytes = struct_size_of(given);
    const size_t common = bytes < sizeof known ? bytes : sizeof known;
    memcpy(static_cast<void *>(given), &known, common);
    if (bytes > common)
        memset(reinterpret_cast<char *>(given) + common, 0, bytes - common);
    memcpy(static_cast<void *>(given), &bytes, sizeof bytes);
}

} // namespace taiyen::ship
