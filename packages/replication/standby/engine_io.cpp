#include "engine_io.hpp"

#include <random>
#include <taiyen/detail/fault.hpp>

namespace taiyen::standby {

namespace {

struct reading {
    ty_engine_log log;
    owned_message *into;
    bool found = false;
    common::kept_failure failed;
};

bool take_first(const void *bytes, size_t size, uint64_t position, void *context) {
    auto &reads = *static_cast<reading *>(context);
    try {
        const auto *from = static_cast<const uint8_t *>(bytes);
        reads.into->bytes.assign(from, from + size);
        if (ty_status status = read_message(reads.into->bytes.data(), size, position, reads.log, &reads.into->read))
            reads.failed.keep(status);
        reads.found = true;
    } catch (const std::exception &) {
        reads.failed.keep(fail(TY_E_MEMORY, "take a message from the engine", "", "free memory of the process"));
    }
    return false;
}

} // namespace

// ST14: a message counts as wrong only once several reads said so.
ty_status first_after(const ty_engine &engine, ty_engine_log log, uint64_t after, uint32_t timeout_ms,
                      owned_message *first, bool *found) {
    int readings = 0;
    return read_again(&readings, [&] {
        reading reads{log, first, false, {}};
        if (ty_status status = engine.read(engine.context, log, after, timeout_ms, take_first, &reads))
            return status;
        *found = reads.found;
        return reads.failed.restore();
    });
}

ty_status newest_message(const ty_engine &engine, ty_engine_log log, owned_message *newest, bool *found) {
    uint64_t position = 0;
    *found = false;
    if (ty_status status = engine.newest(engine.context, log, &position))
        return status;
    if (position == 0)
        return TY_OK;
    if (ty_status status = first_after(engine, log, position - 1, answer_ms, newest, found))
        return status;
    return *found ? TY_OK
                  : fail(TY_E_IO, "read the engine's newest message: it did not come", "",
                         "see whether the server is well, and whether somebody removed the message");
}

namespace {

// Starts at a message that its writer knew to be acknowledged: those before the newest one may be void, and so may the
// newest one.
ty_status read_newest_position(const ty_engine &engine, uint64_t end, uint64_t known, records_end *at, bool *found) {
    owned_message one;
    tail last{};
    bool counts = false;
    if (known >= end)
        return damaged(end, "it names a later one as one before it");
    for (at->end_at = known ? known - 1 : 0; at->end_at < end; at->end_at = one.read.at) {
        if (ty_status status = first_after(engine, TY_ENGINE_RECORDS, at->end_at, answer_ms, &one, found))
            return status;
        if (!*found)
            return fail(TY_E_IO, "read the engine's newest messages: they do not come", "", "try again");
        const message_header &header = one.read.header;
        bool trimmed = true;
        if (at->end_at + 1 == known && one.read.at != known)
            if (ty_status status = is_trimmed(engine, known, &trimmed))
                return status;
        if (!trimmed && !taiyen::detail::fault("known_message_may_be_lost"))
            return damaged(known, "one that was acknowledged is not there any more");
        if (last.number == 0 && header.number != 1) // it counts: it was known to be acknowledged, or it is the oldest
                                                    // one kept
            last = {header.number - 1, header.previous, 0, header.term - begins_term(header), header.timeline, 0, 0, 0};
        if (ty_status status = classify(one.read, &last, &counts))
            return status;
        if (counts)
            std::swap(at->newest, one);
        if (counts) // the payload pointer belongs to the bytes that were swapped away
            one.read.at = at->newest.read.at;
    }
    if (last.voids == 0 || taiyen::detail::fault("newest_position_trimmed_meanwhile_believed"))
        return TY_OK;
    owned_message still;
    bool there = false;
    if (ty_status status = first_after(engine, TY_ENGINE_RECORDS, last.at - 1, answer_ms, &still, &there))
        return status;
    return there && still.read.at == last.at ? TY_OK
                                             : damaged(last.at, "it was trimmed while those after it were read");
}

} // namespace

ty_status is_trimmed(const ty_engine &engine, uint64_t position, bool *is) {
    owned_message oldest;
    bool found = false;
    if (ty_status status = first_after(engine, TY_ENGINE_RECORDS, 0, answer_ms, &oldest, &found))
        return status;
    if (!found)
        return fail(TY_E_IO, "read the engine's oldest message: it did not come", "", "try again");
    *is = oldest.read.at > position;
    return TY_OK;
}

ty_status newest_position(const ty_engine &engine, records_end *at, bool *found) {
    owned_message newest;
    int readings = 0;
    *at = {};
    if (ty_status status = newest_message(engine, TY_ENGINE_RECORDS, &newest, found))
        return status;
    if (!*found)
        return TY_OK;
    const uint64_t end = newest.read.at, known = newest.read.header.known_at;
    const ty_status status = read_again(&readings, [&] {
        *at = {};
        return read_newest_position(engine, end, known, at, found);
    });
    at->readings = readings;
    return status;
}

uint64_t random_session() {
    std::random_device source;
    return uint64_t{source()} << 32 | source();
}

message_header header_after(const message_header &before, message_kind kind) {
    message_header header{};
    header.kind = uint32_t(kind);
    header.number = before.number + 1;
    header.previous = before.checksum;
    header.term = before.term;
    header.replication = before.replication;
    header.begun_term = before.begun_term;
    header.begun_lsn = before.begun_lsn;
    memcpy(header.owner, before.owner, sizeof header.owner);
    header.position = before.position;
    header.timeline = before.timeline;
    return header;
}

ty_status append_one(const ty_engine &engine, ty_engine_log log, uint64_t term, uint64_t after,
                     const std::vector<uint8_t> &bytes, uint64_t *position) {
    uint64_t count = 0;
    if (term > counter_max) // no reader would take it
        return fail(TY_E_DAMAGED, "write to the engine: its log, or the heap, has the highest term that there can be",
                    engine.name ? engine.name : "",
                    "no promotion makes it that high: keep the heaps, and publish under another name");
    if (ty_status status = engine.begin_session(engine.context, log, after))
        return status;
    if (ty_status status = engine.append(engine.context, log, bytes.data(), bytes.size()))
        return status;
    if (ty_status status = engine.acknowledged(engine.context, log, 0, answer_ms, &count, position))
        return status;
    return count ? TY_OK
                 : fail(TY_E_IO, "write to the engine: it does not acknowledge", "", "see whether the server is well");
}

std::vector<uint8_t> message_of(const message_header &header, const void *payload, size_t size) {
    std::vector<uint8_t> bytes(sizeof header + size);
    memcpy(bytes.data(), &header, sizeof header);
    if (size)
        memcpy(bytes.data() + sizeof header, payload, size);
    seal_message(bytes);
    return bytes;
}

namespace {

// A refused message may stand in the bases' log all the same: it is void, and what it says of others is out of date. So
// a base is complete if its messages are adjacent in the log. ST6: one that cannot be read belongs to no base.
struct base_search {
    uint64_t until;
    uint64_t at = 0;       // of the last message
    uint64_t begin = 0;    // of the base that the last message belongs to; 0: it is void
    uint64_t number = 0;   // of the last message
    uint64_t complete = 0; // where the newest complete base begins
    common::kept_failure failed;

    void look_at(const message &one) {
        const message_header &header = one.header;
        const bool begins = header.kind == uint32_t(message_kind::base_begin);
        if (begins)
            begin = at == 0 || header.known_at == at ? one.at : 0;
        else if (header.begin != begin || header.number != number + 1)
            begin = 0;
        if (begin &&
            (header.kind == uint32_t(message_kind::base_end) || taiyen::detail::fault("base_without_its_end_counts")))
            complete = begin;
        number = header.number;
        at = one.at;
    }
    static bool take(const void *bytes, size_t size, uint64_t position, void *context) {
        auto &self = *static_cast<base_search *>(context);
        message one;
        const ty_status status = read_message(bytes, size, position, TY_ENGINE_BASES, &one);
        if (status && !is_wrong(status)) {
            self.failed.keep(status);
            return false;
        }
        if (status) {
            one = {};
            one.at = position;
        }
        self.look_at(one);
        return self.at < self.until;
    }
};

ty_status refuse_silence() {
    return fail(TY_E_IO, "read the engine's bases: they do not come", "", "try again");
}

ty_status search_bases(const ty_engine &engine, uint64_t until, uint64_t *complete) {
    base_search search{};
    search.until = until;
    while (search.at < until) {
        const uint64_t before = search.at;
        if (ty_status status =
                engine.read(engine.context, TY_ENGINE_BASES, before, answer_ms, base_search::take, &search))
            return status;
        if (search.failed.status)
            return search.failed.restore();
        if (search.at == before)
            return refuse_silence();
    }
    *complete = search.complete;
    return TY_OK;
}

// Whether the base's last message stands right after the one that its writer sent before it, which was acknowledged
// with all before that.
ty_status is_in_place(const ty_engine &engine, const message &end, bool *is) {
    owned_message before, next;
    bool found = false;
    const uint64_t known = end.header.known_at;
    *is = false;
    if (known == 0 || known >= end.at)
        return TY_OK;
    ty_status status = first_after(engine, TY_ENGINE_BASES, known - 1, answer_ms, &before, &found);
    if (!status && found)
        status = first_after(engine, TY_ENGINE_BASES, known, answer_ms, &next, &found);
    if (status)
        return is_wrong(status) ? TY_OK : status; // the base cannot be read
    if (!found)
        return refuse_silence();
    *is = before.read.at == known && before.read.header.number == end.header.number - 1 && next.read.at == end.at &&
          (before.read.header.begin ? before.read.header.begin : known) == end.header.begin;
    return TY_OK;
}

} // namespace

ty_status newest_of_bases(const ty_engine &engine, owned_message *newest, bool *found) {
    const ty_status status = newest_message(engine, TY_ENGINE_BASES, newest, found);
    if (!is_wrong(status) || taiyen::detail::fault("unreadable_message_ends_the_bases"))
        return status;
    *newest = {};
    *found = true;
    return engine.newest(engine.context, TY_ENGINE_BASES, &newest->read.at);
}

namespace {

// *found: a base begins at the position, and its first message can be read.
ty_status read_begin(const ty_engine &engine, uint64_t at, owned_message *begin, bool *found) {
    *found = false;
    if (at == 0)
        return TY_OK;
    if (ty_status status = first_after(engine, TY_ENGINE_BASES, at - 1, answer_ms, begin, found)) {
        *found = false;
        return is_wrong(status) ? TY_OK : status;
    }
    *found = *found && begin->read.header.kind == uint32_t(message_kind::base_begin) && begin->read.at == at;
    return TY_OK;
}

// ST6: a base without its last message does not count, nor does one whose first message cannot be read.
ty_status read_newest_base(const ty_engine &engine, lookup how, owned_message *begin, bool *found) {
    owned_message newest;
    if (ty_status status = newest_of_bases(engine, &newest, found))
        return status;
    if (!*found)
        return TY_OK;
    bool ends = how != lookup::whole && newest.read.header.kind == uint32_t(message_kind::base_end);
    if (ends && !(taiyen::detail::fault("refused_base_believed") && how != lookup::at_the_end))
        if (ty_status status = is_in_place(engine, newest.read, &ends))
            return status;
    if (ty_status status = read_begin(engine, ends ? newest.read.header.begin : 0, begin, found))
        return status;
    if (*found || how == lookup::at_the_end)
        return TY_OK;
    uint64_t at = 0;
    if (ty_status status = search_bases(engine, newest.read.at, &at))
        return status;
    return read_begin(engine, at, begin, found);
}

} // namespace

ty_status newest_base(const ty_engine &engine, lookup how, owned_message *begin, bool *found) {
    int readings = 0;
    return read_again(&readings, [&] { return read_newest_base(engine, how, begin, found); });
}

// ST4: a thread that waits is reported only what a base and records lead to.
ty_status goes_on(const ty_engine &engine, const message_header &base, bool *does) {
    owned_message there;
    uint64_t newest = 0;
    *does = false;
    if (ty_status status = engine.newest(engine.context, TY_ENGINE_RECORDS, &newest))
        return status;
    if (base.records_at == 0 || newest < base.records_at)
        return TY_OK;
    if (ty_status status = first_after(engine, TY_ENGINE_RECORDS, base.records_at - 1, answer_ms, &there, does)) {
        *does = false; // the message cannot be read
        return is_wrong(status) ? TY_OK : status;
    }
    const message_header &now = there.read.header;
    *does = *does && there.read.at == base.records_at && now.number == base.record_number &&
            now.checksum == base.record_checksum;
    return TY_OK;
}

} // namespace taiyen::standby
