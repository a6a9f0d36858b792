#include "base_log.hpp"

#include "fencing.hpp"

#include <algorithm>
#include <cstdlib>
#include <taiyen/detail/fault.hpp>
#include <thread>

namespace taiyen::standby {

namespace {

constexpr const char *base_call = "publish a base";
constexpr const char *base_prefix = "base-"; // as in a shipper's objects (docs/reference.md)
constexpr size_t piece_bytes = size_t{256} << 10;
constexpr uint64_t window = 32;
constexpr uint32_t step_ms = 20;
constexpr int tries = 60; // of a second each, for the records to reach the base

ty_status refuse_busy(const char *why) {
    return fail(TY_E_BUSY, std::string("publish a base: ") + why, "", "try again");
}

// A destination that sends a shipper's base to the engine, and drops the segments: the publisher sends the records.
class base_writer {
public:
    base_writer(const ty_engine &engine, const records_end &records) : engine_(engine), records_(records) {
        table_ = {sizeof table_, this, put_begin, put_bytes, put_end, get, list, remove};
    }
    base_writer(const base_writer &) = delete;
    base_writer &operator=(const base_writer &) = delete;
    const ty_destination &destination() const { return table_; }
    uint64_t lsn() const { return lsn_; }

private:
    ty_status begin(const char *name);
    ty_status bytes(const void *bytes, size_t size);
    ty_status end();
    ty_status put(message_kind kind, const void *payload, size_t size);
    ty_status answers(uint64_t wanted);
    ty_status wait_for_records();
    ty_status trim();

    static ty_status put_begin(void *context, const char *name, void **object) {
        auto &self = *static_cast<base_writer *>(context);
        const bool base = strncmp(name, base_prefix, strlen(base_prefix)) == 0;
        *object = base ? context : nullptr;
        return base ? common::at_boundary("publish a base", [&] { return self.begin(name); }) : TY_OK;
    }
    static ty_status put_bytes(void *context, void *object, const void *bytes, size_t size) {
        auto &self = *static_cast<base_writer *>(context);
        return object ? common::at_boundary("publish a base", [&] { return self.bytes(bytes, size); }) : TY_OK;
    }
    static ty_status put_end(void *context, void *object, bool keep) {
        auto &self = *static_cast<base_writer *>(context);
        return object && keep ? common::at_boundary("publish a base", [&] { return self.end(); }) : TY_OK;
    }
    static ty_status get(void *, const char *name, uint64_t, void *, size_t, size_t *) {
        return fail(TY_E_NOT_FOUND, "read an object of a base that is being put", name, "");
    }
    static ty_status list(void *, ty_object_callback *, void *) { return TY_OK; }
    static ty_status remove(void *, const char *) { return TY_OK; }

    const ty_engine &engine_;
    const records_end &records_; // where they ended before the base was begun
    ty_destination table_{};
    message_header last_{};
    uint64_t begin_at_ = 0;
    owned_message complete_; // the base before it, if any
    bool has_complete_ = false;
    std::vector<uint8_t> piece_;
    uint64_t offset_ = 0;
    uint64_t sent_ = 0, answered_ = 0;
    uint64_t answered_at_ = 0; // the engine's position of the last answered one
    uint64_t lsn_ = 0;
};

ty_status base_writer::answers(uint64_t wanted) {
    while (answered_ < wanted) {
        const uint64_t known = answered_;
        if (ty_status status =
                engine_.acknowledged(engine_.context, TY_ENGINE_BASES, known, answer_ms, &answered_, &answered_at_))
            return status == TY_E_MISMATCH ? refuse_busy("another process puts one") : status;
        if (answered_ == known)
            return fail(TY_E_IO, "publish a base: the engine does not acknowledge", "",
                        "see whether the server is well");
    }
    return TY_OK;
}

ty_status base_writer::begin(const char *name) {
    owned_message newest;
    bool found = false;
    if (ty_status status = newest_of_bases(engine_, &newest, &found))
        return status;
    if (ty_status status = newest_base(engine_, lookup::anywhere, &complete_, &has_complete_))
        return status;
    lsn_ = strtoull(name + strlen(base_prefix), nullptr, 16);
    const message_header &of = records_.newest.read.header;
    message_header header = header_after(newest.read.header, message_kind::base_begin);
    header.term = of.term;
    header.replication = of.replication;
    header.begun_term = of.begun_term;
    header.begun_lsn = of.begun_lsn;
    memcpy(header.owner, of.owner, sizeof header.owner);
    header.position = of.position;
    header.timeline = of.timeline;
    header.previous = 0;
    header.known_at = newest.read.at;
    header.records_at = records_.newest.read.at;
    header.record_number = of.number;
    header.record_checksum = of.checksum;
    header.record_session = of.session;
    const std::vector<uint8_t> message = message_of(header, name, strlen(name));
    if (ty_status status = append_one(engine_, TY_ENGINE_BASES, of.term, newest.read.at, message, &begin_at_))
        return status == TY_E_MISMATCH ? refuse_busy("another process puts one") : status;
    sent_ = answered_ = 1;
    answered_at_ = begin_at_;
    last_ = header;
    return TY_OK;
}

ty_status base_writer::put(message_kind kind, const void *payload, size_t size) {
    message_header header = header_after(last_, kind);
    header.begin = begin_at_;
    header.known_at = kind == message_kind::base_end ? answered_at_ : 0;
    header.offset = offset_;
    if (sent_ - answered_ >= window)
        if (ty_status status = answers(answered_ + 1))
            return status;
    const std::vector<uint8_t> message = message_of(header, payload, size);
    if (ty_status status = engine_.append(engine_.context, TY_ENGINE_BASES, message.data(), message.size()))
        return status == TY_E_MISMATCH ? refuse_busy("another process puts one") : status;
    sent_ += 1;
    offset_ += size;
    last_ = header;
    return TY_OK;
}

ty_status base_writer::bytes(const void *bytes, size_t size) {
    const size_t most = std::min(engine_.message_bytes_max - sizeof(message_header), piece_bytes);
    const auto *at = static_cast<const uint8_t *>(bytes);
    while (size) {
        const size_t some = std::min(size, most - piece_.size());
        piece_.insert(piece_.end(), at, at + some);
        at += some;
        size -= some;
        if (piece_.size() < most)
            break;
        if (ty_status status = put(message_kind::base_piece, piece_.data(), piece_.size()))
            return status;
        piece_.clear();
    }
    return TY_OK;
}

// ST6: the base counts once records reach to it. The copy may hold records that are not durable in the heap yet; and
// the timeline must not have been interrupted.
ty_status base_writer::wait_for_records() {
    const message_header &from = records_.newest.read.header;
    records_end at;
    owned_message next;
    bool found = false;
    for (int left = tries; left > 0;) {
        if (ty_status status = newest_position(engine_, &at, &found))
            return status;
        const message_header &now = at.newest.read.header;
        const bool is_older = now.term < from.term; // as servers that choose a leader may have for a moment
        if (!is_older && !same_owner(now.owner, from.owner))
            return fail(TY_E_MISMATCH, "publish a base: another heap is the primary now", "",
                        "see what the publisher of this one reports");
        if (!is_older && (now.timeline != from.timeline || begins_term(now)))
            return refuse_busy("the publisher fell behind meanwhile");
        if (!is_older && now.position.lsn >= lsn_)
            return TY_OK;
        if (ty_status status = first_after(engine_, TY_ENGINE_RECORDS, at.end_at, 1000, &next, &found))
            return status;
        left -= !found;
    }
    return refuse_busy("the records did not come so far: see whether a publisher works");
}

ty_status base_writer::trim() {
    if (!has_complete_)
        return TY_OK;
    if (ty_status status = engine_.trim(engine_.context, TY_ENGINE_BASES, complete_.read.at))
        return status;
    const message_header &base = complete_.read.header;
    bool same = false;
    if (ty_status status = goes_on(engine_, base, &same))
        return status;
    const bool trims = same || (taiyen::detail::fault("base_trims_records_of_others") && base.records_at);
    return trims ? engine_.trim(engine_.context, TY_ENGINE_RECORDS, base.records_at) : TY_OK;
}

ty_status base_writer::end() {
    if (!piece_.empty())
        if (ty_status status = put(message_kind::base_piece, piece_.data(), piece_.size()))
            return status;
    if (ty_status status = answers(sent_))
        return status;
    if (ty_status status = wait_for_records())
        return status;
    if (ty_status status = put(message_kind::base_end, nullptr, 0))
        return status;
    if (ty_status status = answers(sent_))
        return status;
    return trim();
}

ty_status refuse_standby(const char *heap_path) {
    return fail(TY_E_MISMATCH, "publish a base: this heap is a standby", heap_path,
                "put one on the primary's machine, or promote this one first (taiyen promote)");
}

ty_status begun_records(const char *heap_path, const ty_engine &engine, const ty_open_options *open, records_end *at) {
    ty_feed_position base{};
    bool receives = false;
    if (ty_status status = heap_base(heap_path, open, &base, &receives))
        return status;
    // ST26: it has no base of its own, and is superseded by nobody.
    if (receives && !taiyen::detail::fault("base_of_a_heap_that_receives"))
        return refuse_standby(heap_path);
    bool found = false;
    log_comparison is;
    fencing_state fencing(heap_path, engine);
    if (ty_status opened = fencing.open(open))
        return opened;
    if (ty_status refused = fencing.read(base_call))
        return refused;
    if (ty_status read = newest_position(engine, at, &found))
        return read;
    const message_header &newest = at->newest.read.header;
    if (ty_status compared = compare(engine, fencing.known(), base.heap_identity, *at, found, &is))
        return compared;
    if (ty_status refused = fencing.refuse(base_call, is, newest)) // ST21: the engine must hold what the heap knows was
                                                                   // acknowledged
        return refused;
    if (found && !same_owner(newest.owner, base.heap_identity))
        return refuse_standby(heap_path);
    if (!found || begins_term(newest))
        return fail(TY_E_NOT_FOUND, "publish a base: nobody has published the heap yet", heap_path,
                    "start a publisher first (ty_publisher_open, taiyen publish)");
    return TY_OK;
}

// Servers that choose a leader may have an older log, or none, for a moment.
ty_status begun_records_in_time(const char *heap_path, const ty_engine &engine, const ty_open_options *open,
                                records_end *at) {
    const uint64_t since = now_ms();
    ty_status status = begun_records(heap_path, engine, open, at);
    while (status == TY_E_DAMAGED && now_ms() - since < answer_ms) {
        std::this_thread::sleep_for(std::chrono::milliseconds(step_ms));
        status = begun_records(heap_path, engine, open, at);
    }
    return status;
}

bool is_within_record(const records_end &at) {
    const message_header &newest = at.newest.read.header;
    return newest.kind == uint32_t(message_kind::part) &&
           newest.offset + (at.newest.bytes.size() - sizeof newest) < newest.record_bytes;
}

// ST6: a standby begins after a whole record; a base is not begun amid the messages of a long one.
ty_status begun_between_records(const char *heap_path, const ty_engine &engine, const ty_open_options *open,
                                records_end *at) {
    constexpr int looks_max = 1000, silences_max = 20; // of a second
    ty_status status = begun_records_in_time(heap_path, engine, open, at);
    for (int looks = 0, silences = 0; !status && is_within_record(*at); ++looks) {
        if (taiyen::detail::fault("base_begins_within_a_record"))
            return TY_OK;
        if (looks == looks_max || silences == silences_max)
            return refuse_busy("a long record is not sent to its end: see whether a publisher works");
        owned_message next;
        bool found = false;
        status = first_after(engine, TY_ENGINE_RECORDS, at->end_at, 1000, &next, &found);
        silences += !found;
        if (!status)
            status = begun_records_in_time(heap_path, engine, open, at);
    }
    return status;
}

} // namespace

ty_status publish_base(const char *heap_path, const ty_engine &engine, const ty_open_options *open, uint64_t *lsn) {
    records_end at;
    if (ty_status status = begun_between_records(heap_path, engine, open, &at))
        return status;
    base_writer writer(engine, at);
    ty_ship_options options = TY_SHIP_OPTIONS_INIT;
    options.open = open;
    options.merged = 1; // never merge
    ty_shipper *shipper = nullptr;
    if (ty_status status = ty_ship_open(heap_path, &writer.destination(), &options, &shipper))
        return status;
    ty_ship_report report{};
    report.struct_size = sizeof report;
    ty_status status = TY_OK;
    common::kept_failure failed;
    while (!status && report.bases == 0)
        status = ty_ship_step(shipper, step_ms, nullptr, &report);
    failed.keep(status);
    ty_ship_close(shipper);
    if (lsn)
        *lsn = writer.lsn();
    return failed.restore();
}

// ---- For reading

base_source::base_source(const ty_engine &engine, const owned_message &begin)
    : engine_(engine), begin_(begin.read.header), begin_at_(begin.read.at),
      name_(reinterpret_cast<const char *>(begin.read.payload), begin_.payload_bytes) {
    table_.struct_size = sizeof table_;
    table_.context = this;
    table_.put_begin = [](void *, const char *name, void **) {
        return fail(TY_E_PERMISSION, "put an object to a base", name, "");
    };
    table_.put_bytes = [](void *, void *, const void *, size_t) { return TY_E_PERMISSION; };
    table_.put_end = [](void *, void *, bool) { return TY_E_PERMISSION; };
    table_.remove = [](void *, const char *) { return TY_E_PERMISSION; };
    table_.list = [](void *context, ty_object_callback *callback, void *with) {
        callback(static_cast<base_source *>(context)->name_.c_str(), 0, with);
        return TY_OK;
    };
    table_.get = [](void *context, const char *, uint64_t offset, void *buffer, size_t size, size_t *got) {
        return common::at_boundary("read a base",
                                   [&] { return static_cast<base_source *>(context)->get(offset, buffer, size, got); });
    };
    rewind();
}

void base_source::rewind() {
    piece_.read.header = begin_;
    piece_.read.at = begin_at_;
    offset_ = 0;
    size_ = 0;
    ended_ = false;
}

ty_status base_source::read_piece(uint64_t after) {
    const message_header &header = piece_.read.header;
    do { // pieces of other bases belong to one that was interrupted
        bool found = false;
        if (ty_status status = first_after(engine_, TY_ENGINE_BASES, after, answer_ms, &piece_, &found))
            return status;
        if (!found)
            return fail(TY_E_IO, "read a base from the engine: what follows did not come", "", "try again");
        after = piece_.read.at;
    } while (header.begin != begin_at_);
    if (header.offset != offset_ + size_)
        return damaged(piece_.read.at, "it is not the next one of its base");
    if (header.kind != uint32_t(message_kind::base_end) && header.kind != uint32_t(message_kind::base_piece))
        return damaged(piece_.read.at, "it is no piece of a base");
    return TY_OK;
}

ty_status base_source::next_piece() {
    const uint64_t after = piece_.read.at;
    int readings = 0;
    if (ty_status status = read_again(&readings, [&] { return read_piece(after); }))
        return status;
    offset_ += size_;
    size_ = piece_.read.header.payload_bytes;
    ended_ = piece_.read.header.kind == uint32_t(message_kind::base_end);
    return TY_OK;
}

ty_status base_source::get(uint64_t offset, void *buffer, size_t size, size_t *got) {
    *got = 0;
    if (offset < offset_)
        rewind();
    while (*got < size && !ended_) {
        const uint64_t at = offset + *got;
        if (at < offset_ + size_) {
            const size_t from = static_cast<size_t>(at - offset_), some = std::min(size - *got, size_ - from);
            memcpy(static_cast<uint8_t *>(buffer) + *got, piece_.read.payload + from, some);
            *got += some;
        } else if (ty_status status = next_piece()) {
            rewind(); // how far it was read is unknown
            return status;
        }
    }
    return TY_OK;
}

} // namespace taiyen::standby
