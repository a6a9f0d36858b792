// The write set: what a transaction has stored and not committed, by address. Parts can be rolled back, the last first.
#pragma once

#include "window.hpp"

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

    // NULL: the set has none of its bytes.
    const written_word *find(const uint64_t *word) const {
        if (empty())
            return nullptr;
        for (size_t at = home(word); is_used(slots_[at]); at = (at + 1) & (capacity_ - 1))
            if (words_[slots_[at] & UINT32_MAX].word == word)
                return &words_[slots_[at] & UINT32_MAX];
        return nullptr;
    }
    // Expected: TY_E_MEMORY; then nothing has changed.
    ty_status put(uint64_t *word, uint64_t value, uint64_t mask);
    // value has no bits outside the mask. False: nothing has changed, and put() does it.
    bool put_at_once(uint64_t *word, uint64_t value, uint64_t mask) {
        const size_t count = words_.count();
        if (count == room_) [[unlikely]]
            return false;
        uint64_t &slot = slots_[home(word)];
        if (!is_used(slot)) [[likely]] {
            words_.push_in_room({word, value, mask});
            slot = time_ << 32 | count;
            return true;
        }
        const size_t index = slot & UINT32_MAX;
        if (words_[index].word != word || index < kept_)
            return false;
        change_value(words_[index], value, mask);
        return true;
    }
    void clear();
    uint64_t filter() const; // of its words, as in a window

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
    static constexpr size_t kept_slots = size_t{1} << 16;

    size_t home(const uint64_t *word) const {
        return static_cast<size_t>(reinterpret_cast<uintptr_t>(word) * TY_DETAIL_HASH >> shift_);
    }
    static void change_value(written_word &written, uint64_t value, uint64_t mask) {
        written.value = (written.value & ~mask) | value;
        written.mask |= mask;
    }
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
    uint64_t *slots_ = nullptr; // above: the number of this use, below: the word's index; another use: empty
    size_t capacity_ = 0;       // a power of two, at least twice the number of words
    size_t room_ = 0;           // for so many words
    unsigned shift_ = 64;
    uint64_t time_ = 1;
};

} // namespace taiyen::stm
