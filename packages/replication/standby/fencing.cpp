#include "fencing.hpp"

#include <algorithm>
#include <taiyen/detail/fault.hpp>

namespace taiyen::standby {

namespace {

constexpr uint32_t record_of_fencing = 0, superseded_record = 1; // numbers of a heap's side records
constexpr uint64_t durable_ms_most = 1000;
constexpr size_t name_most = 60; // of an engine, in an error text

std::string heap_name(const uint8_t *identity) {
    char text[2 * 4 + 1];
    for (size_t i = 0; i < 4; i++)
        snprintf(text + 2 * i, 3, "%02x", identity[i]);
    return std::string("heap ") + text;
}

std::string up_to(uint64_t term, uint64_t lsn) {
    return "term " + std::to_string(term) + " up to transaction " + std::to_string(lsn);
}

// *held: the message stands there. If it was trimmed, all that shows is that the log continues after it (*trimmed).
ty_status look_for(const ty_engine &engine, const fencing_record &record, const records_end &at, bool *held,
                   bool *trimmed) {
    const message &newest = at.newest.read;
    owned_message there;
    bool found = false;
    *held =
        newest.at == record.at && newest.header.number == record.number && newest.header.checksum == record.checksum;
    *trimmed = false;
    if (newest.at == record.at || at.end_at < record.at || record.at == 0)
        return TY_OK;
    if (ty_status status = first_after(engine, TY_ENGINE_RECORDS, record.at - 1, answer_ms, &there, &found))
        return is_wrong(status) ? TY_OK : status; // what cannot be read is not held
    if (!found)
        return fail(TY_E_IO, "read the engine's messages: they do not come", "", "try again");
    if (there.read.at > record.at && newest.header.number > record.number)
        if (ty_status status = is_trimmed(engine, record.at, trimmed))
            return is_wrong(status) ? TY_OK : status;
    *trimmed = *trimmed || (taiyen::detail::fault("lost_message_counts_as_trimmed") && there.read.at > record.at);
    *held = there.read.at == record.at && there.read.header.number == record.number &&
            there.read.header.checksum == record.checksum;
    return TY_OK;
}

log_relation relation_of(const fencing_record &record, const uint8_t *identity, const message_header &newest, bool held,
                         bool trimmed) {
    const bool is_mine = same_owner(newest.owner, identity);
    if (record.replication == 0)
        return is_mine ? log_relation::current : log_relation::foreign;
    if (newest.replication != record.replication)
        return log_relation::foreign;
    if (newest.term < record.term)
        return log_relation::behind;
    if (newest.term > record.term && !is_mine)
        return log_relation::superseded;
    if (newest.term == record.term && !same_owner(newest.owner, record.owner))
        return log_relation::split;
    const bool goes = held || trimmed || (taiyen::detail::fault("older_server_written_to") && newest.number);
    return goes ? log_relation::current : log_relation::behind;
}

} // namespace

ty_status heap_base(const char *heap_path, const ty_open_options *open, ty_feed_position *base, bool *receives) {
    ty_feed_options options = TY_FEED_OPTIONS_INIT;
    ty_feed *feed = nullptr;
    options.open = open;
    if (ty_status status = ty_feed_open(heap_path, &options, &feed))
        return status;
    const ty_status status = ty_feed_base(feed, base, receives);
    ty_feed_close(feed);
    return status;
}

fencing_record fencing_record_of(const message_header &header, uint64_t at) {
    fencing_record record{};
    record.replication = header.replication;
    record.term = header.term;
    memcpy(record.owner, header.owner, sizeof record.owner);
    record.number = header.number;
    record.checksum = header.checksum;
    record.at = at;
    const bool counts = header.begin || taiyen::detail::fault("new_term_has_what_has_no_base"); // ST27
    record.lsn = counts ? header.position.lsn : 0;
    return record;
}

// ST21: what the heap remembers decides, not what the engine says alone.
ty_status compare(const ty_engine &engine, const fencing_record &record, const uint8_t *identity, const records_end &at,
                  bool found, log_comparison *is) {
    bool trimmed = false;
    *is = {};
    if (!found) {
        is->relation = record.replication ? log_relation::behind : log_relation::both_empty;
        return TY_OK;
    }
    if (record.replication)
        if (ty_status status = look_for(engine, record, at, &is->held, &trimmed))
            return status;
    is->relation = relation_of(record, identity, at.newest.read.header, is->held, trimmed);
    // A primary that began a later term without what was before it (begun_term) may lack what the log still holds.
    is->held = is->held && record.term >= at.newest.read.header.begun_term;
    return TY_OK;
}

ty_status fencing_state::open(const ty_open_options *open) {
    return ty_side_records_open(path_.c_str(), open, &side_records_);
}

ty_status fencing_state::read_side_records() {
    size_t size = 0, other_size = 0;
    fencing_record record{};
    superseded_content superseded{};
    if (ty_status status = ty_side_records_read(side_records_, record_of_fencing, &record, sizeof record, &size))
        return status;
    if (ty_status status =
            ty_side_records_read(side_records_, superseded_record, &superseded, sizeof superseded, &other_size))
        return status;
    const bool known =
        (size == 0 || (size == sizeof record && record.magic == fencing_magic && record.version == fencing_version)) &&
        (other_size == 0 || (other_size == sizeof superseded && superseded.magic == fencing_magic &&
                             superseded.version == fencing_version));
    if (!known)
        return fail(TY_E_FORMAT, "read what a heap remembers of its publishing", path_,
                    "use a newer version of the library");
    known_ = record;
    superseded_ = superseded;
    return TY_OK;
}

// Until the heap has a higher term.
bool fencing_state::is_superseded() const {
    return superseded_.replication &&
           (superseded_.replication != known_.replication || superseded_.term >= known_.term);
}

// ST20: a superseded heap is refused by its own record.
ty_status fencing_state::read(const char *call) {
    const std::lock_guard<std::mutex> with(lock_);
    if (ty_status status = read_side_records())
        return status;
    return is_superseded() ? report_superseded(call) : TY_OK;
}

fencing_record fencing_state::known() {
    const std::lock_guard<std::mutex> with(lock_);
    return known_;
}

superseded_content fencing_state::superseded() {
    const std::lock_guard<std::mutex> with(lock_);
    return is_superseded() ? superseded_ : superseded_content{};
}

// ST22: remembered before it is reported, and never goes back.
ty_status fencing_state::keep(fencing_record now) {
    now.magic = fencing_magic;
    now.version = fencing_version;
    const std::lock_guard<std::mutex> with(lock_);
    ty_status status = begins(now) ? read_side_records() : TY_OK; // another process may have begun the term
    while (!status) {
        if (known_.replication && begins(now) && (known_.replication != now.replication || known_.term > now.term))
            return fail(TY_E_BUSY, "publish a heap: another process has begun a term with it", path_, "try again");
        if (!begins(now) && now.number <= known_.number) // another thread or process was first
            return TY_OK;
        if (now.replication == known_.replication && !taiyen::detail::fault("acknowledged_lsn_goes_back"))
            now.lsn = std::max(now.lsn, known_.lsn); // a timeline may begin before
        status = write_record(now);
        if (status != TY_E_BUSY) // I25: a side record is overwritten only by a writer that has read it; TY_E_BUSY:
                                 // another one has written since
            return status;
        status = read_side_records();
    }
    return status;
}

bool fencing_state::begins(const fencing_record &now) const {
    return now.replication != known_.replication || now.term != known_.term;
}

// Holds lock_.
ty_status fencing_state::write_record(const fencing_record &now) {
    const bool durable = begins(now) || now_ms() - durable_ms_ >= durable_ms_most;
    if (ty_status status = ty_side_records_write(side_records_, record_of_fencing, &now, sizeof now, durable))
        return status;
    if (durable)
        durable_ms_ = now_ms();
    known_ = now;
    return TY_OK;
}

// Holds lock_.
ty_status fencing_state::record_superseded(const log_comparison &found, const message_header &newest) {
    superseded_content one{};
    one.magic = fencing_magic;
    one.version = fencing_version;
    one.is_held = found.held;
    one.replication = newest.replication;
    one.term = newest.term;
    memcpy(one.by, newest.owner, sizeof one.by);
    one.lsn = known_.lsn;
    const bool forgets = taiyen::detail::fault("superseded_not_noted");
    const ty_status status =
        forgets ? TY_OK : ty_side_records_write(side_records_, superseded_record, &one, sizeof one, true);
    if (status == TY_E_BUSY) // another process has written it
        return read_side_records();
    if (status)
        return status;
    superseded_ = one;
    return TY_OK;
}

std::string fencing_state::engine_name() const {
    const std::string name = engine_.name && engine_.name[0] ? engine_.name : "the server";
    return name.size() > name_most ? name.substr(0, name_most) + "..." : name;
}

constexpr const char *take_back = "take its term back: taiyen promote --take-back (ty_publish_new_term)";

ty_status fencing_state::report_superseded(const char *call) const {
    const std::string last = std::to_string(superseded_.lsn);
    return fail(TY_E_MISMATCH,
                std::string(call) + ": superseded: " + heap_name(superseded_.by) + " is the primary since term " +
                    std::to_string(superseded_.term),
                path_,
                superseded_.is_held
                    ? "it stays refused; that one has all that was acknowledged here, up to transaction " + last +
                          ": once it is promoted, move this file away, and make a standby of it here (taiyen standby); "
                          "if it cannot be promoted, " +
                          take_back
                    : "it stays refused; the server did not show that its log has what was acknowledged here, up to "
                      "transaction " +
                          last +
                          ": keep this file until the new primary was compared with it; if that one cannot be "
                          "promoted, " +
                          take_back);
}

constexpr const char *go_on = "go on from that heap: taiyen promote (ty_publish_new_term)";

std::string fencing_state::keep_and_go_on() const {
    return path_ + " has " + up_to(known_.term, known_.lsn) + ": keep it. Put the store back, or " + go_on;
}

ty_status fencing_state::refuse_broken(const char *call, ty_status why) {
    const std::lock_guard<std::mutex> with(lock_);
    common::kept_failure failed;
    failed.keep(why);
    if (!known_.replication)
        return failed.restore();
    return fail(TY_E_DAMAGED, std::string(call) + ": " + failed.error.operation, engine_name(), keep_and_go_on());
}

ty_status fencing_state::refuse_superseded(const char *call, const log_comparison &found,
                                           const message_header &newest) {
    if (found.relation == log_relation::superseded)
        return refuse(call, found, newest);
    const std::lock_guard<std::mutex> with(lock_);
    return report_superseded(call);
}

ty_status fencing_state::refuse(const char *call, const log_comparison &found, const message_header &newest) {
    const std::lock_guard<std::mutex> with(lock_);
    const std::string before = std::string(call) + ": ", other = heap_name(newest.owner);
    switch (found.relation) {
    case log_relation::both_empty:
    case log_relation::current:
        return TY_OK;
    case log_relation::superseded:
        if (ty_status status = record_superseded(found, newest))
            return status;
        return report_superseded(call);
    case log_relation::behind:
        return fail(TY_E_DAMAGED,
                    before + "the server is behind this heap: it has " +
                        (newest.number ? up_to(newest.term, newest.position.lsn) : std::string("nothing")),
                    engine_name(), "it lost its store, or has an older one; " + keep_and_go_on());
    case log_relation::split:
        return fail(TY_E_DAMAGED,
                    before + "two heaps are the primary of term " + std::to_string(newest.term) + ": this one and " +
                        other,
                    engine_name(),
                    "it was copied or split, and each may have what the other lacks: keep both (this one is " + path_ +
                        "), choose one, and " + go_on);
    case log_relation::foreign:
        break;
    }
    if (known_.replication)
        return fail(TY_E_DAMAGED, before + "this is not the log that it was published to, but that of " + other,
                    engine_name(),
                    "keep " + path_ +
                        ", and give the server and the name that it was published to; or another name, and " + go_on);
    return fail(TY_E_MISMATCH, before + other + " is the primary since term " + std::to_string(newest.term), path_,
                "publish this one under another name; or make a standby of that one at another path (taiyen standby)");
}

} // namespace taiyen::standby
