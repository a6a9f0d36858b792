#include "word_search.hpp"

#include "../base/base.hpp"
#include "../calls/calls.hpp"
#include "vm.hpp"

#include <algorithm>

namespace taiyen::os {
namespace {

constexpr size_t chunk_bytes = size_t{64} << 10;

} // namespace

word_search::~word_search() {
    if (copy_ != nullptr)
        unmap_memory(copy_, chunk_bytes);
}

bool word_search::look(uintptr_t from, size_t bytes) {
    if (copy_ == nullptr) {
        void *made = nullptr;
        if (map_memory(chunk_bytes, memory_hint::none, &made))
            return false;
        copy_ = static_cast<uint64_t *>(made);
    }
    bool whole = true;
    const uintptr_t end = from + bytes;
    while (from < end) {
        const size_t wanted = std::min(chunk_bytes, end - from);
        const size_t got = copy(from, wanted);
        look_at_copy(from, got);
        whole = whole && got == wanted;
        // Continues after a page that is unreadable.
        from = got != 0 ? from + got : (from / page_bytes + 1) * page_bytes;
    }
    return whole;
}

// Returns the number of bytes read, a multiple of 8. Where the kernel forbids the call (a sandbox), loads the words.
size_t word_search::copy(uintptr_t from, size_t bytes) {
    const ssize_t got = sys::read_memory(reinterpret_cast<const void *>(from), copy_, bytes);
    if (got < 0 && (errno == EPERM || errno == ENOSYS)) {
        load(from, bytes);
        return bytes;
    }
    return got > 0 ? static_cast<size_t>(got) & ~(sizeof(uint64_t) - 1) : 0;
}

[[gnu::no_sanitize_thread, gnu::no_sanitize_address]] void word_search::load(uintptr_t from, size_t bytes) {
    const auto *words = reinterpret_cast<const uint64_t *>(from);
    for (size_t n = 0; n < bytes / sizeof *words; ++n)
        copy_[n] = __atomic_load_n(words + n, __ATOMIC_RELAXED);
}

void word_search::look_at_copy(uintptr_t from, size_t bytes) {
    for (size_t n = 0; n < bytes / sizeof(uint64_t); ++n)
        if (copy_[n] - begin_ < end_ - begin_) [[unlikely]]
            visit_(context_, from + n * sizeof(uint64_t), copy_[n]);
}

} // namespace taiyen::os
