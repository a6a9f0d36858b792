// Restoring: a base is unpacked under a temporary name, and takes the records after it. docs/design/ship.md.
#include "restoring.hpp"

#include "folder.hpp"
#include "shipper.hpp"

#include <algorithm>
#include <cstring>
#include <taiyen/detail/fault.hpp>
#include <taiyen/pack.h>
#include <taiyen/replica.h>
#include <taiyen/txn.h>

namespace taiyen::ship {

namespace {

constexpr const char *suffix = "-restoring";
constexpr uint64_t newest = UINT64_MAX;       // LSN
constexpr size_t log_bytes = size_t{4} << 20; // of the temporary heap, whose log stays empty

class restoring {
public:
    restoring(const ty_destination &from, const char *path, const ty_restore_options &options)
        : from_(from), path_(path), passing_(path_ + suffix), options_(options) {}
    restoring(const restoring &) = delete;
    restoring &operator=(const restoring &) = delete;
    ~restoring();

    ty_status run(ty_restore_report *report);

private:
    ty_status plan();
    ty_status plan_from(const object &base);
    ty_status find_time();
    ty_status refuse_time(uint64_t low, uint64_t high) const;
    ty_status unpack_some();
    ty_status nothing_there() const;
    ty_status check_names() const;
    ty_status clear_remains() const;
    ty_status unpack();
    ty_status receive();
    ty_status begin();
    ty_status take_segment(const object &segment, bool *done, bool *unreadable);
    ty_status report_reach();
    size_t wanted_of(const segment_frame &frame) const;
    ty_status finish();
    bool add_progress(uint64_t bytes);
    static ty_status read_base(void *bytes, size_t size, size_t *got, void *context);
    ty_open_options open_options() const;

    const ty_destination &from_;
    std::string path_;
    std::string passing_;
    const ty_restore_options &options_;
    restoring_lock lock_;
    bool made_ = false;
    catalog all_;
    const object *base_ = nullptr;
    size_t first_ = SIZE_MAX;  // a segment's index
    size_t bases_ = 0;         // the first so many; later ones were found damaged
    uint64_t wanted_ = newest; // LSN
    std::string unreadable_;   // the failure of a segment that ended early
    object_reader *reading_ = nullptr;
    ty_heap *heap_ = nullptr;
    ty_replica *replica_ = nullptr;
    uint64_t total_ = 0;
    uint64_t done_ = 0;
    bool stopped_ = false;
    ty_restore_report report_{};
};

restoring::~restoring() {
    ty_error error{};
    ty_error_detail(&error);
    ty_replica_end(replica_);
    if (heap_)
        (void)ty_discard(heap_);
    if (made_)
        (void)clear_remains();
    if (error.status)
        (void)ty_error_set(error.status, error.system_error, error.operation, error.path[0] ? error.path : nullptr,
                           error.offset, error.remedy);
}

bool restoring::add_progress(uint64_t bytes) {
    done_ += bytes;
    stopped_ = stopped_ ||
               (options_.progress && !options_.progress(std::min(done_, total_), total_, options_.progress_context));
    return !stopped_;
}

ty_status restoring::nothing_there() const {
    std::string there = "it holds no base";
    if (!all_.bases.empty()) {
        const uint64_t last =
            std::max(all_.bases.back().header.to.lsn, all_.segments.empty() ? 0 : all_.segments.back().header.to.lsn);
        there = "it holds transactions " + std::to_string(all_.bases.front().header.from.lsn) + " to " +
                std::to_string(last) + ", perhaps with gaps (ty_ship_list)";
    }
    return fail(TY_E_NOT_FOUND, "restore a heap to what was not shipped, or is not kept", path_, there);
}

ty_status restoring::refuse_time(uint64_t low, uint64_t high) const {
    return fail(TY_E_MISMATCH,
                "restore a heap to a time: a clock was set, so it may mean transaction " + std::to_string(low) +
                    (high > low + 1 ? " or one up to " : " or ") + std::to_string(high),
                path_, "give a transaction's number; the folder's list has numbers and times (ty_ship_list)");
}

// SP8: the last transaction that was seen at or before the time, if all before it were, too, and none after it. Where
// times go back, or the next transaction has a time in the future, a clock was wrong, and the choice would be a guess.
ty_status restoring::find_time() {
    const uint64_t time = options_.to_ns, now = unix_ns();
    bool found = false, went_back = false;
    uint64_t last = 0, low = 0, next_ns = 0;
    const auto see = [&](uint64_t end, uint64_t ns) {
        if (ns <= time) {
            went_back = (went_back || next_ns != 0) && !taiyen::detail::fault("clock_that_went_back_believed");
            found = true;
            last = end;
        } else if (next_ns == 0) {
            low = last;
            next_ns = ns;
        }
    };
    size_t base = 0;
    for (size_t i = 0; i <= all_.segments.size(); i++) {
        const object *segment = i < all_.segments.size() ? &all_.segments[i] : nullptr;
        // For a base that no segment leads to, its own time is the only one of its transactions.
        for (; base < all_.bases.size(); base++) {
            const object_header &h = all_.bases[base].header;
            if (segment && h.from.lsn > segment->header.from.lsn)
                break;
            const bool led_to = i > 0 && all_.segments[i - 1].header.to.lsn >= h.from.lsn;
            if (!led_to && (h.first_ns <= time || !segment))
                see(h.from.lsn, h.first_ns);
        }
        if (!segment)
            break;
        while (base < all_.bases.size() && all_.bases[base].header.from.lsn <= segment->header.to.lsn)
            base++; // led to
        if (segment->header.last_ns <= time || segment->header.first_ns > time) {
            see(segment->header.to.lsn,
                segment->header.first_ns > time ? segment->header.first_ns : segment->header.last_ns);
            continue;
        }
        segment_reader reader(from_, segment->name);
        segment_frame frame;
        ty_status status = reader.open();
        for (bool more = true; !status && more;)
            if (!(status = reader.next(&frame, false, &more)) && more)
                see(frame.header.first + frame.header.records - 1, frame.header.time_ns);
        if (status && !is_damage(status))
            return status;
    }
    if (went_back)
        return refuse_time(low, last);
    if (next_ns > now)
        return refuse_time(last, all_.segments.empty()
                                     ? all_.bases.back().header.to.lsn
                                     : std::max(all_.segments.back().header.to.lsn, all_.bases.back().header.to.lsn));
    wanted_ = last;
    return found ? TY_OK : nothing_there();
}

ty_status restoring::plan_from(const object &base) {
    base_ = &base;
    first_ = all_.first_after(base);
    total_ = base.size_bytes;
    done_ = 0;
    uint64_t last = base.header.from.lsn;
    for (size_t i = first_; i < all_.segments.size() && (i == first_ || all_.follows(i)); i++) {
        if (last >= wanted_)
            break;
        total_ += all_.segments[i].size_bytes;
        last = all_.segments[i].header.to.lsn;
    }
    if (wanted_ == newest || wanted_ <= last)
        return TY_OK;
    for (const bad_object &bad : all_.bad) {
        uint64_t first = 0, end = 0;
        if (segment_range(bad.name, &first, &end) && first == last + 1)
            return fail(
                TY_E_DAMAGED, "restore a heap to transaction " + std::to_string(wanted_) + ": " + bad.problem, path_,
                "get the object from another copy; up to transaction " + std::to_string(last) + " it can be restored");
    }
    return nothing_there();
}

// SP5: the newest base before what is asked for, and all records from there on.
ty_status restoring::plan() {
    while (bases_ > 0)
        if (const object &base = all_.bases[bases_ - 1]; base.header.from.lsn <= wanted_)
            return plan_from(base);
        else
            bases_--;
    for (const bad_object &bad : all_.bad)
        if (uint64_t first, last; !segment_range(bad.name, &first, &last))
            return fail(TY_E_DAMAGED, "restore a heap: " + bad.problem, path_, "get the object from another copy");
    return nothing_there();
}

// In place of a damaged base, an older one does as well: the records continue from there.
ty_status restoring::unpack_some() {
    for (;;) {
        const ty_status status = unpack();
        if (!is_damage(status) || bases_ <= 1)
            return status;
        common::kept_failure first;
        first.keep(status);
        bases_--;
        if (ty_status cleared = clear_remains())
            return cleared;
        if (plan())
            return first.restore();
    }
}

ty_status restoring::check_names() const {
    const char *journal = options_.open ? options_.open->journal_path : nullptr;
    const char *log = options_.open ? options_.open->log_path : nullptr;
    for (const std::string &name :
         {path_, journal ? std::string(journal) : path_ + "-journal", log ? std::string(log) : path_ + "-log"})
        if (ty_status status = check_absent(name))
            return status;
    return TY_OK;
}

ty_status restoring::clear_remains() const {
    for (const char *part : {"", "-journal", "-log", "-creating", "-journal-creating", "-log-creating"})
        if (ty_status status = remove_file(passing_ + part))
            return status;
    return TY_OK;
}

ty_open_options restoring::open_options() const {
    ty_open_options open = TY_OPEN_OPTIONS_INIT;
    if (options_.open)
        open = *options_.open;
    open.struct_size = sizeof open;
    open.journal_path = open.log_path = nullptr;
    open.log = nullptr;
    open.storage = nullptr;
    open.track_stores = open.check_stores = open.concurrent = false;
    open.log_streams = 0;
    open.log_bytes = log_bytes;
    return open;
}

ty_status restoring::read_base(void *bytes, size_t size, size_t *got, void *context) {
    auto &self = *static_cast<restoring *>(context);
    if (ty_status status = self.reading_->some(bytes, size, got))
        return status;
    return self.add_progress(*got) ? TY_OK : fail(TY_E_BUSY, "restore a heap: it was stopped", self.path_, "");
}

ty_status restoring::unpack() {
    object_reader reader(from_, base_->name);
    object_header header{};
    if (ty_status status = reader.header(&header))
        return status;
    reading_ = &reader;
    const ty_open_options open = open_options();
    ty_unpack_options options = TY_UNPACK_OPTIONS_INIT;
    options.kind = TY_TRANSACTIONAL;
    options.path = passing_.c_str();
    options.open = &open;
    made_ = true;
    ty_status status = ty_unpack(read_base, this, &options, &heap_, nullptr, nullptr);
    if (status == TY_E_DAMAGED || status == TY_E_FORMAT) {
        ty_error why{};
        ty_error_detail(&why);
        return fail(status, why.operation, base_->name,
                    "get the object from another copy, or restore from another base");
    }
    if (!status && !reader.at_end(&status) && !status)
        status =
            fail(TY_E_DAMAGED, "read a base: something was appended to it", base_->name, "get it from another copy");
    return status;
}

// Where no segment follows, the base's own position is used.
ty_status restoring::begin() {
    const ty_feed_position &at = first_ == SIZE_MAX ? base_->header.from : all_.segments[first_].header.from;
    ty_replica_options options = TY_REPLICA_OPTIONS_INIT;
    options.copied_lsn = base_->header.from.lsn;
    options.base = reinterpret_cast<const void *>(base_->header.heap_base);
    options.unlogged = true;
    return ty_replica_begin(heap_, &at, &options, &replica_);
}

// How many of the frame's records are asked for.
size_t restoring::wanted_of(const segment_frame &frame) const {
    const uint64_t first = frame.header.first, count = frame.records.size();
    const uint64_t last = wanted_ + taiyen::detail::fault("restored_one_too_many");
    const uint64_t end = wanted_ == newest ? first + count : std::min(first + count, last + 1); // one after the last
    return end > first ? static_cast<size_t>(end - first) : 0;
}

ty_status restoring::take_segment(const object &segment, bool *done, bool *unreadable) {
    segment_reader reader(from_, segment.name);
    segment_frame frame;
    ty_status status = reader.open();
    for (bool more = true; !*done;) {
        if (status || (status = reader.next(&frame, false, &more))) {
            *unreadable = is_damage(status);
            return status;
        }
        if (!more)
            return TY_OK;
        const size_t wanted = wanted_of(frame);
        if ((status = ty_replica_apply(replica_, frame.records.data(), wanted))) {
            ty_error why{};
            ty_error_detail(&why);
            return fail(status, why.operation, segment.name, why.remedy);
        }
        for (size_t i = 0; i < wanted; i++)
            if (frame.records[i].lsn > base_->header.from.lsn) {
                report_.records += 1;
                report_.record_bytes += frame.records[i].size_bytes;
                report_.time_ns = frame.header.time_ns;
            }
        *done = wanted < frame.records.size();
        if (!add_progress(frame.header.stored_bytes))
            return fail(TY_E_BUSY, "restore a heap: it was stopped", path_, "");
    }
    return TY_OK;
}

ty_status restoring::receive() {
    if (ty_status status = begin())
        return status;
    bool done = false, unreadable = false;
    for (size_t i = first_; !done && i < all_.segments.size() && (i == first_ || all_.follows(i)); i++)
        if (ty_status status = take_segment(all_.segments[i], &done, &unreadable)) {
            if (!unreadable)
                return status;
            unreadable_ = ty_error_text();
            break;
        }
    if (ty_status status = ty_replica_make_durable(replica_, &report_.position))
        return status;
    ty_replica_end(replica_);
    replica_ = nullptr;
    report_.lsn = base_->header.from.lsn + report_.records;
    if (wanted_ != newest && report_.lsn != wanted_)
        return fail(TY_E_DAMAGED, "restore a heap to transaction " + std::to_string(wanted_) + ": " + unreadable_,
                    path_,
                    "get the object from another copy; up to transaction " + std::to_string(report_.lsn) +
                        " it can be restored");
    return TY_OK;
}

// SP9: a restore to the newest transaction, or to a time, reports when objects that follow cannot be used.
ty_status restoring::report_reach() {
    std::string why = unreadable_;
    uint64_t after = report_.lsn;
    for (const bad_object &bad : all_.bad) {
        uint64_t first = 0, last = 0;
        if (!segment_range(bad.name, &first, &last) || all_.is_replaced(bad) || last <= report_.lsn ||
            (options_.to_ns && first > report_.lsn + 1))
            continue;
        after = std::max(after, last);
        if (why.empty())
            why = bad.problem;
    }
    if (wanted_ == newest && !all_.segments.empty() && all_.segments.back().header.to.lsn > report_.lsn) {
        after = std::max(after, all_.segments.back().header.to.lsn);
        if (why.empty())
            why = "no segment goes on there, and no base is after the gap";
    }
    if (options_.to_lsn || (why.empty() && after == report_.lsn))
        return TY_OK;
    if (report_.lsn && taiyen::detail::fault("incomplete_restore_not_reported"))
        return TY_OK;
    report_.incomplete = true;
    return fail(TY_E_DAMAGED,
                "restore all of a heap: it is as it was after transaction " + std::to_string(report_.lsn) +
                    ", and what follows" +
                    (after > report_.lsn ? ", up to transaction " + std::to_string(after) + "," : "") +
                    " cannot be restored: " + why,
                path_, "get the object from another copy and restore again, or go on with this heap");
}

// A heap that was closed properly needs only its image: the first open makes journal and log.
ty_status restoring::finish() {
    if (!options_.receives)
        if (ty_status status = ty_promote(heap_))
            return status;
    if (ty_status status = ty_close(heap_))
        return status;
    heap_ = nullptr;
    for (const char *part : {"-journal", "-log"})
        if (ty_status status = remove_file(passing_ + part))
            return status;
    if (ty_status status = check_names())
        return status;
    if (ty_status status = flush_folder_of(path_))
        return status;
    if (ty_status status = give_name(passing_, path_))
        return status;
    made_ = false;
    return flush_folder_of(path_);
}

ty_status restoring::run(ty_restore_report *report) {
    if (ty_status status = check_names())
        return status;
    if (ty_status status = lock_.take(passing_ + "-lock"))
        return status;
    if (ty_status status = clear_remains())
        return status;
    if (ty_status status = all_.read(from_, reading::as_is, nullptr, nullptr))
        return status;
    bases_ = all_.bases.size();
    if (options_.to_lsn)
        wanted_ = options_.to_lsn;
    if (options_.to_ns && bases_)
        if (ty_status status = find_time())
            return status;
    if (ty_status status = plan())
        return status;
    const uint64_t begun = steady_ns();
    if (ty_status status = unpack_some())
        return status;
    report_.base_lsn = base_->header.from.lsn;
    report_.time_ns = base_->header.first_ns;
    const uint64_t unpacked = steady_ns();
    if (ty_status status = receive())
        return status;
    if (ty_status status = finish())
        return status;
    report_.base_ns = unpacked - begun;
    report_.records_ns = steady_ns() - unpacked;
    const ty_status status = report_reach();
    *report = report_;
    return status;
}

} // namespace

ty_status restore_heap(const ty_destination &from, const char *path, const ty_restore_options &options,
                       ty_restore_report *report) {
    return restoring(from, path, options).run(report);
}

} // namespace taiyen::ship
