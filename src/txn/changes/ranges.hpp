// The range cache: words of the heap that a transaction declared, with what they held.
//
// E1: of two entries, the one whose copy lies lower was made earlier. So where entries overlap, the lowest copy is the
//     one that counts, and restoring in falling order brings the oldest content back.
#pragma once

#include "../../log/log.hpp"
#include "arena.hpp"

#include <cstring>

namespace taiyen {

// A range, packed: the number of its first word, and of how many words.
struct range_entry {
    uint64_t key;
    const uint64_t *before; // what they held; NULL: unknown, they are to be logged whole

    static constexpr unsigned count_bits = 23;
    static constexpr uint64_t count_max = (uint64_t{1} << count_bits) - 1;
    static constexpr uint64_t pack(uint64_t first, uint64_t count) { return first << count_bits | count; }
    uint64_t first() const { return key >> count_bits; }
    uint64_t count() const { return key & count_max; }
    uint64_t end() const { return first() + count(); }
};

class range_cache {
public:
    // The most words that the heap has are what the reservation of address space goes by.
    ty_status create(char *base, uint64_t heap_words);
    void destroy();

    // What may be declared: words [first, end).
    void set_bounds(uint64_t first, uint64_t end) {
        low_ = first * 8;
        span_ = (end - first) * 8;
    }

    // An aligned word within the bounds, if there is room. It is copied by a load that nothing else waits for.
    [[gnu::always_inline]] bool add_word(const void *address, size_t bytes) {
        uint64_t offset = reinterpret_cast<uintptr_t>(address) - reinterpret_cast<uintptr_t>(base_);
        range_entry *entry = next_;
        if (((bytes ^ 8) | (offset & 7)) != 0 || offset - low_ >= span_ || entry == end_) [[unlikely]]
            return false;
        uint64_t *before = next_before_;
        memcpy(before, address, 8);
        entry->key = offset << (range_entry::count_bits - 3) | 1;
        entry->before = before;
        next_ = entry + 1;
        next_before_ = before + 1;
        return true;
    }
    // Any words; the caller has checked the bounds. Expected: TY_E_MEMORY; nothing is changed then.
    ty_status add(uint64_t first, uint64_t count);
    // Words that are logged whole; kept apart, since they bring nothing back.
    ty_status add_whole(uint64_t first, uint64_t count);

    size_t count() const { return static_cast<size_t>(next_ - entries_.as<range_entry>()); }
    bool empty() const { return count() == 0 && whole_count_ == 0; }

    // Entries before the last one now are not merged with later ones: for what must be undone between them. Returns
    // their number, as restore takes it.
    size_t put_barrier();
    // Forgets the entries from a barrier on.
    void cut(size_t from);
    // The comparison starts with the entry `from`: those before serve a rollback alone. The first `whole` of the ranges
    // that are logged whole are forgotten.
    void start_comparison(size_t from, size_t whole);
    size_t whole_count() const { return whole_count_; }
    // Forgets the ranges that are logged whole from `from` on.
    void cut_whole(size_t from) { whole_count_ = from; }
    // Puts the content of the entries from `from` up to `to` back, the last first.
    void restore(size_t from, size_t to) const;

    // The ranges of the comparison in rising order and disjoint, as the entries' priority (E1) tells: *sorted points to
    // *sorted_count of them, good until the next call. Expected: TY_E_MEMORY.
    ty_status merged(const range_entry **sorted, size_t *sorted_count);

    // The same where all there is are single words and few of them: those that changed, with their values now, and how
    // many different ones were declared. False: it is not so.
    bool changed_words(record_words *changed, size_t *declared) const;

    // Whether an entry made since there were so many touches the words; true too if that is not known any more, or
    // would take long to tell.
    bool may_touch(uint64_t since, uint64_t first, uint64_t end) const;
    uint64_t stamp() const { return generation_ << 40 | count(); }

    // Empty again. After a huge transaction memory is given back.
    void reset();

private:
    ty_status make_room(size_t entries, uint64_t words);
    ty_status compact();
    ty_status merge_into(arena &out, const range_entry *entries, size_t count, size_t *merged_count);
    const range_entry *sort(const range_entry *entries, size_t count);
    void set_limits();

    char *base_;
    uint64_t low_;
    uint64_t span_;
    range_entry *next_;
    range_entry *end_; // up to here an entry and a word fit
    uint64_t *next_before_;

    arena entries_;
    arena before_;
    arena whole_;
    arena sorting_;           // two arrays of entries: sort goes from one to the other
    arena merged_;            // entries
    size_t whole_count_;      // in whole_
    bool only_words_ = false; // single words are all that was added since it was empty, and no limit has grown
    size_t barrier_;          // entries before it stay as they are
    size_t compared_;         // the first one of the comparison
    size_t entry_limit_;      // when so many are there, repeated ones are merged
    uint64_t word_limit_;
    uint64_t generation_; // of mergings in this transaction
};

} // namespace taiyen
