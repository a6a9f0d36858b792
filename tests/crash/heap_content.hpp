// The structure that lives in the heap under test: a table of blocks, reached from a root, chained by raw pointers; the
// operations that change it at random; and the reader that checks it without trusting it.
#pragma once

#include "dice.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <taiyen/taiyen.h>
#include <vector>

namespace crash {

inline constexpr uint32_t slot_count = 96;

// One live block as it must be found: where, how large, and a hash of what it holds.
struct block_state {
    uint32_t slot;
    uint64_t address;
    uint64_t size;
    uint64_t hash;
    bool operator==(const block_state &) const = default;
};

struct content {
    uint64_t table = 0; // its address; 0: the heap is empty
    std::vector<block_state> blocks;
    bool operator==(const content &) const = default;
};

// Does one random change to the heap and to the model of it. TY_OK, or why the heap could not (TY_E_MEMORY and the
// like); the two still agree then.
ty_status change_at_random(ty_heap *heap, content &model, dice &random);

// Reads the heap's content; false, with what is wrong, where its structure contradicts itself.
bool read_content(ty_heap *heap, content &found, std::string &wrong);

} // namespace crash
