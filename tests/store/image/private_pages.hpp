// What the kernel says of a heap's pages.
#pragma once

#include "support.hpp"

#include <fcntl.h>
#include <unistd.h>

namespace taiyen::test {

// Pages of the range that are in memory and belong to no file. (Bits 63 and 61 of pagemap.)
inline size_t private_pages(const void *address, size_t bytes) {
    int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    size_t count = 0;
    for (size_t at = 0; at < bytes; at += 4096) {
        uint64_t entry = 0;
        EXPECT_EQ(ssize_t(sizeof entry),
                  pread(fd, &entry, sizeof entry, off_t((uintptr_t(address) + at) / 4096 * sizeof entry)));
        count += (entry >> 63 & 1) && !(entry >> 61 & 1);
    }
    close(fd);
    return count;
}

} // namespace taiyen::test
