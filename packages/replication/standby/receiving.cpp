// Standbys: docs/design/standby.md, "A standby".
#include "receiving.hpp"

#include "base_log.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <taiyen/fault.hpp>
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

ty_status refuse_new_primary(const std::string &path, uint64_t term) {
    return fail(
        TY_E_MISMATCH, "go on as a standby: another heap is the primary since term " + std::to_string(term), path,
        "move this standby's files away, make a new one (ty_standby_make, taiyen standby), and keep these until "
        "that has what they have");
}

} // namespace

namespace taiyen::standby {

namespace {

ty_status refuse_without_base(const char *heap_path) {
    return fail(TY_E_NOT_FOUND, "make a standby: the engine has no base of the present primary", heap_path,
                "put one on the primary's machine (ty_publish_base, taiyen publish --base)");
}

standby_state state_of(const message_header &base) {
    standby_state state{};
    state.position = base.position;
    state.last = {
        base.record_number, base.record_checksum, base.record_session, base.term, base.timeline, base.records_at, 0,
        base.records_at};
    memcpy(state.owner, base.owner, sizeof state.owner);
    state.replication = base.replication;
    state.begun_term = base.begun_term;
    state.begun_lsn = base.begun_lsn;
    return state;
}

ty_status make_of_base(const char *heap_path, const ty_engine &engine, const ty_open_options *open,
                       const ty_standby_options &options, lookup how, ty_standby_report *report) {
    state_folder folder;
    owned_message begin;
    records_end at;
    bool found = false, any = false;
    if (ty_status status = newest_base(engine, how, &begin, &found))
        return status;
    if (found)
        if (ty_status status = goes_on(engine, begin.read.header, &found))
            return status;
    if (ty_status status = newest_position(engine, &at, &any))
        return status;
    const message_header &base = begin.read.header;
    const message_header &now = at.newest.read.header;
    const bool is_before = base.replication == now.replication && base.term == now.term && now.begin == 0; // ST27
    if (!found || !any || !(leads_to(base, now) || is_before))
        return refuse_without_base(heap_path);
    if (ty_status status = folder.open(state_path_of(heap_path, options)))
        return status;
    if (ty_status status = folder.write(state_of(base))) // before the heap, which is of no use without it
        return status;
    base_source source(engine, begin);
    ty_restore_options restore = TY_RESTORE_OPTIONS_INIT;
    restore.open = open;
    restore.receives = true;
    ty_restore_report restored{};
    restored.struct_size = sizeof restored;
    if (ty_status status = ty_restore(&source.destination(), heap_path, &restore, &restored))
        return status;
    report->lsn = report->durable_lsn = restored.lsn;
    report->term = base.term;
    return TY_OK;
}

} // namespace

ty_status make_standby(const char *heap_path, const ty_engine &engine, const ty_open_options *open,
                       const ty_standby_options &options, ty_standby_report *report) {
    if (std::FILE *there = std::fopen(heap_path, "r")) { // its state must not be lost
        std::fclose(there);
        return fail(TY_E_EXISTS, "make a standby: there is a file of that name", heap_path,
                    "give another path, or move the file away first");
    }
    const ty_status status = make_of_base(heap_path, engine, open, options, lookup::anywhere, report);
    common::kept_failure failed;
    failed.keep(status);
    if (!is_wrong(status) || status == TY_E_NOT_FOUND || taiyen::detail::fault("damaged_base_hides_the_one_before"))
        return failed.restore();
    // ST6: a piece of it cannot be read; the base before it may still be there.
    const ty_status older = make_of_base(heap_path, engine, open, options, lookup::whole, report);
    return older == TY_E_NOT_FOUND ? failed.restore() : older;
}

} // namespace taiyen::standby

ty_standby::ty_standby(ty_heap *heap, const char *heap_path, const ty_engine &engine, const ty_standby_options &options)
    : heap_(heap), path_(heap_path), engine_(engine), options_(options), memory_(path_, engine) {
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
    if (ty_status status = memory_.read(standby_call)) // ST20: a superseded heap is refused by its own memory
        return status;
    ty_feed_position base{};
    bool receives = false;
    if (ty_status status = heap_base(path_.c_str(), nullptr, &base, &receives))
        return status;
    if (receives) // it is no primary
        return failed.restore();
    const term_memory known = memory_.known();
    if (ty_status status = newest_position(engine_, &at, &found))
        return status;
    if (ty_status status = compare(engine_, known, identity_, at, found, &is))
        return status;
    if (known.replication && same_owner(known.owner, identity_))
        if (ty_status status = memory_.refuse(standby_call, is, at.newest.read.header))
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
    if (ty_status status = memory_.open(nullptr))
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
    if ((status = memory_.read(standby_call)))
        return status;
    // That it is a standby; or it remembers its own term already, which its state lacks: it is read again.
    const term_memory known = memory_.known();
    const bool knows_more = same_owner(known.owner, identity_) && known.term > state_.last.term;
    return knows_more ? TY_OK : memory_.keep(memory());
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
term_memory ty_standby::memory() const {
    term_memory memory{};
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
    return compare(engine_, memory(), identity_, *at, found, is);
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

// ---- Promotion

ty_status ty_standby::catch_up(uint64_t to) {
    while (state_.last.read < to) {
        const uint64_t before = state_.last.read;
        if (ty_status status = step(answer_ms))
            return status;
        if (before == state_.last.read)
            return fail(TY_E_IO, "promote a standby: the engine's messages do not come", path_, "try again");
    }
    return TY_OK;
}

// ST5: the term begins after whatever the old primary has appended until then; all of that is taken before the heap is
// promoted.
ty_status ty_standby::begin_term(message_kind kind, uint64_t after, uint64_t *at) {
    message_header before{};
    before.number = state_.last.number;
    before.checksum = state_.last.checksum;
    before.timeline = state_.last.timeline;
    message_header header = header_after(before, kind);
    header.term = state_.last.term + 1;
    header.replication = state_.replication;
    header.begun_term = state_.begun_term;
    header.begun_lsn = state_.begun_lsn;
    memcpy(header.owner, identity_, sizeof header.owner);
    header.position = durable_;
    header.session = random_session();
    header.known_at = state_.last.at;
    return append_one(engine_, TY_ENGINE_RECORDS, header.term, after, message_of(header), at);
}

ty_status ty_standby::finish() {
    ty_replica_end(replica_);
    replica_ = nullptr;
    if (ty_status status = memory_.keep(memory())) // ST22: remembered before anybody writes to the heap
        return status;
    if (ty_status status = ty_promote(heap_))
        return status;
    promoted_ = true;
    return folder_.remove();
}

// Takes all that the engine has.
ty_status ty_standby::prepare_promotion() {
    uint64_t newest = 0;
    if (ty_status status = engine_.newest(engine_.context, TY_ENGINE_RECORDS, &newest))
        return status;
    if (newest < state_.last.read && state_.last.voids && !taiyen::detail::fault("lost_void_messages_are_a_loss"))
        go_back();
    if (newest < state_.last.read)
        return explain(fail(TY_E_DAMAGED, "promote a standby: the engine has lost messages", path_,
                            "see whether its server was restored from a backup"));
    if (ty_status status = catch_up(newest))
        return status;
    for (int n = 1; n < readings_max && state_.last.voids; n++) { // ST14: another replica may have some that count
        go_back();
        if (ty_status status = catch_up(newest))
            return status;
    }
    const ty_status status = taiyen::detail::fault("promoted_behind_others") ? TY_OK : check_last();
    return status ? explain(status) : TY_OK;
}

bool ty_standby::may_begin_term() const {
    return !report_.promoting && same_owner(state_.owner, state_.position.heap_identity);
}

ty_status ty_standby::end_promotion() {
    if (!report_.promoting)
        return refuse_new_primary(path_, state_.last.term);
    if (ty_status status = save())
        return status;
    return finish();
}

// ST24: a standby that lacks what was acknowledged before a new term stays one. ST25: the position is durable before
// the term: whoever was the primary may trim what is before it, and nobody else can end this promotion.
ty_status ty_standby::prepare_term() {
    if (state_.position.lsn < state_.begun_lsn && !taiyen::detail::fault("promoted_without_what_a_new_term_has"))
        return fail(TY_E_NOT_FOUND,
                    "promote a standby: it has transactions up to " + std::to_string(state_.position.lsn) +
                        ", and its primary began term " + std::to_string(state_.begun_term) + " with those up to " +
                        std::to_string(state_.begun_lsn),
                    path_,
                    "put a base of the primary, make a new standby, and keep this one until that has what it has");
    return taiyen::detail::fault("term_before_the_position_is_durable") ? TY_OK : save();
}

// Right after all that the engine has.
ty_status ty_standby::put_term_after(const records_end &at) {
    uint64_t position = 0;
    message_header header = header_after(at.newest.read.header, message_kind::take_over);
    header.term = header.begun_term = at.newest.read.header.term + 1;
    header.begun_lsn = state_.position.lsn;
    memcpy(header.owner, identity_, sizeof header.owner);
    header.position = durable_;
    header.session = random_session();
    header.known_at = at.newest.read.at;
    return append_one(engine_, TY_ENGINE_RECORDS, header.term, at.end_at, message_of(header), &position);
}

// Whether a message after what this standby has names a base, or may have.
ty_status ty_standby::find_base_named(uint64_t until, bool *named) const {
    struct search {
        uint64_t at, first;
        bool named;
    } all{state_.last.read, blocked_.number, false};
    const auto take = [](const void *bytes, size_t size, uint64_t position, void *context) {
        auto &self = *static_cast<search *>(context);
        message one;
        const bool is_readable = read_message(bytes, size, position, TY_ENGINE_RECORDS, &one) == TY_OK;
        const bool is_gap = self.first && (!is_readable || one.header.number != self.first);
        self.first = 0;
        self.at = position;
        self.named = self.named || !is_readable || is_gap || one.header.begin;
        return !self.named;
    };
    while (all.at < until && !all.named) {
        const uint64_t before = all.at;
        if (ty_status status = engine_.read(engine_.context, TY_ENGINE_RECORDS, before, answer_ms, take, &all))
            return status;
        if (all.at == before)
            return fail(TY_E_IO, "promote a standby: the engine's messages do not come", path_, "try again");
    }
    *named = all.named;
    return TY_OK;
}

// ST27: the primary fell behind its log, and nothing of its new timeline was reported as acknowledged: this standby has
// all that was.
ty_status ty_standby::promote_before_timeline(ty_status why) {
    records_end at;
    bool found = false;
    kept_failure failed;
    failed.keep(why);
    const auto is_mine = [&] {
        const message_header &newest = at.newest.read.header;
        return found && begins_term(newest) && same_owner(newest.owner, identity_) &&
               newest.begun_term == newest.term && newest.begun_lsn == state_.position.lsn;
    };
    if (ty_status status = newest_position(engine_, &at, &found))
        return status;
    if (!is_mine()) {
        const message_header &newest = at.newest.read.header;
        bool named = !blocked_.number || !found || newest.term != blocked_.term;
        if (!named)
            if (ty_status status = find_base_named(at.end_at, &named))
                return status;
        if (named && !(blocked_.number && taiyen::detail::fault("promoted_before_a_timeline_that_has_a_base")))
            return failed.restore();
        if (ty_status status = prepare_term())
            return status;
        ty_status status = put_term_after(at);
        if (!status)
            status = newest_position(engine_, &at, &found);
        if (status == TY_E_MISMATCH || (!status && !is_mine()))
            return fail(TY_E_BUSY, "promote a standby: the primary publishes meanwhile", path_, "try again");
        if (status)
            return status;
    }
    const message_header &term = at.newest.read.header;
    state_.last = tail_at(term, at.newest.read.at);
    memcpy(state_.owner, term.owner, sizeof state_.owner);
    state_.begun_term = term.begun_term;
    state_.begun_lsn = term.begun_lsn;
    report_.term = term.term;
    report_.promoting = true;
    parts_.clear();
    whole_ = state_;
    return end_promotion();
}

ty_status ty_standby::promote() {
    if (!replica_) // finish() failed
        return promoted_ ? folder_.remove() : finish();
    uint64_t at = 0;
    blocked_ = {};
    saw_later_term_ = false;
    ty_status status = prepare_promotion();
    if (status == TY_E_NOT_FOUND && !report_.promoting)
        return promote_before_timeline(status);
    if (is_wrong(status) && report_.promoting && !saw_later_term_ &&
        !taiyen::detail::fault("promotion_needs_its_server"))
        status = TY_OK; // all before its term was taken, whatever the server has lost since
    const bool begins = !status && may_begin_term();
    if (begins)
        status = prepare_term();
    if (!status && begins)
        status = begin_term(message_kind::term, TY_ENGINE_ANYWHERE, &at);
    if (!status && begins && !taiyen::detail::fault("promoted_before_the_term_is_read"))
        status = catch_up(at);
    if (status)
        return status;
    if (may_begin_term()) // ST23: the term is void
        return fail(TY_E_BUSY, "promote a standby: the primary began a new timeline meanwhile", path_, "try again");
    return end_promotion();
}

// ST11: if the old primary has appended something before, the term does not follow what this standby knows, and does
// not begin.
ty_status ty_standby::take_over() {
    if (!replica_)
        return promote();
    const uint64_t silent = std::exchange(report_.silent_ms, 0), heard = report_.messages;
    uint64_t at = 0;
    const auto refuse = [this] {
        return fail(TY_E_BUSY, "take over: the primary is not silent", path_, "go on as a standby");
    };
    if (ty_status status = prepare_promotion())
        return status;
    if (may_begin_term()) {
        if (silent == 0 || report_.messages != heard)
            return refuse();
        if (ty_status status = prepare_term())
            return status;
        ty_status status = begin_term(message_kind::take_over, state_.last.read, &at);
        if (status == TY_E_MISMATCH) // an engine may keep what it refuses, and it counts if only void ones came before
            status = engine_.newest(engine_.context, TY_ENGINE_RECORDS, &at);
        if (!status)
            status = catch_up(at);
        if (status)
            return status;
        if (may_begin_term())
            return refuse();
    }
    return end_promotion();
}
