#include "heap_check.hpp"
#include "heap_file.hpp"

namespace demo {

std::string problem_of(ty_heap *heap) {
    std::string problem;
    ty_status verdict = ty_heap_verify(
        heap,
        [](const char *text, void *context) {
            auto &first = *static_cast<std::string *>(context);
            if (first.empty())
                first = text;
        },
        &problem);
    if (verdict == TY_OK)
        return {};
    return "the heap does not verify: " + (problem.empty() ? ty_error_text() : problem);
}

uint64_t live_blocks_of(ty_heap *heap) {
    ty_heap_stats stats{};
    stats.struct_size = sizeof stats;
    check(ty_heap_get_stats(heap, &stats));
    return stats.live_blocks - library_blocks_of(heap);
}

uint64_t library_blocks_of(ty_heap *heap) {
    uint64_t count = 0;
    check(ty_each_internal_block(
        heap,
        [](const ty_block *, void *context) {
            ++*static_cast<uint64_t *>(context);
            return true;
        },
        &count));
    return count;
}

} // namespace demo
