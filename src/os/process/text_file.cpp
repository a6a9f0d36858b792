#include "text_file.hpp"

#include "../calls/calls.hpp"

namespace taiyen::os {

bool read_text(const char *path, char *text, size_t text_bytes) {
    int fd = open_system_file(path);
    if (fd < 0)
        return false;
    size_t used = 0;
    ssize_t got;
    do {
        got = sys::read_system_file(fd, text + used, text_bytes - 1 - used);
        if (got > 0)
            used += static_cast<size_t>(got);
    } while ((got > 0 && used < text_bytes - 1) || (got < 0 && errno == EINTR));
    sys::close(fd);
    text[used] = 0;
    return got >= 0;
}

bool read_number(const char *path, uint64_t *number) {
    char text[32];
    if (!read_text(path, text, sizeof text) || text[0] < '0' || text[0] > '9')
        return false;
    *number = strtoull(text, nullptr, 10);
    return true;
}

bool mapping_reader::open() {
    fd_ = open_system_file("/proc/self/maps");
    failed_ = fd_ < 0;
    used_ = filled_ = 0;
    return !failed_;
}

void mapping_reader::close() {
    if (fd_ >= 0)
        sys::close(fd_);
    fd_ = -1;
}

int mapping_reader::get() {
    if (used_ == filled_) {
        ssize_t got;
        do
            got = sys::read_system_file(fd_, buffer_, sizeof buffer_);
        while (got < 0 && errno == EINTR);
        failed_ = failed_ || got < 0;
        if (got <= 0)
            return -1;
        used_ = 0;
        filled_ = static_cast<size_t>(got);
    }
    return static_cast<unsigned char>(buffer_[used_++]);
}

uintptr_t mapping_reader::get_hex(char &stop) {
    uintptr_t number = 0;
    for (;;) {
        int c = get();
        if (c >= '0' && c <= '9')
            number = number << 4 | static_cast<uintptr_t>(c - '0');
        else if (c >= 'a' && c <= 'f')
            number = number << 4 | static_cast<uintptr_t>(c - 'a' + 10);
        else {
            stop = c < 0 ? 0 : static_cast<char>(c);
            return number;
        }
    }
}

// A line: start-end permissions offset device inode      name
[[gnu::cold]] bool mapping_reader::next(mapping &found) {
    char stop = 0;
    found.start = get_hex(stop);
    if (stop != '-')
        return false;
    found.end = get_hex(stop);
    int c = stop;
    for (int field = 0; field < 4 && c > 0 && c != '\n'; field++)
        for (c = get(); c > 0 && c != ' ' && c != '\n';)
            c = get();
    while (c == ' ')
        c = get();
    size_t length = 0;
    for (; c > 0 && c != '\n'; c = get())
        if (length < sizeof found.name - 1)
            found.name[length++] = static_cast<char>(c);
    found.name[length] = 0;
    return true;
}

} // namespace taiyen::os
