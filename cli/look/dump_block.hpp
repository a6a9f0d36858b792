// One block of a heap: its bytes, and what is known about them.
#pragma once

#include "commands.hpp"
#include "common/json.hpp"

#include <cstdint>

namespace cli {

// Prints the live block that the address lies in. TY_E_NOT_FOUND: there is none; the text says what is there.
ty_status dump_block(ty_heap *heap, const heap_files &files, const request &given, uint64_t address);
// The same as a document, with at most so many of its bytes, as hex digits, and what these lead to.
ty_status block_document(ty_heap *heap, const heap_files &files, uint64_t address, size_t bytes_max,
                         json::document *one);

} // namespace cli
