#include "ranges.hpp"

#include <algorithm>

namespace taiyen {
namespace {

constexpr size_t entry_limit_first = 4096;
constexpr uint64_t word_limit_first = 32768;
constexpr size_t kept_bytes = size_t{4} << 20; // per arena, kept from one transaction to the next
constexpr uint64_t most_bytes = uint64_t{16} << 30;
constexpr size_t few_max = 16;
constexpr size_t insertion_max = 40;
constexpr unsigned digit_bits = 8;
constexpr size_t digits = size_t{1} << digit_bits;

// Ranks a few unordered entries: counting how many come before each takes no branch that could be mispredicted. Equal
// ones keep their order.
void rank(const range_entry *entries, size_t count, size_t *ranks) {
    for (size_t i = 0; i < count; i++) {
        const uint64_t key = entries[i].key;
        size_t after = 0;
        for (size_t k = 0; k < i; k++) {
            size_t later = entries[k].key > key;
            ranks[k] += later;
            after += later;
        }
        ranks[i] = i - after;
    }
}

void sort_by_rank(const range_entry *from, size_t count, range_entry *to) {
    size_t ranks[few_max];
    rank(from, count, ranks);
    for (size_t i = 0; i < count; i++)
        to[ranks[i]] = from[i];
}

// Takes words in rising order, repeated ones in the order of their declaration: keeps the first of each, if it has
// changed.
void keep_first_changes(record_words *words, size_t *different) {
    size_t kept = 0;
    uint64_t last = UINT64_MAX;
    *different = 0;
    for (size_t i = 0; i < words->count; i++) {
        const uint64_t place = words->number[i], difference = words->difference[i];
        words->number[kept] = place;
        words->value[kept] = words->value[i];
        words->difference[kept] = difference;
        bool again = place == last;
        last = place;
        *different += !again;
        kept += !again & (difference != 0);
    }
    words->count = kept;
}

void sort_by_insertion(const range_entry *from, size_t count, range_entry *to) {
    for (size_t i = 0; i < count; i++) {
        range_entry entry = from[i];
        size_t at = i;
        for (; at > 0 && to[at - 1].key > entry.key; at--)
            to[at] = to[at - 1];
        to[at] = entry;
    }
}

// Radix sort by those digits of the first word that differ; `from` stays as it is. Returns the one of the two arrays
// that holds the result.
range_entry *sort_by_digits(const range_entry *from, size_t count, uint64_t differing, range_entry *a, range_entry *b) {
    const range_entry *source = from;
    for (unsigned shift = range_entry::count_bits; shift < 64; shift += digit_bits) {
        if ((differing >> shift & (digits - 1)) == 0)
            continue;
        size_t places[digits] = {};
        for (size_t i = 0; i < count; i++)
            places[source[i].key >> shift & (digits - 1)]++;
        size_t place = 0;
        for (size_t &at : places) {
            size_t of_digit = at;
            at = place;
            place += of_digit;
        }
        range_entry *target = source == a ? b : a;
        for (size_t i = 0; i < count; i++)
            target[places[source[i].key >> shift & (digits - 1)]++] = source[i];
        source = target;
    }
    return const_cast<range_entry *>(source);
}

// Takes the entries [0, count), which overlap, in the order of their first words. Walks over their words from the left;
// the entries that cover the current word are in a heap whose top has the lowest copy (E1: the lowest copy counts).
class overlap_walk {
public:
    overlap_walk(range_entry *heap, range_entry *out) : heap_(heap), out_(out) {}

    range_entry *run(const range_entry *entries, size_t count) {
        size_t next = 0;
        uint64_t at = 0;
        while (next < count || size_ != 0) {
            while (size_ != 0 && heap_[0].end() <= at)
                pop();
            if (size_ == 0) {
                if (next == count)
                    break;
                at = std::max(at, entries[next].first());
            }
            while (next < count && entries[next].first() <= at)
                push(entries[next++]);
            if (size_ == 0 || heap_[0].end() <= at)
                continue;
            at = emit(at, entries, &next, count);
        }
        return out_;
    }

private:
    static bool later(const range_entry &a, const range_entry &b) {
        return fault("newest_copy_of_a_range_rolled_back_to") ? a.before < b.before : a.before > b.before;
    }
    void push(const range_entry &entry) {
        heap_[size_++] = entry;
        std::push_heap(heap_, heap_ + size_, later);
    }
    void pop() {
        std::pop_heap(heap_, heap_ + size_, later);
        size_--;
    }
    // Emits words of the top entry, up to where an earlier one begins.
    uint64_t emit(uint64_t at, const range_entry *entries, size_t *next, size_t count) {
        range_entry top = heap_[0];
        uint64_t end = top.end();
        for (; *next < count && entries[*next].first() < end; ++*next) {
            if (later(top, entries[*next])) {
                end = entries[*next].first();
                break;
            }
            push(entries[*next]);
        }
        const uint64_t *before = top.before != nullptr ? top.before + (at - top.first()) : nullptr;
        *out_++ = {range_entry::pack(at, end - at), before};
        return end;
    }

    range_entry *heap_;
    range_entry *out_;
    size_t size_ = 0;
};

} // namespace

ty_status range_cache::create(char *base, uint64_t heap_words) {
    base_ = base;
    uint64_t most = std::min(most_bytes, std::max(heap_words * 32, uint64_t{64} << 20));
    ty_status status = entries_.create(most);
    for (arena *each : {&before_, &whole_, &sorting_, &merged_})
        if (status == TY_OK)
            status = each->create(each == &sorting_ ? 2 * most : most);
    if (status == TY_OK)
        status = entries_.provide(entry_limit_first * sizeof(range_entry));
    if (status == TY_OK)
        status = before_.provide(word_limit_first * 8);
    if (status == TY_OK)
        status = sorting_.provide(2 * insertion_max * sizeof(range_entry));
    if (status == TY_OK)
        status = merged_.provide(insertion_max * sizeof(range_entry));
    if (status == TY_OK)
        reset();
    return status;
}

void range_cache::destroy() {
    for (arena *each : {&entries_, &before_, &whole_, &sorting_, &merged_})
        each->destroy();
}

void range_cache::reset() {
    if (only_words_) { // so in most transactions: nothing else has to be reset
        next_ = entries_.as<range_entry>();
        next_before_ = before_.as<uint64_t>();
        return;
    }
    if (next_ != nullptr) {
        size_t words = static_cast<size_t>(next_before_ - before_.as<uint64_t>());
        if (std::max({count() * 2 * sizeof(range_entry), words * 8, whole_count_ * sizeof(range_entry)}) > kept_bytes)
            for (arena *each : {&entries_, &before_, &whole_, &sorting_, &merged_})
                each->trim(kept_bytes);
    }
    next_ = entries_.as<range_entry>();
    next_before_ = before_.as<uint64_t>();
    whole_count_ = barrier_ = compared_ = 0;
    generation_ = 0;
    entry_limit_ = entry_limit_first;
    word_limit_ = word_limit_first;
    set_limits();
    only_words_ = true;
}

void range_cache::set_limits() {
    range_entry *entries = entries_.as<range_entry>();
    size_t room = std::min(entries_.room<range_entry>(), entry_limit_);
    uint64_t words = static_cast<uint64_t>(next_before_ - before_.as<uint64_t>());
    uint64_t word_room = std::min<uint64_t>(before_.room<uint64_t>(), word_limit_);
    room = std::min<uint64_t>(room, count() + (word_room > words ? word_room - words : 0));
    end_ = entries + std::max(room, count());
}

ty_status range_cache::make_room(size_t entries, uint64_t words) {
    uint64_t used = static_cast<uint64_t>(next_before_ - before_.as<uint64_t>());
    if (count() + entries > entry_limit_ || used + words > word_limit_) {
        only_words_ = false;
        if (ty_status status = compact())
            return status;
        used = static_cast<uint64_t>(next_before_ - before_.as<uint64_t>());
        entry_limit_ = std::max(entry_limit_first, 2 * (count() + entries));
        word_limit_ = std::max(word_limit_first, 2 * (used + words));
    }
    ty_status status = entries_.provide((count() + entries) * sizeof(range_entry));
    if (status == TY_OK)
        status = before_.provide((used + words) * 8);
    set_limits();
    return status;
}

ty_status range_cache::add(uint64_t first, uint64_t count) {
    if (ty_status status = make_room(count / range_entry::count_max + 1, count))
        return status;
    only_words_ = only_words_ && count == 1;
    memcpy(next_before_, base_ + first * 8, count * 8);
    while (count != 0) {
        uint64_t part = std::min(count, range_entry::count_max);
        *next_++ = {range_entry::pack(first, part), next_before_};
        next_before_ += part;
        first += part;
        count -= part;
    }
    set_limits();
    return TY_OK;
}

ty_status range_cache::add_whole(uint64_t first, uint64_t count) {
    size_t parts = count / range_entry::count_max + 1;
    only_words_ = false;
    if (ty_status status = whole_.provide((whole_count_ + parts) * sizeof(range_entry)))
        return status;
    for (; count != 0; whole_count_++) {
        uint64_t part = std::min(count, range_entry::count_max);
        whole_.as<range_entry>()[whole_count_] = {range_entry::pack(first, part), nullptr};
        first += part;
        count -= part;
    }
    return TY_OK;
}

size_t range_cache::put_barrier() {
    only_words_ = false;
    return barrier_ = count();
}

void range_cache::cut(size_t from) {
    if (from == count())
        return;
    next_ = entries_.as<range_entry>() + from;
    next_before_ = const_cast<uint64_t *>(next_->before);
    set_limits();
}

void range_cache::start_comparison(size_t from, size_t whole) {
    only_words_ = false;
    range_entry *entries = whole_.as<range_entry>();
    compared_ = from;
    whole_count_ -= whole;
    if (whole_count_ != 0)
        memmove(entries, entries + whole, whole_count_ * sizeof(range_entry));
}

void range_cache::restore(size_t from, size_t to) const {
    const range_entry *entries = entries_.as<range_entry>();
    while (to > from) {
        const range_entry &entry = entries[--to];
        char *place = base_ + entry.first() * 8;
        if (entry.count() == 1) [[likely]]
            memcpy(place, entry.before, 8);
        else
            memcpy(place, entry.before, entry.count() * 8);
    }
}

bool range_cache::may_touch(uint64_t since, uint64_t first, uint64_t end) const {
    constexpr size_t looked_at = 64;
    uint64_t now = stamp();
    if (whole_count_ != 0 || now - since > looked_at) // another generation makes the difference large, too
        return true;
    const range_entry *entries = entries_.as<range_entry>();
    for (size_t i = count() - static_cast<size_t>(now - since); i < count(); i++)
        if (entries[i].first() < end && first < entries[i].end())
            return true;
    return false;
}

const range_entry *range_cache::sort(const range_entry *entries, size_t count) {
    range_entry *a = sorting_.as<range_entry>();
    if (count <= few_max) {
        sort_by_rank(entries, count, a);
        return a;
    }
    uint64_t differing = 0;
    bool sorted = true;
    for (size_t i = 1; i < count; i++) {
        differing |= entries[i].key ^ entries[0].key;
        sorted &= entries[i - 1].key <= entries[i].key;
    }
    if (sorted)
        return entries;
    if (count > insertion_max)
        return sort_by_digits(entries, count, differing & ~range_entry::count_max, a, a + count);
    sort_by_insertion(entries, count, a);
    return a;
}

// Overlapping entries split into fewer than twice as many pieces.
ty_status range_cache::merge_into(arena &out, const range_entry *entries, size_t count, size_t *merged_count) {
    if (ty_status status = sorting_.provide(2 * count * sizeof(range_entry)))
        return status;
    if (ty_status status = out.provide(2 * count * sizeof(range_entry)))
        return status;
    const range_entry *sorted = sort(entries, count);
    range_entry *spare = sorting_.as<range_entry>() + (sorted == sorting_.as<range_entry>() ? count : 0);
    range_entry *target = out.as<range_entry>();
    for (size_t i = 0; i < count;) {
        uint64_t end = sorted[i].end();
        size_t next = i + 1;
        while (next < count && sorted[next].first() < end)
            end = std::max(end, sorted[next++].end());
        if (next == i + 1)
            *target++ = sorted[i];
        else
            target = overlap_walk(spare, target).run(sorted + i, next - i);
        i = next;
    }
    *merged_count = static_cast<size_t>(target - out.as<range_entry>());
    return TY_OK;
}

ty_status range_cache::merged(const range_entry **sorted, size_t *sorted_count) {
    size_t declared = count() - compared_;
    const range_entry *entries = entries_.as<range_entry>() + compared_;
    if (whole_count_ != 0) { // appended for this call only; their NULL is lower than any copy
        if (ty_status status = entries_.provide((count() + whole_count_) * sizeof(range_entry)))
            return status;
        memcpy(next_, whole_.as<range_entry>(), whole_count_ * sizeof(range_entry));
        set_limits();
    }
    *sorted = merged_.as<range_entry>();
    return merge_into(merged_, entries, declared + whole_count_, sorted_count);
}

// Of equal words, the one that was declared first ranks first (E1: the earlier copy counts).
bool range_cache::changed_words(record_words *changed, size_t *declared) const {
    const range_entry *entries = entries_.as<range_entry>();
    const size_t size = count();
    if (!only_words_ || size - 1 >= few_max)
        return false;
    size_t ranks[few_max];
    rank(entries, size, ranks);
    bool all_changed = true;
    for (size_t i = 0; i < size; i++) {
        uint64_t word = entries[i].first(), now;
        memcpy(&now, base_ + word * 8, 8);
        uint64_t difference = now ^ *entries[i].before;
        changed->number[ranks[i]] = word;
        changed->value[ranks[i]] = now;
        changed->difference[ranks[i]] = difference;
        all_changed &= difference != 0;
    }
    bool repeated = false;
    for (size_t i = 1; i < size; i++)
        repeated |= changed->number[i] == changed->number[i - 1];
    changed->count = *declared = size;
    if (repeated || !all_changed) [[unlikely]]
        keep_first_changes(changed, declared);
    return true;
}

// Merges the entries after the barrier, and compacts their copies.
ty_status range_cache::compact() {
    range_entry *entries = entries_.as<range_entry>() + barrier_;
    size_t size = count() - barrier_;
    size_t merged_count;
    if (size < 2)
        return TY_OK;
    if (ty_status status = merge_into(merged_, entries, size, &merged_count))
        return status;
    uint64_t *first_before = const_cast<uint64_t *>(entries[0].before);
    const range_entry *merged = merged_.as<range_entry>();
    uint64_t words = 0;
    for (size_t i = 0; i < merged_count; i++)
        words += merged[i].count();
    if (merged_count > size || words * 4 > static_cast<uint64_t>(next_before_ - first_before) * 3)
        return TY_OK; // hardly any repeats: not worth it
    if (ty_status status = sorting_.provide(words * 8))
        return status;
    uint64_t *copies = sorting_.as<uint64_t>();
    uint64_t copied = 0;
    for (size_t i = 0; i < merged_count; i++) {
        memcpy(copies + copied, merged[i].before, merged[i].count() * 8);
        entries[i] = {merged[i].key, first_before + copied};
        copied += merged[i].count();
    }
    memcpy(first_before, copies, copied * 8);
    next_ = entries + merged_count;
    next_before_ = first_before + copied;
    generation_++;
    return TY_OK;
}

} // namespace taiyen
