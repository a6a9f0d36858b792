#include "report.hpp"
#include "folder.hpp"
#include "heap_file.hpp"
#include "stopwatch.hpp"
#include <cstdarg>
#include <cstdio>

namespace demo {
namespace {

[[gnu::format(printf, 2, 3)]] void row(const char *what, const char *format, ...) {
    std::printf("  %-24s ", what);
    std::va_list arguments;
    va_start(arguments, format);
    std::vprintf(format, arguments);
    va_end(arguments);
    std::putchar('\n');
}

void print_heap(const char *what, const heap_figures &heap) {
    row(what, "page efficiency %.1f %% (%.1f MB live in %.1f MB resident), availability %.3f",
        heap.page_efficiency * 100, heap.live_mb, heap.resident_mb, heap.availability);
}

void print_kills(const kill_result &kills) {
    row("kills", "%u of %u during a snapshot (%u of those snapshots were durable already)", kills.during_snapshot,
        kills.rounds, kills.found_new);
    row("found", "%u with a batch half written, %u with batches to checkpoint, %u clean, %u not opened yet",
        kills.found[TY_RECOVERY_CRASHED_WRITING], kills.found[TY_RECOVERY_CRASHED_BATCHES],
        kills.found[TY_RECOVERY_CRASHED], kills.found[TY_RECOVERY_CLOSED] + kills.found[TY_RECOVERY_CLOSED_BATCHES]);
    row("proofs", "%u of %u: every record, pointer and block as acknowledged", kills.proven, kills.rounds);
}

} // namespace

heap_figures figures_of(ty_heap *heap) {
    ty_heap_stats stats{};
    stats.struct_size = sizeof stats;
    check(ty_heap_get_stats(heap, &stats));
    return {static_cast<double>(stats.live_bytes) / 1e6, static_cast<double>(stats.resident_bytes) / 1e6,
            stats.page_efficiency, stats.availability};
}

void print_table(const figures &run) {
    double snapshot_ms = median(run.snapshot_ms);
    double raw_ms = median(run.raw_ms);
    const kill_result &kills = run.kills;
    std::printf("\nFigures (medians)\n");
    row("load", "%s records/s, unpacked, parsed and linked",
        with_commas(static_cast<uint64_t>(static_cast<double>(run.records) * 1e3 / run.load_ms)).c_str());
    row("snapshot", "%.0f MB/s (%.1f MB, all of the heap, in %.1f ms)", run.snapshot_mb * 1e3 / snapshot_ms,
        run.snapshot_mb, snapshot_ms);
    row("raw sequential write", "%.0f MB/s (the same bytes in %.1f ms): the snapshot takes %.2f times as long",
        run.snapshot_mb * 1e3 / raw_ms, raw_ms, snapshot_ms / raw_ms);
    row("pause", "%.2f ms for that snapshot", median(run.pause_ms));
    if (kills.acknowledged > 0)
        row("pause, small snapshots", "%.2f ms for %.1f MB (%s snapshots)", median(kills.pause_ms),
            median(kills.kilobytes) / 1e3, with_commas(kills.acknowledged).c_str());
    row("open, closed in order", "%.2f ms", median(run.open_clean_ms));
    if (kills.rounds > 0)
        row("open, after a kill", "%.2f ms", median(kills.open_ms));
    row("nearest city", "%.1f us just after an open, straight from the mapping; then %.1f us", run.nearest_first_us,
        run.nearest_us);
    print_heap("heap, loaded", run.loaded);
    if (kills.rounds > 0) {
        print_heap("heap, after the rounds", run.churned);
        print_kills(kills);
    }
}

} // namespace demo
