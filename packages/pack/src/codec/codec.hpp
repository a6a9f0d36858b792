// A common interface to the general compressors. A codec belongs to one thread.
#pragma once

#include "../format/format.hpp"
#include "planes.hpp"
#include <taiyen/status.h>

#include <memory>

struct ZSTD_CCtx_s;
struct ZSTD_DCtx_s;

namespace taiyen::pack {

class packer {
public:
    packer(codec_id codec, int level);
    ~packer();
    packer(const packer &) = delete;

    codec_id codec() const { return codec_; }
    // Returns the packed bytes, or 0 if they are not fewer than raw_bytes. room must be at least raw_bytes.
    size_t pack(const uint8_t *raw, size_t raw_bytes, uint8_t *packed, size_t room);
    // As pack, at the fastest level: for a trial.
    size_t try_pack(const uint8_t *raw, size_t raw_bytes, uint8_t *packed, size_t room);

private:
    codec_id codec_;
    int level_;
    ZSTD_CCtx_s *zstd_ = nullptr;
};

class unpacker {
public:
    unpacker() = default;
    ~unpacker();
    unpacker(const unpacker &) = delete;
    // False: these are not the packed form of exactly raw_bytes.
    bool unpack(codec_id codec, const uint8_t *packed, size_t packed_bytes, uint8_t *raw, size_t raw_bytes);

private:
    ZSTD_DCtx_s *zstd_ = nullptr;
};

// Whether the codec has the level; 0 is its default.
bool level_is_known(codec_id codec, int level);

uint64_t checksum_of(const void *bytes, size_t size);

} // namespace taiyen::pack
