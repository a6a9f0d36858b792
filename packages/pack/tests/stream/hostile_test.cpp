// Goal: a stream that is cut off, damaged or made by somebody hostile is refused, and no heap is left of it.
// Method: a small stream cut at each length, with each byte changed; and tables with right checksums that say what
// cannot be.
#include "packages/pack/src/codec/codec.hpp"
#include "packages/pack/src/format/format.hpp"
#include "packages/pack/tests/support.hpp"

#include <functional>

namespace taiyen::test {
namespace {

using namespace taiyen::pack;

std::string small_stream(ty_codec codec) {
    volatile_heap heap;
    std::mt19937 dice(11);
    fill_at_random(heap, dice, 60, 20000);
    return packed(heap, codec).text();
}

bool is_refusal(ty_status status) {
    return status == TY_E_DAMAGED || status == TY_E_FORMAT;
}

ty_status verify(const std::string &stream) {
    struct source {
        const std::string &bytes;
        size_t at;
    } from{stream, 0};
    return ty_verify_pack(
        [](void *bytes, size_t size, size_t *got, void *context) {
            auto *s = static_cast<source *>(context);
            *got = std::min(size, s->bytes.size() - s->at);
            memcpy(bytes, s->bytes.data() + s->at, *got);
            s->at += *got;
            return TY_OK;
        },
        &from, nullptr, nullptr, nullptr);
}

TEST(pack_hostile, cut_off_anywhere) {
    std::string stream = small_stream(TY_CODEC_LZ4);
    ASSERT_OK(verify(stream));
    for (size_t length = 0; length < stream.size(); length += length < 512 ? 1 : 997) {
        ty_heap *heap = nullptr;
        EXPECT_EQ(TY_E_DAMAGED, unpack(stream.substr(0, length), TY_UNPACK_OPTIONS_INIT, &heap)) << length;
        EXPECT_EQ(nullptr, heap);
        EXPECT_EQ(TY_E_DAMAGED, verify(stream.substr(0, length))) << length;
    }
}

// A copy that was appended to, padded, or written over a longer one is none that can be relied on.
TEST(pack_hostile, bytes_after_the_end) {
    for (ty_codec codec : {TY_CODEC_LZ4, TY_CODEC_ZSTD, TY_CODEC_NONE}) {
        const std::string stream = small_stream(codec);
        for (const std::string &tail : {std::string(1, 'x'), std::string(100'000, 0), stream}) {
            ty_heap *heap = nullptr;
            EXPECT_EQ(TY_E_DAMAGED, unpack(stream + tail, TY_UNPACK_OPTIONS_INIT, &heap));
            EXPECT_EQ(nullptr, heap);
            EXPECT_EQ(TY_E_DAMAGED, verify(stream + tail));
            EXPECT_TRUE(strstr(ty_error_text(), (std::to_string(tail.size()) + " bytes are after").c_str()))
                << ty_error_text();
        }
    }
}

TEST(pack_hostile, any_byte_changed) {
    for (ty_codec codec : {TY_CODEC_LZ4, TY_CODEC_ZSTD, TY_CODEC_NONE}) {
        std::string stream = small_stream(codec);
        for (size_t at = 0; at < stream.size(); at += at < 512 ? 1 : 997) {
            std::string damaged = stream;
            damaged[at] = static_cast<char>(damaged[at] ^ (1 << at % 8));
            ty_heap *heap = nullptr;
            EXPECT_TRUE(is_refusal(unpack(damaged, TY_UNPACK_OPTIONS_INIT, &heap))) << at;
            EXPECT_EQ(nullptr, heap);
            EXPECT_TRUE(is_refusal(verify(damaged))) << at;
        }
    }
}

// A stream made by hand: one frame of extents, and no content.
std::string with_extents(const std::vector<extent_record> &extents, const std::vector<uint64_t> &bits,
                         const std::function<void(stream_header &)> &change = nullptr) {
    stream_header header{};
    header.magic = stream_magic;
    header.version = stream_version;
    header.base = reinterpret_cast<uint64_t>(next_base());
    header.limit_bytes = uint64_t{64} << 20;
    header.kind = TY_VOLATILE;
    header.extents = extents.size();
    for (const extent_record &a : extents) {
        uint64_t live = a.block_bytes != 0 && !bits.empty() ? static_cast<uint64_t>(__builtin_popcountll(bits[0])) : 1;
        header.live_blocks += live;
        header.live_bytes += live * (a.block_bytes != 0 ? a.block_bytes : a.pages * stream_page_bytes);
    }
    if (change)
        change(header);
    header.checksum = checksum_of(&header, offsetof(stream_header, checksum));
    std::string raw;
    for (const extent_record &a : extents) {
        raw.append(reinterpret_cast<const char *>(&a), sizeof a);
        if (a.block_bytes != 0)
            raw.append(reinterpret_cast<const char *>(bits.data()), bits.size() * 8);
    }
    frame_header frame{static_cast<uint32_t>(frame_type::extents),
                       0,
                       0,
                       static_cast<uint32_t>(raw.size()),
                       static_cast<uint32_t>(raw.size()),
                       0,
                       checksum_of(raw.data(), raw.size()),
                       0};
    frame.header_checksum = checksum_of(&frame, offsetof(frame_header, header_checksum));
    return std::string(reinterpret_cast<char *>(&header), sizeof header) +
           std::string(reinterpret_cast<char *>(&frame), sizeof frame) + raw;
}

void expect_refused(const std::string &stream, const char *what) {
    ty_heap *heap = nullptr;
    EXPECT_EQ(TY_E_DAMAGED, unpack(stream, TY_UNPACK_OPTIONS_INIT, &heap)) << what;
    EXPECT_NE(nullptr, strstr(ty_error_text(), what)) << ty_error_text();
    EXPECT_EQ(nullptr, heap);
}

TEST(pack_hostile, extents_that_cannot_be) {
    const char *extent = "an extent of it makes no sense";
    expect_refused(with_extents({{2, 1, 0, 0}}, {}), "it is cut off"); // sound so far: the content is missing
    expect_refused(with_extents({{1, 1, 0, 0}}, {}), extent);
    expect_refused(with_extents({{2, 0, 0, 0}}, {}), extent);
    expect_refused(with_extents({{2, 1, 0, 1}}, {}), extent);
    expect_refused(with_extents({{2, UINT32_MAX, 0, 0}}, {}), extent);
    expect_refused(with_extents({{UINT32_MAX, 1, 0, 0}}, {}), extent);
    expect_refused(with_extents({{2, 2, 0, 0}, {3, 1, 0, 0}}, {}), extent); // they overlap
    expect_refused(with_extents({{4, 1, 0, 0}, {2, 1, 0, 0}}, {}), extent); // not in order
    expect_refused(with_extents({{3, 2, 64, 0}}, {1, 0}), extent);          // not at a multiple of its length
    expect_refused(with_extents({{3, 3, 64, 0}}, {1, 0, 0}), extent);
    expect_refused(with_extents({{32, 32, 64, 0}}, std::vector<uint64_t>(32, 1)), extent);
    expect_refused(with_extents({{2, 1, 12, 0}}, {1}), extent);
    expect_refused(with_extents({{2, 1, 8192, 0}}, {1}), extent);
    expect_refused(with_extents({{2, 1, 64, 0}}, {0}), extent);                        // no live block
    expect_refused(with_extents({{2, 1, 128, 0}}, {~uint64_t{0}}), extent);            // more than fit
    expect_refused(with_extents({{2, 1, 64, 0}}, {}), extent);                         // no bitmap
    expect_refused(with_extents({{2, 1, 56, 0}}, {1, 0}), "extents that no heap has"); // no such class
}

TEST(pack_hostile, headers_that_cannot_be) {
    auto with = [](const std::function<void(stream_header &)> &change) {
        return with_extents({{2, 1, 0, 0}}, {}, change);
    };
    const char *place = "an impossible place", *kind = "an impossible kind", *counts = "impossible counts";
    expect_refused(with([](stream_header &h) { h.base += 4096; }), place);
    expect_refused(with([](stream_header &h) { h.base = 0; }), place);
    expect_refused(with([](stream_header &h) { h.base = ~uint64_t{0} << 26; }), place);
    expect_refused(with([](stream_header &h) { h.limit_bytes = 0; }), place);
    expect_refused(with([](stream_header &h) { h.limit_bytes = uint64_t{1} << 60; }), place);
    expect_refused(with([](stream_header &h) { h.kind = 9; }), kind);
    expect_refused(with([](stream_header &h) { h.classes = 2; }), kind);
    expect_refused(with([](stream_header &h) { h.roots = 64; }), counts);
    expect_refused(with([](stream_header &h) { h.extents = UINT64_MAX; }), counts);
    expect_refused(with([](stream_header &h) { h.live_blocks++; }), "do not have the blocks");
    expect_refused(with([](stream_header &h) { h.live_bytes++; }), "do not have the blocks");
    ty_heap *heap = nullptr;
    for (auto change : {+[](stream_header &h) { h.version = 2; }, +[](stream_header &h) { h.needed_features = 1; },
                        +[](stream_header &h) { h.magic++; }})
        EXPECT_EQ(TY_E_FORMAT, unpack(with(change), TY_UNPACK_OPTIONS_INIT, &heap)) << ty_error_text();
}

} // namespace
} // namespace taiyen::test
