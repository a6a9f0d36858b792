// The format of the files on disk, version 2. The suffix of a name is the version that introduced it. Fixed-width,
// little-endian, no padding. docs/design/image.md has the rules and the versions.
#pragma once

#include "src/os/os.hpp"

#include <cstddef>
#include <cstdint>

namespace taiyen {

using os::page_bytes;

// ---- Image: [header extent][heap pages][page checksums]

inline constexpr uint64_t image_magic_1 = 0x6d696e6579696154; // "Taiyenim"
inline constexpr uint32_t image_version_1 = 1; // may be read, and is upgraded, if the heap was closed cleanly
inline constexpr uint32_t image_version_2 = 2;
inline constexpr uint64_t image_pages_offset_1 = uint64_t{2} << 20; // where page 0 of the heap is
inline constexpr uint64_t image_slot_bytes_1 = page_bytes;          // header slots at 0 and at 4096
inline constexpr uint32_t image_slot_count_1 = 2;

enum class image_state : uint32_t { closed = 1, open = 2 };

// Notes of other programs (note.h), behind the header slots: two slots of one block for each note. Only their writers
// write there.
inline constexpr uint64_t note_magic_2 = 0x746e6e6579696154; // "Taiyennt"
inline constexpr uint64_t note_slot_count_2 = 2;
constexpr uint64_t note_offset_2(uint64_t note, uint64_t slot) {
    return (image_slot_count_1 + note * note_slot_count_2 + slot) * page_bytes;
}
struct note_slot_2 {
    uint64_t magic;
    uint32_t note;
    uint32_t bytes;
    uint8_t heap_identity[16];
    uint64_t number; // of writes; its parity is the slot, and the valid slot with the higher number counts
    uint8_t content[1024];
    uint64_t checksum; // of all bytes before it
};
static_assert(sizeof(note_slot_2) == 1072);

// Feature bits that this version knows. A file with an unknown incompatible bit is refused; one with an unknown
// read-only-compatible bit can be opened for reading only.
inline constexpr uint64_t feature_log_streams_2 = 1; // the heap's log has several log streams
inline constexpr uint64_t known_features_incompatible = feature_log_streams_2;
inline constexpr uint64_t feature_receives_2 = 1; // its transactions are those of another heap: no other program writes
inline constexpr uint64_t known_features_read_only = feature_receives_2;

// Each writing open of a heap has its own identity, once there is something to tell apart: I8 (nothing is acknowledged
// before the files name the open). number: rises with each open. random: distinguishes opens of copies of a heap.
struct open_identity_2 {
    uint64_t number;
    uint64_t random;
};
constexpr bool operator==(const open_identity_2 &a, const open_identity_2 &b) {
    return a.number == b.number && a.random == b.random;
}

// No counter (epochs, header writes, opens, LSNs, offsets) comes near this in a heap's life. A file with a higher one
// is refused, so that no sum overflows.
inline constexpr uint64_t counter_max_2 = uint64_t{1} << 62;
// A writing open refuses a counter above this, so that every value that it ever reaches can be read again.
inline constexpr uint64_t counter_begin_max_2 = counter_max_2 / 2;

// Where an epoch stands in one log stream of the write-ahead log.
inline constexpr uint32_t log_streams_max_2 = 8;
struct log_place_2 {
    uint64_t position;
    uint64_t generation;
    uint64_t lsn;
};

// Whose transactions a heap has besides its own (link.md, "A replica").
enum class source_state : uint64_t { none = 0, receives = 1, promoted = 2 };
struct log_source_2 {
    uint8_t heap_identity[16];
    uint64_t log_identity;
    uint64_t state; // source_state
};

struct image_header_2 {
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
    uint32_t log_settled; // 1: the heap was closed with nothing in its log behind the mark
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
    open_identity_2 open; // that wrote the content of the image and its journal; version 1 has zeros here
    uint32_t log_streams; // of the log, where it has several; else 0, and the next two are zeros
    uint32_t reserved_1;
    uint64_t log_first_lsn; // of log_position; log_lsn is the epoch's
    log_place_2 log_more[log_streams_max_2 - 1];
    log_source_2 source;
    uint8_t reserved[72];
    uint64_t checksum; // of all bytes before it
};
static_assert(sizeof(image_header_2) == 512);
static_assert(offsetof(image_header_2, log_streams) == 216);
static_assert(offsetof(image_header_2, log_more) == 232);
static_assert(offsetof(image_header_2, identity) == 40);
static_assert(offsetof(image_header_2, epoch) == 104);
static_assert(offsetof(image_header_2, log_identity) == 176);
static_assert(offsetof(image_header_2, open) == 200);
static_assert(offsetof(image_header_2, source) == 400);
static_assert(offsetof(image_header_2, checksum) == 504);

// Where a process that opened the heap for writing has its program and its libraries; 0: nowhere.
struct code_zones_2 {
    uint64_t program_begin;
    uint64_t program_end;
    uint64_t libraries_begin;
    uint64_t libraries_end;
};
constexpr bool operator==(const code_zones_2 &a, const code_zones_2 &b) {
    return a.program_begin == b.program_begin && a.program_end == b.program_end &&
           a.libraries_begin == b.libraries_begin && a.libraries_end == b.libraries_end;
}

// The zones of the last processes, each once, the newest last. Behind the header in each of its slots, as a hint: where
// the checksum is wrong, nothing is known.
inline constexpr uint64_t code_places_offset_2 = 1024; // in a slot
inline constexpr uint32_t code_places_max_2 = 64;
struct code_places_2 {
    uint64_t number; // of the header that it was written with
    uint64_t count;
    code_zones_2 zones[code_places_max_2];
    uint64_t checksum; // of all bytes before it
};
static_assert(sizeof(code_places_2) == 2072);
static_assert(code_places_offset_2 >= sizeof(image_header_2));
static_assert(code_places_offset_2 + sizeof(code_places_2) <= image_slot_bytes_1);

// One sector of the page checksums: 63 pages. 0: unknown, or never written. All zeros: a sector never written.
inline constexpr uint64_t sums_per_sector_1 = 63;
inline constexpr uint64_t sums_sector_bytes_1 = 512;
inline constexpr uint64_t sums_per_block_1 = sums_per_sector_1 * (page_bytes / sums_sector_bytes_1);

struct sums_sector_1 {
    uint64_t sums[sums_per_sector_1];
    uint64_t checksum; // of the sums, seeded with the sector's number
};
static_assert(sizeof(sums_sector_1) == sums_sector_bytes_1);

// The image's checksums take whole blocks.
constexpr uint64_t sums_table_bytes(uint64_t limit_bytes) {
    return (limit_bytes / page_bytes + sums_per_block_1 - 1) / sums_per_block_1 * page_bytes;
}
constexpr uint64_t image_file_bytes(uint64_t limit_bytes) {
    return image_pages_offset_1 + limit_bytes + sums_table_bytes(limit_bytes);
}

// ---- Journal: [header slot][header slot][batch][batch]...

inline constexpr uint64_t journal_magic_1 = 0x726a6e6579696154; // "Taiyenjr"
inline constexpr uint64_t journal_slot_bytes_2 = page_bytes;
inline constexpr uint32_t journal_slot_count_2 = 2;
inline constexpr uint64_t journal_front_2 = journal_slot_count_2 * journal_slot_bytes_2; // where a batch may start

struct journal_header_2 {
    uint64_t magic;
    uint32_t version;
    uint32_t reserved_0;
    uint8_t identity[16];
    uint64_t number; // of header writes; the valid slot with the higher number counts
    open_identity_2 open;
    open_identity_2 previous; // the image may still name this one; number 0: it may not
    uint64_t size_bytes;      // the durable length of the file: no acknowledged batch lies behind it
    uint8_t reserved[40];
    uint64_t checksum; // of all bytes before it
};
static_assert(sizeof(journal_header_2) == 128);
static_assert(offsetof(journal_header_2, open) == 40);
static_assert(offsetof(journal_header_2, checksum) == 120);

// Version 1, only to recognize it: an upgrade recreates the journal.
struct journal_header_1 {
    uint64_t magic;
    uint32_t version;
    uint32_t reserved_0;
    uint8_t identity[16];
    uint64_t reserved[3];
    uint64_t checksum;
};
static_assert(sizeof(journal_header_1) == 64);

inline constexpr uint64_t chunk_magic_1 = 0x6b636e6579696154; // "Taiyenck"
inline constexpr uint32_t chunk_pages_1 = 248;
inline constexpr uint32_t chunk_last_1 = 1;  // flag: the batch ends with this chunk
inline constexpr uint32_t chunk_marks_2 = 2; // flag of a last chunk: log_marks_2 stands in place of the last entries

struct chunk_entry_1 {
    uint64_t page;
    uint64_t sum;
};

struct chunk_header_1 {
    uint64_t magic;
    uint32_t version;
    uint32_t count; // of pages behind this header
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
    chunk_entry_1 entries[chunk_pages_1];
};
static_assert(sizeof(chunk_header_1) == page_bytes);
static_assert(offsetof(chunk_header_1, log_position) == 80);
static_assert(offsetof(chunk_header_1, entries) == 128);

// For a heap whose log has several log streams: where the epoch stands in them, besides log_position and
// log_generation. I20: marks of all streams are durable with their epoch. They lie at the end of the entries: each
// chunk of such a heap has room for them.
inline constexpr uint32_t chunk_pages_with_marks_2 = 236;
struct log_marks_2 {
    uint64_t streams;
    uint64_t first_lsn; // of log_position; log_lsn is the epoch's
    log_place_2 more[log_streams_max_2 - 1];
    uint64_t reserved;
};
static_assert(sizeof(log_marks_2) == (chunk_pages_1 - chunk_pages_with_marks_2) * sizeof(chunk_entry_1));

constexpr uint64_t chunk_bytes(uint64_t pages) {
    return (1 + pages) * page_bytes;
}

} // namespace taiyen
