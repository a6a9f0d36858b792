#include "cache_lines.hpp"

#include <atomic>
#include <cstdint>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace taiyen::os {
namespace {

constexpr uintptr_t line_bytes = 64;

enum class way : int { unknown, none, flush, flush_relaxed, write_back };

#if defined(__x86_64__)

way find_way() {
    unsigned a = 0, b = 0, c = 0, d = 0;
    bool extended = __get_cpuid_count(7, 0, &a, &b, &c, &d);
    if (extended && b >> 24 & 1)
        return way::write_back;
    if (extended && b >> 23 & 1)
        return way::flush_relaxed;
    return __get_cpuid(1, &a, &b, &c, &d) && d >> 19 & 1 ? way::flush : way::none;
}

[[gnu::target("clwb")]] void write_back_lines(char *at, const char *end) {
    for (; at < end; at += line_bytes)
        _mm_clwb(at);
}

[[gnu::target("clflushopt")]] void flush_lines_relaxed(char *at, const char *end) {
    for (; at < end; at += line_bytes)
        _mm_clflushopt(at);
}

void flush_lines(char *at, const char *end) {
    for (; at < end; at += line_bytes)
        _mm_clflush(at);
}

void store_fence() {
    _mm_sfence();
}

#else

way find_way() {
    return way::none;
}
void write_back_lines(char *, const char *) {}
void flush_lines_relaxed(char *, const char *) {}
void flush_lines(char *, const char *) {}
void store_fence() {}

#endif

way known_way() {
    static std::atomic<way> known{way::unknown}; // a race only asks twice
    way answer = known.load(std::memory_order_relaxed);
    if (answer == way::unknown) {
        answer = find_way();
        known.store(answer, std::memory_order_relaxed);
    }
    return answer;
}

} // namespace

bool can_write_back_cache() {
    return known_way() != way::none;
}

void write_back_cache(const void *address, size_t bytes) {
    uintptr_t first = reinterpret_cast<uintptr_t>(address) / line_bytes * line_bytes;
    auto *at = reinterpret_cast<char *>(first);
    const char *end = static_cast<const char *>(address) + bytes;
    switch (known_way()) {
    case way::write_back:
        write_back_lines(at, end);
        break;
    case way::flush_relaxed:
        flush_lines_relaxed(at, end);
        break;
    default:
        flush_lines(at, end);
    }
    store_fence();
}

} // namespace taiyen::os
