// The structure that lives in the heap under test: a table of blocks, reached from a root, chained by raw pointers; the
// operations that change it at random; and the reader that checks it without trusting it.
#pragma once

#include "editor.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <taiyen/taiyen.h>
#include <vector>

namespace crash {

inline constexpr uint32_t slot_count = 96;
inline constexpr uint32_t mark_count = 4; // roots besides the table's, to any block

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
    std::array<uint64_t, mark_count> marks{};
    bool operator==(const content &) const = default;
};

// Does one random change to the heap and to the model of it. TY_OK, or why the heap could not (TY_E_MEMORY and the
// like); the two still agree then.
ty_status change_at_random(editor &edit, content &model, dice &random);

// ---- Recorded for an undo only.

// The same, and: single words, procedures. The model has a table.
ty_status change_with_undo(editor &edit, content &model, dice &random);

// ---- In transactions only.

// The same, and: single words, procedures, marks.
ty_status change_in_transaction(editor &edit, content &model, dice &random);
// A few words only; the model is not empty.
void change_little(editor &edit, content &model, dice &random);
// Some KiB.
void change_much(editor &edit, content &model, dice &random);
// All payloads get other bytes.
void change_everything(editor &edit, content &model, dice &random);

// A block that is reserved and filled, to be published.
struct reserved_block {
    void *address;
    uint64_t size;
};
// {} if the heap has no memory. `wrong` is set if the block does not read as zeros.
reserved_block reserve_block(ty_heap *heap, dice &random, std::string &wrong);
// Publishes those that find a free slot, and takes them off the list.
ty_status publish_blocks(editor &edit, content &model, std::vector<reserved_block> &reserved, dice &random);

// Registers the procedures that transactions and undo use. Once a process.
ty_status register_procedures();

// Reads the heap's content; false, with what is wrong, where its structure contradicts itself. `others` live blocks are
// not the table's.
bool read_content(ty_heap *heap, content &found, std::string &wrong, size_t others = 0);

} // namespace crash
