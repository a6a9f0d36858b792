#include "write_set.hpp"

#include <cstring>

namespace taiyen::stm {

size_t write_set::slot_of(const uint64_t *word) const {
    size_t slot = home(word);
    while (is_used(slots_[slot]) && words_[slots_[slot] & UINT32_MAX].word != word)
        slot = (slot + 1) & (capacity_ - 1);
    return slot;
}

uint64_t write_set::filter() const {
    uint64_t bits = 0;
    for (const written_word &written : words_)
        bits |= ty_detail_filter_bit(reinterpret_cast<uintptr_t>(written.word));
    return bits;
}

void write_set::fill_slots() {
    memset(slots_, 0, capacity_ * sizeof *slots_);
    time_ = 1;
    for (size_t i = 0; i < words_.count(); i++)
        slots_[slot_of(words_[i].word)] = time_ << 32 | i;
}

ty_status write_set::grow() {
    size_t wanted = capacity_ != 0 ? capacity_ * 2 : 64;
    void *made = wanted <= size_t{1} << 32 ? os::internal_malloc(wanted * sizeof *slots_) : nullptr;
    if (made == nullptr)
        return failure(TY_E_MEMORY, "note what a transaction stores").remedy("make it store less at once");
    if (ty_status status = words_.reserve(wanted / 2 - words_.count())) {
        free(made);
        return status;
    }
    free(slots_);
    slots_ = static_cast<uint64_t *>(made);
    capacity_ = wanted;
    room_ = wanted / 2 - 1;
    shift_ = 64 - static_cast<unsigned>(__builtin_ctzll(wanted));
    fill_slots();
    return TY_OK;
}

ty_status write_set::put(uint64_t *word, uint64_t value, uint64_t mask) {
    if (words_.count() == room_) [[unlikely]]
        if (ty_status status = grow())
            return status;
    size_t slot = slot_of(word);
    if (!is_used(slots_[slot])) {
        words_.push_in_room({word, value & mask, mask});
        slots_[slot] = time_ << 32 | (words_.count() - 1);
        return TY_OK;
    }
    size_t index = slots_[slot] & UINT32_MAX;
    written_word &found = words_[index];
    if (index < kept_)
        if (ty_status status = changes_.push({index, found}))
            return status;
    change_value(found, value & mask, mask);
    return TY_OK;
}

void write_set::clear() {
    changes_.clear();
    kept_ = 0;
    if (capacity_ > kept_slots) {
        free(slots_);
        slots_ = nullptr;
        capacity_ = room_ = 0;
        words_.release();
        return;
    }
    words_.cut(0);
    if (++time_ > UINT32_MAX) {
        fill_slots();
    }
}

write_set::writes_savepoint write_set::savepoint() {
    writes_savepoint now{words_.count(), changes_.count(), kept_};
    kept_ = words_.count();
    return now;
}

void write_set::back_to(const writes_savepoint &to) {
    while (changes_.count() > to.changes) {
        const change &last = changes_[changes_.count() - 1];
        words_[last.index] = last.before;
        changes_.cut(changes_.count() - 1);
    }
    words_.cut(to.words);
    kept_ = to.kept;
    if (capacity_ != 0)
        fill_slots();
}

} // namespace taiyen::stm
