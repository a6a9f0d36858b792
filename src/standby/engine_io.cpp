#include "engine_io.hpp"

#include <random>

namespace taiyen::standby {

namespace {

struct reading {
    ty_engine_log log;
    owned_message *into;
    bool found = false;
    own::kept_failure failed;
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

ty_status first_behind(const ty_engine &engine, ty_engine_log log, uint64_t behind, uint32_t timeout_ms,
                       owned_message *first, bool *found) {
    reading reads{log, first, false, {}};
    if (ty_status status = engine.read(engine.context, log, behind, timeout_ms, take_first, &reads))
        return status;
    *found = reads.found;
    return reads.failed.tell();
}

ty_status newest_message(const ty_engine &engine, ty_engine_log log, owned_message *newest, bool *found) {
    uint64_t position = 0;
    *found = false;
    if (ty_status status = engine.newest(engine.context, log, &position))
        return status;
    if (position == 0)
        return TY_OK;
    if (ty_status status = first_behind(engine, log, position - 1, answer_ms, newest, found))
        return status;
    return *found ? TY_OK
                  : fail(TY_E_IO, "read the engine's newest message: it did not come", "",
                         "see whether the server is well, and whether somebody removed the message");
}

// From a message on that its writer knew to be acknowledged: those before the newest one may be void, and it, too.
ty_status newest_place(const ty_engine &engine, place *at, bool *found) {
    owned_message one;
    if (ty_status status = newest_message(engine, TY_ENGINE_RECORDS, &one, found))
        return status;
    if (!*found)
        return TY_OK;
    const uint64_t end = one.read.at, known = one.read.header.known_at;
    tail last{};
    bool counts = false;
    if (known >= end)
        return damaged(end, "it names a later one as one before it");
    for (at->end_at = known ? known - 1 : 0; at->end_at < end; at->end_at = one.read.at) {
        if (ty_status status = first_behind(engine, TY_ENGINE_RECORDS, at->end_at, answer_ms, &one, found))
            return status;
        if (!*found)
            return fail(TY_E_IO, "read the engine's newest messages: they do not come", "", "try again");
        const message_header_1 &header = one.read.header;
        if (known && last.number == 0) // how many void ones are before it is not known here
            last = {
                header.number - 1, header.previous, 0, header.term - (header.kind == uint32_t(message_kind::term)), 0,
                counter_max};
        if (ty_status status = judge(one.read, &last, &counts))
            return status;
        if (counts)
            std::swap(at->newest, one);
        if (counts) // what its bytes were read from has moved with it
            one.read.at = at->newest.read.at;
    }
    return TY_OK;
}

uint64_t random_run() {
    std::random_device source;
    return uint64_t{source()} << 32 | source();
}

message_header_1 header_behind(const message_header_1 &before, message_kind kind) {
    message_header_1 header{};
    header.kind = uint32_t(kind);
    header.number = before.number + 1;
    header.previous = before.checksum;
    header.term = before.term;
    memcpy(header.owner, before.owner, sizeof header.owner);
    header.position = before.position;
    header.line_sequence = before.line_sequence;
    return header;
}

ty_status append_one(const ty_engine &engine, ty_engine_log log, uint64_t term, uint64_t behind,
                     const std::vector<uint8_t> &bytes, uint64_t *position) {
    uint64_t count = 0;
    if (ty_status status = engine.run(engine.context, log, term, behind))
        return status;
    if (ty_status status = engine.append(engine.context, log, bytes.data(), bytes.size()))
        return status;
    if (ty_status status = engine.acknowledged(engine.context, log, 0, answer_ms, &count, position))
        return status;
    return count ? TY_OK
                 : fail(TY_E_IO, "write to the engine: it does not acknowledge", "", "see whether the server is well");
}

std::vector<uint8_t> message_of(const message_header_1 &header, const void *payload, size_t size) {
    std::vector<uint8_t> bytes(sizeof header + size);
    memcpy(bytes.data(), &header, sizeof header);
    if (size)
        memcpy(bytes.data() + sizeof header, payload, size);
    seal_message(bytes);
    return bytes;
}

// Where a begin is not right behind the message that its writer knew, it was refused, and what it says of the newest
// whole base may be old: what is between them is read.
static ty_status bases_since(const ty_engine &engine, const message &begin, uint64_t *complete) {
    owned_message one;
    for (uint64_t behind = begin.header.known_at; behind < begin.at; behind = one.read.at) {
        bool found = false;
        if (ty_status status = first_behind(engine, TY_ENGINE_BASES, behind, answer_ms, &one, &found))
            return status;
        if (!found)
            return fail(TY_E_IO, "read the engine's bases: they do not come", "", "try again");
        if (one.read.header.kind == uint32_t(message_kind::base_end))
            *complete = one.read.header.begin;
    }
    return TY_OK;
}

// ST6: one whose last message is not there is none.
ty_status newest_base(const ty_engine &engine, owned_message *begin, bool *found) {
    owned_message newest;
    if (ty_status status = newest_message(engine, TY_ENGINE_BASES, &newest, found))
        return status;
    if (!*found)
        return TY_OK;
    const message_header_1 &header = newest.read.header;
    uint64_t at = header.kind == uint32_t(message_kind::base_end) ? header.begin : header.complete;
    *found = false;
    if (header.kind == uint32_t(message_kind::base_begin))
        if (ty_status status = bases_since(engine, newest.read, &at))
            return status;
    if (at == 0)
        return TY_OK;
    if (ty_status status = first_behind(engine, TY_ENGINE_BASES, at - 1, answer_ms, begin, found))
        return status;
    if (!*found)
        return fail(TY_E_IO, "read the engine's newest base: it did not come", "", "try again");
    if (begin->read.header.kind == uint32_t(message_kind::base_begin) && begin->read.at == at)
        return TY_OK;
    return damaged(at, "no base begins where the engine says");
}

} // namespace taiyen::standby
