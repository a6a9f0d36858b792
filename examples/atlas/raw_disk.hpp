// The speed of the disk: the same number of bytes, written sequentially to a file with allocated blocks, and flushed.
// No snapshot can be faster.
#pragma once

#include <cstddef>
#include <string>

namespace demo {

class raw_file {
public:
    // Creates the file and writes it once, so that later writes overwrite existing blocks. The destructor removes it.
    raw_file(const std::string &path, size_t bytes);
    ~raw_file();
    raw_file(const raw_file &) = delete;
    raw_file &operator=(const raw_file &) = delete;

    // Writes it all in pieces of 1 MB, bypassing the page cache if the file system allows it, and flushes.
    void write_all();

private:
    explicit raw_file(const std::string &path);

    std::string path_;
    size_t bytes_ = 0;
    int file_ = -1;
    void *buffer_ = nullptr;
};

} // namespace demo
