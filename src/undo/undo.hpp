// The façade of the undo layer. docs/design/undo.md tells how it works.
#pragma once

#include "../txn/txn.hpp"
#include <taiyen/undo.h>

namespace taiyen {

// The functions of undo.h, with arguments checked for NULL by the caller.
ty_status undo_attach(ty_heap *heap, const ty_undo_options *options); // NULL: whatever there is, or the defaults
ty_status undo_detach(ty_heap *heap, bool keep_history);
ty_status undo_begin(ty_heap *heap, const char *label);
ty_status undo_record(ty_heap *heap, const void *address, size_t bytes);
ty_status undo_record_procedure(ty_heap *heap, uint64_t id, const void *arguments, size_t bytes, ty_status expected);
void *undo_alloc(ty_heap *heap, size_t size, size_t alignment);
ty_status undo_free(ty_heap *heap, void *block);
void *undo_resize(ty_heap *heap, void *block, size_t size);
ty_status undo_end(ty_heap *heap);
ty_status undo_cancel(ty_heap *heap);
ty_status undo_back(ty_heap *heap);  // ty_undo
ty_status undo_forth(ty_heap *heap); // ty_redo
ty_status undo_exit(ty_heap *heap);
ty_status undo_clear(ty_heap *heap);
ty_status undo_history(ty_heap *heap, ty_undo_step_callback *callback, void *context);
ty_status undo_get_stats(ty_heap *heap, ty_undo_stats *stats);
// Tells the image's layer what there is to be undone and redone, for who looks from another thread. After each call
// that changes that; O(1).
void undo_tell(ty_heap *heap);

// Calls for each word of the heap that recorded bytes may put back, in no order, until the callback returns false: its
// value, and a mask of the bytes of it that are put back; the others are as they are now. Arguments of procedures
// count, in words from their begin. Buffers that make no sense have none: nothing is undone from these. Attached or
// not. Nothing in the heap changes. Expected: TY_E_MEMORY.
using undo_word_visit = bool(uint64_t value, uint64_t recorded, void *context);
ty_status undo_each_recorded_word(ty_heap *heap, undo_word_visit *visit, void *context);

// ty_each_own_block, of this layer and those below.
ty_status each_own_block(ty_heap *heap, ty_block_callback *callback, void *context);

} // namespace taiyen
