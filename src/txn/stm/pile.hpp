// A growable array of elements in order of insertion, which keeps its memory for the next use.
#pragma once

#include "src/os/os.hpp"

#include <cstddef>
#include <cstdlib>
#include <type_traits>
#include <utility>

namespace taiyen::stm {

template <class T>
class pile {
    static_assert(std::is_trivially_copyable_v<T>);

public:
    pile() = default;
    ~pile() { free(items_); }
    pile(const pile &) = delete;
    pile &operator=(const pile &) = delete;

    // Expected: TY_E_MEMORY.
    ty_status push(const T &item) {
        if (count_ == capacity_) [[unlikely]]
            if (ty_status status = grow())
                return status;
        items_[count_++] = item;
        return TY_OK;
    }
    bool has_room() const { return count_ != capacity_; }
    void push_in_room(const T &item) { items_[count_++] = item; }
    // Makes room for so many more elements.
    ty_status reserve(size_t more) {
        while (count_ + more > capacity_)
            [[unlikely]] if (ty_status status = grow()) return status;
        return TY_OK;
    }
    // Memory beyond what most uses need is freed.
    void clear() {
        count_ = 0;
        if (capacity_ > kept_bytes / sizeof(T)) [[unlikely]]
            release();
    }
    void swap(pile &other) {
        std::swap(items_, other.items_);
        std::swap(count_, other.count_);
        std::swap(capacity_, other.capacity_);
    }
    void cut(size_t count) { count_ = count; }

    size_t count() const { return count_; }
    T &operator[](size_t i) { return items_[i]; }
    const T &operator[](size_t i) const { return items_[i]; }
    const T *begin() const { return items_; }
    const T *end() const { return items_ + count_; }
    T *begin() { return items_; }
    T *end() { return items_ + count_; }

private:
    static constexpr size_t kept_bytes = size_t{1} << 20;

    [[gnu::cold, gnu::noinline]] ty_status grow() {
        size_t wanted = capacity_ != 0 ? capacity_ * 2 : 64;
        void *grown = os::own_realloc(static_cast<void *>(items_), wanted * sizeof(T));
        if (grown == nullptr)
            return failure(TY_E_MEMORY, "note what a transaction does").remedy("make it do less at once");
        items_ = static_cast<T *>(grown);
        capacity_ = wanted;
        return TY_OK;
    }
    [[gnu::cold, gnu::noinline]] void release() {
        free(items_);
        items_ = nullptr;
        capacity_ = 0;
    }

    T *items_ = nullptr;
    size_t count_ = 0;
    size_t capacity_ = 0;
};

} // namespace taiyen::stm
