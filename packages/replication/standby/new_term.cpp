// A new term of a heap that is a primary: docs/design/standby.md, "What a heap remembers".
#include "fencing.hpp"

#include <algorithm>
#include <taiyen/detail/fault.hpp>

namespace taiyen::standby {

namespace {

constexpr const char *new_term_call = "begin a new term";
constexpr int tries_max = 8; // other writers may come first

// What all of a log shows, also where messages that count are missing or cannot be read. A term is void, or its
// promotion never ended, unless its heap has published since: it supersedes nobody, but its number is not used again.
struct scanned_log {
    uint64_t until = 0;
    records_end *at = nullptr;
    uint64_t readable_at = 0;   // of the last message, unless that one cannot be read
    uint64_t term = 0;          // the highest
    uint64_t unreadable_at = 0; // of the last such message
    uint64_t oldest_at = 0;
    common::kept_failure failed;

    static bool take(const void *bytes, size_t size, uint64_t position, void *context) {
        auto &self = *static_cast<scanned_log *>(context);
        owned_message &newest = self.at->newest;
        message one;
        self.at->end_at = position;
        const ty_status status = read_message(bytes, size, position, TY_ENGINE_RECORDS, &one);
        self.readable_at = status ? 0 : position;
        self.unreadable_at = status ? position : self.unreadable_at;
        self.oldest_at = self.oldest_at ? self.oldest_at : position;
        if (status && !is_wrong(status)) {
            self.failed.keep(status);
            return false;
        }
        if (status)
            return position < self.until;
        self.term = std::max(self.term, one.header.term);
        const bool is_unfinished =
            begins_term(one.header) && !taiyen::detail::fault("unfinished_term_in_a_broken_log_supersedes");
        if (!is_unfinished && one.header.term >= newest.read.header.term) {
            newest.read = one;
            newest.read.payload = nullptr;
        }
        return position < self.until;
    }
};

ty_status scan_log(const ty_engine &engine, scanned_log *log) {
    *log->at = {};
    if (ty_status status = engine.newest(engine.context, TY_ENGINE_RECORDS, &log->until))
        return status;
    while (log->at->end_at < log->until) {
        const uint64_t before = log->at->end_at;
        if (ty_status status =
                engine.read(engine.context, TY_ENGINE_RECORDS, before, answer_ms, scanned_log::take, log))
            return status;
        if (log->failed.status)
            return log->failed.restore();
        if (log->at->end_at == before)
            return fail(TY_E_IO, "read the engine's messages: they do not come", "", "try again");
    }
    return TY_OK;
}

class new_term {
public:
    new_term(const char *heap_path, const ty_engine &engine)
        : path_(heap_path), engine_(engine), fencing_(path_, engine) {}
    ty_status open(const ty_open_options *open, bool takes_back);
    ty_status begin(bool takes_back, uint64_t *term);

private:
    ty_status look();
    ty_status check(bool takes_back, log_relation first);
    ty_status find_published(bool *has);
    ty_status put(message_kind kind, uint64_t after);
    ty_status confirm();

    std::string path_;
    const ty_engine &engine_;
    fencing_state fencing_;
    ty_feed_position base_{};
    records_end at_;
    bool is_broken_ = false;
    log_comparison found_;
    uint64_t known_at_ = 0; // the engine's position of a message that the next one may name
    uint64_t term_ = 0;     // the highest that the log has, or the heap knows
    fencing_record begun_{};
};

ty_status new_term::open(const ty_open_options *open, bool takes_back) {
    if (ty_status status = fencing_.open(open))
        return status;
    const ty_status read = fencing_.read(new_term_call);
    if (read && !(takes_back && fencing_.superseded().replication)) // check() decides on that
        return read;
    bool receives = false;
    if (ty_status status = heap_base(path_.c_str(), open, &base_, &receives))
        return status;
    const fencing_record known = fencing_.known();
    // ST26: one that receives is no primary, whatever it remembers.
    if (known.replication == 0 || receives || !same_owner(known.owner, base_.heap_identity))
        return fail(TY_E_NOT_FOUND, std::string(new_term_call) + ": this heap is no primary", path_,
                    "promote a standby (taiyen promote, ty_standby_promote)");
    return TY_OK;
}

ty_status new_term::look() {
    bool any = false;
    const fencing_record known = fencing_.known();
    ty_status status = newest_position(engine_, &at_, &any);
    is_broken_ = is_wrong(status) && !taiyen::detail::fault("broken_log_ends_its_primary");
    known_at_ = at_.newest.read.at;
    term_ = at_.newest.read.header.term;
    if (is_broken_) {
        scanned_log log;
        log.at = &at_;
        status = scan_log(engine_, &log);
        known_at_ = log.readable_at;
        term_ = log.term;
        any = at_.newest.read.header.number != 0;
    }
    if (status)
        return status;
    term_ = std::max(term_, known.term);
    term_ = std::max(term_, fencing_.superseded().term); // which the server may have lost
    if ((status = compare(engine_, known, base_.heap_identity, at_, any, &found_)))
        return status;
    const bool was_mine = begun_.term && at_.newest.read.header.term == begun_.term; // others came after it
    if ((is_broken_ || was_mine) && found_.relation == log_relation::current)
        found_.relation = log_relation::behind;
    return TY_OK;
}

// Whether a heap that superseded this one shows in the log by more than the begin of its term, or may have.
ty_status new_term::find_published(bool *has) {
    records_end last;
    scanned_log log;
    log.at = &last;
    const fencing_record known = fencing_.known();
    const message_header &published = last.newest.read.header, &newest = at_.newest.read.header;
    if (ty_status status = scan_log(engine_, &log))
        return status;
    const bool is_others = !same_owner(published.owner, base_.heap_identity) && published.term > known.term;
    const bool is_trimmed =
        begins_term(newest) && !same_owner(newest.owner, base_.heap_identity) && log.oldest_at == at_.newest.read.at;
    *has = is_others || is_trimmed || log.unreadable_at > known.at;
    return TY_OK;
}

// ST20: a term is taken back only while its heap has published nothing.
ty_status new_term::check(bool takes_back, log_relation first) {
    if (found_.relation == log_relation::superseded || fencing_.superseded().replication) {
        const message_header &newest = at_.newest.read.header;
        const bool is_same = newest.number == 0 || newest.replication == fencing_.known().replication;
        bool published = true;
        if (takes_back && is_same)
            if (ty_status status = find_published(&published))
                return status;
        return !published || taiyen::detail::fault("term_that_published_taken_back")
                   ? TY_OK
                   : fencing_.refuse_superseded(new_term_call, found_, newest);
    }
    if (found_.relation == log_relation::current)
        return fail(TY_E_EXISTS,
                    std::string(new_term_call) + ": this heap is the primary, of term " +
                        std::to_string(at_.newest.read.header.term),
                    path_, "publish it (ty_publisher_open, taiyen publish)");
    // It may have changed since the first look: then the operator decides again.
    const bool is_for_this = first == log_relation::behind || first == log_relation::split;
    return is_for_this && found_.relation == first ? TY_OK
                                                   : fencing_.refuse(new_term_call, found_, at_.newest.read.header);
}

// Right after the last message that was read: a promotion that came since must not be superseded. Leads to the message
// as the newest one. after: the engine's position that it must stand right after, where it names no message.
ty_status new_term::put(message_kind kind, uint64_t after) {
    const fencing_record known = fencing_.known();
    message_header header = header_after(at_.newest.read.header, kind);
    header.term = term_ + 1;
    header.replication = known.replication;
    header.begun_term = header.term;
    header.begun_lsn = known.lsn;
    memcpy(header.owner, base_.heap_identity, sizeof header.owner);
    header.position = base_;
    header.session = random_session();
    header.known_at = known_at_;
    header.records_at = after;
    begun_.term = header.term;
    const bool anywhere = taiyen::detail::fault("new_term_after_anything");
    if (anywhere) {
        header.kind = uint32_t(message_kind::term);
        header.records_at = 0;
    }
    const std::vector<uint8_t> bytes = message_of(header);
    if (ty_status status = append_one(engine_, TY_ENGINE_RECORDS, header.term,
                                      anywhere ? TY_ENGINE_ANYWHERE : at_.end_at, bytes, &known_at_))
        return status;
    memcpy(&at_.newest.read.header, bytes.data(), sizeof header);
    at_.newest.read.at = at_.end_at = known_at_;
    term_ = header.term;
    begun_ = fencing_record_of(at_.newest.read.header, known_at_);
    begun_.lsn = known.lsn;
    return TY_OK;
}

// Whether the log begins the term.
ty_status new_term::confirm() {
    bool any = false;
    if (ty_status status = newest_position(engine_, &at_, &any))
        return status;
    const message_header &newest = at_.newest.read.header;
    return any && newest.term == begun_.term && same_owner(newest.owner, begun_.owner) ? TY_OK : TY_E_MISMATCH;
}

ty_status new_term::begin(bool takes_back, uint64_t *term) {
    ty_status status = TY_E_MISMATCH;
    log_relation first{};
    for (int tries = 0; status == TY_E_MISMATCH && tries < tries_max; tries++) {
        if ((status = look()))
            return status;
        first = tries ? first : found_.relation;
        if ((status = check(takes_back, first)))
            return status;
        // A reader must not need what is missing: so in a broken log a first term comes before, which the second one
        // names.
        status = is_broken_ ? put(message_kind::term, at_.end_at) : TY_OK;
        if (!status)
            status = put(message_kind::take_over, 0);
        if (!status)
            status = confirm();
    }
    if (status == TY_E_MISMATCH)
        return fail(TY_E_BUSY, std::string(new_term_call) + ": others write to the server meanwhile", path_,
                    "end them, and try again");
    if (!status)
        status = fencing_.keep(begun_);
    if (!status && term)
        *term = begun_.term;
    return status;
}

} // namespace

ty_status begin_new_term(const char *heap_path, const ty_engine &engine, const ty_open_options *open, bool takes_back,
                         uint64_t *term) {
    new_term one(heap_path, engine);
    const ty_status status = one.open(open, takes_back);
    return status ? status : one.begin(takes_back, term);
}

} // namespace taiyen::standby
