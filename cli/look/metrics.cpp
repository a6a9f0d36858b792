#include "look/metrics.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

namespace cli {

ty_status metrics::look_at_files(const heap_files &files) {
    const ty_open_options options = files.options();
    info.struct_size = sizeof info;
    if (ty_status status = ty_read_info(files.path.c_str(), &options, &info))
        return status;
    log.struct_size = sizeof log;
    if (info.kind == TY_TRANSACTIONAL && ty_log_read(files.path.c_str(), &options, &log, nullptr, nullptr) != TY_OK)
        log = {};
    return TY_OK;
}

ty_status metrics::look_into(ty_heap *opened_heap) {
    if (ty_status status = heap.read(opened_heap))
        return status;
    if (ty_status status = roots_of(opened_heap, roots))
        return status;
    undo.struct_size = sizeof undo;
    const ty_status status = ty_get_undo_stats(opened_heap, &undo);
    has_undo = status == TY_OK;
    if (status != TY_OK && status != TY_E_NOT_FOUND)
        damage = ty_error_text();
    if (internal_blocks_of(opened_heap, own) != TY_OK && damage.empty())
        damage = ty_error_text();
    opened = true;
    return TY_OK;
}

// A heap without a metrics page is described by what its files say.
void metrics::look_at_program(const heap_files &files) {
    constexpr uint64_t wait_ms = 1000;
    program_metrics page;
    is_live = info.in_use && page.open(files) && page.read(wait_ms, &live);
}

bool program_metrics::keep_failure() {
    why_ = ty_error_text();
    metrics_.reset();
    return false;
}

bool program_metrics::open(const heap_files &files) {
    const ty_open_options options = files.options();
    ty_metrics_page *page = nullptr;
    if (ty_metrics_open(files.path.c_str(), &options, &page))
        return keep_failure();
    metrics_.reset(page);
    return true;
}

bool program_metrics::read(uint64_t wait_ms, live_metrics *metrics) {
    live_metrics read;
    read.now.struct_size = sizeof read.now;
    const ty_status status = ty_metrics_read(metrics_.get(), wait_ms, &read.now);
    if (status == TY_E_BUSY) // the program may be stopped, or the machine busy: the program has not gone
        return false;
    if (status)
        return keep_failure();
    auto keep_class = [](const ty_class_stats *one, void *all) {
        static_cast<std::vector<ty_class_stats> *>(all)->push_back(*one);
        return true;
    };
    auto keep_snapshot = [](const ty_metrics_snapshot *one, void *all) {
        static_cast<std::vector<ty_metrics_snapshot> *>(all)->push_back(*one);
        return true;
    };
    if (read.now.known & TY_METRICS_BLOCKS)
        ty_metrics_each_class(metrics_.get(), keep_class, &read.classes);
    ty_metrics_each_snapshot(metrics_.get(), keep_snapshot, &read.snapshots);
    uint64_t times[2][TY_METRICS_BUCKETS];
    ty_metrics_get_times(metrics_.get(), times);
    for (size_t way = 0; way < read.times.size(); ++way)
        std::copy_n(times[way], TY_METRICS_BUCKETS, read.times[way].begin());
    if (read.now.known & TY_METRICS_DIRTY) {
        uint32_t dirty[TY_METRICS_CELLS];
        ty_metrics_get_dirty(metrics_.get(), dirty);
        read.dirty.assign(dirty, dirty + read.now.dirty_cells);
    }
    *metrics = std::move(read);
    return true;
}

// ---- Documents

namespace {

json::document undo_document(const ty_undo_stats &undo) {
    return {{"undoable", json::wide(undo.undoable)},       {"redoable", json::wide(undo.redoable)},
            {"undo_bytes", json::wide(undo.undo_bytes)},   {"undo_size", json::wide(undo.undo_size)},
            {"redo_bytes", json::wide(undo.redo_bytes)},   {"redo_size", json::wide(undo.redo_size)},
            {"kept_blocks", json::wide(undo.kept_blocks)}, {"kept_bytes", json::wide(undo.kept_bytes)}};
}

} // namespace

json::document document_of(const heap_files &files, const metrics &found) {
    json::document one = document_of(files.path, found.info);
    if (found.log.streams != 0) {
        one["log"] = document_of(files.path, found.log);
        one["log"].erase("path");
        one["log"]["used_bytes"] = json::wide(used_log_bytes(found.log));
    }
    if (found.is_live)
        one["live"] = document_of(found.live);
    if (!found.opened)
        return one;
    found.heap.add_to(one);
    one["roots"] = json::document::array();
    for (const named_root &root : found.roots)
        one["roots"].push_back(document_of(root));
    one["internal_blocks"] = json::wide(found.own.count);
    one["internal_bytes"] = json::wide(found.own.bytes);
    if (found.has_undo)
        one["undo"] = undo_document(found.undo);
    if (!found.damage.empty())
        one["damage"] = found.damage;
    return one;
}

namespace {

// By bucket, without the empty ones at the end.
json::document counts_of(const std::array<uint64_t, TY_METRICS_BUCKETS> &counts) {
    size_t used = counts.size();
    while (used > 0 && counts[used - 1] == 0)
        --used;
    json::document list = json::document::array();
    for (size_t bucket = 0; bucket < used; ++bucket)
        list.push_back(json::wide(counts[bucket]));
    return list;
}

void add_snapshots(const live_metrics &live, json::document &one) {
    const ty_metrics &now = live.now;
    one["epoch"] = json::wide(now.epoch);
    one["snapshots"] = json::wide(now.snapshots);
    one["snapshot_pages"] = json::wide(now.snapshot_pages);
    one["journal_bytes"] = json::wide(now.journal_bytes);
    one["image_bytes"] = json::wide(now.image_bytes);
    one["pending_batches"] = json::wide(now.pending_batches);
    one["pending_bytes"] = json::wide(now.pending_bytes);
    one["pages_evicted"] = json::wide(now.pages_evicted);
    one["newest_snapshots"] = json::document::array();
    for (const ty_metrics_snapshot &each : live.snapshots)
        one["newest_snapshots"].push_back({{"epoch", json::wide(each.epoch)},
                                           {"unix_ns", json::wide(each.unix_ns)},
                                           {"pause_ns", json::wide(each.pause_ns)},
                                           {"durable_ns", json::wide(each.durable_ns)},
                                           {"pages", json::wide(each.pages)},
                                           {"bytes", json::wide(each.bytes)}});
}

void add_transactions(const live_metrics &live, json::document &one) {
    const ty_metrics &now = live.now;
    one["transactions"] = json::wide(now.transactions);
    one["rollbacks"] = json::wide(now.rollbacks);
    one["entries"] = json::wide(now.entries);
    one["record_bytes"] = json::wide(now.record_bytes);
    one["log_bytes"] = json::wide(now.log_bytes);
    one["log_frames"] = json::wide(now.log_frames);
    one["used_log_bytes"] = json::wide(now.used_log_bytes);
    one["size_log_bytes"] = json::wide(now.size_log_bytes);
    one["forced_snapshots"] = json::wide(now.forced_snapshots);
    one["automatic_snapshots"] = json::wide(now.automatic_snapshots);
    one["lsn"] = json::wide(now.lsn);
    one["durable_lsn"] = json::wide(now.durable_lsn);
    one["reserved_blocks"] = json::wide(now.reserved_blocks);
    one["durable_times"] = counts_of(live.times[0]);
    one["asynchronous_times"] = counts_of(live.times[1]);
}

} // namespace

json::document document_of(const live_metrics &live) {
    const ty_metrics &now = live.now;
    json::document one;
    one["process"] = json::wide(now.process);
    one["unix_ns"] = json::wide(now.unix_ns);
    one["looks"] = json::wide(now.looks);
    one["look_ns"] = json::wide(now.look_ns);
    one["touched_bytes"] = json::wide(now.touched_bytes);
    if (now.known & TY_METRICS_SNAPSHOTS)
        add_snapshots(live, one);
    if (now.known & TY_METRICS_TRANSACTIONS)
        add_transactions(live, one);
    if (now.known & TY_METRICS_DIRTY) {
        one["dirty_pages"] = json::wide(now.dirty_pages);
        one["dirty_cell_bytes"] = json::wide(now.dirty_cell_bytes);
        one["dirty_cells"] = live.dirty;
    }
    if (now.known & TY_METRICS_MEMORY) {
        one["memory_bound_bytes"] = json::wide(now.memory_bound_bytes);
        one["memory_allowed_bytes"] = json::wide(now.memory_allowed_bytes);
    }
    if (now.known & TY_METRICS_COPIES)
        one["copies_bytes"] = json::wide(now.copies_bytes);
    if (now.known & TY_METRICS_UNDO)
        one["undo"] = {
            {"undoable", json::wide(now.undoable)},          {"redoable", json::wide(now.redoable)},
            {"kept_blocks", json::wide(now.kept_blocks)},    {"kept_bytes", json::wide(now.kept_bytes)},
            {"used_bytes", json::wide(now.undo_used_bytes)}, {"room_bytes", json::wide(now.undo_room_bytes)}};
    if (now.known & TY_METRICS_BLOCKS)
        one["classes_in_use"] = json::classes(live.classes);
    if (now.known & (TY_METRICS_DIRTY | TY_METRICS_BLOCKS)) {
        one["counted_unix_ns"] = json::wide(now.counted_unix_ns);
        one["count_ns"] = json::wide(now.count_ns);
    }
    return one;
}

} // namespace cli
