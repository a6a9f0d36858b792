// The façade of the marks layer: versions of a heap's pages (mark_tree.hpp), and marks of volatile heaps. docs/design/
// marks.md explains it.
#pragma once

#include "mark_tree.hpp"
#include "src/heap/heap.hpp"

namespace taiyen {

// TY_E_ARGUMENT: the name has too many bytes, or none.
ty_status check_mark_name(const char *name, const char *call);
ty_status mark_not_found(const char *name, const char *path = nullptr);

// The heap, which is paused to change, becomes as at the tree's current mark in `pages`. base: of pages that are as in
// the base; NULL: these are zeros.
void apply_mark(ty_heap *heap, const mark_tree &tree, const page_copies &copies, const os::page_set &pages,
                const page_source *base);

// After pages were replaced: they are not written since. A failure only makes later calls find too many pages.
void settle_tracker(os::tracker &tracker, os::page_ranges where, const os::page_set &pages, os::page_set &found);

// Of volatile heaps.
ty_status volatile_mark(ty_heap *heap, const char *name);
ty_status volatile_return_to(ty_heap *heap, const char *name);
ty_status volatile_drop_mark(ty_heap *heap, const char *name);
ty_status volatile_each_mark(ty_heap *heap, ty_mark_callback *callback, void *context);

} // namespace taiyen
