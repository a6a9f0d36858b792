// The allocation functions of C++. The non-throwing forms of new are left to the C++ run-time library: they call these
// within a try block, which only that library can have, since a program's new-handler may throw.
#include "malloc.hpp"

#include <cstdlib>
#include <new>

using namespace taiyen;
using namespace taiyen::drop_in;

// From the C++ run-time library, which a program in C may lack: then nothing calls new.
namespace std {
[[gnu::weak]] new_handler get_new_handler() noexcept;
__attribute__((weak, noreturn)) void __throw_bad_alloc();
} // namespace std

namespace {

[[gnu::noinline, gnu::cold]] void *allocate_or_throw(size_t size, size_t alignment, call_site site) {
    for (;;) {
        std::new_handler handler = std::get_new_handler != nullptr ? std::get_new_handler() : nullptr;
        if (handler == nullptr)
            break;
        handler();
        if (void *block = allocate_aligned(size, alignment, site))
            return block;
    }
    if (std::__throw_bad_alloc != nullptr)
        std::__throw_bad_alloc();
    abort_for("operator new");
}

[[gnu::noinline]] void *make_otherwise(size_t size, call_site site) {
    void *block = allocate_otherwise(size, site);
    return block != nullptr ? block : allocate_or_throw(size, 1, site);
}

[[gnu::always_inline]] inline void *make(size_t size, call_site site) {
    void *block = try_alloc_cached(size);
    return block != nullptr ? block : make_otherwise(size, site);
}

[[gnu::always_inline]] inline void *make(size_t size, std::align_val_t alignment, call_site site) {
    void *block = allocate_aligned(size, static_cast<size_t>(alignment), site);
    if (block == nullptr) [[unlikely]]
        return allocate_or_throw(size, static_cast<size_t>(alignment), site);
    return block;
}

constexpr const char *deletes = "operator delete";

} // namespace

#define TAIYEN_OPERATOR [[gnu::visibility("default")]]

TAIYEN_OPERATOR void *operator new(size_t size) {
    return make(size, TAIYEN_NEW_SITE);
}
TAIYEN_OPERATOR void *operator new[](size_t size) {
    return make(size, TAIYEN_NEW_SITE);
}
TAIYEN_OPERATOR void *operator new(size_t size, std::align_val_t alignment) {
    return make(size, alignment, TAIYEN_NEW_SITE);
}
TAIYEN_OPERATOR void *operator new[](size_t size, std::align_val_t alignment) {
    return make(size, alignment, TAIYEN_NEW_SITE);
}

TAIYEN_OPERATOR void operator delete(void *block) noexcept {
    release(deletes, block);
}
TAIYEN_OPERATOR void operator delete[](void *block) noexcept {
    release(deletes, block);
}
TAIYEN_OPERATOR void operator delete(void *block, size_t) noexcept {
    release(deletes, block);
}
TAIYEN_OPERATOR void operator delete[](void *block, size_t) noexcept {
    release(deletes, block);
}
TAIYEN_OPERATOR void operator delete(void *block, std::align_val_t) noexcept {
    release(deletes, block);
}
TAIYEN_OPERATOR void operator delete[](void *block, std::align_val_t) noexcept {
    release(deletes, block);
}
TAIYEN_OPERATOR void operator delete(void *block, size_t, std::align_val_t) noexcept {
    release(deletes, block);
}
TAIYEN_OPERATOR void operator delete[](void *block, size_t, std::align_val_t) noexcept {
    release(deletes, block);
}
TAIYEN_OPERATOR void operator delete(void *block, const std::nothrow_t &) noexcept {
    release(deletes, block);
}
TAIYEN_OPERATOR void operator delete[](void *block, const std::nothrow_t &) noexcept {
    release(deletes, block);
}
TAIYEN_OPERATOR void operator delete(void *block, std::align_val_t, const std::nothrow_t &) noexcept {
    release(deletes, block);
}
TAIYEN_OPERATOR void operator delete[](void *block, std::align_val_t, const std::nothrow_t &) noexcept {
    release(deletes, block);
}
