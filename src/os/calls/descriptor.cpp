#include "descriptor.hpp"

#include "random.hpp"
#include "syscalls.hpp"

namespace taiyen::os {
namespace {

constexpr int first_above_low = 3;
constexpr int high_descriptor_min = 900; // a process gets 1,024 by default

} // namespace

// N1: no descriptor of the library is 0, 1 or 2. A file opened with O_PATH refuses reads and writes just as a closed
// descriptor does.
low_descriptors_taken::low_descriptors_taken() {
    for (int fd = 0; fd < low_count; ++fd)
        if (sys::fcntl(fd, F_GETFD, 0) == -1 && !fault("file_at_a_low_descriptor"))
            if (int filler = sys::open_system_file("/", O_PATH | O_CLOEXEC); filler >= 0)
                fillers_[count_++] = filler;
}

low_descriptors_taken::~low_descriptors_taken() {
    while (count_ > 0)
        sys::close(fillers_[--count_]);
}

int move_descriptor_high(int fd) {
    if (fd < 0 || fd >= high_descriptor_min)
        return fd;
    int raised = sys::fcntl(fd, F_DUPFD_CLOEXEC, high_descriptor_min);
    if (raised < 0 && fd >= first_above_low)
        return fd;
    if (raised < 0)
        raised = sys::fcntl(fd, F_DUPFD_CLOEXEC, first_above_low);
    int error = errno == EINVAL ? EMFILE : errno; // EINVAL: a number beyond the limit
    sys::close(fd);
    errno = error;
    return raised;
}

int open_descriptor(const char *path, int flags, mode_t mode) {
    low_descriptors_taken taken;
    int fd;
    do
        fd = sys::open(path, flags | O_CLOEXEC, mode);
    while (fd < 0 && errno == EINTR);
    return move_descriptor_high(fd);
}

int open_system_file(const char *path) {
    low_descriptors_taken taken;
    return move_descriptor_high(sys::open_system_file(path, O_RDONLY | O_CLOEXEC));
}

off_t mark_descriptor(int fd) {
    constexpr off_t least = off_t{1} << 29; // and below twice that, which any file system allows
    uint32_t random = 0;
    random_bytes(&random, sizeof random);
    off_t mark = least + static_cast<off_t>(random % least);
    return sys::lseek(fd, static_cast<uint64_t>(mark), SEEK_SET) == mark ? mark : 0;
}

bool mark_again(int fd, off_t mark) {
    auto place = static_cast<uint64_t>(mark);
    return sys::lseek(fd, place, SEEK_SET) == mark || (errno != EBADF && sys::lseek(fd, place, SEEK_SET) == mark);
}

// N2: only a proof that the number leads elsewhere counts. Other failures are retried.
bool is_marked(int fd, off_t mark) {
    off_t at = sys::lseek(fd, 0, SEEK_CUR);
    if (at < 0 && errno != EBADF && errno != ESPIPE)
        at = sys::lseek(fd, 0, SEEK_CUR);
    return at == mark;
}

uint64_t inode_of(int fd) {
    struct stat status;
    if (sys::fstat(fd, &status) == 0 || (errno != EBADF && sys::fstat(fd, &status) == 0))
        return status.st_ino;
    return 0;
}

} // namespace taiyen::os
