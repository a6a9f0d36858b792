// Segments: frames of records, written and read.
#pragma once

#include "object_io.hpp"

namespace taiyen::ship {

// Gathers the records of a segment in memory.
class segment_builder {
public:
    void begin(const ty_feed_position &from);
    ty_status add(const ty_feed_record &record, uint64_t time_ns);
    bool empty() const { return header_.records == 0; }
    uint64_t raw_bytes() const { return header_.raw_bytes; }
    // When it returns, the segment is complete and has its name. *put: its header.
    ty_status put(const ty_destination &to, const ty_feed_position &end, const object_header &timeline,
                  object_header *put);

private:
    ty_status end_frame();

    object_header header_{};
    frame_header frame_{};
    std::vector<uint8_t> raw_;    // of the frame
    std::vector<uint8_t> stored_; // of all frames
};

// A frame as it is stored, and its records.
struct segment_frame {
    frame_header header;
    const uint8_t *stored; // valid until the next frame is read
    std::vector<ty_feed_record> records;
};

// SP1: returns the records between the header's two positions.
class segment_reader {
public:
    segment_reader(const ty_destination &from, const std::string &name) : object_(from, name) {}
    ty_status open();
    const object_header &header() const { return header_; }
    const ty_feed_position &position() const { return position_; } // after the last frame; sealed if checks
    // *more: there was a frame. checks: its records are checked here; otherwise by the caller.
    ty_status next(segment_frame *frame, bool checks, bool *more);

private:
    ty_status damaged(const char *what) const;
    ty_status unpack(const frame_header &frame, const uint8_t *stored);
    ty_status take_apart(segment_frame *frame, bool checks);
    ty_status end() const;

    object_reader object_;
    object_header header_{};
    ty_feed_position position_{};
    std::vector<uint8_t> raw_;
    uint64_t frames_ = 0;
    uint64_t raw_bytes_ = 0;
};

} // namespace taiyen::ship
