#include "metrics.hpp"

#include "metrics_layout.hpp"
#include "src/txn/txn.hpp"
#include <cstdlib>
#include <cstring>
#include <new>
#include <taiyen/metrics.h>

namespace taiyen {

namespace {

constexpr uint64_t second_ns = 1000000000;
constexpr uint64_t lease_ns = 3 * second_ns;
constexpr uint64_t look_every_ns = second_ns / 5;

// Counting blocks and dirty pages makes allocations and snapshots wait: it takes at most a two-hundredth of the time,
// and is skipped where one count could take long.
constexpr uint64_t count_every_ns = second_ns;
constexpr uint64_t count_share = 200;
constexpr size_t counted_bytes_max = size_t{4} << 30;

} // namespace

struct metrics_page {
    ty_heap *heap;
    os::shared_memory shared;
    os::thread thread;
    os::fork_guard fork;
    std::atomic<uint32_t> stopping{0};
    std::atomic<uint32_t> ended{0};
    uint64_t turns = 0; // of its content: never read back (BD2: nothing that others write to the page does harm)
    uint64_t count_after_ns = 0;
    metrics_content content{};

    metrics_request &request() { return *static_cast<metrics_request *>(shared.memory); }
    shared_metrics &shown() {
        return *reinterpret_cast<shared_metrics *>(static_cast<char *>(shared.memory) + metrics_request_bytes);
    }
};

namespace {

void look_at_snapshots(metrics_page &b) {
    ty_snapshot_stats stats{};
    stats.struct_size = sizeof stats;
    metrics_content &c = b.content;
    if (image_get_snapshot_stats(b.heap, &stats))
        return;
    c.epoch = image_epoch(b.heap);
    c.snapshots = stats.snapshots;
    c.snapshot_pages = stats.pages;
    c.journal_bytes = stats.journal_bytes;
    c.image_bytes = stats.image_bytes;
    c.pending_batches = stats.pending_batches;
    c.pending_bytes = stats.pending_bytes;
    c.pages_evicted = stats.pages_evicted;
    snapshot_record lines[snapshot_lines_max];
    static_assert(sizeof lines == sizeof c.newest);
    c.snapshot_count = image_snapshot_lines(b.heap, lines);
    memcpy(c.newest, lines, sizeof lines[0] * c.snapshot_count);
    c.known |= TY_METRICS_SNAPSHOTS;
}

void look_at_transactions(metrics_page &b) {
    ty_txn_stats stats{};
    metrics_content &c = b.content;
    if (txn_get_stats(b.heap, &stats))
        return;
    c.transactions = stats.transactions;
    c.rollbacks = stats.rollbacks;
    c.entries = stats.entries;
    c.record_bytes = stats.record_bytes;
    c.log_bytes = stats.log_bytes;
    c.log_frames = stats.log_frames;
    c.used_log_bytes = stats.used_log_bytes;
    c.size_log_bytes = stats.size_log_bytes;
    c.forced_snapshots = stats.forced_snapshots;
    c.automatic_snapshots = stats.automatic_snapshots;
    c.lsn = stats.lsn;
    c.durable_lsn = stats.durable_lsn;
    c.reserved_blocks = stats.reserved_blocks;
    static_assert(sizeof c.times == sizeof(uint64_t[commit_ways][commit_buckets]));
    txn_commit_times(b.heap, c.times);
    c.known |= TY_METRICS_TRANSACTIONS;
}

void look_at_memory(metrics_page &b) {
    metrics_content &c = b.content;
    const memory_metrics memory = image_memory_metrics(b.heap);
    c.memory_bound_bytes = memory.bound_bytes;
    c.memory_allowed_bytes = memory.allowed_bytes;
    c.copies_bytes = memory.copies_bytes;
    c.known &= ~uint64_t{TY_METRICS_MEMORY | TY_METRICS_COPIES};
    if (image_kind(b.heap) != TY_ARCHIVE)
        c.known |= uint64_t{TY_METRICS_MEMORY} | (memory.counted ? TY_METRICS_COPIES : 0);
}

void look_at_undo(metrics_page &b) {
    metrics_content &c = b.content;
    undo_metrics_of undo;
    if (!image_read_undo(b.heap, &undo))
        return;
    c.undoable = undo.undoable;
    c.redoable = undo.redoable;
    c.kept_blocks = undo.kept_blocks;
    c.kept_bytes = undo.kept_bytes;
    c.undo_used_bytes = undo.used_bytes;
    c.undo_room_bytes = undo.room_bytes;
    c.known = undo.attached ? c.known | TY_METRICS_UNDO : c.known & ~uint64_t{TY_METRICS_UNDO};
}

bool add_class(const ty_class_stats *stats, void *context) {
    auto &c = *static_cast<metrics_content *>(context);
    if (c.class_count == metrics_classes_max)
        return false;
    c.classes[c.class_count++] = {stats->block_bytes, stats->spans,       stats->span_bytes,
                                  stats->block_count, stats->live_blocks, stats->live_bytes};
    return true;
}

// The cell size is the smallest power of two of pages with which the cells cover the touched part.
dirty_cells make_cells(metrics_content &c) {
    uint64_t cell_bytes = os::page_bytes;
    while ((c.touched_bytes + cell_bytes - 1) / cell_bytes > metrics_cells_max)
        cell_bytes *= 2;
    c.dirty_cell_bytes = cell_bytes;
    c.dirty_cells = (c.touched_bytes + cell_bytes - 1) / cell_bytes;
    memset(c.dirty, 0, sizeof c.dirty);
    return {cell_bytes / os::page_bytes, c.dirty_cells, c.dirty};
}

void count(metrics_page &b, uint64_t now_ns) {
    metrics_content &c = b.content;
    c.known &= ~uint64_t{TY_METRICS_BLOCKS | TY_METRICS_DIRTY};
    if (c.touched_bytes > counted_bytes_max)
        return;
    c.class_count = 0;
    if (heap_each_class(b.heap, add_class, &c) == TY_OK)
        c.known |= TY_METRICS_BLOCKS;
    const dirty_cells cells = make_cells(c);
    if (image_kind(b.heap) != TY_ARCHIVE && image_dirty_count(b.heap, &c.dirty_pages, &cells) == TY_OK)
        c.known |= TY_METRICS_DIRTY;
    c.counted_unix_ns = os::unix_time_ns();
    const uint64_t end_ns = os::now_ns();
    c.count_ns = end_ns - now_ns;
    const uint64_t pause_ns = c.count_ns * count_share;
    b.count_after_ns = end_ns + (pause_ns > count_every_ns ? pause_ns : count_every_ns);
}

// BD1: a reader that sees the same even turn before and after has one complete sample.
void show(metrics_page &b) {
    shared_metrics &shown = b.shown();
    shown.turn.store(++b.turns, std::memory_order_relaxed);
    metrics_copy(&shown.content, &b.content);
    shown.turn.store(++b.turns, std::memory_order_release);
}

void look(metrics_page &b, uint64_t now_ns) {
    metrics_content &c = b.content;
    c.touched_bytes = heap_used_bytes(b.heap);
    c.limit_bytes = heap_limit(b.heap);
    look_at_snapshots(b);
    look_at_transactions(b);
    look_at_memory(b);
    look_at_undo(b);
    if (now_ns >= b.count_after_ns)
        count(b, now_ns);
    c.unix_ns = os::unix_time_ns();
    c.looks += 1;
    c.look_ns = os::now_ns() - now_ns;
    show(b);
}

void *run(void *argument) {
    metrics_page &b = *static_cast<metrics_page *>(argument);
    std::atomic<uint32_t> &asked = b.request().asked;
    uint32_t answered = 0; // the memory's initial value: a reader may have asked before this thread ran
    uint64_t until_ns = 0;
    while (!b.stopping.load(std::memory_order_acquire)) {
        const uint32_t seen = asked.load(std::memory_order_acquire);
        const uint64_t now_ns = os::now_ns();
        if (seen != answered)
            until_ns = now_ns + lease_ns;
        answered = seen;
        const bool wanted = now_ns < until_ns;
        txn_time_commits(b.heap, wanted); // BD3: without a reader nothing is counted
        if (wanted) {
            look(b, now_ns);
            os::wait_on(b.stopping, 0, look_every_ns);
        } else {
            os::wait_on_shared(asked, seen);
        }
    }
    txn_time_commits(b.heap, false);
    b.ended.store(1, std::memory_order_release);
    os::wake_all(b.ended);
    return nullptr;
}

void give_up(metrics_page *b) {
    os::shared_end(b->shared);
    b->fork.stop();
    b->~metrics_page();
    free(b);
}

ty_status make(metrics_page &b) {
    char name[metrics_name_bytes];
    metrics_name(image_identity(b.heap), name);
    if (ty_status status = b.fork.start())
        return status;
    if (ty_status status = os::shared_make(name, metrics_bytes, &b.shared))
        return status;
    memcpy(b.content.identity, image_identity(b.heap), sizeof b.content.identity);
    b.content.process = os::process_id();
    b.content.base = reinterpret_cast<uintptr_t>(heap_base(b.heap));
    shared_metrics &shown = b.shown();
    shown.magic = metrics_magic;
    shown.version = metrics_version;
    shown.content_bytes = sizeof b.content;
    return b.thread.start(run, &b);
}

void start(ty_heap *heap) {
    void *memory = os::internal_calloc(1, sizeof(metrics_page));
    if (memory == nullptr)
        return;
    auto *b = new (memory) metrics_page{};
    b->heap = heap;
    if (make(*b)) // BD4: a heap works without a metrics page
        give_up(b);
    else
        image_set_metrics(heap, b);
}

} // namespace

void metrics_start(ty_heap *heap, const ty_open_options &options) {
    if (!opens_for_reading(options.mode) && options.background != TY_BACKGROUND_CALLS)
        start(heap);
}

// Other processes may change the number back at any moment, so one wake need not be enough (BD2: what they write does
// no harm).
metrics_stopped metrics_stop(ty_heap *heap) {
    metrics_page *b = image_metrics(heap);
    if (b == nullptr)
        return {heap, false};
    const bool own = !b->fork.forked();
    if (own) {
        b->stopping.store(1, std::memory_order_release);
        os::wake_all(b->stopping);
        while (b->ended.load(std::memory_order_acquire) == 0) {
            b->request().asked.fetch_add(1, std::memory_order_release);
            os::wake_all_shared(b->request().asked);
            os::wait_on(b->ended, 0, second_ns / 100);
        }
        b->thread.join();
    }
    image_set_metrics(heap, nullptr);
    give_up(b);
    return {heap, own};
}

void metrics_start_again(const metrics_stopped &stopped) {
    if (stopped.was_there)
        start(stopped.heap);
}

} // namespace taiyen
