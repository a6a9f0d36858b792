#include "segment.hpp"

#include <algorithm>
#include <cstring>
#include <lz4.h>
#include <taiyen/detail/fault.hpp>

namespace taiyen::ship {

namespace {

constexpr size_t frame_bytes = size_t{1} << 20; // approximately

} // namespace

void segment_builder::begin(const ty_feed_position &from) {
    header_ = {};
    header_.from = from;
    frame_ = {};
    raw_.clear();
    stored_.clear();
}

ty_status segment_builder::add(const ty_feed_record &record, uint64_t time_ns) {
    if (record.size_bytes > frame_raw_max / 2)
        return fail(TY_E_UNSUPPORTED, "ship a record that is longer than 32 MiB", "", "use a newer version");
    if (frame_.records && (frame_.time_ns != time_ns || raw_.size() >= frame_bytes))
        if (ty_status status = end_frame())
            return status;
    if (frame_.records == 0) {
        frame_.first = record.lsn;
        frame_.time_ns = time_ns;
        header_.first_ns = header_.records == 0 ? time_ns : std::min(header_.first_ns, time_ns);
    }
    const uint32_t size = static_cast<uint32_t>(record.size_bytes);
    uint8_t head[record_head_bytes];
    memcpy(head, &size, sizeof size);
    memcpy(head + sizeof size, &record.hash, sizeof record.hash);
    raw_.insert(raw_.end(), head, head + sizeof head);
    const auto *bytes = static_cast<const uint8_t *>(record.bytes);
    raw_.insert(raw_.end(), bytes, bytes + record.size_bytes);
    frame_.records += 1;
    header_.records += 1;
    header_.raw_bytes += record.size_bytes;
    header_.last_ns = std::max(header_.last_ns, time_ns); // the clock may have been set back
    return TY_OK;
}

ty_status segment_builder::end_frame() {
    const int raw = static_cast<int>(raw_.size());
    const size_t before = stored_.size(), at = before + sizeof frame_;
    stored_.resize(at + static_cast<size_t>(LZ4_compressBound(raw)));
    int packed = LZ4_compress_default(reinterpret_cast<const char *>(raw_.data()),
                                      reinterpret_cast<char *>(stored_.data() + at), raw, LZ4_compressBound(raw));
    frame_.flags = packed > 0 && packed < raw ? frame_lz4_1 : 0;
    if (!frame_.flags) {
        packed = raw;
        memcpy(stored_.data() + at, raw_.data(), raw_.size());
    }
    frame_.raw_bytes = static_cast<uint32_t>(raw);
    frame_.stored_bytes = static_cast<uint32_t>(packed);
    frame_.checksum = checksum_of(frame_, stored_.data() + at, header_.from.log_identity);
    memcpy(stored_.data() + before, &frame_, sizeof frame_);
    stored_.resize(at + frame_.stored_bytes);
    header_.frames += 1;
    frame_ = {};
    raw_.clear();
    return TY_OK;
}

ty_status segment_builder::put(const ty_destination &to, const ty_feed_position &end, const object_header &timeline,
                               object_header *put) {
    if (frame_.records)
        if (ty_status status = end_frame())
            return status;
    header_.magic = object_magic;
    header_.version = object_version;
    header_.kind = uint32_t(object_kind::segment);
    header_.timeline_lsn = timeline.timeline_lsn;
    header_.timeline_hash = timeline.timeline_hash;
    header_.after_base = timeline.after_base;
    header_.timeline_after = timeline.timeline_after;
    header_.stored_bytes = stored_.size();
    header_.to = end;
    header_.checksum = checksum_of(header_);
    object_writer object(to);
    if (ty_status status = object.begin(name_of(header_)))
        return status;
    if (ty_status status = object.put(&header_, sizeof header_))
        return status;
    if (ty_status status = object.put(stored_.data(), stored_.size()))
        return status;
    *put = header_;
    return object.keep();
}

ty_status segment_reader::damaged(const char *what) const {
    return fail(TY_E_DAMAGED, std::string("read a segment: ") + what, object_.name(), "get it from another copy");
}

ty_status segment_reader::open() {
    if (ty_status status = object_.header(&header_))
        return status;
    if (header_.kind != uint32_t(object_kind::segment))
        return damaged("it is a base");
    position_ = header_.from;
    return TY_OK;
}

ty_status segment_reader::unpack(const frame_header &frame, const uint8_t *stored) {
    raw_.resize(frame.raw_bytes);
    if (!(frame.flags & frame_lz4_1)) {
        memcpy(raw_.data(), stored, frame.raw_bytes);
        return TY_OK;
    }
    const int got = LZ4_decompress_safe(reinterpret_cast<const char *>(stored), reinterpret_cast<char *>(raw_.data()),
                                        static_cast<int>(frame.stored_bytes), static_cast<int>(frame.raw_bytes));
    return got == static_cast<int>(frame.raw_bytes) ? TY_OK : damaged("what is packed in a frame");
}

ty_status segment_reader::take_apart(segment_frame *frame, bool checks) {
    const uint8_t *at = raw_.data();
    size_t left = raw_.size();
    frame->records.clear();
    frame->records.reserve(frame->header.records);
    for (uint32_t n = 0; n < frame->header.records; n++) {
        uint32_t size = 0;
        uint64_t hash = 0;
        if (left < record_head_bytes)
            return damaged("a frame's records");
        memcpy(&size, at, sizeof size);
        memcpy(&hash, at + sizeof size, sizeof hash);
        at += record_head_bytes;
        left -= record_head_bytes;
        if (size > left)
            return damaged("a frame's records");
        const ty_feed_record record{position_.lsn + 1, position_.hash, hash, at, size};
        if (!checks) { // the caller checks them
            position_.lsn += 1;
            position_.hash = hash;
        } else if (ty_feed_check(&position_, &record)) {
            return damaged("a record, or what stands before it");
        }
        frame->records.push_back(record);
        raw_bytes_ += size;
        at += size;
        left -= size;
    }
    return left == 0 ? TY_OK : damaged("a frame's records");
}

// SP1: the records lead to the position in the header.
ty_status segment_reader::end() const {
    return position_.lsn == header_.to.lsn && position_.hash == header_.to.hash && frames_ == header_.frames &&
                   raw_bytes_ == header_.raw_bytes && object_.offset() == sizeof header_ + header_.stored_bytes
               ? TY_OK
               : damaged("its records are not those that its header names");
}

ty_status segment_reader::next(segment_frame *frame, bool checks, bool *more) {
    ty_status status = TY_OK;
    const uint8_t *bytes = nullptr;
    *more = false;
    if (object_.at_end(&status))
        return end();
    if (status)
        return status;
    if ((status = object_.take(sizeof frame->header, &bytes)))
        return status;
    memcpy(&frame->header, bytes, sizeof frame->header);
    const frame_header &head = frame->header;
    if (head.raw_bytes > frame_raw_max || head.stored_bytes > frame_raw_max || head.flags > frame_lz4_1 ||
        (!head.flags && head.stored_bytes != head.raw_bytes) || head.first != position_.lsn + 1 || head.records == 0 ||
        head.records > head.raw_bytes / record_head_bytes || head.time_ns < header_.first_ns ||
        head.time_ns > header_.last_ns || frames_ == header_.frames)
        return damaged("the head of a frame");
    if ((status = object_.take(head.stored_bytes, &bytes)))
        return status;
    if (head.checksum != checksum_of(head, bytes, header_.from.log_identity) &&
        !taiyen::detail::fault("shipped_frame_not_checked"))
        return damaged("the checksum of a frame");
    if ((status = unpack(head, bytes)))
        return status;
    frame->stored = bytes;
    frames_ += 1;
    *more = true;
    return take_apart(frame, checks);
}

} // namespace taiyen::ship
