// Batches that would not fit in memory as private copies are checkpointed in the open, before the heap is mapped.
#include "open_steps.hpp"

namespace taiyen {

bool exceeds_memory(const image_opening &state) {
    return state.journal.scan.batches.pages() * page_bytes > copies_allowed(state.options.memory_bytes);
}

ty_status check_fits_reader(const image &im, const image_opening &state) {
    const bool at_mark = state.options.mark != nullptr;
    const uint64_t pages = at_mark ? durable_view_pages(im) : state.journal.scan.batches.pages();
    if (pages * page_bytes <= image_reader_allowed())
        return TY_OK;
    return failure(TY_E_MEMORY, "read %llu page%s of %s that the image does not hold%s", (unsigned long long)pages,
                   plural(pages), at_mark ? "the mark" : "snapshots", at_mark ? "" : " yet")
        .at(im.image_path)
        .remedy("%s", at_mark ? "return to the mark: that takes less memory"
                              : "open it for writing once: that checkpoints them");
}

// An open that fails from here on leaves the same as a process that dies after its open: the same heap.
ty_status checkpoint_early(image &im, image_opening &state) {
    batch_list &batches = state.journal.scan.batches;
    if (ty_status status = begin_open(im, state))
        return status;
    state.checkpointed_batches = batches.count;
    state.checkpointed_pages = batches.pages();
    im.durable_epoch = batches.last->epoch;
    im.waiting = batches;
    batches = {};
    return checkpoint_batches(im); // I8: names the open first
}

} // namespace taiyen
