// The words of a heap that lead into code.
#pragma once

#include "fates.hpp"

namespace taiyen {

// Calls for each word at a multiple of 8 that is an address of the range, in a live block that is none of the library's
// own. The heap is paused meanwhile. Expected: TY_E_DAMAGED, and what the visit returns, which ends it.
using word_visit = ty_status(void *context, uint64_t *word, const ty_block &block);
ty_status each_word(ty_heap *heap, const code_record &own, address_range range, word_visit *visit, void *context);

// Where a word is to be another one.
struct repointing {
    uint64_t *word;
    uint64_t value;
};
struct words_found {
    list<repointing> repoint;
    uint64_t lost = 0;
    uint64_t unnamed = 0;   // that lead to nothing that had a name
    uint64_t lost_word = 0; // the first of those that are lost; without, of the others
    const object_fate *lost_object = nullptr;
    ty_block lost_block{};
};
// CD3: each word that the translator leads on stands there once.
ty_status find_words(ty_heap *heap, const code_record &own, translator &words, words_found *found);

} // namespace taiyen
