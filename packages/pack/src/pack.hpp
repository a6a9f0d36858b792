// Packing and unpacking, as the public functions call them.
#pragma once

#include "blocks/blocks.hpp"
#include "stream/stream.hpp"
#include <taiyen/pack.h>

namespace taiyen::pack {

codec_id codec_of(ty_codec codec);

ty_status pack_heap(ty_heap *heap, const ty_pack_options &options, ty_pack_writer *writer, void *context,
                    ty_pack_report *report);

// heap NULL: the heap is closed. moves NULL: they are not wanted.
ty_status unpack_heap(ty_pack_reader *reader, void *context, const ty_unpack_options &options, ty_heap **heap,
                      std::unique_ptr<ty_moves> *moves, ty_unpack_report *report);
// Reads and checks all of a stream; makes nothing.
ty_status verify_stream(ty_pack_reader *reader, void *context, ty_progress_callback *progress, void *progress_context,
                        stream_header *header);

// Where the blocks of a packed heap go in a new layout, in this heap.
ty_status lay_out_again(layout &&old, ty_heap *heap, std::unique_ptr<ty_moves> *moves);

// Reads the frames of content and the end, for blocks that have their places, and copies them to where moves says
// (NULL: nowhere).
ty_status read_content(frame_reader &from, const layout &places, const ty_moves *moves, unsigned threads,
                       ty_progress_callback *progress, void *progress_context);

ty_status compact_heap(ty_heap *heap, const ty_compact_options &options, ty_compact_report *report);

// Fixes the addresses of a heap that moved by type descriptors; NULL: by those that the heap keeps. others: the caller
// fixes addresses, too. force: does not refuse for mismatches of a pointer audit, or because nothing fixes them (PK7:
// no heap with wrong addresses).
ty_status fix_by_descriptors(ty_heap *heap, const ty_moves &moves, const ty_types *descriptors, bool others, bool force,
                             uint64_t *fixed);

// Whether these type descriptors could fix all addresses of a heap that is to be moved.
ty_status check_descriptors(ty_heap *heap, const ty_types *descriptors);

} // namespace taiyen::pack
