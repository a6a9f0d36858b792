// How to find out, while it is still there, what a library keeps outside of the heap that its structures lie in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <taiyen/taiyen.h>
#include <vector>

namespace demo {

// A word of a live block that leads into this process's own memory (malloc's, a stack), which is gone with the process.
struct lost_word {
    const void *block;
    size_t block_bytes;
    size_t offset; // in it
    uint64_t value;
};

// All of them, or what looks like them: a number may be one by chance, and so may what a block holds of its former use.
// What leads into programs and libraries is not among them: ty_each_code_word tells it. Other threads must not use the
// heap meanwhile.
std::vector<lost_word> lost_words_of(ty_heap *heap);

} // namespace demo
