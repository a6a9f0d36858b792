// Reading a log. docs/design/log.md tells where one ends, and when its end is damage.
#include "ring_view.hpp"

#include <cstring>

namespace taiyen {
namespace {

constexpr uint64_t any_session = 1; // is none, but not 0

// What looks like a frame at some place, and what its checksum says.
struct found_frame {
    bool plausible;
    bool session_start;
    uint32_t unstable;
    uint32_t payload_bytes;
    uint64_t from;     // it follows a frame that ended there, if anywhere
    uint64_t position; // then it lies here
    uint64_t bytes;
    const uint8_t *payload;
};

class scanner {
public:
    scanner(const ty_log_sink &sink, const char *name, const log_identity &identity, const ring_geometry &ring,
            const log_reader &reader, log_contents &contents)
        : name_(name), log_(identity.log), ring_(ring), reader_(reader), contents_(contents),
          view_(sink, ring, reader.read_ahead) {}

    ty_status run(log_mark from);

private:
    ty_status look_at(uint64_t place, uint64_t session, found_frame *frame);
    ty_status next_frame(found_frame *frame, bool *found);
    ty_status take(const found_frame &frame);
    ty_status take_session_start(const found_frame &frame);
    ty_status take_records(const found_frame &frame);
    void note_boundary(const found_frame &frame);
    ty_status check_turn(const found_frame &frame, uint64_t reach) const;
    ty_status look_behind_gap(uint64_t session, found_frame *frame, bool *found);
    ty_status session_at(uint64_t position, uint64_t *session);
    // As many frames as can be in flight, and what was left free before the ring's end.
    uint64_t reach_of(uint64_t gap) const { return gap + uint64_t{frames_unstable_1 + 1} * ring_.frame_bytes_max; }
    ty_status end_or_damage(found_frame *frame, bool *found);
    ty_status damaged(const char *what, uint64_t position) const;
    bool is_known_end() const {
        return reader_.end && position_ == reader_.end->position && session_ == reader_.end->session;
    }

    const char *name_;
    uint64_t log_;
    const ring_geometry &ring_;
    const log_reader &reader_;
    log_contents &contents_;
    ring_view view_;

    // Where the reading stands. counted_: the sequence by this session's count; it is behind contents_.end.sequence
    // while the session repeats what may not have been durable before it (L4).
    uint64_t position_ = 0;
    uint64_t session_ = 0;
    uint64_t counted_ = 0;
    uint64_t repeated_until_ = 0;
    uint64_t session_frames_ = 0;             // without its start
    log_mark before_[frames_unstable_1] = {}; // the places before the last of them, by number
};

ty_status scanner::damaged(const char *what, uint64_t position) const {
    return failure(TY_E_DAMAGED, "read the log at position %llu: %s", (unsigned long long)position, what)
        .at(name_, ring_.offset + position % ring_.bytes)
        .remedy("transactions from here on are unreadable: restore the heap's files from a backup");
}

// session: to which a frame that starts none belongs.
ty_status scanner::look_at(uint64_t place, uint64_t session, found_frame *frame) {
    *frame = {};
    const uint8_t *bytes = nullptr;
    if (ty_status status = view_.get(place, ring_.block_bytes, &bytes))
        return status;
    frame_header_1 header;
    memcpy(&header, bytes, sizeof header);
    frame->payload_bytes = header.shape & frame_payload_max_1;
    frame->unstable = header.shape >> 23 & frame_unstable_max_1;
    frame->session_start = header.shape & frame_session_start_1;
    frame->bytes = frame_bytes(ring_, frame->payload_bytes);
    if (header.shape >> 31 || frame->payload_bytes == 0 || frame->unstable >= frames_unstable_1 ||
        frame->bytes > ring_.frame_bytes_max || frame->bytes > ring_.bytes - place ||
        (frame->session_start && frame->payload_bytes != sizeof(session_start_1)) ||
        (!frame->session_start && session == 0))
        return TY_OK;
    if (ty_status status = view_.get(place, frame->bytes, &bytes))
        return status;
    frame->from = frame_from(log_, frame->session_start ? 0 : session, bytes, frame->payload_bytes);
    frame->payload = bytes + sizeof header;
    bool skips = frame->session_start && place == 0;
    frame->position = skips ? next_front(ring_, frame->from) : frame->from;
    frame->plausible =
        frame->from % ring_.block_bytes == 0 && frame->from <= INT64_MAX && frame->position % ring_.bytes == place;
    return TY_OK;
}

session_start_1 start_in(const found_frame &frame) {
    session_start_1 start;
    memcpy(&start, frame.payload, sizeof start);
    return start;
}

// A turn that was in flight when its session died may still lie at the ring's front when the next session comes there.
bool is_dead_turn(const found_frame &frame, uint64_t session) {
    return frame.session_start && start_in(frame).turn && start_in(frame).previous_session != session;
}

// The frame that follows what was read: right there, or a session start at the ring's front.
ty_status scanner::next_frame(found_frame *frame, bool *found) {
    for (uint64_t place : {position_ % ring_.bytes, uint64_t{0}}) {
        if (ty_status status = look_at(place, session_, frame))
            return status;
        *found = frame->plausible && frame->from == position_ && !is_dead_turn(*frame, session_);
        if (*found)
            return TY_OK;
    }
    return TY_OK;
}

// L5: what a session continues must have been read, or be in the snapshot that the reading started from.
ty_status scanner::take_session_start(const found_frame &frame) {
    const session_start_1 start = start_in(frame);
    if (start.sequence > contents_.end.sequence)
        return damaged("what follows continues transactions that are missing", position_);
    if (!is_session(log_, start.session))
        return damaged("a session has no number", position_);
    session_ = start.session;
    counted_ = start.sequence;
    repeated_until_ = contents_.end.sequence;
    session_frames_ = 0;
    return TY_OK;
}

ty_status scanner::take_records(const found_frame &frame) {
    for (size_t at = 0; at < frame.payload_bytes;) {
        size_t length = 0;
        size_t taken = get_length(frame.payload + at, frame.payload_bytes - at, &length);
        if (taken == 0 || length == 0 || length > frame.payload_bytes - at - taken)
            return damaged("a frame does not hold whole records", frame.position);
        at += taken;
        ++counted_;
        if (counted_ > contents_.end.sequence) { // else it was read before
            contents_.end.sequence = counted_;
            contents_.records += 1;
            contents_.record_bytes += length;
            if (reader_.record)
                if (ty_status status =
                        reader_.record(reader_.context, counted_, frame.position, frame.payload + at, length))
                    return status;
        }
        at += length;
    }
    return TY_OK;
}

// L4: a frame says that all before it but the last few were durable. Once these hold all that was read when the session
// started, what is not known to be durable begins behind them.
void scanner::note_boundary(const found_frame &frame) {
    before_[session_frames_ % frames_unstable_1] = {position_, session_, counted_};
    if (frame.unstable <= session_frames_) { // else the session's start itself is among them
        const log_mark &durable = before_[(session_frames_ - frame.unstable) % frames_unstable_1];
        if (durable.sequence >= repeated_until_)
            contents_.tail = durable;
    }
    ++session_frames_;
}

ty_status scanner::take(const found_frame &frame) {
    if (!frame.session_start)
        note_boundary(frame);
    if (ty_status status = frame.session_start ? take_session_start(frame) : take_records(frame))
        return status;
    position_ = frame.position + frame.bytes;
    contents_.end.position = position_;
    contents_.end.session = session_;
    contents_.frames += 1;
    // A session that repeats records (L4) counts what was read already.
    return reader_.frame && counted_ == contents_.end.sequence ? reader_.frame(reader_.context, contents_.end) : TY_OK;
}

// L1, L5: what was written one or more turns of the ring later lies on what was free because a snapshot held it. The
// front of the ring tells of it after each turn.
ty_status scanner::check_turn(const found_frame &frame, uint64_t reach) const {
    bool later = frame.plausible && frame.from >= position_ && frame.position >= reach &&
                 (frame.session_start || frame.from - position_ <= 2 * ring_.bytes);
    return later ? damaged("it was overwritten after a snapshot that is missing", position_) : TY_OK;
}

// L6. Goes through what lies behind the place where no frame follows, as far as frames can lie that were in flight with
// the one missing. A session start there that continues no more than what was read goes on (L4).
ty_status scanner::look_behind_gap(uint64_t session, found_frame *frame, bool *found) {
    bool was_stable = false;
    unsigned behind = 0;
    const uint64_t reach = reach_of(position_);
    for (uint64_t at = position_, step; at < reach; at += step) {
        step = ring_.block_bytes;
        if (ty_status status = look_at(at % ring_.bytes, session, frame))
            return status;
        if (ty_status status = check_turn(*frame, reach))
            return status;
        if (!frame->plausible || frame->from < position_ || frame->position != at || is_dead_turn(*frame, session))
            continue;
        if (frame->session_start && start_in(*frame).sequence <= contents_.end.sequence) {
            *found = true;
            return TY_OK;
        }
        was_stable = was_stable || frame->unstable < ++behind;
        session = frame->session_start ? start_in(*frame).session : session;
        step = frame->bytes;
    }
    return was_stable ? damaged("frames that were written are not there, and later ones are", position_) : TY_OK;
}

// The session of a frame that follows at a position, if it is one at all; else 0.
ty_status scanner::session_at(uint64_t position, uint64_t *session) {
    found_frame frame;
    if (ty_status status = look_at(position % ring_.bytes, any_session, &frame))
        return status;
    *session = 0;
    if (frame.payload && !frame.session_start) {
        uint64_t it = frame_session(log_, position, frame.payload - sizeof(frame_header_1), frame.payload_bytes);
        *session = is_session(log_, it) ? it : 0;
    }
    return TY_OK;
}

// What is missing may be a session's start: then it took one block, and frames of a session unknown so far follow it.
ty_status scanner::end_or_damage(found_frame *frame, bool *found) {
    uint64_t sessions[3] = {session_, 0, 0};
    uint64_t front = next_front(ring_, position_);
    if (ty_status status = session_at(position_ + ring_.block_bytes, &sessions[1]))
        return status;
    if (ty_status status = session_at(front + ring_.block_bytes, &sessions[2]))
        return status;
    *found = false;
    for (unsigned i = 0; i < 3; ++i)
        if (i == 0 || sessions[i])
            if (ty_status status = look_behind_gap(sessions[i], frame, found); status || *found)
                return status;
    if (ty_status status = look_at(0, session_, frame))
        return status;
    return check_turn(*frame, reach_of(position_));
}

ty_status scanner::run(log_mark from) {
    position_ = from.position;
    session_ = from.session;
    counted_ = repeated_until_ = from.sequence;
    contents_ = {};
    contents_.end = contents_.tail = from;
    if (ty_status status = view_.create())
        return status;
    while (!is_known_end()) {
        found_frame frame;
        bool found = false;
        ty_status status = next_frame(&frame, &found);
        if (!status && !found)
            status = end_or_damage(&frame, &found);
        if (status || !found)
            return status;
        if ((status = take(frame)))
            return status;
    }
    return TY_OK;
}

} // namespace

ty_status log_scan(const ty_log_sink &sink, const char *name, const log_identity &identity, log_mark from,
                   const log_reader &reader, log_contents *contents) {
    log_header_2 header;
    if (ty_status status = log_check(sink, name, &identity, &header))
        return status;
    const ring_geometry ring = geometry_of(header);
    if (from.position % ring.block_bytes || from.position > INT64_MAX)
        return failure(TY_E_DAMAGED, "read the log from position %llu", (unsigned long long)from.position)
            .at(name)
            .remedy("the heap's image is damaged: restore the files from a backup");
    return scanner(sink, name, identity, ring, reader, *contents).run(from);
}

} // namespace taiyen
