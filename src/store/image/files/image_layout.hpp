// The format of a heap's image and journal. Fixed-width, little-endian, no padding. docs/design/image.md has the rules.
#pragma once

#include "src/os/os.hpp"
#include "src/store/store.hpp"

#include <cstddef>
#include <cstdint>

namespace taiyen {

using os::page_bytes;

// ---- Image: [header extent][heap pages][page checksums]

inline constexpr uint64_t image_magic = 0x6d696e6579696154;       // "Taiyenim"
inline constexpr uint64_t image_pages_offset = uint64_t{2} << 20; // where page 0 of the heap is
inline constexpr uint64_t image_slot_bytes = page_bytes;          // header slots at 0 and at 4096

enum class image_state : uint32_t { closed = 1, open = 2 };

// Side records of other programs (side_record.h), after the header slots: two slots of one block for each side record.
// Only their writers write there.
inline constexpr uint64_t side_record_magic = 0x746e6e6579696154; // "Taiyennt"
constexpr uint64_t side_record_offset(uint64_t side_record, uint64_t slot) {
    return (header_slots + side_record * header_slots + slot) * page_bytes;
}
struct side_record_slot {
    uint64_t magic;
    uint32_t side_record;
    uint32_t bytes;
    uint8_t heap_identity[16];
    uint64_t number; // of writes; its parity is the slot, and the valid slot with the higher number counts
    uint8_t content[1024];
    uint64_t checksum; // of all bytes before it
};
static_assert(sizeof(side_record_slot) == 1072);

// What the writer tells followers (holds.hpp), in the block after the side records. Only a running process needs it: it
// is not flushed.
inline constexpr uint64_t followers_magic = 0x6f666e6579696154; // "Taiyenfo"
inline constexpr uint64_t followers_offset = side_record_offset(2, 0);
struct followers_block {
    uint64_t magic;
    uint8_t heap_identity[16];
    uint64_t announced;   // the writer wants to write the batches up to this epoch to the image
    uint64_t overwritten; // followers that stand before this epoch are expired
    uint64_t checksum;    // of all bytes before it
};
static_assert(sizeof(followers_block) == 48);

inline constexpr uint32_t holds_heeded =
    1; // another rule gets another number, and refuses followers that do not know it

// Feature bits that this version knows. A file with an unknown incompatible bit is refused; one with an unknown
// read-only-compatible bit can be opened for reading only.
inline constexpr uint64_t known_features_incompatible = 0;
inline constexpr uint64_t feature_receives = 1; // its transactions are those of another heap: no other program writes
inline constexpr uint64_t known_features_read_only = feature_receives;

// Whose transactions a heap has besides its own (feed.md, "A replica").
enum class source_state : uint64_t { none = 0, receives = 1, promoted = 2 };
struct heap_source {
    uint8_t heap_identity[16];
    uint64_t log_identity;
    uint64_t state; // source_state
};

struct image_header {
    uint64_t magic;
    uint32_t version;
    uint32_t page_bytes;
    uint64_t features_compatible;
    uint64_t features_read_only;
    uint64_t features_incompatible;
    uint8_t identity[16];
    uint64_t number; // of header writes; the valid slot with the higher number counts
    uint64_t base;
    uint64_t limit_bytes;
    uint32_t kind;  // ty_kind
    uint32_t state; // image_state
    uint32_t classes;
    uint32_t log_empty_after_redo_point; // 1: the heap was closed with nothing in its log after the redo point
    uint64_t created_unix_s;
    uint64_t epoch;         // what the image holds
    uint64_t durable_epoch; // acknowledged when this header was written
    uint64_t nonce;         // of the batch of `epoch`
    uint64_t journal_next;  // where that batch ended
    uint64_t sums_offset;   // of the page checksums
    uint64_t clear_offset;  // a range still to be punched (0 bytes: none)
    uint64_t clear_bytes;
    uint64_t log_position; // of the write-ahead log, where `epoch` stands in it; 0 without a log
    uint64_t owner_process;
    uint64_t log_identity; // 0 without a log
    uint64_t log_generation;
    uint64_t log_lsn;
    open_identity open;     // that wrote the content of the image and its journal
    uint32_t log_streams;   // of the log, where it has several; else 0, and the next two are zeros
    uint32_t holds;         // holds_heeded: whoever opened the heap for writing last heeds what followers hold
    uint64_t log_first_lsn; // of log_position; log_lsn is the epoch's
    stream_position log_more[log_streams_max - 1];
    heap_source source;
    uint8_t reserved[72];
    uint64_t checksum; // of all bytes before it
};
static_assert(sizeof(image_header) == 512);
static_assert(offsetof(image_header, log_streams) == 216);
static_assert(offsetof(image_header, log_more) == 232);
static_assert(offsetof(image_header, identity) == 40);
static_assert(offsetof(image_header, epoch) == 104);
static_assert(offsetof(image_header, log_identity) == 176);
static_assert(offsetof(image_header, open) == 200);
static_assert(offsetof(image_header, source) == 400);
static_assert(offsetof(image_header, checksum) == 504);

// Where the last processes had their programs and libraries, each once, the newest last. After the header in each of
// its slots, as a hint: where the checksum is wrong, nothing is known.
inline constexpr uint64_t code_places_offset = 1024; // in a slot
inline constexpr uint32_t code_places_max = 64;
struct code_places {
    uint64_t number; // of the header that it was written with
    uint64_t count;
    os::code_zones zones[code_places_max];
    uint64_t checksum; // of all bytes before it
};
static_assert(sizeof(code_places) == 2072);
static_assert(code_places_offset >= sizeof(image_header));
static_assert(code_places_offset + sizeof(code_places) <= image_slot_bytes);

// One sector of the page checksums: 63 pages. 0: unknown, or never written. All zeros: a sector never written.
inline constexpr uint64_t sums_per_sector = 63;
inline constexpr uint64_t sums_sector_bytes = 512;
inline constexpr uint64_t sums_per_block = sums_per_sector * (page_bytes / sums_sector_bytes);

struct sums_sector {
    uint64_t sums[sums_per_sector];
    uint64_t checksum; // of the sums, seeded with the sector's number
};
static_assert(sizeof(sums_sector) == sums_sector_bytes);

// The image's checksums take whole blocks.
constexpr uint64_t sums_table_bytes(uint64_t limit_bytes) {
    return (limit_bytes / page_bytes + sums_per_block - 1) / sums_per_block * page_bytes;
}
constexpr uint64_t image_file_bytes(uint64_t limit_bytes) {
    return image_pages_offset + limit_bytes + sums_table_bytes(limit_bytes);
}

// ---- Journal: [header slot][header slot][batch][batch]...

inline constexpr uint64_t journal_magic = 0x726a6e6579696154; // "Taiyenjr"
inline constexpr uint64_t journal_slot_bytes = page_bytes;
inline constexpr uint64_t journal_front = header_slots * journal_slot_bytes; // where a batch may start

struct journal_header {
    uint64_t magic;
    uint32_t version;
    uint32_t reserved_0;
    uint8_t identity[16];
    uint64_t number; // of header writes; the valid slot with the higher number counts
    open_identity open;
    open_identity previous; // the image may still name this one; number 0: it may not
    uint64_t size_bytes;    // the durable length of the file: no acknowledged batch lies after it
    uint8_t reserved[40];
    uint64_t checksum; // of all bytes before it
};
static_assert(sizeof(journal_header) == 128);
static_assert(offsetof(journal_header, open) == 40);
static_assert(offsetof(journal_header, checksum) == 120);

inline constexpr uint64_t chunk_magic = 0x6b636e6579696154; // "Taiyenck"
inline constexpr uint32_t chunk_pages_max = 248;
// Flags of the last chunk: the batch ends with it; chunk_streams stands in place of its last entries.
inline constexpr uint32_t chunk_last = 1;
inline constexpr uint32_t chunk_has_streams = 2;

struct chunk_entry {
    uint64_t page;
    uint64_t sum;
};

struct chunk_header {
    uint64_t magic;
    uint32_t version;
    uint32_t count; // of pages after this header
    uint8_t identity[16];
    uint64_t epoch;
    uint64_t nonce;          // of this batch
    uint64_t previous_nonce; // of the epoch before
    uint64_t attempt;        // of the same epoch by the same process: the highest one counts
    uint32_t index;          // of the chunk in its batch
    uint32_t flags;
    uint64_t batch_pages;  // in the last chunk: pages of the whole batch
    uint64_t log_position; // in the last chunk: where the epoch stands in the write-ahead log
    uint64_t log_generation;
    uint64_t log_lsn;
    uint8_t reserved[16];
    uint64_t checksum; // of the whole header page with this field zero
    chunk_entry entries[chunk_pages_max];
};
static_assert(sizeof(chunk_header) == page_bytes);
static_assert(offsetof(chunk_header, log_position) == 80);
static_assert(offsetof(chunk_header, entries) == 128);

// For a heap whose log has several log streams: where the epoch stands in them, besides log_position and
// log_generation. I20: the redo points of all streams are durable with their epoch. They lie at the end of the entries:
// each chunk of such a heap has room for them.
inline constexpr uint32_t chunk_pages_max_with_streams = 236;
struct chunk_streams {
    uint64_t streams;
    uint64_t first_lsn; // of log_position; log_lsn is the epoch's
    stream_position more[log_streams_max - 1];
    uint64_t reserved;
};
static_assert(sizeof(chunk_streams) == (chunk_pages_max - chunk_pages_max_with_streams) * sizeof(chunk_entry));

constexpr uint64_t chunk_bytes(uint64_t pages) {
    return (1 + pages) * page_bytes;
}

} // namespace taiyen
