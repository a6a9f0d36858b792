// The range cache: the words of the heap that a transaction declared, with their content before.
//
// E1: of two entries, the one whose copy has the lower address was made earlier. So where entries overlap, the lowest
//     copy counts, and restoring in falling order brings the oldest content back.
#pragma once

#include "arena.hpp"
#include "src/store/log/log.hpp"

#include <cstring>

namespace taiyen {

// A range, packed: the number of its first word, and the number of its words.
struct range_entry {
    uint64_t key;
    const uint64_t *before; // their content before; NULL: unknown, so they are logged whole

    static constexpr unsigned count_bits = 23;
    static constexpr uint64_t count_max = (uint64_t{1} << count_bits) - 1;
    static constexpr uint64_t pack(uint64_t first, uint64_t count) { return first << count_bits | count; }
    uint64_t first() const { return key >> count_bits; }
    uint64_t count() const { return key & count_max; }
    uint64_t end() const { return first() + count(); }
};

class range_cache {
public:
    // The reservation of address space follows from `heap_words`, the most words that the heap can have.
    ty_status create(char *base, uint64_t heap_words);
    void destroy();

    // The words that may be declared: [first, end).
    void set_bounds(uint64_t first, uint64_t end) {
        low_ = first * 8;
        span_ = (end - first) * 8;
    }

    // Adds an aligned word within the bounds, if there is room. It is copied by a load that nothing else waits for.
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
    // Adds any words; the caller has checked the bounds. Expected: TY_E_MEMORY; nothing is changed then.
    ty_status add(uint64_t first, uint64_t count);
    // Adds words that are logged whole; kept apart, since a rollback restores nothing from them.
    ty_status add_whole(uint64_t first, uint64_t count);

    size_t count() const { return static_cast<size_t>(next_ - entries_.as<range_entry>()); }
    bool empty() const { return count() == 0 && whole_count_ == 0; }

    // Keeps the entries up to the last one now from being merged with later ones: for what must be undone between them.
    // Returns their number, as restore takes it.
    size_t put_barrier();
    // Forgets the entries from a barrier on.
    void cut(size_t from);
    // The comparison starts with the entry `from`: those before it serve a rollback alone. Forgets the first `whole` of
    // the ranges that are logged whole.
    void start_comparison(size_t from, size_t whole);
    size_t whole_count() const { return whole_count_; }
    // Forgets the ranges that are logged whole from `from` on.
    void cut_whole(size_t from) { whole_count_ = from; }
    // Restores the content of the entries from `from` up to `to`, the last first.
    void restore(size_t from, size_t to) const;

    // The ranges of the comparison, in rising order and disjoint, overlaps resolved by the entries' priority (E1: the
    // lowest copy counts): *sorted points to *sorted_count of them, valid until the next call. Expected: TY_E_MEMORY.
    ty_status merged(const range_entry **sorted, size_t *sorted_count);

    // The same if all entries are single words, and few: those that changed, with their values now, and how many
    // different ones were declared. Returns false if they are not.
    bool changed_words(record_words *changed, size_t *declared) const;

    // Whether an entry made since the stamp `since` touches the words; also true if that is no longer known, or would
    // take long to find out.
    bool may_touch(uint64_t since, uint64_t first, uint64_t end) const;
    uint64_t stamp() const { return generation_ << 40 | count(); }

    // Makes it empty again. After a huge transaction, returns memory.
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
    range_entry *end_; // up to here there is room for an entry and a word
    uint64_t *next_before_;

    arena entries_;
    arena before_;
    arena whole_;
    arena sorting_;           // two arrays of entries: sort moves them from one to the other
    arena merged_;            // entries
    size_t whole_count_;      // in whole_
    bool only_words_ = false; // only single words were added since it was empty, and no limit has grown
    size_t barrier_;          // entries before it stay as they are
    size_t compared_;         // the first entry of the comparison
    size_t entry_limit_;      // at this many entries, repeated ones are merged
    uint64_t word_limit_;
    uint64_t generation_; // number of merges in this transaction
};

} // namespace taiyen
