// Descriptors of the library's own.
//
// N1: none is 0, 1 or 2, at no moment: where those are closed, a message that somebody prints would go into the file.
// N2: nothing is written, cut or closed through a number that is not known to lead still to what was opened. A program
//      may close all descriptors that it does not know (closefrom, the start of a daemon), and the numbers are then
//      other files'.
#pragma once

#include <cstdint>
#include <sys/types.h>

namespace taiyen::os {

// While one exists, 0 to 2 are in use: where they are not, they lead to what cannot be read or written.
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

// The same file under a high number, out of the way of programs that count on getting low ones, or close them; under
// the one it has, where none is left. fd is closed if the answer is another. A negative fd is handed back. -1: there is
// no number above 2, and errno says why.
int raise_descriptor(int fd);

// open(2) with O_CLOEXEC, by N1. -1 and errno on failure.
int open_descriptor(const char *path, int flags, mode_t mode = 0);
// The same for reading what the system tells of itself, without a function of libc (direct_calls.hpp).
int open_system_file(const char *path);

// N2: an open file is told from others by its position, which nothing else here uses: a random one, far from where
// files that are read or written stand. So it is known to be the very same opening, with the locks that it holds.
// Gives 0, and errno, where the file has no position.
off_t mark_descriptor(int fd);
bool mark_again(int fd, off_t mark); // after the position was used
bool is_marked(int fd, off_t mark);

// For what has no position, and an inode of its own. 0: there is none.
uint64_t inode_of(int fd);

} // namespace taiyen::os
