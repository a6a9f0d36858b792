// Checkpoint: the batches' pages are written to their places in the image (I1: only while the journal durably has
// them).
#include "../files/files.hpp"
#include "image_runtime.hpp"

#include <algorithm>
#include <cstdlib>

namespace taiyen {
namespace {

// Copies that a newer copy of the same page makes superfluous, over all batches in order.
class superseded_copies {
public:
    superseded_copies() = default;
    superseded_copies(const superseded_copies &) = delete;
    superseded_copies &operator=(const superseded_copies &) = delete;
    ~superseded_copies() { free(bits_); }

    ty_status find(const batch *first, const batch *last) {
        uint64_t count = 0, previous = 0;
        bool ascending = true; // then no page is there twice
        for (const batch *b = first;; b = b->next) {
            for (size_t i = 0; i < b->copies.count(); ++i, ++count) {
                ascending = ascending && (count == 0 || b->copies[i].page > previous);
                previous = b->copies[i].page;
            }
            if (b == last)
                break;
        }
        return ascending ? TY_OK : mark(first, last, count);
    }
    bool contains(uint64_t index) const { return bits_ && (bits_[index / 64] >> (index % 64) & 1); }

private:
    struct reference {
        uint64_t page;
        uint64_t index;
    };

    ty_status mark(const batch *first, const batch *last, uint64_t count) {
        auto *references = static_cast<reference *>(os::internal_malloc(count * sizeof(reference)));
        bits_ = static_cast<uint64_t *>(os::internal_calloc((count + 63) / 64, sizeof *bits_));
        if (!references || !bits_) {
            free(references);
            return failure(TY_E_MEMORY, "sort %llu page%s to checkpoint", (unsigned long long)count, plural(count))
                .remedy("free memory; nothing is lost, and it is tried again");
        }
        uint64_t index = 0;
        for (const batch *b = first;; b = b->next) {
            for (size_t i = 0; i < b->copies.count(); ++i, ++index)
                references[index] = {b->copies[i].page, index};
            if (b == last)
                break;
        }
        std::sort(references, references + count, [](const reference &a, const reference &b) {
            return a.page != b.page ? a.page < b.page : a.index < b.index;
        });
        for (uint64_t i = 0; i + 1 < count; ++i)
            if (references[i].page == references[i + 1].page) {
                const uint64_t older = references[fault("older_copy_of_a_page_checkpointed") ? i + 1 : i].index;
                bits_[older / 64] |= uint64_t{1} << (older % 64);
            }
        free(references);
        return TY_OK;
    }

    uint64_t *bits_ = nullptr;
};

struct checkpoint_sink {
    image *im;
    const superseded_copies *superseded;
    page_sums sums;
    uint64_t index = 0; // of the next copy, over all batches
    uint64_t bytes = 0;

    // Writes the pages of a piece of the journal to their places, neighbours together.
    static ty_status pages(void *context, const page_copy *copies, size_t count, const char *bytes) {
        auto &self = *static_cast<checkpoint_sink *>(context);
        if (ty_status status = keep_base(*self.im, copies, count))
            return status;
        ty_write writes[chunk_pages_max];
        size_t write_count = 0;
        for (size_t i = 0, n = 0; i < count; i += n) {
            n = 1;
            if (self.superseded->contains(self.index + i))
                continue;
            while (i + n < count && copies[i + n].page == copies[i].page + n &&
                   !self.superseded->contains(self.index + i + n))
                ++n;
            writes[write_count++] = {image_pages_offset + copies[i].page * page_bytes, bytes + i * page_bytes,
                                     n * page_bytes};
            for (size_t k = i; k < i + n; ++k)
                if (ty_status status = self.sums.set(copies[k].page, copies[k].sum))
                    return status;
            self.bytes += n * page_bytes;
        }
        self.index += count;
        if (ty_status status = self.im->backing.write_many(writes, write_count))
            return status;
        self.help_writer();
        return TY_OK;
    }

    // A snapshot that is being written comes first: a thread waits for it.
    void help_writer() {
        while (writer_help(*im)) {
        }
        os::lock_guard guard(im->work);
        if (writer_ready(im->writer))
            writer_finish(*im);
    }
};

// Brings the image to the content of `last`, durably.
ty_status write_pages(image &im, const batch *first, const batch *last) {
    superseded_copies superseded;
    if (ty_status status = superseded.find(first, last))
        return status;
    checkpoint_sink sink{&im, &superseded, {}};
    if (ty_status status = sink.sums.start(im.backing, im.header.current.sums_offset))
        return status;
    for (const batch *b = first;; b = b->next) {
        if (ty_status status = read_batch(im.journal, *b, {&sink, checkpoint_sink::pages}))
            return status;
        if (b == last)
            break;
    }
    if (ty_status status = sink.sums.write())
        return status;
    os::lock_guard guard(im.work);
    im.stats.image_bytes += sink.bytes;
    return TY_OK;
}

ty_status checkpoint_until(image &im, const batch *first, const batch *last, bool open_named) {
    image_header &header = im.header.current;
    // I8: without its batches, an older image must not look as if it needed none.
    if (!open_named && !fault("checkpointed_by_an_open_that_no_file_names"))
        if (ty_status status = name_open(im, nullptr))
            return status;
    // If only writing the headers failed, one of them may already say that the image holds a batch: then a restore
    // would not repair its pages, and they must not be written again (I1).
    while (first != last && first->epoch <= header.epoch && !fault("checkpointed_pages_written_again"))
        first = first->next;
    if (first->epoch > header.epoch || fault("checkpointed_pages_written_again")) {
        if (ty_status status = durable_keep_base(im, first, last))
            return status;
        if (!fault("children_do_not_know_what_was_overwritten"))
            im.overwritten.set(last->epoch);
        if (ty_status status = write_pages(im, first, last))
            return status;
        if (ty_status status =
                fault("header_before_the_pages_are_flushed") ? TY_OK : flush_image(im.backing, im.header))
            return status;
        header.epoch = last->epoch;
        header.nonce = last->nonce;
        header.journal_next = last->end;
        set_redo_point(header, last->redo_point);
    }
    {
        os::lock_guard guard(im.work);
        header.durable_epoch = im.durable_epoch;
    }
    return write_header_twice(im.backing, im.header);
}

} // namespace

ty_status checkpoint_batches(image &im, follower_wait wait) {
    os::lock_guard guard(im.work);
    while (im.checkpointing)
        im.changed.wait(im.work);
    const batch *first = im.waiting.first;
    const batch *last = im.waiting.last;
    if (!first)
        return TY_OK;
    im.checkpointing = true;
    bool open_named = im.open_named;
    im.work.unlock();
    ty_status status;
    {
        overwriting right(im.backing, im.header.current.identity, im.followers); // I27
        status = right.begin(first, &last, wait);
        if (!status)
            status = checkpoint_until(im, first, last, open_named);
    }
    ty_error error = status ? keep_error() : ty_error{};
    im.work.lock();
    im.checkpointing = false;
    if (status != TY_E_BUSY) // put off
        im.checkpoint_error = error;
    if (!status || fault("batches_dropped_after_a_failed_checkpoint")) {
        uint64_t checkpointed = last->epoch;
        while (im.waiting.first && im.waiting.first->epoch <= checkpointed)
            im.waiting.pop(); // I1: both headers durably say so
    }
    im.changed.notify_all();
    writer_trim(im); // likely a quiet moment
    return status;
}

ty_status image_work(ty_heap *heap) {
    image &im = *image_of(heap);
    if (ty_status status = check_writer(im, "do background work"))
        return status;
    if (!has_journal(im.kind))
        return TY_OK;
    os::lock_guard guard(im.work);
    while (im.writer.open && im.writer.sealed) { // a batch that was started counts as work, too
        uint64_t epoch = im.writer.target->epoch;
        im.work.unlock();
        ty_status status = image_snapshot_wait(heap, epoch);
        im.work.lock();
        if (status)
            return status;
    }
    if (im.thread_count == 0) {
        im.work.unlock();
        ty_status status = checkpoint_batches(im);
        im.work.lock();
        return status;
    }
    while (im.checkpointing) // a checkpoint that began earlier may fail for a reason that no longer holds
        im.changed.wait(im.work);
    im.checkpoint_error.status = TY_OK;
    im.checkpoint_wanted = im.checkpoint_waited_for = true;
    im.changed.notify_all();
    const uint64_t last = im.waiting.last ? im.waiting.last->epoch : 0; // later ones may be put off
    while (im.waiting.first && im.waiting.first->epoch <= last && !im.checkpoint_error.status)
        im.changed.wait(im.work);
    return im.checkpoint_error.status ? report_again(im.checkpoint_error) : TY_OK;
}

ty_status image_work_status(ty_heap *heap) {
    image &im = *image_of(heap);
    if (ty_status status = check_process(im, "report how background work went"))
        return status;
    os::lock_guard guard(im.work);
    return im.checkpoint_error.status ? report_again(im.checkpoint_error) : TY_OK;
}

} // namespace taiyen
