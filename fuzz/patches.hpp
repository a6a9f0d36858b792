// The meaning of the fuzzers' input: not the bytes of files, but changes to sound ones, so that a short input reaches
// every field, and flags that repair checksums, so that it gets past them.
//
//   byte 0: scenario    byte 1: flags    then patches of 12 bytes, the last one cut off where the input ends
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace fuzz {

enum flags : uint8_t {
    repair_image_headers = 1,
    repair_journal_header = 2,
    repair_chunks = 4,    // sums of pages, then of chunk headers
    repair_page_sums = 8, // of the image's pages
    grow_limit = 16,      // in the writing open
    ask_for_snapshot_kind = 32,
};

// The flags of fuzz_undo; from bit 4 on they give the number of patches, and its steps follow those.
enum undo_flags : uint8_t {
    repair_marks = 1, // their checksums
    whole_words = 2,  // patches are at multiples of 8
};
inline constexpr uint8_t one_patch = 16;

enum class change : uint8_t {
    set_8,     // eight bytes become the value
    xor_8,     //
    set_4,     // the value's low four bytes
    xor_1,     //
    add_8,     // a small signed number is added to eight bytes
    resize,    // files: the file gets another size
    copy,      // files: a region gets another region's content
    transplant // files: the file of another scenario
};
inline constexpr uint8_t change_count = 8;

struct patch {
    uint8_t kind;
    uint8_t region;
    uint16_t offset;
    uint64_t value;
};
inline constexpr size_t patch_bytes = 12;
inline constexpr size_t patch_limit = 24;

struct input {
    uint8_t scenario = 0;
    uint8_t flags = 0;
    std::vector<patch> patches;
};

inline input parse(const uint8_t *data, size_t size) {
    input parsed;
    if (size < 2)
        return parsed;
    parsed.scenario = data[0];
    parsed.flags = data[1];
    for (size_t at = 2; at + patch_bytes <= size && parsed.patches.size() < patch_limit; at += patch_bytes) {
        patch p{};
        p.kind = data[at] % change_count;
        p.region = data[at + 1];
        memcpy(&p.offset, data + at + 2, sizeof p.offset);
        memcpy(&p.value, data + at + 4, sizeof p.value);
        parsed.patches.push_back(p);
    }
    return parsed;
}

// Applies a patch of bytes to a region of memory; the caller applies those of files.
inline void apply(const patch &p, void *region, size_t region_bytes) {
    uint8_t *at = static_cast<uint8_t *>(region) + p.offset % (region_bytes - sizeof(uint64_t) + 1);
    uint64_t old = 0;
    memcpy(&old, at, sizeof old);
    uint64_t now = p.value;
    switch (static_cast<change>(p.kind)) {
    case change::set_8:
        break;
    case change::xor_8:
        now = old ^ p.value;
        break;
    case change::set_4:
        now = (old & ~uint64_t{UINT32_MAX}) | (p.value & UINT32_MAX);
        break;
    case change::xor_1:
        now = old ^ (p.value & UINT8_MAX);
        break;
    case change::add_8:
        now = old + static_cast<uint64_t>(static_cast<int64_t>(static_cast<int8_t>(p.value)));
        break;
    default:
        return;
    }
    memcpy(at, &now, sizeof now);
}

// A number for the workload that follows; the same for the same input.
inline uint64_t hash(const uint8_t *data, size_t size) {
    uint64_t value = 0xcbf29ce484222325;
    for (size_t i = 0; i < size; i++)
        value = (value ^ data[i]) * 0x100000001b3;
    return value;
}

} // namespace fuzz
