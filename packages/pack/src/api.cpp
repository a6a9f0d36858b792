// The functions of pack.h.
#include "io/io.hpp"
#include "pack.hpp"
#include "packages/common/common.hpp"
#include "types/boundary.hpp"

using taiyen::common::copy_options, taiyen::common::check_output, taiyen::common::copy_output,
    taiyen::common::refuse_call;
using namespace taiyen::pack;

namespace {

constexpr const char *pack_call = "pack a heap";
constexpr const char *unpack_call = "unpack a heap";

ty_status check_pack(ty_heap *heap, const ty_pack_options *options, ty_pack_options *known,
                     const ty_pack_report *report) {
    if (heap == nullptr || ty_heap_base(heap) == nullptr)
        return refuse_call("pack a heap: it is NULL, or not open", "hand in an open heap");
    if (ty_status status = copy_options(options, known, pack_call))
        return status;
    if (ty_status status = check_output(report, pack_call))
        return status;
    int codec;
    memcpy(&codec, &known->codec, sizeof codec);
    if (codec < TY_CODEC_LZ4 || codec > TY_CODEC_NONE)
        return refuse_call("pack a heap: there is no such codec", "use one of TY_CODEC_");
    if (!level_is_known(codec_of(known->codec), known->level))
        return refuse_call("pack a heap: the codec has no such level",
                           "give 3 to 12 for LZ4, 1 to 22 for Zstandard, or 0");
    return TY_OK;
}

ty_status check_unpack(const ty_unpack_options *options, ty_unpack_options *known, ty_heap **heap,
                       const ty_unpack_report *report) {
    if (ty_status status = copy_options(options, known, unpack_call))
        return status;
    if (ty_status status = check_output(report, unpack_call))
        return status;
    int kind, place, layout;
    memcpy(&kind, &known->kind, sizeof kind);
    memcpy(&place, &known->place, sizeof place);
    memcpy(&layout, &known->layout, sizeof layout);
    if (kind < TY_KIND_DEFAULT || kind > TY_TRANSACTIONAL || place < TY_PLACE_SAME || place > TY_PLACE_OTHER ||
        layout < TY_LAYOUT_SAME || layout > TY_LAYOUT_PACKED)
        return refuse_call("unpack a heap: an option has no such value", "use the constants of pack.h");
    if (known->path != nullptr && (known->path[0] == 0 || strlen(known->path) >= TY_STORAGE_PATH_MAX - 16))
        return refuse_call("unpack a heap: its path is empty, or too long", "give the path of a file");
    if (known->path != nullptr ? kind == TY_VOLATILE : kind > TY_VOLATILE)
        return refuse_call("unpack a heap: path and kind do not fit together",
                           "give a path for a kind that lives in files, and none for a volatile heap");
    if (heap == nullptr && known->path == nullptr)
        return refuse_call("unpack a volatile heap: the place for the heap is NULL", "pass a valid pointer");
    if (known->base != nullptr && place != TY_PLACE_OTHER)
        return refuse_call("unpack a heap: a base is given", "give TY_PLACE_OTHER with it");
    return TY_OK;
}

bool no_path(const char *path) {
    return path == nullptr || path[0] == 0 || strlen(path) >= TY_STORAGE_PATH_MAX - 16;
}

} // namespace

ty_status ty_pack(ty_heap *heap, const ty_pack_options *options, ty_pack_writer *writer, void *context,
                  ty_pack_report *report) {
    ty_pack_options known = TY_PACK_OPTIONS_INIT;
    if (ty_status status = check_pack(heap, options, &known, report))
        return status;
    if (writer == nullptr)
        return refuse_call("pack a heap: the writer is NULL", "pass a function");
    return at_boundary(pack_call, [&] {
        ty_pack_report filled{};
        ty_status status = pack_heap(heap, known, writer, context, &filled);
        if (status == TY_OK)
            copy_output(filled, report);
        return status;
    });
}

ty_status ty_pack_file(ty_heap *heap, const char *path, const ty_pack_options *options, ty_pack_report *report) {
    if (no_path(path))
        return refuse_call("pack a heap: the path is NULL, empty or too long", "give the path of a file");
    return at_boundary(pack_call, [&] {
        ty_pack_options known = TY_PACK_OPTIONS_INIT;
        if (ty_status status = check_pack(heap, options, &known, report))
            return status;
        file_sink file;
        if (ty_status status = file.create(path))
            return status;
        if (ty_status status = ty_pack(heap, &known, write_descriptor, &file.end, report))
            return status;
        return file.finish();
    });
}

ty_status ty_pack_descriptor(ty_heap *heap, int descriptor, const ty_pack_options *options, ty_pack_report *report) {
    descriptor_end end{descriptor, nullptr};
    return ty_pack(heap, options, write_descriptor, &end, report);
}

ty_status ty_pack_memory(ty_heap *heap, const ty_pack_options *options, void **bytes, size_t *size,
                         ty_pack_report *report) {
    if (bytes == nullptr || size == nullptr)
        return refuse_call("pack a heap: a place for the result is NULL", "pass valid pointers");
    memory_sink sink;
    if (ty_status status = ty_pack(heap, options, write_memory, &sink, report))
        return status;
    *bytes = sink.bytes;
    *size = sink.size;
    sink.bytes = nullptr;
    return TY_OK;
}

ty_status ty_unpack(ty_pack_reader *reader, void *context, const ty_unpack_options *options, ty_heap **heap,
                    ty_moves **moves, ty_unpack_report *report) {
    ty_unpack_options known = TY_UNPACK_OPTIONS_INIT;
    if (ty_status status = check_unpack(options, &known, heap, report))
        return status;
    if (reader == nullptr)
        return refuse_call("unpack a heap: the reader is NULL", "pass a function");
    return at_boundary(unpack_call, [&] {
        ty_unpack_report filled{};
        std::unique_ptr<ty_moves> made;
        ty_status status = unpack_heap(reader, context, known, heap, moves != nullptr ? &made : nullptr, &filled);
        if (status != TY_OK)
            return status;
        copy_output(filled, report);
        if (moves != nullptr)
            *moves = made.release();
        return TY_OK;
    });
}

ty_status ty_unpack_file(const char *path, const ty_unpack_options *options, ty_heap **heap, ty_moves **moves,
                         ty_unpack_report *report) {
    if (no_path(path))
        return refuse_call("unpack a heap: the path is NULL, empty or too long", "give the path of a packed heap");
    file_source file;
    if (ty_status status = file.open(path))
        return status;
    return ty_unpack(read_descriptor, &file.end, options, heap, moves, report);
}

ty_status ty_unpack_descriptor(int descriptor, const ty_unpack_options *options, ty_heap **heap, ty_moves **moves,
                               ty_unpack_report *report) {
    descriptor_end end{descriptor, nullptr};
    return ty_unpack(read_descriptor, &end, options, heap, moves, report);
}

ty_status ty_unpack_memory(const void *bytes, size_t size, const ty_unpack_options *options, ty_heap **heap,
                           ty_moves **moves, ty_unpack_report *report) {
    if (bytes == nullptr)
        return refuse_call("unpack a heap: the bytes are NULL", "pass the packed heap");
    memory_source source{static_cast<const char *>(bytes), size};
    return ty_unpack(read_memory, &source, options, heap, moves, report);
}

ty_status ty_compact(ty_heap *heap, const ty_compact_options *options, ty_compact_report *report) {
    constexpr const char *call = "compact a heap";
    if (heap == nullptr || ty_heap_base(heap) == nullptr)
        return refuse_call("compact a heap: it is NULL, or not open", "hand in an open heap");
    ty_compact_options known = TY_COMPACT_OPTIONS_INIT;
    if (ty_status status = copy_options(options, &known, call))
        return status;
    if (ty_status status = check_output(report, call))
        return status;
    return at_boundary(call, [&] {
        ty_compact_report filled{};
        ty_status status = compact_heap(heap, known, &filled);
        if (status == TY_OK)
            copy_output(filled, report);
        return status;
    });
}

namespace {

void fill_info(const stream_header &header, ty_pack_info *info) {
    ty_pack_info known{};
    known.format_version = header.version;
    known.kind = static_cast<ty_kind>(header.kind);
    known.classes = static_cast<ty_class_table>(header.classes);
    known.base = reinterpret_cast<void *>(header.base);
    known.limit_bytes = header.limit_bytes;
    known.live_blocks = header.live_blocks;
    known.live_bytes = header.live_bytes;
    known.roots = header.roots;
    known.packed_unix_s = header.packed_unix_s;
    copy_output(known, info);
}

} // namespace

ty_status ty_read_pack_info(ty_pack_reader *reader, void *context, ty_pack_info *info) {
    constexpr const char *call = "read what a packed heap says of itself";
    if (reader == nullptr || info == nullptr)
        return refuse_call(call, "pass a reader, and a place for the result");
    if (ty_status status = check_output(info, call))
        return status;
    stream_header header;
    frame_reader in(reader, context);
    if (ty_status status = in.read_header(&header))
        return status;
    fill_info(header, info);
    return TY_OK;
}

ty_status ty_read_pack_info_file(const char *path, ty_pack_info *info) {
    if (no_path(path))
        return refuse_call("read what a packed heap says of itself", "give the path of a packed heap");
    file_source file;
    if (ty_status status = file.open(path))
        return status;
    return ty_read_pack_info(read_descriptor, &file.end, info);
}

ty_status ty_verify_pack(ty_pack_reader *reader, void *context, ty_progress_callback *progress, void *progress_context,
                         ty_pack_info *info) {
    constexpr const char *call = "verify a packed heap";
    if (reader == nullptr)
        return refuse_call(call, "pass a reader");
    if (ty_status status = check_output(info, call))
        return status;
    return at_boundary(call, [&] {
        stream_header header;
        ty_status status = verify_stream(reader, context, progress, progress_context, &header);
        if (status == TY_OK)
            fill_info(header, info);
        return status;
    });
}

void *ty_moved(const ty_moves *moves, const void *old_address) {
    return moves != nullptr ? moves->moved(old_address) : nullptr;
}

bool ty_move_pointer(const ty_moves *moves, void *variable) {
    void *pointer;
    memcpy(&pointer, variable, sizeof pointer);
    pointer = ty_moved(moves, pointer);
    if (pointer != nullptr)
        memcpy(variable, &pointer, sizeof pointer);
    return pointer != nullptr;
}

bool ty_moves_offset(const ty_moves *moves, ptrdiff_t *offset) {
    if (moves == nullptr || !moves->is_offset())
        return false;
    if (offset != nullptr)
        *offset = moves->offset();
    return true;
}

void ty_each_move(const ty_moves *moves, ty_move_block_callback *callback, void *context) {
    if (moves == nullptr || callback == nullptr)
        return;
    const layout &old = moves->old();
    for (const extent &a : old.extents)
        for (uint64_t i = 0; i < a.blocks; i++) {
            if (!old.is_live(a, i))
                continue;
            ty_block block{moves->block(a, i), 0};
            block.size_bytes = a.block_bytes;
            if (!callback(old.address(a) + i * a.block_bytes, &block, context))
                return;
        }
}

void ty_moves_destroy(ty_moves *moves) {
    delete moves;
}
