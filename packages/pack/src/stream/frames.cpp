#include "frames.hpp"

#include <cstring>
#include <taiyen/detail/fault.hpp>

namespace taiyen::pack {

ty_status refuse_stream(ty_status status, const char *what, uint64_t offset) {
    char operation[96];
    snprintf(operation, sizeof operation, "read a packed heap: %s", what);
    return ty_error_set(status, 0, operation, nullptr, offset,
                        status == TY_E_FORMAT ? "give a stream that ty_pack or \"taiyen pack\" has written"
                                              : "take another copy of it, or pack the heap again");
}

ty_status frame_writer::put(const void *bytes, size_t size) {
    ty_status status = writer_(bytes, size, context_);
    if (status == TY_OK)
        written_ += size;
    return status;
}

ty_status frame_writer::put_frame(frame_header header, std::vector<uint8_t> &bytes) {
    header.number = frames_++;
    header.checksum = checksum_of(bytes.data() + sizeof header, header.packed_bytes);
    header.header_checksum = checksum_of(&header, offsetof(frame_header, header_checksum));
    memcpy(bytes.data(), &header, sizeof header);
    return put(bytes.data(), sizeof header + header.packed_bytes);
}

ty_status frame_writer::put_table(frame_type type, const std::vector<uint8_t> &raw, packer &with) {
    auto raw_bytes = static_cast<uint32_t>(raw.size());
    std::vector<uint8_t> frame(sizeof(frame_header) + raw.size());
    uint8_t *packed = frame.data() + sizeof(frame_header);
    frame_header header{static_cast<uint32_t>(type), static_cast<uint16_t>(with.codec()), 0, raw_bytes, 0, 0, 0, 0};
    header.packed_bytes =
        raw.empty() ? 0 : static_cast<uint32_t>(with.pack(raw.data(), raw.size(), packed, raw.size()));
    if (header.packed_bytes == 0) {
        header.codec = static_cast<uint16_t>(codec_id::none);
        header.packed_bytes = raw_bytes;
        if (!raw.empty())
            memcpy(packed, raw.data(), raw.size());
    }
    return put_frame(header, frame);
}

ty_status frame_reader::get(void *bytes, size_t size) {
    auto *to = static_cast<uint8_t *>(bytes);
    for (size_t filled = 0; filled < size;) {
        size_t got = 0;
        if (ty_status status = reader_(to + filled, size - filled, &got, context_))
            return status;
        if (got == 0 || got > size - filled)
            return refuse_stream(TY_E_DAMAGED, "it is cut off", offset_);
        filled += got;
        offset_ += got;
    }
    return TY_OK;
}

ty_status frame_reader::read_header(stream_header *header) {
    if (ty_status status = get(header, sizeof *header))
        return status;
    if (header->magic != stream_magic)
        return refuse_stream(TY_E_FORMAT, "it does not begin as one", 0);
    if (header->checksum != checksum_of(header, offsetof(stream_header, checksum)))
        return refuse_stream(TY_E_DAMAGED, "the checksum of its header is wrong", 0);
    if (header->version != stream_version || header->needed_features != 0)
        return refuse_stream(TY_E_FORMAT, "it is of a version that this library does not know", 8);
    return TY_OK;
}

// PK8: each byte of a stream is under a checksum.
ty_status frame_reader::read_frame(frame_header *header, std::vector<uint8_t> *packed) {
    uint64_t at = offset_;
    if (ty_status status = get(header, sizeof *header))
        return status;
    if (header->header_checksum != checksum_of(header, offsetof(frame_header, header_checksum)))
        return refuse_stream(TY_E_DAMAGED, "the checksum of a frame's header is wrong", at);
    if (header->number != frames_++)
        return refuse_stream(TY_E_DAMAGED, "a frame is missing", at);
    if (header->raw_bytes > chunk_bytes || header->packed_bytes > header->raw_bytes)
        return refuse_stream(TY_E_DAMAGED, "a frame is too long", at);
    packed->reserve(header->raw_bytes); // reserved once for most frames; the pages of the unused rest are never
                                        // touched, so they cost no memory
    packed->resize(header->packed_bytes);
    if (ty_status status = get(packed->data(), header->packed_bytes))
        return status;
    if (header->checksum != checksum_of(packed->data(), header->packed_bytes) &&
        !taiyen::detail::fault("packed_frame_not_checked"))
        return refuse_stream(TY_E_DAMAGED, "the checksum of a frame is wrong", at);
    return TY_OK;
}

ty_status frame_reader::end() {
    std::vector<uint8_t> some(64 << 10);
    uint64_t after = 0;
    for (size_t got = 1; got != 0; after += got) {
        got = 0;
        if (ty_status status = reader_(some.data(), some.size(), &got, context_))
            return status;
    }
    if (after == 0)
        return TY_OK;
    char what[64];
    snprintf(what, sizeof what, "%llu bytes are after its end", static_cast<unsigned long long>(after));
    return refuse_stream(TY_E_DAMAGED, what, offset_);
}

} // namespace taiyen::pack
