// What the disk can do: the same number of bytes, written one after the other to a file that has its space already, and
// flushed. No snapshot can be faster.
#pragma once

#include <cstddef>
#include <string>

namespace demo {

class raw_file {
public:
    // Makes the file and writes it once, so that later writes find blocks that exist. It is removed by the destructor.
    raw_file(const std::string &path, size_t bytes);
    ~raw_file();
    raw_file(const raw_file &) = delete;
    raw_file &operator=(const raw_file &) = delete;

    // Writes it all in pieces of 1 MB, past the page cache where the file system allows it, and flushes.
    void write_all();

private:
    explicit raw_file(const std::string &path);

    std::string path_;
    size_t bytes_ = 0;
    int file_ = -1;
    void *buffer_ = nullptr;
};

} // namespace demo
