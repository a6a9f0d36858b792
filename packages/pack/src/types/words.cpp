// Single words: what an address leads to, before and after a move.
#include "walker.hpp"

#include <cstring>
#include <taiyen/detail/fault.hpp>

namespace taiyen::pack {

void walker::add_dead(step &s, dead_kind kind, const void *word, uint64_t value, uint64_t wanted, uint64_t room) {
    ++dead;
    dead_tally &tally = s.dead[kind];
    if (++tally.count == 1)
        tally = {1, word, value, wanted, room};
}

// The new address of the word, and its block. A word that was met holds it already; any other holds an old one.
bool walker::target_of(const char *word, uint64_t mask, char *&target, found_block &to) const {
    uint64_t value = word_at(word) & ~mask;
    if (value == 0)
        return false;
    target = reinterpret_cast<char *>(value);
    if (moved_ && (!words_.test(word) || taiyen::detail::fault("address_moved_twice")))
        target = static_cast<char *>(moved_(target, moved_context_));
    else if (moved_ && !dead_words_.empty() && dead_words_.contains(word))
        return false; // an old address, which may happen to be another block's new one
    return target && find(target, to);
}

void walker::write(char *word, uint64_t mask, const char *target) {
    uint64_t value = reinterpret_cast<uint64_t>(target) | (word_at(word) & mask);
    memcpy(word, &value, sizeof value);
}

// Whether the word leads to a live block. It is covered from now on, and fixed if need be.
bool walker::meet(step &s, char *word, uint64_t mask, char *&target, found_block &to) {
    uint64_t value = word_at(word);
    bool alive = target_of(word, mask, target, to);
    bool fresh = words_.set(word); // SH6: fixed at most once
    if ((value & ~mask) == 0)
        return false;
    s.seen += 1;
    pointers += fresh;
    if (!alive) {
        if (moved_)
            dead_words_.insert(word);
        if (fresh || !moved_)
            add_dead(s, dead_kind::nowhere, word, value);
        return false;
    }
    if (fresh && moved_)
        write(word, mask, target);
    return true;
}

// The new address of the word if it lies in the block or just after it; else NULL. An old address just after a block
// may be another block's first byte, so the byte before it is looked up, too.
char *walker::place_in(const char *word, uint64_t mask, const found_block &block) const {
    uint64_t old = word_at(word) & ~mask;
    auto *at = reinterpret_cast<char *>(old);
    auto inside = [&](const char *one) { return one >= block.address && one < block.end(); };
    if (!moved_ || words_.test(word)) {
        bool is_old = moved_ && dead_words_.contains(word);
        return !is_old && (inside(at) || at == block.end()) ? at : nullptr;
    }
    auto *there = static_cast<char *>(moved_(at, moved_context_));
    if (there && inside(there))
        return there;
    auto *before = static_cast<char *>(moved_(reinterpret_cast<char *>(old - 1), moved_context_));
    return before && inside(before) ? before + 1 : nullptr;
}

// Nothing says where the heap was before a move, but its base is known now.
void walker::visit_heap(step &s, char *word) {
    uint64_t value = word_at(word);
    bool fresh = words_.set(word);
    if (value == 0)
        return;
    s.seen += 1;
    pointers += fresh;
    if (moved_)
        write(word, 0, index_.base());
    else if (value != reinterpret_cast<uint64_t>(index_.base()))
        add_dead(s, dead_kind::other_heap, word, value);
}

void walker::visit_place(step &s, const object &in, char *word) {
    uint64_t value = word_at(word);
    char *base;
    found_block block;
    char *place = nullptr;
    if (value != 0 && target_of(in.at + s.field->base_offset, s.other_mask, base, block))
        place = place_in(word, 0, block);
    bool fresh = words_.set(word);
    if (value == 0)
        return;
    s.seen += 1;
    pointers += fresh;
    if (!place) {
        if (moved_)
            dead_words_.insert(word);
        add_dead(s, dead_kind::bad_place, word, value);
    } else if (fresh && moved_) {
        write(word, 0, place);
    }
}

// How many objects the address leads to; the block has room for them.
size_t walker::count_there(step &s, const object &in, const char *word, const char *target, const found_block &to) {
    size_t size = s.to ? s.to->size : 1;
    size_t room = static_cast<size_t>(to.end() - target) / size;
    size_t count = 0;
    switch (s.there->kind) {
    case TY_COUNT_BLOCK:
        return room;
    case TY_COUNT_FIXED:
        count = s.there->number ? s.there->number : 1;
        break;
    case TY_COUNT_FIELD:
        count = integer_at(in.at, *s.there);
        break;
    case TY_COUNT_END: {
        const char *end = place_in(in.at + s.there->offset, s.other_mask, to);
        if (!end || end < target || static_cast<size_t>(end - target) % size != 0) {
            add_dead(s, dead_kind::bad_end, word, word_at(word));
            return 0;
        }
        count = static_cast<size_t>(end - target) / size;
        break;
    }
    }
    if (count <= room)
        return count;
    add_dead(s, dead_kind::no_room, word, reinterpret_cast<uint64_t>(target), count, room); // SH7: nothing extends
                                                                                            // beyond its block
    return taiyen::detail::fault("count_beyond_its_block_believed") && count < 1000 ? count : room;
}

} // namespace taiyen::pack
