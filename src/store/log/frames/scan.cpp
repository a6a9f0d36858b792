// Reading a log: the records of all its log streams, in the order of their LSNs, up to the first that is missing.
#include "stream_reader.hpp"

#include <algorithm>
#include <new>

namespace taiyen {
namespace {

class scanner {
public:
    scanner(const char *name, const log_positions &from, const log_reader &reader, log_contents &contents)
        : name_(name), from_(from), reader_(reader), contents_(contents) {}
    scanner(const scanner &) = delete;
    scanner &operator=(const scanner &) = delete;
    ~scanner() {
        for (uint32_t p = 0; p < count_; ++p)
            at(p).~stream_reader();
    }

    ty_status begin(const ty_log_sink &sink, const log_identity &identity, const log_header &header);
    ty_status find_ends(log_positions *ends);
    ty_status run();

private:
    stream_reader &at(uint32_t p) { return *std::launder(reinterpret_cast<stream_reader *>(memory_[p])); }
    ty_status advance(uint32_t p);
    ty_status end_frame();
    ty_status take(const log_record &record);
    ty_status merge();
    ty_status read_to(uint32_t p, uint64_t limit, stream_position *end);
    void note_next();
    uint64_t claimed();
    ty_status check_claims();

    const char *name_;
    const log_positions &from_;
    const log_reader &reader_;
    log_contents &contents_;
    bool gap_ = false; // after it only independent records count
    bool bounded_ = false;
    // Of the record passed on last before any gap: its log stream, and the position before its frame.
    uint32_t last_stream_ = log_streams_max;
    stream_position last_position_{};

    uint32_t count_ = 0;
    bool has_record_[log_streams_max] = {};
    alignas(stream_reader) char memory_[log_streams_max][sizeof(stream_reader)];
};

// A snapshot taken here holds every record passed on; the position of a log stream may be before records that it holds,
// too.
ty_status scanner::end_frame() {
    if (!reader_.frame || gap_ || (count_ == 1 && at(0).repeats()))
        return TY_OK;
    log_positions here{contents_.end.lsn, count_};
    for (uint32_t p = 0; p < count_; ++p)
        here.at[p] = at(p).here();
    return reader_.frame(reader_.context, here);
}

// Moves to the next record of a log stream.
ty_status scanner::advance(uint32_t p) {
    for (;;) {
        stream_reader::event what;
        if (ty_status status = at(p).next(&what))
            return status;
        has_record_[p] = what == stream_reader::event::record;
        if (what != stream_reader::event::frame_end)
            return TY_OK;
        if (ty_status status = end_frame())
            return status;
    }
}

// L11: after a missing record only independent ones are passed on.
ty_status scanner::take(const log_record &record) {
    contents_.highest = record.lsn;
    if (!gap_ && record.lsn != contents_.end.lsn + 1 && !fault("reader_goes_on_after_a_gap"))
        note_next();
    gap_ = gap_ || record.lsn != contents_.end.lsn + 1;
    if (gap_ && (!record.independent || fault("independent_record_after_a_gap_left_out"))) {
        contents_.left_out += 1;
        return TY_OK;
    }
    if (gap_) {
        contents_.after_gap += 1;
    } else {
        contents_.end.lsn = record.lsn;
        last_stream_ = record.stream;
        last_position_ = at(record.stream).here();
    }
    contents_.records += 1;
    contents_.record_bytes += record.size;
    return reader_.record ? reader_.record(reader_.context, record) : TY_OK;
}

ty_status scanner::merge() {
    for (uint32_t p = 0; p < count_; ++p)
        if (ty_status status = advance(p))
            return status;
    for (;;) {
        uint32_t first = count_;
        for (uint32_t p = 0; p < count_; ++p)
            if (has_record_[p] && (first == count_ || at(p).record().lsn < at(first).record().lsn))
                first = p;
        if (first == count_)
            return TY_OK;
        const log_record record = at(first).record();
        bounded_ = record.lsn > reader_.up_to;
        if (bounded_)
            return TY_OK;
        // L8: each LSN is in one log stream.
        if (record.lsn <= contents_.highest)
            return failure(TY_E_DAMAGED, "read the log: transaction %llu is in it twice",
                           (unsigned long long)record.lsn)
                .at(name_)
                .remedy("restore the heap's files from a backup");
        if (ty_status status = take(record))
            return status;
        bounded_ = contents_.end.lsn >= reader_.up_to; // what follows is not needed
        if (bounded_)
            return TY_OK;
        if (ty_status status = advance(first))
            return status;
    }
}

// L15: a later reading can continue where this one ended.
void scanner::note_next() {
    contents_.next = {contents_.end.lsn, count_};
    for (uint32_t p = 0; p < count_; ++p)
        contents_.next.at[p] = p == last_stream_ ? last_position_ : at(p).here();
}

// Reads a ring in use: *end is after the last frame, or before the first one that begins with a record beyond the
// limit.
ty_status scanner::read_to(uint32_t p, uint64_t limit, stream_position *end) {
    for (bool first = true;;) {
        stream_reader::event what;
        if (ty_status status = at(p).next(&what))
            return status;
        const bool beyond = first && what == stream_reader::event::record && at(p).record().lsn > limit;
        if (beyond || what == stream_reader::event::end) {
            *end = at(p).here();
            return TY_OK;
        }
        first = what == stream_reader::event::frame_end;
    }
}

// L13: what is read beside a writer is as whole as a log that a crash left. The rings are read one after the other, so
//      a frame may claim records that a ring read earlier did not show yet. All of them were written before the claim,
//      and can be read now. Frames read now claim no more than that.
ty_status scanner::find_ends(log_positions *ends) {
    *ends = {from_.lsn, count_};
    for (uint32_t p = 0; p < count_; ++p)
        if (ty_status status = read_to(p, UINT64_MAX, &ends->at[p]))
            return status;
    const uint64_t limit = fault("claimed_frames_not_looked_for_again") ? 0 : claimed();
    for (uint32_t p = 0; p < count_; ++p)
        if (ty_status status = read_to(p, limit, &ends->at[p]))
            return status;
    return TY_OK;
}

uint64_t scanner::claimed() {
    uint64_t highest = 0;
    for (uint32_t p = 0; p < count_; ++p)
        highest = std::max(highest, at(p).claimed());
    return highest;
}

// L9: a frame claims that the missing record had been durable.
ty_status scanner::check_claims() {
    if (claimed() <= contents_.end.lsn || bounded_ || fault("lost_frame_ends_the_log"))
        return TY_OK;
    return failure(TY_E_DAMAGED, "read the log: transaction %llu was written and is not there",
                   (unsigned long long)contents_.end.lsn + 1)
        .at(name_)
        .remedy("transactions from here on are unreadable: restore the heap's files from a backup");
}

ty_status scanner::begin(const ty_log_sink &sink, const log_identity &identity, const log_header &header) {
    contents_ = {};
    contents_.end = contents_.tail = contents_.next = from_;
    contents_.highest = from_.lsn;
    for (; count_ < from_.count; ++count_) {
        const stream_position *end = reader_.end ? &reader_.end->at[count_] : nullptr;
        new (memory_[count_]) stream_reader(sink, name_, identity.log, header, count_, end, reader_.read_ahead,
                                            reader_.in_use, reader_.brief);
    }
    for (uint32_t p = 0; p < count_; ++p)
        if (ty_status status = at(p).begin(from_.at[p], from_.lsn))
            return status;
    return TY_OK;
}

ty_status scanner::run() {
    ty_status status = merge();
    if (!gap_)
        note_next();
    for (uint32_t p = 0; p < count_; ++p) {
        contents_.end.at[p] = at(p).end();
        contents_.tail.at[p] = at(p).tail();
        contents_.frames += at(p).frames();
    }
    return status ? status : check_claims();
}

} // namespace

ty_status log_scan(const ty_log_sink &sink, const char *name, const log_identity &identity, const log_positions &from,
                   const log_reader &reader, log_contents *contents) {
    log_header header;
    if (ty_status status = log_check(sink, name, &identity, &header))
        return status;
    if (from.count != header.streams)
        return failure(TY_E_MISMATCH, "read a log of %u log stream%s from a position in one of %u", header.streams,
                       plural(header.streams), uint32_t(from.count))
            .at(name)
            .remedy("restore the heap's files from copies made together");
    log_positions ends;
    log_reader bounded = reader;
    if (reader.in_use && from.count > 1 && !reader.end && reader.up_to == UINT64_MAX) {
        scanner first(name, from, reader, *contents);
        if (ty_status status = first.begin(sink, identity, header))
            return status;
        if (ty_status status = first.find_ends(&ends))
            return status;
        bounded.end = &ends;
    }
    scanner second(name, from, bounded, *contents);
    ty_status status = second.begin(sink, identity, header);
    return status ? status : second.run();
}

ty_status log_scan_stream(const ty_log_sink &sink, const char *name, const log_identity &identity, uint32_t stream,
                          const stream_position &from, uint64_t lsn, const stream_position &end, void *context,
                          ty_status (*record)(void *context, const log_record &record)) {
    log_header header;
    if (ty_status status = log_check(sink, name, &identity, &header))
        return status;
    stream_reader reader(sink, name, identity.log, header, stream, &end, false);
    if (ty_status status = reader.begin(from, lsn))
        return status;
    for (;;) {
        stream_reader::event what;
        if (ty_status status = reader.next(&what))
            return status;
        if (what == stream_reader::event::end)
            return TY_OK;
        if (what == stream_reader::event::record)
            if (ty_status status = record(context, reader.record()))
                return status;
    }
}

// A frame lies right after the one before it, or at the ring's front.
ty_status log_peek(const ty_log_sink &sink, const log_header &header, const log_positions &end, uint64_t *print) {
    io_buffer block;
    if (ty_status status = block.create(header.block_bytes))
        return status;
    *print = 0;
    for (uint32_t p = 0; p < end.count; ++p) {
        const ring_geometry ring = geometry_of(header, p);
        for (uint64_t ring_offset : {end.at[p].offset % ring.bytes, uint64_t{0}}) {
            if (ty_status status = os::call_whole(sink.read, sink.context, ring.offset + ring_offset, block.data(),
                                                  header.block_bytes))
                return status;
            *print = checksum(block.data(), header.block_bytes, *print);
        }
    }
    return TY_OK;
}

} // namespace taiyen
