// The record of code in a heap, and how its new blocks are made. docs/design/code.md.
#pragma once

#include "record_layout.hpp"
#include "src/txn/txn.hpp"
#include <algorithm>
#include <taiyen/code.h>

namespace taiyen {

// CD1: what is read here was checked: sizes, counts, offsets, names that end, and the checksum.
struct code_record {
    const code_head *head = nullptr; // NULL: the heap has no record of code
    const code_object *objects = nullptr;
    uint64_t count = 0;
    const code_head *symbols_head = nullptr; // NULL: there is no such block
    const code_table *tables = nullptr;
    uint64_t table_count = 0;
    const code_symbol *symbols = nullptr;
    const code_head *numbers_head = nullptr; // NULL: there is no such block
    const code_number *numbers = nullptr;
    uint64_t number_count = 0;

    const char *name_of(const code_symbol &symbol) const {
        return reinterpret_cast<const char *>(symbols_head) + (symbol.name & ~code_own);
    }
    const code_table *table_of(const code_build &build) const; // NULL: there is none
    bool owns(const void *block) const { return block == head || block == symbols_head || block == numbers_head; }
};

bool operator==(const code_build &a, const code_build &b);

// Expected: TY_E_DAMAGED.
ty_status record_find(ty_heap *heap, code_record *found);

// The objects of this process.
ty_status objects_of_process(os::array<os::loaded_object> *objects);
code_build build_of(const os::loaded_object &object);

// The new content of the blocks.
ty_status make_objects_block(ty_code binding, const os::array<os::loaded_object> &objects, os::array<char> *block);
// Symbols of builds that `before` has are taken from there, the others from the objects' files.
ty_status make_symbols_block(const os::array<os::loaded_object> &objects, const code_record &before,
                             os::array<char> *block);
ty_status make_numbers_block(const os::array<code_number> &numbers, os::array<char> *block);
// The symbols of such a block, into an empty record.
void view_symbols(const os::array<char> &block, code_record *record);

} // namespace taiyen
