// The library's own descriptors.
//
// N1: none is 0, 1 or 2, at any moment: if those are closed, a message printed by the program would go into the file.
// N2: nothing is written, truncated or closed through a number that is not known to still lead to the opened file. A
//      program may close all descriptors that it does not know (closefrom, the start of a daemon), and the numbers are
//      then reused for other files.
#pragma once

#include <cstdint>
#include <sys/types.h>

namespace taiyen::os {

// While one exists, 0 to 2 are in use: closed ones are opened on something that can be neither read nor written.
class [[nodiscard]] low_descriptors_taken {
public:
    low_descriptors_taken();
    ~low_descriptors_taken();
    low_descriptors_taken(const low_descriptors_taken &) = delete;
    low_descriptors_taken &operator=(const low_descriptors_taken &) = delete;

private:
    static constexpr int low_count = 3;
    int fillers_[low_count];
    int count_ = 0;
};

// Duplicates a descriptor to a high number, out of the way of programs that expect low numbers for their own, or close
// them. Returns the new number, and closes fd; or fd itself if no high number is free, or if fd is negative. -1: no
// number above 2 is free, with errno set.
int move_descriptor_high(int fd);

// open(2) with O_CLOEXEC; N1: never 0, 1 or 2. -1 and errno on failure.
int open_descriptor(const char *path, int flags, mode_t mode = 0);
// The same for reading files of /proc and /sys, without a function of libc (syscalls.hpp).
int open_system_file(const char *path);

// N2: marks an open file by its file position, which is not used otherwise: a random one, far beyond any that is read
// or written. So it is known to be the same open file description, with its locks. Returns 0, with errno set, if the
// file has no position.
off_t mark_descriptor(int fd);
bool mark_again(int fd, off_t mark); // after the position was used
bool is_marked(int fd, off_t mark);

// To identify files without a position, but with an inode of their own. 0: none.
uint64_t inode_of(int fd);

} // namespace taiyen::os
