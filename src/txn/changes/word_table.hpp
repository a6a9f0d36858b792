// A hash table from a block's word number to a number. Open addressing, no tombstones.
#pragma once

#include "arena.hpp"

namespace taiyen {

class word_table {
public:
    ty_status create(size_t most_entries);
    void destroy() { slots_.destroy(); }

    static constexpr uint32_t none = UINT32_MAX;
    uint32_t find(uint64_t word) const; // none: not found
    // Precondition: the word is not in the table. Expected: TY_E_MEMORY.
    ty_status insert(uint64_t word, uint32_t value);
    void change(uint64_t word, uint32_t value); // the word must be in the table, as for erase
    void erase(uint64_t word);
    size_t count() const { return count_; }
    // Calls back with each word of the table, until the callback returns another status than TY_OK.
    template <class Callback>
    ty_status each_word(Callback callback) const {
        for (size_t at = 0; count_ != 0 && at < capacity_; at++)
            if (uint64_t word = slots_.as<slot>()[at].word)
                if (ty_status status = callback(word))
                    return status;
        return TY_OK;
    }

private:
    struct slot {
        uint64_t word; // 0: empty; no block has word 0
        uint64_t value;
    };
    size_t home(uint64_t word) const { return word * 0x9e3779b97f4a7c15 >> shift_; }
    size_t place(uint64_t word) const; // its slot, or the empty one where it would go
    ty_status grow();

    arena slots_;
    size_t count_;
    size_t capacity_; // a power of two, at least twice the count
    unsigned shift_;
};

} // namespace taiyen
