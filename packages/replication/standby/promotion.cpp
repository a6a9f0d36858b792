// Promotions of standbys: docs/design/standby.md, "A standby".
#include "receiving.hpp"

#include <taiyen/detail/fault.hpp>
#include <utility>

using namespace taiyen::common;
using namespace taiyen::standby;

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
    if (ty_status status = fencing_.keep(fencing_record_now())) // ST22: remembered before anybody writes to the heap
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
    return prepare_term(state_.begun_term, state_.begun_lsn);
}

ty_status ty_standby::prepare_term(uint64_t begun_term, uint64_t begun_lsn) {
    if (state_.position.lsn < begun_lsn && !taiyen::detail::fault("promoted_without_what_a_new_term_has"))
        return fail(TY_E_NOT_FOUND,
                    "promote a standby: it has transactions up to " + std::to_string(state_.position.lsn) +
                        ", and its primary began term " + std::to_string(begun_term) + " with those up to " +
                        std::to_string(begun_lsn),
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
        bool named = !blocked_.number || !found || !same_owner(newest.owner, blocked_.owner);
        if (!named)
            if (ty_status status = find_base_named(at.end_at, &named))
                return status;
        if (named && !(blocked_.number && taiyen::detail::fault("promoted_before_a_timeline_that_has_a_base")))
            return failed.restore();
        if (ty_status status = prepare_term(newest.begun_term, newest.begun_lsn)) // of terms that it cannot follow, too
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
    const bool is_later = status == TY_E_MISMATCH && blocked_.number; // perhaps its own primary's term
    if ((status == TY_E_NOT_FOUND || is_later) && !report_.promoting)
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
