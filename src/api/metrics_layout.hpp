// The layout of a metrics page: memory in which a program that has a heap open publishes its metrics. Fixed-width, no
// padding; only processes on the same machine read it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace taiyen {

inline constexpr uint64_t metrics_magic = 0x64626e6579696154; // "Taiyenbd"
inline constexpr uint32_t metrics_version = 1;
inline constexpr size_t metrics_request_bytes = 4096; // at the front; others may write to it

// BD2: all that the program reads of a metrics page.
struct metrics_request {
    // A change means that a reader asks. The reader that changes it also wakes the thread that waits for it.
    std::atomic<uint32_t> asked;
};

inline constexpr uint32_t metrics_classes_max = 128;
inline constexpr uint32_t metrics_snapshots_max = 64;
inline constexpr uint32_t metrics_buckets = 128;
inline constexpr uint32_t metrics_cells_max = 1024;

struct metrics_class {
    uint64_t block_bytes;
    uint64_t spans;
    uint64_t span_bytes;
    uint64_t block_count;
    uint64_t live_blocks;
    uint64_t live_bytes;
};

struct metrics_snapshot {
    uint64_t epoch;
    uint64_t unix_ns;
    uint64_t pause_ns;
    uint64_t durable_ns;
    uint64_t pages;
    uint64_t bytes;
};

struct metrics_content {
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
    uint64_t automatic_snapshots;
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
    metrics_class classes[metrics_classes_max];
    metrics_snapshot newest[metrics_snapshots_max];
    uint64_t times[2][metrics_buckets];
    uint32_t dirty[metrics_cells_max]; // pages of each cell
};

struct shared_metrics {
    uint64_t magic;
    uint32_t version;
    uint32_t content_bytes;
    std::atomic<uint64_t> turn; // odd while the content is written; 0: there is none yet
    metrics_content content;
};
static_assert(offsetof(shared_metrics, content) == 24);
static_assert(offsetof(metrics_content, classes) == 376);
static_assert(offsetof(metrics_content, newest) == 6520);
static_assert(offsetof(metrics_content, times) == 9592);
static_assert(offsetof(metrics_content, dirty) == 11640);
static_assert(sizeof(metrics_content) == 15736);

inline constexpr size_t metrics_bytes = metrics_request_bytes + 16384;
static_assert(metrics_request_bytes + sizeof(shared_metrics) <= metrics_bytes);

inline constexpr size_t metrics_name_bytes = 48;
// The name of the memory in /proc.
inline void metrics_name(const uint8_t *identity, char (&name)[metrics_name_bytes]) {
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

// Copied word by word, as other processes read, or write, meanwhile. A reader that sees a word of a write sees the odd
// turn before it, too: release and acquire on each word, as in seqlock (TSan knows no fences).
inline void metrics_copy(void *to, const void *from) {
    using word [[gnu::may_alias]] = uint64_t;
    auto *words = static_cast<word *>(to);
    const auto *source = static_cast<const word *>(from);
    for (size_t i = 0; i < sizeof(metrics_content) / sizeof *words; ++i)
        __atomic_store_n(words + i, __atomic_load_n(source + i, __ATOMIC_ACQUIRE), __ATOMIC_RELEASE);
}

} // namespace taiyen
