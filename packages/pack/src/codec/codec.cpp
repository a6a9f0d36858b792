#include "codec.hpp"

#include <cstring>
#include <lz4.h>
#include <lz4hc.h>
#include <new>
#include <zstd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace taiyen::pack {

uint64_t checksum_of(const void *bytes, size_t size) {
    return XXH3_64bits(bytes, size);
}

bool level_is_known(codec_id codec, int level) {
    if (codec == codec_id::lz4)
        return level >= 0 && level <= LZ4HC_CLEVEL_MAX;
    if (codec == codec_id::zstd)
        return level >= ZSTD_minCLevel() && level <= ZSTD_maxCLevel();
    return level == 0;
}

packer::packer(codec_id codec, int level) : codec_(codec), level_(level) {
    if (codec != codec_id::zstd)
        return;
    zstd_ = ZSTD_createCCtx();
    if (zstd_ == nullptr)
        throw std::bad_alloc();
    ZSTD_CCtx_setParameter(zstd_, ZSTD_c_compressionLevel, level == 0 ? 1 : level);
}

packer::~packer() {
    ZSTD_freeCCtx(zstd_);
}

// From level 3 on, LZ4's high-compression mode, as in the lz4 program.
size_t packer::pack(const uint8_t *raw, size_t raw_bytes, uint8_t *packed, size_t room) {
    auto from = reinterpret_cast<const char *>(raw);
    auto to = reinterpret_cast<char *>(packed);
    size_t most = raw_bytes - 1 < room ? raw_bytes - 1 : room;
    size_t bytes = 0;
    if (codec_ == codec_id::lz4 && level_ < LZ4HC_CLEVEL_MIN)
        bytes =
            static_cast<size_t>(LZ4_compress_default(from, to, static_cast<int>(raw_bytes), static_cast<int>(most)));
    else if (codec_ == codec_id::lz4)
        bytes =
            static_cast<size_t>(LZ4_compress_HC(from, to, static_cast<int>(raw_bytes), static_cast<int>(most), level_));
    else if (codec_ == codec_id::zstd)
        bytes = ZSTD_compress2(zstd_, packed, most, raw, raw_bytes);
    return codec_ == codec_id::zstd && ZSTD_isError(bytes) ? 0 : bytes;
}

size_t packer::try_pack(const uint8_t *raw, size_t raw_bytes, uint8_t *packed, size_t room) {
    if (codec_ == codec_id::zstd)
        return pack(raw, raw_bytes, packed, room);
    return static_cast<size_t>(LZ4_compress_default(reinterpret_cast<const char *>(raw),
                                                    reinterpret_cast<char *>(packed), static_cast<int>(raw_bytes),
                                                    static_cast<int>(raw_bytes - 1 < room ? raw_bytes - 1 : room)));
}

unpacker::~unpacker() {
    ZSTD_freeDCtx(zstd_);
}

bool unpacker::unpack(codec_id codec, const uint8_t *packed, size_t packed_bytes, uint8_t *raw, size_t raw_bytes) {
    switch (codec) {
    case codec_id::none:
        if (packed_bytes == raw_bytes)
            memcpy(raw, packed, raw_bytes);
        return packed_bytes == raw_bytes;
    case codec_id::lz4: {
        int bytes = LZ4_decompress_safe(reinterpret_cast<const char *>(packed), reinterpret_cast<char *>(raw),
                                        static_cast<int>(packed_bytes), static_cast<int>(raw_bytes));
        return bytes >= 0 && static_cast<size_t>(bytes) == raw_bytes;
    }
    case codec_id::zstd:
        if (zstd_ == nullptr && (zstd_ = ZSTD_createDCtx()) == nullptr)
            throw std::bad_alloc();
        return ZSTD_decompressDCtx(zstd_, raw, raw_bytes, packed, packed_bytes) == raw_bytes;
    }
    return false;
}

} // namespace taiyen::pack
