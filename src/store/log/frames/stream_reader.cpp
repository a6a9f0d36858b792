// Reading one ring of a log. docs/design/log.md describes where a ring ends, and when its end is damage.
#include "stream_reader.hpp"

#include <algorithm>
#include <cstring>

namespace taiyen {
namespace {

constexpr uint64_t any_generation = 1; // not a valid one, but not 0

generation_start start_in(const found_frame &frame) {
    generation_start start;
    memcpy(&start, frame.payload, sizeof start);
    return start;
}

// A wrap that was in flight when its generation died may still lie at the ring's front when the next generation gets
// there.
bool is_dead_wrap(const found_frame &frame, uint64_t generation) {
    return frame.generation_start && start_in(frame).wrap && start_in(frame).previous_generation != generation &&
           !fault("dead_wrap_believed");
}

} // namespace

ty_status stream_reader::damaged(const char *what, uint64_t position) const {
    return failure(TY_E_DAMAGED, "read the log at position %llu: %s", (unsigned long long)position, what)
        .at(name_, ring_.offset + position % ring_.bytes)
        .remedy("transactions from here on are unreadable: restore the heap's files from a backup");
}

// generation: that of the frame, unless it starts one.
ty_status stream_reader::look_at(uint64_t ring_offset, uint64_t generation, found_frame *frame) {
    *frame = {};
    const uint8_t *bytes = nullptr;
    if (ty_status status = view_.get(ring_offset, ring_.block_bytes, &bytes))
        return status;
    frame_header header;
    memcpy(&header, bytes, sizeof header);
    frame->payload_bytes = header.shape & frame_payload_max;
    frame->unstable = header.shape >> 23 & frame_unstable_max;
    frame->generation_start = header.shape & frame_generation_start;
    frame->bytes = frame_bytes(ring_, frame->payload_bytes);
    if (header.shape >> 31 || frame->payload_bytes == 0 || frame->unstable >= frames_unstable ||
        frame->bytes > ring_.frame_bytes_max || frame->bytes > ring_.bytes - ring_offset ||
        (frame->generation_start ? frame->payload_bytes != sizeof(generation_start)
                                 : frame->payload_bytes <= ring_.claim_bytes) ||
        (!frame->generation_start && generation == 0))
        return TY_OK;
    if (ty_status status = view_.get(ring_offset, frame->bytes, &bytes))
        return status;
    frame->from = frame_from(log_, frame->generation_start ? 0 : generation, bytes, frame->payload_bytes);
    frame->payload = bytes + sizeof header;
    bool skips = frame->generation_start && ring_offset == 0;
    frame->position = skips ? next_front(ring_, frame->from) : frame->from;
    frame->plausible = frame->from % ring_.block_bytes == 0 && frame->from <= INT64_MAX &&
                       frame->position % ring_.bytes == ring_offset;
    return TY_OK;
}

ty_status stream_reader::overwritten() const {
    return failure(TY_E_BUSY, "read the log at position %llu: it was overwritten meanwhile",
                   (unsigned long long)position_)
        .at(name_, ring_.offset + position_ % ring_.bytes)
        .remedy("a newer snapshot of the heap holds what was there: read on from that one");
}

// The frame that follows what was read: right there, or a generation start at the ring's front.
ty_status stream_reader::next_frame(found_frame *frame, bool *found) {
    for (uint64_t ring_offset : {position_ % ring_.bytes, uint64_t{0}}) {
        if (ty_status status = look_at(ring_offset, generation_, frame))
            return status;
        *found = frame->plausible && frame->from == position_ && !is_dead_wrap(*frame, generation_);
        if (*found)
            return TY_OK;
    }
    return TY_OK;
}

// L5: what a generation continues must have been read, or be in the snapshot that the reading started from. Where one
//     of several rings begins a generation, it may be in other rings, and the frames that follow claim it (L9).
ty_status stream_reader::take_generation_start(const found_frame &frame) {
    const generation_start start = start_in(frame);
    const bool in_all = ring_.claim_bytes && !start.wrap;
    if (start.lsn > reached_ && !in_all && !fault("missing_snapshot_not_noticed"))
        return in_use_ ? overwritten() : damaged("what follows continues transactions that are missing", position_);
    if (!is_generation(log_, start.generation))
        return damaged("a generation has no number", position_);
    generation_ = start.generation;
    counted_ = start.lsn;
    repeated_until_ = reached_;
    generation_frames_ = 0;
    return TY_OK;
}

// L9: the frame claims what had been durable in all log streams.
void stream_reader::take_claim(const found_frame &frame) {
    if (ring_.claim_bytes) {
        frame_claim claim;
        memcpy(&claim, frame.payload, sizeof claim);
        claimed_ = std::max(claimed_, claim.durable);
    }
}

// Finds the next record in the current frame.
ty_status stream_reader::next_record(bool *found) {
    *found = false;
    while (!*found && at_ < frame_.payload_bytes) {
        const uint8_t *at = frame_.payload + at_;
        size_t left = frame_.payload_bytes - at_, length = 0;
        size_t taken = get_length(at, left, &length), step = 0;
        uint64_t skipped = 0;
        bool independent = false;
        if (ring_.claim_bytes && taken)
            step = get_step(at + taken, left - taken, &skipped, &independent);
        if (taken == 0 || length == 0 || (ring_.claim_bytes && !step) || length > left - taken - step)
            return damaged("a frame does not hold whole records", frame_.position);
        if (skipped >= counter_max)
            return damaged("a frame holds a record with an impossible number", frame_.position);
        counted_ += 1 + skipped;
        if (counted_ > counter_max)
            return damaged("a frame holds a record with an impossible number", frame_.position);
        at_ += taken + step + length;
        if (counted_ <= reached_ && !fault("repeated_record_replayed_twice")) // it was read before
            continue;
        reached_ = counted_;
        record_ = {counted_, frame_.position, at + taken + step, length, stream_, independent};
        *found = true;
    }
    return TY_OK;
}

// L4: a frame says that all frames before it but the last few were durable. Once the durable ones hold everything that
//     was read when the generation started, what is not known to be durable begins after them.
void stream_reader::note_boundary(const found_frame &frame) {
    before_[generation_frames_ % frames_unstable] = {position_, generation_, counted_};
    if (frame.unstable <= generation_frames_) { // else the generation's start itself is among them
        const stream_position &durable = before_[(generation_frames_ - frame.unstable) % frames_unstable];
        if (durable.lsn >= repeated_until_)
            tail_ = durable;
    }
    ++generation_frames_;
}

ty_status stream_reader::take(const found_frame &frame) {
    frames_ += 1;
    if (frame.generation_start) {
        if (ty_status status = take_generation_start(frame))
            return status;
    } else {
        note_boundary(frame);
        take_claim(frame);
        before_frame_ = {position_, generation_, counted_};
        frame_ = frame;
        at_ = ring_.claim_bytes;
        has_frame_ = true;
    }
    position_ = frame.position + frame.bytes;
    return TY_OK;
}

// L1, L5: frames of one or more wraps later lie where the ring was free because a snapshot held the old content. The
// front of the ring shows this after each wrap. A start of another log, or of another log stream, looks there like one
// of an arbitrary wrap, but its generation does not match this log stream.
ty_status stream_reader::check_wrap(const found_frame &frame, uint64_t reach) const {
    bool later = frame.plausible && frame.from >= position_ && frame.position >= reach &&
                 (frame.generation_start ? is_generation(log_, start_in(frame).generation)
                                         : frame.from - position_ <= 2 * ring_.bytes);
    if (!later || fault("overwritten_wrap_taken_for_the_end"))
        return TY_OK;
    return in_use_ ? overwritten() : damaged("it was overwritten after a snapshot that is missing", position_);
}

// L6: a readable end is not taken for the acknowledged end. Searches after the position where no frame follows, as far
//     as frames can lie that were in flight with the missing one. A generation start there that continues no more than
//     what was read is continued with (L4).
ty_status stream_reader::search_after_gap(uint64_t generation, found_frame *frame, bool *found) {
    bool was_durable = false;
    unsigned after = 0;
    const uint64_t reach = fault("search_after_a_gap_ends_early") ? position_ : reach_of(position_);
    for (uint64_t at = position_, step; at < reach; at += step) {
        step = ring_.block_bytes;
        if (ty_status status = look_at(at % ring_.bytes, generation, frame))
            return status;
        if (ty_status status = check_wrap(*frame, reach))
            return status;
        if (!frame->plausible || frame->from < position_ || frame->position != at || is_dead_wrap(*frame, generation))
            continue;
        if (frame->generation_start && start_in(*frame).lsn <= reached_) {
            *found = true;
            return TY_OK;
        }
        was_durable = was_durable || frame->unstable < ++after + fault("crash_taken_for_damage");
        generation = frame->generation_start ? start_in(*frame).generation : generation;
        step = frame->bytes;
    }
    return was_durable ? damaged("frames that were written are not there, and later ones are", position_) : TY_OK;
}

// The generation of a frame that follows at this offset, or 0 if there is none.
ty_status stream_reader::generation_at(uint64_t position, uint64_t *generation) {
    found_frame frame;
    if (ty_status status = look_at(position % ring_.bytes, any_generation, &frame))
        return status;
    *generation = 0;
    if (frame.payload && !frame.generation_start) {
        uint64_t it = frame_generation(log_, position, frame.payload - sizeof(frame_header), frame.payload_bytes);
        *generation = is_generation(log_, it) ? it : 0;
    }
    return TY_OK;
}

// The missing frame may be a generation's start: then it took one block, and frames of a generation unknown so far
// follow it.
ty_status stream_reader::end_or_damage(found_frame *frame, bool *found) {
    uint64_t generations[3] = {generation_, 0, 0};
    uint64_t front = next_front(ring_, position_);
    if (ty_status status = generation_at(position_ + ring_.block_bytes, &generations[1]))
        return status;
    if (ty_status status = generation_at(front + ring_.block_bytes, &generations[2]))
        return status;
    *found = false;
    for (unsigned i = 0; i < 3; ++i)
        if (i == 0 || generations[i])
            if (ty_status status = search_after_gap(generations[i], frame, found); status || *found)
                return status;
    if (ty_status status = look_at(0, generation_, frame))
        return status;
    return check_wrap(*frame, reach_of(position_));
}

// L14: a reader that the writer has passed gets TY_E_BUSY. If the ring's front shows a later wrap than the reading is
//      in, the writer may have passed this place again.
ty_status stream_reader::missing_while_in_use(ty_status damage) {
    if (damage == TY_E_DAMAGED && fault("lost_frame_taken_for_one_being_written"))
        return TY_OK;
    if (damage != TY_E_DAMAGED)
        return damage;
    found_frame front;
    if (ty_status status = look_at(0, generation_, &front))
        return status;
    const bool later = front.plausible && front.generation_start && is_generation(log_, start_in(front).generation) &&
                       front.position > position_;
    return later ? overwritten() : damaged("frames that were written are not there, and later ones are", position_);
}

// L12: a frame is missing only if it is not found when read again. What lies after this place may have been written
//      since the place was read, and then shows that a frame had been here. So the place is read once more after that.
ty_status stream_reader::find_while_in_use(found_frame *frame, bool *found) {
    view_.forget();
    if (ty_status status = next_frame(frame, found); status || *found)
        return status;
    if (known_end_)
        return overwritten(); // it was there
    const ty_status after = end_or_damage(frame, found);
    if (!after && !*found)
        return TY_OK;
    const found_frame later = *frame; // a generation's start, if anything
    const bool goes_on = *found;
    view_.forget();
    if (ty_status status = next_frame(frame, found); status || *found)
        return status;
    if (!goes_on)
        return missing_while_in_use(after);
    if (ty_status status = look_at(later.position % ring_.bytes, generation_, frame))
        return status;
    *found = frame->plausible && frame->generation_start && frame->from == later.from;
    return *found ? TY_OK : overwritten();
}

ty_status stream_reader::find_frame(found_frame *frame, bool *found) {
    *found = false;
    if (is_known_end())
        return TY_OK;
    if (ty_status status = next_frame(frame, found); status || *found || brief_)
        return status;
    return in_use_ ? find_while_in_use(frame, found) : end_or_damage(frame, found);
}

ty_status stream_reader::begin(const stream_position &from, uint64_t lsn) {
    if (from.offset % ring_.block_bytes || from.offset > INT64_MAX)
        return failure(TY_E_DAMAGED, "read the log from position %llu", (unsigned long long)from.offset)
            .at(name_)
            .remedy("the heap's image is damaged: restore the files from a backup");
    position_ = from.offset;
    generation_ = from.generation;
    counted_ = repeated_until_ = from.lsn;
    // L11: records that the snapshot holds are not passed on.
    reached_ = fault("records_of_the_snapshot_replayed_again") ? from.lsn : std::max(from.lsn, lsn);
    tail_ = from;
    return view_.create();
}

ty_status stream_reader::next(event *what) {
    for (;;) {
        bool found = false;
        if (has_frame_) {
            if (ty_status status = next_record(&found))
                return status;
            *what = found ? event::record : event::frame_end;
            has_frame_ = found;
            return TY_OK;
        }
        found_frame frame;
        if (ty_status status = find_frame(&frame, &found))
            return status;
        *what = found ? event::frame_end : event::end;
        if (!found)
            return TY_OK;
        if (ty_status status = take(frame))
            return status;
        if (!has_frame_) // a generation's start
            return TY_OK;
    }
}

} // namespace taiyen
