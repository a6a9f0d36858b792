// Files for suites: written before, read into the page cache, written straight to the disk.
#pragma once

#include <cstddef>
#include <string>

namespace bench {

constexpr size_t page_bytes = 4096;

// Creates a file of this size, with every block written (not only allocated) and flushed.
void write_file(const std::string &path, size_t bytes);

// Evicts a flushed file from the page cache.
void drop_cache(const std::string &path);

// Reads all data of a file (not its holes) into the page cache.
void warm_cache(const std::string &path);

// Flushes all files in this folder, so that their writeback disturbs nothing later.
void flush_folder(const std::string &folder);

void remove_heap(const std::string &path);

// Writes one buffer to a file that was written before: direct, 1 MB per write, and one flush.
class direct_writer {
public:
    explicit direct_writer(const std::string &path);
    direct_writer(const direct_writer &) = delete;
    ~direct_writer();
    void write_and_flush(const char *data, size_t bytes);

private:
    int file_;
};

// Flushes a file's data.
class flusher {
public:
    explicit flusher(const std::string &path);
    flusher(const flusher &) = delete;
    ~flusher();
    void flush();

private:
    int file_;
};

} // namespace bench
