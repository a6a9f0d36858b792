#include "kept.hpp"

#include <bit>
#include <cstring>

namespace taiyen {

namespace {

// Whole pages of memory: clearing them releases them.
constexpr uint64_t slots_min = os::page_bytes / sizeof(uint64_t);
constexpr uint64_t counts_per_page = os::page_bytes / sizeof(uint16_t);

} // namespace

ty_status kept_blocks::create(uint64_t blocks_max, uint64_t pages) {
    void *memory;
    slot_count_ = std::bit_ceil(2 * blocks_max + slots_min);
    shift_ = 64 - static_cast<unsigned>(std::countr_zero(slot_count_));
    if (ty_status status = os::map_memory(slot_count_ * sizeof(uint64_t), os::memory_hint::none, &memory))
        return status;
    slots_ = static_cast<uint64_t *>(memory);
    page_count_ = (pages + counts_per_page - 1) / counts_per_page * counts_per_page;
    if (ty_status status = os::map_memory(page_count_ * sizeof(uint16_t), os::memory_hint::none, &memory))
        return status;
    pages_ = static_cast<uint16_t *>(memory);
    return TY_OK;
}

void kept_blocks::clear() {
    count_ = bytes_ = 0;
    if (os::decommit(slots_, slot_count_ * sizeof(uint64_t))) // this makes zeros at once; else clear by hand
        memset(slots_, 0, slot_count_ * sizeof(uint64_t));
    if (os::decommit(pages_, page_count_ * sizeof(uint16_t)))
        memset(pages_, 0, page_count_ * sizeof(uint16_t));
}

void kept_blocks::destroy() {
    if (slots_ != nullptr)
        os::unmap_memory(slots_, slot_count_ * sizeof(uint64_t));
    if (pages_ != nullptr)
        os::unmap_memory(pages_, page_count_ * sizeof(uint16_t));
    *this = {};
}

bool kept_blocks::contains(uint64_t offset) const {
    for (uint64_t slot = slot_of(offset); slots_[slot] != 0; slot = (slot + 1) & (slot_count_ - 1))
        if (slots_[slot] == offset)
            return true;
    return false;
}

void kept_blocks::insert(uint64_t offset, uint64_t bytes) {
    uint64_t slot = slot_of(offset);
    while (slots_[slot] != 0)
        slot = (slot + 1) & (slot_count_ - 1);
    slots_[slot] = offset;
    count_++;
    bytes_ += bytes;
    count_pages(offset, bytes, 1);
}

// Entries after it that are there because their own slot was taken move up.
void kept_blocks::erase(uint64_t offset, uint64_t bytes) {
    const uint64_t mask = slot_count_ - 1;
    uint64_t hole = slot_of(offset);
    while (slots_[hole] != offset)
        hole = (hole + 1) & mask;
    for (uint64_t slot = (hole + 1) & mask; slots_[slot] != 0; slot = (slot + 1) & mask) {
        uint64_t wanted = slot_of(slots_[slot]);
        if (((slot - wanted) & mask) >= ((slot - hole) & mask)) {
            slots_[hole] = slots_[slot];
            hole = slot;
        }
    }
    slots_[hole] = 0;
    count_--;
    bytes_ -= bytes;
    count_pages(offset, bytes, -1);
}

bool kept_blocks::next(uint64_t *slot, uint64_t *offset) const {
    for (; count_ != 0 && *slot < slot_count_; ++*slot) {
        if (slots_[*slot] != 0) {
            *offset = slots_[*slot];
            return true;
        }
    }
    return false;
}

void kept_blocks::count_pages(uint64_t offset, uint64_t bytes, int by) {
    for (uint64_t page = offset / os::page_bytes; page <= (offset + bytes - 1) / os::page_bytes; page++)
        pages_[page] = static_cast<uint16_t>(pages_[page] + by);
}

} // namespace taiyen
