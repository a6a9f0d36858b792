#include "image_runtime.hpp"
#include "paths.hpp"

#include <cstdlib>
#include <cstring>

namespace taiyen {

image *image_of(ty_heap *heap) {
    return static_cast<image *>(heap_attachment(heap));
}

ty_status check_process(const image &im, const char *operation) {
    if (im.fork.forked())
        return failure(TY_E_FORKED, "%s in a forked child", operation)
            .at(im.image_path)
            .remedy("the heap belongs to the parent process; the child may read it, and discard its copy");
    return TY_OK;
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

ty_status image_check_writer(ty_heap *heap, const char *operation) {
    const image *im = image_of(heap);
    return im ? check_writer(*im, operation) : TY_OK;
}

ty_error keep_error() {
    ty_error error;
    ty_error_detail(&error);
    return error;
}

ty_status report_error(const ty_error &error) {
    return ty_error_set(error.status, error.system_error, error.operation, error.path, error.offset, error.remedy);
}

void image_set_upper(ty_heap *heap, void *upper) {
    image_of(heap)->upper = upper;
}

void *image_upper(ty_heap *heap) {
    const image *im = image_of(heap);
    return im ? im->upper : nullptr;
}

const char *image_path(ty_heap *heap) {
    return image_of(heap)->image_path;
}

ty_kind image_kind(ty_heap *heap) {
    const image *im = image_of(heap);
    return im ? im->kind : TY_VOLATILE;
}

uint64_t image_epoch(ty_heap *heap) {
    image *im = image_of(heap);
    if (!im)
        return 0;
    if (im->fork.forked()) // the lock may be held by a thread that the child has not got; nothing changes here any more
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
    stats->unapplied_batches = im.unapplied.count;
    stats->unapplied_bytes = im.unapplied.bytes();
    return TY_OK;
}

namespace {

// Whether the page shows the file once its private copy is gone; fresh memory would show zeros.
bool shows_file(const image &im, uint64_t page) {
    const char *address = im.base + page * page_bytes;
    for (size_t i = 0; i < im.fresh_count; ++i) {
        const char *start = static_cast<const char *>(im.fresh[i].address);
        if (address >= start && address < start + im.fresh[i].bytes)
            return false;
    }
    return true;
}

} // namespace

// Memory of free pages, and private copies that the image holds unchanged.
ty_status image_purge(ty_heap *heap, size_t *released_bytes) {
    image &im = *image_of(heap);
    if (ty_status status = check_writer(im, "purge"))
        return status;
    size_t released = 0;
    if (ty_status status = heap_purge(heap, &released))
        return status;
    if (has_journal(im.kind)) {
        // Only what no batch holds any more is in the image for certain.
        if (ty_status status = image_work(heap))
            return status;
        os::lock_guard guard(im.control);
        settle_outcome(im);
        heap_pause(heap);
        constexpr size_t capacity = 512;
        uint64_t pages[capacity];
        ty_status status = TY_OK;
        bool congruent;
        {
            os::lock_guard work_guard(im.work);
            congruent = !im.unapplied.first && !im.writer.open;
        }
        for (uint64_t next = 0, end = im.dirty.page_count(); congruent && !status && next < end;) {
            size_t found = 0;
            status = im.tracker.unwritten_copies(next, end - next, pages, capacity, &found, &next);
            for (size_t i = 0; !status && i < found; ++i) {
                if (im.dirty.contains(pages[i]) || !shows_file(im, pages[i]))
                    continue;
                status = os::decommit(im.base + pages[i] * page_bytes, page_bytes);
                released += page_bytes;
            }
        }
        heap_resume(heap);
        if (status)
            return status;
    }
    if (released_bytes)
        *released_bytes = released;
    return TY_OK;
}

} // namespace taiyen
