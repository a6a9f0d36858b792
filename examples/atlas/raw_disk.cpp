#include "raw_disk.hpp"
#include "heap_file.hpp"
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <unistd.h>

namespace demo {
namespace {

constexpr size_t piece_bytes = 1 << 20;
constexpr size_t block_bytes = 4096;

[[noreturn]] void fail_file(const char *what, const std::string &path, int error) {
    throw failure(std::string("cannot ") + what + " " + path + ": " + std::strerror(error));
}

} // namespace

raw_file::raw_file(const std::string &path) : path_(path) {
    constexpr int flags = O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC;
    file_ = open(path.c_str(), flags | O_DIRECT, 0644);
    if (file_ < 0 && errno == EINVAL) // a file system without direct I/O
        file_ = open(path.c_str(), flags, 0644);
    if (file_ < 0)
        fail_file("make", path, errno);
}

// Delegates, so that the destructor cleans up when something below throws.
raw_file::raw_file(const std::string &path, size_t bytes) : raw_file(path) {
    bytes_ = (bytes + block_bytes - 1) / block_bytes * block_bytes;
    if (int error = posix_fallocate(file_, 0, static_cast<off_t>(bytes_)); error != 0)
        fail_file("allocate space for", path, error);
    buffer_ = std::aligned_alloc(block_bytes, piece_bytes);
    if (buffer_ == nullptr)
        throw failure("not enough memory");
    std::memset(buffer_, 0x5a, piece_bytes);
    write_all();
}

raw_file::~raw_file() {
    std::free(buffer_);
    close(file_);
    unlink(path_.c_str());
}

void raw_file::write_all() {
    for (size_t done = 0; done < bytes_;) {
        size_t piece = std::min(piece_bytes, bytes_ - done);
        ssize_t written = pwrite(file_, buffer_, piece, static_cast<off_t>(done));
        if (written < 0 && errno == EINTR)
            continue;
        if (written != static_cast<ssize_t>(piece))
            fail_file("write", path_, written < 0 ? errno : ENOSPC);
        done += piece;
    }
    if (fdatasync(file_) != 0)
        fail_file("flush", path_, errno);
}

} // namespace demo
