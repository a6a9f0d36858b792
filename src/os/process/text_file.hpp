// Small text files of /proc and /sys, read without allocation.
#pragma once

#include <cstddef>
#include <cstdint>

namespace taiyen::os {

// Reads a file's beginning into text, zero-terminated; false if it cannot be read.
bool read_text(const char *path, char *text, size_t text_bytes);

// Reads a decimal number at the file's beginning; false if it has none.
bool read_number(const char *path, uint64_t *number);

// The mappings of this process, by rising address.
struct mapping {
    uintptr_t start;
    uintptr_t end;
    char name[128]; // a path, [heap], [stack] ...; empty: anonymous memory; longer ones are cut
};

class mapping_reader {
public:
    bool open();
    bool next(mapping &found); // false at the end, or when reading fails: see failed()
    bool failed() const { return failed_; }
    void close();

private:
    int get();
    uintptr_t get_hex(char &stop);

    int fd_ = -1;
    bool failed_ = false;
    size_t used_ = 0;
    size_t filled_ = 0;
    char buffer_[4096];
};

} // namespace taiyen::os
