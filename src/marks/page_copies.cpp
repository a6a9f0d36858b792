#include "page_copies.hpp"

#include <bit>
#include <cstring>

namespace taiyen {

bool is_zero_page(const char *page) {
    uint64_t any = 0;
    for (size_t at = 0; at < os::page_bytes && any == 0; at += 64) {
        uint64_t words[8];
        memcpy(words, page + at, sizeof words);
        any = words[0] | words[1] | words[2] | words[3] | words[4] | words[5] | words[6] | words[7];
    }
    return any == 0;
}

ty_status page_copies::find_chunk(uint32_t *found) {
    while (with_room_ < chunks_.count() && chunks_[with_room_].used_count == chunk_slots)
        with_room_++;
    if (with_room_ == (UINT32_MAX - first_slot) / chunk_slots)
        return failure(TY_E_MEMORY, "copy a page for a mark: there are 16 TiB of copies").remedy("drop marks");
    if (with_room_ == chunks_.count())
        if (ty_status status = chunks_.push({}))
            return status;
    chunk &c = chunks_[with_room_];
    if (c.pages == nullptr) {
        void *memory = nullptr;
        if (ty_status status = os::map_memory(
                chunk_bytes, count_ < chunk_slots ? os::memory_hint::none : os::memory_hint::huge, &memory))
            return status;
        c.pages = static_cast<char *>(memory);
    }
    *found = with_room_;
    return TY_OK;
}

ty_status page_copies::keep(const char *page, uint32_t *slot) {
    *slot = zeros;
    if (is_zero_page(page))
        return TY_OK;
    uint32_t number = 0;
    if (ty_status status = find_chunk(&number))
        return status;
    chunk &c = chunks_[number];
    uint32_t word = 0;
    while (c.used[word] == UINT64_MAX)
        word++;
    const auto bit = static_cast<uint32_t>(std::countr_one(c.used[word]));
    c.used[word] |= uint64_t{1} << bit;
    c.used_count++;
    count_++;
    *slot = first_slot + number * chunk_slots + word * 64 + bit;
    memcpy(at(*slot), page, os::page_bytes);
    return TY_OK;
}

void page_copies::release(uint32_t slot) {
    if (slot < first_slot)
        return;
    const uint32_t number = (slot - first_slot) / chunk_slots, index = (slot - first_slot) % chunk_slots;
    chunk &c = chunks_[number];
    c.used[index / 64] &= ~(uint64_t{1} << index % 64);
    count_--;
    if (--c.used_count == 0) {
        os::unmap_memory(c.pages, chunk_bytes);
        c.pages = nullptr;
    }
    if (number < with_room_)
        with_room_ = number;
}

void page_copies::copy_to(char *page, uint32_t slot) const {
    if (slot >= first_slot)
        memcpy(page, at(slot), os::page_bytes);
    else if (!is_zero_page(page)) // a page that was never used takes no memory
        memset(page, 0, os::page_bytes);
}

void page_copies::destroy() {
    for (const chunk &c : chunks_)
        if (c.pages != nullptr)
            os::unmap_memory(c.pages, chunk_bytes);
    chunks_.release();
    with_room_ = 0;
    count_ = 0;
}

} // namespace taiyen
