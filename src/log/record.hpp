// Records: what the log holds of one transaction, packed tight. The form is told in docs/design/log.md. Places are
// numbers of 8-byte words from the heap's base; nothing here knows a heap.
#pragma once

#include "../os/os.hpp"
#include <cstddef>
#include <cstdint>

namespace taiyen {

// ---- Writing

// Words that may have changed. Whole: all of them are logged, changed or not (before is not looked at).
struct word_range {
    uint64_t first; // word number
    uint32_t count; // of words
    bool whole;
    const uint64_t *before; // what they held; NULL: zeros
    const uint64_t *now;    // what they hold, in the heap's memory
};

enum class operation_kind : uint8_t { alloc = 1, free = 2, resize = 3, root = 4, procedure = 5 };

struct record_operation {
    operation_kind kind;
    uint64_t word;      // alloc, free, resize; root: of the address
    uint64_t size;      // alloc, resize: bytes
    uint64_t alignment; // of the address that alloc gave is in the address: not logged
    uint64_t procedure;
    bool null_address; // root: removed
    const void *bytes; // root: the name; procedure: the arguments
    uint32_t byte_count;
};

// A record is a row of parts in the order in which recovery does them; each part is the operations, then the words. A
// transaction without procedures has one part.
struct record_part {
    const record_operation *operations;
    size_t operation_count;
    const word_range *ranges; // in rising order, disjoint
    size_t range_count;
};

// The most bytes that encoding the part can take.
size_t record_bound(const record_part &part);
// Encodes the part at `out`, which has room for record_bound; returns its bytes. Words that hold what they held are
// left out. first: it begins a record; last: it ends one. A record of which nothing remains is 0 bytes (first and last
// in one, no operation, no changed word).
size_t record_encode(const record_part &part, bool first, bool last, uint8_t *out);

// ---- Reading

struct record_words {
    uint64_t first;
    uint64_t count;
};

// Goes through a record. Any bytes may be given: errors are TY_E_DAMAGED, and nothing outside [bytes, bytes + size) is
// read. The sink's functions: ty_status operation(const record_operation &); ty_status word(uint64_t word, uint64_t
// mask, uint64_t value), to be stored as (old & ~mask) | value; ty_status words(uint64_t first, uint64_t count, const
// uint8_t *bytes). All are inlined: recovery is bound by memory, not by this.
// template <class Sink> ty_status record_decode(const uint8_t *bytes, size_t size, size_t *used, Sink &sink);
// is in record_decode.hpp.

} // namespace taiyen
