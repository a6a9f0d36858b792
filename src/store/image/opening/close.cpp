// Closing: a last snapshot, everything checkpointed, unused disk space released.
#include "../files/files.hpp"
#include "../snapshots/snapshots.hpp"
#include "follow.hpp"

#include <cstdlib>

namespace taiyen {
namespace {

// Free pages of the heap whose disk space is worth releasing.
struct free_ranges {
    struct range {
        uint64_t first;
        uint64_t count;
    };
    os::array<range> items;
    const char *base = nullptr;
    bool failed = false;

    static bool add(const ty_extent *extent, void *context) {
        auto &self = *static_cast<free_ranges *>(context);
        if (extent->kind != TY_EXTENT_FREE || extent->size_bytes < os::segment_bytes)
            return true;
        uint64_t first = uint64_t(static_cast<const char *>(extent->address) - self.base) / page_bytes;
        self.failed = self.items.push({first, extent->size_bytes / page_bytes}) != TY_OK;
        return !self.failed;
    }
};

// Whether the image holds data in a range of pages.
ty_status holds_data(const image &im, const free_ranges::range &range, bool *holds) {
    uint64_t start = 0, end = 0;
    uint64_t offset = image_pages_offset + range.first * page_bytes;
    ty_status status = im.backing.next_data(offset, &start, &end);
    *holds = !status && start < offset + range.count * page_bytes;
    return status == TY_E_NOT_FOUND ? TY_OK : status;
}

// Rewrites checksums that a dead process, or a failed close, may have left half-written, durably, before a header says
// that the heap was closed: scrub then treats a damaged one as damage.
ty_status make_sums_durable(image &im) {
    if (!im.sums_may_be_torn)
        return TY_OK;
    page_sums sums;
    if (ty_status status = sums.start(im.backing, im.header.current.sums_offset))
        return status;
    if (ty_status status = sums.write_again(im.header.current.limit_bytes / page_bytes))
        return status;
    if (ty_status status = flush_image(im.backing, im.header))
        return status;
    im.sums_may_be_torn = false;
    return TY_OK;
}

// Checksums first become unknown, durably; then the pages may read as zeros.
ty_status punch_free_pages(image &im) {
    free_ranges free_pages;
    free_pages.base = im.base;
    if (ty_status status = heap_each_extent(im.heap, free_ranges::add, &free_pages))
        return status;
    if (free_pages.failed)
        return failure(TY_E_MEMORY, "list the free pages of a heap")
            .at(im.image_path)
            .remedy("free memory, or raise the process's limits");
    page_sums sums;
    if (ty_status status = sums.start(im.backing, im.header.current.sums_offset))
        return status;
    size_t kept = 0;
    overwriting alone(im.backing, im.header.current.identity, im.followers);
    if (ty_status status = alone.begin_alone()) // I27: their states may use these pages
        return status == TY_E_BUSY ? TY_OK : status;
    for (size_t i = 0; i < free_pages.items.count(); ++i) {
        bool holds = false;
        if (ty_status status = holds_data(im, free_pages.items[i], &holds))
            return status;
        if (!holds)
            continue;
        free_pages.items[kept++] = free_pages.items[i];
        im.sums_may_be_torn = true;
        if (ty_status status = sums.clear_range(free_pages.items[i].first, free_pages.items[i].count))
            return status;
    }
    if (!kept)
        return TY_OK;
    ty_status status = sums.write();
    if (status || (status = flush_image(im.backing, im.header)))
        return status;
    im.sums_may_be_torn = false;
    for (size_t i = 0; i < kept; ++i) {
        const free_ranges::range &range = free_pages.items[i];
        status = im.backing.punch(image_pages_offset + range.first * page_bytes, range.count * page_bytes);
        if (status)
            return status == TY_E_UNSUPPORTED ? TY_OK : status;
    }
    return TY_OK;
}

// Nothing in the journal is needed any more: it becomes as short as a new one.
ty_status empty_journal(image &im) {
    journal_header next = im.head.header;
    if (next.size_bytes > journal_front || (im.open_named && next.previous.number)) {
        next.size_bytes = journal_front;
        if (im.open_named)
            next.previous = {};
        if (ty_status status = write_journal_header(im.journal, im.head, next))
            return status;
    }
    if (ty_status status = im.journal.set_size(journal_front))
        return status;
    im.writer.allocated_end = im.head.sized_bytes = journal_front;
    return TY_OK;
}

// log_is_empty: the heap has a log, and the last snapshot holds everything in it.
ty_status write_closed(image &im, bool log_is_empty) {
    im.header.current.state = uint32_t(image_state::closed);
    im.header.current.log_empty_after_redo_point = log_is_empty;
    im.header.current.durable_epoch = im.durable_epoch;
    if (ty_status status = write_header(im.backing, im.header))
        return status;
    return flush_image(im.backing, im.header);
}

// On failure the heap stays in use, and the disk may hold what it failed to acknowledge: a header that says that the
// heap is closed. If the disk permits, that header is overwritten at once; else before the next batch counts (I8), or
// before the next snapshot of an archive heap (I16), which can take no more snapshots where a flush failed (I3).
ty_status mark_closed(image &im, bool log_is_empty) {
    ty_status status = write_closed(im, log_is_empty);
    if (!status)
        return TY_OK;
    ty_error error = keep_error();
    im.header.current.state = uint32_t(image_state::open);
    im.header.current.log_empty_after_redo_point = 0;
    const bool written = fault("closed_header_stays_after_a_failed_close") ||
                         (!write_header(im.backing, im.header) && !flush_image(im.backing, im.header));
    im.open_named = im.open_named && written;
    if (im.kind == TY_ARCHIVE && written)
        im.header.flush_failed = false; // the pages are durable
    return report_again(error);
}

// After the last snapshot: everything is checkpointed, and the journal shrinks. On any failure nothing is lost, and
// this can be repeated.
ty_status finish_files(image &im) {
    if (im.kind == TY_ARCHIVE) {
        if (ty_status status = mark_closed(im, false))
            return status;
        // If a power cut tears a header in the next open, the other slot must say the same: an archive heap has no
        // journal that could. The heap is already closed, so a failure here costs nothing else.
        (void)write_closed(im, false);
        return TY_OK;
    }
    ty_status status = checkpoint_batches(im, follower_wait::then_put_off);
    im.overwritten.set(UINT64_MAX); // free pages, which children may use
    const bool put_off = status == TY_E_BUSY || (!status && im.waiting.first != nullptr);
    if (!status || put_off)
        status = make_sums_durable(im);
    if (!status && !durable_exist(im)) // they may need them
        status = punch_free_pages(im);
    if (!status && !put_off)
        status = empty_journal(im);
    return status ? status : mark_closed(im, im.kind == TY_TRANSACTIONAL);
}

ty_status final_snapshot(image &im, const log_positions *redo_point) {
    uint64_t epoch = 0;
    if (ty_status status = image_snapshot_start(im.heap, redo_point, nullptr, &epoch))
        return status;
    return has_journal(im.kind) ? image_snapshot_wait(im.heap, epoch) : TY_OK;
}

ty_status teardown_after(image *im, ty_status status) {
    ty_error error = status ? keep_error() : ty_error{};
    image_teardown(im);
    return status ? report_again(error) : TY_OK;
}

} // namespace

ty_status image_close(ty_heap *heap, const log_positions *redo_point) {
    image *im = image_of(heap);
    if (im->fork.forked())
        return check_writer(*im, "close a heap");
    if (im->read_only)
        return teardown_after(im, TY_OK);
    if (ty_status status = final_snapshot(*im, redo_point))
        return status;
    if (ty_status status = durable_save_current(*im))
        return status;
    worker_stop(*im);
    if (finish_files(*im)) {
        ty_error error = keep_error();
        (void)worker_start(*im); // without threads, calls do its work
        return report_again(error);
    }
    image_teardown(im);
    return TY_OK;
}

// I3: a failed batch is not believed.
ty_status image_discard(ty_heap *heap) {
    image *im = image_of(heap);
    if (im->fork.forked() || im->read_only)
        return teardown_after(im, TY_OK);
    worker_stop(*im);
    // Closed cleanly, if the disk permits: a header that says otherwise costs the next open a flush and a scan of the
    // journal. An archive heap's memory may be on the disk in part; so may a snapshot that failed, or its last chunks.
    const bool clean = im->kind != TY_ARCHIVE &&
                       (im->writer.failed_epoch <= im->durable_epoch || fault("closed_after_a_failed_snapshot"));
    if (clean && make_sums_durable(*im) == TY_OK)
        (void)write_closed(*im, false);
    return teardown_after(im, TY_OK);
}

void image_unmake(ty_heap *heap) {
    image *im = image_of(heap);
    worker_stop(*im);
    remove_files(*im);
    image_teardown(im);
}

void image_teardown(image *im) {
    image_release(im);
    if (im->before)
        os::unmap_memory(im->before, sizeof(image));
    os::unmap_memory(im, sizeof(image));
}

void image_release(image *im) {
    bool forked = im->fork.forked();
    durable_close(*im, forked);
    if (!forked) {
        worker_stop(*im);                // the thread does not exist in a child
        im->overwritten.set(UINT64_MAX); // by whoever opens it next
    }
    if (im->heap)
        heap_detach(im->heap);
    if (im->tracking)
        im->tracker.stop();
    destroy_given_back(*im);
    im->dirty.destroy();
    im->in_flight.destroy();
    follow_stop(*im);
    if (!forked) { // another thread may have been changing these at the fork
        image_end_marks(*im);
        copies_stop(*im);
        im->ahead.release();
        im->paused.release();
        im->writer.ring.destroy();
        batch_destroy(im->writer.target);
        im->waiting.clear();
    }
    if (im->base)
        (void)im->backing.unmap(im->base, im->mapped_bytes);
    im->journal.close();
    im->backing.close();
    im->fork.stop();
    im->overwritten.stop();
    free(im->image_path);
    free(im->journal_path);
}

} // namespace taiyen
