// What a heap with known code stores about it: up to three blocks, pointed to by roots of these names, in format
// version 1. The first two contain only offsets within themselves, so they stay valid when a heap is packed and its
// blocks move; in the third one, entries whose words have moved do not count any more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <taiyen/code.h>

namespace taiyen {

inline constexpr const char *code_root_name = TY_CODE_ROOT;
inline constexpr const char *symbols_root_name = TY_SYMBOLS_ROOT;
inline constexpr const char *numbers_root_name = TY_NUMBERS_ROOT;
inline constexpr uint64_t code_magic = 0x6f636e6579696154;    // "Taiyenco"
inline constexpr uint64_t symbols_magic = 0x79736e6579696154; // "Taiyensy"
inline constexpr uint64_t numbers_magic = 0x756e6e6579696154; // "Taiyennu"
inline constexpr uint32_t code_version = 1;

// The header of each block.
struct code_head {
    uint64_t magic;
    uint32_t version;
    uint32_t binding;  // ty_code: pinned or mapped
    uint64_t bytes;    // of the block, including this header
    uint64_t count;    // of the following code_object, code_table or code_number
    uint64_t checksum; // of the block, with this field zero
};
static_assert(sizeof(code_head) == 40);

struct code_build {
    uint8_t bytes[32];
    uint64_t count; // bytes of the build id; the others are 0
};

enum code_object_flag : uint64_t {
    code_program = 1, // it is the program
    code_gone = 2,    // it was not loaded any more when the heap's record was made
    code_kernel = 4,  // it is mapped by the kernel itself
};
struct code_object {
    uint64_t load;
    uint64_t begin;
    uint64_t end;
    uint64_t flags; // code_object_flag
    code_build build;
    char name[128]; // ends with a 0
};
static_assert(sizeof(code_object) == 200);
inline bool is_program(const code_object &object) {
    return object.flags & code_program;
}
inline bool is_of_kernel(const code_object &object) {
    return object.flags & code_kernel;
}
inline bool was_gone(const code_object &object) {
    return object.flags & code_gone;
}

// Replaces the colon after the file's name in a symbol's name: the object has several files of that name.
inline constexpr char code_doubtful = '?';

// The symbols of one build, in the order of their values. All symbols follow the tables, then all names.
struct code_table {
    code_build build;
    uint64_t first; // of its symbols, among all
    uint64_t count;
};
struct code_symbol {
    uint64_t value; // relative to the object's load address
    uint32_t size;  // UINT32_MAX: that, or more; 0: of a function, of which only its first byte is known
    uint32_t name;  // offset of the name from the block's start; it ends with a 0. The highest bit: code_own
};
inline constexpr uint32_t code_own = uint32_t{1} << 31; // no other object reaches the symbol by its name
// In the order of their offsets.
struct code_number {
    uint64_t offset; // of the word, from the heap's base
    uint64_t value;  // the entry counts while the word has this value
};
static_assert(sizeof(code_number) == 16);
static_assert(sizeof(code_table) == 56 && sizeof(code_symbol) == 16);

} // namespace taiyen
