// Frames: written through a program's writer and read through its reader, with checksums.
#pragma once

#include "../codec/codec.hpp"
#include <taiyen/pack.h>

#include <vector>

namespace taiyen::pack {

// A failed check of a stream, as the thread's error.
ty_status refuse_stream(ty_status status, const char *what, uint64_t offset);

class frame_writer {
public:
    frame_writer(ty_pack_writer *writer, void *context) : writer_(writer), context_(context) {}
    ty_status put(const void *bytes, size_t size);
    // bytes has room for the frame's header, followed by the packed bytes. Fills in the header and writes both.
    ty_status put_frame(frame_header header, std::vector<uint8_t> &bytes);
    // Packs tables: bytes other than a heap's content.
    ty_status put_table(frame_type type, const std::vector<uint8_t> &raw, packer &with);
    uint64_t written() const { return written_; }

private:
    ty_pack_writer *writer_;
    void *context_;
    uint64_t written_ = 0;
    uint64_t frames_ = 0;
};

class frame_reader {
public:
    frame_reader(ty_pack_reader *reader, void *context) : reader_(reader), context_(context) {}
    ty_status read_header(stream_header *header);
    // The next frame, checked: its header and its packed bytes.
    ty_status read_frame(frame_header *header, std::vector<uint8_t> *packed);
    // Checks that nothing follows the last frame.
    ty_status end();
    uint64_t offset() const { return offset_; }

private:
    ty_status get(void *bytes, size_t size);

    ty_pack_reader *reader_;
    void *context_;
    uint64_t offset_ = 0;
    uint64_t frames_ = 0;
};

} // namespace taiyen::pack
