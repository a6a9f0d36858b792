// The façade of the image layer: heaps that live in files. docs/design/image.md tells how it works; image_layout.hpp is
// the form of its files.
#pragma once

#include "../heap/heap.hpp"
#include <taiyen/persist.h>

namespace taiyen {

// The functions of persist.h, with arguments checked by the caller.
ty_status image_open(const char *path, const ty_open_options &options, ty_heap **heap, ty_report *report);
ty_status image_close(ty_heap *heap);
ty_status image_discard(ty_heap *heap);
ty_status image_snapshot_start(ty_heap *heap, uint64_t *epoch);
ty_status image_snapshot_wait(ty_heap *heap, uint64_t epoch);
ty_status image_preflush(ty_heap *heap, size_t limit_pages);
ty_status image_work(ty_heap *heap);
ty_status image_work_status(ty_heap *heap);
ty_status image_purge(ty_heap *heap, size_t *released_bytes);
ty_status image_dirty_count(ty_heap *heap, uint64_t *pages);
ty_status image_dirty_bitmap(ty_heap *heap, uint64_t first, uint64_t count, uint64_t *bitmap);
ty_status image_get_snapshot_stats(ty_heap *heap, ty_snapshot_stats *stats);
ty_status image_read_info(const char *path, const ty_storage &storage, ty_info *info);
ty_status image_scrub(const char *path, const ty_storage &storage, ty_progress_callback *progress,
                      ty_problem_callback *problem, void *context);
ty_kind image_kind(ty_heap *heap); // TY_VOLATILE for a heap without an image
uint64_t image_epoch(ty_heap *heap);

} // namespace taiyen
