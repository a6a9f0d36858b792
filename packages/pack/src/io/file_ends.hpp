// Writers to and readers of files, pipes and memory.
#pragma once

#include <taiyen/pack.h>

#include <string>
#include <vector>

namespace taiyen::pack {

// Contexts of the functions below.
struct descriptor_end {
    int descriptor;
    const char *path; // NULL: no path is known
};
ty_status write_descriptor(const void *bytes, size_t size, void *end);
ty_status read_descriptor(void *bytes, size_t size, size_t *got, void *end);

struct memory_source {
    const char *bytes;
    size_t size;
};
ty_status read_memory(void *bytes, size_t size, size_t *got, void *source);

// Memory from malloc().
struct memory_sink {
    char *bytes = nullptr;
    size_t size = 0;
    size_t room = 0;
    ~memory_sink();
};
ty_status write_memory(const void *bytes, size_t size, void *sink);

// Renames a file, if no file has the new name; else errno is EEXIST.
bool rename_new(const char *from, const char *to);

// A file that is read from its start.
class file_source {
public:
    ~file_source();
    ty_status open(const char *path);
    descriptor_end end{-1, nullptr};
};

// PK6: a new file that gets its name when it is complete and durable.
class file_sink {
public:
    ~file_sink(); // removes a file that has no name yet
    ty_status create(const char *path);
    ty_status finish();
    descriptor_end end{-1, nullptr};

private:
    ty_status remove_remains(const char *made);

    std::string path_, unfinished_;
    int folder_ = -1;
};

} // namespace taiyen::pack
