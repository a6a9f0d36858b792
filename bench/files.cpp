#include "files.hpp"
#include "harness.hpp"
#include "kernel_probe.hpp"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <unistd.h>

namespace bench {

namespace {

constexpr size_t chunk_bytes = size_t{1} << 20;

int open_or_throw(const std::string &path, int flags) {
    int file = open(path.c_str(), flags | O_CLOEXEC, 0600);
    if (file < 0)
        fail_system(path.c_str());
    return file;
}

void write_whole(int file, const char *data, size_t bytes, size_t offset) {
    for (size_t done = 0; done < bytes;) {
        size_t part = std::min(chunk_bytes, bytes - done);
        if (pwrite(file, data + done, part, static_cast<off_t>(offset + done)) != static_cast<ssize_t>(part))
            fail_system("cannot write a file");
        done += part;
    }
}

void flush_file(int file) {
    if (fdatasync(file) != 0)
        fail_system("cannot flush a file");
}

} // namespace

void write_file(const std::string &path, size_t bytes) {
    int file = open_or_throw(path, O_RDWR | O_CREAT | O_TRUNC);
    mapping content = mapping::touched_memory(chunk_bytes);
    random_source random(7);
    for (size_t at = 0; at < chunk_bytes; at += sizeof(uint64_t))
        *reinterpret_cast<uint64_t *>(content.data() + at) = random.next();
    for (size_t done = 0; done < bytes; done += chunk_bytes)
        write_whole(file, content.data(), std::min(chunk_bytes, bytes - done), done);
    flush_file(file);
    close(file);
}

void drop_cache(const std::string &path) {
    int file = open_or_throw(path, O_RDONLY);
    int error = posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
    close(file);
    if (error != 0)
        throw std::runtime_error("cannot put a file out of the page cache");
}

void warm_cache(const std::string &path) {
    int file = open_or_throw(path, O_RDONLY);
    std::vector<char> buffer(chunk_bytes);
    off_t end = 0;
    for (;;) {
        off_t start = lseek(file, end, SEEK_DATA);
        if (start < 0)
            break; // no more data
        end = lseek(file, start, SEEK_HOLE);
        while (start < end) {
            ssize_t got = pread(file, buffer.data(), std::min(buffer.size(), static_cast<size_t>(end - start)), start);
            if (got <= 0)
                fail_system("cannot read a file");
            start += got;
        }
    }
    close(file);
}

void flush_folder(const std::string &folder) {
    for (const std::filesystem::directory_entry &each : std::filesystem::recursive_directory_iterator(folder)) {
        if (!each.is_regular_file())
            continue;
        int file = open_or_throw(each.path(), O_RDONLY);
        flush_file(file);
        close(file);
    }
}

void remove_heap(const std::string &path) {
    for (const char *suffix : {"", "-journal", "-log"})
        if (unlink((path + suffix).c_str()) != 0 && errno != ENOENT)
            fail_system("cannot remove a file");
}

direct_writer::direct_writer(const std::string &path) : file_(open(path.c_str(), O_RDWR | O_DIRECT | O_CLOEXEC)) {
    if (file_ < 0)
        throw unavailable("the file system refuses direct I/O");
}

direct_writer::~direct_writer() {
    close(file_);
}

void direct_writer::write_and_flush(const char *data, size_t bytes) {
    write_whole(file_, data, bytes, 0);
    flush_file(file_);
}

flusher::flusher(const std::string &path) : file_(open_or_throw(path, O_RDWR)) {}

flusher::~flusher() {
    close(file_);
}

void flusher::flush() {
    flush_file(file_);
}

} // namespace bench
