// Records: what the log holds of one transaction, densely packed. docs/design/log.md describes the format. Places are
// numbers of 8-byte words from the heap's base; nothing here depends on a heap.
#pragma once

#include "src/os/os.hpp"
#include <cstddef>
#include <cstdint>

namespace taiyen {

// ---- Writing

// Words that may have changed. Whole: all of them are logged, changed or not (`before` is not read).
struct word_range {
    uint64_t first; // word number
    uint32_t count; // of words
    bool whole;
    const uint64_t *before; // their old values; NULL: zeros
    const uint64_t *now;    // their current values, in the heap's memory
};

enum class operation_kind : uint8_t { alloc = 1, free = 2, resize = 3, root = 4, procedure = 5 };

struct record_operation {
    operation_kind kind;
    uint64_t word;      // alloc, free, resize; root: of the address
    uint64_t size;      // alloc, resize: bytes
    uint64_t alignment; // of alloc: follows from the address, so it is not logged
    uint64_t procedure;
    bool null_address; // root: removed
    const void *bytes; // root: the name; procedure: the arguments
    uint32_t byte_count;
};

// A few changed words, in rising order, for transactions that did nothing else.
inline constexpr size_t record_words_max = 64;
struct record_words {
    size_t count;
    uint64_t number[record_words_max]; // word number; scratch after encoding, as is mask
    uint64_t value[record_words_max];
    uint64_t difference[record_words_max]; // from the old value; not 0
    uint8_t mask[record_words_max];
};

// A record is a sequence of parts in the order in which recovery replays them; each part is the operations, then the
// words. A transaction without procedures has one part.
struct record_part {
    const record_operation *operations;
    size_t operation_count;
    const word_range *ranges; // in rising order, disjoint
    size_t range_count;
    record_words *words = nullptr; // in place of all above
};

// Word numbers are below this, so that a distance fits in the 56 bits that the format has for it.
inline constexpr uint64_t record_word_limit = uint64_t{1} << 56;

// The most bytes that encoding the part can write, including scratch bytes after it: nothing is ever written beyond.
size_t record_bound(const record_part &part);
// Encodes the part at `out`, which has room for record_bound; returns its bytes. Words with unchanged values are left
// out; a part of which nothing remains takes 0 bytes. A record is the bytes of its parts, one after the other, and
// stores neither its length nor an end. first: the part begins its record.
size_t record_encode(const record_part &part, bool first, uint8_t *out);

// The same for a record that consists of these words alone, at least one.
constexpr size_t record_words_bound(size_t count) {
    return 16 + count * (10 + 9); // as record_bound has it for as many ranges
}
size_t record_encode_words(record_words &words, uint8_t *out);

// ---- Prepared transactions

enum class record_outcome : uint8_t { rolled_back = 0, committed = 1 };

// Precedes the first part of a prepared transaction: its description, of description_max bytes at most.
inline constexpr size_t description_max = 1024;
constexpr size_t record_prepared_bound(size_t description_bytes) {
    return 3 + description_bytes;
}
size_t record_put_prepared(const void *description, size_t bytes, uint8_t *out);

// What a record has before its last part: the description, if the transaction is being prepared, and the parts that
// procedures ended.
struct record_beginning {
    const void *description; // NULL: none
    size_t description_bytes;
    const uint8_t *parts;
    size_t parts_bytes;

    size_t bound() const { return (description ? record_prepared_bound(description_bytes) : 0) + parts_bytes; }
};
// Encodes a whole record; `out` has room for both bounds. 0: nothing has changed.
size_t record_encode_whole(const record_beginning &before, const record_part &part, uint8_t *out);

// Precedes the first part of a transaction that counts if the prepared one after it does.
inline constexpr size_t record_pending_bytes = 1;
void record_put_pending(uint8_t *out);
// A whole record: the outcome of the prepared transaction right before it, and of the pending ones before that.
inline constexpr size_t record_outcome_bytes = 2;
void record_put_outcome(record_outcome outcome, uint8_t *out);

// ---- Reading

enum class record_role : uint8_t { plain, pending, prepared, outcome };
// What a record is, and where its parts are: the input of record_decode.
struct record_view {
    record_role role;
    record_outcome outcome;     // if it is an outcome
    const uint8_t *description; // if it is prepared
    size_t description_bytes;
    const uint8_t *parts;
    size_t size;
};
// TY_E_DAMAGED: without a detail.
ty_status record_inspect(const uint8_t *bytes, size_t size, record_view *view);

// The most pending records before a prepared one.
inline constexpr uint32_t record_pending_max = 64;
// The order of records (X27, txn.md): an outcome is the next record after a prepared one; pending ones may precede the
// prepared one. Pending records that no prepared one follows are rolled back by an outcome.
class record_order {
public:
    // Expected: TY_E_DAMAGED, without a detail.
    ty_status step(const record_view &view);
    // What waits for an outcome.
    bool none() const { return !prepared_ && pending_ == 0; }
    bool in_doubt() const { return prepared_; }
    uint32_t held() const { return pending_ + prepared_; }

private:
    uint32_t pending_ = 0;
    bool prepared_ = false;
};

// The words that a record may name: [first, end).
struct record_scope {
    uint64_t first;
    uint64_t end;
};

// Decodes a record that fills [bytes, bytes + size). Any bytes may be given: errors are TY_E_DAMAGED with the offset in
// the record, and nothing outside the range is read. Words and blocks that are not entirely in the scope are damage.
// The sink's functions; each returns a ty_status, and any but TY_OK ends the reading:
//   operation(const record_operation &)        its bytes stay valid until it returns; alignment is 0
//   word(uint64_t word, uint64_t mask, uint64_t value)    to be stored as (old & ~mask) | value; value is within mask
//   words(uint64_t first, uint64_t count, const uint8_t *bytes)
//   zeros(uint64_t first, uint64_t count)
// All are inlined: recovery is bound by memory, not by decoding. Their input is bounded by the record's size (zeros: 32
// KB for each of its bytes) and, between two parts, by the scope, since words rise.
//   template <class Sink>
//   ty_status record_decode(const uint8_t *bytes, size_t size, record_scope scope, Sink &sink);
// is in record_decode.hpp. record_decode_in_place is the same where the 8 bytes before the record can be read, too;
// bytes passed to its sink lie in the record itself.

} // namespace taiyen
