// The words of a heap that point into code.
#pragma once

#include "object_matching.hpp"

namespace taiyen {

// Lower numbers look like addresses of programs that lie there.
inline constexpr uint64_t low_end = uint64_t{1} << 32;

// Calls back for each word at a multiple of 8 that is an address of the range, in a live block that is not the
// library's own. The heap is paused meanwhile. Expected: TY_E_DAMAGED, and what the visit returns, which ends it.
using word_visit = ty_status(void *context, uint64_t *word, const ty_block &block);
ty_status each_word(ty_heap *heap, const code_record &own, address_range range, word_visit *visit, void *context);

// The words that are known to be numbers. Queried in the order of their addresses.
class known_numbers {
public:
    known_numbers(ty_heap *heap, const code_record &record)
        : base_(static_cast<const char *>(heap_base(heap))), next_(record.numbers),
          end_(record.numbers + record.number_count) {}
    uint64_t offset_of(const uint64_t *word) const {
        return static_cast<uint64_t>(reinterpret_cast<const char *>(word) - base_);
    }
    bool has(const uint64_t *word) {
        const uint64_t offset = offset_of(word);
        while (next_ < end_ && next_->offset < offset)
            ++next_;
        return next_ < end_ && next_->offset == offset && next_->value == *word;
    }

private:
    const char *base_;
    const code_number *next_, *end_;
};

// A word that must change.
struct repointing {
    uint64_t *word;
    uint64_t value;
};
struct words_found {
    os::array<repointing> repoint;
    os::array<code_number> numbers;
    uint64_t lost = 0;
    uint64_t unnamed = 0;   // that point to nothing that had a name
    uint64_t lost_word = 0; // the first of the lost ones; if none is lost, of the others
    const object_match *lost_object = nullptr;
    ty_block lost_block{};
    bool doubtful = false; // the first one is: the end of one variable, or the begin of another
};
// The words that lie in the range of these objects, and so must be numbers (CD7), in the order of their offsets.
ty_status find_numbers(ty_heap *heap, const code_record &own, const os::array<address_range> &objects,
                       os::array<code_number> *numbers);

// Addresses in the history of undo that point into objects of the record that are not at their places, or to symbols
// that another program replaces there.
struct history_words {
    uint64_t count = 0;
    const object_match *object = nullptr; // of the first one
};
ty_status find_in_history(ty_heap *heap, const os::array<object_match> &matches, const translator &words,
                          history_words *found);

// CD3: each word that the translator repoints is listed once.
// CD7: words in the heap from before it was opened in this process are not this process's addresses, unless the same
//      object lay there before: such words are numbers, and stay numbers until their value changes.
// believes_begins: what may be the end of one variable and the begin of another is the begin.
ty_status find_words(ty_heap *heap, const code_record &own, translator &words, bool believes_begins,
                     words_found *found);

} // namespace taiyen
