// The record of code in a heap, and how its new blocks are made. docs/design/code.md.
#pragma once

#include "record_layout.hpp"
#include "src/txn/txn.hpp"
#include <algorithm>
#include <taiyen/code.h>

namespace taiyen {

// CD1: what is read here was checked: sizes, counts, offsets, names that end, and the checksum.
struct code_record {
    const code_head_1 *head = nullptr; // NULL: the heap has no record of code
    const code_object_1 *objects = nullptr;
    uint64_t count = 0;
    const code_head_1 *symbols_head = nullptr; // NULL: there is no such block
    const code_table_1 *tables = nullptr;
    uint64_t table_count = 0;
    const code_symbol_1 *symbols = nullptr;
    const code_head_1 *numbers_head = nullptr; // NULL: there is no such block
    const code_number_1 *numbers = nullptr;
    uint64_t number_count = 0;

    const char *name_of(const code_symbol_1 &symbol) const {
        return reinterpret_cast<const char *>(symbols_head) + (symbol.name & ~code_own);
    }
    const code_table_1 *table_of(const code_build_1 &build) const; // NULL: there is none
    bool owns(const void *block) const { return block == head || block == symbols_head || block == numbers_head; }
};

bool operator==(const code_build_1 &a, const code_build_1 &b);

// Expected: TY_E_DAMAGED.
ty_status record_find(ty_heap *heap, code_record *found);

// The objects of this process.
ty_status objects_of_process(os::array<os::loaded_object> *objects);
code_build_1 build_of(const os::loaded_object &object);

// The new content of the blocks.
ty_status make_objects_block(ty_code binding, const os::array<os::loaded_object> &objects, os::array<char> *block);
// Symbols of builds that `before` has are taken from there, the others from the objects' files.
ty_status make_symbols_block(const os::array<os::loaded_object> &objects, const code_record &before,
                             os::array<char> *block);
ty_status make_numbers_block(const os::array<code_number_1> &numbers, os::array<char> *block);
// The symbols of such a block, into an empty record.
void view_symbols(const os::array<char> &block, code_record *record);

} // namespace taiyen
