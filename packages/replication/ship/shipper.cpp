// A shipper: reads a change feed, puts its records as segments, and runs bases and upkeep.
#include "shipper.hpp"

#include <cstring>
#include <taiyen/detail/fault.hpp>

using namespace taiyen::ship;

namespace {

constexpr uint64_t ns_per_ms = 1'000'000;
constexpr uint64_t ns_per_s = 1'000'000'000;

uint64_t or_else(uint64_t given, uint64_t standard) {
    return given ? given : standard;
}

} // namespace

ty_shipper::ty_shipper(const char *heap_path, const ty_destination &to, const ty_ship_options &options)
    : path_(heap_path), to_(to), options_(options) {
    if (options.open)
        open_ = *options.open;
    options_.segment_bytes = or_else(options.segment_bytes, uint64_t{16} << 20);
    options_.base_bytes = or_else(options.base_bytes, uint64_t{1} << 30);
    options_.base_age_ms = or_else(options.base_age_ms, uint64_t{24} * 3600 * 1000);
    upkeep_.merged = options.merged ? options.merged : 8;
    upkeep_.merged_bytes = or_else(options.merged_bytes, uint64_t{256} << 20);
    upkeep_.keep_ns = options.keep_ms * ns_per_ms;
    upkeep_.bases_min = options.bases_min ? options.bases_min : 2;
}

ty_shipper::~ty_shipper() {
    ty_feed_close(feed_);
}

ty_status ty_shipper::begin_timeline(const ty_feed_position &at) {
    const object *last = all_.last();
    if (last && memcmp(last->header.to.heap_identity, at.heap_identity, sizeof at.heap_identity))
        return fail(TY_E_MISMATCH, "ship a heap: the destination has objects of another one", last->name,
                    "ship to another destination");
    if (last && at.lsn < last->header.to.lsn)
        return fail(TY_E_MISMATCH,
                    "ship a heap: it is at transaction " + std::to_string(at.lsn) + ", and the destination has " +
                        std::to_string(last->header.to.lsn) + ": of another history, or the heap is an older copy",
                    last->name, "ship to another destination, or put the heap's newest files back");
    position_ = at;
    timeline_.timeline_lsn = at.lsn;
    timeline_.timeline_hash = at.hash;
    timeline_.timeline_after = last ? last->header.to.lsn + 1 : 0; // SP7: so that a lost end of the timeline before is
                                                                   // noticed
    note_base();
    has_base_ = false;
    base_.reset(); // it belongs to the timeline before
    return TY_OK;
}

ty_status ty_shipper::open() {
    ty_feed_options options = TY_FEED_OPTIONS_INIT;
    options.open = &open_;
    if (ty_status status = all_.read(to_, reading::whole, nullptr, nullptr))
        return status;
    if (ty_status status = remove_spare(to_, all_))
        return status;
    if (ty_status status = ty_feed_open(path_.c_str(), &options, &feed_))
        return status;
    ty_feed_position newest{};
    if (ty_status status = ty_feed_base(feed_, &newest, nullptr))
        return status;
    if (all_.empty())
        return begin_timeline(newest);
    const object_header &last = all_.last()->header;
    if (memcmp(last.to.heap_identity, newest.heap_identity, sizeof newest.heap_identity))
        return fail(TY_E_MISMATCH, "ship a heap: the destination has objects of another one", name_of(last),
                    "ship to another destination");
    position_ = last.to;
    timeline_ = last;
    note_base();
    for (const object &base : all_.bases)
        has_base_ = has_base_ || (base.header.from.log_identity == last.to.log_identity &&
                                  base.header.from.lsn >= last.timeline_lsn);
    return TY_OK;
}

// SP1: the position advances only when the records up to it are in the destination.
ty_status ty_shipper::put(const ty_feed_position &end) {
    object_header header{};
    if (ty_status status = builder_.put(to_, end, timeline_, &header))
        return status;
    report_.records += header.records;
    report_.record_bytes += header.raw_bytes;
    report_.segments += 1;
    all_.add_segment({name_of(header), sizeof header + header.stored_bytes, header});
    position_ = end;
    builder_.begin(position_);
    return remove_spare(to_, all_); // damaged segments with the same records
}

ty_status ty_shipper::take(const ty_feed_record &record) {
    if (ty_status status = ty_feed_check(&walked_, &record))
        return status;
    if (ty_status status = builder_.add(record, time_ns_))
        return status;
    return builder_.raw_bytes() >= options_.segment_bytes ? put(walked_) : TY_OK;
}

bool ty_shipper::take(const ty_feed_record *record, void *context) {
    auto &self = *static_cast<ty_shipper *>(context);
    try {
        if (ty_status status = self.take(*record))
            self.taking_.keep(status);
    } catch (const std::exception &) {
        self.taking_.keep(fail(TY_E_MEMORY, "ship a transaction", self.path_, "free memory of the process"));
    }
    return self.taking_.status == TY_OK;
}

// Reads all that there is, in as many segments as that takes: to end a read early costs as much as to continue.
ty_status ty_shipper::read(bool *more) {
    ty_feed_position end = position_, base{};
    walked_ = position_;
    builder_.begin(position_);
    taking_ = {};
    const uint64_t before_ns = time_ns_ ? time_ns_ : all_.segments.empty() ? 0 : all_.segments.back().header.last_ns;
    time_ns_ = unix_ns();
    report_.clock_back += time_ns_ + ns_per_s < before_ns;
    ty_status status = ty_feed_read(feed_, &end, take, this, &base);
    if (status == TY_E_NOT_FOUND && base.streams) {
        report_.gaps += 1;
        report_.new_logs += base.log_identity != position_.log_identity;
        *more = true;
        return begin_timeline(base);
    }
    if (status || (status = taking_.restore()))
        return status;
    if (!builder_.empty() && (status = put(end)))
        return status;
    position_ = end;
    return TY_OK;
}

// SP7: segments and bases name the newest base, so that a missing one is noticed.
void ty_shipper::note_base() {
    const bool none = all_.bases.empty() || taiyen::detail::fault("missing_base_not_noticed");
    timeline_.after_base = none ? 0 : all_.bases.back().header.from.lsn + 1;
}

bool ty_shipper::base_is_due() const {
    if (!has_base_ || all_.bases.empty())
        return true;
    const object &newest = all_.bases.back();
    uint64_t bytes = 0;
    for (const object &segment : all_.segments)
        if (segment.header.to.lsn > newest.header.from.lsn)
            bytes += segment.header.stored_bytes;
    if (position_.lsn == newest.header.from.lsn)
        return false;
    const uint64_t now = unix_ns(), age = options_.base_age_ms * ns_per_ms;
    return bytes >= std::max(options_.base_bytes, newest.size_bytes) || now >= newest.header.first_ns + age ||
           newest.header.first_ns > now + age; // the clock was ahead when it was made
}

// As far as can be seen: the heap's log may have been recreated before the copy, which the next read finds.
bool ty_shipper::is_of_timeline(const object_header &base) const {
    return memcmp(base.from.heap_identity, position_.heap_identity, sizeof position_.heap_identity) == 0 &&
           base.from.log_identity == position_.log_identity && base.from.lsn >= timeline_.timeline_lsn;
}

// SP3: a base gets its name once segments reach to it.
ty_status ty_shipper::see_to_base() {
    if (!base_) {
        if (!base_is_due())
            return TY_OK;
        base_ = std::make_unique<base_maker>(to_, path_, open_, timeline_, floor_for_next(all_, upkeep_, unix_ns()),
                                             base_made_ns_);
        base_->start();
    }
    if (!base_->ended())
        return TY_OK;
    base_->wait();
    ty_status status = base_->outcome();
    const bool of_timeline = !status && is_of_timeline(base_->header());
    if (of_timeline && base_->header().from.lsn > position_.lsn &&
        !taiyen::detail::fault("base_named_before_its_segments"))
        return TY_OK; // the segments do not reach to it yet
    object made;
    if (of_timeline && !(status = base_->keep(&made))) {
        all_.add_base(std::move(made));
        base_made_ns_ = base_->made_ns();
        note_base();
        has_base_ = true;
        report_.bases += 1;
    }
    kept_failure failed;
    if (status)
        failed.keep(status);
    base_.reset();
    return status ? failed.restore() : TY_OK;
}

ty_status ty_shipper::upkeep(bool *more) {
    bool merged = false;
    if (ty_status status = merge_some(to_, all_, upkeep_, &merged))
        return status;
    report_.merges += merged;
    *more = *more || merged;
    return remove_old(to_, all_, &report_.removed);
}

ty_status ty_shipper::step(uint32_t timeout_ms, bool *more) {
    bool there = false;
    *more = false;
    if (ty_status status = see_to_base())
        return status;
    if (ty_status status = ty_feed_wait(feed_, &position_, timeout_ms, &there))
        return status;
    if (there)
        if (ty_status status = read(more))
            return status;
    if (ty_status status = see_to_base())
        return status;
    return upkeep(more);
}

ty_status ty_shipper::all() {
    for (;;) {
        bool more = false;
        const uint64_t before = position_.lsn;
        if (ty_status status = step(0, &more))
            return status;
        if (base_)
            base_->wait();
        if (!more && !base_ && has_base_ && before == position_.lsn)
            return TY_OK;
    }
}

void ty_shipper::fill_report(ty_ship_report *report) const {
    *report = report_;
    report->lsn = position_.lsn;
    report->base_under_way = base_ != nullptr;
}
