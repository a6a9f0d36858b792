// Reading one ring back, record by record. docs/design/log.md describes where a ring ends, and when its end is damage.
#pragma once

#include "ring_view.hpp"

namespace taiyen {

// What looks like a frame at some offset, and what its checksum says.
struct found_frame {
    bool plausible;
    bool generation_start;
    uint32_t unstable;
    uint32_t payload_bytes;
    uint64_t from;     // it follows a frame that ended there, if anywhere
    uint64_t position; // then it lies here
    uint64_t bytes;
    const uint8_t *payload;
};

class stream_reader {
public:
    // known_end: where an earlier reading ended, or NULL. in_use: the ring is being written to. brief: log_reader.
    stream_reader(const ty_log_sink &sink, const char *name, uint64_t log, const log_header &header, uint32_t stream,
                  const stream_position *known_end, bool read_ahead, bool in_use = false, bool brief = false)
        : name_(name), log_(ring_identity(log, stream)), stream_(stream), ring_(geometry_of(header, stream)),
          known_end_(known_end), in_use_(in_use), brief_(brief), view_(sink, ring_, read_ahead, brief) {}
    stream_reader(const stream_reader &) = delete;
    stream_reader &operator=(const stream_reader &) = delete;

    // Records up to the LSN are in the snapshot that the reading starts from, and are not passed on.
    ty_status begin(const stream_position &from, uint64_t lsn);

    enum class event : uint8_t { record, frame_end, end };
    // record: the next one that no earlier generation had. It stays in memory until the next call. frame_end: all
    // records of a frame were passed on. end: while the ring is in use, more may be found after it later.
    ty_status next(event *what);
    const log_record &record() const { return record_; }

    // Where a reading could begin that returns the last record passed on, and all after it; or, if none was passed on
    // since, what is after the frame.
    stream_position here() const {
        return has_frame_ ? before_frame_ : stream_position{position_, generation_, counted_};
    }
    // A generation that repeats what was read (L4) has not finished repeating.
    bool repeats() const { return counted_ < reached_; }
    // Of the whole reading, once it has ended.
    stream_position end() const { return {position_, generation_, reached_}; }
    stream_position tail() const { return tail_; }
    uint64_t frames() const { return frames_; }
    uint64_t claimed() const { return claimed_; }

private:
    ty_status look_at(uint64_t ring_offset, uint64_t generation, found_frame *frame);
    ty_status next_frame(found_frame *frame, bool *found);
    ty_status find_frame(found_frame *frame, bool *found);
    ty_status find_while_in_use(found_frame *frame, bool *found);
    ty_status missing_while_in_use(ty_status damage);
    ty_status overwritten() const;
    ty_status take(const found_frame &frame);
    ty_status take_generation_start(const found_frame &frame);
    void take_claim(const found_frame &frame);
    ty_status next_record(bool *found);
    void note_boundary(const found_frame &frame);
    ty_status check_wrap(const found_frame &frame, uint64_t reach) const;
    ty_status search_after_gap(uint64_t generation, found_frame *frame, bool *found);
    ty_status generation_at(uint64_t position, uint64_t *generation);
    // As many frames as can be in flight, and what was left free before the ring's end.
    uint64_t reach_of(uint64_t gap) const { return gap + uint64_t{frames_unstable + 1} * ring_.frame_bytes_max; }
    ty_status end_or_damage(found_frame *frame, bool *found);
    ty_status damaged(const char *what, uint64_t position) const;
    bool is_known_end() const {
        return known_end_ && position_ == known_end_->offset && generation_ == known_end_->generation;
    }

    const char *name_;
    const uint64_t log_;
    const uint32_t stream_;
    const ring_geometry ring_;
    const stream_position *const known_end_;
    const bool in_use_;
    const bool brief_;
    ring_view view_;

    // Where the reading stands: after the frame whose records are being passed on. counted_: the LSN by this
    // generation's count; it is below reached_ while the generation repeats what may not have been durable before it
    // (L4).
    uint64_t position_ = 0;
    uint64_t generation_ = 0;
    uint64_t counted_ = 0;
    uint64_t reached_ = 0;
    uint64_t repeated_until_ = 0;
    uint64_t generation_frames_ = 0;               // without its start
    stream_position before_[frames_unstable] = {}; // the positions before the last of them, by number
    stream_position tail_{};
    uint64_t frames_ = 0;
    uint64_t claimed_ = 0; // L9: by frames that were read

    bool has_frame_ = false;
    found_frame frame_{}; // whose records are being passed on
    size_t at_ = 0;       // in its payload
    stream_position before_frame_{};
    log_record record_{};
};

// Reads the records of one log stream after the LSN, from one position to another where an earlier reading ended.
ty_status log_scan_stream(const ty_log_sink &sink, const char *name, const log_identity &identity, uint32_t stream,
                          const stream_position &from, uint64_t lsn, const stream_position &end, void *context,
                          ty_status (*record)(void *context, const log_record &record));

} // namespace taiyen
