// The heap layer's part of fuzzy_calls.hpp: its running state and the image's forms do not go into one file.
#include "src/heap/tables/heap_runtime.hpp"

namespace taiyen::test {

bool is_paused(const ty_heap *heap);

bool is_paused(const ty_heap *heap) {
    return heap->pauses != 0;
}

} // namespace taiyen::test
