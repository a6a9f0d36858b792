#include "word_table.hpp"

#include <bit>
#include <cstring>

namespace taiyen {
namespace {

constexpr size_t first_capacity = 64;

} // namespace

ty_status word_table::create(size_t most_entries) {
    count_ = 0;
    capacity_ = first_capacity;
    shift_ = 64 - static_cast<unsigned>(std::countr_zero(capacity_));
    // Growing needs the old slots and the new ones at the same time.
    if (ty_status status = slots_.create(std::bit_ceil(2 * most_entries + first_capacity) * 2 * sizeof(slot)))
        return status;
    return slots_.provide(capacity_ * sizeof(slot));
}

size_t word_table::place(uint64_t word) const {
    const slot *slots = slots_.as<slot>();
    size_t at = home(word);
    while (slots[at].word != 0 && slots[at].word != word)
        at = (at + 1) & (capacity_ - 1);
    return at;
}

uint32_t word_table::find(uint64_t word) const {
    const slot &found = slots_.as<slot>()[place(word)];
    return found.word != 0 ? static_cast<uint32_t>(found.value) : none;
}

ty_status word_table::insert(uint64_t word, uint32_t value) {
    if (2 * (count_ + 1) > capacity_)
        if (ty_status status = grow())
            return status;
    slots_.as<slot>()[place(word)] = {word, value};
    count_++;
    return TY_OK;
}

void word_table::change(uint64_t word, uint32_t value) {
    slots_.as<slot>()[place(word)].value = value;
}

// Entries after it that would no longer be found move up.
void word_table::erase(uint64_t word) {
    slot *slots = slots_.as<slot>();
    size_t hole = place(word);
    size_t at = hole;
    for (;;) {
        at = (at + 1) & (capacity_ - 1);
        if (slots[at].word == 0)
            break;
        size_t way = (at - home(slots[at].word)) & (capacity_ - 1);
        if (way >= ((at - hole) & (capacity_ - 1))) {
            slots[hole] = slots[at];
            hole = at;
        }
    }
    slots[hole] = {};
    count_--;
}

// Copies the old slots after the new ones, and inserts them from there.
ty_status word_table::grow() {
    size_t old_capacity = capacity_;
    if (ty_status status = slots_.provide(3 * old_capacity * sizeof(slot)))
        return status;
    slot *slots = slots_.as<slot>();
    slot *old = slots + 2 * old_capacity;
    memcpy(old, slots, old_capacity * sizeof(slot));
    memset(slots, 0, 2 * old_capacity * sizeof(slot));
    capacity_ *= 2;
    shift_--;
    for (size_t i = 0; i < old_capacity; i++)
        if (old[i].word != 0)
            slots[place(old[i].word)] = old[i];
    return TY_OK;
}

} // namespace taiyen
