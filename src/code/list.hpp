// Growable arrays, without the C++ run-time library.
#pragma once

#include "src/os/os.hpp"

#include <algorithm>
#include <new>

namespace taiyen {

template <class T>
class list {
public:
    list() = default;
    list(const list &) = delete;
    list &operator=(const list &) = delete;
    ~list() { memory_.destroy(); }

    // Room for so many more at the end, not filled. Expected: TY_E_MEMORY.
    ty_status extend(size_t count, T **added) {
        const size_t bytes = (count_ + count) * sizeof(T);
        if (bytes > memory_.most())
            if (ty_status status = create())
                return status;
        if (bytes > memory_.provided()) {
            const size_t wanted = std::max({bytes, 2 * memory_.provided(), first_bytes});
            const size_t whole = (wanted + os::page_bytes - 1) / os::page_bytes * os::page_bytes;
            if (ty_status status = memory_.provide(std::min(whole, memory_.most())))
                return status;
        }
        *added = begin() + count_;
        count_ += count;
        return TY_OK;
    }
    ty_status push(const T &one) {
        T *place = nullptr;
        if (ty_status status = extend(1, &place))
            return status;
        *place = one;
        return TY_OK;
    }
    void cut(size_t count) { count_ = count; }
    T pop() { return begin()[--count_]; }
    T *begin() const { return memory_.as<T>(); }
    T *end() const { return begin() + count_; }
    T &operator[](size_t n) const { return begin()[n]; }
    size_t count() const { return count_; }

private:
    static constexpr size_t first_bytes = size_t{16} << 10, most_bytes = size_t{4} << 30;

    ty_status create() {
        if (memory_.most() != 0)
            return failure(TY_E_MEMORY, "keep more than %zu bytes of what is known of a heap", most_bytes);
        return memory_.create_aside(most_bytes);
    }

    os::space memory_{};
    size_t count_ = 0;
};

} // namespace taiyen
