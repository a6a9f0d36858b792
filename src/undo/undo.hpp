// The façade of the undo layer. docs/design/undo.md describes how it works.
#pragma once

#include "src/txn/txn.hpp"
#include <taiyen/undo.h>

namespace taiyen {

// The functions of undo.h; the caller has checked the arguments for NULL.
ty_status undo_attach(ty_heap *heap, const ty_undo_options *options); // NULL: the existing buffers, or the defaults
ty_status undo_detach(ty_heap *heap, bool keep_history);
// marks.h. Refused in a procedure, and where buffers are volatile. After a return: what the buffers hold now; undo is
// detached where they are not those that the heap has now.
ty_status undo_check_return(ty_heap *heap, const char *call);
void undo_returned(ty_heap *heap);
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
// Publishes in the image layer what can be undone and redone, for readers on other threads. Called after each call that
// changes it; O(1).
void undo_publish(ty_heap *heap);

// Calls back for each word of the heap that recorded bytes may put back, in no order, until the callback returns false:
// with its value, and a mask of its bytes that are put back; the others have their current value. Arguments of
// procedures count, as words from their start. Invalid buffers have no words: nothing is undone from them. Attached or
// not. Nothing in the heap changes. Expected: TY_E_MEMORY.
using undo_word_visit = bool(uint64_t value, uint64_t recorded, void *context);
ty_status undo_each_recorded_word(ty_heap *heap, undo_word_visit *visit, void *context);

// ty_each_internal_block, of this layer and those below.
ty_status each_internal_block(ty_heap *heap, ty_block_callback *callback, void *context);

} // namespace taiyen
