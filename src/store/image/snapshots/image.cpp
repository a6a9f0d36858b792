// Calls on an open image, and small changes of its state: who may write, purge, statistics, errors of background work.
#include "../files/files.hpp"
#include "image_runtime.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace taiyen {

image *image_of(ty_heap *heap) {
    return static_cast<image *>(heap_image_of(heap));
}

ty_status check_process(const image &im, const char *operation) {
    if (im.fork.forked())
        return failure(TY_E_FORKED, "%s in a forked child", operation)
            .at(im.image_path)
            .remedy("the heap belongs to the parent process; the child may read it, and discard its copy");
    return TY_OK;
}

ty_status image_check_path(ty_heap *heap, const char *operation) {
    const image &im = *image_of(heap);
    storage_file found{im.backing.storage};
    if (ty_status status = found.open(im.image_path, 0))
        return status;
    image_header header;
    bool repaired = false;
    ty_status status = read_header(found, &header, &repaired);
    found.close();
    const image_header &own = im.header.current;
    if (status == TY_OK && (memcmp(header.identity, own.identity, sizeof own.identity) != 0 ||
                            memcmp(&header.open, &own.open, sizeof own.open) != 0))
        status = failure(TY_E_MISMATCH, "%s: another file has the name of its image by now", operation)
                     .at(im.image_path)
                     .remedy("put the heap's own image back under this name");
    return status;
}

ty_status check_writer(const image &im, const char *operation) {
    if (ty_status status = check_process(im, operation))
        return status;
    if (im.read_only)
        return failure(TY_E_PERMISSION, "%s: the heap was opened read-only", operation)
            .at(im.image_path)
            .remedy("open it for writing");
    return TY_OK;
}

const storage_file *image_file(ty_heap *heap) {
    return &image_of(heap)->backing;
}

bool image_is_read_only(ty_heap *heap) {
    return image_of(heap)->read_only;
}

ty_code image_code_option(ty_heap *heap) {
    return image_of(heap)->code;
}

ty_status image_check_writer(ty_heap *heap, const char *operation) {
    const image *im = image_of(heap);
    return im ? check_writer(*im, operation) : TY_OK;
}

ty_status image_check_files(ty_heap *heap) {
    return check_files(*image_of(heap));
}

bool image_open_named(ty_heap *heap) {
    image *im = image_of(heap);
    os::lock_guard guard(im->work);
    return im->open_named;
}

// N3: nothing is acknowledged in a file that no name leads to.
ty_status check_files(const image &im) {
    ty_status status = im.backing.check();
    return status || !im.journal.is_open() ? status : im.journal.check();
}

void image_set_client(ty_heap *heap, void *client) {
    image_of(heap)->client = client;
}

void *image_client(ty_heap *heap) {
    const image *im = image_of(heap);
    return im ? im->client : nullptr;
}

uint64_t image_copies_allowed(ty_heap *heap) {
    return copies_allowed(image_of(heap)->copies.bound_bytes);
}

memory_metrics image_memory_metrics(ty_heap *heap) {
    const private_copies &copies = image_of(heap)->copies;
    const uint64_t published = copies.published.load(std::memory_order_relaxed);
    return {copies.bound_bytes, copies_allowed(copies.bound_bytes), published ? (published - 1) * page_bytes : 0,
            published != 0};
}

void image_publish_undo(ty_heap *heap, const undo_metrics_of &metrics) {
    if (image *im = image_of(heap))
        im->undo.publish(&metrics);
}

bool image_read_undo(ty_heap *heap, undo_metrics_of *metrics) {
    return image_of(heap)->undo.read(metrics);
}

void image_set_pages_being_written(ty_heap *heap, void (*being_written)(void *context, os::page_set &pages),
                                   void *context) {
    image &im = *image_of(heap);
    os::lock_guard guard(im.control);
    im.copies.being_written = being_written;
    im.copies.being_written_context = context;
}

const char *image_path(ty_heap *heap) {
    return image_of(heap)->image_path;
}

const char *image_journal_path_elsewhere(ty_heap *heap) {
    const image &im = *image_of(heap);
    return im.default_journal_name ? "" : im.journal_path;
}

const uint8_t *image_identity(ty_heap *heap) {
    return image_of(heap)->identity;
}

ty_kind image_kind(ty_heap *heap) {
    const image *im = image_of(heap);
    return im ? im->kind : TY_VOLATILE;
}

uint64_t image_epoch(ty_heap *heap) {
    image *im = image_of(heap);
    if (!im)
        return 0;
    if (im->fork.forked()) // a thread that the child does not have may hold the lock; nothing changes in a child
        return im->durable_epoch;
    os::lock_guard guard(im->work);
    return im->durable_epoch;
}

ty_status image_get_snapshot_stats(ty_heap *heap, ty_snapshot_stats *stats) {
    image &im = *image_of(heap);
    if (ty_status status = check_process(im, "get snapshot statistics"))
        return status;
    size_t struct_size = stats->struct_size;
    os::lock_guard guard(im.work);
    *stats = im.stats;
    stats->struct_size = struct_size;
    stats->pending_batches = im.waiting.count;
    stats->pending_bytes = im.waiting.bytes();
    return TY_OK;
}

void note_pause(image &im, uint64_t epoch, uint64_t pause_ns) {
    im.stats.last_pause_ns = pause_ns;
    im.pause = {epoch, pause_ns};
    snapshot_record &newest = im.lines[(im.line_count - 1) % snapshot_lines_max];
    if (im.line_count != 0 && newest.epoch == epoch)
        newest.pause_ns = pause_ns;
}

uint32_t image_snapshot_lines(ty_heap *heap, snapshot_record (&lines)[snapshot_lines_max]) {
    image &im = *image_of(heap);
    os::lock_guard guard(im.work);
    const uint64_t count = std::min<uint64_t>(im.line_count, snapshot_lines_max);
    for (uint64_t i = 0; i < count; ++i)
        lines[i] = im.lines[(im.line_count - count + i) % snapshot_lines_max];
    return static_cast<uint32_t>(count);
}

void image_set_metrics(ty_heap *heap, metrics_page *metrics_page) {
    image_of(heap)->shown = metrics_page;
}

os::mutex &image_code_record_lock(ty_heap *heap) {
    return image_of(heap)->code_record;
}

metrics_page *image_metrics(ty_heap *heap) {
    const image *im = image_of(heap);
    return im ? im->shown : nullptr;
}

namespace {

// Evicts private copies in [first, first + count) that the image holds unchanged. Under control; no thread writes to
// these pages. Does nothing while a batch holds what is not in the image yet. (I14)
ty_status evict_copies(image &im, uint64_t first, uint64_t count, size_t *released) {
    {
        os::lock_guard work_guard(im.work);
        if (im.waiting.first || (im.writer.open && !fault("purge_while_a_batch_is_open")))
            return TY_OK;
    }
    constexpr size_t capacity = 512;
    uint64_t pages[capacity];
    for (uint64_t next = first, end = first + count; next < end;) {
        size_t found = 0;
        if (ty_status status = im.tracker.unwritten_copies(next, end - next, pages, capacity, &found, &next))
            return status;
        for (size_t i = 0; i < found; ++i) {
            if ((im.dirty.contains(pages[i]) && !fault("purge_of_dirty_pages")) || !shows_file(im, pages[i]))
                continue;
            if (ty_status status = os::decommit(im.base + pages[i] * page_bytes, page_bytes))
                return status;
            *released += page_bytes;
        }
    }
    return TY_OK;
}

} // namespace

// Releases memory of free pages, and evicts private copies that the image holds unchanged. (I4: a clean page is in a
// durable epoch.)
ty_status image_purge(ty_heap *heap, size_t *released_bytes) {
    image &im = *image_of(heap);
    if (ty_status status = check_writer(im, "purge"))
        return status;
    size_t released = 0;
    if (ty_status status = heap_purge(heap, &released))
        return status;
    if (has_journal(im.kind)) {
        // Only what no batch holds any more is certain to be in the image.
        if (ty_status status = image_work(heap))
            return status;
        os::lock_guard guard(im.control);
        take_outcome(im);
        heap_pause(heap);
        ty_status status = evict_copies(im, 0, im.dirty.page_count(), &released);
        heap_resume(heap);
        if (status)
            return status;
    }
    if (released_bytes)
        *released_bytes = released;
    return TY_OK;
}

ty_status image_evict(ty_heap *heap, const void *address, size_t bytes, size_t *released_bytes) {
    image *im = image_of(heap);
    *released_bytes = 0;
    if (!im || !has_journal(im->kind))
        return TY_OK;
    os::lock_guard guard(im->control);
    take_outcome(*im);
    uint64_t first = uint64_t(static_cast<const char *>(address) - im->base) / page_bytes;
    return evict_copies(*im, first, bytes / page_bytes, released_bytes);
}

void leave_unused_out_of_dumps(const image &im) {
    heap_stretch unused[heap_unused_max];
    size_t count = heap_unused(im.heap, im.mapped_bytes, unused);
    for (size_t i = 0; i < count; ++i)
        os::dump(unused[i].address, unused[i].bytes, false);
}

const code_places &image_code_before(ty_heap *heap) {
    return image_of(heap)->code_before;
}

} // namespace taiyen
