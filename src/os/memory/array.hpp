// A growable array in the library's own memory. Its elements move when it grows, and it keeps its memory for the next
// use. Code that runs in a handler of faults has arrays that do neither: src/txn/changes/arena.hpp.
#pragma once

#include "../base/base.hpp"
#include "../process/process.hpp"

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <type_traits>
#include <utility>

namespace taiyen::os {

template <class T>
class array { // all zeros is an empty one
    static_assert(std::is_trivially_copyable_v<T>);

public:
    array() = default;
    ~array() { free(items_); }
    array(const array &) = delete;
    array &operator=(const array &) = delete;

    // Expected: TY_E_MEMORY, as of those below.
    ty_status push(const T &item) {
        if (count_ == capacity_) [[unlikely]]
            if (ty_status status = grow(1))
                return status;
        items_[count_++] = item;
        return TY_OK;
    }
    bool has_room() const { return count_ != capacity_; }
    void push_in_room(const T &item) { items_[count_++] = item; }
    // Makes room for so many more elements.
    ty_status reserve(size_t more) { return more <= capacity_ - count_ ? TY_OK : grow(more); }
    // So many more at the end, all zeros.
    ty_status extend(size_t more, T **added) {
        if (ty_status status = reserve(more))
            return status;
        *added = end();
        if (more)
            memset(static_cast<void *>(*added), 0, more * sizeof(T));
        count_ += more;
        return TY_OK;
    }
    T pop() { return items_[--count_]; }
    void cut(size_t count) { count_ = count; }
    // Memory beyond what most uses need is freed.
    void clear() {
        count_ = 0;
        if (capacity_ > kept_bytes / sizeof(T)) [[unlikely]]
            release();
    }
    [[gnu::cold, gnu::noinline]] void release() {
        free(items_);
        items_ = nullptr;
        count_ = capacity_ = 0;
    }
    void swap(array &other) {
        std::swap(items_, other.items_);
        std::swap(count_, other.count_);
        std::swap(capacity_, other.capacity_);
    }

    size_t count() const { return count_; }
    T &operator[](size_t n) { return items_[n]; }
    const T &operator[](size_t n) const { return items_[n]; }
    T *begin() { return items_; }
    T *end() { return items_ + count_; }
    const T *begin() const { return items_; }
    const T *end() const { return items_ + count_; }

private:
    static constexpr size_t kept_bytes = size_t{1} << 20, first = 64;

    [[gnu::cold, gnu::noinline]] ty_status grow(size_t more) {
        size_t wanted = capacity_ ? 2 * capacity_ : first, bytes = 0;
        if (wanted < count_ + more)
            wanted = count_ + more;
        const bool fits = !__builtin_mul_overflow(wanted, sizeof(T), &bytes) && wanted > count_;
        void *grown = fits ? internal_realloc(static_cast<void *>(items_), bytes) : nullptr;
        if (!grown)
            return failure(TY_E_MEMORY, "make a list longer: %zu more of %zu bytes each", more, sizeof(T))
                .remedy("free memory, raise the process's limits, or do less at once");
        items_ = static_cast<T *>(grown);
        capacity_ = wanted;
        return TY_OK;
    }

    T *items_ = nullptr;
    size_t count_ = 0;
    size_t capacity_ = 0;
};

} // namespace taiyen::os
