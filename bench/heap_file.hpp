// A snapshot heap as the suites use it: one large block, found again by its root.
#pragma once

#include "files.hpp"
#include "harness.hpp"

namespace bench {

struct heap_settings {
    size_t limit_bytes = 0;
    ty_tracking tracking = TY_TRACK_AUTOMATIC;
    ty_background background = TY_BACKGROUND_THREAD;
};

class heap_file {
public:
    // Opens the heap, or creates it.
    heap_file(const std::string &path, const heap_settings &settings);
    heap_file(const heap_file &) = delete;
    // Discards what has not been closed: its files are removed after the run.
    ~heap_file();

    // Allocates the block, fills it with bytes that differ from page to page, and sets the root.
    void fill(size_t bytes);
    char *block() const { return static_cast<char *>(ty_root(heap_, "block")); }
    // Takes a snapshot, and checkpoints everything to the image.
    void checkpoint();
    void close();
    ty_heap *get() const { return heap_; }

private:
    ty_heap *heap_ = nullptr;
};

// Writes a new value into each of these pages.
void write_pages(char *data, const std::vector<uint32_t> &pages, uint64_t value);

} // namespace bench
