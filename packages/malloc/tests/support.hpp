// What the tests of the drop-in share.
#pragma once

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <gtest/gtest.h>
#include <malloc.h>
#include <unistd.h>

namespace taiyen::test {

inline bool aligned(const void *block, size_t alignment) {
    return reinterpret_cast<uintptr_t>(block) % alignment == 0;
}

// The compiler must not know that an allocation of so much cannot be.
inline size_t opaque(size_t size) {
    volatile size_t hidden = size;
    return hidden;
}

// The compiler must not know where a pointer comes from: it would warn of what is done here on purpose.
inline void *hidden(void *pointer) {
    void *volatile place = pointer;
    return place;
}

// A size that no heap has room for, yet no overflow.
inline size_t too_much() {
    return opaque(size_t{1} << 46);
}

inline void fill(void *block, size_t bytes, unsigned char seed) {
    auto *p = static_cast<unsigned char *>(block);
    for (size_t i = 0; i < bytes; i++)
        p[i] = static_cast<unsigned char>(seed + i * 7);
}

inline bool filled(const void *block, size_t bytes, unsigned char seed) {
    const auto *p = static_cast<const unsigned char *>(block);
    for (size_t i = 0; i < bytes; i++)
        if (p[i] != static_cast<unsigned char>(seed + i * 7))
            return false;
    return true;
}

inline size_t resident_pages() {
    size_t all = 0, resident = 0;
    std::ifstream("/proc/self/statm") >> all >> resident;
    return resident;
}

inline size_t address_space_pages() {
    size_t all = 0;
    std::ifstream("/proc/self/statm") >> all;
    return all;
}

} // namespace taiyen::test
