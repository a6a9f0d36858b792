// Snapshots: which pages go into a batch, and which thread waits for what.
#include "image_runtime.hpp"
#include "tracking.hpp"

#include <cstring>

namespace taiyen {
void finish_in_flight(image &im) {
    os::lock_guard guard(im.work);
    while (im.writer.open && im.writer.sealed) {
        if (writer_ready(im.writer)) {
            writer_finish(im);
        } else if (im.writer.has_work()) {
            im.work.unlock();
            writer_help(im);
            im.work.lock();
        } else {
            im.changed.wait(im.work);
        }
    }
}

namespace {

// Before the extents of a running heap are read: empty spans become free extents, without the heap being paused during
// the read.
void merge_empty_spans(ty_heap *heap) {
    heap_pause(heap);
    heap_resume(heap);
}

// Writes the batch of the list's pages; on any failure they stay dirty. last: the redo point, if the batch is complete
// with these pages. Under control.
ty_status write_batch(image &im, const page_list &list, const log_positions *last, uint64_t started_ns,
                      uint64_t *epoch) {
    if (!im.writer.open) // opened and sealed under control only
        if (ty_status status = writer_open(im, last ? list.count() : 0))
            return status;
    im.writer.started_ns = started_ns;
    if (last)
        im.writer.redo_point = *last;
    *epoch = im.writer.target->epoch;
    ty_status status = writer_add(im, list.begin(), list.count(), last != nullptr);
    if (status)
        writer_abandon(im);
    return status;
}

// If the batches exceed the journal's limit, they are checkpointed first, before any thread is paused.
ty_status keep_journal_bounded(image &im) {
    {
        os::lock_guard guard(im.work);
        if (im.waiting.bytes() <= im.journal_limit_bytes)
            return TY_OK;
    }
    return checkpoint_batches(im);
}

} // namespace

ty_status collect_dirty(image &im) {
    return im.tracker.collect(used_parts(im).ranges(), collection(im).into());
}

ty_status query_dirty(image &im) {
    return im.tracker.query(used_parts(im).ranges(), collection(im).into());
}

void move_to_flight(image &im, const page_list &list) {
    copies_note(im, list.begin(), list.count());
    for (uint64_t i = 0; i < list.count(); ++i) {
        im.dirty.erase(list[i]);
        if (!fault("clean_before_it_is_durable"))
            im.in_flight.insert(list[i]);
    }
}

void take_outcome(image &im) {
    batch_outcome outcome;
    bool broken;
    {
        os::lock_guard guard(im.work);
        broken = im.writer.open && im.writer.failing && !im.writer.sealed;
    }
    if (broken)
        writer_abandon(im);
    {
        os::lock_guard guard(im.work);
        outcome = im.writer.outcome;
        im.writer.outcome = batch_outcome::none;
    }
    if (outcome == batch_outcome::failed && !fault("pages_of_a_failed_batch_forgotten"))
        im.dirty.merge(im.in_flight);
    if (outcome != batch_outcome::none && outcome != batch_outcome::failed && im.given_before.count() != 0)
        im.given_before.clear();
    if (outcome != batch_outcome::none)
        im.in_flight.clear(); // I4: clean only once durable
}

namespace {

// A snapshot of a heap that no thread stores into: all within one pause.
ty_status write_stop_the_world(image &im, const log_positions *given, uint64_t started_ns, uint64_t *epoch) {
    bool pressed = copies_pressed(im);
    log_positions redo_point = given ? *given : im.durable_redo_point; // no batch is under way
    page_list list;
    heap_pause(im.heap);
    ty_status status = collect_dirty(im);
    if (!status)
        status = heap_select_pages(im.heap, im.dirty, {}, &list);
    if (!status && pressed)
        copies_evict(im, list.count());
    bool anything = list.count() || im.writer.open || !(redo_point == im.durable_redo_point);
    if (!status && anything)
        status = write_batch(im, list, &redo_point, started_ns, epoch);
    if (!status && anything)
        move_given_back(im);
    heap_resume(im.heap);
    if (status)
        return status;
    uint64_t pause_ns = os::now_ns() - started_ns;
    move_to_flight(im, list);
    os::lock_guard work_guard(im.work);
    if (!anything)
        *epoch = im.durable_epoch;
    else
        note_pause(im, *epoch, pause_ns);
    return TY_OK;
}

} // namespace

ty_status image_snapshot_start(ty_heap *heap, const log_positions *redo_point, const image_fuzzy_callbacks *fuzzy,
                               uint64_t *epoch) {
    image &im = *image_of(heap);
    uint64_t started_ns = os::now_ns();
    if (ty_status status = check_writer(im, "take a snapshot"))
        return status;
    if (fuzzy && !image_allows_fuzzy(heap))
        return failure(TY_E_UNSUPPORTED, "take a snapshot while others store")
            .at(im.image_path)
            .remedy("stop all stores meanwhile, or track writes by the kernel or by signals");
    os::lock_guard guard(im.control);
    if (ty_status status = check_files(im)) // even if there is nothing to write
        return status;
    if (im.kind == TY_ARCHIVE)
        return archive_snapshot(im, epoch);
    finish_in_flight(im);
    take_outcome(im);
    if (ty_status status = keep_journal_bounded(im))
        return status;
    return fuzzy ? write_fuzzy(im, redo_point, *fuzzy, started_ns, epoch)
                 : write_stop_the_world(im, redo_point, started_ns, epoch);
}

ty_status image_evict_copies(ty_heap *heap) {
    image &im = *image_of(heap);
    if (im.read_only || !has_journal(im.kind) || im.fork.forked())
        return TY_OK;
    os::lock_guard guard(im.control);
    take_outcome(im);
    if (!copies_pressed(im))
        return TY_OK;
    heap_pause(heap);
    ty_status status = collect_dirty(im);
    if (!status)
        copies_evict(im, 0);
    heap_resume(heap);
    return status;
}

ty_status image_snapshot_wait(ty_heap *heap, uint64_t epoch) {
    image &im = *image_of(heap);
    if (ty_status status = check_writer(im, "wait for a snapshot"))
        return status;
    os::lock_guard guard(im.work);
    for (;;) {
        const batch_writer &writer = im.writer;
        if (im.durable_epoch >= epoch)
            return TY_OK;
        if (!writer.open || !writer.sealed || writer.target->epoch != epoch) {
            if (writer.failed_epoch == epoch)
                return report_again(writer.failed_error);
            return failure(TY_E_ARGUMENT, "wait for epoch %llu, which was not started", (unsigned long long)epoch)
                .remedy("wait for the epoch that ty_snapshot_start gave");
        }
        if (writer_ready(writer)) {
            writer_finish(im);
        } else if (writer.has_work()) {
            im.work.unlock();
            writer_help(im);
            im.work.lock();
        } else {
            im.changed.wait(im.work);
        }
    }
}

ty_status image_write_back_early(ty_heap *heap, size_t limit_pages) {
    image &im = *image_of(heap);
    uint64_t started_ns = os::now_ns();
    if (ty_status status = check_writer(im, "write back early"))
        return status;
    if (!has_journal(im.kind))
        return failure(TY_E_UNSUPPORTED, "write an archive heap's pages back early")
            .remedy("only snapshot heaps have a journal");
    os::lock_guard guard(im.control);
    finish_in_flight(im);
    take_outcome(im);
    if (ty_status status = keep_journal_bounded(im))
        return status;
    if (!im.tracker.sees_racing_writes()) // then pages can be collected only in the snapshot's pause
        return TY_OK;
    page_list list;
    page_choice choice;
    choice.limit = limit_pages ? limit_pages : UINT64_MAX;
    choice.extent_at = heap_extent_now;
    merge_empty_spans(heap);
    ty_status status = im.tracker.collect(collection(im).into());
    if (!status)
        status = heap_select_pages(heap, im.dirty, choice, &list);
    // The pages are protected: a later write makes its page dirty again, whatever the copy caught.
    uint64_t epoch = 0;
    if (!status && list.count())
        status = write_batch(im, list, nullptr, started_ns, &epoch);
    if (!status && im.thread_count == 0)
        while (writer_help(im)) // no other thread does it before the next snapshot, which reports a failure
            ;
    if (!status)
        move_to_flight(im, list);
    return status;
}

namespace {

// What a read-only heap reports instead of dirty pages: those that the journal holds and the image does not.
ty_status waiting_pages(image &im, os::page_set &pages) {
    os::lock_guard guard(im.work); // a follower's refresh
    if (ty_status status = pages.create(im.mapped_bytes / page_bytes))
        return status;
    for (const batch *b = im.waiting.first; b; b = b->next)
        for (size_t i = 0; i < b->copies.count(); ++i)
            pages.insert(b->copies[i].page);
    return TY_OK;
}

// The pages that are dirty now, including those of free extents; for a read-only heap, the ones that wait.
ty_status pages_now(image &im, const char *operation, os::page_set &pages) {
    if (im.read_only && has_journal(im.kind))
        return waiting_pages(im, pages);
    if (ty_status status = check_writer(im, operation))
        return status;
    if (!im.tracking)
        return failure(TY_E_UNSUPPORTED, "%s of an archive heap", operation)
            .at(im.image_path)
            .remedy("only snapshot heaps track dirty pages");
    os::lock_guard guard(im.control);
    take_outcome(im);
    if (ty_status status = pages.create(im.dirty.page_count()))
        return status;
    pages.merge(im.dirty);
    return im.tracker.query(used_parts(im).ranges(), pages);
}

} // namespace

namespace {

void add_to_cells(const page_list &list, const dirty_cells &cells) {
    for (uint64_t i = 0; i < list.count(); ++i)
        if (const uint64_t cell = list[i] / cells.cell_pages; cell < cells.count)
            cells.pages[cell] += 1;
}

} // namespace

ty_status image_dirty_count(ty_heap *heap, uint64_t *pages, const dirty_cells *cells) {
    image &im = *image_of(heap);
    os::page_set now;
    ty_status status = pages_now(im, "count the dirty pages", now);
    if (!status && im.read_only) {
        *pages = now.count();
    } else if (!status) {
        page_list list;
        page_choice choice;
        choice.extent_at = heap_extent_now;
        merge_empty_spans(heap);
        status = heap_select_pages(heap, now, choice, &list);
        *pages = list.count();
        if (!status && cells != nullptr)
            add_to_cells(list, *cells);
    }
    now.destroy();
    return status;
}

ty_status image_dirty_bitmap(ty_heap *heap, uint64_t first, uint64_t count, uint64_t *bitmap) {
    image &im = *image_of(heap);
    uint64_t page_count = im.mapped_bytes / page_bytes;
    if (first > page_count || count > page_count - first)
        return failure(TY_E_ARGUMENT, "copy the dirty bits of pages %llu to %llu: the heap has %llu",
                       (unsigned long long)first, (unsigned long long)(first + count), (unsigned long long)page_count)
            .remedy("ask for pages of the heap");
    os::page_set now;
    ty_status status = pages_now(im, "copy the dirty bitmap", now);
    for (uint64_t word = 0; !status && word < (count + 63) / 64; ++word)
        bitmap[word] = 0;
    if (!status)
        for (uint64_t page = now.next(first); page < first + count; page = now.next(page + 1))
            bitmap[(page - first) / 64] |= uint64_t{1} << ((page - first) % 64);
    now.destroy();
    return status;
}

} // namespace taiyen
