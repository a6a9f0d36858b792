// Finds out, while it still exists, what a library keeps outside of the heap that its structures lie in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <taiyen/taiyen.h>
#include <vector>

namespace demo {

// A word of a live block that leads into this process's own memory (malloc's, a stack), which ends with the process.
struct lost_word {
    const void *block;
    size_t block_bytes;
    size_t offset; // in the block
    uint64_t value;
};

// All such words, or what looks like them: a number may be one by chance, and so may remains of a block's former use.
// Words that lead into programs and libraries are not among them: ty_each_code_word lists those. Other threads must not
// use the heap meanwhile.
std::vector<lost_word> lost_words_of(ty_heap *heap);

} // namespace demo
