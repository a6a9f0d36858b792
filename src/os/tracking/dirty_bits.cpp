#include "dirty_bits.hpp"

#include "../memory/memory.hpp"

#include <bit>

namespace taiyen::os {
namespace {

uint64_t words_for(uint64_t bits) {
    return (bits + 63) / 64;
}
uint64_t lowest(uint64_t bits) {
    return static_cast<uint64_t>(std::countr_zero(bits));
}

uint64_t span_mask(uint64_t first, uint64_t count) {
    return (count == 64 ? ~uint64_t{0} : (uint64_t{1} << count) - 1) << first;
}

// Inserts runs of members at once.
void add_word(uint64_t first, uint64_t bits, page_set &into) {
    while (bits != 0) {
        uint64_t start = lowest(bits);
        uint64_t count = static_cast<uint64_t>(std::countr_one(bits >> start));
        into.insert_range(first + start, count);
        bits &= ~span_mask(start, count);
    }
}

} // namespace

ty_status dirty_bits::create(uint64_t page_count) {
    uint64_t words[3];
    words[0] = words_for(page_count);
    words[1] = words_for(words[0]);
    words[2] = words_for(words[1]);
    size_t bytes = ((words[0] + words[1] + words[2]) * sizeof(word) + page_bytes - 1) & ~(page_bytes - 1);
    void *memory;
    ty_status status = map_memory(bytes, memory_hint::none, &memory);
    if (status != TY_OK)
        return status;
    levels_[0] = static_cast<word *>(memory);
    levels_[1] = levels_[0] + words[0];
    levels_[2] = levels_[1] + words[1];
    top_words_ = words[2];
    page_count_ = page_count;
    mapped_bytes_ = bytes;
    return TY_OK;
}

void dirty_bits::destroy() {
    unmap_memory(levels_[0], mapped_bytes_);
    *this = dirty_bits{};
}

// B3: bits that are set are found, whatever other threads set meanwhile.
void dirty_bits::set(uint64_t first, uint64_t count) {
    while (count != 0) {
        uint64_t index = first / 64;
        uint64_t offset = first % 64;
        uint64_t here = count < 64 - offset ? count : 64 - offset;
        word &bits = levels_[0][index];
        if (fault("dirty_bit_lost_in_a_race"))
            bits.store(bits.load(std::memory_order_relaxed) | span_mask(offset, here), std::memory_order_release);
        else
            bits.fetch_or(span_mask(offset, here), std::memory_order_release);
        levels_[1][index / 64].fetch_or(uint64_t{1} << index % 64, std::memory_order_release);
        levels_[2][index / 4096].fetch_or(uint64_t{1} << index / 64 % 64, std::memory_order_release);
        first += here;
        count -= here;
    }
}

void dirty_bits::add_to(page_set &into) const {
    for (uint64_t i = 0; i < top_words_; i++)
        for (uint64_t top = levels_[2][i].load(std::memory_order_acquire); top != 0; top &= top - 1) {
            uint64_t middle = i * 64 + lowest(top);
            for (uint64_t bits = levels_[1][middle].load(std::memory_order_acquire); bits != 0; bits &= bits - 1) {
                uint64_t index = middle * 64 + lowest(bits);
                add_word(index * 64, levels_[0][index].load(std::memory_order_acquire), into);
            }
        }
}

void dirty_bits::move_to(page_set &into) {
    for (uint64_t i = 0; i < top_words_; i++)
        for (uint64_t top = levels_[2][i].exchange(0, std::memory_order_acquire); top != 0; top &= top - 1) {
            uint64_t middle = i * 64 + lowest(top);
            uint64_t bits = levels_[1][middle].exchange(0, std::memory_order_acquire);
            for (; bits != 0; bits &= bits - 1) {
                uint64_t index = middle * 64 + lowest(bits);
                add_word(index * 64, levels_[0][index].exchange(0, std::memory_order_acquire), into);
            }
        }
}

} // namespace taiyen::os
