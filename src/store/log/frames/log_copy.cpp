// A copy of a log that is being written to.
#include "../log.hpp"
#include "frame.hpp"

#include <algorithm>

namespace taiyen {
namespace {

constexpr uint64_t piece_bytes = uint64_t{1} << 20;

class log_copier {
public:
    log_copier(const ty_log_sink &sink, const storage_file &to) : sink_(sink), to_(to) {}

    ty_status run(const log_header &header, const log_positions &from, const log_positions &end) {
        if (ty_status status = buffer_.create(piece_bytes))
            return status;
        if (ty_status status = to_.set_size(0))
            return status;
        if (ty_status status = to_.set_size(sink_.size_bytes))
            return status;
        if (ty_status status = copy(0, header.ring_offset))
            return status;
        for (uint32_t p = 0; p < from.count; ++p)
            if (ty_status status = copy_ring(geometry_of(header, p), from.at[p].offset, end.at[p].offset))
                return status;
        return TY_OK;
    }

private:
    ty_status copy_ring(const ring_geometry &ring, uint64_t from, uint64_t end) {
        for (uint64_t at = from, bytes; at < end; at += bytes) {
            const uint64_t ring_offset = at % ring.bytes;
            bytes = std::min(end - at, ring.bytes - ring_offset);
            if (ty_status status = copy(ring.offset + ring_offset, ring.offset + ring_offset + bytes))
                return status;
        }
        return TY_OK;
    }

    ty_status copy(uint64_t start, uint64_t end) {
        for (uint64_t at = start, bytes; at < end; at += bytes) {
            bytes = std::min(end - at, piece_bytes);
            if (ty_status status = os::call_whole(sink_.read, sink_.context, at, buffer_.data(), bytes))
                return status;
            if (ty_status status = to_.write(at, buffer_.data(), bytes))
                return status;
        }
        return TY_OK;
    }

    const ty_log_sink &sink_;
    const storage_file &to_;
    io_buffer buffer_;
};

} // namespace

ty_status log_copy(const ty_log_sink &sink, const char *name, const log_identity &identity, const log_positions &from,
                   const storage_file &to, log_positions *end) {
    log_header header;
    if (ty_status status = log_check(sink, name, &identity, &header))
        return status;
    log_contents contents{};
    log_reader reader{};
    reader.in_use = true;
    if (ty_status status = log_scan(sink, name, identity, from, reader, &contents))
        return status;
    *end = contents.end;
    if (ty_status status = log_copier(sink, to).run(header, from, *end))
        return status;
    // What is still valid was not overwritten while it was copied.
    reader.end = end;
    if (ty_status status = log_scan(sink, name, identity, from, reader, &contents))
        return status;
    return contents.end == *end
               ? TY_OK
               : failure(TY_E_BUSY, "copy the log: it was written over meanwhile").at(name).remedy("copy it again");
}

} // namespace taiyen
