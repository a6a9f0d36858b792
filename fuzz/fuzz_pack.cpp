// Goal: no packed stream makes the reader leave its memory, and what it accepts is a sound heap.
// Method: a small stream of each codec is patched as the input says, all its checksums are repaired (or not: a flag),
// and it is unpacked with each layout, elsewhere; a heap that results is verified, packed and unpacked once more.
#include "fuzz/patches.hpp"
#include "packages/pack/src/codec/codec.hpp"
#include <cstdlib>
#include <cstring>
#include <string>
#include <taiyen/pack.h>
#include <taiyen/taiyen.h>
#include <vector>

using namespace taiyen::pack;

namespace {

void require(bool held) {
    if (!held)
        abort();
}

// A root may lead anywhere in its heap; all else must be sound.
void verify(ty_heap *heap) {
    auto problem = [](const char *text, void *) { require(strncmp(text, "roots: root ", 12) == 0); };
    ty_status status = ty_heap_verify(heap, problem, nullptr);
    require(status == TY_OK || status == TY_E_DAMAGED);
}

std::string make_stream(ty_codec codec) {
    ty_heap_options options = TY_HEAP_OPTIONS_INIT;
    options.limit_bytes = size_t{64} << 20;
    ty_heap *heap;
    require(ty_heap_create(&options, &heap) == TY_OK);
    for (size_t i = 0; i < 40; i++) {
        auto *block = static_cast<char *>(ty_alloc(heap, i % 10 == 0 ? 5000 * i : 10 * i));
        require(block != nullptr);
        memset(block, static_cast<int>(i), ty_usable_size(block));
        if (i % 3 == 0)
            require(ty_free(block) == TY_OK);
        else
            require(ty_root_set(heap, ("root " + std::to_string(i)).c_str(), block) == TY_OK);
    }
    ty_pack_options pack = TY_PACK_OPTIONS_INIT;
    pack.codec = codec;
    pack.threads = 1;
    void *bytes;
    size_t size;
    require(ty_pack_memory(heap, &pack, &bytes, &size, nullptr) == TY_OK);
    std::string stream(static_cast<char *>(bytes), size);
    free(bytes);
    require(ty_heap_destroy(heap) == TY_OK);
    return stream;
}

// Where the header and the frames start.
std::vector<size_t> starts_of(const std::string &stream) {
    std::vector<size_t> starts{0};
    for (size_t at = sizeof(stream_header); at + sizeof(frame_header) <= stream.size();) {
        frame_header frame;
        memcpy(&frame, stream.data() + at, sizeof frame);
        starts.push_back(at);
        at += sizeof frame + frame.packed_bytes;
    }
    return starts;
}

void repair_checksums(std::string &stream, const std::vector<size_t> &starts) {
    auto put = [&](size_t at, uint64_t sum) { memcpy(stream.data() + at, &sum, sizeof sum); };
    put(offsetof(stream_header, checksum), checksum_of(stream.data(), offsetof(stream_header, checksum)));
    for (size_t i = 1; i < starts.size(); i++) {
        size_t at = starts[i], end = i + 1 < starts.size() ? starts[i + 1] : stream.size();
        size_t content = at + sizeof(frame_header);
        put(at + offsetof(frame_header, checksum), checksum_of(stream.data() + content, end - content));
        put(at + offsetof(frame_header, header_checksum),
            checksum_of(stream.data() + at, offsetof(frame_header, header_checksum)));
    }
}

ty_status try_unpack(const std::string &stream, ty_layout layout, ty_heap **heap) {
    ty_unpack_options options = TY_UNPACK_OPTIONS_INIT;
    options.kind = TY_VOLATILE;
    options.place = TY_PLACE_OTHER;
    options.layout = layout;
    options.force = true;
    options.threads = 1;
    return ty_unpack_memory(stream.data(), stream.size(), &options, heap, nullptr, nullptr);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const std::string streams[] = {make_stream(TY_CODEC_NONE), make_stream(TY_CODEC_LZ4),
                                          make_stream(TY_CODEC_ZSTD)};
    const fuzz::input input = fuzz::parse(data, size);
    std::string stream = streams[input.scenario % 3];
    const std::vector<size_t> starts = starts_of(stream);
    for (const fuzz::patch &p : input.patches) {
        size_t region = p.region % starts.size();
        size_t end = region + 1 < starts.size() ? starts[region + 1] : stream.size();
        fuzz::apply(p, stream.data() + starts[region], end - starts[region]);
    }
    if (input.flags % 8 != 7)
        repair_checksums(stream, starts);
    ty_heap *heap;
    if (try_unpack(stream, static_cast<ty_layout>(input.flags / 8 % 4), &heap) != TY_OK)
        return 0;
    verify(heap);
    void *bytes;
    size_t packed;
    require(ty_pack_memory(heap, nullptr, &bytes, &packed, nullptr) == TY_OK);
    ty_heap *again;
    require(try_unpack(std::string(static_cast<char *>(bytes), packed), TY_LAYOUT_SAME, &again) == TY_OK);
    free(bytes);
    require(ty_heap_destroy(again) == TY_OK && ty_heap_destroy(heap) == TY_OK);
    return 0;
}
