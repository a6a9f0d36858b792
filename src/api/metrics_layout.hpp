// The layout of a metrics page: memory in which a program that has a heap open publishes its metrics. Fixed-width, no
// padding; only processes on the same machine read it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace taiyen {

inline constexpr uint64_t metrics_magic_2 = 0x64626e6579696154; // "Taiyenbd"
inline constexpr uint32_t metrics_version_2 = 2;
inline constexpr size_t metrics_request_bytes_2 = 4096; // at the front; others may write to it

// BD2: all that the program reads of a metrics page.
struct metrics_request_2 {
    // A change means that a reader asks. The reader that changes it also wakes the thread that waits for it.
    std::atomic<uint32_t> asked;
};

inline constexpr uint32_t metrics_classes_max_2 = 128;
inline constexpr uint32_t metrics_snapshots_max_2 = 64;
inline constexpr uint32_t metrics_buckets_2 = 128;
inline constexpr uint32_t metrics_cells_max_2 = 1024;

struct metrics_class_2 {
    uint64_t block_bytes;
    uint64_t spans;
    uint64_t span_bytes;
    uint64_t block_count;
    uint64_t live_blocks;
    uint64_t live_bytes;
};

struct metrics_snapshot_2 {
    uint64_t epoch;
    uint64_t unix_ns;
    uint64_t pause_ns;
    uint64_t durable_ns;
    uint64_t pages;
    uint64_t bytes;
};

struct metrics_content_2 {
    uint8_t identity[16];
    uint64_t process;
    uint64_t known; // TY_METRICS_ bits
    uint64_t unix_ns;
    uint64_t looks;
    uint64_t look_ns;
    uint64_t base;
    uint64_t limit_bytes;
    uint64_t touched_bytes;
    uint64_t epoch;
    uint64_t snapshots;
    uint64_t snapshot_pages;
    uint64_t journal_bytes;
    uint64_t image_bytes;
    uint64_t pending_batches;
    uint64_t pending_bytes;
    uint64_t pages_evicted;
    uint64_t transactions;
    uint64_t rollbacks;
    uint64_t entries;
    uint64_t record_bytes;
    uint64_t log_bytes;
    uint64_t log_frames;
    uint64_t used_log_bytes;
    uint64_t size_log_bytes;
    uint64_t forced_snapshots;
    uint64_t timed_snapshots;
    uint64_t lsn;
    uint64_t durable_lsn;
    uint64_t reserved_blocks;
    uint64_t dirty_pages;
    uint64_t counted_unix_ns;
    uint64_t count_ns;
    uint64_t memory_bound_bytes;
    uint64_t memory_allowed_bytes;
    uint64_t copies_bytes;
    uint64_t undoable;
    uint64_t redoable;
    uint64_t kept_blocks;
    uint64_t kept_bytes;
    uint64_t undo_used_bytes;
    uint64_t undo_room_bytes;
    uint64_t dirty_cell_bytes;
    uint64_t dirty_cells;
    uint64_t class_count;
    uint64_t snapshot_count;
    metrics_class_2 classes[metrics_classes_max_2];
    metrics_snapshot_2 newest[metrics_snapshots_max_2];
    uint64_t times[2][metrics_buckets_2];
    uint32_t dirty[metrics_cells_max_2]; // pages of each cell
};

struct metrics_2 {
    uint64_t magic;
    uint32_t version;
    uint32_t content_bytes;
    std::atomic<uint64_t> turn; // odd while the content is written; 0: there is none yet
    metrics_content_2 content;
};
static_assert(offsetof(metrics_2, content) == 24);
static_assert(offsetof(metrics_content_2, classes) == 376);
static_assert(offsetof(metrics_content_2, newest) == 6520);
static_assert(offsetof(metrics_content_2, times) == 9592);
static_assert(offsetof(metrics_content_2, dirty) == 11640);
static_assert(sizeof(metrics_content_2) == 15736);

inline constexpr size_t metrics_bytes_2 = metrics_request_bytes_2 + 16384;
static_assert(metrics_request_bytes_2 + sizeof(metrics_2) <= metrics_bytes_2);

inline constexpr size_t metrics_name_bytes_2 = 48;
// The name of the memory in /proc.
inline void metrics_name_2(const uint8_t *identity, char (&name)[metrics_name_bytes_2]) {
    static constexpr char front[] = "taiyen-", digits[] = "0123456789abcdef";
    size_t at = 0;
    while (front[at] != 0) {
        name[at] = front[at];
        ++at;
    }
    for (size_t i = 0; i < 16; ++i) {
        name[at++] = digits[identity[i] >> 4];
        name[at++] = digits[identity[i] & 15];
    }
    name[at] = 0;
}

// Copied word by word, as other processes read, or write, meanwhile.
inline void metrics_copy_2(void *to, const void *from) {
    using word [[gnu::may_alias]] = uint64_t;
    auto *words = static_cast<word *>(to);
    const auto *source = static_cast<const word *>(from);
    for (size_t i = 0; i < sizeof(metrics_content_2) / sizeof *words; ++i)
        __atomic_store_n(words + i, __atomic_load_n(source + i, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
}

} // namespace taiyen
