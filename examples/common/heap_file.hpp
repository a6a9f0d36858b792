// What a C++ program may want around the C API: failures as exceptions, an owner for an open heap, typed allocation.
#pragma once

#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <taiyen/taiyen.h>

namespace demo {

struct failure : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// Taiyen's error text says what was attempted, where, why it failed and what to do about it.
inline void check(ty_status status) {
    if (status != TY_OK)
        throw failure(ty_error_text());
}

// An open heap. An exception that leaves its scope discards what was done since the last snapshot, so nothing half-done
// ever becomes durable, and no code has to clean up structures after a failure.
class heap_file {
public:
    explicit heap_file(const std::string &path, ty_open_mode mode = TY_OPEN_EXISTING)
        : heap_file(path, options_of(mode)) {}
    heap_file(const std::string &path, const ty_open_options &options) {
        check(ty_open(path.c_str(), &options, &heap_, &report_));
    }
    ~heap_file() {
        if (heap_ != nullptr)
            ty_discard(heap_);
    }
    heap_file(const heap_file &) = delete;
    heap_file &operator=(const heap_file &) = delete;

    // Takes the last snapshot and closes the files.
    void close() {
        check(ty_close(heap_));
        heap_ = nullptr;
    }

    ty_heap *get() const { return heap_; }
    const ty_report &report() const { return report_; }

private:
    static ty_open_options options_of(ty_open_mode mode) {
        ty_open_options options = TY_OPEN_OPTIONS_INIT;
        options.mode = mode;
        return options;
    }
    ty_heap *heap_ = nullptr;
    ty_report report_{};
};

// `count` objects of a plain type, all bytes zero.
template <class T>
T *make(ty_heap *heap, size_t count = 1) {
    void *block = ty_alloc_zeroed(heap, count * sizeof(T));
    if (block == nullptr)
        throw failure(ty_error_text());
    return static_cast<T *>(block);
}

// Makes a block of `count` objects larger or smaller; it may move. NULL stands for an empty array. No heap is named, as
// a block knows its own; `neighbour` is any block of the same heap.
template <class T>
T *resize(T *block, size_t count, const void *neighbour) {
    if (block == nullptr)
        return make<T>(ty_heap_of(neighbour), count);
    void *resized = ty_resize(block, count * sizeof(T));
    if (resized == nullptr)
        throw failure(ty_error_text());
    return static_cast<T *>(resized);
}

inline void release(void *block) {
    check(ty_free(block));
}

// A copy of a text in the heap, ended by a zero byte; NULL for an empty text.
inline char *copy_text(ty_heap *heap, std::string_view text) {
    if (text.empty())
        return nullptr;
    char *copy = make<char>(heap, text.size() + 1);
    std::memcpy(copy, text.data(), text.size());
    return copy;
}

inline std::string_view view(const char *text) {
    return text == nullptr ? std::string_view() : text;
}

} // namespace demo
