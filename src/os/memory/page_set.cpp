#include "page_set.hpp"

#include "../base/base.hpp"
#include "vm.hpp"

#include <bit>
#include <cassert>

namespace taiyen::os {
namespace {

// One word of segment bits covers 1,024 pages: its index is the number of the group.
constexpr uint64_t pages_per_word = 64;
constexpr uint64_t pages_per_segment = 16;
constexpr uint64_t pages_per_group = 1024;
constexpr uint64_t segments_per_word = pages_per_word / pages_per_segment;

uint64_t words_for(uint64_t bits) {
    return (bits + 63) / 64;
}

// The bits [first, first + count) of a word.
uint64_t span_mask(uint64_t first, uint64_t count) {
    return (count == 64 ? ~uint64_t{0} : (uint64_t{1} << count) - 1) << first;
}

// The bits of the segments in which a word of page bits has members.
uint64_t segment_bits(uint64_t word) {
    uint64_t bits = 0;
    for (uint64_t i = 0; i < segments_per_word; i++)
        bits |= static_cast<uint64_t>((word >> (i * pages_per_segment) & 0xffff) != 0) << i;
    return bits;
}

} // namespace

ty_status page_set::create(uint64_t page_count) {
    uint64_t groups = (page_count + pages_per_group - 1) / pages_per_group + 1;
    uint64_t page_words = groups * (pages_per_group / pages_per_word);
    uint64_t words = page_words + groups + words_for(groups);
    size_t bytes = (words * sizeof(uint64_t) + page_bytes - 1) & ~(page_bytes - 1);
    void *memory;
    ty_status status = map_memory(bytes, memory_hint::none, &memory);
    if (status != TY_OK)
        return status;
    mapped_bytes_ = bytes;
    pages_ = static_cast<uint64_t *>(memory);
    segments_ = pages_ + page_words;
    groups_ = segments_ + groups;
    page_count_ = page_count;
    count_ = 0;
    return TY_OK;
}

void page_set::destroy() {
    unmap_memory(pages_, mapped_bytes_);
    *this = page_set{};
}

// Keeps B1 (upper levels agree with the page bits) and B2 (the count).
void page_set::insert(uint64_t page) {
    assert(page < page_count_);
    uint64_t &word = pages_[page / pages_per_word];
    uint64_t bit = uint64_t{1} << page % pages_per_word;
    if (word & bit)
        return;
    word |= bit;
    count_++;
    uint64_t segment = page / pages_per_segment;
    segments_[segment / 64] |= uint64_t{1} << segment % 64;
    uint64_t group = page / pages_per_group;
    groups_[group / 64] |= uint64_t{1} << group % 64;
}

void page_set::insert_range(uint64_t first, uint64_t count) {
    assert(first <= page_count_ && count <= page_count_ - first);
    while (count != 0) {
        uint64_t index = first / pages_per_word;
        uint64_t offset = first % pages_per_word;
        uint64_t here = count < pages_per_word - offset ? count : pages_per_word - offset;
        uint64_t added = span_mask(offset, here) & ~pages_[index];
        pages_[index] |= added;
        count_ += static_cast<uint64_t>(std::popcount(added));
        uint64_t group = first / pages_per_group;
        segments_[group] |= segment_bits(pages_[index]) << index * segments_per_word % 64;
        groups_[group / 64] |= uint64_t{1} << group % 64;
        first += here;
        count -= here;
    }
}

void page_set::erase(uint64_t page) {
    assert(page < page_count_);
    uint64_t &word = pages_[page / pages_per_word];
    uint64_t bit = uint64_t{1} << page % pages_per_word;
    if (!(word & bit))
        return;
    word &= ~bit;
    count_--;
    uint64_t segment = page / pages_per_segment;
    if (word >> segment % segments_per_word * pages_per_segment & 0xffff)
        return;
    uint64_t group = page / pages_per_group;
    segments_[group] &= ~(uint64_t{1} << segment % 64);
    if (segments_[group] == 0)
        groups_[group / 64] &= ~(uint64_t{1} << group % 64);
}

void page_set::merge(const page_set &other) {
    assert(page_count_ == other.page_count_);
    uint64_t groups = (page_count_ + pages_per_group - 1) / pages_per_group;
    for (uint64_t i = 0; i < words_for(groups); i++) {
        groups_[i] |= other.groups_[i];
        for (uint64_t left = other.groups_[i]; left != 0; left &= left - 1) {
            uint64_t group = i * 64 + static_cast<uint64_t>(std::countr_zero(left));
            if (!fault("merged_pages_not_found"))
                segments_[group] |= other.segments_[group];
            uint64_t first = group * (pages_per_group / pages_per_word);
            for (uint64_t word = first; word < first + pages_per_group / pages_per_word; word++) {
                uint64_t added = other.pages_[word] & ~pages_[word];
                count_ += static_cast<uint64_t>(std::popcount(added));
                if (added != 0)
                    pages_[word] |= added;
            }
        }
    }
}

void page_set::clear() {
    uint64_t groups = (page_count_ + pages_per_group - 1) / pages_per_group;
    for (uint64_t i = 0; i < words_for(groups); i++) {
        for (uint64_t left = groups_[i]; left != 0; left &= left - 1) {
            uint64_t group = i * 64 + static_cast<uint64_t>(std::countr_zero(left));
            for (uint64_t segments = segments_[group]; segments != 0; segments &= segments - 1) {
                uint64_t segment = group * 64 + static_cast<uint64_t>(std::countr_zero(segments));
                pages_[segment / segments_per_word] = 0;
            }
            segments_[group] = 0;
        }
        if (groups_[i] != 0)
            groups_[i] = 0;
    }
    count_ = 0;
}

// Searches the page's word, then the remaining segments of its group, then later groups.
uint64_t page_set::next(uint64_t page) const {
    if (page >= page_count_)
        return page_count_;
    uint64_t word = pages_[page / pages_per_word] & span_mask(page % 64, 64 - page % 64);
    if (word != 0)
        return page / pages_per_word * pages_per_word + static_cast<uint64_t>(std::countr_zero(word));

    uint64_t group = page / pages_per_group;
    uint64_t segment = (page / pages_per_word + 1) * segments_per_word;
    uint64_t segments = 0;
    if (segment / 64 == group)
        segments = segments_[group] & span_mask(segment % 64, 64 - segment % 64);
    if (segments == 0) {
        uint64_t limit = words_for((page_count_ + pages_per_group - 1) / pages_per_group);
        uint64_t index = ++group / 64;
        if (index >= limit)
            return page_count_;
        uint64_t groups = groups_[index] & span_mask(group % 64, 64 - group % 64);
        while (groups == 0 && ++index < limit)
            groups = groups_[index];
        if (groups == 0)
            return page_count_;
        group = index * 64 + static_cast<uint64_t>(std::countr_zero(groups));
        segments = segments_[group];
    }
    segment = group * 64 + static_cast<uint64_t>(std::countr_zero(segments));
    word = pages_[segment / segments_per_word] >> segment % segments_per_word * pages_per_segment;
    return segment * pages_per_segment + static_cast<uint64_t>(std::countr_zero(word));
}

} // namespace taiyen::os
