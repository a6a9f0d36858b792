// Replays the transactions of a damaged heap's log in what was salvaged of its image: by a replica (apply_records.cpp),
// so that they have the same effect as in a recovery. One at a time, so that it is known where the replay ends.
#include "opening.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace taiyen {
namespace {

// What was cut off a log reads as zeros, as what was never written.
class uncut_sink {
public:
    explicit uncut_sink(const ty_log_sink &cut) : cut_(cut), table_(cut) {
        table_.context = this;
        table_.size_bytes = uint64_t{1} << 62;
        table_.read = read;
    }
    uncut_sink(const uncut_sink &) = delete;
    uncut_sink &operator=(const uncut_sink &) = delete;

    const ty_log_sink &table() const { return table_; }

private:
    static ty_status read(void *context, uint64_t offset, void *buffer, size_t bytes) {
        const ty_log_sink &cut = static_cast<const uncut_sink *>(context)->cut_;
        const uint64_t there = offset < cut.size_bytes ? std::min<uint64_t>(bytes, cut.size_bytes - offset) : 0;
        memset(static_cast<char *>(buffer) + there, 0, bytes - there);
        return there ? os::call_whole(cut.read, cut.context, offset, buffer, there) : TY_OK;
    }

    const ty_log_sink &cut_;
    ty_log_sink table_;
};

class redoer {
public:
    redoer(receiving &to, uint64_t until, ty_salvage_redone &report) : to_(to), until_(until), report_(report) {}
    redoer(const redoer &) = delete;
    redoer &operator=(const redoer &) = delete;
    ~redoer() { forget(); }

    static ty_status take(void *self, const log_record &record) { return static_cast<redoer *>(self)->take(record); }
    bool has_stopped() const { return stopped_; }
    uint64_t in_doubt() const { return waiting_count_; }

private:
    // X30: whole transactions, as a recovery applies them.
    ty_status take(const log_record &record) {
        const ty_feed_record one = follow_record_of(record);
        if (record.lsn > until_) {
            stopped_ = true;
            report_.stopped_at = record.lsn;
            return TY_E_BUSY; // ends the reading
        }
        if (txn_replica_check(to_, one, &order_))
            return fault("salvage_goes_on_after_what_does_not_fit") ? TY_OK : stop(record.lsn, TY_E_BUSY);
        if (order_.none() && waiting_count_ == 0)
            return redo(&one, 1);
        if (ty_status status = keep(one))
            return status;
        return order_.none() ? redo(waiting_, waiting_count_) : TY_OK;
    }
    static ty_feed_record follow_record_of(const log_record &record) {
        ty_feed_record one{};
        one.lsn = record.lsn;
        one.bytes = record.bytes;
        one.size_bytes = record.size;
        return one;
    }
    ty_status redo(const ty_feed_record *records, size_t count) {
        const uint64_t first = records[0].lsn;
        if (ty_status status = txn_replica_apply(to_, records, count))
            return stop(first, status);
        report_.transactions += 1;
        forget();
        return TY_OK;
    }
    ty_status keep(const ty_feed_record &record) {
        void *bytes = os::internal_malloc(record.size_bytes);
        if (!bytes)
            return failure(TY_E_MEMORY, "do a transaction again").remedy("free memory, or raise the process's limits");
        memcpy(bytes, record.bytes, record.size_bytes);
        ty_feed_record &kept = waiting_[waiting_count_++] = record;
        kept.bytes = bytes;
        return TY_OK;
    }
    void forget() {
        for (; waiting_count_ > 0; --waiting_count_)
            free(const_cast<void *>(waiting_[waiting_count_ - 1].bytes));
    }
    ty_status stop(uint64_t lsn, ty_status status) {
        stopped_ = true;
        report_.stopped_at = lsn;
        snprintf(report_.text, sizeof report_.text, "%s", ty_error_text());
        return status;
    }

    receiving &to_;
    const uint64_t until_;
    ty_salvage_redone &report_;
    record_order order_;
    ty_feed_record waiting_[record_pending_max + 2]; // for an outcome; allocated by malloc
    size_t waiting_count_ = 0;
    bool stopped_ = false;
};

void report_damaged_log(ty_salvage_redone *report) {
    report->log_damaged = true;
    snprintf(report->text, sizeof report->text, "%s", ty_error_text());
}

// A defect of the log is reported, and is no failure of the call.
ty_status redo_after(const log_location &location, const image_log &known, receiving &to, uint64_t until,
                     ty_salvage_redone *report) {
    redoer redo(to, until, *report);
    log_contents contents{};
    const ty_status status =
        log_scan(*location.sink, location.path, identity_of(known), known.redo_point, {&redo, redoer::take}, &contents);
    report->in_doubt = redo.in_doubt();
    report->left_out = contents.left_out;
    if (redo.has_stopped())
        return status == TY_E_BUSY ? TY_OK : status;
    if (!status || status == TY_E_MEMORY)
        return status;
    report_damaged_log(report);
    return TY_OK;
}

// As if restored from a base: what it receives continues that.
ty_status receive_after(ty_heap *heap, const image_log &known, receiving **to) {
    receive_start start{};
    start.source = identity_of(known);
    start.lsn = start.copied = known.redo_point.lsn;
    start.base = heap_base(heap);
    return txn_replica_begin(heap, start, to);
}

ty_status redo_log(ty_heap *heap, const log_location &location, const image_log &known, uint64_t until,
                   ty_salvage_redone *report) {
    receiving *to = nullptr;
    if (ty_status status = receive_after(heap, known, &to))
        return status;
    ty_status status = redo_after(location, known, *to, until, report);
    if (!status)
        status = txn_replica_make_durable(*to);
    txn_replica_end(to);
    return status ? status : txn_replica_forget(heap);
}

// X30: whether the log is the one that the heap's last open wrote. *needless: it is not, and holds nothing that counts.
ty_status find_log(const log_location &location, const image_log &known, log_header *header, bool *needless) {
    const log_identity identity = identity_of(known);
    if (ty_status status = log_check(*location.sink, location.path, &identity, header))
        return status;
    if (fault("salvage_reads_the_log_of_an_earlier_open"))
        return *needless = false, TY_OK;
    return log_location_check_open(location, *header, known, needless);
}

// If the end of its ring lies after that of the file, what is missing may have been transactions.
void report_cut_log(const log_location &location, const log_header &header, ty_salvage_redone *report) {
    const uint64_t bytes = location.sink->size_bytes;
    if (header.ring_offset + header.ring_bytes <= bytes)
        return;
    report->log_damaged = true;
    if (report->text[0] == 0)
        snprintf(report->text, sizeof report->text, "%s was cut to %llu byte%s: what stood after its end is missing",
                 location.path, (unsigned long long)bytes, plural(bytes));
}

ty_status redo_at(ty_heap *heap, log_location &location, const image_log &known, uint64_t until,
                  ty_salvage_redone *report) {
    if (ty_status status = log_location_open(location, false)) {
        if (status == TY_E_MEMORY || status == TY_E_PERMISSION)
            return status;
        report_damaged_log(report);
        return TY_OK;
    }
    const uncut_sink uncut(*location.sink);
    log_location whole = location;
    whole.sink = &uncut.table();
    log_header header{};
    bool needless = false;
    ty_status status = find_log(whole, known, &header, &needless);
    if (status == TY_E_MEMORY)
        return status;
    if (status) {
        report_damaged_log(report);
        return TY_OK;
    }
    if (!needless) {
        status = redo_log(heap, whole, known, until, report);
        report_cut_log(location, header, report);
    }
    return status;
}

ty_status redo_known(ty_heap *heap, const char *path, const ty_open_options &options, const ty_info &info,
                     const image_log &known, uint64_t until, ty_salvage_redone *report) {
    if (!known.log_identity)
        return failure(TY_E_UNSUPPORTED, "do the transactions of a log again: the heap has none").at(path);
    if (info.base != heap_base(heap))
        return failure(TY_E_ADDRESS, "do the transactions of a log again: they are of a heap at %p", info.base)
            .at(path);
    log_location location{};
    if (ty_status status = log_location_of(location, path, options))
        return status;
    const ty_status status = redo_at(heap, location, known, until, report);
    log_location_destroy(location);
    return status;
}

} // namespace

ty_status txn_salvage_redo(ty_heap *heap, const char *path, const ty_open_options &options, uint64_t state,
                           uint64_t until, ty_salvage_redone *report) {
    ty_info info{};
    image_log known{};
    storage_file image{options.storage}; // the log is read at the same moment as the image
    if (ty_status status = image_salvage_log(path, options, state, &image, &info, &known))
        return status;
    const ty_status status = redo_known(heap, path, options, info, known, until, report);
    image.close();
    return status;
}

} // namespace taiyen
