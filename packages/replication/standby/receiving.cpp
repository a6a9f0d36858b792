// Standbys: docs/design/standby.md, "A standby".
#include "receiving.hpp"

#include <algorithm>
#include <taiyen/detail/fault.hpp>
#include <utility>

using namespace taiyen::common;
using namespace taiyen::standby;

namespace {

constexpr const char *standby_call = "be a standby";
constexpr uint32_t durable_ms_standard = 1000;
constexpr uint32_t found_at_once_ms = 1000; // if the message was trimmed and is the newest, nothing comes

ty_status refuse_position(uint64_t at) {
    return damaged(at, "what stands before it is not all there");
}

} // namespace

namespace taiyen::standby {

ty_status refuse_new_primary(const std::string &path, uint64_t term) {
    return fail(
        TY_E_MISMATCH, "go on as a standby: another heap is the primary since term " + std::to_string(term), path,
        "move this standby's files away, make a new one (ty_standby_make, taiyen standby), and keep these until "
        "that has what they have");
}

} // namespace taiyen::standby

ty_standby::ty_standby(ty_heap *heap, const char *heap_path, const ty_engine &engine, const ty_standby_options &options)
    : heap_(heap), path_(heap_path), engine_(engine), options_(options), fencing_(path_, engine) {
    options_.durable_ms = options.durable_ms ? options.durable_ms : durable_ms_standard;
}

ty_standby::~ty_standby() {
    if (replica_ && unsaved_)
        (void)save(); // what is not saved is received again
    ty_replica_end(replica_);
}

// A promoted heap has no state any more; or it has one that was not removed, because its promotion was interrupted.
ty_status ty_standby::refuse_primary(ty_status why) {
    records_end at;
    bool found = false;
    log_comparison is;
    kept_failure failed;
    failed.keep(why);
    if (why != TY_E_NOT_FOUND && why != TY_E_MISMATCH)
        return why;
    if (ty_status status = fencing_.read(standby_call)) // ST20: a superseded heap is refused by its own memory
        return status;
    ty_feed_position base{};
    bool receives = false;
    if (ty_status status = heap_base(path_.c_str(), nullptr, &base, &receives))
        return status;
    if (receives) // it is no primary
        return failed.restore();
    const fencing_record known = fencing_.known();
    if (ty_status status = newest_position(engine_, &at, &found))
        return status;
    if (ty_status status = compare(engine_, known, identity_, at, found, &is))
        return status;
    if (known.replication && same_owner(known.owner, identity_))
        if (ty_status status = fencing_.refuse(standby_call, is, at.newest.read.header))
            return status;
    if (!found || !same_owner(at.newest.read.header.owner, identity_))
        return failed.restore();
    if (why == TY_E_MISMATCH) // the state is there
        if (ty_status status = folder_.remove())
            return status;
    return fail(TY_E_EXISTS,
                std::string(standby_call) + ": this heap is the primary, since term " +
                    std::to_string(at.newest.read.header.term),
                path_, "write to it, and publish it (ty_publisher_open, taiyen publish)");
}

ty_status ty_standby::open() {
    ty_feed_position own{};
    if (ty_status status = heap_base(path_.c_str(), nullptr, &own, nullptr))
        return status;
    memcpy(identity_, own.heap_identity, sizeof identity_);
    if (ty_status status = fencing_.open(nullptr))
        return status;
    if (ty_status status = folder_.open(state_path_of(path_.c_str(), options_)))
        return status;
    ty_status status = folder_.read(&state_);
    if (!status)
        status = ty_replica_begin(heap_, &state_.position, nullptr, &replica_);
    if (status)
        return refuse_primary(status);
    whole_ = state_;
    durable_ = state_.position;
    saved_ms_ = now_ms();
    report_.term = state_.last.term;
    report_.lsn = report_.durable_lsn = durable_.lsn;
    report_.promoting = same_owner(state_.owner, identity_) && !taiyen::detail::fault("promotion_forgotten");
    if ((status = fencing_.read(standby_call)))
        return status;
    // That it is a standby; or it remembers its own term already, which its state lacks: it is read again.
    const fencing_record known = fencing_.known();
    const bool knows_more = same_owner(known.owner, identity_) && known.term > state_.last.term;
    return knows_more ? TY_OK : fencing_.keep(fencing_record_now());
}

// ---- Messages

ty_status ty_standby::receive(const ty_feed_record *records, size_t count) {
    const ty_status status = ty_replica_apply(replica_, records, count);
    if (status == TY_E_SPACE || status == TY_E_IO)
        late_.keep(status); // they are applied; save() retries what could not be made durable
    else if (status)
        return status;
    report_.records += count;
    for (size_t i = 0; i < count; i++)
        report_.record_bytes += records[i].size_bytes;
    state_.position.lsn = records[count - 1].lsn;
    state_.position.hash = records[count - 1].hash;
    report_.lsn = state_.position.lsn;
    return TY_OK;
}

ty_status ty_standby::take_records(const message &one) {
    ty_feed_position position = state_.position;
    if (ty_status status = take_apart(one, &position, &records_))
        return status;
    return receive(records_.data(), records_.size());
}

// A part that does not continue the parts before starts over; what is missing then shows in the position of the next
// message.
ty_status ty_standby::take_part(const message &one) {
    const message_header &header = one.header;
    if (header.offset != parts_.size())
        parts_.clear();
    if (header.offset != parts_.size())
        return same_position(header.position, state_.position) ? TY_OK : refuse_position(one.at);
    parts_.insert(parts_.end(), one.payload, one.payload + header.payload_bytes);
    if (parts_.size() != header.record_bytes)
        return same_position(header.position, state_.position) ? TY_OK : refuse_position(one.at);
    if (header.position.lsn != state_.position.lsn + 1 || header.position.hash != header.record_hash)
        return refuse_position(one.at);
    const ty_feed_record whole{state_.position.lsn + 1, state_.position.hash, header.record_hash, parts_.data(),
                               parts_.size()};
    const ty_status status = receive(&whole, 1);
    parts_.clear();
    return status;
}

ty_status ty_standby::take_timeline(const message &one) {
    if (same_position(one.header.position, state_.position))
        return TY_OK;
    if (!same_owner(one.header.position.heap_identity, state_.position.heap_identity))
        return refuse_new_primary(path_, one.header.term);
    blocked_ = one.header;
    return fail(
        TY_E_NOT_FOUND, "go on as a standby: the publisher fell behind what the primary's log held", path_,
        "move this standby's files away, put a base (taiyen publish --base), make a new one, and keep these until that "
        "has what they have");
}

void ty_standby::taken(const tail &last) {
    state_.last = last;
    if (parts_.empty() || taiyen::detail::fault("standby_goes_on_within_a_record"))
        whole_ = state_;
}

// ST1, ST2: a message is used only if it is whole and follows the one it names, and its records lead to its position.
// ST5: after a term begins, lower ones do not count.
ty_status ty_standby::take(const message &one) {
    const message_header &header = one.header;
    const auto kind = static_cast<message_kind>(header.kind);
    tail last = state_.last;
    bool counts = false;
    if (ty_status status = classify(one, &last, &counts)) {
        saw_later_term_ = saw_later_term_ || header.term > state_.last.term;
        return status;
    }
    if (!counts) {
        taken(last);
        return TY_OK;
    }
    if (header.replication != state_.replication)
        return damaged(one.at, "it is of another replication than those before it");
    state_.begun_term = header.begun_term;
    state_.begun_lsn = header.begun_lsn;
    if (begins_term(header) && !taiyen::detail::fault("owner_of_a_term_not_taken"))
        memcpy(state_.owner, header.owner, sizeof state_.owner);
    else if (!same_owner(header.owner, state_.owner))
        return damaged(one.at, "it is of another owner than those around it");
    ty_status status = TY_OK;
    if (kind != message_kind::part)
        parts_.clear();
    if (kind == message_kind::timeline)
        status = take_timeline(one);
    else if (kind == message_kind::records)
        status = take_records(one);
    else if (kind == message_kind::part)
        status = take_part(one);
    else if (kind == message_kind::alive && !same_position(header.position, state_.position))
        status = refuse_position(one.at);
    if (status)
        return status;
    taken(last);
    heard_ = true;
    report_.silent_ms = 0;
    report_.messages += 1;
    report_.term = last.term;
    report_.promoting = same_owner(state_.owner, identity_);
    unsaved_ = true;
    return TY_OK;
}

bool ty_standby::take(const void *bytes, size_t size, uint64_t at, void *context) {
    auto &self = *static_cast<ty_standby *>(context);
    try {
        message one;
        ty_status status = read_message(bytes, size, at, TY_ENGINE_RECORDS, &one);
        if (!status)
            status = self.take(one);
        if (status)
            self.taking_.keep(status);
    } catch (const std::exception &) {
        self.taking_.keep(
            fail(TY_E_MEMORY, "take a message from the engine", self.path_, "free memory of the process"));
    }
    self.report_.caught_up = false;
    return self.taking_.status == TY_OK;
}

// What the state says, in the form that a heap remembers.
fencing_record ty_standby::fencing_record_now() const {
    fencing_record memory{};
    memory.replication = state_.replication;
    memory.term = state_.last.term;
    memcpy(memory.owner, state_.owner, sizeof memory.owner);
    memory.number = state_.last.number;
    memory.checksum = state_.last.checksum;
    memory.at = state_.last.at;
    memory.lsn = durable_.lsn; // a prepared transaction without an outcome is rolled back by a promotion
    return memory;
}

ty_status ty_standby::look(records_end *at, log_comparison *is) const {
    bool found = false;
    if (ty_status status = newest_position(engine_, at, &found))
        return status;
    return compare(engine_, fencing_record_now(), identity_, *at, found, is);
}

// ST21: a server that lost its store, or has an older one, shows in many ways, and is reported as such: no file of a
// standby may be removed because of it, as it may be the only copy.
ty_status ty_standby::explain(ty_status why) const {
    records_end at;
    log_comparison is;
    kept_failure failed;
    failed.keep(why);
    if (why != TY_E_DAMAGED && why != TY_E_NOT_FOUND && why != TY_E_MISMATCH)
        return failed.restore();
    if (ty_status status = look(&at, &is))
        return is_wrong(status) || taiyen::detail::fault("advice_without_an_answer")
                   ? failed.restore()
                   : status; // it may pass: nothing is advised without an answer
    const std::string before = std::string(standby_call) + ": ", name = engine_.name ? engine_.name : "the server",
                      has = path_ + " has term " + std::to_string(state_.last.term) + " up to transaction " +
                            std::to_string(state_.position.lsn);
    if (is.relation == log_relation::behind)
        return fail(TY_E_DAMAGED, before + "the server is behind it", name,
                    "it lost its store, or has an older one; " + has +
                        ": keep it. Put the store back, or begin a new term with the primary (taiyen promote on its "
                        "machine), and make standbys of that");
    if (is.relation == log_relation::split || is.relation == log_relation::foreign)
        return fail(TY_E_DAMAGED, before + "the server has another log than the one that it is of", name,
                    has + ": keep it, and give the server and the name that it was made with");
    if (is.relation == log_relation::superseded && !is.held)
        return fail(TY_E_MISMATCH,
                    before + "term " + std::to_string(at.newest.read.header.term) +
                        " began, perhaps without what this standby has",
                    name, has + ": move its files away, make a new one, and keep these until that has what they have");
    return failed.restore();
}

// ST9: a server that lost messages may have as many others in their places by now. A trimmed message says nothing.
ty_status ty_standby::check_last() {
    int readings = 0;
    return state_.last.at ? read_again(&readings, [this] { return read_last(); }) : TY_OK;
}

ty_status ty_standby::read_last() {
    owned_message there;
    bool found = false;
    if (ty_status status =
            first_after(engine_, TY_ENGINE_RECORDS, state_.last.at - 1, found_at_once_ms, &there, &found))
        return status;
    checked_ms_ = now_ms();
    // ST1: the oldest message kept counts, and was passed over: the next step reads it after no void ones.
    if (found && there.read.at > state_.last.at && there.read.at <= state_.last.read &&
        !taiyen::detail::fault("trimmed_messages_after_void_ones_passed_over")) {
        go_back();
        report_.caught_up = false;
    }
    const bool same =
        !found || there.read.at != state_.last.at ||
        (there.read.header.number == state_.last.number && there.read.header.checksum == state_.last.checksum);
    return same ? TY_OK
                : fail(TY_E_DAMAGED, "go on as a standby: the engine lost what was taken, and has others in its place",
                       path_, "see whether its server was restored from a backup");
}

// ST11: only waits in vain count as silence, and only while the engine has nothing more than was taken.
ty_status ty_standby::listen(uint64_t waited_ms) {
    uint64_t newest = 0;
    if (!heard_ || waited_ms == 0)
        return TY_OK;
    if (ty_status status = engine_.newest(engine_.context, TY_ENGINE_RECORDS, &newest))
        return status;
    report_.silent_ms += newest == state_.last.read ? waited_ms : 0;
    return TY_OK;
}

// Back to the last message that counts: those after it are classified again.
void ty_standby::go_back() {
    state_.last.read = state_.last.at;
    state_.last.voids = 0;
}

// ST14: a message counts as wrong only once several reads said so.
ty_status ty_standby::read_on(uint32_t timeout_ms) {
    const auto read = [this](uint32_t wait_ms) {
        taking_ = {};
        return engine_.read(engine_.context, TY_ENGINE_RECORDS, state_.last.read, wait_ms, take, this);
    };
    ty_status status = read(timeout_ms);
    int readings = 1;
    if (is_wrong(status) && state_.last.voids &&
        !taiyen::detail::fault("lost_void_messages_are_a_loss")) { // void messages alone may be lost
        go_back();
        status = read(found_at_once_ms);
    }
    const int most = taiyen::detail::fault("wrong_at_the_first_reading") ? 1 : readings_max;
    for (; readings < most && !status && is_wrong(taking_.status); readings++) {
        go_back();
        status = read(found_at_once_ms);
    }
    report_.differences += readings > 1 && !status && !taking_.status;
    return status;
}

ty_status ty_standby::step(uint32_t timeout_ms) {
    if (!replica_)
        return fail(TY_E_BUSY, "go on as a standby: its promotion has begun", path_, "end it: ty_standby_promote");
    const ty_status status = take_all(timeout_ms);
    return status ? explain(status) : TY_OK;
}

ty_status ty_standby::take_all(uint32_t timeout_ms) {
    late_ = {};
    report_.caught_up = true; // if nothing comes
    const uint64_t since = now_ms();
    const uint64_t silent =
        taiyen::detail::fault("server_away_counts_as_silence") ? 0 : std::exchange(report_.silent_ms, 0); // if a step
                                                                                                          // fails
    if (ty_status status = read_on(timeout_ms))
        return status;
    if (taking_.status || late_.status)
        return taking_.status ? taking_.restore() : late_.restore();
    if (report_.caught_up && (!checked_ms_ || now_ms() - checked_ms_ >= options_.durable_ms))
        if (ty_status status = check_last())
            return status;
    if (report_.caught_up) {
        if (ty_status status = listen(std::min<uint64_t>(now_ms() - since, timeout_ms)))
            return status;
        report_.silent_ms += silent;
    }
    return unsaved_ && now_ms() - saved_ms_ >= options_.durable_ms ? save() : TY_OK;
}

// ST7: a standby must not continue from within a record, or after one that waits for its outcome.
ty_status ty_standby::save() {
    if (ty_status status = ty_replica_make_durable(replica_, &durable_))
        return status;
    report_.durable_lsn = durable_.lsn;
    saved_ms_ = now_ms();
    if (!same_position(durable_, whole_.position))
        return TY_OK;
    standby_state kept = whole_;
    kept.position = durable_;
    if (ty_status status = folder_.write(kept))
        return status;
    unsaved_ = !parts_.empty();
    return TY_OK;
}
