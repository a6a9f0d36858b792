// The write set: what a transaction has stored and not committed, by address. Parts can be rolled back, the last first.
#pragma once

#include "src/os/os.hpp"

#include <cstdint>

namespace taiyen::stm {

// Some bytes of a word: those in mask. The others are as in memory.
struct written_word {
    uint64_t *word;
    uint64_t value;
    uint64_t mask;
};

class write_set {
public:
    write_set() = default;
    ~write_set() { free(slots_); }
    write_set(const write_set &) = delete;
    write_set &operator=(const write_set &) = delete;

    // False: the set has none of its bytes. A filter.
    bool may_have(const uint64_t *word) const { return (seen_ & bit_of(word)) != 0; }
    // NULL: the set has none of its bytes.
    const written_word *find(const uint64_t *word) const {
        if (!may_have(word)) [[likely]]
            return nullptr;
        return find_slowly(word);
    }
    // Expected: TY_E_MEMORY; then nothing has changed.
    ty_status put(uint64_t *word, uint64_t value, uint64_t mask);
    // value has no bits outside the mask. False: the word is, or may be, in the set, or there is no free slot; nothing
    // has changed.
    bool put_new(uint64_t *word, uint64_t value, uint64_t mask) {
        const size_t count = words_.count();
        if (2 * count + 2 > capacity_ || !words_.has_room()) [[unlikely]]
            return false;
        const size_t slot = home(word);
        if (is_used(slots_[slot])) [[unlikely]]
            return false;
        words_.push_in_room({word, value, mask});
        slots_[slot] = time_ << 32 | count;
        seen_ |= bit_of(word);
        return true;
    }
    void clear();

    struct writes_savepoint {
        size_t words;
        size_t changes;
        size_t kept; // kept_ of the savepoint before
    };
    writes_savepoint savepoint();
    // Rolls back what was put since the savepoint, and drops the savepoints after it.
    void back_to(const writes_savepoint &to);

    bool empty() const { return words_.count() == 0; }
    size_t count() const { return words_.count(); }
    const written_word *begin() const { return words_.begin(); }
    const written_word *end() const { return words_.end(); }

private:
    static constexpr uint64_t multiplier = 0x9e3779b97f4a7c15;
    static constexpr size_t kept_slots = size_t{1} << 16;

    static uint64_t bit_of(const uint64_t *word) {
        return uint64_t{1} << (reinterpret_cast<uintptr_t>(word) * multiplier >> 58);
    }
    size_t home(const uint64_t *word) const {
        return static_cast<size_t>(reinterpret_cast<uintptr_t>(word) * multiplier >> shift_);
    }
    const written_word *find_slowly(const uint64_t *word) const;
    size_t slot_of(const uint64_t *word) const; // its slot, or the one where it would go
    bool is_used(uint64_t slot) const { return slot >> 32 == time_; }
    void fill_slots();
    ty_status grow();

    struct change {
        size_t index;
        written_word before;
    };

    os::array<written_word> words_;
    os::array<change> changes_; // of words that were there at the savepoint
    size_t kept_ = 0;           // number of words that were there at the newest savepoint
    uint64_t seen_ = 0;         // a 64-bit filter of the words
    uint64_t *slots_ = nullptr; // above: the number of this use, below: the word's index; another use: empty
    size_t capacity_ = 0;       // a power of two, at least twice the number of words
    unsigned shift_ = 64;
    uint64_t time_ = 1;
};

} // namespace taiyen::stm
